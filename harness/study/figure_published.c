/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the numbers that papers published.
 */
#include "harness/study/figure_published.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/json.h"
#include "harness/study/figure_style.h"

enum { WHERE_BYTES = 512 };

static int read_string(const json_t *object, const char *name, bool required, const char *where, const char **text,
                       struct dm_err *err) {
    const json_t *value;
    DM_TRY(hx_json_get(object, name, JSON_STRING, required, where, &value, err));
    *text = json_string_value(value);
    return 0;
}

/* The item whose label the name fits; SIZE_MAX: none. */
static size_t find(const struct hx_fig_item *items, size_t count, const char *name) {
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        int fit = hx_fig_label_fits(items[i].label, name);
        found = fit == 2 || (fit == 1 && found == SIZE_MAX) ? i : found;
    }
    return found;
}

static bool is_absent(const struct hx_figure *figure, const char *name) {
    for (size_t i = 0; i < figure->absent_count; i++) {
        if (hx_fig_label_fits(figure->absent[i].label, name) > 0) {
            return true;
        }
    }
    return false;
}

static int read_plot(const struct hx_figure *figure, const json_t *object, const char *where,
                     struct hx_fig_published *item, struct dm_err *err) {
    const char *plot, *column;
    DM_TRY(read_string(object, "plot", true, where, &plot, err));
    DM_TRY(read_string(object, "column", false, where, &column, err));
    for (item->plot = 0; item->plot < figure->plot_count; item->plot++) {
        if (strcmp(figure->plots[item->plot].id, plot) == 0) {
            break;
        }
    }
    if (item->plot == figure->plot_count) {
        return dm_fail(err, DM_ERR_INVALID, "%s.plot: the figure has no plot '%s'", where, plot);
    }
    const struct hx_fig_plot *found = &figure->plots[item->plot];
    for (item->metric = 0; column != NULL && item->metric < found->y_count; item->metric++) {
        if (strcmp(found->y[item->metric].column, column) == 0) {
            break;
        }
    }
    return item->metric < found->y_count
               ? 0
               : dm_fail(err, DM_ERR_INVALID, "%s.column: plot '%s' has no column '%s'", where, plot, column);
}

static int read_names(const struct hx_figure *figure, const json_t *object, const char *where,
                      struct hx_fig_published *item, struct dm_err *err) {
    const char *panel, *series;
    DM_TRY(read_string(object, "panel", false, where, &panel, err));
    DM_TRY(read_string(object, "series", false, where, &series, err));
    item->panel = panel != NULL ? find(figure->panels, figure->panel_count, panel) : 0;
    if (item->panel == SIZE_MAX || (panel == NULL && figure->panel_count > 1)) {
        return dm_fail(err, DM_ERR_INVALID, "%s.panel: the figure has no panel '%s'", where,
                       panel != NULL ? panel : "");
    }
    item->series = series != NULL ? find(figure->series, figure->series_count, series) : SIZE_MAX;
    if (series != NULL && item->series == SIZE_MAX && !is_absent(figure, series)) {
        return dm_fail(err, DM_ERR_INVALID, "%s.series: the figure has no series '%s'", where, series);
    }
    item->style = item->style != NULL        ? item->style
                  : item->series != SIZE_MAX ? figure->series[item->series].style
                                             : hx_fig_style_other(figure->styles, 0);
    return 0;
}

/* Where x is not a metric, named cases take names, an option numbers. */
static int check_points(const struct hx_figure *figure, const struct hx_fig_published *item, const char *where,
                        struct dm_err *err) {
    bool named = figure->x_option == NULL && !figure->plots[item->plot].by_metric;
    if (json_array_size(item->x) == 0 || json_array_size(item->x) != json_array_size(item->y)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: x and y must have as many values", where);
    }
    for (size_t i = 0; i < json_array_size(item->x); i++) {
        const json_t *x = json_array_get(item->x, i), *y = json_array_get(item->y, i);
        const char *name = json_string_value(x);
        bool known =
            named ? name != NULL && find(figure->cases, figure->case_count, name) != SIZE_MAX : json_is_number(x);
        if (!known && !(named && name != NULL && is_absent(figure, name))) {
            return dm_fail(err, DM_ERR_INVALID, "%s.x[%zu]: must be %s", where, i,
                           named ? "the name of a case" : "a number");
        }
        if (!json_is_number(y)) {
            return dm_fail(err, DM_ERR_INVALID, "%s.y[%zu]: must be a number", where, i);
        }
    }
    return 0;
}

static int read_item(const struct hx_figure *figure, const json_t *object, const char *where,
                     struct hx_fig_published *item, struct dm_err *err) {
    static const char *const known[] = {"label", "plot",   "column", "panel", "series",
                                        "style", "source", "x",      "y",     NULL};
    DM_TRY(hx_json_check(object, known, where, err));
    DM_TRY(read_string(object, "label", true, where, &item->label, err));
    DM_TRY(read_string(object, "source", true, where, &item->source, err));
    DM_TRY(read_string(object, "style", false, where, &item->style, err));
    DM_TRY(read_plot(figure, object, where, item, err));
    DM_TRY(read_names(figure, object, where, item, err));
    DM_TRY(hx_json_get(object, "x", JSON_ARRAY, true, where, &item->x, err));
    DM_TRY(hx_json_get(object, "y", JSON_ARRAY, true, where, &item->y, err));
    if (strncmp(item->label, "paper: ", 7) != 0 || item->source[0] == '\0') {
        return dm_fail(err, DM_ERR_INVALID, "%s: the label must begin with 'paper: ', and the source not be empty",
                       where);
    }
    return check_points(figure, item, where, err);
}

int hx_fig_published_read(const struct hx_figure *figure, const char *where, struct hx_fig_published **items,
                          size_t *count, struct dm_err *err) {
    const json_t *array;
    *items = NULL;
    *count = 0;
    DM_TRY(hx_json_get(figure->spec, "published", JSON_ARRAY, false, where, &array, err));
    struct hx_fig_published *memory = calloc(json_array_size(array) + 1, sizeof(*memory));
    if (memory == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", where);
    }
    int rc = 0;
    for (size_t i = 0; i < json_array_size(array) && rc == 0; i++) {
        char member[WHERE_BYTES];
        snprintf(member, sizeof(member), "%.400s: published[%zu]", where, i);
        rc = read_item(figure, json_array_get(array, i), member, &memory[i], err);
    }
    if (rc < 0) {
        free(memory);
        return rc;
    }
    *items = memory;
    *count = json_array_size(array);
    return 0;
}

size_t hx_fig_published_count(const struct hx_fig_published *item) {
    return json_array_size(item->x);
}

double hx_fig_published_x(const struct hx_figure *figure, const struct hx_fig_published *item, size_t at,
                          double divisor) {
    const json_t *x = json_array_get(item->x, at);
    if (json_is_string(x)) {
        size_t found = find(figure->cases, figure->case_count, json_string_value(x));
        return found != SIZE_MAX ? (double)found : NAN;
    }
    bool sized = !figure->plots[item->plot].by_metric && !figure->cases_as_is;
    return json_number_value(x) / (sized ? divisor : 1);
}

double hx_fig_published_y(const struct hx_fig_published *item, size_t at) {
    return json_number_value(json_array_get(item->y, at));
}
