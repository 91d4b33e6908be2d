/* SPDX-License-Identifier: Apache-2.0
 *
 * Versioned lines: the two forms agree, an object's write sends its own bytes only, and every mixture of two states at
 * line granularity is recognised.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "indexes/shared/lines.h"

enum { LINES = 6, WIRE = LINES * DM_LINE, IMAGE = LINES * IX_LINE_DATA };

static void image_fill(uint8_t *image, uint8_t seed) {
    for (unsigned i = 0; i < IMAGE; i++) {
        image[i] = (uint8_t)(seed + 7 * i);
    }
}

static void encoding_and_decoding_give_the_image_back(void **state) {
    (void)state;
    uint8_t image[IMAGE];
    uint8_t back[IMAGE];
    uint8_t wire[WIRE];
    image_fill(image, 3);
    ix_lines_encode(image, WIRE, 9, wire);
    ix_lines_decode(wire, WIRE, back);
    assert_memory_equal(image, back, IMAGE);
    assert_int_equal(ix_lines_node_version(wire), 9);
    for (unsigned i = 0; i < IMAGE; i++) {
        assert_int_equal(wire[ix_lines_wire_offset(i)], image[i]);
    }
    for (unsigned bytes = 1; bytes <= IMAGE; bytes++) {
        assert_true(ix_lines_data_bytes(ix_lines_wire_bytes(bytes)) >= bytes);
        assert_true(ix_lines_data_bytes(ix_lines_wire_bytes(bytes) - DM_LINE) < bytes);
    }
}

/* A subset of lines from each of two writes. */
static void mix(uint8_t *into, const uint8_t *a, const uint8_t *b, unsigned from_b) {
    for (unsigned k = 0; k < LINES; k++) {
        memcpy(into + k * DM_LINE, (from_b >> k & 1 ? b : a) + k * DM_LINE, DM_LINE);
    }
}

static void every_mixture_of_two_whole_writes_is_seen(void **state) {
    (void)state;
    uint8_t image[IMAGE];
    uint8_t a[WIRE];
    uint8_t b[WIRE];
    uint8_t mixed[WIRE];
    image_fill(image, 1);
    for (uint8_t version = 0; version < 16; version++) {
        ix_lines_encode(image, WIRE, version, a);
        ix_lines_encode(image, WIRE, (uint8_t)((version + 1) & 0xf), b);
        for (unsigned from_b = 0; from_b < 1u << LINES; from_b++) {
            bool pure = from_b == 0 || from_b == (1u << LINES) - 1;
            mix(mixed, a, b, from_b);
            assert_int_equal(ix_lines_consistent(mixed, WIRE, IX_VERSIONS_LINES), pure);
            assert_true(ix_lines_consistent(mixed, WIRE, IX_VERSIONS_NONE));
        }
    }
}

static void the_bookend_variant_misses_a_mixture_in_the_middle(void **state) {
    (void)state;
    uint8_t image[IMAGE];
    uint8_t a[WIRE];
    uint8_t b[WIRE];
    uint8_t mixed[WIRE];
    image_fill(image, 1);
    ix_lines_encode(image, WIRE, 4, a);
    ix_lines_encode(image, WIRE, 5, b);
    mix(mixed, a, b, 1u << 2);
    assert_true(ix_lines_consistent(mixed, WIRE, IX_VERSIONS_BOOKEND));
    assert_false(ix_lines_consistent(mixed, WIRE, IX_VERSIONS_LINES));
    mix(mixed, a, b, 1u);
    assert_false(ix_lines_consistent(mixed, WIRE, IX_VERSIONS_BOOKEND));
}

/* Every position and many sizes: up to 15 writes of an object, and then any mixture of the first state with the last.
 */
static void every_mixture_of_object_writes_is_seen_and_neighbours_are_left_alone(void **state) {
    (void)state;
    static const uint32_t sizes[] = {2, 9, 18, 62, 63, 64, 65, 130, 210};
    for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        uint32_t bytes = sizes[s];
        for (uint32_t offset = 0; offset + bytes <= IMAGE; offset++) {
            uint8_t image[IMAGE];
            uint8_t a[WIRE];
            uint8_t b[WIRE];
            uint8_t mixed[WIRE];
            image_fill(image, 5);
            image[offset] = ix_lines_fresh(3);
            ix_lines_encode(image, WIRE, 3, a);
            memcpy(b, a, WIRE);
            unsigned writes = 1 + offset % 15;
            struct ix_span span = {0};
            for (unsigned w = 0; w < writes; w++) {
                image_fill(image + 0, (uint8_t)(50 + w));
                span = ix_lines_put_object(b, offset, image + offset, bytes);
            }
            assert_true(ix_lines_object_consistent(b, offset, bytes, IX_VERSIONS_LINES));
            assert_memory_equal(a, b, span.offset);
            assert_memory_equal(a + span.offset + span.bytes, b + span.offset + span.bytes,
                                WIRE - span.offset - span.bytes);
            assert_true(span.bytes <= bytes + bytes / IX_LINE_DATA + 1);
            uint8_t back[IMAGE];
            ix_lines_decode(b, WIRE, back);
            assert_memory_equal(back + offset + 1, image + offset + 1, bytes - 1);
            unsigned first = offset / IX_LINE_DATA;
            unsigned last = (offset + bytes - 1) / IX_LINE_DATA;
            for (unsigned from_b = 0; from_b < 1u << LINES; from_b++) {
                unsigned own = (from_b >> first) & ((1u << (last - first + 1)) - 1);
                bool pure = own == 0 || own == (1u << (last - first + 1)) - 1;
                mix(mixed, a, b, from_b);
                assert_int_equal(ix_lines_object_consistent(mixed, offset, bytes, IX_VERSIONS_LINES), pure);
                assert_true(ix_lines_consistent(mixed, WIRE, IX_VERSIONS_LINES));
            }
        }
    }
}

static void sixteen_writes_of_an_object_are_the_stated_bound(void **state) {
    (void)state;
    uint8_t image[IMAGE];
    uint8_t a[WIRE];
    uint8_t b[WIRE];
    uint8_t mixed[WIRE];
    image_fill(image, 5);
    image[50] = ix_lines_fresh(0);
    ix_lines_encode(image, WIRE, 0, a);
    memcpy(b, a, WIRE);
    for (unsigned w = 0; w < 16; w++) {
        ix_lines_put_object(b, 50, image + 50, 20);
    }
    mix(mixed, a, b, 1u);
    assert_true(ix_lines_object_consistent(mixed, 50, 20, IX_VERSIONS_LINES));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_and_decoding_give_the_image_back),
        cmocka_unit_test(every_mixture_of_two_whole_writes_is_seen),
        cmocka_unit_test(the_bookend_variant_misses_a_mixture_in_the_middle),
        cmocka_unit_test(every_mixture_of_object_writes_is_seen_and_neighbours_are_left_alone),
        cmocka_unit_test(sixteen_writes_of_an_object_are_the_stated_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
