/* SPDX-License-Identifier: Apache-2.0
 *
 * Figure specs: those of the project are valid at every scale, and each kind of mistake is named with file and member.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/opt_json.h"
#include "harness/base/json.h"
#include "harness/study/figure_data.h"
#include "harness/study/figure_points.h"
#include "harness/study/result_set.h"

#define PLOTS DM_SOURCE_DIR "/plots"

static struct hx_figure *must_load(const char *id, const char *scale, struct hx_points *points) {
    struct dm_err err = {.text = ""};
    struct hx_figure *figure;
    if (hx_figure_load(PLOTS, id, scale, &figure, &err) < 0 || hx_figure_points(figure, points, &err) < 0) {
        fail_msg("%s at %s: %s", id, scale, err.text);
    }
    return figure;
}

static void every_spec_is_valid_at_every_scale(void **state) {
    (void)state;
    struct dm_err err = {.text = ""};
    char **ids;
    assert_int_equal(hx_figure_ids(PLOTS, &ids, &err), 0);
    assert_non_null(ids[0]);
    for (size_t i = 0; ids[i] != NULL; i++) {
        const char *const scales[] = {"quick", "paper"};
        for (size_t k = 0; k < 2; k++) {
            struct hx_points *points = hx_points_new("nowhere");
            struct hx_figure *figure = must_load(ids[i], scales[k], points);
            assert_true(points->count > 0);
            hx_figure_free(figure);
            hx_points_free(points);
        }
    }
    hx_figure_ids_free(ids);
}

static void the_latency_figure_needs_no_points_beyond_the_throughput_figure(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("nowhere");
    struct hx_figure *clients = must_load("sherman-clients", "quick", points);
    size_t count = points->count;
    struct hx_figure *latency = must_load("sherman-latency", "quick", points);
    assert_int_equal(points->count, count);
    assert_int_equal(count, clients->panel_count * clients->series_count * clients->case_count);
    hx_figure_free(clients);
    hx_figure_free(latency);
    hx_points_free(points);
}

static json_int_t option_of(const struct hx_figure *figure, const struct hx_points *points, const char *option) {
    return json_integer_value(json_object_get(points->items[figure->points[0]].config, option));
}

static void a_scale_may_divide_some_options_by_numbers_of_their_own(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("nowhere");
    struct hx_figure *paper = must_load("rolex-16a", "paper", points);
    struct hx_figure *quick = must_load("rolex-16a", "quick", points);
    const char *const options[] = {"keys", "cache", "ops", "warmup"};
    for (size_t i = 0; i < 4; i++) {
        double ratio = (double)option_of(paper, points, options[i]) / (double)option_of(quick, points, options[i]);
        assert_true(ratio == hx_figure_divisor(quick, options[i]));
    }
    assert_true(hx_figure_divisor(quick, "ops") > hx_figure_divisor(quick, "keys"));
    assert_true(hx_figure_divisor(quick, "clients") == 1);
    assert_true(hx_figure_divisor(paper, "keys") == 1);
    hx_figure_free(paper);
    hx_figure_free(quick);
    hx_points_free(points);
}

/* A share is the paper's scale divided, and says so; the other scales of the figure do not have it. */
static void a_paper_that_takes_too_much_memory_is_divided_by_its_share(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("nowhere");
    struct hx_figure *paper = must_load("chime-18c", "paper", points);
    size_t count = points->count;
    struct hx_figure *tenth = must_load("chime-18c", "10", points);
    assert_string_equal(paper->scale, "1/10 of paper");
    assert_int_equal(points->count, count); /* they have the same points */
    assert_int_equal(option_of(paper, points, "keys"), 6000000);
    struct hx_figure *whole = must_load("chime-18c", "1", points);
    assert_int_equal(option_of(whole, points, "keys"), 60000000);
    hx_figure_free(paper);
    hx_figure_free(tenth);
    hx_figure_free(whole);
    hx_points_free(points);
}

static bool shows_only_time(const struct hx_figure *figure) {
    bool only = true;
    for (size_t i = 0; i < figure->plot_count; i++) {
        only = only && figure->plots[i].over_time;
    }
    return only;
}

