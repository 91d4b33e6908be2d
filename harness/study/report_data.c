/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes what the report's script reads. plots/report/report.js has it as
 *
 *     {"scale", "folder", "systems": plots/systems.json, "columns": [names of the numbers of a point],
 *      "points": [[hash, folder, index, bottleneck, command or null, numbers...]], "figures": {ID: figure}}
 *
 *     figure: {"title", "panels": [label], "series": [[label, style]], "cases": [label] or null, "x_label",
 *              "slots": [row of points or -1], "x": [number] or null, "plots": [plot], "readings": [reading]}
 *     plot:   {"id", "title", "kind": line, bar, stack, table, metric or time, "y_label", "x_label", "x_log", "y_log",
 * "y": [label], "v": [[number] a metric], "low" and "high": the same with several seeds, "x": [number] of kind metric,
 *              "time": [[[time], [number]]] of kind time, "lines": [[panel, y, low, high, label]],
 *              "published": [{"label", "panel", "series", "style", "metric", "points": [[x, y]]}]}
 *     reading: {"id", "says", "from", "slots": [[slot, row]], "v": [[[number] a metric] a plot], "x": [[number] a
 * plot]}
 *
 * Numbers that do not exist are null. Slots are numbered as in figure.h.
 */
#include "harness/study/report_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/data_folder.h"
#include "harness/base/json.h"
#include "harness/study/claims_marks.h"
#include "harness/study/figure_published.h"
#include "harness/study/html.h"
#include "harness/study/report_groups.h"
#include "harness/study/result_set.h"

enum { TEXT_BYTES = 512, PATH_BYTES = 4096 };

/* The numbers of a point that are shown when it is pointed at. */
static const struct {
    const char *path, *name;
    double factor;
} numbers[] = {
    {"throughput_ops_per_s", "throughput (ops/s)", 1},
    {"ops.all.latency_ns.p50", "P50 (µs)", 1e-3},
    {"ops.all.latency_ns.p99", "P99 (µs)", 1e-3},
    {"ops.all.round_trips_mean", "round trips / operation", 1},
    {"ops.all.bytes_read_mean", "bytes read / operation", 1},
    {"ops.all.bytes_written_mean", "bytes written / operation", 1},
    {"cache_bytes_per_cn", "cache of a CN (bytes)", 1},
};

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

/* ---- points ----------------------------------------------------------------------------------------------------- */

/* "cores of memory node 2, busy 100 %" */
static void bottleneck_text(const json_t *result, char *text, size_t capacity) {
    const json_t *bottleneck = json_object_get(result, "bottleneck");
    const char *resource = json_string_value(json_object_get(bottleneck, "resource"));
    const char *role = json_string_value(json_object_get(bottleneck, "role"));
    text[0] = '\0';
    if (resource != NULL && role != NULL) {
        snprintf(text, capacity, "%s of %s node %lld, busy %.0f %%", resource, role,
                 (long long)json_integer_value(json_object_get(bottleneck, "node")),
                 json_number_value(json_object_get(bottleneck, "busy")) * 100);
    }
}

/* " --key-set dense": an option of a command line; its name has "-" for "_". */
static void put_option(FILE *out, const char *name, const json_t *value) {
    fputs(" --", out);
    for (; *name != '\0'; name++) {
        fputc(*name == '_' ? '-' : *name, out);
    }
    if (json_is_string(value)) {
        fprintf(out, " %s", json_string_value(value));
    } else {
        fprintf(out, " %.15g", json_number_value(value));
    }
}

/* A training is run again by its options, not by its result. */
static json_t *training_command(const struct hx_point *point) {
    char *text = NULL;
    size_t bytes = 0;
    const char *name;
    json_t *value;
    FILE *out = hx_point_trains(point) ? open_memstream(&text, &bytes) : NULL;
    if (out == NULL) {
        return json_null();
    }
    fputs("dmbench train", out);
    json_object_foreach(point->config, name, value) {
        if (strcmp(name, "source") != 0) {
            put_option(out, name, value);
        }
    }
    fclose(out);
    json_t *command = json_string(text);
    free(text);
    return command;
}

