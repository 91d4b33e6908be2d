/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of trees with fixed leaves: capacities, searching, order, splits, formats, and what is taken for a node at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "indexes/shared/btree.h"

enum { IMAGE_MAX = 1008 };

static _Alignas(8) char image[IMAGE_MAX];
static _Alignas(8) char right[IMAGE_MAX];
static _Alignas(8) char scratch[IMAGE_MAX];
static _Alignas(8) char wire[1024];
static uint16_t order[64];

static struct ix_inner_layout inner_of(uint32_t node_bytes) {
    return ix_inner_layout_of(&ix_format_lines, node_bytes, 8, false, IX_VERSIONS_LINES);
}

/* Sherman's leaves, and both kinds without versions of entries. */
static const struct {
    const struct ix_node_format *format;
    bool sorted, versions;
} kinds[] = {
    {&ix_format_lines, false, true},
    {&ix_format_word, false, false},
    {&ix_format_word, true, false},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Each kind with each size of keys; the first KINDS have keys of 8 bytes. */
static const uint32_t key_sizes[] = {8, 24, 61};
enum { LEAVES = KINDS * sizeof(key_sizes) / sizeof(key_sizes[0]) };

static struct ix_leaf_layout leaf_of(unsigned leaf) {
    unsigned kind = leaf % KINDS;
    return ix_leaf_layout_of(kinds[kind].format->image_bytes(1024), key_sizes[leaf / KINDS], 8, kinds[kind].sorted,
                             kinds[kind].versions);
}

static void a_node_of_1_kb_holds_what_the_public_code_holds(void **state) {
    (void)state;
    assert_int_equal(leaf_of(0).cap, 54);
    assert_int_equal(leaf_of(0).entry_bytes, 18);
    assert_int_equal(inner_of(1024).cap, 61);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct ix_btree_config config = {
            .format = kinds[kind].format, .sorted = kinds[kind].sorted, .entry_versions = kinds[kind].versions};
        for (uint32_t value = 1; value <= 1024; value++) {
            uint32_t keys = value % 5 == 0 ? 8 + value % 100 : 8;
            uint32_t least = (uint32_t)ix_btree_node_bytes(&config, IX_BTREE_CAP_MIN, keys, value);
            for (uint32_t bytes = least - DM_LINE; bytes <= least; bytes += DM_LINE) {
                uint32_t image_bytes = config.format->image_bytes(bytes);
                bool holds = ix_leaf_layout_of(image_bytes, keys, value, config.sorted, config.entry_versions).cap >=
                             IX_BTREE_CAP_MIN;
                assert_true(bytes == least ? holds : bytes <= DM_LINE || !holds || least <= 128 || keys > value);
            }
        }
    }
}

static void longer_keys_leave_fewer_entries_and_children(void **state) {
    (void)state;
    for (uint32_t keys = 9; keys <= IX_KEY_BYTES_MAX; keys++) {
        struct ix_inner_layout inner = ix_inner_layout_of(&ix_format_lines, 4096, keys, false, IX_VERSIONS_LINES);
        struct ix_leaf_layout leaf = ix_leaf_layout_of(inner.image_bytes, keys, 8, false, true);
        uint32_t fences = 2 * (keys - 8);
        assert_int_equal(inner.cap, (inner.image_bytes - 32 - fences) / (keys + 8));
        assert_int_equal(leaf.cap, (inner.image_bytes - 32 - fences) / (2 + keys + 8));
        assert_true(ix_leaf_offset(&leaf, leaf.cap) <= leaf.image_bytes);
        assert_true(ix_inner_bytes(inner.cap, keys, false) <= inner.image_bytes);
    }
}

static void an_inner_node_finds_the_child_of_every_key(void **state) {
    (void)state;
    struct ix_inner_layout layout = inner_of(1024);
    for (unsigned n = 1; n <= layout.cap; n++) {
        ix_node_init(image, layout.image_bytes, 1, 100, IX_NODE_INFINITY, DM_NULL);
        for (unsigned i = 0; i < n; i++) {
            /* The first, then from the last one down. */
            unsigned child = i == 0 ? 0 : n - i;
            ix_inner_add(&layout, image, 100 + 10 * child, dm_addr_make(0, DM_DRAM, 4096 + 64 * child));
        }
        assert_true(ix_node_plausible(&layout, image, 1));
        for (unsigned i = 0; i < n; i++) {
            assert_int_equal(ix_inner_find(image, 100 + 10 * i), i);
            assert_int_equal(ix_inner_find(image, 109 + 10 * i), i);
        }
        assert_int_equal(ix_inner_find(image, UINT64_MAX - 1), n - 1);
    }
}

