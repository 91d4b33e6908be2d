/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates of time and memory: sums that grow with what a point has, a shared load counted once, and correction by
 * results that are there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "harness/points/points_cost.h"
#include "harness/points/points_host.h"
#include "harness/points/points_plan.h"
#include "harness/points/points_progress.h"

static const struct hx_points_options one_job = {.jobs = 1};

static size_t add(struct hx_points *points, json_t *spec) {
    struct dm_err err = {.text = ""};
    size_t index = 0;
    if (hx_points_add(points, spec, "test", "a point", &index, &err) < 0) {
        fail_msg("%s", err.text);
    }
    json_decref(spec);
    return index;
}

static json_t *spec_of(const char *index, const char *keys, const char *workload, int clients) {
    return json_pack("{s:s, s:s, s:s, s:s, s:i}", "index", index, "keys", keys, "workload", workload, "ops", "100K",
                     "clients", clients);
}

static void more_keys_operations_and_clients_cost_more(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("/nowhere");
    struct hx_cost small, large;
    size_t first = add(points, spec_of("chime", "1M", "c", 10)), second = add(points, spec_of("chime", "2M", "c", 10));
    hx_cost_of(points->items[first].config, points->items[first].hash, &small);
    hx_cost_of(points->items[second].config, points->items[second].hash, &large);
    assert_true(small.load_s > 0 && small.run_s > 0);
    assert_true(large.load_s > small.load_s);
    assert_true(large.run_s == small.run_s);
    assert_true(large.bytes > small.bytes);
    size_t third = add(points, spec_of("chime", "1M", "e", 20));
    hx_cost_of(points->items[third].config, points->items[third].hash, &large);
    assert_true(large.run_s > small.run_s);
    assert_true(large.bytes > small.bytes);
    hx_points_free(points);
}

/* costs.json has no cost of a delete, which would then take no time. */
static void deletes_cost_what_updates_do(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("/nowhere");
    double run_s[3];
    static const char *const mixes[] = {"read=1", "update=1", "delete=1"};
    for (size_t i = 0; i < 3; i++) {
        struct hx_cost cost;
        json_t *spec = spec_of("rolex", "1M", "a", 10);
        json_object_set_new(spec, "mix", json_string(mixes[i]));
        size_t at = add(points, spec);
        hx_cost_of(points->items[at].config, points->items[at].hash, &cost);
        run_s[i] = cost.run_s;
    }
    assert_true(run_s[1] > run_s[0]);
    assert_true(run_s[2] == run_s[1]);
    hx_points_free(points);
}

static void an_index_without_past_points_costs_as_others_do(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("/nowhere");
    struct hx_cost cost;
    size_t at = add(points, spec_of("null", "1M", "c", 10));
    hx_cost_of(points->items[at].config, points->items[at].hash, &cost);
    assert_true(cost.run_s > 0 && cost.bytes > 1e6);
    hx_points_free(points);
}

/* Both read workloads load the same index; in groups of two they load it once. */
static void points_that_share_a_load_have_it_once(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("/nowhere");
    struct hx_points_plan plan, single;
    size_t first = add(points, spec_of("chime", "1M", "c", 10));
    assert_int_equal(hx_points_scan(points), 1);
    hx_points_plan(points, &one_job, NULL, 0, &single);
    add(points, spec_of("chime", "1M", "b", 10));
    add(points, spec_of("fg", "1M", "c", 10));
    add(points, spec_of("fg", "1M", "b", 10));
    assert_int_equal(hx_points_scan(points), 4);
    hx_points_plan(points, &one_job, NULL, 0, &plan);
    double all = 0;
    for (size_t i = 0; i < 4; i++) {
        all += points->items[i].cost;
    }
    assert_int_equal(plan.to_run, 4);
    assert_true(plan.work_s < all);
    assert_true(plan.work_s > single.work_s);
    assert_true(plan.memory_bytes > single.memory_bytes);
    hx_points_plan(points, &one_job, &first, 1, &plan);
    assert_true(plan.work_s == single.work_s && plan.points == 1);
    hx_points_free(points);
}

/* A copy of what the second point changes would not fit beside the loaded index. */
static void points_too_large_to_share_a_load_run_alone(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("/nowhere");
    struct hx_points_plan shared, alone;
    add(points, spec_of("chime", "1M", "c", 10));
    add(points, spec_of("chime", "1M", "b", 10));
    assert_int_equal(hx_points_scan(points), 2);
    points->items[0].memory_bytes = points->items[1].memory_bytes = hx_points_memory() / 4;
    hx_points_plan(points, &one_job, NULL, 0, &shared);
    points->items[0].memory_bytes = points->items[1].memory_bytes = hx_points_memory();
    hx_points_plan(points, &one_job, NULL, 0, &alone);
    assert_true(alone.work_s > shared.work_s);
    assert_int_equal(alone.memory_bytes, points->items[0].memory_bytes);
    hx_points_free(points);
}

