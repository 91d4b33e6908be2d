/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules of open loops: distances are those of the rate, whichever client draws, and long schedules stay exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "harness/run/schedule.h"

static void fixed_distances_follow_from_the_number(void **state) {
    (void)state;
    struct hx_schedule schedule;
    hx_schedule_init(&schedule, 3000000, false, 1, 0, 0);
    assert_int_equal(hx_schedule_at(&schedule, 0, 500), 500);
    /* later calls do not move the origin */
    assert_int_equal(hx_schedule_at(&schedule, 3, 99999), 1500);
    assert_int_equal(hx_schedule_at(&schedule, 1, 99999), 833);
    /* errors do not accumulate: after 10^12 operations */
    assert_int_equal(hx_schedule_at(&schedule, UINT64_C(3000000000000), 0), 500 + UINT64_C(1000000000000000));
}

/* Mean, variance and the shares below some distances of an exponential distribution. Fixed seed; the bounds are six
 * standard deviations wide. */
static void distances_of_a_poisson_process_are_exponential(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    const double mean = 1000;
    struct hx_schedule schedule;
    hx_schedule_init(&schedule, 1000000, true, 7, 0, 0);
    double sum = 0, squares = 0;
    unsigned below_half = 0, below_three = 0;
    uint64_t last = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t at = hx_schedule_at(&schedule, i, 0);
        assert_true(at >= last);
        double gap = (double)(at - last);
        last = at;
        sum += gap;
        squares += gap * gap;
        below_half += gap < mean / 2;
        below_three += gap < 3 * mean;
    }
    double root = sqrt(COUNT);
    assert_true(fabs(sum / COUNT - mean) < 6 * mean / root);
    assert_true(fabs(squares / COUNT - 2 * mean * mean) < 6 * sqrt(20) * mean * mean / root);
    assert_true(fabs((double)below_half / COUNT - (1 - exp(-0.5))) < 6 * 0.5 / root);
    assert_true(fabs((double)below_three / COUNT - (1 - exp(-3))) < 6 * 0.5 / root);
}

static void a_poisson_process_is_that_of_its_seed(void **state) {
    (void)state;
    struct hx_schedule first, same, other;
    hx_schedule_init(&first, 1000000, true, 1, 0, 0);
    hx_schedule_init(&same, 1000000, true, 1, 0, 0);
    hx_schedule_init(&other, 1000000, true, 2, 0, 0);
    uint64_t differences = 0;
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t at = hx_schedule_at(&first, i, 0);
        assert_int_equal(hx_schedule_at(&same, i, 0), at);
        differences += hx_schedule_at(&other, i, 0) != at;
    }
    assert_true(differences > 90);
}

/* The rate is their sum: parts that began at the same times would come in bursts. */
static void parts_of_a_rate_are_independent(void **state) {
    (void)state;
    struct hx_schedule first, second;
    hx_schedule_init(&first, 1000000, true, 1, 0, 0);
    hx_schedule_init(&second, 1000000, true, 1, 1, 500);
    uint64_t differences = 0;
    for (uint64_t i = 0; i < 100; i++) {
        differences += hx_schedule_at(&first, i, 0) != hx_schedule_at(&second, i, 0);
    }
    assert_true(differences > 90);
    hx_schedule_init(&first, 1000000, false, 1, 0, 0);
    hx_schedule_init(&second, 1000000, false, 1, 1, 500);
    assert_int_equal(hx_schedule_at(&first, 7, 100), 7100);
    assert_int_equal(hx_schedule_at(&second, 7, 100), 7600);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_distances_follow_from_the_number),
        cmocka_unit_test(distances_of_a_poisson_process_are_exponential),
        cmocka_unit_test(a_poisson_process_is_that_of_its_seed),
        cmocka_unit_test(parts_of_a_rate_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