/* The row of a point in the page's data, which is added if it is not there. */
static json_int_t point_row(struct hx_page *page, const struct hx_points *points, size_t at, const json_t *result) {
    const struct hx_point *point = &points->items[at];
    const json_t *known = json_object_get(page->rows, point->hash);
    char bottleneck[TEXT_BYTES];
    if (known != NULL) {
        return json_integer_value(known);
    }
    bottleneck_text(result, bottleneck, sizeof(bottleneck));
    json_t *rows = json_object_get(page->data, "points");
    json_t *row = json_pack("[s, s, s, s, o]", point->hash, hx_point_folder(point), hx_page_point_system(points, at),
                            bottleneck, training_command(point));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        json_array_append_new(row, number(hx_result_number(result, numbers[i].path) * numbers[i].factor));
    }
    json_int_t index = (json_int_t)json_array_size(rows);
    json_array_append_new(rows, row);
    json_object_set_new(page->rows, point->hash, json_integer(index));
    return index;
}

/* ---- plots ------------------------------------------------------------------------------------------------------ */

/* What a figure's data is made of. */
struct source {
    struct hx_page *page;
    const struct hx_figure *figure;
    const struct hx_fig_data *data;
};

enum part { MIDDLE, LOW, HIGH };

static json_t *metric_values(const struct source *source, const struct hx_fig_metric *metric, enum part part) {
    json_t *values = json_array();
    for (size_t slot = 0; slot < hx_figure_slots(source->figure); slot++) {
        struct hx_fig_value value = hx_fig_value(source->figure, source->data, metric, slot);
        json_array_append_new(values, number(part == LOW ? value.low : part == HIGH ? value.high : value.middle));
    }
    return values;
}

static json_t *plot_values(const struct source *source, const struct hx_fig_plot *plot, enum part part) {
    json_t *metrics = json_array();
    for (size_t i = 0; i < plot->y_count; i++) {
        json_array_append_new(metrics, metric_values(source, &plot->y[i], part));
    }
    return metrics;
}

static json_t *scaled(const json_t *values, double factor) {
    json_t *array = json_array();
    size_t at;
    json_t *value;
    json_array_foreach((json_t *)values, at, value) {
        json_array_append_new(array, number(json_number_value(value) * factor));
    }
    return array;
}

static json_t *plot_times(const struct source *source, const struct hx_fig_plot *plot) {
    json_t *slots = json_array();
    for (size_t slot = 0; slot < hx_figure_slots(source->figure); slot++) {
        const json_t *result = source->data->results[slot * source->figure->repeat];
        json_array_append_new(slots, json_pack("[o, o]", scaled(hx_json_find(result, plot->x.path), plot->x.factor),
                                               scaled(hx_json_find(result, plot->y[0].path), plot->y[0].factor)));
    }
    return slots;
}

static json_t *plot_published(const struct hx_figure *figure, const struct hx_fig_plot *plot) {
    json_t *items = json_array();
    for (size_t i = 0; i < figure->published_count; i++) {
        const struct hx_fig_published *item = &figure->published[i];
        double divisor = figure->x_option == NULL ? 1 : hx_figure_divisor(figure, figure->x_option);
        json_t *points = json_array();
        for (size_t at = 0; at < hx_fig_published_count(item); at++) {
            json_array_append_new(points, json_pack("[o, o]", number(hx_fig_published_x(figure, item, at, divisor)),
                                                    number(hx_fig_published_y(item, at))));
        }
        json_t *object =
            json_pack("{s:s, s:i, s:i, s:s, s:i, s:o}", "label", item->label, "panel", (int)item->panel, "series",
                      item->series == SIZE_MAX ? -1 : (int)item->series, "style",
                      item->style != NULL ? item->style : "", "metric", (int)item->metric, "points", points);
        if (plot == &figure->plots[item->plot]) {
            json_array_append(items, object);
        }
        json_decref(object);
    }
    return items;
}

/* What claims say, at the heights of the pictures' marks. */
static json_t *plot_lines(const struct source *source, const struct hx_fig_plot *plot,
                          const struct hx_fig_marks *marks) {
    json_t *items = json_array();
    for (size_t i = 0; i < marks->count; i++) {
        const struct hx_fig_mark *mark = &marks->items[i];
        size_t metric, slot = hx_figure_at(source->figure, mark->panel, mark->series, mark->at);
        char label[sizeof(mark->label) + 8];
        if (hx_fig_mark_in(mark, plot, &metric)) {
            double ours = hx_fig_value(source->figure, source->data, &plot->y[metric], slot).middle;
            double middle = isinf(mark->low)    ? mark->high
                            : isinf(mark->high) ? mark->low
                                                : (mark->low + mark->high) / 2;
            snprintf(label, sizeof(label), "paper: %s", mark->label);
            json_array_append_new(items, json_pack("[i, o, o, o, s]", (int)mark->panel, number(ours * middle),
                                                   number(ours * mark->low), number(ours * mark->high), label));
        }
    }
    return items;
}

