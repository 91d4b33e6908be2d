/* SPDX-License-Identifier: Apache-2.0
 *
 * Matching and judging two sets of results, on results made up here.
 */
#include "harness/study/compare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct hx_compare_options usual = {.confidence = 0.95, .rounds = 500, .seed = 1};

/* One result of one get; `p99` in ns. */
static void add(struct hx_result_set *set, const char *index, int clients, int seed, const char *workload,
                double throughput, int p99) {
    json_t *result = json_pack("{s:i, s:s, s:{s:s, s:i, s:i, s:s}, s:f, s:{s:{s:i, s:{s:i}, s:f, s:f, s:f}}, s:i}",
                               "schema_version", 1, "time_base", "virtual", "config", "index", index, "clients",
                               clients, "seed", seed, "workload", workload, "throughput_ops_per_s", throughput, "ops",
                               "get", "count", 10, "latency_ns", "p99", p99, "round_trips_mean", 2.0, "bytes_read_mean",
                               100.0, "bytes_written_mean", 20.0, "cache_bytes_per_cn", 1000);
    assert_non_null(result);
    set->items = realloc(set->items, (set->count + 1) * sizeof(*set->items));
    set->names = realloc(set->names, (set->count + 1) * sizeof(*set->names));
    set->names[set->count] = strdup(index);
    set->items[set->count++] = result;
}

static const struct hx_compare_metric *metric_of(const struct hx_compare_point *point, const char *name) {
    for (size_t i = 0; i < point->metric_count; i++) {
        if (strcmp(point->metrics[i].name, name) == 0) {
            return &point->metrics[i];
        }
    }
    fail_msg("no metric %s", name);
    return NULL;
}

static void points_are_matched_by_what_varies(void **state) {
    (void)state;
    struct hx_result_set a = {0}, b = {0};
    struct hx_compare *compare;
    struct dm_err err = {.text = ""};
    for (int seed = 1; seed <= 4; seed++) {
        add(&a, "one", 8, seed, "c", 100 + seed, 500);
        add(&a, "one", 16, seed, "c", 200 + seed, 800);
        add(&b, "two", 16, seed, "c", 400 + 2 * seed, 880);
    }
    add(&b, "two", 32, 1, "c", 1, 1);
    assert_int_equal(hx_compare_make(&a, &b, &usual, &compare, &err), 0);
    assert_int_equal(compare->point_count, 1);
    assert_string_equal(compare->points[0].label, "clients=16");
    assert_int_equal(compare->only_a, 4);
    assert_int_equal(compare->only_b, 1);
    assert_non_null(json_object_get(compare->differences, "index"));
    assert_int_equal(json_object_size(compare->differences), 1);
    const struct hx_compare_metric *throughput = metric_of(&compare->points[0], "throughput");
    assert_true(fabs(throughput->ratio - 2.0) < 1e-12);
    assert_true(throughput->interval.low <= 2 && throughput->interval.high >= 2);
    assert_true(fabs(throughput->test.p - 2.0 / 70) < 1e-12);
    assert_true(throughput->delta == 1);
    assert_true(metric_of(&compare->points[0], "get.bytes")->a == 120);
    struct hx_compare_limit limit;
    assert_int_equal(hx_compare_limit_parse("p99 > 1.05", &limit, &err), 0);
    assert_true(hx_compare_limit_holds(&limit, metric_of(&compare->points[0], "get.p99"), true));
    assert_false(hx_compare_limit_holds(&limit, throughput, false));
    assert_int_equal(hx_compare_limit_parse("get.p99>=1.1", &limit, &err), 0);
    assert_true(hx_compare_limit_holds(&limit, metric_of(&compare->points[0], "get.p99"), false));
    /* Out of nothing any value is too much, with an interval or without. */
    const struct hx_compare_metric grown = {.name = "cache_bytes", .b = 5, .ratio = INFINITY, .interval = {NAN, NAN}};
    assert_int_equal(hx_compare_limit_parse("cache_bytes > 1.05", &limit, &err), 0);
    assert_true(hx_compare_limit_holds(&limit, &grown, false));
    assert_true(hx_compare_limit_holds(&limit, &grown, true));
    assert_int_equal(hx_compare_limit_parse("throughput < 0.9", &limit, &err), 0);
    assert_false(hx_compare_limit_holds(&limit, throughput, false));
    hx_compare_free(compare);
    hx_result_set_fini(&a);
    hx_result_set_fini(&b);
}

static void must_refuse(struct hx_result_set *a, struct hx_result_set *b, const char *reason) {
    struct hx_compare *compare;
    struct dm_err err = {.text = ""};
    assert_int_equal(hx_compare_make(a, b, &usual, &compare, &err), DM_ERR_INVALID);
    if (strstr(err.text, reason) == NULL) {
        fail_msg("'%s' does not say '%s'", err.text, reason);
    }
}

static void sets_of_different_kinds_are_refused_unless_forced(void **state) {
    (void)state;
    struct hx_result_set a = {0}, b = {0};
    struct hx_compare *compare;
    struct dm_err err = {.text = ""};
    add(&a, "one", 8, 1, "a", 100, 500);
    add(&b, "one", 8, 1, "c", 100, 500);
    must_refuse(&a, &b, "workload is \"a\" in A and \"c\" in B");
    json_object_set_new(b.items[0], "time_base", json_string("real"));
    must_refuse(&a, &b, "time_base");
    json_object_set_new(b.items[0], "schema_version", json_integer(2));
    must_refuse(&a, &b, "schema_version");
    struct hx_compare_options forced = usual;
    forced.force = true;
    assert_int_equal(hx_compare_make(&a, &b, &forced, &compare, &err), 0);
    assert_int_equal(compare->point_count, 1);
    hx_compare_free(compare);
    hx_result_set_fini(&a);
    hx_result_set_fini(&b);
}

static void points_that_no_common_option_distinguishes_are_refused(void **state) {
    (void)state;
    struct hx_result_set a = {0}, b = {0};
    add(&a, "one", 8, 1, "c", 100, 500);
    add(&a, "one", 8, 1, "c", 100, 500);
    add(&b, "two", 8, 1, "c", 100, 500);
    json_object_set_new(json_object_get(a.items[0], "config"), "set", json_pack("{s:i}", "span", 64));
    must_refuse(&a, &b, "two points");
    add(&b, "two", 9, 1, "c", 100, 500);
    json_object_set_new(json_object_get(b.items[0], "config"), "clients", json_integer(10));
    json_object_del(json_object_get(a.items[0], "config"), "set");
    must_refuse(&a, &b, "no point in common");
    hx_result_set_fini(&a);
    hx_result_set_fini(&b);
}

static void conditions_without_a_metric_are_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"", "p99", "p99 1.05", "p99 > x", "p99 > 1 2", "p98 > 1", "> 1", "p99 > inf"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct hx_compare_limit limit;
        assert_int_equal(hx_compare_limit_parse(texts[i], &limit, NULL), DM_ERR_INVALID);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_matched_by_what_varies),
        cmocka_unit_test(sets_of_different_kinds_are_refused_unless_forced),
        cmocka_unit_test(points_that_no_common_option_distinguishes_are_refused),
        cmocka_unit_test(conditions_without_a_metric_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
