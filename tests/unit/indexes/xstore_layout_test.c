/* SPDX-License-Identifier: Apache-2.0
 *
 * XStore-D's objects as words: packing, the check words that distinguish states and objects, and the number of lines of
 * a table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "indexes/xstore_d/layout.h"

static void a_leaf_of_16_slots_is_read_in_144_bytes(void **state) {
    (void)state;
    struct xstore_layout layout = xstore_layout_make(16, 8, false);
    assert_int_equal(layout.keys_bytes, 144);
    assert_int_equal(layout.slot_bytes, 16);
    assert_int_equal(layout.read_bytes, 400);
    assert_int_equal(layout.leaf_bytes, 448);
    layout = xstore_layout_make(16, 13, false);
    assert_int_equal(layout.value_words, 2);
    layout = xstore_layout_make(16, 100, true);
    assert_int_equal(layout.read_bytes, 400); /* a ref replaces the value */
    assert_int_equal(layout.block_bytes, 8 + 104);
}

static void heads_entries_records_and_sets_are_packed_without_loss(void **state) {
    (void)state;
    struct xstore_head head = {0xabcdef, 64, 0x7fffffff};
    struct xstore_head again = xstore_head_of(xstore_head_word(head));
    assert_memory_equal(&head, &again, sizeof(head));
    struct xstore_entry entry =
        xstore_entry_of(xstore_entry_word((struct xstore_entry){true, 0x7fffffff, 0xffffff, 64}));
    assert_true(entry.valid);
    assert_int_equal(entry.leaf, 0x7fffffff);
    assert_int_equal(entry.incarnation, 0xffffff);
    assert_int_equal(entry.count, 64);
    struct xstore_record record = {{1.5f, -2.25f, 65535, 7}, UINT32_MAX, UINT32_MAX - 1, 0x7fffffff}, other;
    uint64_t words[XSTORE_SET_WORDS];
    xstore_record_encode(&record, 5, words);
    assert_true(xstore_record_decode(words, 5, &other));
    assert_memory_equal(&record, &other, sizeof(record));
    assert_false(xstore_record_decode(words, 6, &other));
    struct xstore_set set = {3, {UINT64_MAX, 0x1p-64, -1e300, 9}, 77}, copy;
    xstore_set_encode(&set, 2, words);
    assert_true(xstore_set_decode(words, 2, &copy));
    assert_int_equal(copy.generation, 3);
    assert_int_equal(copy.records, 77);
    assert_int_equal(copy.top.models, 9);
    assert_true(copy.top.base == UINT64_MAX && copy.top.slope == 0x1p-64 && copy.top.intercept == -1e300);
    assert_false(xstore_set_decode(words, 3, &copy));
}

/* Every mixture of two states of a leaf is refused. */
static void a_mixture_of_two_states_is_not_consistent(void **state) {
    (void)state;
    struct xstore_layout layout = xstore_layout_make(4, 8, false);
    struct dm_prng prng = dm_prng_stream(1, "mixture", 0);
    for (unsigned n = 0; n < 1000; n++) {
        uint64_t before[6] = {0}, after[6] = {0}, mixed[6];
        unsigned count = 1 + (unsigned)dm_prng_below(&prng, 4);
        for (unsigned i = 2; i < 6; i++) {
            before[i] = after[i] = dm_prng_below(&prng, 100);
        }
        before[1] = after[1] = xstore_head_word((struct xstore_head){n & 1, count, 5});
        after[2 + dm_prng_below(&prng, count)]++;
        after[1] = n % 3 == 0 ? xstore_head_word((struct xstore_head){2, count, 6}) : after[1];
        before[0] = xstore_leaf_check(9, before);
        after[0] = xstore_leaf_check(9, after);
        for (unsigned bits = 0; bits < 64; bits++) {
            for (unsigned i = 0; i < 6; i++) {
                mixed[i] = bits >> i & 1 ? after[i] : before[i];
            }
            bool is_state = memcmp(mixed, before, 8 * (2 + count)) == 0 || memcmp(mixed, after, 8 * (2 + count)) == 0;
            assert_int_equal(xstore_leaf_consistent(&layout, 9, mixed), is_state);
        }
        assert_false(xstore_leaf_consistent(&layout, 10, before));
    }
}

static void zeroed_memory_is_no_object(void **state) {
    (void)state;
    uint64_t zero[XSTORE_SLOTS_MAX + 2] = {0};
    struct xstore_layout layout = xstore_layout_make(16, 8, false);
    struct xstore_record record;
    struct xstore_set set;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_false(xstore_leaf_consistent(&layout, i, zero));
        assert_false(xstore_record_decode(zero, i, &record));
        assert_false(xstore_set_decode(zero, i, &set));
        assert_false(xstore_line_consistent(zero, i));
        assert_int_not_equal(xstore_value_check(i, zero, 1), 0);
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* When seeds were sums, line 1 of one node had the seed of line 0 of the next node. */
static void no_two_lines_of_a_cluster_share_a_seed(void **state) {
    (void)state;
    enum { EACH = 6, ALL = EACH * EACH * EACH * EACH * EACH };
    static uint64_t seeds[ALL];
    for (uint32_t i = 0; i < ALL; i++) {
        uint32_t node = i % EACH, line = i / EACH % EACH, version = i / EACH / EACH % EACH;
        uint32_t number = i / EACH / EACH / EACH % EACH, generation = i / EACH / EACH / EACH / EACH;
        seeds[i] = xstore_line_seed(xstore_record_seed(node, generation, number), version, line);
    }
    qsort(seeds, ALL, sizeof(*seeds), by_value);
    for (uint32_t i = 1; i < ALL; i++) {
        assert_true(seeds[i] != seeds[i - 1]);
    }
}

static void tables_grow_in_steps_and_never_shrink(void **state) {
    (void)state;
    uint32_t before = 0;
    for (uint32_t leaves = 1; leaves < 100000; leaves++) {
        uint32_t lines = xstore_table_lines(leaves);
        assert_true(lines >= before && lines >= xstore_lines_for(leaves));
        assert_true(lines <= xstore_lines_for(leaves) + xstore_lines_for(leaves) / 4 + 1);
        before = lines;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_of_16_slots_is_read_in_144_bytes),
        cmocka_unit_test(heads_entries_records_and_sets_are_packed_without_loss),
        cmocka_unit_test(a_mixture_of_two_states_is_not_consistent),
        cmocka_unit_test(zeroed_memory_is_no_object),
        cmocka_unit_test(no_two_lines_of_a_cluster_share_a_seed),
        cmocka_unit_test(tables_grow_in_steps_and_never_shrink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