static json_t *plot_labels(const struct hx_fig_plot *plot) {
    json_t *labels = json_array();
    for (size_t i = 0; i < plot->y_count; i++) {
        json_array_append_new(labels, json_string(plot->y[i].label != NULL ? plot->y[i].label : plot->y[i].column));
    }
    return labels;
}

static json_t *plot_object(const struct source *source, const struct hx_fig_plot *plot,
                           const struct hx_fig_marks *marks) {
    const struct hx_figure *figure = source->figure;
    const char *kind = plot->over_time   ? "time"
                       : plot->table     ? "table"
                       : plot->stacked   ? "stack"
                       : plot->by_metric ? "metric"
                       : plot->bars      ? "bar"
                                         : "line";
    bool own_x = plot->over_time || plot->by_metric;
    const char *x_label = own_x && plot->x.label != NULL ? plot->x.label : own_x ? plot->x.column : figure->x_label;
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:o}", "id", plot->id, "title", plot->title, "kind",
                               kind, "y_label", plot->y_label != NULL ? plot->y_label : "", "x_label",
                               x_label != NULL ? x_label : "", "x_log", plot->x_log, "y_log",
                               hx_fig_plot_is_log(figure, plot, source->data), "y", plot_labels(plot));
    json_object_set_new(object, "lines", plot_lines(source, plot, marks));
    json_object_set_new(object, "published", plot_published(figure, plot));
    if (plot->over_time) {
        json_object_set_new(object, "time", plot_times(source, plot));
        return object;
    }
    json_object_set_new(object, "v", plot_values(source, plot, MIDDLE));
    if (figure->repeat > 1) {
        json_object_set_new(object, "low", plot_values(source, plot, LOW));
        json_object_set_new(object, "high", plot_values(source, plot, HIGH));
    }
    if (plot->by_metric) {
        json_object_set_new(object, "x", metric_values(source, &plot->x, MIDDLE));
    }
    return object;
}

/* ---- readings --------------------------------------------------------------------------------------------------- */

/* Whether the reading changes what is measured in a slot, and that was measured. */
static bool slot_changed(const struct source *source, const struct hx_claims *claims,
                         const struct hx_claim_figure *view, size_t slot) {
    const char *base = source->page->points->items[hx_figure_point(source->figure, slot, 0)].hash;
    const char *other = claims->points->items[hx_figure_point(view->figure, slot, 0)].hash;
    bool there = true;
    for (unsigned i = 0; i < view->figure->repeat; i++) {
        there = there && view->data.results[slot * view->figure->repeat + i] != NULL;
    }
    return there && strcmp(base, other) != 0;
}

static json_t *reading_metric(const struct hx_claim_figure *view, const struct hx_fig_metric *metric,
                              const json_t *slots) {
    json_t *values = json_array();
    size_t at;
    json_t *pair;
    json_array_foreach((json_t *)slots, at, pair) {
        size_t slot = (size_t)json_integer_value(json_array_get(pair, 0));
        json_array_append_new(values, number(hx_fig_value(view->figure, &view->data, metric, slot).middle));
    }
    return values;
}

static json_t *reading_object(const struct source *source, const struct hx_claim_figure *view) {
    const struct hx_figure *figure = source->figure;
    const struct hx_claims *claims = source->page->claims;
    const struct hx_fig_overlay *overlay = view->figure->overlay;
    json_t *slots = json_array(), *v = json_array(), *x = json_array();
    for (size_t slot = 0; slot < hx_figure_slots(figure); slot++) {
        if (slot_changed(source, claims, view, slot)) {
            json_int_t row = point_row(source->page, claims->points, hx_figure_point(view->figure, slot, 0),
                                       view->data.results[slot * view->figure->repeat]);
            json_array_append_new(slots, json_pack("[I, I]", (json_int_t)slot, row));
        }
    }
    for (size_t i = 0; i < figure->plot_count; i++) {
        const struct hx_fig_plot *plot = &view->figure->plots[i];
        json_t *metrics = json_array();
        for (size_t k = 0; k < plot->y_count && !plot->over_time; k++) {
            json_array_append_new(metrics, reading_metric(view, &plot->y[k], slots));
        }
        json_array_append_new(v, metrics);
        json_array_append_new(x, plot->by_metric ? reading_metric(view, &plot->x, slots) : json_null());
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "id", overlay->id, "says", overlay->says, "from", overlay->from,
                     "slots", slots, "v", v, "x", x);
}

