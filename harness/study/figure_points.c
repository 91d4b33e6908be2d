/* SPDX-License-Identifier: Apache-2.0
 *
 * The points of a figure: the configuration of every panel, series and case.
 */
#include "harness/study/figure_points.h"

#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/opt.h"
#include "harness/base/json.h"

enum { LABEL_BYTES = 256 };

/* A whole number, or a text with a unit ("60M", "100MB"). */
static bool read_size(const json_t *value, uint64_t *number) {
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        return dm_parse_count(text, number, NULL) == 0 || dm_parse_bytes(text, number, NULL) == 0;
    }
    bool whole = json_is_integer(value) && json_integer_value(value) >= 0;
    *number = whole ? (uint64_t)json_integer_value(value) : 0;
    return whole;
}

/* Divides the number at a path; it stays at least 1. */
static int divide(const struct hx_figure *figure, json_t *config, const char *path, double divisor,
                  struct dm_err *err) {
    const json_t *value = hx_json_find(config, path);
    uint64_t number = 0;
    if (value == NULL) {
        return 0;
    }
    if (!read_size(value, &number)) {
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        int rc = dm_fail(err, DM_ERR_INVALID, "figure %s: %s: %.40s is no whole number to scale", figure->id, path,
                         text != NULL ? text : "it");
        free(text);
        return rc;
    }
    double scaled = (double)number / divisor;
    json_t *smaller = json_integer((json_int_t)(number > 0 && scaled < 1 ? 1 : scaled + 0.5));
    int rc = smaller == NULL ? DM_ERR_NO_MEMORY : hx_json_put(config, path, smaller);
    json_decref(smaller);
    return rc < 0 ? dm_fail(err, rc, "figure %s: no memory", figure->id) : 0;
}

static int divide_all(const struct hx_figure *figure, json_t *config, struct dm_err *err) {
    for (size_t i = 0; i < hx_figure_scaled(figure); i++) {
        const char *option = hx_figure_scaled_option(figure, i);
        DM_TRY(divide(figure, config, option, hx_figure_divisor(figure, option), err));
    }
    return 0;
}

/* Merges `over` over *config; NULL changes nothing. */
static int put_over(json_t **config, const json_t *over, struct dm_err *err) {
    json_t *merged = hx_json_merge(*config, over);
    json_decref(*config);
    *config = merged;
    return merged != NULL ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a figure's points");
}

static int put_parts(json_t **config, const json_t *const *parts, size_t count, struct dm_err *err) {
    *config = NULL;
    for (size_t i = 0; i < count; i++) {
        DM_TRY(put_over(config, parts[i], err));
    }
    return 0;
}

/* An overlay is in the paper's sizes: each becomes smaller by as much as the figure's own value of that option is, or
 * by the scale's factor if the figure does not set it. */
static int divide_overlay(const struct hx_figure *figure, json_t *overlay, const json_t *paper, const json_t *own,
                          struct dm_err *err) {
    for (size_t i = 0; i < hx_figure_scaled(figure); i++) {
        const char *option = hx_figure_scaled_option(figure, i);
        uint64_t before = 0, after = 0;
        bool known = read_size(hx_json_find(paper, option), &before) && read_size(hx_json_find(own, option), &after) &&
                     after > 0;
        DM_TRY(divide(figure, overlay, option,
                      known ? (double)before / (double)after : hx_figure_divisor(figure, option), err));
    }
    return 0;
}

/* Merges what an overlay has for the point, for all points, its panel and its series, over the point. */
static int put_overlay(const struct hx_figure *figure, size_t panel, size_t series, json_t **config,
                       struct dm_err *err) {
    const struct hx_fig_overlay *overlay = figure->overlay;
    if (overlay == NULL) {
        return 0;
    }
    const json_t *over[] = {overlay->config, hx_fig_overlay_part(overlay->panels, figure->panels[panel].label),
                            hx_fig_overlay_part(overlay->series, figure->series[series].label)};
    const json_t *parts[] = {figure->config, hx_json_find(figure->spec, "scales.paper.config"),
                             figure->panels[panel].config, figure->series[series].config};
    json_t *paper = NULL, *changed = NULL;
    int rc = put_parts(&paper, parts, DM_ARRAY_LEN(parts), err);
    rc = rc < 0 ? rc : put_parts(&changed, over, DM_ARRAY_LEN(over), err);
    rc = rc < 0 ? rc : divide_overlay(figure, changed, paper, *config, err);
    rc = rc < 0 ? rc : put_over(config, changed, err);
    json_decref(paper);
    json_decref(changed);
    return rc;
}

/* What the case sets, before sizes are divided. */
static json_t *case_own(const struct hx_figure *figure, size_t at) {
    const json_t *over =
        figure->overlay != NULL ? hx_fig_overlay_part(figure->overlay->cases, figure->cases[at].label) : NULL;
    return hx_json_merge(figure->cases[at].config, over);
}

