/* SPDX-License-Identifier: Apache-2.0
 *
 * Marlin's leaves as they are stored: what is encoded is decoded, a mixture of two writes is torn whatever line
 * differs, claims are free entries of the image, and the generation of an entry wraps inside its six bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "indexes/marlin/marlin.h"

enum { SPAN = 64, WIRE_BYTES = 1088, IMAGE_BYTES = 1072 };

static void leaf_fill(char *image, uint64_t salt) {
    ix_node_init(image, IMAGE_BYTES, 0, 5, 9000, dm_addr_make(1, DM_DRAM, 4096));
    for (uint64_t i = 0; i < SPAN; i++) {
        uint64_t pair[2] = {5 + i * 7, UINT64_C(1) << MARLIN_STAMP_SHIFT | (i + salt)};
        memcpy(image + sizeof(struct ix_node_head) + i * sizeof(pair), pair, sizeof(pair));
    }
}

static void a_leaf_is_decoded_as_it_was_encoded(void **state) {
    (void)state;
    char image[IMAGE_BYTES] = {0}, other[IMAGE_BYTES] = {0}, wire[WIRE_BYTES] = {0};
    assert_int_equal(marlin_node_bytes(SPAN), WIRE_BYTES);
    leaf_fill(image, 1);
    marlin_leaf_format.encode(image, WIRE_BYTES, 11, wire);
    assert_int_equal(marlin_leaf_format.check(wire, WIRE_BYTES, IX_VERSIONS_LINES), IX_NODE_CONSISTENT);
    assert_int_equal(marlin_leaf_next_version(wire), 12);
    marlin_leaf_format.decode(wire, WIRE_BYTES, other);
    assert_memory_equal(image, other, sizeof(struct ix_node_head) + SPAN * 16);
}

static void a_line_of_another_write_is_noticed(void **state) {
    (void)state;
    char image[IMAGE_BYTES] = {0}, before[WIRE_BYTES] = {0}, after[WIRE_BYTES] = {0};
    leaf_fill(image, 1);
    marlin_leaf_format.encode(image, WIRE_BYTES, 15, before);
    leaf_fill(image, 500);
    marlin_leaf_format.encode(image, WIRE_BYTES, marlin_leaf_next_version(before), after);
    for (unsigned line = 0; line < WIRE_BYTES / DM_LINE; line++) {
        char mixed[WIRE_BYTES];
        memcpy(mixed, before, WIRE_BYTES);
        memcpy(mixed + (size_t)line * DM_LINE, after + (size_t)line * DM_LINE, DM_LINE);
        assert_int_equal(marlin_leaf_format.check(mixed, WIRE_BYTES, IX_VERSIONS_LINES), IX_NODE_TORN);
    }
}

static void a_claim_is_a_free_entry_of_the_image(void **state) {
    (void)state;
    char image[IMAGE_BYTES] = {0}, wire[WIRE_BYTES] = {0};
    struct ix_leaf_layout layout = ix_leaf_layout_pointers(IMAGE_BYTES, SPAN);
    leaf_fill(image, 1);
    marlin_leaf_format.encode(image, WIRE_BYTES, 3, wire);
    uint64_t claim = marlin_word_next_tag(marlin_word_at(wire, 7)) | 99;
    memcpy(wire + marlin_word_offset(7), &claim, sizeof(claim));
    assert_int_equal(marlin_leaf_claims(&layout, wire), 1);
    assert_int_equal(marlin_leaf_format.check(wire, WIRE_BYTES, IX_VERSIONS_LINES), IX_NODE_CONSISTENT);
    marlin_leaf_format.decode(wire, WIRE_BYTES, image);
    assert_false(ix_leaf_is_used(&layout, image, 7));
    assert_true(ix_leaf_is_used(&layout, image, 8));
}

static void the_generation_wraps_and_leaves_the_version(void **state) {
    (void)state;
    uint64_t first = UINT64_C(9) << MARLIN_VERSION_SHIFT | 1234;
    uint64_t word = first;
    for (unsigned i = 1; i <= 64; i++) {
        word = marlin_word_next_tag(word) | 1234;
        assert_int_equal(marlin_word_version(word), marlin_word_version(first));
        assert_int_equal(marlin_word_content(word), 1234);
        assert_true((word == first) == (i == 64));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_is_decoded_as_it_was_encoded),
        cmocka_unit_test(a_line_of_another_write_is_noticed),
        cmocka_unit_test(a_claim_is_a_free_entry_of_the_image),
        cmocka_unit_test(the_generation_wraps_and_leaves_the_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
