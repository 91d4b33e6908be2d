/* SPDX-License-Identifier: Apache-2.0
 *
 * The fabric model against published measurements: all points except the one that docs/fabric-model.md explains;
 * micro-benchmarks in real time; and a profile fitted to a known fabric.
 */
#include "harness/lab/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/core/profile.h"

static bool is_known_miss(const struct hx_published *point) {
    return strcmp(point->id, "V13") == 0 && strstr(point->what, "keys of 8 B");
}

static void every_published_point_is_within_its_tolerance_but_the_one_that_is_explained(void **state) {
    (void)state;
    for (size_t i = 0; i < hx_published_count; i++) {
        double model = 0;
        struct dm_err err = {0};
        assert_int_equal(hx_published_measure(&hx_published_points[i], &model, &err), 0);
        if (hx_published_holds(&hx_published_points[i], model) == is_known_miss(&hx_published_points[i])) {
            fail_msg("%s, %s: published %g, model %g", hx_published_points[i].id, hx_published_points[i].what,
                     hx_published_points[i].published, model);
        }
    }
}

static void every_curve_has_points_and_every_point_s_curve_is_known(void **state) {
    (void)state;
    unsigned used[32] = {0};
    for (size_t i = 0; i < hx_published_count; i++) {
        bool found = hx_published_points[i].curve == NULL;
        for (size_t j = 0; j < hx_published_curve_count && hx_published_points[i].curve; j++) {
            bool same = strcmp(hx_published_points[i].curve, hx_published_curves[j].name) == 0;
            used[j] += same;
            found = found || same;
        }
        assert_true(found);
    }
    for (size_t j = 0; j < hx_published_curve_count; j++) {
        assert_true(used[j] >= 2);
    }
}

static void a_bound_from_below_has_no_upper_end(void **state) {
    (void)state;
    struct hx_published point = {.published = 10, .tolerance = 0.1, .bound = HX_AT_LEAST};
    assert_true(hx_published_holds(&point, 100));
    assert_false(hx_published_holds(&point, 8.9));
    point.bound = HX_NEAR;
    assert_false(hx_published_holds(&point, 11.1));
    assert_true(hx_published_holds(&point, 10.9));
}

static void a_micro_benchmark_runs_in_real_time(void **state) {
    (void)state;
    struct hx_micro_fabric fabric = {.transport = "local", .seed = 1, .threads_max = 2};
    struct hx_micro micro = {.verb = DM_VERB_FAA, .bytes = 8, .machines = 2, .threads = 8, .count = 4000};
    struct hx_micro_result result = {0};
    struct dm_err err = {0};
    assert_int_equal(hx_micro_run(&fabric, &micro, &result, &err), 0);
    assert_true(result.mops > 0);
    micro = (struct hx_micro){.kind = HX_MICRO_CALL, .bytes = 8, .count = 200};
    assert_int_equal(hx_micro_run(&fabric, &micro, &result, &err), 0);
    assert_true(result.latency_us > 0);
}

static void more_on_chip_memory_than_there_is_is_unsupported(void **state) {
    (void)state;
    struct hx_micro_fabric fabric = {.transport = "sim", .profile = "cx4-100g", .seed = 1, .is_virtual = true};
    struct hx_micro micro = {.verb = DM_VERB_FAA, .bytes = 8, .space = DM_CHIP, .addresses = 8, .stride = 8};
    struct hx_micro_result result;
    struct dm_err err = {0};
    assert_int_equal(hx_micro_run(&fabric, &micro, &result, &err), DM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "on-chip"));
}

static void a_profile_fitted_to_a_simulated_fabric_has_its_rates_and_latency(void **state) {
    (void)state;
    char path[64];
    snprintf(path, sizeof(path), "/tmp/dm-fit-%d.json", (int)getpid());
    struct hx_micro_fabric fabric = {.transport = "sim", .profile = "cx5-100g", .seed = 1, .is_virtual = true};
    struct dm_err err = {0};
    assert_int_equal(hx_fit(&fabric, "cx6-100g", path, &err), 0);
    struct dm_profile fitted, truth;
    assert_int_equal(dm_profile_load(path, &fitted, &err), 0);
    assert_int_equal(dm_profile_load("cx5-100g", &truth, &err), 0);
    struct hx_micro read = {.verb = DM_VERB_READ, .bytes = 64, .count = 400};
    struct hx_micro_result here, there;
    assert_int_equal(hx_micro_run(&fabric, &read, &here, &err), 0);
    fabric.profile = path;
    assert_int_equal(hx_micro_run(&fabric, &read, &there, &err), 0);
    remove(path);
    assert_true(fitted.rx_read_mops > 0.97 * truth.rx_read_mops && fitted.rx_read_mops < 1.03 * truth.rx_read_mops);
    assert_true(fitted.rx_atomic_mops > 0.97 * truth.rx_atomic_mops);
    assert_true(fitted.atomic_hold_dram_ns > 460 && fitted.atomic_hold_dram_ns < 480);
    assert_true(there.latency_us > 0.98 * here.latency_us && there.latency_us < 1.02 * here.latency_us);
}

static void cpu_costs_are_positive_and_name_numbers_of_a_profile(void **state) {
    (void)state;
    json_t *costs = NULL;
    struct dm_err err = {0};
    assert_int_equal(hx_cpu_costs(&costs, &err), 0);
    char path[64];
    snprintf(path, sizeof(path), "/tmp/dm-cpu-%d.json", (int)getpid());
    assert_int_equal(hx_profile_write(path, "cx6-100g", "test", "test", costs, &err), 0);
    struct dm_profile profile;
    assert_int_equal(dm_profile_load(path, &profile, &err), 0);
    remove(path);
    assert_true(profile.work_hash_ns > 0 && profile.work_dram_access_ns > profile.work_hash_ns);
    assert_true(profile.work_hash_ns == json_real_value(json_object_get(costs, "work_hash_ns")));
    json_decref(costs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_published_point_is_within_its_tolerance_but_the_one_that_is_explained),
        cmocka_unit_test(every_curve_has_points_and_every_point_s_curve_is_known),
        cmocka_unit_test(a_bound_from_below_has_no_upper_end),
        cmocka_unit_test(a_micro_benchmark_runs_in_real_time),
        cmocka_unit_test(more_on_chip_memory_than_there_is_is_unsupported),
        cmocka_unit_test(a_profile_fitted_to_a_simulated_fabric_has_its_rates_and_latency),
        cmocka_unit_test(cpu_costs_are_positive_and_name_numbers_of_a_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
