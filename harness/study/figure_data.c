/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads what the points of a figure measured, and computes the values of its metrics.
 */
#include "harness/study/figure_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/stats.h"
#include "harness/base/json.h"
#include "harness/study/result_set.h"

static bool slot_missing(const struct hx_figure *figure, const struct hx_fig_data *data, size_t slot) {
    bool missing = false;
    for (unsigned i = 0; i < figure->repeat; i++) {
        missing = missing || data->results[slot * figure->repeat + i] == NULL;
    }
    return missing;
}

int hx_fig_data_load(const struct hx_figure *figure, const struct hx_points *points, struct hx_fig_data *data,
                     struct dm_err *err) {
    size_t count = hx_figure_slots(figure);
    *data = (struct hx_fig_data){.results = calloc(count * figure->repeat + 1, sizeof(*data->results))};
    if (data->results == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "figure %s: no memory for its results", figure->id);
    }
    for (size_t slot = 0; slot < count; slot++) {
        for (unsigned i = 0; i < figure->repeat; i++) {
            size_t point = hx_figure_point(figure, slot, i);
            json_t *result = hx_points_load(points, point, NULL);
            data->results[slot * figure->repeat + i] =
                hx_result_usable(result, points->items[point].label, points->items[point].hash);
        }
        data->missing += slot_missing(figure, data, slot);
    }
    return 0;
}

void hx_fig_data_fini(const struct hx_figure *figure, struct hx_fig_data *data) {
    size_t count = hx_figure_slots(figure) * figure->repeat;
    for (size_t slot = 0; slot < count && data->results != NULL; slot++) {
        json_decref(data->results[slot]);
    }
    free(data->results);
    *data = (struct hx_fig_data){.results = NULL};
}

size_t hx_fig_data_missing(const struct hx_figure *figure, const struct hx_fig_data *data, size_t panel) {
    size_t missing = 0;
    for (size_t series = 0; series < figure->series_count; series++) {
        for (size_t at = 0; at < figure->case_count; at++) {
            missing += slot_missing(figure, data, hx_figure_at(figure, panel, series, at));
        }
    }
    return missing;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* The sum of the numbers at a list of paths. */
static double numbers_sum(const json_t *result, const json_t *paths) {
    double sum = 0;
    for (size_t i = 0; i < json_array_size(paths); i++) {
        sum += hx_result_number(result, json_string_value(json_array_get(paths, i)));
    }
    return sum;
}

double hx_fig_metric_value(const struct hx_fig_metric *metric, const json_t *result) {
    if (result == NULL) {
        return NAN; /* a metric's `else` is for results that lack a number, not for those that are missing */
    }
    double value = (hx_result_number(result, metric->path) + numbers_sum(result, metric->plus)) * metric->factor;
    double sum = numbers_sum(result, metric->over);
    double found = metric->over == NULL ? value : sum > 0 ? value / sum : NAN;
    if (metric->otherwise == NULL || isfinite(found)) {
        return found;
    }
    return json_is_number(metric->otherwise)
               ? json_number_value(metric->otherwise)
               : hx_result_number(result, json_string_value(metric->otherwise)) * metric->factor;
}

struct hx_fig_value hx_fig_value(const struct hx_figure *figure, const struct hx_fig_data *data,
                                 const struct hx_fig_metric *metric, size_t slot) {
    enum { ROUNDS = 1000, SEED = 1 };
    static const struct hx_fig_value none = {NAN, NAN, NAN};
    double values[HX_FIG_REPEAT_MAX];
    for (unsigned i = 0; i < figure->repeat; i++) {
        values[i] = hx_fig_metric_value(metric, data->results[slot * figure->repeat + i]);
        if (!isfinite(values[i])) {
            return none;
        }
    }
    struct dm_interval interval = dm_bootstrap_median(values, figure->repeat, 0.95, ROUNDS, SEED);
    return (struct hx_fig_value){dm_median(values, figure->repeat), interval.low, interval.high};
}

double hx_figure_x(const struct hx_figure *figure, const struct hx_points *points, size_t slot, size_t at) {
    if (figure->x_option == NULL) {
        return (double)at;
    }
    const json_t *value = hx_json_find(points->items[hx_figure_point(figure, slot, 0)].config, figure->x_option);
    return json_is_number(value) ? json_number_value(value) * figure->x_factor : NAN;
}
