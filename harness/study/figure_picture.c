/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of a picture need of the figure: the ranges of its values, its x axis, and where marks are.
 */
#include <math.h>
#include <string.h>

#include "harness/base/json.h"
#include "harness/study/figure_layout.h"
#include "harness/study/figure_published.h"

/* A gnuplot string. Backquotes would run a command. */
static void write_escaped(FILE *file, const char *text, const char *percent) {
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            fputs("\\n", file);
        } else if (*text == '%') {
            fputs(percent, file);
        } else if (*text == '"' || *text == '\\') {
            fprintf(file, "\\%c", *text);
        } else {
            fputc(*text == '`' ? '\'' : *text, file);
        }
    }
    fputc('"', file);
}

void hx_picture_quote(FILE *file, const char *text) {
    write_escaped(file, text, "%");
}

void hx_picture_quote_tic(FILE *file, const char *text) {
    write_escaped(file, text, "%%");
}

size_t hx_picture_variants(const struct hx_picture *picture) {
    return picture->plot->over_time ? picture->figure->case_count : picture->plot->y_count;
}

double hx_picture_plot_width(const struct hx_picture *picture) {
    const struct hx_fig_layout *layout = &picture->layout;
    return layout->cell_width - layout->panel_left - layout->panel_right;
}

static bool same_json(const json_t *a, const json_t *b) {
    return a == b || (a != NULL && b != NULL && json_equal(a, b));
}

bool hx_fig_mark_in(const struct hx_fig_mark *mark, const struct hx_fig_plot *plot, size_t *metric) {
    for (*metric = 0; *metric < plot->y_count && !plot->over_time && !plot->stacked; (*metric)++) {
        const struct hx_fig_metric *own = &plot->y[*metric];
        if (strcmp(own->path, mark->metric.path) == 0 && same_json(own->over, mark->metric.over) &&
            same_json(own->plus, mark->metric.plus)) {
            return true;
        }
    }
    return false;
}

double hx_picture_mark_y(const struct hx_picture *picture, size_t at, double *low, double *high) {
    const struct hx_fig_mark *mark = &picture->marks->items[at];
    size_t metric;
    *low = *high = NAN;
    if (!hx_fig_mark_in(mark, picture->plot, &metric)) {
        return NAN;
    }
    size_t slot = hx_figure_at(picture->figure, mark->panel, mark->series, mark->at);
    double ours = hx_fig_value(picture->figure, picture->data, &picture->plot->y[metric], slot).middle;
    *low = ours * mark->low;
    *high = ours * mark->high;
    return isinf(*low) ? *high : isinf(*high) ? *low : (*low + *high) / 2;
}

size_t hx_picture_mark_number(const struct hx_picture *picture, size_t mark) {
    size_t number = 0;
    double low, high;
    for (size_t i = 0; i <= mark; i++) {
        bool drawn = isfinite(hx_picture_mark_y(picture, i, &low, &high));
        number += drawn;
        if (i == mark && !drawn) {
            return 0;
        }
    }
    return number;
}

/* ---- ranges ----------------------------------------------------------------------------------------------------- */

static void widen(double *least, double *most, double value) {
    if (isfinite(value)) {
        *least = value > 0 && value < *least ? value : *least;
        *most = value > *most ? value : *most;
    }
}

static void widen_by_slot(const struct hx_picture *picture, size_t slot, double *least, double *most) {
    double sum = 0;
    for (size_t i = 0; i < picture->plot->y_count; i++) {
        struct hx_fig_value value = hx_fig_value(picture->figure, picture->data, &picture->plot->y[i], slot);
        sum += isfinite(value.middle) ? value.middle : 0;
        widen(least, most, value.middle);
        widen(least, most, value.low);
        widen(least, most, value.high);
        *least = value.middle == 0 && !picture->plot->stacked ? 0 : *least; /* no position on a logarithmic axis */
    }
    if (picture->plot->stacked) {
        widen(least, most, sum);
    }
}