/* Two that fit one at a time, and two that fit beside one of those: as long as two, not three. */
static void points_run_beside_one_that_waits_for_memory(void **state) {
    (void)state;
    static const struct hx_points_options two_jobs = {.jobs = 2};
    struct hx_points *points = hx_points_new("/nowhere");
    struct hx_points_plan plan;
    for (int seed = 1; seed <= 4; seed++) {
        json_t *spec = spec_of("chime", "1M", "c", 10);
        json_object_set_new(spec, "seed", json_integer(seed));
        add(points, spec);
    }
    assert_int_equal(hx_points_scan(points), 4);
    uint64_t memory = hx_points_memory();
    for (size_t i = 0; i < 4; i++) {
        points->items[i].memory_bytes = i < 2 ? memory / 2 + memory / 8 : memory / 8;
    }
    hx_points_plan(points, &two_jobs, NULL, 0, &plan);
    assert_true(plan.elapsed_s > 0.499 * plan.work_s && plan.elapsed_s < 0.501 * plan.work_s);
    hx_points_free(points);
}

static void results_that_are_there_correct_the_estimate(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("/nowhere");
    struct hx_points_plan before, after;
    for (int clients = 1; clients <= 4; clients++) {
        add(points, spec_of("fg", "1M", "c", clients));
    }
    size_t last = 3;
    hx_points_scan(points);
    hx_points_plan(points, &one_job, &last, 1, &before);
    for (size_t i = 0; i < 3; i++) {
        points->items[i].state = HX_POINT_THERE;
        points->items[i].past_s = 3 * points->items[i].cost;
    }
    hx_points_plan(points, &one_job, &last, 1, &after);
    assert_true(before.work_s > 0);
    assert_true(after.work_s > 2.99 * before.work_s && after.work_s < 3.01 * before.work_s);
    hx_points_free(points);
}

/* Four short points that took 100 times what was estimated, and a long one that took twice: as the long one. */
static void short_results_do_not_correct_long_points(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("/nowhere");
    struct hx_points_plan before, after;
    for (int clients = 1; clients <= 6; clients++) {
        json_t *spec = spec_of("fg", "1M", "c", clients);
        json_object_set_new(spec, "ops", json_string(clients <= 4 ? "1K" : "10M"));
        add(points, spec);
    }
    size_t last = 5;
    hx_points_scan(points);
    hx_points_plan(points, &one_job, &last, 1, &before);
    for (size_t i = 0; i < 5; i++) {
        points->items[i].state = HX_POINT_THERE;
        points->items[i].past_s = (i < 4 ? 100 : 2) * points->items[i].cost;
    }
    hx_points_plan(points, &one_job, &last, 1, &after);
    assert_true(before.work_s > 0);
    assert_true(after.work_s > 1.99 * before.work_s && after.work_s < 2.01 * before.work_s);
    hx_points_free(points);
}

static void a_point_that_does_not_fit_is_counted(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("/nowhere");
    struct hx_points_plan plan;
    char text[160];
    add(points, spec_of("chime", "10G", "c", 10));
    hx_points_scan(points);
    points->items[0].memory_bytes = UINT64_C(1) << 60;
    hx_points_plan(points, &one_job, NULL, 0, &plan);
    assert_int_equal(plan.too_large, 1);
    hx_points_plan_text(&plan, text, sizeof(text));
    assert_non_null(strstr(text, "1 to run, about "));
    assert_non_null(strstr(text, "1 of them more than the "));
    hx_points_free(points);
}

/* Before a point is done the plan says how long; then 100 s for one of ten points, with two half done, leave 400. */
static void what_is_left_counts_points_that_run(void **state) {
    (void)state;
    struct hx_points_progress progress;
    hx_points_progress_init(&progress, 10, 1000, 700);
    assert_true(hx_points_progress_left(&progress, 200, 50) == 650);
    assert_true(hx_points_progress_left(&progress, 200, 800) < 0);
    hx_points_progress_step(&progress, 100);
    assert_true(hx_points_progress_left(&progress, 200, 100) == 400);
    hx_points_progress_step(&progress, 900);
    assert_true(hx_points_progress_left(&progress, 0, 500) == 0);
}

static void seconds_are_printed_in_two_units_at_most(void **state) {
    (void)state;
    char text[32];
    hx_seconds_text(42.4, text, sizeof(text));
    assert_string_equal(text, "42 s");
    hx_seconds_text(190, text, sizeof(text));
    assert_string_equal(text, "3 min 10 s");
    hx_seconds_text(7500, text, sizeof(text));
    assert_string_equal(text, "2 h 5 min");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_keys_operations_and_clients_cost_more),
        cmocka_unit_test(deletes_cost_what_updates_do),
        cmocka_unit_test(an_index_without_past_points_costs_as_others_do),
        cmocka_unit_test(points_that_share_a_load_have_it_once),
        cmocka_unit_test(points_too_large_to_share_a_load_run_alone),
        cmocka_unit_test(points_run_beside_one_that_waits_for_memory),
        cmocka_unit_test(results_that_are_there_correct_the_estimate),
        cmocka_unit_test(short_results_do_not_correct_long_points),
        cmocka_unit_test(a_point_that_does_not_fit_is_counted),
        cmocka_unit_test(what_is_left_counts_points_that_run),
        cmocka_unit_test(seconds_are_printed_in_two_units_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
