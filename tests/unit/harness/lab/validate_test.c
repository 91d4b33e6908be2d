/* SPDX-License-Identifier: Apache-2.0
 *
 * The fabric model against published measurements: all points except those that name a cause; micro-benchmarks in
 * real time; and a profile fitted to a known fabric.
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

#include "common/compiler.h"
#include "common/opt_json.h"
#include "in_part.h"
#include "transport/core/profile.h"
#include "transport/fabric.h"

static void every_published_point_is_within_its_tolerance_or_out_of_it_for_the_cause_that_it_names(void **state) {
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < hx_published_count; i++) {
        double model = 0;
        struct dm_err err = {0};
        assert_int_equal(hx_published_measure(&hx_published_points[i], &model, &err), 0);
        const struct hx_published *point = &hx_published_points[i];
        bool explained = hx_published_judge(point, model) == HX_EXPLAINED;
        if (hx_published_judge(point, model) == HX_OUT || explained != (point->cause != NULL)) {
            print_error("%s, %s (%s): published %g, model %g%s\n", point->id, point->what, point->profile,
                        point->published, model, point->cause ? ": its cause is gone" : "");
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
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

static bool is_point(const char *id) {
    bool found = false;
    for (size_t i = 0; i < hx_published_count; i++) {
        found = found || strcmp(hx_published_points[i].id, id) == 0;
    }
    return found;
}

static void every_point_that_a_profile_names_exists(void **state) {
    (void)state;
    size_t named = 0;
    for (const char *const *name = dm_profile_names(); *name; name++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/transport/profiles/%s.json", DM_SOURCE_DIR, *name);
        struct dm_err err = {0};
        json_t *top = dm_json_load(path, &err), *number, *point;
        assert_non_null(top);
        const char *parameter;
        json_object_foreach(json_object_get(top, "parameters"), parameter, number) {
            size_t i;
            json_array_foreach(json_object_get(number, "points"), i, point) {
                if (!is_point(json_string_value(point))) {
                    fail_msg("%s: %s: there is no point %s", *name, parameter, json_string_value(point));
                }
                named++;
            }
        }
        json_decref(top);
    }
    assert_true(named > 100);
}

static void a_bound_from_below_has_no_upper_end(void **state) {
    (void)state;
    struct hx_published point = {.published = 10, .tolerance = 0.1, .bound = HX_AT_LEAST};
    assert_true(hx_published_holds(&point, 100));
    assert_false(hx_published_holds(&point, 8.9));
    point.bound = HX_NEAR;
    assert_false(hx_published_holds(&point, 11.1));
    assert_true(hx_published_holds(&point, 10.9));
    assert_int_equal(hx_published_judge(&point, 11.1), HX_OUT);
    point.cause = "known";
    assert_int_equal(hx_published_judge(&point, 11.1), HX_EXPLAINED);
    assert_int_equal(hx_published_judge(&point, 10.9), HX_WITHIN);
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

static void clients_of_a_thread_that_wait_for_each_other_make_fewer_verbs_than_those_that_do_not(void **state) {
    (void)state;
    struct hx_micro_fabric fabric = {.transport = "sim", .profile = "cx6-100g", .seed = 1, .is_virtual = true};
    struct hx_micro micro = {.verb = DM_VERB_READ, .bytes = 8, .threads = 2, .coroutines = 16, .count = 6400};
    struct hx_micro_result open = {0}, closed = {0};
    struct dm_err err = {0};
    assert_int_equal(hx_micro_run(&fabric, &micro, &open, &err), 0);
    micro.closed = true;
    assert_int_equal(hx_micro_run(&fabric, &micro, &closed, &err), 0);
    assert_true(closed.mops < 0.9 * open.mops && closed.mops > 0.3 * open.mops);
    assert_true(closed.p50_us > 0 && closed.p99_us >= closed.p50_us);
    /* Sixteen verbs of each of two threads in every round. */
    assert_true(closed.mops > 0.97 * 32 / closed.latency_us && closed.mops < 1.03 * 32 / closed.latency_us);
}

static void a_mixture_is_between_its_parts(void **state) {
    (void)state;
    struct hx_micro_fabric fabric = {.transport = "sim", .profile = "cx6-100g", .seed = 1, .is_virtual = true};
    struct hx_micro micro = {.verb = DM_VERB_READ, .bytes = 8, .machines = 4, .threads = 16, .coroutines = 8};
    struct hx_micro_result read = {0}, cas = {0}, both = {0};
    struct dm_err err = {0};
    assert_int_equal(hx_micro_run(&fabric, &micro, &read, &err), 0);
    micro.other = DM_VERB_CAS;
    micro.other_percent = 50;
    assert_int_equal(hx_micro_run(&fabric, &micro, &both, &err), 0);
    micro.verb = DM_VERB_CAS;
    assert_int_equal(hx_micro_run(&fabric, &micro, &cas, &err), 0);
    assert_true(cas.mops < 0.8 * read.mops);
    assert_true(both.mops > cas.mops && both.mops < 0.9 * read.mops);
}

static void skew_slows_atomics_and_updates_without_a_lock(void **state) {
    (void)state;
    struct hx_micro_fabric fabric = {.transport = "sim", .profile = "cx6-100g", .seed = 1, .is_virtual = true};
    struct hx_micro micro = {.kind = HX_MICRO_SWAP, .bytes = 8, .threads = 16, .coroutines = 8, .ranks = 1000000};
    struct hx_micro_result even = {0}, skewed = {0};
    struct dm_err err = {0};
    assert_int_equal(hx_micro_run(&fabric, &micro, &even, &err), 0);
    micro.skew = 0.99;
    assert_int_equal(hx_micro_run(&fabric, &micro, &skewed, &err), 0);
    assert_true(skewed.mops < 0.7 * even.mops);
    assert_true(skewed.p99_us > 3 * skewed.p50_us);
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
    assert_true(fitted.rx_atomic_mops < 1.03 * truth.rx_atomic_mops);
    assert_true(fitted.atomics_in_progress > 0.9 * truth.atomics_in_progress);
    assert_true(fitted.atomics_in_progress < 1.1 * truth.atomics_in_progress);
    assert_true(fitted.atomic_hold_dram_ns > 0.98 * truth.atomic_hold_dram_ns);
    assert_true(fitted.atomic_hold_dram_ns < 1.02 * truth.atomic_hold_dram_ns);
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
        cmocka_unit_test(every_curve_has_points_and_every_point_s_curve_is_known),
        cmocka_unit_test(every_point_that_a_profile_names_exists),
        cmocka_unit_test(a_bound_from_below_has_no_upper_end),
        cmocka_unit_test(a_micro_benchmark_runs_in_real_time),
        cmocka_unit_test(clients_of_a_thread_that_wait_for_each_other_make_fewer_verbs_than_those_that_do_not),
        cmocka_unit_test(a_mixture_is_between_its_parts),
        cmocka_unit_test(skew_slows_atomics_and_updates_without_a_lock),
        cmocka_unit_test(more_on_chip_memory_than_there_is_is_unsupported),
        cmocka_unit_test(a_profile_fitted_to_a_simulated_fabric_has_its_rates_and_latency),
        cmocka_unit_test(cpu_costs_are_positive_and_name_numbers_of_a_profile),
        /* the next one is of results: all measurements of the network */
        cmocka_unit_test(every_published_point_is_within_its_tolerance_or_out_of_it_for_the_cause_that_it_names),
    };
    return test_run_in_part("validate", tests, DM_ARRAY_LEN(tests), 1);
}
