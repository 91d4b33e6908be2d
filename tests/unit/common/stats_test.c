/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of small-sample statistics against values worked out by hand and against their defining properties.
 */
#include "common/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/prng.h"

static void assert_near(double value, double expected, double error) {
    if (!(fabs(value - expected) <= error)) {
        fail_msg("%.17g is not within %g of %.17g", value, error, expected);
    }
}

static void the_median_is_the_middle_or_between_the_middle_two(void **state) {
    (void)state;
    assert_near(dm_median((double[]){9, 1, 5}, 3), 5.0, 0.0);
    assert_near(dm_median((double[]){9, 1, 5, 6}, 4), 5.5, 0.0);
    assert_near(dm_median((double[]){2}, 1), 2.0, 0.0);
    assert_near(dm_median(NULL, 0), 0.0, 0.0);
    assert_near(dm_median((double[]){-1, -1, 8, -1}, 4), -1.0, 0.0);
}

static void the_median_leaves_the_values_alone(void **state) {
    (void)state;
    double values[] = {3, 1, 2};
    (void)dm_median(values, 3);
    (void)dm_bootstrap_median(values, 3, 0.95, 50, 1);
    assert_memory_equal(values, ((double[]){3, 1, 2}), sizeof(values));
}

static void equal_infinities_have_an_infinite_median(void **state) {
    (void)state;
    assert_true(isinf(dm_median((double[]){INFINITY, INFINITY, INFINITY}, 3)));
}

static void the_interval_holds_the_median_and_stays_in_the_sample(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 7};
    for (int round = 0; round < 100; round++) {
        double values[25];
        size_t count = 2 + dm_prng_below(&prng, 24);
        double least = INFINITY;
        double most = -INFINITY;
        for (size_t i = 0; i < count; i++) {
            values[i] = dm_prng_double(&prng) * 100.0;
            least = fmin(least, values[i]);
            most = fmax(most, values[i]);
        }
        struct dm_interval interval = dm_bootstrap_median(values, count, 0.95, 500, (uint64_t)round);
        double median = dm_median(values, count);
        assert_true(least <= interval.low && interval.low <= median);
        assert_true(median <= interval.high && interval.high <= most);
    }
}

static void more_confidence_gives_a_wider_interval(void **state) {
    (void)state;
    const double values[] = {3, 1, 4, 1.5, 5, 9, 2, 6, 5.5, 3.5, 8, 9.5};
    struct dm_interval half = dm_bootstrap_median(values, 12, 0.5, 2000, 3);
    struct dm_interval most = dm_bootstrap_median(values, 12, 0.95, 2000, 3);
    struct dm_interval all = dm_bootstrap_median(values, 12, 1.0, 2000, 3);
    assert_true(all.low <= most.low && most.low < half.low);
    assert_true(half.high < most.high && most.high <= all.high);
}

/* With n distinct values the resampled median is at most the k-th one with a known binomial probability. */
static void the_interval_agrees_with_the_exact_distribution(void **state) {
    (void)state;
    /* Resampling 1, 2, 3 three times: the median is 1 if two or three draws are 1, 7 of 27; 3 likewise; else 2. */
    const double values[] = {1, 2, 3};
    struct dm_interval outer = dm_bootstrap_median(values, 3, 1.0 - 2.0 * 0.24, 20000, 11);
    struct dm_interval inner = dm_bootstrap_median(values, 3, 1.0 - 2.0 * 0.28, 20000, 11);
    assert_near(outer.low, 1.0, 0.0);
    assert_near(outer.high, 3.0, 0.0);
    assert_near(inner.low, 2.0, 0.0);
    assert_near(inner.high, 2.0, 0.0);
}

static void about_95_of_100_intervals_hold_the_true_median(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 2024};
    unsigned held = 0;
    for (unsigned round = 0; round < 400; round++) {
        double values[30];
        for (size_t i = 0; i < 30; i++) {
            values[i] = dm_prng_double(&prng);
        }
        struct dm_interval interval = dm_bootstrap_median(values, 30, 0.95, 400, round);
        held += interval.low <= 0.5 && 0.5 <= interval.high ? 1 : 0;
    }
    /* the percentile bootstrap comes out a little low for samples of this size */
    assert_in_range(held, 360, 396);
}

