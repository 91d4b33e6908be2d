/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of "did you mean".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/opt.h"

static const char *const names[] = {"clients", "threads", "theta", "seed", "index", "value_bytes", "k"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static void assert_suggested(const char *name, const char *expected) {
    const char *near = dm_suggest(name, names, NAMES);
    if (expected == NULL) {
        assert_null(near);
    } else {
        assert_non_null(near);
        assert_string_equal(near, expected);
    }
}

static void each_kind_of_slip_is_recognised(void **state) {
    (void)state;
    assert_suggested("cleints", "clients");
    assert_suggested("client", "clients");
    assert_suggested("cllients", "clients");
    assert_suggested("cliemts", "clients");
    assert_suggested("sede", "seed");
    assert_suggested("xndex", "index");
    assert_suggested("inde", "index");
    assert_suggested("value-bytes", "value_bytes");
    assert_suggested("valuebyte", "value_bytes");
    assert_suggested("clients", "clients");
}

static void far_names_are_not_suggested(void **state) {
    (void)state;
    assert_suggested("zipf", NULL);
    assert_suggested("", NULL);
    assert_suggested("x", NULL);
    assert_suggested("tesed", NULL);
    /* two edits of five letters are too many, of seven they are not */
    assert_suggested("ideks", NULL);
    assert_suggested("cliexxs", "clients");
    assert_suggested("clixxxs", NULL);
}

static void the_nearest_wins_and_the_first_of_equals(void **state) {
    (void)state;
    static const char *const pair[] = {"abcdef1", "abcdef", "abcdeg"};
    assert_string_equal(dm_suggest("abcdex", pair, 3), "abcdef");
    assert_string_equal(dm_suggest("abcdeg", pair, 3), "abcdeg");
    assert_string_equal(dm_suggest("abcdef12", pair, 3), "abcdef1");
}

static void long_names_are_left_alone(void **state) {
    (void)state;
    char name[300];
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    const char *const self[] = {name};
    assert_null(dm_suggest(name, names, NAMES));
    assert_null(dm_suggest("aaa", self, 1));
    name[63] = '\0';
    assert_ptr_equal(dm_suggest(name, self, 1), name);
}

static void without_candidates_there_is_no_suggestion(void **state) {
    (void)state;
    assert_null(dm_suggest("clients", NULL, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_slip_is_recognised),           cmocka_unit_test(far_names_are_not_suggested),
        cmocka_unit_test(the_nearest_wins_and_the_first_of_equals),  cmocka_unit_test(long_names_are_left_alone),
        cmocka_unit_test(without_candidates_there_is_no_suggestion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