/* By plots/costs.json, thus the same on every machine. Between the bounds the figure's author decides, so that costs
 * that are fitted anew do not change the figures. */
static void quick_figures_have_three_seeds_where_those_take_a_minute_at_most(void **state) {
    (void)state;
    struct dm_err err = {.text = ""};
    char **ids;
    size_t of_three = 0;
    assert_int_equal(hx_figure_ids(PLOTS, &ids, &err), 0);
    for (size_t i = 0; ids[i] != NULL; i++) {
        struct hx_points *points = hx_points_new("nowhere");
        struct hx_figure *figure = must_load(ids[i], "quick", points);
        double three = 0;
        for (size_t slot = 0; slot < hx_figure_slots(figure); slot++) {
            three += 3 * points->items[hx_figure_point(figure, slot, 0)].cost;
        }
        assert_true(three > 0);
        if (figure->repeat == 1 ? three < 50 && !shows_only_time(figure) : figure->repeat != 3 || three > 75) {
            fail_msg("%s: \"seeds\" of scales.quick is %u, and three would take %.0f s", ids[i], figure->repeat, three);
        }
        of_three += figure->repeat == 3;
        hx_figure_free(figure);
        hx_points_free(points);
    }
    assert_true(of_three > 40);
    hx_figure_ids_free(ids);
}

