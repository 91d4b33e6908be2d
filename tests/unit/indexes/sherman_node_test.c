/* SPDX-License-Identifier: Apache-2.0
 *
 * Sherman's nodes: capacities, searching, order, splits, and what is taken for a node at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "indexes/sherman/node.h"

enum { IMAGE_MAX = 1008 };

static _Alignas(8) char image[IMAGE_MAX];
static _Alignas(8) char right[IMAGE_MAX];
static _Alignas(8) char scratch[IMAGE_MAX];
static uint16_t order[64];

static void a_node_of_1_kb_holds_what_the_public_code_holds(void **state) {
    (void)state;
    struct node_layout layout = node_layout_make(1024, 8, IX_VERSIONS_LINES);
    assert_int_equal(layout.leaf_cap, 54);
    assert_int_equal(layout.inner.cap, 61);
    assert_int_equal(layout.entry_bytes, 18);
    for (uint32_t value = 1; value <= 1024; value++) {
        uint32_t least = node_bytes_min(value);
        assert_true(node_layout_make(least, value, IX_VERSIONS_LINES).leaf_cap >= NODE_CAP_MIN);
        assert_true(node_value_max(least) >= value);
        assert_true(least <= 128 || node_value_max(least - DM_LINE) < value);
    }
}

static void an_inner_node_finds_the_child_of_every_key(void **state) {
    (void)state;
    struct node_layout layout = node_layout_make(1024, 8, IX_VERSIONS_LINES);
    for (unsigned n = 1; n <= layout.inner.cap; n++) {
        ix_node_init(image, layout.image_bytes, 1, 100, IX_NODE_INFINITY, DM_NULL);
        for (unsigned i = 0; i < n; i++) {
            /* The first, then from the last one down. */
            unsigned child = i == 0 ? 0 : n - i;
            ix_inner_add(&layout.inner, image, 100 + 10 * child, dm_addr_make(0, DM_DRAM, 4096 + 64 * child));
        }
        assert_true(ix_node_plausible(&layout.inner, image, 1));
        for (unsigned i = 0; i < n; i++) {
            assert_int_equal(ix_inner_find(image, 100 + 10 * i), i);
            assert_int_equal(ix_inner_find(image, 109 + 10 * i), i);
        }
        assert_int_equal(ix_inner_find(image, UINT64_MAX - 1), n - 1);
    }
}

static void a_split_inner_node_keeps_all_children_in_order(void **state) {
    (void)state;
    struct node_layout layout = node_layout_make(128, 8, IX_VERSIONS_LINES);
    ix_node_init(image, layout.image_bytes, 2, 0, 1000, dm_addr_make(1, DM_DRAM, 4096));
    for (unsigned i = 0; i < layout.inner.cap; i++) {
        ix_inner_add(&layout.inner, image, 10 * i, dm_addr_make(0, DM_DRAM, 64 * (i + 1)));
    }
    dm_addr where = dm_addr_make(2, DM_DRAM, 8192);
    uint64_t middle = ix_inner_split(&layout.inner, image, right, where);
    assert_true(ix_node_plausible(&layout.inner, image, 2));
    assert_true(ix_node_plausible(&layout.inner, right, 2));
    assert_int_equal(ix_node_head_of(image)->high, middle);
    assert_int_equal(ix_node_head_of(right)->low, middle);
    assert_int_equal(ix_node_head_of(right)->high, 1000);
    assert_int_equal(ix_node_head_of(image)->sibling.bits, where.bits);
    assert_int_equal(ix_node_head_of(image)->count + ix_node_head_of(right)->count, layout.inner.cap);
    assert_int_equal(ix_inner_keys(right)[0], middle);
}

static void a_leaf_tells_a_zero_key_and_value_from_an_unused_entry(void **state) {
    (void)state;
    struct node_layout layout = node_layout_make(1024, 8, IX_VERSIONS_LINES);
    uint64_t zero = 0;
    ix_node_init(image, layout.image_bytes, 0, 0, IX_NODE_INFINITY, DM_NULL);
    assert_int_equal(leaf_find(&layout, image, 0), ENTRY_NONE);
    leaf_set(&layout, image, 5, 0, &zero);
    assert_int_equal(leaf_find(&layout, image, 0), 5);
    leaf_clear(&layout, image, 5);
    assert_int_equal(leaf_find(&layout, image, 0), ENTRY_NONE);
    assert_int_equal(leaf_find_unused(&layout, image), 0);
}

static void a_split_leaf_keeps_every_pair_on_its_side(void **state) {
    (void)state;
    struct node_layout layout = node_layout_make(1024, 8, IX_VERSIONS_LINES);
    ix_node_init(image, layout.image_bytes, 0, 0, IX_NODE_INFINITY, DM_NULL);
    for (unsigned i = 0; i < layout.leaf_cap; i++) {
        uint64_t key = (i * 29) % layout.leaf_cap * 3;
        uint64_t value = key + 1;
        leaf_set(&layout, image, i, key, &value);
    }
    assert_int_equal(leaf_find_unused(&layout, image), ENTRY_NONE);
    uint64_t middle = leaf_split(&layout, image, right, dm_addr_make(0, DM_DRAM, 4096), order, scratch);
    for (unsigned i = 0; i < layout.leaf_cap; i++) {
        uint64_t key = 3 * i;
        const char *half = key < middle ? image : right;
        const char *other = key < middle ? right : image;
        int at = leaf_find(&layout, half, key);
        assert_int_not_equal(at, ENTRY_NONE);
        uint64_t value;
        memcpy(&value, leaf_value(&layout, half, (unsigned)at), sizeof(value));
        assert_int_equal(value, key + 1);
        assert_int_equal(leaf_find(&layout, other, key), ENTRY_NONE);
    }
    assert_int_equal(leaf_sort(&layout, right, middle + 4, order), layout.leaf_cap / 2 - 2);
    assert_int_equal(leaf_key(&layout, right, order[0]), middle + 6);
}

static void other_bytes_are_not_taken_for_a_node(void **state) {
    (void)state;
    struct node_layout layout = node_layout_make(256, 8, IX_VERSIONS_LINES);
    memset(image, 0, sizeof(image));
    assert_false(ix_node_plausible(&layout.inner, image, 0));
    ix_node_init(image, layout.image_bytes, 1, 10, 20, dm_addr_make(0, DM_DRAM, 4096));
    assert_false(ix_node_plausible(&layout.inner, image, 1));
    ix_inner_add(&layout.inner, image, 10, dm_addr_make(0, DM_DRAM, 8192));
    assert_true(ix_node_plausible(&layout.inner, image, 1));
    assert_false(ix_node_plausible(&layout.inner, image, 0));
    ix_node_head_of(image)->count = (uint16_t)(layout.inner.cap + 1);
    assert_false(ix_node_plausible(&layout.inner, image, 1));
    ix_node_head_of(image)->count = 1;
    ix_node_head_of(image)->sibling = DM_NULL;
    assert_false(ix_node_plausible(&layout.inner, image, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_of_1_kb_holds_what_the_public_code_holds),
        cmocka_unit_test(an_inner_node_finds_the_child_of_every_key),
        cmocka_unit_test(a_split_inner_node_keeps_all_children_in_order),
        cmocka_unit_test(a_leaf_tells_a_zero_key_and_value_from_an_unused_entry),
        cmocka_unit_test(a_split_leaf_keeps_every_pair_on_its_side),
        cmocka_unit_test(other_bytes_are_not_taken_for_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
