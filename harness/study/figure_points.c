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

/* Divides a number that may have a unit ("60M", "100MB") by the figure's divisor. */
static int divide(const struct hx_figure *figure, json_t *config, const char *path, struct dm_err *err) {
    const json_t *value = hx_json_find(config, path);
    uint64_t number = 0;
    if (value == NULL) {
        return 0;
    }
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        if (dm_parse_count(text, &number, NULL) < 0 && dm_parse_bytes(text, &number, NULL) < 0) {
            return dm_fail(err, DM_ERR_INVALID, "figure %s: %s: '%.40s' is no number to scale", figure->id, path, text);
        }
    } else if (json_is_integer(value) && json_integer_value(value) >= 0) {
        number = (uint64_t)json_integer_value(value);
    } else {
        return dm_fail(err, DM_ERR_INVALID, "figure %s: %s: is no whole number to scale", figure->id, path);
    }
    double scaled = (double)number / hx_figure_divisor(figure, path);
    json_t *smaller = json_integer((json_int_t)(number > 0 && scaled < 1 ? 1 : scaled + 0.5));
    int rc = smaller == NULL ? DM_ERR_NO_MEMORY : hx_json_put(config, path, smaller);
    json_decref(smaller);
    return rc < 0 ? dm_fail(err, rc, "figure %s: no memory", figure->id) : 0;
}

static int divide_all(const struct hx_figure *figure, json_t *config, struct dm_err *err) {
    for (size_t i = 0; i < hx_figure_scaled(figure); i++) {
        DM_TRY(divide(figure, config, hx_figure_scaled_option(figure, i), err));
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

/* The configuration of one slot: figure, scale, panel, series, the config of a smaller scale, case. */
static int slot_config(const struct hx_figure *figure, size_t panel, size_t series, size_t at, json_t **config,
                       struct dm_err *err) {
    const json_t *parts[] = {figure->config, figure->scale_config, figure->panels[panel].config,
                             figure->series[series].config};
    json_t *case_config = hx_json_merge(figure->cases[at].config, NULL);
    int rc = case_config == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a figure's points") : 0;
    *config = NULL;
    for (size_t i = 0; rc == 0 && i < DM_ARRAY_LEN(parts); i++) {
        rc = put_over(config, parts[i], err);
    }
    if (rc == 0 && figure->divisor > 0) {
        rc = divide_all(figure, *config, err);
        rc = rc < 0 || figure->cases_as_is ? rc : divide_all(figure, case_config, err);
    }
    rc = rc < 0 ? rc : put_over(config, figure->over_config, err);
    rc = rc < 0 ? rc : put_over(config, case_config, err);
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
    snprintf(label, LABEL_BYTES, "%s: %s%s%s, %s", figure->id, figure->panels[panel].label,
             figure->panels[panel].label[0] != '\0' ? ", " : "", figure->series[series].label,
             figure->x_option != NULL ? value : figure->cases[at].label);
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