int hx_config_put_set_of(json_t **config, struct dm_err *err) {
    const char *index = json_string_value(json_object_get(*config, "index"));
    const json_t *own = index != NULL ? json_object_get(json_object_get(*config, "set_of"), index) : NULL;
    json_t *over = json_object();
    int rc = over != NULL && (own == NULL || json_object_set_new(over, "set", json_deep_copy(own)) == 0)
                 ? put_over(config, over, err)
                 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the parameters of a point");
    json_decref(over);
    if (rc == 0) {
        (void)json_object_del(*config, "set_of"); /* a failure: there is none */
    }
    return rc;
}

/* The configuration of one slot: figure, scale, panel, series, the config of a smaller scale, overlay, case. */
static int slot_config(const struct hx_figure *figure, size_t panel, size_t series, size_t at, json_t **config,
                       struct dm_err *err) {
    const json_t *parts[] = {figure->config, figure->scale_config, figure->panels[panel].config,
                             figure->series[series].config};
    json_t *case_config = case_own(figure, at);
    int rc = case_config == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a figure's points") : 0;
    *config = NULL;
    rc = rc < 0 ? rc : put_parts(config, parts, DM_ARRAY_LEN(parts), err);
    if (rc == 0 && figure->divisor > 0) {
        rc = divide_all(figure, *config, err);
        rc = rc < 0 || figure->cases_as_is ? rc : divide_all(figure, case_config, err);
    }
    rc = rc < 0 ? rc : put_over(config, figure->over_config, err);
    rc = rc < 0 ? rc : put_overlay(figure, panel, series, config, err);
    rc = rc < 0 ? rc : put_over(config, case_config, err);
    rc = rc < 0 ? rc : hx_config_put_set_of(config, err);
    if (rc == 0 && figure->profile != NULL) {
        rc = json_object_set_new(*config, "profile", json_string(figure->profile)) == 0
                 ? 0
                 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a figure's points");
    }
    json_decref(case_config);
    return rc;
}

/* The label of a slot: "sherman-clients: YCSB A, Sherman, clients 64". */
static void slot_label(const struct hx_figure *figure, size_t panel, size_t series, size_t at, const json_t *config,
                       char label[LABEL_BYTES]) {
    char value[64] = "";
    if (figure->x_option != NULL) {
        const json_t *number = hx_json_find(config, figure->x_option);
        char *text = json_dumps(number, JSON_ENCODE_ANY);
        snprintf(value, sizeof(value), "%s %s", figure->x_option, text != NULL ? text : "?");
        free(text);
    }
    snprintf(label, LABEL_BYTES, "%s%s%s%s: %s%s%s, %s", figure->id, figure->overlay != NULL ? " (" : "",
             figure->overlay != NULL ? figure->overlay->id : "", figure->overlay != NULL ? ")" : "",
             figure->panels[panel].label, figure->panels[panel].label[0] != '\0' ? ", " : "",
             figure->series[series].label, figure->x_option != NULL ? value : figure->cases[at].label);
    for (char *newline = strchr(label, '\n'); newline != NULL; newline = strchr(newline, '\n')) {
        *newline = ' ';
    }
}

/* The points of a slot, one per seed; seeds are consecutive. */
static int add_seeds(struct hx_figure *figure, struct hx_points *points, size_t slot, json_t *config, const char *label,
                     struct dm_err *err) {
    const json_t *seed = json_object_get(config, "seed");
    json_int_t first = json_is_integer(seed) ? json_integer_value(seed) : 1;
    for (unsigned i = 0; i < figure->repeat; i++) {
        if (i > 0 && json_object_set_new(config, "seed", json_integer(first + (json_int_t)i)) != 0) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "figure %s: no memory for its points", figure->id);
        }
        DM_TRY(hx_points_add(points, config, label, label, &figure->points[slot * figure->repeat + i], err));
    }
    return 0;
}

int hx_figure_points(struct hx_figure *figure, struct hx_points *points, struct dm_err *err) {
    size_t count = hx_figure_slots(figure);
    figure->points = calloc(count * figure->repeat + 1, sizeof(*figure->points));
    if (figure->points == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "figure %s: no memory for %zu points", figure->id, count);
    }
    for (size_t slot = 0; slot < count; slot++) {
        size_t at = slot % figure->case_count;
        size_t series = slot / figure->case_count % figure->series_count;
        size_t panel = slot / figure->case_count / figure->series_count;
        char label[LABEL_BYTES];
        json_t *config;
        int rc = slot_config(figure, panel, series, at, &config, err);
        if (rc == 0) {
            slot_label(figure, panel, series, at, config, label);
            rc = add_seeds(figure, points, slot, config, label, err);
        }
        json_decref(config);
        DM_TRY(rc);
    }
    return 0;
}
