/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner nodes of Dolphin in local memory: words, types, search for a byte and for a range, growth, and the pieces that
 * the cache keeps, at every boundary of capacity and of byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/prng.h"
#include "indexes/dolphin/node.h"

static uint64_t child_of(unsigned byte) {
    return dolphin_word(byte, 0, DOLPHIN_LEAF, dm_addr_make(3, DM_DRAM, 4096 + 64 * (uint64_t)byte));
}

static void a_word_keeps_everything_it_is_made_of(void **state) {
    (void)state;
    static const uint64_t offsets[] = {32, 4096, (UINT64_C(1) << 48) - 32};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned mn = 0; mn < DM_MNS_MAX; mn += 9) {
            dm_addr addr = dm_addr_make(mn, DM_DRAM, offsets[i]);
            uint64_t word = dolphin_word(255 - mn, mn % 8, DOLPHIN_N48, addr);
            assert_int_equal(dolphin_word_byte(word), 255 - mn);
            assert_int_equal(dolphin_word_depth(word), mn % 8);
            assert_int_equal(dolphin_word_type(word), DOLPHIN_N48);
            assert_true(dm_addr_equal(dolphin_word_addr(word), addr));
            assert_true(dolphin_word_with(dolphin_word_with(word, 7), 255 - mn) == word);
            assert_true(dolphin_word_is_inner(word));
        }
    }
    assert_false(dolphin_word_is_inner(0));
    assert_false(dolphin_word_is_inner(child_of(1)));
}

static void bytes_and_prefixes_of_a_key_begin_at_the_top(void **state) {
    (void)state;
    uint64_t key = UINT64_C(0x0102030405060708);
    for (unsigned depth = 0; depth < DOLPHIN_KEY_BYTES; depth++) {
        assert_int_equal(dolphin_byte(key, depth), depth + 1);
        assert_int_equal(dolphin_difference(key, key ^ UINT64_C(1) << (8 * (7 - depth))), depth);
    }
    assert_int_equal(dolphin_difference(key, key), DOLPHIN_KEY_BYTES);
    assert_int_equal(dolphin_low(key, 0), 0);
    assert_true(dolphin_high(key, 0) == UINT64_MAX);
    assert_true(dolphin_low(key, 7) == UINT64_C(0x0102030405060700));
    assert_true(dolphin_high(key, 7) == UINT64_C(0x01020304050607ff));
    assert_true(dolphin_low(key, 8) == key);
    assert_true(dolphin_high(key, 8) == key);
}

static void the_type_is_the_smallest_with_capacity(void **state) {
    (void)state;
    static const struct {
        unsigned children;
        enum dolphin_type type;
        uint32_t bytes;
    } cases[] = {{1, DOLPHIN_N4, 64},    {4, DOLPHIN_N4, 64},    {5, DOLPHIN_N16, 160},    {16, DOLPHIN_N16, 160},
                 {17, DOLPHIN_N48, 416}, {48, DOLPHIN_N48, 416}, {49, DOLPHIN_N256, 2080}, {256, DOLPHIN_N256, 2080}};
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(dolphin_type_for(cases[i].children), cases[i].type);
        assert_int_equal(dolphin_node_bytes(cases[i].type), cases[i].bytes);
    }
    assert_int_equal(dolphin_capacity(DOLPHIN_LEAF), 0);
    assert_int_equal(dolphin_capacity((enum dolphin_type)7), 0);
}

static void a_node_takes_children_up_to_its_capacity_and_the_next_type_takes_more(void **state) {
    (void)state;
    struct dolphin_node nodes[2];
    struct dolphin_node *node = &nodes[0];
    struct dolphin_node *larger = &nodes[1];
    dolphin_node_init(node, DOLPHIN_N4, 3, UINT64_C(0x1122330000000000), 0);
    unsigned grown = 0;
    for (unsigned n = 0; n < DOLPHIN_CHILDREN_MAX; n++) {
        unsigned byte = n * 167 % 256;
        int index = dolphin_node_free_index(node, byte);
        if (index < 0) {
            enum dolphin_type type = (enum dolphin_type)(node->head.type + 1);
            assert_int_equal(n, dolphin_capacity((enum dolphin_type)node->head.type));
            dolphin_node_init(larger, type, 3, node->head.prefix, 0);
            assert_int_equal(dolphin_node_copy(larger, node), n);
            struct dolphin_node *other = node;
            node = larger;
            larger = other;
            index = dolphin_node_free_index(node, byte);
            grown++;
        }
        assert_true(index >= 0);
        node->words[index] = child_of(byte);
        for (unsigned m = 0; m < DOLPHIN_CHILDREN_MAX; m++) {
            unsigned other = m * 167 % 256;
            uint64_t found =
                dolphin_words_find(node->words, dolphin_capacity((enum dolphin_type)node->head.type), other, false);
            assert_true(found == (m <= n ? child_of(other) : 0));
        }
        assert_true(dolphin_node_child_index(node, dolphin_word_addr(child_of(byte))) >= 0);
    }
    assert_int_equal(grown, 3);
    assert_int_equal(dolphin_node_child_index(node, dm_addr_make(9, DM_DRAM, 64)), -1);
}

