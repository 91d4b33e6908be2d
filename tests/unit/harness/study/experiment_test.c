/* SPDX-License-Identifier: Apache-2.0
 *
 * Published experiments: those of the project can be run at both scales, every kind of mistake in a file is refused by
 * file and member, and the arithmetic of ratios, verdicts, orders and typical factors.
 */
#include "harness/study/experiment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/opt_json.h"
#include "harness/base/json.h"
#include "harness/study/figure.h"

#define PLOTS DM_SOURCE_DIR "/plots"

static void every_experiment_of_the_project_can_be_run_at_both_scales(void **state) {
    (void)state;
    struct dm_err err = {.text = ""};
    char **ids;
    assert_int_equal(hx_spec_ids(PLOTS, "end_to_end", &ids, &err), 0);
    assert_non_null(ids[0]);
    for (size_t i = 0; ids[i] != NULL; i++) {
        for (int paper = 0; paper < 2; paper++) {
            struct hx_points *points = hx_points_new("nowhere");
            struct hx_experiment *experiment = NULL;
            if (hx_experiment_load(PLOTS, ids[i], &experiment, &err) < 0 ||
                hx_experiment_runs(experiment, paper, points, &err) < 0) {
                fail_msg("%s: %s", ids[i], err.text);
            }
            hx_experiment_free(experiment);
            hx_points_free(points);
        }
    }
    hx_figure_ids_free(ids);
}

/* ---- mistakes --------------------------------------------------------------------------------------------------- */

static const char good[] =
    "{'id': 'trees', 'title': 'Trees', 'source': 'a paper', 'settings': 'its section 5', 'differs': 'fewer keys',"
    " 'config': {'index': 'sherman', 'keys': '2K', 'ops': '4K', 'clients': 4}, 'quick': {'keys': '1K', 'ops': '2K'},"
    " 'points': ["
    "  {'label': 'reads', 'metric': 'mops', 'bound': 'bandwidth', 'published': 3, 'config': {'workload': 'c'}},"
    "  {'label': 'updates', 'metric': 'mops', 'bound': 'other', 'published': 2, 'config': {'workload': 'a'}},"
    "  {'label': 'a step', 'metric': 'us_a_round_trip', 'bound': 'other', 'published': 2.2,"
    "   'config': {'workload': 'c', 'clients': 1}, 'against': {'set': {'cache_levels': 0}}},"
    "  {'label': 'radix', 'metric': 'mops', 'bound': 'other', 'published': 1, 'not_run': 'is not built'}],"
    " 'orders': [['reads', 'updates', 'radix']]}";

static json_t *spec_of(const char *text) {
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *quote = strchr(copy, '\''); quote != NULL; quote = strchr(quote, '\'')) {
        *quote = '"';
    }
    json_error_t where;
    json_t *spec = json_loads(copy, JSON_DECODE_ANY, &where);
    if (spec == NULL) {
        fail_msg("%s: %s", copy, where.text);
    }
    free(copy);
    return spec;
}

/* Loads a spec from a folder of its own. */
static int load(json_t *spec, struct hx_experiment **experiment, struct dm_err *err) {
    char folder[] = "/tmp/experiment_test.XXXXXX", name[96], command[128];
    assert_non_null(mkdtemp(folder));
    snprintf(name, sizeof(name), "%s/end_to_end", folder);
    assert_int_equal(mkdir(name, 0700), 0);
    snprintf(name, sizeof(name), "%s/end_to_end/trees.json", folder);
    assert_int_equal(json_dump_file(spec, name, 0), 0);
    int rc = hx_experiment_load(folder, "trees", experiment, err);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    json_decref(spec);
    return rc;
}

