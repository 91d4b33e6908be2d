/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of result codes and error reports.
 */
#include "common/err.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define X(name, value, text) {value, #name, text},
static const struct {
    int code;
    const char *enumerator;
    const char *text;
} rows[] = {DM_CODES(X)};
#undef X

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static void every_code_has_its_text_from_the_table(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        assert_string_equal(dm_code_text(rows[i].code), rows[i].text);
    }
}

static void every_name_is_the_enumerator_in_lower_case_without_prefix(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const char *from = rows[i].enumerator;
        from += strncmp(from, "DM_ERR_", 7) == 0 ? 7 : 3;
        const char *name = dm_code_name(rows[i].code);
        assert_int_equal(strlen(name), strlen(from));
        for (size_t c = 0; name[c] != '\0'; c++) {
            assert_int_equal(name[c], tolower((unsigned char)from[c]));
        }
    }
}

static void codes_outside_the_table_have_a_text_and_a_name(void **state) {
    (void)state;
    assert_string_equal(dm_code_text(-12345), "unknown result code");
    assert_string_equal(dm_code_name(77), "unknown");
}

static void a_failure_carries_its_message_and_returns_its_code(void **state) {
    (void)state;
    struct dm_err err = {0};
    assert_int_equal(dm_fail(&err, DM_ERR_IO, "%s has %d parts", "disk", 3), DM_ERR_IO);
    assert_int_equal(err.code, DM_ERR_IO);
    assert_string_equal(err.text, "disk has 3 parts");
}

static void the_message_may_be_omitted(void **state) {
    (void)state;
    assert_int_equal(dm_fail(NULL, DM_ERR_PEER, "lost %d", 1), DM_ERR_PEER);
    assert_int_equal(dm_fail_in(NULL, DM_ERR_PEER, "node %d", 1), DM_ERR_PEER);
}

static void callers_put_their_context_in_front(void **state) {
    (void)state;
    struct dm_err err = {0};
    (void)dm_fail(&err, DM_ERR_INVALID, "12q is no count");
    assert_int_equal(dm_fail_in(&err, DM_ERR_IO, "--%s", "clients"), DM_ERR_INVALID);
    assert_int_equal(err.code, DM_ERR_INVALID);
    assert_string_equal(err.text, "--clients: 12q is no count");
    (void)dm_fail_in(&err, DM_ERR_INVALID, "run.json:%d", 7);
    assert_string_equal(err.text, "run.json:7: --clients: 12q is no count");
}

static void a_prefix_without_a_message_gets_the_text_of_the_code(void **state) {
    (void)state;
    struct dm_err err = {0};
    assert_int_equal(dm_fail_in(&err, DM_ERR_NO_MEMORY, "load"), DM_ERR_NO_MEMORY);
    assert_int_equal(err.code, DM_ERR_NO_MEMORY);
    assert_string_equal(err.text, "load: no memory");
}

static void a_message_may_quote_the_one_that_it_replaces(void **state) {
    (void)state;
    struct dm_err err = {0};
    (void)dm_fail(&err, DM_ERR_IO, "first");
    (void)dm_fail(&err, DM_ERR_CORRUPT, "second, after %s", err.text);
    assert_string_equal(err.text, "second, after first");
    (void)dm_fail_in(&err, DM_ERR_CORRUPT, "[%s]", err.text);
    assert_string_equal(err.text, "[second, after first]: second, after first");
}

static void a_message_that_does_not_fit_is_marked_as_cut(void **state) {
    (void)state;
    struct dm_err err = {0};
    char longest[sizeof(err.text) + 100];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    (void)dm_fail(&err, DM_ERR_INVALID, "%s", longest);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_string_equal(err.text + sizeof(err.text) - 5, "x...");

    /* a message that just fits is complete */
    longest[sizeof(err.text) - 1] = '\0';
    (void)dm_fail(&err, DM_ERR_INVALID, "%s", longest);
    assert_string_equal(err.text, longest);

    (void)dm_fail_in(&err, DM_ERR_INVALID, "where");
    assert_int_equal(strncmp(err.text, "where: xxx", 10), 0);
    assert_string_equal(err.text + sizeof(err.text) - 5, "x...");
}

static void a_message_is_one_line_of_valid_text(void **state) {
    (void)state;
    struct dm_err err = {0};
    (void)dm_fail(&err, DM_ERR_INVALID, "two\nlines \033[31m \xff");
    assert_string_equal(err.text, "two?lines ?[31m ?");
}

static int try_value(int rc) {
    DM_TRY(rc);
    return 99;
}

static void try_returns_failures_only(void **state) {
    (void)state;
    assert_int_equal(try_value(DM_ERR_STOPPED), DM_ERR_STOPPED);
    assert_int_equal(try_value(DM_OK), 99);
    assert_int_equal(try_value(DM_EXISTS), 99);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_text_from_the_table),
        cmocka_unit_test(every_name_is_the_enumerator_in_lower_case_without_prefix),
        cmocka_unit_test(codes_outside_the_table_have_a_text_and_a_name),
        cmocka_unit_test(a_failure_carries_its_message_and_returns_its_code),
        cmocka_unit_test(the_message_may_be_omitted),
        cmocka_unit_test(callers_put_their_context_in_front),
        cmocka_unit_test(a_prefix_without_a_message_gets_the_text_of_the_code),
        cmocka_unit_test(a_message_may_quote_the_one_that_it_replaces),
        cmocka_unit_test(a_message_that_does_not_fit_is_marked_as_cut),
        cmocka_unit_test(a_message_is_one_line_of_valid_text),
        cmocka_unit_test(try_returns_failures_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
