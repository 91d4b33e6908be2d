/* SPDX-License-Identifier: Apache-2.0
 *
 * CHIME's hotspot buffer: what it remembers is of one leaf and one key, the position that was found most often wins,
 * and the coldest one goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "indexes/chime/hotspot.h"

enum { HOME = 3, KEY = 77, POSITIONS = 64 };

static const dm_addr leaf = {4096}, other_leaf = {8192};

/* The smallest buffer: one bucket, which all share. */
static struct chime_hotspot *one_bucket(void) {
    struct chime_hotspot *hotspot = NULL;
    for (uint64_t bytes = 1; !hotspot; bytes++) {
        assert_int_equal(chime_hotspot_open(bytes, &hotspot), 0);
        assert_true(!hotspot || chime_hotspot_bytes(hotspot) == bytes);
    }
    return hotspot;
}

static void a_position_is_remembered_for_its_leaf_and_key_alone(void **state) {
    (void)state;
    struct chime_hotspot *hotspot = one_bucket();
    unsigned position = POSITIONS;
    assert_false(chime_hotspot_find(hotspot, leaf, HOME, KEY, &position));
    assert_false(chime_hotspot_note(hotspot, leaf, HOME, KEY, 5));
    assert_false(chime_hotspot_find(hotspot, other_leaf, HOME, KEY, &position));
    assert_false(chime_hotspot_find(hotspot, leaf, HOME, KEY + 1, &position));
    assert_int_equal(position, POSITIONS);
    assert_true(chime_hotspot_find(hotspot, leaf, HOME, KEY, &position));
    assert_int_equal(position, 5);
    /* Another key at the position takes it over. */
    assert_false(chime_hotspot_note(hotspot, leaf, HOME, KEY + 1, 5));
    assert_false(chime_hotspot_find(hotspot, leaf, HOME, KEY, &position));
    chime_hotspot_close(hotspot);
}

static void the_hottest_position_wins_and_the_coldest_one_goes(void **state) {
    (void)state;
    struct chime_hotspot *hotspot = one_bucket();
    unsigned position, gone = 0;
    for (unsigned i = 0; i < 3; i++) {
        chime_hotspot_note(hotspot, leaf, HOME, KEY, 9);
    }
    for (unsigned i = 10; i < 10 + POSITIONS; i++) {
        gone += chime_hotspot_note(hotspot, leaf, HOME, KEY, i);
    }
    assert_true(gone > 0 && gone < POSITIONS);
    assert_true(chime_hotspot_find(hotspot, leaf, HOME, KEY, &position));
    assert_int_equal(position, 9);
    chime_hotspot_close(hotspot);
}

static void without_space_for_a_bucket_there_is_no_buffer(void **state) {
    (void)state;
    struct chime_hotspot *hotspot = NULL;
    unsigned position;
    assert_int_equal(chime_hotspot_open(16, &hotspot), 0);
    assert_null(hotspot);
    assert_false(chime_hotspot_note(NULL, leaf, HOME, KEY, 1));
    assert_false(chime_hotspot_find(NULL, leaf, HOME, KEY, &position));
    assert_int_equal(chime_hotspot_bytes(NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_position_is_remembered_for_its_leaf_and_key_alone),
        cmocka_unit_test(the_hottest_position_wins_and_the_coldest_one_goes),
        cmocka_unit_test(without_space_for_a_bucket_there_is_no_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