static void the_same_seed_gives_the_same_interval(void **state) {
    (void)state;
    const double values[] = {3, 1, 4, 1.5, 5, 9, 2, 6.25};
    struct dm_interval a = dm_bootstrap_median(values, 8, 0.8, 101, 5);
    struct dm_interval b = dm_bootstrap_median(values, 8, 0.8, 101, 5);
    assert_near(a.low, b.low, 0.0);
    assert_near(a.high, b.high, 0.0);
    unsigned different = 0;
    for (uint64_t seed = 6; seed < 16; seed++) {
        struct dm_interval c = dm_bootstrap_median(values, 8, 0.8, 101, seed);
        different += c.low != a.low || c.high != a.high ? 1 : 0;
    }
    assert_true(different > 0);
}

static void samples_too_small_to_resample_give_a_point(void **state) {
    (void)state;
    struct dm_interval none = dm_bootstrap_median(NULL, 0, 0.95, 100, 1);
    struct dm_interval one = dm_bootstrap_median((double[]){4}, 1, 0.95, 100, 1);
    struct dm_interval idle = dm_bootstrap_median((double[]){1, 2}, 2, 0.95, 0, 1);
    assert_near(none.low, 0.0, 0.0);
    assert_near(none.high, 0.0, 0.0);
    assert_near(one.low, 4.0, 0.0);
    assert_near(one.high, 4.0, 0.0);
    assert_near(idle.low, 1.5, 0.0);
    assert_near(idle.high, 1.5, 0.0);
}

/* Published examples: U and p of R's wilcox.test and tables of the U distribution. */
static void the_rank_test_agrees_with_known_values(void **state) {
    (void)state;
    struct dm_rank_test apart = dm_mann_whitney((double[]){1, 2, 3}, 3, (double[]){4, 5, 6}, 3);
    assert_true(apart.exact);
    assert_near(apart.u, 9.0, 0.0);
    assert_near(apart.p, 0.1, 1e-12); /* 2 of 20 arrangements */
    struct dm_rank_test mixed = dm_mann_whitney((double[]){1, 4, 5}, 3, (double[]){2, 3, 6, 7}, 4);
    assert_near(mixed.u, 8.0, 0.0);
    assert_near(mixed.p, 22.0 / 35.0, 1e-12); /* 11 of 35 arrangements have U up to 4 */
    /* 4 and 4 values: the 5 % limit of the tables is U = 0, p = 2 / 70 */
    struct dm_rank_test four = dm_mann_whitney((double[]){5, 6, 7, 8}, 4, (double[]){1, 2, 3, 4}, 4);
    assert_near(four.u, 0.0, 0.0);
    assert_near(four.p, 2.0 / 70.0, 1e-12);
}

static void ties_take_the_normal_approximation(void **state) {
    (void)state;
    /* by hand: U = 15 of 25; groups of 2, 2, 3 and 2 equal values: 6 + 6 + 24 + 6 */
    struct dm_rank_test test = dm_mann_whitney((double[]){1, 2, 2, 3, 4}, 5, (double[]){1, 3, 3, 4, 2.5}, 5);
    assert_false(test.exact);
    assert_near(test.u, 15.0, 0.0);
    double variance = 25.0 / 12.0 * (11.0 - (6.0 + 6.0 + 24.0 + 6.0) / 90.0);
    assert_near(test.p, erfc((15.0 - 12.5 - 0.5) / sqrt(2.0 * variance)), 1e-12);
    struct dm_rank_test equal = dm_mann_whitney((double[]){2, 2}, 2, (double[]){2, 2}, 2);
    assert_near(equal.p, 1.0, 0.0);
    assert_near(dm_mann_whitney(NULL, 0, (double[]){1}, 1).p, 1.0, 0.0);
}

static void the_rank_test_is_even_under_no_difference(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 99};
    unsigned below = 0;
    for (unsigned round = 0; round < 2000; round++) {
        double a[8], b[8];
        for (size_t i = 0; i < 8; i++) {
            a[i] = dm_prng_double(&prng);
            b[i] = dm_prng_double(&prng);
        }
        double p = dm_mann_whitney(a, 8, b, 8).p;
        assert_near(p, dm_mann_whitney(b, 8, a, 8).p, 1e-12);
        below += p <= 0.05 ? 1 : 0;
    }
    assert_in_range(below, 50, 130); /* 2.5 to 6.5 % of 2000: the exact level here is 4.99 % */
}

