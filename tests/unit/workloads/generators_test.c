/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the generators with YCSB's, value by value: hashes, pure functions of u, sequences from a fixed random
 * stream. Compares the arithmetic with that of the C library.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/workloads/vectors.h"
#include "workloads/generators.h"

/* Calls `check` for every entry of a kind; there must be at least one. */
static void each_vector(const char *kind, const char *generator, void (*check)(const json_t *entry)) {
    json_t *vectors = vectors_load();
    size_t i, checked = 0;
    json_t *entry;
    json_array_foreach(json_object_get(vectors, "deterministic"), i, entry) {
        if (vector_is(entry, kind, generator)) {
            check(entry);
            checked++;
        }
    }
    assert_true(checked > 0);
    json_decref(vectors);
}

static struct dm_prng entry_prng(const json_t *entry) {
    return (struct dm_prng){.state = (uint64_t)vector_number(entry, "splitmix64_seed")};
}

static uint64_t value_at(const json_t *array, size_t i) {
    return (uint64_t)json_integer_value(json_array_get(array, i));
}

static void check_hashes(const json_t *entry) {
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(entry, "rows"), i, row) {
        uint64_t in = strtoull(vector_text(row, "in"), NULL, 10);
        assert_int_equal(wl_fnvhash64(in), strtoull(vector_text(row, "java_fnvhash64"), NULL, 10));
    }
}

static void fnvhash64_is_that_of_ycsb_bit_for_bit(void **state) {
    (void)state;
    each_vector("fnvhash64", NULL, check_hashes);
}

static void the_short_path_of_the_hash_equals_the_long_one(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 7};
    for (int i = 0; i < 100000; i++) {
        uint64_t x = dm_prng_u64(&prng) >> (i % 64);
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (int octet = 0; octet < 8; octet++) {
            hash = (hash ^ (x >> (8 * octet) & 0xff)) * UINT64_C(1099511628211);
        }
        int64_t magnitude = (int64_t)hash < 0 ? -(int64_t)hash : (int64_t)hash;
        assert_int_equal(wl_fnvhash64(x), (uint64_t)magnitude);
    }
}

static void check_splitmix(const json_t *entry) {
    struct dm_prng prng = {.state = (uint64_t)vector_number(entry, "seed")};
    size_t i;
    json_t *value;
    json_array_foreach(json_object_get(entry, "first8_u64"), i, value) {
        assert_int_equal(dm_prng_u64(&prng), strtoull(json_string_value(value), NULL, 10));
    }
}

static void the_random_stream_is_splitmix64(void **state) {
    (void)state;
    each_vector("splitmix64", NULL, check_splitmix);
}

static void check_u_to_value(const json_t *entry) {
    const json_t *params = json_object_get(entry, "params");
    uint64_t min = (uint64_t)vector_number(params, "min");
    uint64_t items = (uint64_t)vector_number(params, "items");
    double theta = vector_number(params, "theta");
    const json_t *modulus = json_object_get(params, "modulus");
    uint64_t range = modulus != NULL ? (uint64_t)json_integer_value(modulus) : 1;
    struct wl_zipf zipf =
        modulus != NULL ? wl_scrambled_make(0, range - 1, theta).zipf : wl_zipf_make(min, items, theta, 0.0);
    struct wl_scrambled scrambled = {.zipf = zipf, .min = 0, .range = wl_modulus_make(range)};
    /* YCSB sums term by term in doubles, so the last digits differ, the more the more terms there are */
    assert_true(fabs(zipf.zetan / vector_number(params, "zetan") - 1.0) < 1e-12);
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(entry, "rows"), i, row) {
        double u = strtod(json_string_value(json_array_get(row, 0)), NULL);
        assert_int_equal(wl_zipf_value(&zipf, u), value_at(row, 1));
        if (modulus != NULL) {
            assert_int_equal(wl_scrambled_value(&scrambled, u), value_at(row, 2));
        }
    }
}

static void every_u_gives_the_rank_that_ycsb_gives(void **state) {
    (void)state;
    each_vector("u_to_value", NULL, check_u_to_value);
}

