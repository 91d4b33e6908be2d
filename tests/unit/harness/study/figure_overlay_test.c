/* SPDX-License-Identifier: Apache-2.0
 *
 * Where settings come from, readings and experiments: over small specs made up here.
 */
#include "harness/study/figure_overlay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/opt_json.h"
#include "harness/base/json.h"
#include "harness/study/figure_points.h"

/* Replaces each ' by ", so that JSON is readable here. */
static json_t *parse(const char *text) {
    char *copy = strdup(text);
    for (char *at = copy; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    json_error_t error;
    json_t *json = json_loads(copy, 0, &error);
    if (json == NULL) {
        fail_msg("%s: %s", copy, error.text);
    }
    free(copy);
    return json;
}

#define BODY                                                                                                           \
    "'config': {'cns': 10, 'transport': 'sim', 'set': {'span': 64}}, 'scales': {'paper': {'config': {'keys': '60M'}, " \
    "'x': [1, 2]}}, 'panels': [{'label': 'YCSB C (read only, hashed)', 'config': {'workload': 'c'}}],"                 \
    "'series': [{'label': 'CHIME', 'config': {'index': 'chime', 'set': {'span': 32}}}, {'label': 'Sherman', "          \
    "'config': {'index': 'sherman', 'rdwc': 'on'}}], 'x': {'option': 'clients'}"

/* ---- provenance ------------------------------------------------------------------------------------------------- */

static int check_from(const char *from, struct dm_err *err) {
    char text[2048];
    snprintf(text, sizeof(text), "{%s, 'from': %s}", BODY, from);
    json_t *spec = parse(text);
    int rc = hx_fig_provenance_check(spec, "f.json", err);
    json_decref(spec);
    return rc;
}

static void must_refuse_from(const char *from, const char *reason) {
    struct dm_err err = {.text = ""};
    assert_int_equal(check_from(from, &err), DM_ERR_INVALID);
    if (strstr(err.text, reason) == NULL) {
        fail_msg("'%s' does not say '%s'", err.text, reason);
    }
}

static void every_setting_needs_provenance(void **state) {
    (void)state;
    struct dm_err err = {.text = ""};
    const char *const whole = "{'cns, keys, workload': 'stated: section 5', 'clients': 'code: a/b c.sh', 'set.span': "
                              "'assumed: as in Sherman', 'Sherman: rdwc': 'stated: section 6'}";
    if (check_from(whole, &err) < 0) {
        fail_msg("%s", err.text);
    }
    must_refuse_from("{}", "is set without provenance");
    must_refuse_from("{'cns, workload, clients, set.span, rdwc': 'stated: section 5'}",
                     "f.json: from: 'keys' is set without provenance");
    must_refuse_from("{'cns, keys, workload, set.span, rdwc': 'stated: section 5'}", "'clients' is set without");
    /* An entry of one series covers no other. */
    must_refuse_from("{'cns, keys, workload, clients, rdwc': 'stated: section 5', 'CHIME: set.span': 'code: a/b c.h'}",
                     "'set.span' is set without");
    must_refuse_from("{'cns, keys, workload, clients, set.span': 'stated: section 5', 'CHIME: set.span': 'code: a/b'}",
                     "'Sherman: rdwc' is set without");
}

static void an_entry_of_provenance_fits_the_figure(void **state) {
    (void)state;
    struct dm_err err = {.text = ""};
    const char *const labels =
        "{'cns, keys, clients, set.span': 'stated: section 5', 'YCSB C: workload, Sherman: rdwc': "
        "'stated: section 6'}";
    const char *const full = "{'cns, keys, clients, set.span, rdwc': 'stated: section 5', 'YCSB C (read only, hashed): "
                             "workload': 'stated: section 6'}";
    assert_int_equal(check_from(labels, &err), 0);
    assert_int_equal(check_from(full, &err), 0);
    must_refuse_from("{'cnns': 'stated: section 5'}", "the figure does not set 'cnns'");
    must_refuse_from("{'Sherman: set.span': 'stated: section 5'}", "the figure does not set 'set.span' there");
    must_refuse_from("{'Shermann: rdwc': 'stated: section 5'}", "no panel, series or case is called 'Shermann'");
    must_refuse_from("{'The cluster': 'stated: section 5'}", "is no list of options");
    must_refuse_from("{'cns': 'section 5'}", "f.json: from.cns: must begin with 'stated: '");
    must_refuse_from("{'cns': 'stated: '}", "from.cns: must begin with");
    must_refuse_from("{'cns': 5}", "from.cns: must begin with");
}

static int note(void *arg, const char *label, const char *option, const json_t *value, const char *from) {
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    char *out = arg;
    sprintf(out + strlen(out), "%s/%s=%s (%s) ", label, option, text, from != NULL ? from : "");
    free(text);
    return 0;
}

static void the_entry_of_a_series_comes_before_that_of_the_figure(void **state) {
    (void)state;
    char text[2048] = "";
    snprintf(text, sizeof(text), "{%s, 'from': {'set.span': 'assumed: all', 'CHIME: set.span': 'code: a/b'}}", BODY);
    json_t *spec = parse(text);
    text[0] = '\0';
    assert_int_equal(hx_fig_settings_each(spec, note, text), 0);
    assert_non_null(strstr(text, "/set.span=64 (assumed: all) "));
    assert_non_null(strstr(text, "CHIME/set.span=32 (code: a/b) "));
    assert_non_null(strstr(text, "/clients=[1, 2] () "));
    assert_non_null(strstr(text, "Sherman/rdwc=\"on\" () "));
    json_decref(spec);
}

/* ---- readings --------------------------------------------------------------------------------------------------- */

static void must_refuse_readings(const char *member, const char *list, const char *reason) {
    char text[2048];
    struct hx_fig_overlays overlays;
    struct dm_err err = {.text = ""};
    snprintf(text, sizeof(text), "{%s, '%s': [%s]}", BODY, member, list);
    json_t *spec = parse(text);
    assert_int_equal(hx_fig_overlays_read(spec, false, "f.json", &overlays, &err), DM_ERR_INVALID);
    hx_fig_overlays_free(&overlays);
    json_decref(spec);
    if (strstr(err.text, reason) == NULL) {
        fail_msg("'%s' does not say '%s'", err.text, reason);
    }
}

static void mistakes_in_readings_are_named(void **state) {
    (void)state;
    must_refuse_readings("readings", "{'id': 'a', 'says': 'b'}", "f.json: readings[0]: member 'from' is missing");
    must_refuse_readings("readings", "{'id': 'a', 'says': 'b', 'from': 'assumed: so'}",
                         "(a): a reading needs evidence");
    must_refuse_readings("readings", "{'id': 'a', 'says': 'b', 'from': 'code: '}", "a reading needs evidence");
    must_refuse_readings("readings", "{'id': 'A b', 'says': 'b', 'from': 'code: x/y'}", "is not made of small letters");
    must_refuse_readings("readings", "{'id': 'a', 'says': 'b', 'from': 'code: x', 'config': {'profile': 'cx5'}}",
                         "never changes the network");
    must_refuse_readings("readings",
                         "{'id': 'a', 'says': 'b', 'from': 'code: x', 'series': {'CHIME': {'profile': 'x'}}}",
                         "readings[0].series.CHIME.profile: a reading never changes the network");
    must_refuse_readings("readings", "{'id': 'a', 'says': 'b', 'from': 'code: x', 'series': {'SMART': {}}}",
                         "'SMART' is no label of the figure's");
    must_refuse_readings("readings", "{'id': 'a', 'says': 'b', 'from': 'code: x', 'option': 'cache'}",
                         "member 'values' is missing");
    must_refuse_readings("readings", "{'id': 'a', 'says': 'b', 'from': 'code: x', 'values': [1]}", "a range needs");
    must_refuse_readings("readings", "{'id': 'a', 'says': 'b', 'from': 'code: x', 'option': 'cache', 'values': []}",
                         "a range needs");
    must_refuse_readings("experiments", "{'id': 'a', 'says': 'b', 'from': 'code: x'}", "unknown member 'from'");
    must_refuse_readings("experiments", "{'id': 'a', 'says': 'b', 'paper': {'says': 'c'}}",
                         "experiments[0].paper: unknown member 'says'");
    must_refuse_readings("readings", "{'id': 'a', 'says': 'b', 'from': 'code: x', 'paper': {'series': {'SMART': {}}}}",
                         "readings[0].paper.series: 'SMART' is no label of the figure's");
    must_refuse_readings("experiments", "{'id': 'a', 'says': 'b'}, {'id': 'a', 'says': 'b'}",
                         "experiments[1]: there are two of 'a'");
}

static void a_range_is_one_change_for_each_value(void **state) {
    (void)state;
    char text[2048];
    struct hx_fig_overlays overlays;
    struct dm_err err = {.text = ""};
    snprintf(text, sizeof(text),
             "{%s, 'readings': [{'id': 'limit', 'says': 'no limit is given', 'from': 'assumed: a range', 'option': "
             "'set.span', 'values': [8, '16'], 'config': {'cns': 3}}], 'experiments': [{'id': 'e', 'says': 'x'}]}",
             BODY);
    json_t *spec = parse(text);
    if (hx_fig_overlays_read(spec, false, "f.json", &overlays, &err) < 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(overlays.count, 3);
    const struct hx_fig_overlay *second = hx_fig_overlay_find(&overlays, "limit=16");
    assert_non_null(second);
    assert_string_equal(json_string_value(hx_json_find(second->config, "set.span")), "16");
    assert_int_equal(json_integer_value(hx_json_find(second->config, "cns")), 3);
    assert_non_null(hx_fig_overlay_find(&overlays, "limit=8"));
    assert_null(hx_fig_overlay_find(&overlays, "limit"));
    assert_null(hx_fig_overlay_find(&overlays, "e")->from);
    hx_fig_overlays_free(&overlays);
    json_decref(spec);
}

static void a_reading_may_change_something_else_at_the_papers_scale(void **state) {
    (void)state;
    char text[2048];
    snprintf(text, sizeof(text),
             "{%s, 'readings': [{'id': 'levels', 'says': 'as high a tree', 'from': 'code: x', 'config': {'cns': 3}, "
             "'series': {'CHIME': {'span': 2}}, 'paper': {'series': {'CHIME': {'span': 4}}}}]}",
             BODY);
    json_t *spec = parse(text);
    for (int is_paper = 0; is_paper < 2; is_paper++) {
        struct hx_fig_overlays overlays;
        struct dm_err err = {.text = ""};
        if (hx_fig_overlays_read(spec, is_paper, "f.json", &overlays, &err) < 0) {
            fail_msg("%s", err.text);
        }
        const struct hx_fig_overlay *levels = hx_fig_overlay_find(&overlays, "levels");
        assert_non_null(levels);
        const json_t *series = hx_fig_overlay_part(levels->series, "CHIME");
        assert_int_equal(json_integer_value(json_object_get(series, "span")), is_paper ? 4 : 2);
        /* all that it changes is replaced */
        assert_int_equal(json_integer_value(json_object_get(levels->config, "cns")), is_paper ? 0 : 3);
        hx_fig_overlays_free(&overlays);
    }
    json_decref(spec);
}

/* ---- the points under a reading --------------------------------------------------------------------------------- */

#define PLOTS DM_SOURCE_DIR "/plots"

/* The configurations of the points of a figure in a folder of its own, under an overlay. */
static void load(const char *scales, const char *readings, const char *scale, const char *overlay,
                 struct hx_points *points) {
    char folder[] = "/tmp/dmbench_overlay.XXXXXX", path[256], text[4096];
    struct dm_err err = {.text = ""};
    struct hx_figure *figure;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/figures", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(
        text, sizeof(text),
        "{'id': 'f', 'title': 't', 'shows': 's', 'keeps': 'k', 'config': {'transport': 'sim', 'ops': '1M'}, "
        "'scales': %s, 'panels': [{'label': 'YCSB C (reads)', 'config': {'workload': 'c', 'value_size': 16}}], "
        "'series': [{'label': 'Sherman', 'config': {'index': 'sherman', 'set': {'fill': 0.5, 'span': 9}}}], "
        "'x': {'label': 'x', 'cases': [{'label': 'one', 'config': {'clients': 2}}]}, 'plots': [{'id': 'p', 'kind': "
        "'bar', 'y_label': 'y', 'y': [{'path': 'throughput_ops_per_s', 'column': 'y'}]}], 'readings': [%s], "
        "'from': {'ops, keys, workload, value_size, set.fill, set.span, clients%s': 'assumed: a test'}}",
        scales, readings, strstr(scales, "'keys': '1M', 'cache'") != NULL ? ", cache" : "");
    json_t *spec = parse(text);
    snprintf(path, sizeof(path), "%s/figures/f.json", folder);
    assert_int_equal(dm_json_store(spec, path, NULL), 0);
    json_decref(spec);
    json_t *styles = parse("{'systems': {'sherman': {'name': 'Sherman', 'color': '#0072B2', 'marker': 'circle'}}, "
                           "'others': [{'color': '#000000', 'marker': 'square'}]}");
    snprintf(path, sizeof(path), "%s/systems.json", folder);
    assert_int_equal(dm_json_store(styles, path, NULL), 0);
    json_decref(styles);
    int rc = hx_figure_load(folder, "f", scale, &figure, &err);
    snprintf(text, sizeof(text), "rm -rf %s", folder);
    assert_int_equal(system(text), 0);
    if (rc < 0) {
        fail_msg("%s", err.text);
        return;
    }
    figure->overlay = overlay != NULL ? hx_fig_overlay_find(&figure->overlays, overlay) : NULL;
    assert_true(overlay == NULL || figure->overlay != NULL);
    if (hx_figure_points(figure, points, &err) < 0) {
        fail_msg("%s", err.text);
    }
    hx_figure_free(figure);
}

#define READING                                                                                                        \
    "{'id': 'r', 'says': 's', 'from': 'code: a/b', 'config': {'value_size': 32, 'cns': 4, 'cache': '60MB'}, "          \
    "'panels': {'YCSB C': {'cns': 6}}, 'series': {'Sherman': {'set': {'span': 7}}}, 'cases': {'one': {'clients': "     \
    "12}}}"

static void an_overlay_wins_over_panel_series_and_case(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("nowhere");
    load("{'quick': {'factor': 10}, 'paper': {'config': {'keys': '1M'}}}", READING, "paper", "r", points);
    const json_t *config = points->items[0].config;
    assert_int_equal(json_integer_value(json_object_get(config, "value_size")), 32);
    assert_int_equal(json_integer_value(json_object_get(config, "cns")), 6);
    assert_int_equal(json_integer_value(json_object_get(config, "clients")), 12);
    assert_int_equal(json_integer_value(hx_json_find(config, "set.span")), 7);
    assert_true(json_number_value(hx_json_find(config, "set.fill")) == 0.5);
    assert_int_equal(json_integer_value(json_object_get(config, "cache")), 60 * 1000 * 1000);
    hx_points_free(points);
}

/* With a factor, with a complete configuration of its own, and with an own value of that option. */
static void the_sizes_of_an_overlay_are_the_papers_at_every_scale(void **state) {
    (void)state;
    static const char *const scales[] = {
        "{'quick': {'factor': 10}, 'paper': {'config': {'keys': '1M'}}}",
        "{'quick': {'config': {'keys': '1K', 'cache': '10MB'}}, 'paper': {'config': {'keys': '1M', 'cache': '100MB'}}}",
        "{'quick': {'factor': 77, 'config': {'cache': '10MB'}}, 'paper': {'config': {'keys': '1M', 'cache': '100MB'}}}",
    };
    for (size_t i = 0; i < 3; i++) {
        struct hx_points *points = hx_points_new("nowhere");
        load(scales[i], READING, "quick", "r", points);
        assert_int_equal(json_integer_value(json_object_get(points->items[0].config, "cache")), 6 * 1000 * 1000);
        hx_points_free(points);
    }
}

static void a_reading_that_changes_nothing_needs_no_point(void **state) {
    (void)state;
    struct hx_points *points = hx_points_new("nowhere");
    const char *const scales = "{'quick': {'factor': 10}, 'paper': {'config': {'keys': '1M'}}}";
    const char *const same = "{'id': 'r', 'says': 's', 'from': 'code: a/b', 'config': {'value_size': 16}}";
    load(scales, same, "quick", NULL, points);
    load(scales, same, "quick", "r", points);
    assert_int_equal(points->count, 1);
    load(scales, READING, "quick", "r", points);
    assert_int_equal(points->count, 2);
    hx_points_free(points);
}

/* Every change of every figure of the project gives points that can be run, at both scales. */
static void every_reading_and_experiment_has_valid_points(void **state) {
    (void)state;
    static const char *const scales[] = {"quick", "paper"};
    struct dm_err err = {.text = ""};
    char **ids;
    assert_int_equal(hx_figure_ids(PLOTS, &ids, &err), 0);
    for (size_t i = 0; ids[i] != NULL; i++) {
        for (size_t k = 0; k < 2; k++) {
            struct hx_figure *figure;
            assert_int_equal(hx_figure_load(PLOTS, ids[i], scales[k], &figure, &err), 0);
            for (size_t at = 0; at < figure->overlays.count; at++) {
                struct hx_points *points = hx_points_new("nowhere");
                figure->overlay = &figure->overlays.items[at];
                if (hx_figure_points(figure, points, &err) < 0) {
                    fail_msg("%s, %s at %s: %s", ids[i], figure->overlay->id, scales[k], err.text);
                }
                free(figure->points);
                figure->points = NULL;
                hx_points_free(points);
            }
            hx_figure_free(figure);
        }
    }
    hx_figure_ids_free(ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_needs_provenance),
        cmocka_unit_test(an_entry_of_provenance_fits_the_figure),
        cmocka_unit_test(the_entry_of_a_series_comes_before_that_of_the_figure),
        cmocka_unit_test(mistakes_in_readings_are_named),
        cmocka_unit_test(a_range_is_one_change_for_each_value),
        cmocka_unit_test(a_reading_may_change_something_else_at_the_papers_scale),
        cmocka_unit_test(an_overlay_wins_over_panel_series_and_case),
        cmocka_unit_test(the_sizes_of_an_overlay_are_the_papers_at_every_scale),
        cmocka_unit_test(a_reading_that_changes_nothing_needs_no_point),
        cmocka_unit_test(every_reading_and_experiment_has_valid_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