static void the_effect_size_counts_pairs(void **state) {
    (void)state;
    assert_near(dm_cliffs_delta((double[]){1, 2}, 2, (double[]){3, 4}, 2), 1.0, 0.0);
    assert_near(dm_cliffs_delta((double[]){3, 4}, 2, (double[]){1, 2}, 2), -1.0, 0.0);
    assert_near(dm_cliffs_delta((double[]){1, 2, 3}, 3, (double[]){1, 2, 3}, 3), 0.0, 1e-15);
    assert_near(dm_cliffs_delta((double[]){1, 3}, 2, (double[]){2, 3}, 2), 0.25, 1e-15);
    assert_near(dm_cliffs_delta(NULL, 0, (double[]){2}, 1), 0.0, 0.0);
    assert_string_equal(dm_delta_text(0.1), "negligible");
    assert_string_equal(dm_delta_text(-0.4), "medium");
    assert_string_equal(dm_delta_text(-1), "large");
}

static void the_interval_of_a_ratio_holds_it(void **state) {
    (void)state;
    const double a[] = {10, 11, 9, 10.5, 9.5}, b[] = {20, 21, 19, 22, 18};
    struct dm_interval interval = dm_bootstrap_ratio(a, 5, b, 5, 0.95, 2000, 1);
    assert_true(interval.low > 18.0 / 11.0 - 1e-9 && interval.low < 2.0);
    assert_true(interval.high < 22.0 / 9.0 + 1e-9 && interval.high > 2.0);
    struct dm_interval single = dm_bootstrap_ratio(a, 1, b, 1, 0.95, 2000, 1);
    assert_near(single.low, 2.0, 0.0);
    assert_near(single.high, 2.0, 0.0);
    assert_true(isnan(dm_bootstrap_ratio((double[]){0}, 1, b, 1, 0.95, 100, 1).low));
    assert_true(isnan(dm_bootstrap_ratio(NULL, 0, b, 1, 0.95, 100, 1).high));
}

static void holm_corrects_for_the_number_of_tests(void **state) {
    (void)state;
    /* R: p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.9), "holm") */
    double p[] = {0.01, 0.04, 0.03, 0.005, 0.9};
    const double corrected[] = {0.04, 0.09, 0.09, 0.025, 0.9};
    assert_int_equal(dm_holm(p, 5), 0);
    for (size_t i = 0; i < 5; i++) {
        assert_true(fabs(p[i] - corrected[i]) < 1e-12);
    }
    double high[] = {0.6, 0.7};
    assert_int_equal(dm_holm(high, 2), 0);
    assert_true(high[0] == 1 && high[1] == 1);
    assert_int_equal(dm_holm(NULL, 0), 0);
}

static void the_least_p_is_that_of_samples_that_do_not_overlap(void **state) {
    (void)state;
    const double low[] = {1, 2, 3, 4, 5, 6, 7}, high[] = {11, 12, 13, 14, 15, 16, 17};
    for (size_t m = 1; m <= 7; m++) {
        for (size_t n = 1; n <= 7; n++) {
            assert_true(fabs(dm_mann_whitney_least(m, n) - dm_mann_whitney(low, m, high, n).p) < 1e-12);
        }
    }
    assert_true(dm_mann_whitney_least(0, 3) == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holm_corrects_for_the_number_of_tests),
        cmocka_unit_test(the_least_p_is_that_of_samples_that_do_not_overlap),
        cmocka_unit_test(the_median_is_the_middle_or_between_the_middle_two),
        cmocka_unit_test(the_median_leaves_the_values_alone),
        cmocka_unit_test(equal_infinities_have_an_infinite_median),
        cmocka_unit_test(the_interval_holds_the_median_and_stays_in_the_sample),
        cmocka_unit_test(more_confidence_gives_a_wider_interval),
        cmocka_unit_test(the_interval_agrees_with_the_exact_distribution),
        cmocka_unit_test(about_95_of_100_intervals_hold_the_true_median),
        cmocka_unit_test(the_same_seed_gives_the_same_interval),
        cmocka_unit_test(samples_too_small_to_resample_give_a_point),
        cmocka_unit_test(the_rank_test_agrees_with_known_values),
        cmocka_unit_test(ties_take_the_normal_approximation),
        cmocka_unit_test(the_rank_test_is_even_under_no_difference),
        cmocka_unit_test(the_effect_size_counts_pairs),
        cmocka_unit_test(the_interval_of_a_ratio_holds_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
