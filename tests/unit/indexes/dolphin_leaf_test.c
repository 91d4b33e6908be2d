/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves of Dolphin in local memory: the layout for every size of value, entries and cells, and that tags detect
 * mixtures of values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "indexes/dolphin/leaf.h"

enum { LEAF_MAX = 8192, VALUE_MAX = 1024 };
static _Alignas(DM_LINE) char leaf[LEAF_MAX], other[LEAF_MAX];

static void value_make(unsigned seed, unsigned char *value, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++) {
        value[i] = (unsigned char)(seed * 37 + i * 11 + 1);
    }
}

static void a_leaf_of_1024_bytes_has_61_entries_as_published_and_57_with_tags(void **state) {
    (void)state;
    struct dolphin_layout paper = dolphin_layout_make(1024, 8, false, true);
    assert_int_equal(paper.cap, 61);
    assert_int_equal(paper.keys_bytes, 520);
    struct dolphin_layout strict = dolphin_layout_make(1024, 8, true, true);
    assert_int_equal(strict.cap, 57);
    assert_int_equal(strict.keys_bytes, 488);
}

static void cells_stay_apart_inside_lines_and_off_the_lock(void **state) {
    (void)state;
    for (uint32_t bytes = 1; bytes <= VALUE_MAX; bytes++) {
        for (unsigned variant = 0; variant < 4; variant++) {
            bool has_lock = variant % 2;
            struct dolphin_layout layout = dolphin_layout_make(LEAF_MAX, bytes, variant / 2, has_lock);
            assert_true(layout.cap >= DOLPHIN_CAP_MIN);
            uint32_t end = layout.keys_bytes;
            for (unsigned i = 0; i < layout.cap; i++) {
                uint32_t offset = dolphin_cell_offset(&layout, i);
                assert_true(offset >= end);
                end = offset + layout.cell_bytes;
                assert_true(layout.is_long ? offset % DM_LINE == 0 : offset / DM_LINE == (end - 1) / DM_LINE);
            }
            assert_int_equal(end, layout.used_bytes);
            assert_true(end <= (has_lock ? layout.lock_offset : layout.leaf_bytes));
            assert_true(layout.is_long == (bytes + variant / 2 > DM_LINE));
        }
    }
    assert_int_equal(dolphin_layout_make(128, 200, true, true).cap, 0);
}

static void a_value_comes_back_as_it_was_put(void **state) {
    (void)state;
    static const uint32_t sizes[] = {1, 8, 62, 63, 64, 65, 126, 127, 200, 1024};
    unsigned char value[VALUE_MAX];
    unsigned char got[VALUE_MAX];
    for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct dolphin_layout layout = dolphin_layout_make(LEAF_MAX, sizes[s], true, true);
        dolphin_leaf_init(&layout, leaf, 512, 767, 5, 0);
        for (unsigned i = 0; i < layout.cap; i++) {
            assert_false(dolphin_cell_get(&layout, leaf + dolphin_cell_offset(&layout, i), 5, true, got));
            value_make(i, value, sizes[s]);
            dolphin_leaf_put(&layout, leaf, i, i, value);
        }
        for (unsigned i = 0; i < layout.cap; i++) {
            value_make(i, value, sizes[s]);
            assert_true(dolphin_cell_get(&layout, leaf + dolphin_cell_offset(&layout, i), 5, true, got));
            assert_memory_equal(got, value, sizes[s]);
            assert_int_equal(dolphin_leaf_find(&layout, leaf, i), i);
        }
        assert_true(dolphin_leaf_consistent(&layout, leaf));
    }
}

/* A reader may have the words of one version and a cell of the next one, in which the entry is empty. When empty cells
 * had the tag of the version before, it took such a cell for a value. */
static void an_empty_cell_is_no_value_of_a_neighbouring_version(void **state) {
    (void)state;
    static const uint32_t sizes[] = {8, 200};
    unsigned char got[VALUE_MAX];
    for (unsigned s = 0; s < 2; s++) {
        struct dolphin_layout layout = dolphin_layout_make(1024, sizes[s], true, true);
        for (uint32_t version = 1; version < 600; version++) {
            dolphin_leaf_init(&layout, leaf, 0, 255, version, 0);
            for (uint32_t near = version - 1; near <= version + 1; near++) {
                assert_false(dolphin_cell_get(&layout, leaf + dolphin_cell_offset(&layout, 0), near, true, got));
            }
        }
    }
}

