/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices of time against sums that are made without them, however often their width doubles; merging; and the test of
 * whether a run had settled, with what it must and must not notice.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/prng.h"
#include "harness/run/over_time.h"

enum { EVENTS = 20000 };

struct event {
    uint64_t at, latency;
};

/* Moments from `start` on, with distances of up to `most`, and now and then a long pause. */
static void events_make(struct event events[EVENTS], uint64_t seed, uint64_t start, uint64_t most) {
    struct dm_prng prng = {.state = seed};
    uint64_t at = start;
    for (int i = 0; i < EVENTS; i++) {
        at += dm_prng_below(&prng, most) + (dm_prng_below(&prng, 1000) == 0 ? 500 * most : 0);
        events[i] = (struct event){at, dm_prng_below(&prng, 100000)};
    }
}

static void pace_check(const struct hx_pace *pace, const struct event *events, size_t count) {
    const struct hx_grid *grid = &pace->grid;
    uint64_t operations = 0, latency = 0;
    assert_true(grid->used > 0 && grid->used <= HX_SLICES && grid->width_ns % HX_PACE_WIDTH_NS == 0);
    for (size_t i = 0; i < grid->used; i++) {
        uint64_t begin = (grid->base + i) * grid->width_ns;
        struct hx_pace_slice slice = {0};
        for (size_t k = 0; k < count; k++) {
            bool is_in = events[k].at >= begin && events[k].at - begin < grid->width_ns;
            slice.operations += is_in;
            slice.latency_ns += is_in ? events[k].latency : 0;
        }
        assert_int_equal(slice.operations, pace->slices[i].operations);
        assert_int_equal(slice.latency_ns, pace->slices[i].latency_ns);
        operations += slice.operations;
        latency += slice.latency_ns;
    }
    for (size_t k = 0; k < count; k++) {
        latency -= events[k].latency;
    }
    assert_int_equal(operations, count);
    assert_int_equal(latency, 0); /* every latency is in one slice */
    /* no finer than needed: half as many slices would not have been enough */
    assert_true(grid->width_ns == HX_PACE_WIDTH_NS || grid->used > HX_SLICES / 2 - 1);
}

static void every_operation_is_in_the_slice_of_its_moment_however_long_the_run(void **state) {
    (void)state;
    static struct event events[EVENTS];
    struct hx_pace *pace = calloc(1, sizeof(*pace));
    assert_non_null(pace);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        events_make(events, seed, seed * 777777, UINT64_C(1) << (2 * seed - 2));
        hx_pace_clear(pace);
        for (int i = 0; i < EVENTS; i++) {
            hx_pace_note(pace, events[i].at, events[i].latency);
        }
        pace_check(pace, events, EVENTS);
    }
    free(pace);
}

/* Threads begin and end at different times; what they add up to is what one thread would have counted. */
static void parts_of_a_run_add_up_to_the_whole(void **state) {
    (void)state;
    static struct event events[EVENTS];
    enum { PARTS = 4 };
    struct hx_pace *parts = calloc(PARTS + 1, sizeof(*parts)), *whole = &parts[PARTS];
    assert_non_null(parts);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct dm_prng prng = {.state = seed};
        uint64_t most = UINT64_C(1) << (2 * seed - 2);
        for (int part = 0; part <= PARTS; part++) {
            hx_pace_clear(&parts[part]);
        }
        for (int part = 0; part < PARTS; part++) {
            /* late or early, short or long */
            struct event *own = events + part * EVENTS / PARTS;
            uint64_t start = dm_prng_below(&prng, most * 5000), distance = dm_prng_below(&prng, most) + 1;
            for (int i = 0; i < EVENTS / PARTS; i++) {
                own[i] = (struct event){start + distance * (uint64_t)i, dm_prng_below(&prng, 100000)};
                hx_pace_note(&parts[part], own[i].at, own[i].latency);
            }
            hx_pace_merge(whole, &parts[part]);
        }
        pace_check(whole, events, EVENTS);
    }
    free(parts);
}

/* Slices of 1 us with a throughput that `of` says, as a factor, and noise. */
static struct hx_settled judge(double (*of)(double share), double noise, uint64_t seed, bool is_open_loop) {
    enum { US = 1000, PER_US = 50 };
    struct hx_pace pace;
    struct dm_prng prng = {.state = seed};
    hx_pace_clear(&pace);
    for (int us = 0; us < US; us++) {
        double factor = of((double)us / US) * (1.0 + noise * (2.0 * dm_prng_double(&prng) - 1.0));
        double operations = is_open_loop ? PER_US : PER_US * factor;
        for (int i = 0; i < (int)(operations + dm_prng_double(&prng)); i++) {
            hx_pace_note(&pace, (uint64_t)us * 1000, is_open_loop ? (uint64_t)(5000 * factor) : 5000);
        }
    }
    return hx_settled_judge(&pace, 0, (uint64_t)US * 1000, is_open_loop);
}

static double constant(double share) {
    (void)share;
    return 1.0;
}

static double step(double share) {
    return share < 0.5 ? 1.0 : 1.1;
}

static double small_step(double share) {
    return share < 0.5 ? 1.0 : 1.01;
}

static double ramp(double share) {
    return 1.0 + 0.2 * share;
}

static double warm_up(double share) {
    return 1.0 - 0.7 * exp(-8.0 * share);
}