static struct hx_experiment *must_load(json_t *spec) {
    struct dm_err err = {.text = ""};
    struct hx_experiment *experiment = NULL;
    if (load(spec, &experiment, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return experiment;
}

/* `object`: the experiment, or one of its points. An empty value removes the member. */
static void must_refuse(int point, const char *member, const char *value_text, const char *reason) {
    struct dm_err err = {.text = ""};
    struct hx_experiment *experiment = NULL;
    json_t *spec = spec_of(good);
    json_t *object = point < 0 ? spec : json_array_get(json_object_get(spec, "points"), (size_t)point);
    if (value_text[0] == '\0') {
        assert_int_equal(json_object_del(object, member), 0);
    } else {
        assert_int_equal(json_object_set_new(object, member, spec_of(value_text)), 0);
    }
    assert_int_equal(load(spec, &experiment, &err), DM_ERR_INVALID);
    assert_null(experiment);
    if (strstr(err.text, "/end_to_end/trees.json") == NULL || strstr(err.text, reason) == NULL ||
        strchr(err.text, '\n') != NULL) {
        fail_msg("%s = %s: '%s' does not name the file or '%s'", member, value_text, err.text, reason);
    }
}

static void every_kind_of_mistake_is_refused_by_file_and_member(void **state) {
    (void)state;
    hx_experiment_free(must_load(spec_of(good)));
    must_refuse(-1, "titel", "'x'", "unknown member 'titel'; did you mean 'title'?");
    must_refuse(-1, "source", "", "member 'source' is missing");
    must_refuse(-1, "source", "''", "source: must not be empty");
    must_refuse(-1, "settings", "7", "settings: must be a string");
    must_refuse(-1, "id", "'bush'", "id: 'bush' must be the file's name");
    must_refuse(-1, "config", "[]", "config: must be an object");
    must_refuse(-1, "quick", "", "member 'quick' is missing");
    must_refuse(-1, "points", "[]", "points: must not be empty");
    must_refuse(-1, "points", "[5]", "points[0]: must be an object");
    must_refuse(0, "lable", "'x'", "points[0]: unknown member 'lable'");
    must_refuse(1, "label", "", "points[1]: member 'label' is missing");
    must_refuse(1, "label", "'reads'", "points[1].label: 'reads' is the label of points[0]");
    must_refuse(0, "metric", "'mips'", "points[0].metric: unknown metric 'mips' (did you mean 'mops'?");
    must_refuse(0, "bound", "'cpu'", "points[0].bound: unknown bound 'cpu'");
    must_refuse(0, "bound", "", "points[0]: member 'bound' is missing");
    must_refuse(0, "published", "", "points[0]: member 'published' is missing");
    must_refuse(0, "published", "'3'", "points[0].published: must be a number");
    must_refuse(0, "published", "0", "points[0].published: 0 is not above 0");
    must_refuse(0, "published", "-2", "points[0].published: -2 is not above 0");
    must_refuse(0, "published", "1e7", "points[0].published: 1e+07 is not above 0");
    must_refuse(0, "config", "7", "points[0].config: must be an object");
    must_refuse(0, "cause", "''", "points[0].cause: must not be empty");
    must_refuse(3, "cause", "'it is slow'", "points[3].cause: a point that is not run has none");
    must_refuse(3, "not_run", "true", "points[3].not_run: must be a string");
    must_refuse(2, "against", "", "points[2].against: is for the metric of two runs");
    must_refuse(0, "against", "{}", "points[0].against: is for the metric of two runs");
    must_refuse(-1, "config", "{}", "points[0]: needs an index in its config");
}

static void an_order_must_be_that_of_the_published_values(void **state) {
    (void)state;
    must_refuse(-1, "orders", "{}", "orders: must be an array");
    must_refuse(-1, "orders", "[['reads']]", "orders[0]: must be an array of two or more labels");
    must_refuse(-1, "orders", "[['reads', 'writes']]", "orders[0][1]: must be the label of a point, not 'writes'");
    must_refuse(-1, "orders", "[['reads', 1]]", "orders[0][1]: must be the label of a point");
    must_refuse(-1, "orders", "[['updates', 'reads']]", "orders[0][1]: its published value must be below");
    must_refuse(-1, "orders", "[['reads', 'a step']]", "orders[0][1]: its published value must be below");
}

static void an_option_that_does_not_exist_is_refused_by_file_and_point(void **state) {
    (void)state;
    struct dm_err err = {.text = ""};
    json_t *spec = spec_of(good);
    json_t *point = json_array_get(json_object_get(spec, "points"), 1);
    assert_int_equal(json_object_set_new(point, "config", spec_of("{'kesy': 5}")), 0);
    struct hx_experiment *experiment = must_load(spec);
    struct hx_points *points = hx_points_new("nowhere");
    assert_int_equal(hx_experiment_runs(experiment, false, points, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "trees.json: points[1]"));
    assert_non_null(strstr(err.text, "kesy"));
    hx_points_free(points);
    hx_experiment_free(experiment);
}

/* ---- runs ------------------------------------------------------------------------------------------------------- */

static json_int_t option_of(const struct hx_points *points, size_t run, const char *path) {
    return json_integer_value(hx_json_find(points->items[run].config, path));
}

static void the_quick_scale_replaces_sizes_and_a_second_run_differs_only_by_against(void **state) {
    (void)state;
    for (int paper = 0; paper < 2; paper++) {
        struct dm_err err = {.text = ""};
        struct hx_experiment *experiment = must_load(spec_of(good));
        struct hx_points *points = hx_points_new("nowhere");
        assert_int_equal(hx_experiment_runs(experiment, paper, points, &err), 0);
        assert_int_equal(points->count, 4);
        const struct hx_exp_point *step = &experiment->points[2];
        assert_int_equal(option_of(points, experiment->points[0].runs[0], "keys"), paper ? 2000 : 1000);
        assert_int_equal(option_of(points, step->runs[0], "set.cache_levels"), 16);
        assert_int_equal(option_of(points, step->runs[1], "set.cache_levels"), 0);
        assert_int_equal(option_of(points, step->runs[1], "keys"), paper ? 2000 : 1000);
        assert_int_equal(option_of(points, step->runs[1], "clients"), 1);
        hx_points_free(points);
        hx_experiment_free(experiment);
    }
}

static void points_without_results_have_failed_and_have_no_order(void **state) {
    (void)state;
    struct dm_err err = {.text = ""};
    struct hx_experiment *experiment = must_load(spec_of(good));
    struct hx_points *points = hx_points_new("nowhere");
    assert_int_equal(hx_experiment_runs(experiment, false, points, &err), 0);
    hx_experiment_judge(experiment, points, false);
    struct hx_exp_sum sum = hx_experiments_sum(&experiment, 1);
    assert_int_equal(sum.failed, 3);
    assert_int_equal(sum.not_run, 1);
    assert_int_equal(sum.unjudged, 3);
    assert_true(isnan(sum.typical[HX_EXP_BOUNDS]));
    hx_points_free(points);
    hx_experiment_free(experiment);
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------- */

/* Results of given throughputs, as if they had been measured: four points of 100, 80, 40 and 39 Mops/s. */
static void judged(const double ours[4], struct hx_exp_sum *sum, struct hx_experiment **experiment) {
    char folder[] = "/tmp/experiment_test.XXXXXX", command[128];
    struct dm_err err = {.text = ""};
    static const char text[] =
        "{'id': 'trees', 'title': 't', 'source': 's', 'settings': 's', 'differs': 'd', 'config': {'index': 'null'},"
        " 'quick': {'keys': '1K', 'ops': '2K'}, 'points': ["
        " {'label': 'a', 'metric': 'mops', 'bound': 'bandwidth', 'published': 100, 'config': {'seed': 1}},"
        " {'label': 'b', 'metric': 'mops', 'bound': 'bandwidth', 'published': 80, 'config': {'seed': 2}},"
        " {'label': 'c', 'metric': 'mops', 'bound': 'other', 'published': 40, 'config': {'seed': 3}},"
        " {'label': 'd', 'metric': 'mops', 'bound': 'other', 'published': 39, 'config': {'seed': 4}}],"
        " 'orders': [['a', 'b', 'c', 'd']]}";
    assert_non_null(mkdtemp(folder));
    *experiment = must_load(spec_of(text));
    struct hx_points *points = hx_points_new(folder);
    assert_int_equal(hx_experiment_runs(*experiment, false, points, &err), 0);
    assert_int_equal(points->count, 4);
    snprintf(command, sizeof(command), "%s/points", folder);
    assert_int_equal(mkdir(command, 0700), 0);
    for (size_t i = 0; i < 4; i++) {
        char *path = hx_points_file(points, i);
        json_t *result = json_pack("{s:i, s:O, s:s, s:f, s:{}, s:s}", "schema_version", 2, "config",
                                   points->items[i].config, "config_hash", points->items[i].hash,
                                   "throughput_ops_per_s", ours[i] * 1e6, "ops", "time_base", "virtual");
        assert_int_equal(dm_json_store(result, path, &err), 0);
        json_decref(result);
        free(path);
    }
    hx_experiment_judge(*experiment, points, false);
    *sum = hx_experiments_sum(experiment, 1);
    hx_points_free(points);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static bool is_near(double value, double wanted) {
    return fabs(value - wanted) < 1e-9;
}

static void tolerances_and_typical_factors_are_those_of_the_bounds(void **state) {
    (void)state;
    struct hx_exp_sum sum;
    struct hx_experiment *experiment;
    /* 1.25 up is within, 1.26 down is not; 1.4 down is within, 1.5 up is not. */
    judged((double[]){125, 80 / 1.26, 40 / 1.39, 39 * 1.5}, &sum, &experiment);
    assert_int_equal(sum.in[HX_EXP_BANDWIDTH], 1);
    assert_int_equal(sum.out[HX_EXP_BANDWIDTH], 1);
    assert_int_equal(sum.in[HX_EXP_OTHER], 1);
    assert_int_equal(sum.out[HX_EXP_OTHER], 1);
    assert_int_equal(sum.unexplained, 2);
    assert_int_equal(experiment->points[1].verdict, HX_EXP_OUT);
    assert_int_equal(experiment->points[2].verdict, HX_EXP_IN);
    assert_true(is_near(hx_exp_factor(&experiment->points[1]), 1.26));
    assert_true(is_near(sum.typical[HX_EXP_BANDWIDTH], sqrt(1.25 * 1.26)));
    assert_true(is_near(sum.typical[HX_EXP_OTHER], sqrt(1.39 * 1.5)));
    assert_true(is_near(sum.typical[HX_EXP_BOUNDS], pow(1.25 * 1.26 * 1.39 * 1.5, 0.25)));
    hx_experiment_free(experiment);
}

static void orders_hold_or_are_broken_and_equal_published_values_have_none(void **state) {
    (void)state;
    struct hx_exp_sum sum;
    struct hx_experiment *experiment;
    judged((double[]){90, 95, 30, 35}, &sum, &experiment); /* a and b are the other way round; c and d are a tie */
    assert_int_equal(sum.broken, 1);
    assert_int_equal(sum.holds, 4);
    assert_int_equal(sum.ties, 1);
    assert_int_equal(sum.unjudged, 0);
    hx_experiment_free(experiment);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_experiment_of_the_project_can_be_run_at_both_scales),
        cmocka_unit_test(every_kind_of_mistake_is_refused_by_file_and_member),
        cmocka_unit_test(an_order_must_be_that_of_the_published_values),
        cmocka_unit_test(an_option_that_does_not_exist_is_refused_by_file_and_point),
        cmocka_unit_test(the_quick_scale_replaces_sizes_and_a_second_run_differs_only_by_against),
        cmocka_unit_test(points_without_results_have_failed_and_have_no_order),
        cmocka_unit_test(tolerances_and_typical_factors_are_those_of_the_bounds),
        cmocka_unit_test(orders_hold_or_are_broken_and_equal_published_values_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
