/* SPDX-License-Identifier: Apache-2.0
 *
 * Piecewise linear regression: every key is within epsilon, in adversarial key sets too; there are as few segments as
 * brute force over all pairs of keys finds, and they are as long as those of an independent optimal implementation.
 */
#include "indexes/shared/plr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/compiler.h"
#include "common/prng.h"

static uint64_t off_by(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

/* Each key of the segment, from `first` on, is predicted within epsilon, and a key between two of them is predicted
 * between these two. */
static void segment_holds(const struct ix_plr_segment *segment, const uint64_t *keys, const uint64_t *positions,
                          uint64_t first, uint32_t epsilon) {
    assert_int_equal(segment->model.key, keys[first]);
    assert_int_equal(segment->last_key, keys[first + segment->count - 1]);
    assert_int_equal(segment->first_position, positions[first]);
    uint64_t before = 0;
    struct ix_plr_model single = {segment->model.key, (float)segment->model.slope, (float)segment->model.intercept};
    for (uint64_t i = first; i < first + segment->count; i++) {
        uint64_t predicted = ix_plr_predict(&segment->model, keys[i]);
        /* So is it by the line in single precision, as ROLEX caches it, up to 2^21 positions. */
        uint64_t position = positions[i] - positions[first];
        assert_true(position >> 21 > 0 || off_by(ix_plr_predict(&single, keys[i]), position) <= epsilon);
        if (off_by(predicted, positions[i] - positions[first]) > epsilon) {
            fail_msg("key %llu at %llu is predicted at %llu, epsilon %u", (unsigned long long)keys[i],
                     (unsigned long long)(positions[i] - positions[first]), (unsigned long long)predicted, epsilon);
        }
        assert_true(predicted >= before);
        if (i > first) {
            uint64_t between = ix_plr_predict(&segment->model, keys[i - 1] + (keys[i] - keys[i - 1]) / 2);
            assert_true(between >= before && between <= predicted);
        }
        before = predicted;
    }
}

/* Trains, checks every segment and returns their number. */
static uint64_t train(const uint64_t *keys, const uint64_t *positions, uint64_t count, uint32_t epsilon,
                      uint64_t *lengths) {
    struct ix_plr *plr;
    assert_int_equal(ix_plr_open(epsilon, &plr), 0);
    struct ix_plr_segment segment;
    uint64_t done = 0;
    uint64_t segments = 0;
    for (uint64_t i = 0; i <= count; i++) {
        int rc = i < count ? ix_plr_add(plr, keys[i], positions[i], &segment) : ix_plr_finish(plr, &segment);
        assert_true(rc >= 0);
        if (rc == 1) {
            segment_holds(&segment, keys, positions, done, epsilon);
            if (lengths) {
                lengths[segments] = segment.count;
            }
            segments++;
            done += segment.count;
        }
    }
    assert_int_equal(done, count);
    ix_plr_close(plr);
    return segments;
}

static uint64_t *ranks(uint64_t count) {
    uint64_t *positions = malloc(count * sizeof(*positions));
    for (uint64_t i = 0; i < count; i++) {
        positions[i] = i;
    }
    return positions;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Distinct, sorted. */
static uint64_t *uniform(uint64_t *count, uint64_t seed) {
    struct dm_prng prng = dm_prng_stream(seed, "plr", 0);
    uint64_t *keys = malloc(*count * sizeof(*keys));
    for (uint64_t i = 0; i < *count; i++) {
        keys[i] = dm_prng_u64(&prng);
    }
    qsort(keys, *count, sizeof(*keys), ascending);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < *count; i++) {
        if (i == 0 || keys[i] != keys[kept - 1]) {
            keys[kept++] = keys[i];
        }
    }
    *count = kept;
    return keys;
}

static void segments_are_as_long_as_those_of_an_independent_optimal_implementation(void **state) {
    (void)state;
    static const struct {
        uint32_t epsilon;
        double keys; /* of a segment */
    } known[] = {{4, 77.2}, {8, 265.8}, {16, 986}, {32, 3820}, {64, 14663}};
    uint64_t count = 5000000;
    uint64_t *keys = uniform(&count, 42);
    uint64_t *positions = ranks(count);
    for (size_t i = 0; i < DM_ARRAY_LEN(known); i++) {
        double mean = (double)count / (double)train(keys, positions, count, known[i].epsilon, NULL);
        print_message("epsilon %u: %.1f keys per segment, known %.1f\n", known[i].epsilon, mean, known[i].keys);
        assert_true(fabs(mean / known[i].keys - 1) < 0.02);
    }
    free(positions);
    free(keys);
}

/* Is there a line for keys first .. last? Eliminating the intercept leaves one bound on the slope for each pair. */
static bool line_exists(const uint64_t *keys, const uint64_t *positions, uint64_t first, uint64_t last,
                        int64_t epsilon) {
    /* NOLINTBEGIN(clang-analyzer-core.UndefinedBinaryOperatorResult): callers fill keys and positions up to last */
    dm_int128 least_dy = 0;
    dm_int128 most_dy = 0;
    dm_int128 least_dx = 0;
    dm_int128 most_dx = 0;
    for (uint64_t i = first; i < last; i++) {
        for (uint64_t j = i + 1; j <= last; j++) {
            dm_int128 dx = keys[j] - keys[i];
            dm_int128 dy = (int64_t)(positions[j] - positions[i]);
            if (least_dx == 0 || (dy - 2 * epsilon) * least_dx > least_dy * dx) {
                least_dy = dy - 2 * epsilon;
                least_dx = dx;
            }
            if (most_dx == 0 || (dy + 2 * epsilon) * most_dx < most_dy * dx) {
                most_dy = dy + 2 * epsilon;
                most_dx = dx;
            }
        }
    }
    return first == last || least_dy * most_dx <= most_dy * least_dx;
    /* NOLINTEND(clang-analyzer-core.UndefinedBinaryOperatorResult) */
}

static void no_segment_could_have_been_longer(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(7, "plr", 0);
    for (unsigned round = 0; round < 1500; round++) {
        uint64_t keys[60];
        uint64_t positions[60];
        uint64_t lengths[60];
        uint64_t count = 2 + dm_prng_below(&prng, 58);
        uint32_t epsilon = (uint32_t)dm_prng_below(&prng, 6);
        uint64_t widest = UINT64_C(1) << dm_prng_below(&prng, 58);
        uint64_t step = 1 + dm_prng_below(&prng, 4);
        for (uint64_t i = 0; i < count; i++) {
            keys[i] = (i > 0 ? keys[i - 1] : dm_prng_below(&prng, 1000)) + 1 + dm_prng_below(&prng, widest);
            positions[i] = i > 0 ? positions[i - 1] + dm_prng_below(&prng, step + 1) : dm_prng_below(&prng, 9);
        }
        uint64_t segments = train(keys, positions, count, epsilon, lengths);
        uint64_t first = 0;
        for (uint64_t s = 0; s < segments; s++) {
            assert_true(line_exists(keys, positions, first, first + lengths[s] - 1, epsilon));
            if (s + 1 < segments) {
                assert_false(line_exists(keys, positions, first, first + lengths[s], epsilon));
            }
            first += lengths[s];
        }
    }
}

enum { ADVERSARIAL_KEYS = 20000 };

/* Key sets that are hard for the arithmetic. */
static uint64_t adversarial_key(unsigned set, uint64_t i, struct dm_prng *prng) {
    uint64_t last = ADVERSARIAL_KEYS - 1;
    switch (set) {
    case 0: /* dense, from 0 */
        return i;
    case 1: /* dense, up to the largest key there is */
        return UINT64_MAX - last + i;
    case 2: /* both ends of the key space and nothing between */
        return i < ADVERSARIAL_KEYS / 2 ? i : UINT64_MAX - last + i;
    case 3: /* steps: runs of neighbours far apart */
        return i / 100 * (UINT64_MAX / 256) + i % 100;
    case 4: /* a convex curve: all points are vertices of a hull */
        return i * i * (UINT64_MAX / (last * last));
    case 5: /* a concave one */
        return UINT64_MAX - (last - i) * (last - i) * (UINT64_MAX / (last * last));
    case 6: /* powers: the slope keeps changing */
        return i < 64 * 312 ? (UINT64_C(1) << i / 312) + i % 312 + (i / 312 < 9 ? i : 0) : UINT64_MAX - last + i;
    default: /* evenly spread, each moved by a random amount that keeps the order */
        return i * (UINT64_MAX / ADVERSARIAL_KEYS) + dm_prng_below(prng, UINT64_MAX / ADVERSARIAL_KEYS);
    }
}

static void every_key_is_within_epsilon_in_adversarial_key_sets(void **state) {
    (void)state;
    static const uint32_t epsilons[] = {0, 1, 2, 16, 256, IX_PLR_EPSILON_MAX};
    uint64_t *keys = malloc(ADVERSARIAL_KEYS * sizeof(*keys));
    uint64_t *positions = ranks(ADVERSARIAL_KEYS);
    for (unsigned set = 0; set < 8; set++) {
        struct dm_prng prng = dm_prng_stream(set, "plr", 0);
        uint64_t count = 0;
        for (uint64_t i = 0; i < ADVERSARIAL_KEYS; i++) {
            uint64_t key = adversarial_key(set, i, &prng);
            if (count == 0 || key > keys[count - 1]) {
                keys[count++] = key;
            }
        }
        assert_true(count > ADVERSARIAL_KEYS / 2);
        for (size_t e = 0; e < DM_ARRAY_LEN(epsilons); e++) {
            train(keys, positions, count, epsilons[e], NULL);
        }
    }
    free(positions);
    free(keys);
}

static void positions_may_have_gaps_and_repeat(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(3, "plr", 0);
    uint64_t count = 20000;
    uint64_t *keys = uniform(&count, 3);
    uint64_t *positions = ranks(count);
    for (uint64_t i = 1; i < count; i++) {
        uint64_t jump = dm_prng_below(&prng, 1000) == 0 ? IX_PLR_SPAN_MAX / 2 : dm_prng_below(&prng, 3);
        positions[i] = positions[i - 1] + jump;
    }
    train(keys, positions, count, 16, NULL);
    memset(positions, 0, count * sizeof(*positions));
    assert_int_equal(train(keys, positions, count, 0, NULL), 1);
    free(positions);
    free(keys);
}

static void dense_keys_need_one_segment_for_any_epsilon(void **state) {
    (void)state;
    uint64_t *positions = ranks(100000);
    assert_int_equal(train(positions, positions, 100000, 0, NULL), 1);
    assert_int_equal(train(positions, positions, 100000, 64, NULL), 1);
    free(positions);
}

static void keys_out_of_order_are_refused_and_change_nothing(void **state) {
    (void)state;
    struct ix_plr *plr;
    struct ix_plr_segment segment;
    assert_int_equal(ix_plr_open(IX_PLR_EPSILON_MAX + 1, &plr), DM_ERR_INVALID);
    assert_int_equal(ix_plr_open(1, &plr), 0);
    assert_int_equal(ix_plr_finish(plr, &segment), 0);
    assert_int_equal(ix_plr_add(plr, 10, 5, &segment), 0);
    assert_int_equal(ix_plr_add(plr, 10, 6, &segment), DM_ERR_INVALID);
    assert_int_equal(ix_plr_add(plr, 9, 6, &segment), DM_ERR_INVALID);
    assert_int_equal(ix_plr_add(plr, 11, 4, &segment), DM_ERR_INVALID);
    assert_int_equal(ix_plr_add(plr, 11, 6, &segment), 0);
    assert_int_equal(ix_plr_finish(plr, &segment), 1);
    assert_int_equal(segment.count, 2);
    /* A new segment may begin anywhere. */
    assert_int_equal(ix_plr_add(plr, 1, 0, &segment), 0);
    ix_plr_close(plr);
    ix_plr_close(NULL);
}

static void predictions_for_keys_outside_the_segment_are_clamped(void **state) {
    (void)state;
    struct ix_plr_model model = {.key = 1000, .slope = 1e30, .intercept = -3};
    assert_int_equal(ix_plr_predict(&model, 0), 0);
    assert_int_equal(ix_plr_predict(&model, 1000), 0);
    assert_int_equal(ix_plr_predict(&model, UINT64_MAX), UINT64_C(1) << 62);
    model.intercept = 7.6;
    assert_int_equal(ix_plr_predict(&model, 5), 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_as_long_as_those_of_an_independent_optimal_implementation),
        cmocka_unit_test(no_segment_could_have_been_longer),
        cmocka_unit_test(every_key_is_within_epsilon_in_adversarial_key_sets),
        cmocka_unit_test(positions_may_have_gaps_and_repeat),
        cmocka_unit_test(dense_keys_need_one_segment_for_any_epsilon),
        cmocka_unit_test(keys_out_of_order_are_refused_and_change_nothing),
        cmocka_unit_test(predictions_for_keys_outside_the_segment_are_clamped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