/* The figure under each reading that judging the claims has evaluated and that changes something. */
static json_t *figure_readings(const struct source *source) {
    const struct hx_claims *claims = source->page->claims;
    json_t *readings = json_array();
    for (size_t i = 0; i < claims->figure_count; i++) {
        const struct hx_claim_figure *view = claims->figures[i];
        const struct hx_fig_overlay *overlay = view->figure->overlay;
        if (!view->loaded || view->profile != NULL || overlay == NULL || overlay->from == NULL ||
            strcmp(view->figure->id, source->figure->id) != 0) {
            continue;
        }
        json_t *reading = reading_object(source, view);
        if (json_array_size(json_object_get(reading, "slots")) > 0) {
            json_array_append(readings, reading);
        }
        json_decref(reading);
    }
    return readings;
}

/* ---- figures ---------------------------------------------------------------------------------------------------- */

static json_t *item_labels(const struct hx_fig_item *items, size_t count, bool styles) {
    json_t *labels = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(labels, styles ? json_pack("[s, s]", items[i].label, items[i].style)
                                             : json_string(items[i].label));
    }
    return labels;
}

/* The row of each slot's first point, -1 where it has no result. */
static json_t *figure_slots(const struct source *source) {
    const struct hx_figure *figure = source->figure;
    json_t *slots = json_array();
    for (size_t slot = 0; slot < hx_figure_slots(figure); slot++) {
        const json_t *result = source->data->results[slot * figure->repeat];
        json_int_t row = result == NULL
                             ? -1
                             : point_row(source->page, source->page->points, hx_figure_point(figure, slot, 0), result);
        json_array_append_new(slots, json_integer(row));
    }
    return slots;
}

static json_t *figure_x(const struct source *source) {
    const struct hx_figure *figure = source->figure;
    json_t *values = json_array();
    for (size_t slot = 0; slot < hx_figure_slots(figure); slot++) {
        json_array_append_new(values,
                              number(hx_figure_x(figure, source->page->points, slot, slot % figure->case_count)));
    }
    return values;
}

int hx_page_data_figure(struct hx_page *page, const struct hx_figure *figure, const struct hx_fig_data *data,
                        struct dm_err *err) {
    const struct source source = {.page = page, .figure = figure, .data = data};
    struct hx_fig_marks marks;
    DM_TRY(hx_claims_marks(page->claims, figure, &marks, err));
    json_t *plots = json_array();
    for (size_t i = 0; i < figure->plot_count; i++) {
        json_array_append_new(plots, plot_object(&source, &figure->plots[i], &marks));
    }
    free(marks.items);
    bool named = figure->x_option == NULL;
    json_t *object = json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "title", figure->title, "panels",
                               item_labels(figure->panels, figure->panel_count, false), "series",
                               item_labels(figure->series, figure->series_count, true), "x_label",
                               figure->x_label != NULL ? figure->x_label : "", "cases",
                               named ? item_labels(figure->cases, figure->case_count, false) : json_null(), "slots",
                               figure_slots(&source), "x", named ? json_null() : figure_x(&source), "plots", plots,
                               "readings", figure_readings(&source));
    int rc = json_object_set_new(json_object_get(page->data, "figures"), figure->id, object);
    return rc == 0 ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the report's data");
}

int hx_page_data_begin(struct hx_page *page, struct dm_err *err) {
    json_t *columns = json_array();
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        json_array_append_new(columns, json_string(numbers[i].name));
    }
    page->rows = json_object();
    page->data = json_pack("{s:s, s:s, s:o, s:o, s:[], s:{}}", "scale", page->scale, "folder", page->folder, "systems",
                           page->systems != NULL ? json_incref(page->systems) : json_object(), "columns", columns,
                           "points", "figures");
    return page->rows != NULL && page->data != NULL ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the report");
}

int hx_page_data_put(const struct hx_page *page, struct dm_err *err) {
    static const char *const scripts[] = {"third_party/chart.js", "third_party/annotation.js",
                                          "third_party/error-bars.js", "report.js"};
    char name[64], path[PATH_BYTES];
    DM_TRY(hx_html_json(page->out, "data", page->data, err));
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        snprintf(name, sizeof(name), "plots/report/%s", scripts[i]);
        dm_data_path(name, path, sizeof(path));
        DM_TRY(hx_html_file(page->out, "script", path, err));
    }
    return 0;
}
