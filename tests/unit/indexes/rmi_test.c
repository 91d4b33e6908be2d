/* SPDX-License-Identifier: Apache-2.0
 *
 * Two-level linear models: every key is within its bounds, in adversarial key sets too; absent keys are predicted
 * between their neighbours; evaluation is monotone; the first key of a sub-model is exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/compiler.h"
#include "common/prng.h"
#include "indexes/shared/rmi.h"

enum { KEYS = 20000, MODELS = 100 };

static uint64_t keys[KEYS];
static struct ix_rmi_model models[MODELS];
static int64_t last_position;

typedef uint64_t (*key_maker)(uint64_t i, struct dm_prng *prng, uint64_t before);

static uint64_t dense(uint64_t i, struct dm_prng *prng, uint64_t before) {
    (void)prng;
    (void)before;
    return i;
}
static uint64_t high(uint64_t i, struct dm_prng *prng, uint64_t before) {
    (void)prng;
    (void)before;
    return UINT64_MAX - KEYS + i;
}
static uint64_t spread(uint64_t i, struct dm_prng *prng, uint64_t before) {
    (void)i;
    return before + 1 + dm_prng_below(prng, UINT64_MAX / KEYS / 2);
}
static uint64_t steps(uint64_t i, struct dm_prng *prng, uint64_t before) {
    (void)prng;
    return i % 1000 == 0 ? before + (UINT64_C(1) << 55) : before + 1;
}
static uint64_t steep(uint64_t i, struct dm_prng *prng, uint64_t before) {
    (void)prng;
    return before + 1 + (i * i * i);
}
static uint64_t ends(uint64_t i, struct dm_prng *prng, uint64_t before) {
    (void)prng;
    return i < KEYS / 2 ? i : i == KEYS / 2 ? UINT64_MAX - KEYS : before + 1;
}

static const key_maker sets[] = {dense, high, spread, steps, steep, ends};

static struct ix_rmi train(size_t set, uint32_t count, uint32_t slots, uint32_t fill) {
    struct dm_prng prng = dm_prng_stream(1, "rmi", set);
    uint64_t before = 0;
    for (uint64_t i = 0; i < count; i++) {
        before = keys[i] = sets[set](i, &prng, before);
    }
    struct ix_rmi rmi = {.top = {.models = MODELS}, .models = models};
    last_position = count > 0 ? (int64_t)((count - 1) / fill * slots + (count - 1) % fill) : 0;
    ix_rmi_train(&rmi, keys, count, slots, fill, 1);
    return rmi;
}

/* Does the range that is predicted for the key reach down to `most` and up to `least`? */
static bool reaches(const struct ix_rmi *rmi, uint64_t key, int64_t least, int64_t most) {
    double coord = ix_rmi_coord(&rmi->top, key);
    uint32_t number = ix_rmi_pick(&rmi->top, coord);
    const struct ix_rmi_model *model = &rmi->models[number];
    int64_t predicted = ix_rmi_predict(model, number, coord, last_position);
    return (model->over >= IX_RMI_BOUND_MAX || predicted + model->over >= least) &&
           (model->under >= IX_RMI_BOUND_MAX || predicted - model->under <= most);
}

static void every_key_is_within_its_bounds(void **state) {
    (void)state;
    for (size_t set = 0; set < DM_ARRAY_LEN(sets); set++) {
        struct ix_rmi rmi = train(set, KEYS, 1, 1);
        for (int64_t i = 0; i < KEYS; i++) {
            assert_true(reaches(&rmi, keys[i], i, i));
        }
        rmi = train(set, KEYS, 16, 8);
        for (int64_t i = 0; i < KEYS; i++) {
            int64_t position = i / 8 * 16 + i % 8;
            assert_true(reaches(&rmi, keys[i], position, position));
        }
    }
}

static void absent_keys_are_predicted_between_their_neighbours(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(2, "absent", 0);
    for (size_t set = 0; set < DM_ARRAY_LEN(sets); set++) {
        struct ix_rmi rmi = train(set, KEYS, 1, 1);
        for (unsigned n = 0; n < 20000; n++) {
            int64_t i = (int64_t)dm_prng_below(&prng, KEYS - 1);
            uint64_t gap = keys[i + 1] - keys[i];
            if (gap > 1) {
                assert_true(reaches(&rmi, keys[i] + 1 + dm_prng_below(&prng, gap - 1), i, i + 1));
            }
        }
        assert_true(reaches(&rmi, 0, 0, 0));
        assert_true(reaches(&rmi, UINT64_MAX - 1, KEYS - 1, KEYS - 1));
    }
}

static void models_without_points_are_constant(void **state) {
    (void)state;
    for (uint32_t count = 0; count < 4; count++) {
        struct ix_rmi rmi = train(0, count, 1, 1);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(reaches(&rmi, keys[i], i, i));
        }
        assert_true(count == 0 || reaches(&rmi, UINT64_MAX - 1, count - 1, count - 1));
    }
}

static void evaluation_is_monotone_within_a_model(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(3, "monotone", 0);
    for (size_t set = 0; set < DM_ARRAY_LEN(sets); set++) {
        struct ix_rmi rmi = train(set, KEYS, 1, 1);
        for (unsigned n = 0; n < 100000; n++) {
            uint64_t a = dm_prng_u64(&prng) >> dm_prng_below(&prng, 64), b = a + (dm_prng_u64(&prng) >> 8 >> n % 56);
            double coord_a = ix_rmi_coord(&rmi.top, a), coord_b = ix_rmi_coord(&rmi.top, b < a ? UINT64_MAX : b);
            uint32_t number = ix_rmi_pick(&rmi.top, coord_a);
            assert_true(number <= ix_rmi_pick(&rmi.top, coord_b));
            assert_true(ix_rmi_predict(&models[number], number, coord_a, last_position) <=
                        ix_rmi_predict(&models[number], number, coord_b, last_position));
        }
    }
}

static void the_first_key_of_a_model_is_the_least_one(void **state) {
    (void)state;
    for (size_t set = 0; set < DM_ARRAY_LEN(sets); set++) {
        struct ix_rmi rmi = train(set, KEYS, 1, 1);
        for (uint32_t number = 1; number < MODELS; number++) {
            uint64_t first = ix_rmi_first_key(&rmi.top, number);
            assert_true(first == UINT64_MAX || ix_rmi_pick(&rmi.top, ix_rmi_coord(&rmi.top, first)) >= number);
            assert_true(first == 0 || ix_rmi_pick(&rmi.top, ix_rmi_coord(&rmi.top, first - 1)) < number);
        }
    }
}

static void dense_keys_are_predicted_exactly(void **state) {
    (void)state;
    train(0, KEYS, 1, 1);
    for (uint32_t number = 0; number < MODELS; number++) {
        assert_true(models[number].under <= 1);
        assert_true(models[number].over <= 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_within_its_bounds),
        cmocka_unit_test(absent_keys_are_predicted_between_their_neighbours),
        cmocka_unit_test(models_without_points_are_constant),
        cmocka_unit_test(evaluation_is_monotone_within_a_model),
        cmocka_unit_test(the_first_key_of_a_model_is_the_least_one),
        cmocka_unit_test(dense_keys_are_predicted_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