static void a_special_node_gives_the_largest_byte_not_above_and_else_the_least(void **state) {
    (void)state;
    uint64_t words[5] = {child_of(200), 0, child_of(16), child_of(90), 0};
    assert_true(dolphin_words_find(words, 5, 0, true) == child_of(16));
    assert_true(dolphin_words_find(words, 5, 16, true) == child_of(16));
    assert_true(dolphin_words_find(words, 5, 89, true) == child_of(16));
    assert_true(dolphin_words_find(words, 5, 90, true) == child_of(90));
    assert_true(dolphin_words_find(words, 5, 255, true) == child_of(200));
    assert_true(dolphin_words_find(words + 1, 1, 255, true) == 0);
    assert_true(dolphin_words_next(words, 5, 0) == child_of(16));
    assert_true(dolphin_words_next(words, 5, 91) == child_of(200));
    assert_true(dolphin_words_next(words, 5, 201) == 0);
}

static void implausible_heads_are_detected(void **state) {
    (void)state;
    struct dolphin_node node;
    uint64_t word = dolphin_word(0, 5, DOLPHIN_N16, dm_addr_make(0, DM_DRAM, 4096));
    dolphin_node_init(&node, DOLPHIN_N16, 5, UINT64_MAX, 0);
    assert_true(dolphin_node_plausible(&node.head, word));
    assert_false(dolphin_node_plausible(&node.head, dolphin_word(0, 4, DOLPHIN_N16, dolphin_word_addr(word))));
    assert_false(dolphin_node_plausible(&node.head, dolphin_word(0, 5, DOLPHIN_N4, dolphin_word_addr(word))));
    node.head.prefix |= 1;
    assert_false(dolphin_node_plausible(&node.head, word));
    memset(&node, 0, sizeof(node.head));
    assert_false(dolphin_node_plausible(&node.head, word));
}

/* Searches the pieces alone for a byte, as the cache does. */
static uint64_t pieces_find(const struct dolphin_piece *pieces, bool is_direct, unsigned byte, bool special) {
    unsigned number = is_direct ? byte / DOLPHIN_PIECE_WORDS : 0;
    while (!is_direct && dolphin_piece_next(&pieces[number]) <= byte) {
        number++;
    }
    return dolphin_words_find(pieces[number].words, DOLPHIN_PIECE_WORDS, byte, special);
}

static void pieces_hold_what_their_node_holds_at_every_size(void **state) {
    (void)state;
    static struct dolphin_piece pieces[DOLPHIN_PIECES_MAX];
    struct dm_prng prng = dm_prng_stream(11, "pieces", 0);
    static const unsigned sizes[] = {0, 1, 4, 5, 7, 8, 9, 16, 17, 47, 48, 49, 255, 256};
    for (unsigned s = 0; s < 2 * sizeof(sizes) / sizeof(sizes[0]); s++) {
        bool special = s % 2;
        unsigned size = sizes[s / 2];
        unsigned depth = special ? DOLPHIN_SPECIAL : 2;
        struct dolphin_node node;
        enum dolphin_type type = dolphin_type_for(size);
        uint64_t word = dolphin_word(0, depth, type, dm_addr_make(0, DM_DRAM, 4096));
        dolphin_node_init(&node, type, depth, dm_prng_below(&prng, UINT64_MAX), 0);
        for (unsigned n = 0; n < size;) {
            unsigned byte = (unsigned)dm_prng_below(&prng, DOLPHIN_CHILDREN_MAX);
            if (dolphin_words_find(node.words, dolphin_capacity(type), byte, false) == 0) {
                node.words[dolphin_node_free_index(&node, byte)] = child_of(byte);
                n++;
            }
        }
        unsigned count = dolphin_pieces_make(&node, dolphin_is_direct(word), pieces);
        assert_true(count >= 1 && count <= DOLPHIN_PIECES_MAX);
        for (unsigned byte = 0; byte < DOLPHIN_CHILDREN_MAX; byte++) {
            assert_true(pieces_find(pieces, dolphin_is_direct(word), byte, special) ==
                        dolphin_words_find(node.words, dolphin_capacity(type), byte, special));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_keeps_everything_it_is_made_of),
        cmocka_unit_test(bytes_and_prefixes_of_a_key_begin_at_the_top),
        cmocka_unit_test(the_type_is_the_smallest_with_capacity),
        cmocka_unit_test(a_node_takes_children_up_to_its_capacity_and_the_next_type_takes_more),
        cmocka_unit_test(a_special_node_gives_the_largest_byte_not_above_and_else_the_least),
        cmocka_unit_test(implausible_heads_are_detected),
        cmocka_unit_test(pieces_hold_what_their_node_holds_at_every_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