static void a_split_inner_node_keeps_all_children_in_order(void **state) {
    (void)state;
    struct ix_inner_layout layout = inner_of(128);
    ix_node_init(image, layout.image_bytes, 2, 0, 1000, dm_addr_make(1, DM_DRAM, 4096));
    for (unsigned i = 0; i < layout.cap; i++) {
        ix_inner_add(&layout, image, 10 * i, dm_addr_make(0, DM_DRAM, 64 * (i + 1)));
    }
    dm_addr where = dm_addr_make(2, DM_DRAM, 8192);
    uint64_t middle = ix_inner_split(&layout, image, right, where);
    assert_true(ix_node_plausible(&layout, image, 2));
    assert_true(ix_node_plausible(&layout, right, 2));
    assert_int_equal(ix_node_head_of(image)->high, middle);
    assert_int_equal(ix_node_head_of(right)->low, middle);
    assert_int_equal(ix_node_head_of(right)->high, 1000);
    assert_int_equal(ix_node_head_of(image)->sibling.bits, where.bits);
    assert_int_equal(ix_node_head_of(image)->count + ix_node_head_of(right)->count, layout.cap);
    assert_int_equal(ix_inner_keys(right)[0], middle);
}

static void a_zero_key_and_value_is_not_an_unused_entry(void **state) {
    (void)state;
    uint64_t zero = 0;
    for (unsigned kind = 0; kind < LEAVES; kind++) {
        struct ix_leaf_layout layout = leaf_of(kind);
        ix_leaf_init(&layout, image, 0, IX_NODE_INFINITY, DM_NULL);
        assert_int_equal(ix_leaf_find(&layout, image, 0), IX_LEAF_NONE);
        int at = ix_leaf_insert(&layout, image, 0, &zero);
        assert_int_equal(ix_leaf_find(&layout, image, 0), at);
        ix_leaf_remove(&layout, image, (unsigned)at);
        assert_int_equal(ix_leaf_find(&layout, image, 0), IX_LEAF_NONE);
        assert_false(ix_leaf_is_used(&layout, image, 0));
    }
}

/* Random changes against an array of what must be there. */
static void a_leaf_finds_what_was_inserted_and_not_removed(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < LEAVES; kind++) {
        struct ix_leaf_layout layout = leaf_of(kind);
        struct dm_prng prng = dm_prng_stream(7, "leaf", kind);
        uint64_t there[100] = {0}; /* value of key i; 0: absent */
        unsigned count = 0;
        ix_leaf_init(&layout, image, 0, IX_NODE_INFINITY, DM_NULL);
        for (unsigned step = 1; step < 4000; step++) {
            uint64_t key = dm_prng_below(&prng, 100);
            uint64_t value = step;
            int at = ix_leaf_find(&layout, image, key);
            assert_int_equal(at != IX_LEAF_NONE, there[key] != 0);
            if (at == IX_LEAF_NONE) {
                bool full = count == layout.cap;
                assert_int_equal(ix_leaf_insert(&layout, image, key, &value) == IX_LEAF_NONE, full);
                there[key] = full ? 0 : value;
                count += !full;
            } else if (dm_prng_below(&prng, 2) == 0) {
                ix_leaf_update(&layout, image, (unsigned)at, &value);
                there[key] = value;
            } else {
                ix_leaf_remove(&layout, image, (unsigned)at);
                there[key] = 0;
                count--;
            }
            at = ix_leaf_find(&layout, image, key);
            if (at != IX_LEAF_NONE) {
                assert_int_equal(ix_leaf_key(&layout, image, (unsigned)at), key);
                memcpy(&value, ix_leaf_value(&layout, image, (unsigned)at), sizeof(value));
                assert_int_equal(value, there[key]);
            }
        }
        assert_int_equal(ix_leaf_sort(&layout, image, 0, order), count);
        for (unsigned i = 1; i < count; i++) {
            assert_true(ix_leaf_key(&layout, image, order[i - 1]) < ix_leaf_key(&layout, image, order[i]));
        }
    }
}

static void a_split_leaf_keeps_every_pair_on_its_side(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < LEAVES; kind++) {
        struct ix_leaf_layout layout = leaf_of(kind);
        ix_leaf_init(&layout, image, 0, IX_NODE_INFINITY, DM_NULL);
        for (unsigned i = 0; i < layout.cap; i++) {
            uint64_t key = (uint64_t)i * 3;
            uint64_t value = key + 1;
            ix_leaf_put(&layout, image, i, key, &value);
        }
        uint64_t none = 0;
        assert_int_equal(ix_leaf_insert(&layout, image, 1, &none), IX_LEAF_NONE);
        uint64_t middle = ix_leaf_split(&layout, image, right, dm_addr_make(0, DM_DRAM, 4096), order, scratch);
        assert_int_equal(ix_node_head_of(image)->high, middle);
        assert_int_equal(ix_node_head_of(right)->low, middle);
        for (unsigned i = 0; i < layout.cap; i++) {
            uint64_t key = 3 * i;
            const char *half = key < middle ? image : right;
            const char *other = key < middle ? right : image;
            int at = ix_leaf_find(&layout, half, key);
            assert_int_not_equal(at, IX_LEAF_NONE);
            uint64_t value;
            memcpy(&value, ix_leaf_value(&layout, half, (unsigned)at), sizeof(value));
            assert_int_equal(value, key + 1);
            assert_int_equal(ix_leaf_find(&layout, other, key), IX_LEAF_NONE);
        }
        assert_int_equal(ix_leaf_sort(&layout, right, middle + 4, order), layout.cap - layout.cap / 2 - 2);
        assert_int_equal(ix_leaf_key(&layout, right, order[0]), middle + 6);
    }
}

