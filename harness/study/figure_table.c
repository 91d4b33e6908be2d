/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the table of a plot: a row for every panel, series and case, and for every number that the paper published.
 */
#include "harness/study/figure_table.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "common/output_file.h"
#include "harness/base/json.h"
#include "harness/study/figure_published.h"

static void print_text(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        fputc(*text == '\n' || *text == '\t' ? ' ' : *text, file);
    }
}

static void print_number(FILE *file, double value) {
    if (isfinite(value)) {
        fprintf(file, "\t%.10g", value);
    } else {
        fprintf(file, "\tNaN");
    }
}

static void table_header(const struct hx_figure *figure, const struct hx_fig_plot *plot, FILE *file) {
    fprintf(file, "panel\tseries\tposition\tcase");
    if (figure->x_option != NULL) {
        fprintf(file, "\tx");
    }
    if (plot->by_metric) {
        fprintf(file, "\t%s", plot->x.column);
    }
    for (size_t i = 0; i < plot->y_count; i++) {
        fprintf(file, "\t%s", plot->y[i].column);
        if (figure->repeat > 1) {
            fprintf(file, "\t%s_low\t%s_high", plot->y[i].column, plot->y[i].column);
        }
    }
    fprintf(file, "%s\tpoint\n", plot->reference != SIZE_MAX ? "\tgain" : "");
}

static void table_row(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_points *points,
                      const struct hx_fig_data *data, size_t panel, size_t series, size_t at, FILE *file) {
    size_t slot = hx_figure_at(figure, panel, series, at);
    double x = hx_figure_x(figure, points, slot, at);
    print_text(file, figure->panels[panel].label);
    fputc('\t', file);
    print_text(file, figure->series[series].label);
    fprintf(file, "\t%zu\t", at);
    if (figure->x_option != NULL) {
        fprintf(file, "%.10g", x);
        print_number(file, x);
    } else {
        print_text(file, figure->cases[at].label);
    }
    if (plot->by_metric) {
        print_number(file, hx_fig_value(figure, data, &plot->x, slot).middle);
    }
    for (size_t i = 0; i < plot->y_count; i++) {
        struct hx_fig_value value = hx_fig_value(figure, data, &plot->y[i], slot);
        print_number(file, value.middle);
        if (figure->repeat > 1) {
            print_number(file, value.low);
            print_number(file, value.high);
        }
    }
    if (plot->reference != SIZE_MAX) {
        size_t reference = hx_figure_at(figure, panel, series, plot->reference);
        print_number(file, hx_fig_value(figure, data, &plot->y[0], slot).middle /
                               hx_fig_value(figure, data, &plot->y[0], reference).middle);
    }
    fprintf(file, "\t");
    for (unsigned i = 0; i < figure->repeat; i++) {
        fprintf(file, "%s%s", i > 0 ? "," : "", points->items[hx_figure_point(figure, slot, i)].hash);
    }
    fprintf(file, "\n");
}

/* A row for each slice of time of a point, of its first seed. */
static void time_rows(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_points *points,
                      const struct hx_fig_data *data, size_t panel, size_t series, size_t at, FILE *file) {
    size_t slot = hx_figure_at(figure, panel, series, at);
    const json_t *result = data->results[slot * figure->repeat];
    const json_t *times = hx_json_find(result, plot->x.path), *values = hx_json_find(result, plot->y[0].path);
    for (size_t i = 0; i < json_array_size(times) && i < json_array_size(values); i++) {
        print_text(file, figure->panels[panel].label);
        fputc('\t', file);
        print_text(file, figure->series[series].label);
        fprintf(file, "\t%zu\t", at);
        print_text(file, figure->cases[at].label);
        print_number(file, json_number_value(json_array_get(times, i)) * plot->x.factor);
        print_number(file, json_number_value(json_array_get(values, i)) * plot->y[0].factor);
        fprintf(file, "\t%s\n", points->items[hx_figure_point(figure, slot, 0)].hash);
    }
    fprintf(file, "\n"); /* gnuplot begins a new curve */
}

static void time_header(const struct hx_fig_plot *plot, FILE *file) {
    fprintf(file, "panel\tseries\tposition\tcase\t%s\t%s\tpoint\n", plot->x.column, plot->y[0].column);
}

/* The row of a number that the paper published: only its own column is there. */
static void published_row(const struct hx_figure *figure, const struct hx_fig_plot *plot,
                          const struct hx_fig_published *item, size_t at, FILE *file) {
    bool named = figure->x_option == NULL;
    double x = hx_fig_published_x(figure, item, at, named ? 1 : hx_figure_divisor(figure, figure->x_option));
    print_text(file, figure->panels[item->panel].label);
    fputc('\t', file);
    print_text(file, item->label);
    if (named && !plot->by_metric) {
        fprintf(file, "\t%.10g\t", x);
        print_text(file, json_string_value(json_array_get(item->x, at)));
    } else {
        fprintf(file, "\tNaN\t%.10g", x);
    }
    if (!named) {
        print_number(file, plot->by_metric ? NAN : x);
    }
    if (plot->by_metric) {
        print_number(file, x);
    }
    for (size_t i = 0; i < plot->y_count; i++) {
        double y = i == item->metric ? hx_fig_published_y(item, at) : NAN;
        for (int k = 0; k < (figure->repeat > 1 ? 3 : 1); k++) {
            print_number(file, y);
        }
    }
    fprintf(file, "%s\t", plot->reference != SIZE_MAX ? "\tNaN" : "");
    print_text(file, item->source);
    fputc('\n', file);
}

int hx_fig_table(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_points *points,
                 const struct hx_fig_data *data, const char *path, struct dm_err *err) {
    FILE *file = dm_output_open(path, err);
    if (file == NULL) {
        return DM_ERR_IO;
    }
    if (plot->over_time) {
        time_header(plot, file);
    } else {
        table_header(figure, plot, file);
    }
    for (size_t panel = 0; panel < figure->panel_count; panel++) {
        for (size_t series = 0; series < figure->series_count; series++) {
            for (size_t at = 0; at < figure->case_count; at++) {
                (plot->over_time ? time_rows : table_row)(figure, plot, points, data, panel, series, at, file);
            }
        }
    }
    for (size_t i = 0; i < figure->published_count; i++) {
        const struct hx_fig_published *item = &figure->published[i];
        for (size_t at = 0; plot == &figure->plots[item->plot] && at < hx_fig_published_count(item); at++) {
            published_row(figure, plot, item, at, file);
        }
    }
    return dm_output_close(file, path, err);
}