static void check_zipfian_sequence(const json_t *entry) {
    const json_t *params = json_object_get(entry, "params"), *values = json_object_get(entry, "values");
    struct dm_prng prng = entry_prng(entry);
    struct wl_zipf zipf = wl_zipf_make(0, (uint64_t)vector_number(params, "n"), vector_number(params, "theta"), 0.0);
    dm_prng_double(&prng); /* YCSB's constructor */
    for (size_t i = 0; i < json_array_size(values); i++) {
        assert_int_equal(wl_zipf_next(&zipf, &prng), value_at(values, i));
    }
}

static void check_scrambled_sequence(const json_t *entry) {
    const json_t *values = json_object_get(entry, "values");
    struct dm_prng prng = entry_prng(entry);
    uint64_t n = (uint64_t)vector_number(json_object_get(entry, "params"), "n");
    struct wl_scrambled scrambled = wl_scrambled_make(0, n - 1, WL_ZIPFIAN_CONSTANT);
    dm_prng_double(&prng); /* YCSB's constructor */
    for (size_t i = 0; i < json_array_size(values); i++) {
        assert_int_equal(wl_scrambled_next(&scrambled, &prng), value_at(values, i));
    }
}

static void check_latest_sequence(const json_t *entry) {
    const json_t *values = json_object_get(entry, "values");
    struct dm_prng prng = entry_prng(entry);
    uint64_t newest = (uint64_t)vector_number(json_object_get(entry, "params"), "recordcount") - 1;
    struct wl_latest latest = wl_latest_make(newest, WL_ZIPFIAN_CONSTANT);
    dm_prng_double(&prng); /* YCSB's two constructors */
    dm_prng_double(&prng);
    for (size_t i = 0; i < json_array_size(values); i++) {
        assert_int_equal(wl_latest_next(&latest, newest, &prng), value_at(values, i));
        newest += i % 10 == 9 ? 1 : 0;
    }
}

static void check_exponential_sequence(const json_t *entry) {
    const json_t *params = json_object_get(entry, "params"), *values = json_object_get(entry, "values");
    struct dm_prng prng = entry_prng(entry);
    struct wl_exponential exponential =
        wl_exponential_make(vector_number(params, "percentile"), vector_number(params, "range"));
    for (size_t i = 0; i < json_array_size(values); i++) {
        double expected = json_number_value(json_array_get(values, i));
        assert_true(fabs(wl_exponential_next(&exponential, &prng) / expected - 1.0) < 1e-12);
    }
}

static void check_hotspot_sequence(const json_t *entry) {
    const json_t *params = json_object_get(entry, "params"), *values = json_object_get(entry, "values");
    struct dm_prng prng = entry_prng(entry);
    struct wl_hotspot hotspot =
        wl_hotspot_make((uint64_t)vector_number(params, "lb"), (uint64_t)vector_number(params, "ub"),
                        vector_number(params, "hotset"), vector_number(params, "hotopn"));
    for (size_t i = 0; i < json_array_size(values); i++) {
        assert_int_equal(wl_hotspot_next(&hotspot, &prng), value_at(values, i));
    }
}

static void check_uniform_sequence(const json_t *entry) {
    const json_t *params = json_object_get(entry, "params"), *values = json_object_get(entry, "values");
    struct dm_prng prng = entry_prng(entry);
    struct wl_uniform uniform =
        wl_uniform_make((uint64_t)vector_number(params, "lb"), (uint64_t)vector_number(params, "ub"));
    for (size_t i = 0; i < json_array_size(values); i++) {
        assert_int_equal(wl_uniform_next(&uniform, &prng), value_at(values, i));
    }
}

static void sequences_are_those_of_ycsb_on_the_same_random_stream(void **state) {
    (void)state;
    each_vector("sequence", "zipfian", check_zipfian_sequence);
    each_vector("sequence", "scrambled_zipfian", check_scrambled_sequence);
    each_vector("sequence", "latest", check_latest_sequence);
    each_vector("sequence", "exponential_double", check_exponential_sequence);
    each_vector("sequence", "hotspot", check_hotspot_sequence);
    each_vector("sequence", "uniform", check_uniform_sequence);
}