static void every_mixture_of_two_long_values_is_detected(void **state) {
    (void)state;
    struct dolphin_layout layout = dolphin_layout_make(4096, 200, true, true);
    unsigned char value[VALUE_MAX];
    unsigned char got[VALUE_MAX];
    unsigned lines = layout.cell_bytes / DM_LINE;
    for (unsigned mixture = 1; mixture + 1 < 1u << lines; mixture++) {
        for (unsigned step = 0; step < 2; step++) {
            value_make(1, value, 200);
            dolphin_cell_put(&layout, leaf, value, 3, 1);
            value_make(2, value, 200);
            dolphin_cell_put(&layout, other, value, 3 + step, step ? 1 : 2);
            for (unsigned line = 0; line < lines; line++) {
                if (mixture >> line & 1) {
                    memcpy(leaf + line * DM_LINE, other + line * DM_LINE, DM_LINE);
                }
            }
            assert_false(dolphin_cell_get(&layout, leaf, 3, true, got));
        }
    }
}

static void live_entries_sort_by_byte_and_others_are_left_out(void **state) {
    (void)state;
    struct dolphin_layout layout = dolphin_layout_make(1024, 8, true, true);
    uint64_t value = 1;
    uint16_t order[DOLPHIN_CAP_MAX];
    dolphin_leaf_init(&layout, leaf, 0, 255, 9, 0);
    static const unsigned bytes[] = {200, 3, 255, 0, 77};
    for (unsigned i = 0; i < 5; i++) {
        dolphin_leaf_put(&layout, leaf, 2 * i, bytes[i], &value);
    }
    uint64_t *words = dolphin_leaf_words(leaf);
    words[1] = dolphin_entry(9, DOLPHIN_RESERVED, 0, 9);
    words[3] = dolphin_entry(10, DOLPHIN_DELETED, 0, 9);
    words[8] = dolphin_entry(77, DOLPHIN_BUSY, 4, 9);
    assert_int_equal(dolphin_leaf_sort(&layout, leaf, order), 5);
    static const unsigned expected[] = {6, 2, 8, 0, 4};
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(order[i], expected[i]);
    }
    assert_int_equal(dolphin_leaf_find(&layout, leaf, 10), -1);
    assert_int_equal(dolphin_leaf_find(&layout, leaf, 9), -1);
    assert_true(dolphin_leaf_consistent(&layout, leaf));
    words[40] = dolphin_entry(0, DOLPHIN_FREE, 0, 8);
    assert_false(dolphin_leaf_consistent(&layout, leaf));
}

static void implausible_leaves_are_detected(void **state) {
    (void)state;
    struct dolphin_layout layout = dolphin_layout_make(1024, 8, true, true);
    struct dolphin_leaf_head *head = dolphin_leaf_head_of(leaf);
    dolphin_leaf_init(&layout, leaf, 256, 511, 1, 0);
    assert_true(dolphin_leaf_plausible(head));
    head->max = 512;
    assert_false(dolphin_leaf_plausible(head));
    head->max = 255;
    assert_false(dolphin_leaf_plausible(head));
    memset(leaf, 0, sizeof(*head));
    assert_false(dolphin_leaf_plausible(head));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_of_1024_bytes_has_61_entries_as_published_and_57_with_tags),
        cmocka_unit_test(cells_stay_apart_inside_lines_and_off_the_lock),
        cmocka_unit_test(a_value_comes_back_as_it_was_put),
        cmocka_unit_test(an_empty_cell_is_no_value_of_a_neighbouring_version),
        cmocka_unit_test(every_mixture_of_two_long_values_is_detected),
        cmocka_unit_test(live_entries_sort_by_byte_and_others_are_left_out),
        cmocka_unit_test(implausible_leaves_are_detected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