/* Loads sherman-cache's spec with one change, from a folder of its own. */
static void must_refuse_at(const char *scale, const char *path, const char *value_text, const char *reason) {
    char folder[] = "/tmp/figure_test.XXXXXX";
    char name[64], command[96];
    struct dm_err err = {.text = ""};
    struct hx_figure *figure = NULL;
    json_t *spec = dm_json_load(PLOTS "/figures/sherman-cache.json", &err);
    json_t *value = json_loads(value_text, JSON_DECODE_ANY, NULL);
    assert_non_null(spec);
    assert_non_null(value);
    if (strchr(path, '[') == NULL) {
        assert_int_equal(hx_json_put(spec, path, value), 0);
    } else {
        char array[32];
        snprintf(array, sizeof(array), "%.*s", (int)strcspn(path, "["), path);
        json_t *first = json_array_get(json_object_get(spec, array), 0);
        assert_int_equal(hx_json_put(first, strchr(path, ']') + 2, value), 0);
    }
    assert_non_null(mkdtemp(folder));
    snprintf(name, sizeof(name), "%s/systems.json", folder);
    assert_int_equal(symlink(PLOTS "/systems.json", name), 0);
    snprintf(name, sizeof(name), "%s/figures", folder);
    assert_int_equal(mkdir(name, 0700), 0);
    snprintf(name, sizeof(name), "%s/figures/sherman-cache.json", folder);
    assert_int_equal(json_dump_file(spec, name, 0), 0);
    assert_int_equal(hx_figure_load(folder, "sherman-cache", scale, &figure, &err), DM_ERR_INVALID);
    assert_null(figure);
    if (strstr(err.text, name) != err.text || strstr(err.text, reason) == NULL) {
        fail_msg("%s = %s: '%s' does not begin with the file or say '%s'", path, value_text, err.text, reason);
    }
    json_decref(spec);
    json_decref(value);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static void must_refuse(const char *path, const char *value_text, const char *reason) {
    must_refuse_at("quick", path, value_text, reason);
}

static void mistakes_in_a_spec_are_named_with_file_and_member(void **state) {
    (void)state;
    must_refuse("titel", "\"x\"", "unknown member 'titel'; did you mean 'title'?");
    must_refuse("title", "5", "title: must be a string");
    must_refuse("id", "\"other\"", "must be the file's name");
    must_refuse("config", "[]", "config: must be an object");
    must_refuse_at("paper", "scales.paper.share", "7", "scales.paper.share: must be 10, 100 or 1000");
    must_refuse_at("paper", "scales.paper.share", "\"10\"", "share: must be a whole number");
    must_refuse_at("paper", "scales.paper.factor", "10", "unknown member 'factor'");
    must_refuse("scales.quick.share", "10", "unknown member 'share'");
    must_refuse("scales.quick.seeds", "0", "scales.quick.seeds: must be from 1 to 1000");
    must_refuse("scales.quick.seeds", "2.5", "scales.quick.seeds: must be a whole number");
    must_refuse("scales.medium", "{}", "unknown member 'medium'");
    must_refuse("scales.quick", "{\"config\": {}}", "scales.quick: member 'x' is missing");
    must_refuse("scales.quick.x", "[]", "scales.quick.x: must not be empty");
    must_refuse("scales.quick.x", "[1, {}]", "scales.quick.x[1]");
    must_refuse("panels", "[]", "panels: must not be empty");
    must_refuse("panels[0].color", "1", "panels[0]: unknown member 'color'");
    must_refuse("series[0].label", "null", "series[0].label: must be a string");
    must_refuse("x.cases", "[{\"label\": \"all\"}]", "either 'option' or 'cases'");
    must_refuse("plots[0].kind", "\"pie\"", "unknown kind 'pie'");
    must_refuse("plots[0].kind", "\"table\"", "plots[0].kind: a table has no panels");
    must_refuse("plots[0].y_max", "0", "plots[0].y_max: must be positive");
    must_refuse("series[0].style", "\"red\"", "series[0].style: systems.json has no style 'red'");
    must_refuse("plots[0].id", "\"../up\"", "plots[0].id");
    must_refuse("plots[0].y", "[]", "plots[0].y");
    must_refuse("plots[0].y", "[{\"path\": \"a\", \"column\": \"a b\"}]", "plots[0].y[0].column");
    must_refuse("plots[0].y", "[{\"path\": \"a\", \"column\": \"a\", \"over\": [1]}]", "plots[0].y[0].over[0]");
    must_refuse("plots[0].relative_to", "\"none\"", "plots[0].relative_to");
    must_refuse("plots[0].kind", "\"time\"", "needs an 'interval'");
    must_refuse("readings", "[{\"id\": \"a\", \"says\": \"b\"}]", "readings[0]: member 'from' is missing");
    must_refuse("from", "{\"keys\": \"stated: section 1\"}", "is set without provenance");
}

static void a_metric_takes_the_extremes_of_a_column_over_time(void **state) {
    (void)state;
    json_t *result = json_loads("{\"over_time\": {\"a\": [3, 1, 2], \"none\": []}, \"a\": [1, 2]}", 0, NULL);
    static const struct {
        const char *path;
        double value;
    } cases[] = {{"over_time.a.min", 1}, {"over_time.a.max", 3},      {"over_time.a.last", 2},
                 {"over_time.a.2", 2},   {"over_time.none.min", NAN}, {"over_time.b.max", NAN},
                 {"over_time.a", NAN},   {"over_time.min", NAN},      {"a.max", NAN}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hx_fig_metric metric = {.path = cases[i].path, .factor = 10};
        double value = hx_fig_metric_value(&metric, result);
        assert_true(isnan(cases[i].value) ? isnan(value) : value == 10 * cases[i].value);
    }
    json_decref(result);
}

/* The numbers of a paper, in the plot "p" of a figure with panels "a b" and "c", series "s" and "t". */
static void must_refuse_published(const char *item, const char *reason) {
    char text[512];
    snprintf(text, sizeof(text), "[{\"label\": \"paper: x\", \"source\": \"figure 1\", %s}]", item);
    must_refuse("published", text, reason);
}

static void published_numbers_fit_the_figure(void **state) {
    (void)state;
#define XY "\"x\": [1, 2], \"y\": [3, 4]"
    must_refuse("published",
                "[{\"label\": \"x\", \"source\": \"s\", \"plot\": \"throughput\", \"panel\": \"YCSB C\", " XY "}]",
                "published[0]: the label must begin with 'paper: '");
    must_refuse("published", "[{\"label\": \"paper: x\", \"plot\": \"throughput\", " XY "}]", "'source' is missing");
    must_refuse_published("\"plot\": \"none\", " XY, "published[0].plot: the figure has no plot 'none'");
    must_refuse_published("\"plot\": \"throughput\", \"column\": \"none\", " XY, "has no column 'none'");
    must_refuse_published("\"plot\": \"throughput\", \"panel\": \"none\", " XY, "has no panel 'none'");
    must_refuse_published("\"plot\": \"throughput\", \"panel\": \"YCSB C\", \"series\": \"none\", " XY,
                          "has no series 'none'");
    must_refuse_published("\"plot\": \"throughput\", \"panel\": \"YCSB C\", \"x\": [1], \"y\": [3, 4]",
                          "x and y must have as many values");
    must_refuse_published("\"plot\": \"throughput\", \"panel\": \"YCSB C\", \"x\": [\"a\"], \"y\": [3]",
                          "published[0].x[0]: must be a number");
    must_refuse_published("\"plot\": \"throughput\", \"panel\": \"YCSB C\", \"x\": [1], \"y\": [null]",
                          "published[0].y[0]: must be a number");
#undef XY
}

static void a_metric_takes_shares_and_merged_latencies(void **state) {
    (void)state;
    json_t *result = json_loads(
        "{\"counters\": {\"hit\": 3, \"miss\": 1}, \"ops\": {\"get\": {\"latency_ns\": {\"p99\": 8000}}}}", 0, NULL);
    json_t *over = json_loads("[\"counters.hit\", \"counters.miss\"]", 0, NULL);
    struct hx_fig_metric share = {.path = "counters.hit", .over = over, .factor = 100};
    struct hx_fig_metric latency = {.path = "ops.get.latency_ns.p99", .factor = 1e-3};
    struct hx_fig_metric absent = {.path = "ops.scan.latency_ns.p99", .factor = 1};
    assert_true(hx_fig_metric_value(&share, result) == 75);
    assert_true(hx_fig_metric_value(&latency, result) == 8);
    double nothing = hx_fig_metric_value(&absent, result);
    assert_true(nothing != nothing);
    json_decref(result);
    json_decref(over);
}

static void a_metric_of_all_operations_counts_and_weighs_each_once(void **state) {
    (void)state;
    json_t *result =
        json_loads("{\"ops\": {"
                   "\"get\": {\"count\": 300, \"round_trips_mean\": 1, \"phases_ns_mean\": {\"queue\": 8}},"
                   "\"update\": {\"count\": 100, \"round_trips_mean\": 3, \"phases_ns_mean\": {\"log\": 40}},"
                   "\"rmw\": {\"count\": 50, \"round_trips_mean\": 9}}}",
                   0, NULL);
    assert_true(hx_result_number(result, "ops.all.count") == 400);
    assert_true(hx_result_number(result, "ops.all.round_trips_mean") == 1.5);
    assert_true(hx_result_number(result, "ops.all.phases_ns_mean.log") == 10); /* gets have no such phase */
    assert_true(isnan(hx_result_number(result, "ops.all.phases_ns_mean.lgo")));
    assert_true(isnan(hx_result_number(result, "ops.all.verbs_mean.read")));
    assert_true(isnan(hx_result_number(result, "ops.all.latencies")));
    json_decref(result);
}

/* What stands for a number that a result lacks does not stand for a result that is missing. */
static void a_metric_of_a_missing_result_is_none(void **state) {
    (void)state;
    json_t *zero = json_integer(0), *result = json_object();
    struct hx_fig_metric inserts = {.path = "ops.insert.count", .factor = 1, .otherwise = zero};
    assert_true(hx_fig_metric_value(&inserts, result) == 0);
    assert_true(isnan(hx_fig_metric_value(&inserts, NULL)));
    json_decref(result);
    json_decref(zero);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spec_is_valid_at_every_scale),
        cmocka_unit_test(the_latency_figure_needs_no_points_beyond_the_throughput_figure),
        cmocka_unit_test(quick_figures_have_three_seeds_where_those_take_a_minute_at_most),
        cmocka_unit_test(a_paper_that_takes_too_much_memory_is_divided_by_its_share),
        cmocka_unit_test(a_scale_may_divide_some_options_by_numbers_of_their_own),
        cmocka_unit_test(mistakes_in_a_spec_are_named_with_file_and_member),
        cmocka_unit_test(a_metric_takes_the_extremes_of_a_column_over_time),
        cmocka_unit_test(published_numbers_fit_the_figure),
        cmocka_unit_test(a_metric_takes_shares_and_merged_latencies),
        cmocka_unit_test(a_metric_of_all_operations_counts_and_weighs_each_once),
        cmocka_unit_test(a_metric_of_a_missing_result_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