static void powers_agree_with_the_c_library(void **state) {
    (void)state;
    const struct wl_math *math = wl_math_get();
    struct dm_prng prng = {.state = 11};
    for (int i = 0; i < 200000; i++) {
        double u = dm_prng_double(&prng);
        double x = ldexp(u + 0x1p-30, (int)dm_prng_below(&prng, 100) - 50);
        assert_true(fabs(wl_log2(math, x) - log2(x)) <= 6e-15 * fabs(log2(x)));
        assert_true(fabs(wl_exp2(math, -50.0 * u) / exp2(-50.0 * u) - 1.0) < 1e-15 + 1e-14 * u);
        double base = 1.0 - 0.5 * u;
        assert_true(fabs(wl_pow(math, base, 20.0) / pow(base, 20.0) - 1.0) < 1e-14);
        base = 1.0 - 1e-9 * u;
        assert_true(fabs(wl_log2(math, base) - log2(base)) <= 1e-15 * fabs(log2(base)));
    }
    assert_true(wl_log2(math, 1.0) == 0.0);
    assert_true(wl_exp2(math, 0.0) == 1.0);
    assert_true(wl_exp2(math, -5000.0) == 0.0);
    assert_true(wl_pow(math, 2.0, 10.0) == 1024.0);
}

static void the_zeta_formula_agrees_with_the_sum(void **state) {
    (void)state;
    static const double thetas[] = {0.01, 0.5, 0.9, 0.99, 0.999};
    for (size_t i = 0; i < 5; i++) {
        struct wl_zeta_tail tail = wl_zeta_tail_make(thetas[i]);
        long double sum = 0.0L;
        double bound = 1e-14 + 1e-15 / (1.0 - thetas[i]);
        for (uint64_t n = 1; n <= 300000; n++) {
            sum += powl((long double)n, -(long double)thetas[i]);
            if (n == WL_ZETA_TAIL_MIN || n == 1000 || n == 300000) {
                assert_true(fabs(wl_zeta_tail(&tail, n) / (double)sum - 1.0) < bound);
            }
        }
        /* summed term by term in doubles, as YCSB does */
        assert_true(fabs(wl_zeta(300000, thetas[i]) / (double)sum - 1.0) < 1e-12);
    }
}

static void the_zeta_of_ten_billion_items_is_known(void **state) {
    (void)state;
    /* the true sum, and YCSB's constant with the rounding of its 10^10 additions */
    assert_true(fabs(wl_zeta(UINT64_C(10000000000), 0.99) - 26.469028201751) < 1e-11);
    assert_true(fabs(wl_zeta(UINT64_C(10000000000), 0.99) - WL_SCRAMBLED_ZETAN) < 1e-10);
}

static void the_zeta_sum_and_formula_agree_where_one_replaces_the_other(void **state) {
    (void)state;
    double below = wl_zeta(WL_ZETA_EXACT_MAX, 0.99), above = wl_zeta(WL_ZETA_EXACT_MAX + 1, 0.99);
    double term = pow((double)(WL_ZETA_EXACT_MAX + 1), -0.99);
    assert_true(fabs(above - below - term) < 1e-11);
}

static void zipf_never_leaves_its_range(void **state) {
    (void)state;
    for (uint64_t items = 1; items < 40; items++) {
        for (int percent = 5; percent < 100; percent += 5) {
            struct wl_zipf zipf = wl_zipf_make(5, items, percent / 100.0, 0.0);
            for (int i = 0; i <= 200; i++) {
                double u = i < 200 ? i / 200.0 : 1.0 - 0x1p-53;
                uint64_t value = wl_zipf_value(&zipf, u);
                assert_true(value >= 5 && value < 5 + items);
            }
        }
    }
}

static void latest_stays_within_the_newest_even_when_there_are_few_keys(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 3};
    for (uint64_t start = 0; start < 6; start++) {
        struct wl_latest latest = wl_latest_make(start, 0.99);
        for (uint64_t newest = start; newest < 400; newest++) {
            assert_true(wl_latest_next(&latest, newest, &prng) <= newest);
        }
    }
}

