/* SPDX-License-Identifier: Apache-2.0
 *
 * ROLEX's leaves and table entries, and the window of leaves that a model predicts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/prng.h"
#include "indexes/rolex/layout.h"

static void a_leaf_keeps_its_keys_in_order_and_returns_their_values(void **state) {
    (void)state;
    for (uint32_t value_bytes = 1; value_bytes <= 40; value_bytes += 13) {
        struct rolex_layout layout = rolex_layout_make(16, 8 + value_bytes % 3 * 8, value_bytes);
        char image[2048];
        char value[64];
        struct dm_prng prng = dm_prng_stream(value_bytes, "leaf", 0);
        assert_true(ix_lines_data_bytes(layout.wire_bytes) <= sizeof(image));
        rolex_leaf_init(&layout, image, 0, 1000);
        bool there[64] = {0};
        uint32_t count = 0;
        for (unsigned round = 0; round < 3000; round++) {
            uint64_t key = dm_prng_below(&prng, 64);
            uint32_t at;
            assert_int_equal(rolex_find(&layout, image, key, &at), there[key]);
            if (there[key]) {
                memset(value, (int)key, value_bytes);
                assert_memory_equal(rolex_value(&layout, image, at), value, value_bytes);
                rolex_pair_remove(&layout, image, at);
                there[key] = false;
                count--;
            } else if (count < layout.delta) {
                memset(value, (int)key, value_bytes);
                rolex_pair_insert(&layout, image, at, key, value);
                there[key] = true;
                count++;
            }
            assert_int_equal(rolex_count(&layout, image), count);
        }
    }
}

static void a_split_leaf_has_all_keys_in_two_adjacent_ranges(void **state) {
    (void)state;
    struct rolex_layout layout = rolex_layout_make(16, 24, 8);
    for (uint64_t key = 5; key < 200; key += 10) {
        char left[1024];
        char right[1024];
        uint32_t at;
        rolex_leaf_init(&layout, left, 0, 500);
        for (uint64_t i = 0; i < 16; i++) {
            uint64_t value = i;
            rolex_pair_insert(&layout, left, (uint32_t)i, i * 10, &value);
        }
        rolex_leaf_halve(&layout, left, right, key);
        assert_int_equal(rolex_low(left), 0);
        assert_int_equal(rolex_high(left), rolex_low(right));
        assert_int_equal(rolex_high(right), 500);
        assert_int_equal(rolex_count(&layout, left) + rolex_count(&layout, right), 16);
        for (uint64_t i = 0; i < 16; i++) {
            const char *of = rolex_covers(left, i * 10) ? left : right;
            assert_true(rolex_find(&layout, of, i * 10, &at));
            assert_int_equal(rolex_u64(rolex_value(&layout, of, at), 0), i);
        }
        const char *into = rolex_covers(right, key) ? right : left;
        assert_true(rolex_count(&layout, into) < 16);
        assert_int_equal(rolex_count(&layout, right), key > 150 ? 0 : 8); /* ascending keys leave the left leaf full */
    }
}

static void an_entry_returns_its_fields(void **state) {
    (void)state;
    uint64_t entry = rolex_entry(126, 255, ROLEX_DEAD - 1);
    assert_int_equal(entry & (ROLEX_LOCK | ROLEX_DEAD), 0);
    assert_int_equal(rolex_entry_region(entry | ROLEX_LOCK | ROLEX_DEAD), 126);
    assert_int_equal(rolex_entry_synonym(entry | ROLEX_LOCK), 255);
    assert_int_equal(rolex_entry_leaf(entry | ROLEX_DEAD), ROLEX_DEAD - 1);
    assert_int_equal(rolex_entry_link(entry | ROLEX_LOCK, 7), rolex_entry(126, 7, ROLEX_DEAD - 1));
}

static void a_count_that_was_never_written_is_limited_to_delta(void **state) {
    (void)state;
    struct rolex_layout layout = rolex_layout_make(4, 8, 8);
    char image[256];
    uint32_t at;
    memset(image, 0xff, sizeof(image));
    assert_int_equal(rolex_count(&layout, image), 4);
    assert_false(rolex_covers(image, 5));
    assert_false(rolex_find(&layout, image, 5, &at));
}

/* Leaves with random bounds and a line over the bounds: the window of each key contains its leaf. */
static void a_window_contains_the_leaf_of_every_key(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        enum { LEAVES = 300, PER_LEAF = 8 };
        struct dm_prng prng = dm_prng_stream(seed, "window", 0);
        uint32_t epsilon = 1 + (uint32_t)dm_prng_below(&prng, 40);
        uint64_t lows[LEAVES + 1];
        struct ix_plr *plr;
        struct ix_plr_segment segment;
        assert_int_equal(ix_plr_open(epsilon, &plr), 0);
        uint32_t leaves = 0;
        for (uint64_t low = 0; leaves < LEAVES; leaves++) {
            lows[leaves] = low;
            if (ix_plr_add(plr, low, (uint64_t)leaves * PER_LEAF, &segment) == 1) {
                break;
            }
            low += 1 + dm_prng_below(&prng, UINT64_C(1) << (3 + dm_prng_below(&prng, 40)));
        }
        if (leaves == LEAVES) {
            assert_int_equal(ix_plr_finish(plr, &segment), 1);
            lows[LEAVES] = lows[LEAVES - 1] + 1000000;
        }
        struct rolex_head head = {.line = segment.model, .leaves = leaves};
        for (uint32_t leaf = 0; leaf < leaves; leaf++) {
            uint64_t range = lows[leaf + 1] - lows[leaf];
            for (unsigned i = 0; i < 5; i++) {
                uint64_t key = i == 0   ? lows[leaf]
                               : i == 1 ? lows[leaf + 1] - 1
                                        : lows[leaf] + dm_prng_below(&prng, range);
                struct rolex_window window = rolex_predict(&head, key, epsilon, PER_LEAF);
                assert_true(window.lo <= leaf && leaf <= window.hi && window.hi < leaves);
            }
        }
        ix_plr_close(plr);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_keeps_its_keys_in_order_and_returns_their_values),
        cmocka_unit_test(a_split_leaf_has_all_keys_in_two_adjacent_ranges),
        cmocka_unit_test(an_entry_returns_its_fields),
        cmocka_unit_test(a_count_that_was_never_written_is_limited_to_delta),
        cmocka_unit_test(a_window_contains_the_leaf_of_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