/* Published numbers and marks take part as far as they do not make our own unreadable. */
static void widen_by_papers(const struct hx_picture *picture, size_t panel, double *least, double *most) {
    double bound = *most * 1.8, floor = *least / 4;
    for (size_t i = 0; i < picture->figure->published_count; i++) {
        const struct hx_fig_published *item = &picture->figure->published[i];
        for (size_t k = 0; k < hx_fig_published_count(item); k++) {
            if (item->panel == panel && picture->plot == &picture->figure->plots[item->plot]) {
                widen(least, most, hx_fig_published_y(item, k));
            }
        }
    }
    for (size_t i = 0; i < picture->marks->count; i++) {
        double low, high;
        double middle = hx_picture_mark_y(picture, i, &low, &high);
        if (picture->marks->items[i].panel == panel && middle <= bound && middle >= floor) {
            widen(least, most, middle);
            widen(least, most, high <= bound ? high : middle);
        }
    }
}

void hx_picture_range(const struct hx_picture *picture, size_t panel, double *least, double *most) {
    const struct hx_figure *figure = picture->figure;
    *least = INFINITY;
    *most = 0;
    for (size_t i = 0; i < figure->series_count * figure->case_count; i++) {
        size_t slot = hx_figure_at(figure, panel, 0, 0) + i;
        const json_t *result = picture->data->results[slot * figure->repeat];
        const json_t *values = picture->plot->over_time ? hx_json_find(result, picture->plot->y[0].path) : NULL;
        if (!picture->plot->over_time) {
            widen_by_slot(picture, slot, least, most);
        }
        for (size_t k = 0; k < json_array_size(values); k++) {
            double value = json_number_value(json_array_get(values, k)) * picture->plot->y[0].factor;
            widen(least, most, value);
            *least = value == 0 ? 0 : *least;
        }
    }
    widen_by_papers(picture, panel, least, most);
}

/* One panel's range decides for all, so that panels can be compared. */
bool hx_picture_is_log(const struct hx_picture *picture) {
    bool log = picture->plot->y_scale == HX_Y_LOG;
    for (size_t panel = 0; panel < picture->figure->panel_count; panel++) {
        double least, most;
        hx_picture_range(picture, panel, &least, &most);
        bool wide = least > 0 && most > HX_AXIS_SPAN * least;
        log = log || (wide && picture->plot->y_scale == HX_Y_BY_DATA && !picture->plot->stacked &&
                      !picture->plot->over_time && picture->plot->y_limit == 0);
    }
    return log;
}

bool hx_fig_plot_is_log(const struct hx_figure *figure, const struct hx_fig_plot *plot,
                        const struct hx_fig_data *data) {
    const struct hx_fig_marks none = {.count = 0};
    const struct hx_picture picture = {.figure = figure, .plot = plot, .data = data, .marks = &none};
    return hx_picture_is_log(&picture);
}

void hx_picture_x_axis(const struct hx_picture *picture, size_t panel, struct hx_axis *axis) {
    enum { VALUES_MAX = 4096 };
    const struct hx_figure *figure = picture->figure;
    double values[VALUES_MAX];
    size_t count = picture->plot->over_time ? 1 : 0;
    double width = hx_picture_plot_width(picture);
    *axis = (struct hx_axis){.log = picture->plot->x_log};
    for (size_t i = 0; i < figure->series_count * figure->case_count && count < VALUES_MAX; i++) {
        size_t slot = hx_figure_at(figure, panel, 0, 0) + i;
        const json_t *times = hx_json_find(picture->data->results[slot * figure->repeat], picture->plot->x.path);
        double x = picture->plot->over_time
                       ? json_number_value(json_array_get(times, json_array_size(times) - 1)) * picture->plot->x.factor
                   : picture->plot->by_metric ? hx_fig_value(figure, picture->data, &picture->plot->x, slot).middle
                                              : hx_figure_x(figure, picture->points, slot, slot % figure->case_count);
        bool again = !isfinite(x) || (!picture->plot->by_metric && i >= figure->case_count);
        values[count] = x;
        count += !again;
    }
    for (size_t i = 0; i < figure->published_count; i++) {
        const struct hx_fig_published *item = &figure->published[i];
        bool here = item->panel == panel && picture->plot == &figure->plots[item->plot];
        double divisor = figure->x_option != NULL ? hx_figure_divisor(figure, figure->x_option) : 1;
        for (size_t k = 0; here && k < hx_fig_published_count(item) && count < VALUES_MAX && !axis->log; k++) {
            values[count++] = hx_fig_published_x(figure, item, k, divisor);
        }
    }
    if (picture->plot->over_time) {
        values[0] = 0; /* the ends are behind it */
    }
    hx_axis_x(axis, values, count, (int)(width / 30) > 2 ? (int)(width / 30) : 2);
    hx_axis_thin(axis, HX_FONT_TIC, width);
}