static void latest_depends_on_the_newest_number_only_not_on_the_steps_to_it(void **state) {
    (void)state;
    struct wl_latest stepwise = wl_latest_make(999, 0.99), at_once = stepwise;
    for (uint64_t items = 1000; items <= 50000; items++) {
        wl_latest_grow(&stepwise, items);
    }
    wl_latest_grow(&at_once, 50000);
    assert_true(stepwise.zipf.zetan == at_once.zipf.zetan && stepwise.zipf.eta == at_once.zipf.eta);
    assert_true(fabs(at_once.zipf.zetan / wl_zeta(50000, 0.99) - 1.0) < 1e-13);
}

static void remainders_need_no_division(void **state) {
    (void)state;
    static const uint64_t divisors[] = {1, 2, 3, 7, 1000, 1001, 4294967295, 4294967297, UINT64_MAX / 2, UINT64_MAX};
    struct dm_prng prng = {.state = 5};
    for (size_t d = 0; d < sizeof divisors / sizeof divisors[0]; d++) {
        struct wl_modulus modulus = wl_modulus_make(divisors[d]);
        for (int i = 0; i < 20000; i++) {
            uint64_t x = dm_prng_u64(&prng) >> (i % 64);
            assert_int_equal(wl_mod(&modulus, x), x % divisors[d]);
        }
        assert_int_equal(wl_mod(&modulus, UINT64_MAX), UINT64_MAX % divisors[d]);
        assert_int_equal(wl_mod(&modulus, divisors[d] - 1), divisors[d] - 1);
    }
}

/* YCSB's loop over (weight, value). */
static unsigned discrete_reference(const double *weights, unsigned count, double u) {
    double sum = 0.0;
    unsigned last = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += weights[i];
    }
    for (unsigned i = 0; i < count; i++) {
        if (weights[i] > 0.0) {
            last = i;
            if (u < weights[i] / sum) {
                return i;
            }
            u -= weights[i] / sum;
        }
    }
    return last;
}

static void operations_are_chosen_as_ycsb_subtracts_the_weights(void **state) {
    (void)state;
    static const double mixes[][5] = {{0.5, 0.5, 0, 0, 0},     {0.95, 0.05, 0, 0, 0},      {0, 0, 0.05, 0.95, 0},
                                      {0.1, 0.2, 0.3, 0.4, 0}, {3.0, 1.0, 0.7, 0.1, 0.33}, {0, 0, 0, 0, 1}};
    struct dm_prng prng = {.state = 9};
    for (size_t mix = 0; mix < 6; mix++) {
        struct wl_discrete discrete = wl_discrete_make(mixes[mix], 5);
        for (int i = 0; i < 20000; i++) {
            uint64_t bits = dm_prng_u64(&prng) >> 11;
            assert_int_equal(wl_discrete_value(&discrete, bits),
                             discrete_reference(mixes[mix], 5, (double)bits * 0x1p-53));
        }
        for (unsigned i = 0; i + 1 < discrete.count; i++) {
            for (uint64_t bits = discrete.limit[i] - 2; bits < discrete.limit[i] + 2; bits++) {
                assert_int_equal(wl_discrete_value(&discrete, bits),
                                 discrete_reference(mixes[mix], 5, (double)bits * 0x1p-53));
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fnvhash64_is_that_of_ycsb_bit_for_bit),
        cmocka_unit_test(the_short_path_of_the_hash_equals_the_long_one),
        cmocka_unit_test(the_random_stream_is_splitmix64),
        cmocka_unit_test(every_u_gives_the_rank_that_ycsb_gives),
        cmocka_unit_test(sequences_are_those_of_ycsb_on_the_same_random_stream),
        cmocka_unit_test(powers_agree_with_the_c_library),
        cmocka_unit_test(the_zeta_formula_agrees_with_the_sum),
        cmocka_unit_test(the_zeta_of_ten_billion_items_is_known),
        cmocka_unit_test(the_zeta_sum_and_formula_agree_where_one_replaces_the_other),
        cmocka_unit_test(zipf_never_leaves_its_range),
        cmocka_unit_test(latest_stays_within_the_newest_even_when_there_are_few_keys),
        cmocka_unit_test(latest_depends_on_the_newest_number_only_not_on_the_steps_to_it),
        cmocka_unit_test(remainders_need_no_division),
        cmocka_unit_test(operations_are_chosen_as_ycsb_subtracts_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
