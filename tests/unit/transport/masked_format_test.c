/* SPDX-License-Identifier: Apache-2.0
 *
 * Masked atomics as mlx5 devices take them: the bytes of work requests, what a NIC that executes them would do, and
 * which capabilities are enough. No NIC is there: masked_nic.h simulates one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/transport/masked_nic.h"

#include "common/compiler.h"
#include "common/prng.h"
#include "transport/core/core.h"
#include "transport/verbs/masked_format.h"

static struct verbs_masked_work work_of(const struct dm_verb *verb) {
    return (struct verbs_masked_work){.op = verb->op,
                                      .is_addition = verb->kind == DM_VERB_MASKED_FAA,
                                      .queue_pair = 0x00a1b2,
                                      .remote = 0x1122334455667788,
                                      .rkey = 0x99aabbcc,
                                      .local = 0x0102030405060708,
                                      .lkey = 0xd1d2d3d4};
}

static void a_masked_cas_has_these_bytes(void **state) {
    (void)state;
    static const unsigned char expected[VERBS_MASKED_CAS_BYTES] = {
        0x09, 0,    0,    0x14, 0x00, 0xa1, 0xb2, 5,    0,    0,    0,    0x88, 0,    0,    0,    0,    /* control */
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0,    0,    0,    0,    /* remote */
        0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, /* values */
        0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, /* masks */
        0,    0,    0,    8,    0xd1, 0xd2, 0xd3, 0xd4, 1,    2,    3,    4,    5,    6,    7,    8,    /* local */
    };
    struct dm_verb verb = {.kind = DM_VERB_MASKED_CAS,
                           .op = {.compare = 0x1011121314151617,
                                  .compare_mask = 0x2021222324252627,
                                  .swap = 0x3031323334353637,
                                  .swap_mask = 0x4041424344454647}};
    struct verbs_masked_work work = work_of(&verb);
    unsigned char bytes[VERBS_MASKED_CAS_BYTES];
    work.is_signalled = work.is_fenced = true;
    assert_int_equal(verbs_masked_encode(&work, bytes), VERBS_MASKED_CAS_BYTES);
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void a_masked_addition_has_these_bytes(void **state) {
    (void)state;
    static const unsigned char expected[VERBS_MASKED_FAA_BYTES] = {
        0x09, 0,    0,    0x15, 0x00, 0xa1, 0xb2, 4,    0,    0,    0,    0,    0, 0, 0,    0, /* control */
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0, 0, 0,    0, /* remote */
        0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x80, 0,    0,    0,    0, 0, 0x80, 0, /* operands */
        0,    0,    0,    8,    0xd1, 0xd2, 0xd3, 0xd4, 1,    2,    3,    4,    5, 6, 7,    8, /* local */
    };
    struct dm_verb verb = {.kind = DM_VERB_MASKED_FAA,
                           .op = {.swap = 0x3031323334353637, .compare_mask = 0x8000000000008000}};
    struct verbs_masked_work work = work_of(&verb);
    unsigned char bytes[VERBS_MASKED_CAS_BYTES];
    assert_int_equal(verbs_masked_encode(&work, bytes), VERBS_MASKED_FAA_BYTES);
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void fences_and_completions_are_asked_for_one_by_one(void **state) {
    (void)state;
    struct dm_verb verb = {.kind = DM_VERB_MASKED_CAS};
    for (unsigned flags = 0; flags < 4; flags++) {
        struct verbs_masked_work work = work_of(&verb);
        unsigned char bytes[VERBS_MASKED_CAS_BYTES];
        work.is_signalled = flags & 1;
        work.is_fenced = flags & 2;
        verbs_masked_encode(&work, bytes);
        assert_int_equal(masked_decode(bytes).flags, (flags & 1 ? 0x08 : 0) | (flags & 2 ? 0x80 : 0));
    }
}

/* The NIC and the function that all other transports use agree on what the verb does. */
static void assert_same(const struct dm_verb *verb, uint64_t found) {
    static const struct masked_nic nic = {0};
    struct verbs_masked_work work = work_of(verb);
    unsigned char bytes[VERBS_MASKED_CAS_BYTES];
    uint64_t word = found, old = 0;
    bool swapped;
    verbs_masked_encode(&work, bytes);
    assert_true(masked_execute(&nic, bytes, &word, &old));
    assert_true(old == found);
    assert_true(word == dm_atomic_apply(verb, found, &swapped));
}

static void a_nic_does_with_the_bytes_what_the_contract_says(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(1, "masked", 0);
    unsigned hits = 0;
    for (unsigned round = 0; round < 20000; round++) {
        uint64_t found = dm_prng_u64(&prng);
        struct dm_verb cas = {.kind = DM_VERB_MASKED_CAS,
                              .op = {.compare = dm_prng_u64(&prng),
                                     .compare_mask = dm_prng_u64(&prng),
                                     .swap = dm_prng_u64(&prng),
                                     .swap_mask = dm_prng_u64(&prng)}};
        struct dm_verb add = {.kind = DM_VERB_MASKED_FAA,
                              .op = {.swap = dm_prng_u64(&prng), .compare_mask = dm_prng_u64(&prng)}};
        if (round % 2) {
            cas.op.compare = (found & cas.op.compare_mask) | (cas.op.compare & ~cas.op.compare_mask);
            add.op.compare_mask &= dm_prng_u64(&prng) & dm_prng_u64(&prng) & dm_prng_u64(&prng);
        }
        hits += ((found ^ cas.op.compare) & cas.op.compare_mask) == 0;
        assert_same(&cas, found);
        assert_same(&add, found);
    }
    assert_in_range(hits, 10000, 10100);
}

/* Those of indexes: one bit as a lock (CHIME, SMART), a byte or 16 bits of a word (Sherman's paper), the whole word,
 * swapping without comparing, comparing without swapping; additions in one field, in fields of 16 and 32 bits. */
static void masks_of_one_bit_of_a_field_of_all_and_of_nothing_agree(void **state) {
    (void)state;
    static const uint64_t masks[] = {0,          1,
                                     2,          0xff,
                                     0xffff,     UINT64_C(0xffff) << 48,
                                     UINT32_MAX, (uint64_t)UINT32_MAX << 32,
                                     UINT64_MAX, UINT64_C(1) << 63};
    static const uint64_t boundaries[] = {0, UINT64_C(1) << 63, UINT64_C(1) << 31, UINT64_C(0x8000800080008000),
                                          1, UINT64_MAX};
    static const uint64_t words[] = {0, 1, UINT64_MAX, UINT64_C(0x8000000000000001), UINT64_C(0x00ff00ff7fffffff)};
    for (size_t w = 0; w < DM_ARRAY_LEN(words); w++) {
        for (size_t c = 0; c < DM_ARRAY_LEN(masks); c++) {
            for (size_t s = 0; s < DM_ARRAY_LEN(masks); s++) {
                struct dm_verb hit = {.kind = DM_VERB_MASKED_CAS, .op = {words[w], masks[c], ~words[w], masks[s]}};
                struct dm_verb miss = {.kind = DM_VERB_MASKED_CAS, .op = {~words[w], masks[c], ~words[w], masks[s]}};
                assert_same(&hit, words[w]);
                assert_same(&miss, words[w]);
            }
        }
        for (size_t b = 0; b < DM_ARRAY_LEN(boundaries); b++) {
            for (size_t a = 0; a < DM_ARRAY_LEN(words); a++) {
                struct dm_verb add = {.kind = DM_VERB_MASKED_FAA,
                                      .op = {.swap = words[a], .compare_mask = boundaries[b]}};
                assert_same(&add, words[w]);
            }
        }
    }
}

/* ---- capabilities ----------------------------------------------------------------------------------------------- */

static void the_device_is_asked_for_its_current_atomics(void **state) {
    (void)state;
    static const unsigned char expected[VERBS_CAPS_ASK_BYTES] = {0x01, 0x00, 0, 0, 0, 0, 0, 0x07};
    unsigned char bytes[VERBS_CAPS_ASK_BYTES];
    memset(bytes, 0xff, sizeof(bytes));
    verbs_masked_ask(bytes);
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void both_operations_eight_bytes_and_the_processors_byte_order_are_needed(void **state) {
    (void)state;
    static const struct {
        unsigned operations, sizes, byte_order;
        const char *refusal;
    } cases[] = {
        {0x00f, 0x008, 1, NULL},
        {0x00f, 0x1f8, 1, NULL},
        {0xfff, 0xfff, 2, NULL},
        {0x00c, 0x008, 1, NULL},
        {0x003, 0x008, 1, "the device has none"},
        {0x007, 0x008, 1, "the device has none"},
        {0x00b, 0x008, 1, "the device has none"},
        {0x000, 0x000, 0, "the device has none"},
        {0x00f, 0x1f7, 1, "the device has none of 8 bytes"},
        {0x00f, 0x000, 1, "the device has none of 8 bytes"},
        {0x00f, 0x008, 0, "the device answers them in its own byte order"},
    };
    for (size_t i = 0; i < DM_ARRAY_LEN(cases); i++) {
        unsigned char answer[VERBS_CAPS_ANSWER_BYTES] = {0};
        answer[16 + 8] = (unsigned char)(cases[i].byte_order << 6 | 0x02); /* another bit, which says it could */
        answer[16 + 18] = (unsigned char)(cases[i].operations >> 8);
        answer[16 + 19] = (unsigned char)cases[i].operations;
        answer[16 + 22] = (unsigned char)(cases[i].sizes >> 8);
        answer[16 + 23] = (unsigned char)cases[i].sizes;
        const char *refusal = verbs_masked_caps_refusal(answer);
        if (cases[i].refusal) {
            assert_non_null(refusal);
            assert_string_equal(refusal, cases[i].refusal);
        } else {
            assert_null(refusal);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_masked_cas_has_these_bytes),
        cmocka_unit_test(a_masked_addition_has_these_bytes),
        cmocka_unit_test(fences_and_completions_are_asked_for_one_by_one),
        cmocka_unit_test(a_nic_does_with_the_bytes_what_the_contract_says),
        cmocka_unit_test(masks_of_one_bit_of_a_field_of_all_and_of_nothing_agree),
        cmocka_unit_test(the_device_is_asked_for_its_current_atomics),
        cmocka_unit_test(both_operations_eight_bytes_and_the_processors_byte_order_are_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