static void a_word_keeps_its_node_apart_from_other_versions(void **state) {
    (void)state;
    enum { BYTES = 256 };
    struct ix_inner_layout layout = ix_inner_layout_of(&ix_format_word, BYTES, 8, false, IX_VERSIONS_LINES);
    for (uint32_t i = 0; i < layout.image_bytes; i++) {
        image[i] = (char)(i * 7 + 1);
    }
    ix_node_encode_new(layout.format, image, BYTES, wire);
    assert_int_equal(ix_node_word(wire), 0);
    ix_node_set_word(wire, 12);
    layout.format->encode(image, BYTES, ix_node_next_version(wire), wire);
    assert_int_equal(ix_node_word(wire), 12);
    assert_int_equal(ix_lines_node_version(wire), 1);
    assert_int_equal(ix_inner_check(&layout, wire), IX_NODE_CONSISTENT);
    layout.format->decode(wire, BYTES, right);
    assert_memory_equal(image, right, layout.image_bytes);
    ix_node_set_word(wire, 13);
    assert_int_equal(ix_inner_check(&layout, wire), IX_NODE_LOCKED);
    ix_node_set_word(wire, 14);
    wire[128] = (char)ix_lines_fresh(2);
    assert_int_equal(ix_inner_check(&layout, wire), IX_NODE_TORN);
    layout.versions = IX_VERSIONS_BOOKEND;
    assert_int_equal(ix_inner_check(&layout, wire), IX_NODE_CONSISTENT);
}

static void a_count_from_remote_memory_is_not_trusted(void **state) {
    (void)state;
    struct ix_leaf_layout layout = leaf_of(2);
    uint64_t value = 1;
    ix_leaf_init(&layout, image, 0, IX_NODE_INFINITY, DM_NULL);
    for (unsigned i = 0; i < layout.cap; i++) {
        ix_leaf_put(&layout, image, i, i, &value);
    }
    ix_node_head_of(image)->count = UINT16_MAX;
    assert_int_equal(ix_leaf_find(&layout, image, UINT64_MAX - 1), IX_LEAF_NONE);
    assert_int_equal(ix_leaf_sort(&layout, image, 0, order), layout.cap);
}

static void other_bytes_are_not_taken_for_a_node(void **state) {
    (void)state;
    struct ix_inner_layout layout = inner_of(256);
    memset(image, 0, sizeof(image));
    assert_false(ix_node_plausible(&layout, image, 0));
    ix_node_init(image, layout.image_bytes, 1, 10, 20, dm_addr_make(0, DM_DRAM, 4096));
    assert_false(ix_node_plausible(&layout, image, 1));
    ix_inner_add(&layout, image, 10, dm_addr_make(0, DM_DRAM, 8192));
    assert_true(ix_node_plausible(&layout, image, 1));
    assert_false(ix_node_plausible(&layout, image, 0));
    ix_node_head_of(image)->count = (uint16_t)(layout.cap + 1);
    assert_false(ix_node_plausible(&layout, image, 1));
    ix_node_head_of(image)->count = 1;
    ix_node_head_of(image)->sibling = DM_NULL;
    assert_false(ix_node_plausible(&layout, image, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_of_1_kb_holds_what_the_public_code_holds),
        cmocka_unit_test(longer_keys_leave_fewer_entries_and_children),
        cmocka_unit_test(an_inner_node_finds_the_child_of_every_key),
        cmocka_unit_test(a_split_inner_node_keeps_all_children_in_order),
        cmocka_unit_test(a_zero_key_and_value_is_not_an_unused_entry),
        cmocka_unit_test(a_leaf_finds_what_was_inserted_and_not_removed),
        cmocka_unit_test(a_split_leaf_keeps_every_pair_on_its_side),
        cmocka_unit_test(a_word_keeps_its_node_apart_from_other_versions),
        cmocka_unit_test(a_count_from_remote_memory_is_not_trusted),
        cmocka_unit_test(other_bytes_are_not_taken_for_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
