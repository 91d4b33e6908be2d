/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of the random streams: published values of the generator, fixed values of the derivation, and independence.
 */
#include "common/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void the_generator_gives_the_published_sequence(void **state) {
    (void)state;
    struct dm_prng zero = {.state = 0};
    assert_true(dm_prng_u64(&zero) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(dm_prng_u64(&zero) == UINT64_C(0x6e789e6aa1b965f4));
    struct dm_prng other = {.state = 1234567};
    assert_true(dm_prng_u64(&other) == UINT64_C(6457827717110365317));
    assert_true(dm_prng_u64(&other) == UINT64_C(3203168211198807973));
    assert_true(dm_prng_u64(&other) == UINT64_C(9817491932198370423));
}

/* Worked out by a program of its own in another language: results of old seeds must stay what they are. */
static void streams_are_the_same_on_every_machine(void **state) {
    (void)state;
    assert_true(dm_prng_stream(0, "", 0).state == UINT64_C(0x238275bc38fcbe91));
    assert_true(dm_prng_stream(1, "zipf", 0).state == UINT64_C(0x3bba3cf44e0f1dd6));
    assert_true(dm_prng_stream(1, "zipf", 1).state == UINT64_C(0x63378b5888fdf324));
    assert_true(dm_prng_stream(UINT64_MAX, "\xc3\xa4", UINT64_C(12345678901234567890)).state ==
                UINT64_C(0xf211f98af162b98a));
}

static int compare_u64(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void different_arguments_give_different_streams(void **state) {
    (void)state;
    static const char *const names[] = {"", "a", "b", "aa", "ab", "ba", "a ", "load", "load0", "run"};
    enum { NAMES = sizeof(names) / sizeof(names[0]), SEEDS = 32, INDEXES = 32 };
    static uint64_t states[NAMES * SEEDS * INDEXES];
    size_t count = 0;
    for (size_t name = 0; name < NAMES; name++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            for (uint64_t index = 0; index < INDEXES; index++) {
                states[count++] = dm_prng_stream(seed, names[name], index).state;
            }
        }
    }
    qsort(states, count, sizeof(states[0]), compare_u64);
    for (size_t i = 1; i < count; i++) {
        assert_true(states[i - 1] != states[i]);
    }
}

static void one_changed_bit_changes_about_half_of_the_stream(void **state) {
    (void)state;
    unsigned changed = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        struct dm_prng base = dm_prng_stream(7, "s", 7);
        struct dm_prng seed = dm_prng_stream(7 ^ (UINT64_C(1) << bit), "s", 7);
        struct dm_prng index = dm_prng_stream(7, "s", 7 ^ (UINT64_C(1) << bit));
        uint64_t first = dm_prng_u64(&base);
        for (uint64_t diff = first ^ dm_prng_u64(&seed); diff != 0; diff &= diff - 1) {
            changed++;
        }
        for (uint64_t diff = first ^ dm_prng_u64(&index); diff != 0; diff &= diff - 1) {
            changed++;
        }
    }
    /* 8192 fair coins: six standard deviations either way */
    assert_in_range(changed, 4096 - 272, 4096 + 272);
}

static void bounded_numbers_are_in_range_and_uniform(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(3, "below", 0);
    unsigned hits[10] = {0};
    for (int i = 0; i < 100000; i++) {
        uint64_t number = dm_prng_below(&prng, 10);
        assert_true(number < 10);
        hits[number]++;
    }
    for (size_t i = 0; i < 10; i++) {
        assert_in_range(hits[i], 10000 - 600, 10000 + 600);
    }
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(dm_prng_below(&prng, 1), 0);
        assert_true(dm_prng_below(&prng, UINT64_MAX) < UINT64_MAX);
    }
}

static void doubles_are_in_the_unit_interval_and_uniform(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(3, "double", 0);
    double sum = 0.0;
    for (int i = 0; i < 100000; i++) {
        double number = dm_prng_double(&prng);
        assert_true(number >= 0.0 && number < 1.0);
        sum += number;
    }
    assert_true(sum > 49400.0 && sum < 50600.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_gives_the_published_sequence),
        cmocka_unit_test(streams_are_the_same_on_every_machine),
        cmocka_unit_test(different_arguments_give_different_streams),
        cmocka_unit_test(one_changed_bit_changes_about_half_of_the_stream),
        cmocka_unit_test(bounded_numbers_are_in_range_and_uniform),
        cmocka_unit_test(doubles_are_in_the_unit_interval_and_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