static void a_run_that_changes_is_not_settled_and_a_noisy_one_is(void **state) {
    (void)state;
    for (int open = 0; open < 2; open++) {
        assert_false(judge(step, 0.1, 1, open).is_settled);
        assert_false(judge(ramp, 0.1, 1, open).is_settled);
        assert_false(judge(warm_up, 0.1, 1, open).is_settled);
        assert_true(judge(small_step, 0.0, 1, open).is_settled); /* certain, but too small to matter */
        unsigned alarms = 0;
        for (uint64_t seed = 1; seed <= 1000; seed++) {
            struct hx_settled settled = judge(constant, 0.5, seed, open);
            assert_true(settled.is_known);
            alarms += !settled.is_settled;
        }
        /* expected: 1 in 1000 at most */
        assert_true(alarms <= 6);
    }
    struct hx_settled settled = judge(step, 0.0, 1, false);
    assert_true(settled.first > 0.049 && settled.first < 0.051 && settled.second / settled.first > 1.08);
    assert_true(settled.p < 1e-6);
}

static void a_short_run_is_not_judged(void **state) {
    (void)state;
    struct hx_pace pace;
    hx_pace_clear(&pace);
    assert_false(hx_settled_judge(&pace, 0, 0, false).is_known);
    for (uint64_t i = 0; i < 320; i++) {
        hx_pace_note(&pace, i * 1000, 5);
    }
    assert_true(hx_settled_judge(&pace, 0, 320000, false).is_known);
    hx_pace_clear(&pace);
    for (uint64_t i = 0; i < 319; i++) {
        hx_pace_note(&pace, i * 1000, 5); /* a batch with 9 operations */
    }
    assert_false(hx_settled_judge(&pace, 0, 319000, false).is_known);
    hx_pace_clear(&pace);
    for (uint64_t i = 0; i < 30000; i++) {
        hx_pace_note(&pace, i, 5); /* fewer slices than batches */
    }
    assert_false(hx_settled_judge(&pace, 0, 30000, false).is_known);
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void percentiles_of_a_slice_are_at_most_a_32nd_too_high(void **state) {
    (void)state;
    static const double shares[] = {0.5, 0.99, 0.999};
    enum { COUNT = 5000 };
    uint64_t values[COUNT];
    for (unsigned bits = 1; bits <= 40; bits += 3) {
        struct dm_prng prng = {.state = bits};
        struct hx_over_time *over_time = hx_over_time_new(1000);
        assert_non_null(over_time);
        for (int i = 0; i < COUNT; i++) {
            values[i] = dm_prng_below(&prng, UINT64_C(1) << bits);
            hx_over_time_note(over_time, 500, values[i], true);
        }
        qsort(values, COUNT, sizeof values[0], compare);
        for (int i = 0; i < 3; i++) {
            uint64_t exact = values[(size_t)ceil(shares[i] * COUNT) - 1];
            uint64_t found = hx_slice_quantile(&over_time->slices[0], shares[i]);
            assert_true(found >= exact && found <= exact + exact / 32);
        }
        assert_int_equal(hx_slice_quantile(&over_time->slices[0], 1.0), values[COUNT - 1]);
        free(over_time);
    }
}

static void work_is_spread_over_the_slices_between_two_samples(void **state) {
    (void)state;
    const struct dm_topology topology = {.mns = 2, .cns = 1};
    struct dm_resource resources[] = {
        {.node = 0, .name = "link_out"}, {.node = 1, .name = "link_out"}, {.node = 2, .name = "cores"}};
    double worked_ns[3] = {0};
    struct hx_busy_column columns[HX_BUSY_MAX];
    struct hx_over_time *over_time = hx_over_time_new(100);
    assert_non_null(over_time);
    assert_int_equal(hx_busy_columns(&topology, resources, 3, columns), 2);
    assert_string_equal(columns[0].role, "memory");
    assert_string_equal(columns[1].name, "cores");
    assert_true(hx_over_time_is_due(over_time, 50));
    struct hx_sample sample = {.now_ns = 50, .resources = resources, .resource_count = 3, .since_ns = 50};
    hx_over_time_sample(over_time, &sample, &topology, worked_ns);
    assert_false(hx_over_time_is_due(over_time, 99));
    assert_true(hx_over_time_is_due(over_time, 100));
    /* up to 250: the first memory node worked for 100 of 200 ns, the second for 150 */
    resources[0].busy = 0.5;
    resources[1].busy = 0.75;
    sample.now_ns = 250;
    sample.retries = 7;
    sample.round_trips = 9;
    hx_over_time_sample(over_time, &sample, &topology, worked_ns);
    assert_int_equal(over_time->grid.used, 3);
    const double expected[] = {37.5, 75.0, 37.5};
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(over_time->slices[i].worked_ns[0] - expected[i]) < 1e-9);
        assert_true(over_time->slices[i].worked_ns[1] == 0.0);
    }
    assert_int_equal(over_time->slices[0].retries, 7);
    /* then only the first one: 50 of 50 ns */
    resources[0].busy = 150.0 / 250.0;
    resources[1].busy = 150.0 / 250.0;
    sample.now_ns = 300;
    hx_over_time_sample(over_time, &sample, &topology, worked_ns);
    assert_true(fabs(over_time->slices[2].worked_ns[0] - 87.5) < 1e-9);
    assert_int_equal(over_time->slices[2].retries, 0);
    free(over_time);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_in_the_slice_of_its_moment_however_long_the_run),
        cmocka_unit_test(parts_of_a_run_add_up_to_the_whole),
        cmocka_unit_test(a_run_that_changes_is_not_settled_and_a_noisy_one_is),
        cmocka_unit_test(a_short_run_is_not_judged),
        cmocka_unit_test(percentiles_of_a_slice_are_at_most_a_32nd_too_high),
        cmocka_unit_test(work_is_spread_over_the_slices_between_two_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
