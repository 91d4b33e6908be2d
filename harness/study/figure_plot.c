/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the gnuplot program of a plot: the layout, the axes and which rows of the table make which curve. Colours,
 * line and point types, fonts and terminals are in plots/style.gp, which the program loads.
 */
#include "harness/study/figure_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/compiler.h"
#include "common/output_file.h"
#include "harness/study/figure_published.h"

/* All in pixels of the SVG; the PNG is drawn larger by a factor of style.gp. */
enum {
    CELL_WIDTH = 212,
    CELL_HEIGHT = 182,
    WIDE_WIDTH = 280, /* two or three panels */
    WIDE_HEIGHT = 205,
    SINGLE_WIDTH = 440,
    SINGLE_HEIGHT = 270,
    BAR_WIDTH = 58, /* of a case */
    EDGE_LEFT = 30, /* the y label */
    EDGE_RIGHT = 8,
    HEADER = 30,       /* the title */
    LEGEND = 22,       /* a strip of its own, if no cell is free */
    LEGEND_NAME = 210, /* of a long name with its sample */
    FOOTER = 44,       /* the x label and the line of provenance */
    FOOTER_LETTER = 5, /* mean width of a letter of the footer */
    ABSENT = 14,       /* the line of what is not built */
    PANEL_LEFT = 40,   /* tic labels */
    PANEL_RIGHT = 10,
    PANEL_TOP = 20,    /* the panel's name */
    PANEL_BOTTOM = 28, /* tic labels */
    COLUMNS_MAX = 4,
    TICS_MAX = 9,
};

struct layout {
    size_t columns, rows;
    int cell_width, cell_height, panel_bottom;
    int width, height, legend_height, footer_height;
    bool legend, legend_in_cell;
};

struct writer {
    FILE *file;
    const struct hx_figure *figure;
    const struct hx_fig_plot *plot;
    const struct hx_points *points;
    const struct hx_fig_data *data;
    const struct hx_fig_lines *lines;
    struct layout layout;
};

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

static void write_quoted(FILE *file, const char *text) {
    write_escaped(file, text, "%");
}

/* gnuplot uses the label of a tic as a number format. */
static void write_tic(FILE *file, const char *label, size_t at) {
    write_escaped(file, label, "%%");
    fprintf(file, " %zu", at);
}

/* ---- the footer ------------------------------------------------------------------------------------------------- */

/* The value that an option has in all points of the figure, or NULL if they differ. */
static const json_t *common_option(const struct hx_figure *figure, const struct hx_points *points, const char *name) {
    size_t count = hx_figure_slots(figure);
    const json_t *common = json_object_get(points->items[hx_figure_point(figure, 0, 0)].config, name);
    for (size_t slot = 1; slot < count && common != NULL; slot++) {
        if (!json_equal(common, json_object_get(points->items[hx_figure_point(figure, slot, 0)].config, name))) {
            common = NULL;
        }
    }
    return common;
}

/* 60000000 as "60 M", 1440 as "1440". */
static void count_text(double number, char *text, size_t capacity) {
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e9, " G"}, {1e6, " M"}, {1e3, " K"}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (number >= 1e4 && number >= units[i].unit) {
            snprintf(text, capacity, "%.4g%s", number / units[i].unit, units[i].name);
            return;
        }
    }
    snprintf(text, capacity, "%.4g", number);
}

static const char *time_base_text(const struct hx_figure *figure, const struct hx_fig_data *data) {
    size_t count = hx_figure_slots(figure) * figure->repeat;
    size_t virtual_count = 0, real_count = 0, trained_count = 0;
    for (size_t slot = 0; slot < count; slot++) {
        const char *base = json_string_value(json_object_get(data->results[slot], "time_base"));
        virtual_count += base != NULL && strcmp(base, "virtual") == 0;
        real_count += base != NULL && strcmp(base, "real") == 0;
        trained_count += base != NULL && strcmp(base, "none") == 0;
    }
    if (trained_count > 0) {
        return "models trained on this host, no network";
    }
    if (virtual_count > 0 && real_count > 0) {
        return "virtual and real time mixed";
    }
    return real_count > 0 ? "measured (real time)" : "simulated (virtual time)";
}

/* One line: time base, profile, cluster and scale; an option is given if all points share it. */
static void footer_text(const struct hx_figure *figure, const struct hx_points *points, const struct hx_fig_data *data,
                        char *text, size_t capacity) {
    static const struct {
        const char *option, *one, *many;
    } parts[] = {{"cns", "CN", "CNs"}, {"mns", "MN", "MNs"}, {"clients", "client", "clients"}, {"keys", "key", "keys"}};
    char cluster[256] = "";
    size_t length = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const json_t *value = common_option(figure, points, parts[i].option);
        if (json_is_number(value) && length < sizeof(cluster)) {
            char number[32];
            count_text(json_number_value(value), number, sizeof(number));
            length += (size_t)snprintf(cluster + length, sizeof(cluster) - length, ", %s %s", number,
                                       json_number_value(value) > 1 ? parts[i].many : parts[i].one);
        }
    }
    const char *profile = json_string_value(common_option(figure, points, "profile"));
    char seeds[32] = "";
    if (figure->repeat > 1) {
        snprintf(seeds, sizeof(seeds), ", %u seeds", figure->repeat);
    }
    const char *time_base = time_base_text(figure, data);
    if (hx_point_trains(&points->items[hx_figure_point(figure, 0, 0)])) {
        snprintf(text, capacity, "%s%s, scale %s%s", time_base, cluster, figure->scale, seeds);
        return;
    }
    snprintf(text, capacity, "%s, profile %s%s, scale %s%s", time_base, profile != NULL ? profile : "differs", cluster,
             figure->scale, seeds);
}

/* ---- layout ----------------------------------------------------------------------------------------------------- */

static int longest_case_lines(const struct hx_figure *figure) {
    int most = 1;
    for (size_t i = 0; i < figure->case_count; i++) {
        int lines = 1;
        for (const char *at = figure->cases[i].label; (at = strchr(at, '\n')) != NULL; at++) {
            lines++;
        }
        most = lines > most ? lines : most;
    }
    return most;
}

/* Curves of a series, which differ by their lines: one a metric, and over time one a case. */
static size_t variants(const struct hx_figure *figure, const struct hx_fig_plot *plot) {
    return plot->over_time ? figure->case_count : plot->y_count;
}

/* With names of published numbers, which are long, a legend may need several rows. */
static int legend_rows(const struct hx_figure *figure, const struct hx_fig_plot *plot, int width) {
    int names = (int)(figure->series_count * variants(figure, plot)), published = 0;
    for (size_t i = 0; i < figure->published_count; i++) {
        const struct hx_fig_published *item = &figure->published[i];
        bool first = item->panel == 0 && plot == &figure->plots[item->plot];
        published += first;
    }
    int columns = width / LEGEND_NAME > 0 ? width / LEGEND_NAME : 1;
    return published > 0 ? (names + published + columns - 1) / columns : 1;
}

static struct layout layout_make(const struct hx_figure *figure, const struct hx_fig_plot *plot) {
    struct layout layout = {.columns = figure->panel_count < COLUMNS_MAX ? figure->panel_count : COLUMNS_MAX};
    layout.cell_width = CELL_WIDTH;
    layout.cell_height = CELL_HEIGHT;
    if (figure->panel_count < COLUMNS_MAX) {
        layout.cell_width = figure->panel_count == 1 ? SINGLE_WIDTH : WIDE_WIDTH;
        layout.cell_height = figure->panel_count == 1 ? SINGLE_HEIGHT : WIDE_HEIGHT;
    }
    layout.panel_bottom = PANEL_BOTTOM;
    if (plot->bars) {
        int lines = longest_case_lines(figure);
        int wanted = PANEL_LEFT + PANEL_RIGHT + BAR_WIDTH * (int)figure->case_count;
        layout.cell_width = wanted > layout.cell_width ? wanted : layout.cell_width;
        layout.columns = layout.cell_width > SINGLE_WIDTH || figure->panel_count < 2 ? 1 : 2;
        layout.panel_bottom = PANEL_BOTTOM + 12 * (lines - 1);
        layout.cell_height += 12 * (lines - 1);
    }
    layout.rows = (figure->panel_count + layout.columns - 1) / layout.columns;
    layout.legend = figure->series_count * variants(figure, plot) > 1 || figure->published_count > 0;
    layout.legend_in_cell = layout.legend && layout.rows * layout.columns > figure->panel_count;
    layout.width = EDGE_LEFT + EDGE_RIGHT + (int)layout.columns * layout.cell_width;
    layout.legend_height =
        layout.legend && !layout.legend_in_cell ? LEGEND * legend_rows(figure, plot, layout.width) : 0;
    layout.footer_height = FOOTER + (figure->absent_count > 0 ? ABSENT : 0);
    layout.height = HEADER + layout.legend_height + layout.footer_height + (int)layout.rows * layout.cell_height;
    return layout;
}

static void write_margins(const struct writer *writer, int left, int right, int top, int bottom) {
    const struct layout *layout = &writer->layout;
    fprintf(writer->file,
            "    set lmargin at screen %.4f; set rmargin at screen %.4f\n"
            "    set tmargin at screen %.4f; set bmargin at screen %.4f\n",
            (double)left / layout->width, (double)right / layout->width, 1 - (double)top / layout->height,
            1 - (double)bottom / layout->height);
}

/* The margins of a cell's plot area. */
static void write_cell(const struct writer *writer, size_t cell) {
    const struct layout *layout = &writer->layout;
    int left = EDGE_LEFT + (int)(cell % layout->columns) * layout->cell_width;
    int top = HEADER + layout->legend_height + (int)(cell / layout->columns) * layout->cell_height;
    write_margins(writer, left + PANEL_LEFT, left + layout->cell_width - PANEL_RIGHT, top + PANEL_TOP,
                  top + layout->cell_height - layout->panel_bottom);
}

/* ---- axes ------------------------------------------------------------------------------------------------------- */

/* A logarithmic x has tics at its values, a linear x those that gnuplot chooses. */
static void write_x_option(const struct writer *writer) {
    const struct hx_figure *figure = writer->figure;
    double low = INFINITY, high = 0;
    size_t step = (figure->case_count + TICS_MAX - 1) / TICS_MAX;
    for (size_t at = 0; at < figure->case_count; at++) {
        double x = hx_figure_x(figure, writer->points, hx_figure_at(figure, 0, 0, at), at);
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    if (!writer->plot->x_log || low <= 0) {
        fprintf(writer->file, "    set xtics autofreq\n    set xrange [0:%.10g]\n", high * 1.05);
        return;
    }
    fprintf(writer->file, "    set logscale x 2\n    set xrange [%.10g:%.10g]\n    set xtics (", low / 1.25,
            high * 1.25);
    for (size_t at = 0; at < figure->case_count; at += step) {
        double x = hx_figure_x(figure, writer->points, hx_figure_at(figure, 0, 0, at), at);
        char text[32];
        count_text(x, text, sizeof(text));
        fprintf(writer->file, "%s\"%s\" %.10g", at > 0 ? ", " : "", text, x);
    }
    fprintf(writer->file, ")\n");
}

/* With tics at powers of ten alone, less than two decades would have only one number. */
static void write_tics_log(FILE *file, double low, double high) {
    if (high >= 100 * low) {
        fprintf(file, "    set ytics autofreq\n");
        return;
    }
    const char *separator = "    set ytics (";
    static const double steps[] = {1, 2, 5, 10, 20, 50};
    for (size_t i = 0; i < DM_ARRAY_LEN(steps) && steps[i] * low <= high; i++) {
        fprintf(file, "%s\"%.4g\" %.10g", separator, steps[i] * low, steps[i] * low);
        separator = ", ";
    }
    fprintf(file, ")\n");
}

/* From 0, so that heights compare; a logarithmic y from the power of ten below the panel's lowest value. */
static void write_y(const struct writer *writer, size_t panel) {
    const struct hx_figure *figure = writer->figure;
    const struct hx_fig_plot *plot = writer->plot;
    double low = INFINITY, high = 0;
    for (size_t at = 0; plot->y_log && at < figure->series_count * figure->case_count * plot->y_count; at++) {
        size_t slot = hx_figure_at(figure, panel, 0, 0) + at / plot->y_count;
        double y = hx_fig_value(figure, writer->data, &plot->y[at % plot->y_count], slot).middle;
        low = y > 0 && y < low ? y : low;
        high = y > high ? y : high;
    }
    if (high > 0) {
        double bottom = pow(10, floor(log10(low)));
        fprintf(writer->file, "    set logscale y 10\n    set offsets 0, 0, 0, 0\n    set yrange [%.10g:%.10g]\n",
                bottom, high * 1.6);
        write_tics_log(writer->file, bottom, high * 1.6);
    } else {
        fprintf(writer->file, "    set yrange [0:*]\n    set ytics autofreq\n");
    }
}

static void write_axes(const struct writer *writer, size_t panel) {
    const struct hx_fig_plot *plot = writer->plot;
    if (plot->bars) {
        fprintf(writer->file, "    set xtics (");
        for (size_t at = 0; at < writer->figure->case_count; at++) {
            fprintf(writer->file, "%s", at > 0 ? ", " : "");
            write_tic(writer->file, writer->figure->cases[at].label, at);
        }
        fprintf(writer->file, ") nomirror scale 0\n    set xrange [-0.6:%zu - 0.4]\n", writer->figure->case_count);
    } else if (plot->by_metric) {
        fprintf(writer->file, plot->x_log ? "    set logscale x\n    set xrange [*:*]\n" : "    set xrange [0:*]\n");
    } else {
        write_x_option(writer);
    }
    write_y(writer, panel);
}

/* ---- curves ----------------------------------------------------------------------------------------------------- */

/* Series in colour, the metrics of one series by variants of its line. */
static void write_style(const struct writer *writer, size_t series, size_t metric) {
    fprintf(writer->file, "linestyle style_of(");
    write_quoted(writer->file, writer->figure->series[series].style);
    fprintf(writer->file, ", %zu, %zu)", series + 1, metric);
}

/* A column of the panel's and series' rows. */
static void write_pick(const struct writer *writer, size_t panel, size_t series, const char *column,
                       const char *suffix) {
    fprintf(writer->file, ":(pick(");
    write_quoted(writer->file, writer->figure->panels[panel].label);
    fprintf(writer->file, ", ");
    write_quoted(writer->file, writer->figure->series[series].label);
    fprintf(writer->file, ", \"%s%s\"))", column, suffix);
}

/* Rows of one point over time. */
static void write_time_curve(const struct writer *writer, size_t panel, size_t series, size_t at) {
    const struct hx_fig_plot *plot = writer->plot;
    fprintf(writer->file, "        data using (column(\"position\") == %zu ? column(\"%s\") : NaN)", at,
            plot->x.column);
    write_pick(writer, panel, series, plot->y[0].column, "");
    fprintf(writer->file, " with lines ");
    write_style(writer, series, at);
    fprintf(writer->file, " notitle");
}

/* With several seeds, bars of error from the low to the high end of the interval. */
static void write_curve(const struct writer *writer, size_t panel, size_t series, size_t metric) {
    const struct hx_fig_plot *plot = writer->plot;
    const char *x = plot->bars ? "position" : plot->by_metric ? plot->x.column : "x";
    bool repeated = writer->figure->repeat > 1;
    double count = (double)writer->figure->series_count;
    double width = 0.78 / count;
    fprintf(writer->file, "        data using (column(\"%s\")", x);
    if (plot->bars) {
        fprintf(writer->file, " + %.4f", ((double)series - (count - 1) / 2) * width);
    }
    fprintf(writer->file, ")");
    write_pick(writer, panel, series, plot->y[metric].column, "");
    if (repeated) {
        write_pick(writer, panel, series, plot->y[metric].column, "_low");
        write_pick(writer, panel, series, plot->y[metric].column, "_high");
    }
    if (plot->bars) {
        fprintf(writer->file, ":(%.4f) with %s ", width * 0.92, repeated ? "boxerrorbars" : "boxes");
    } else {
        fprintf(writer->file, " with %s ", repeated ? "yerrorlines" : "linespoints");
    }
    write_style(writer, series, metric);
    fprintf(writer->file, " notitle");
}

static bool is_published(const struct writer *writer, const struct hx_fig_published *item) {
    return writer->plot == &writer->figure->plots[item->plot];
}

/* On a bar of the same colour points are dark. */
static void write_published_style(const struct writer *writer, const struct hx_fig_published *item, size_t at) {
    bool on_bar = writer->plot->bars && item->series != SIZE_MAX;
    fprintf(writer->file, "linestyle style_of(");
    write_quoted(writer->file, item->style);
    fprintf(writer->file, ", %zu, %zu) pointsize 1.1%s", writer->figure->series_count + at + 1, item->metric + 1,
            on_bar ? " linecolor rgb \"#222222\"" : "");
}

/* What the paper published, as open points; in a plot of bars beside the bar of the same system. */
static void write_published(const struct writer *writer, size_t panel) {
    const struct hx_fig_plot *plot = writer->plot;
    const char *x = plot->bars ? "position" : plot->by_metric ? plot->x.column : "x";
    double count = (double)writer->figure->series_count;
    for (size_t i = 0; i < writer->figure->published_count; i++) {
        const struct hx_fig_published *item = &writer->figure->published[i];
        if (item->panel != panel || !is_published(writer, item)) {
            continue;
        }
        double shift =
            plot->bars && item->series != SIZE_MAX ? ((double)item->series - (count - 1) / 2) * 0.78 / count : 0;
        fprintf(writer->file, ", \\\n        data using (column(\"%s\") + %.4f):(pick(", x, shift);
        write_quoted(writer->file, writer->figure->panels[panel].label);
        fprintf(writer->file, ", ");
        write_quoted(writer->file, item->label);
        fprintf(writer->file, ", \"%s\")) with points ", plot->y[item->metric].column);
        write_published_style(writer, item, i);
        fprintf(writer->file, " notitle");
    }
}

/* What the papers claim, as lines across the panel; a range as a band. */
static void write_lines(const struct writer *writer, size_t panel) {
    for (size_t i = 0; i < writer->lines->count; i++) {
        const struct hx_fig_line *line = &writer->lines->items[i];
        if (line->panel == panel && strcmp(line->plot, writer->plot->id) == 0) {
            fprintf(writer->file, ", \\\n        %.10g with lines linestyle style_claim notitle", line->y);
        }
    }
}

static void write_band(const struct writer *writer, const struct hx_fig_line *line, size_t at) {
    if (line->high > line->low) {
        fprintf(writer->file,
                "    set object %zu rectangle from graph 0, first %.10g to graph 1, first %.10g behind fillcolor rgb "
                "color_claim fillstyle solid 0.12 noborder\n",
                20 + at, line->low, line->high);
    }
}

/* Their names, at their left ends; after the panel they are unset. */
static void write_line_labels(const struct writer *writer, size_t panel, bool set) {
    for (size_t i = 0; i < writer->lines->count; i++) {
        const struct hx_fig_line *line = &writer->lines->items[i];
        if (line->panel != panel || strcmp(line->plot, writer->plot->id) != 0) {
            continue;
        }
        if (!set) {
            fprintf(writer->file, "    unset label %zu; unset object %zu\n", 20 + i, 20 + i);
            continue;
        }
        write_band(writer, line, i);
        fprintf(writer->file, "    set label %zu ", 20 + i);
        write_quoted(writer->file, line->label);
        fprintf(writer->file,
                " at graph 0.01, first %.10g left offset 0, 0.4 font font_tiny textcolor rgb color_claim\n", line->y);
    }
}

/* The gain above each bar. */
static void write_gains(const struct writer *writer, size_t panel, size_t series) {
    double count = (double)writer->figure->series_count;
    double shift = ((double)series - (count - 1) / 2) * 0.78 / count;
    fprintf(writer->file, ", \\\n        data using (column(\"position\") + %.4f):(pick(", shift);
    write_quoted(writer->file, writer->figure->panels[panel].label);
    fprintf(writer->file, ", ");
    write_quoted(writer->file, writer->figure->series[series].label);
    fprintf(writer->file,
            ", \"%s\")):(sprintf(\"%%.3g×\", column(\"gain\"))) with labels offset 0, 0.5 font font_small notitle",
            writer->plot->y[0].column);
}

/* A panel that lacks points shows how many instead of partial curves, which could be mistaken for results. */
static void write_missing(const struct writer *writer, size_t missing) {
    size_t total = writer->figure->series_count * writer->figure->case_count;
    fprintf(writer->file,
            "    set label 9 \"not drawn:\\n%zu of %zu points\\nare missing\" at graph 0.5, graph 0.6 center\n"
            "    unset xtics; unset ytics\n    plot [0:1] [0:1] NaN notitle\n    unset label 9; @restore_tics\n",
            missing, total);
}

static void write_panel(const struct writer *writer, size_t panel) {
    const struct hx_fig_plot *plot = writer->plot;
    fprintf(writer->file, "\n    # ---- panel %zu\n", panel + 1);
    write_cell(writer, panel);
    fprintf(writer->file, "    set title ");
    write_quoted(writer->file, writer->figure->panels[panel].label);
    fprintf(writer->file, "\n");
    size_t missing = hx_fig_data_missing(writer->figure, writer->data, panel);
    if (missing > 0) {
        write_missing(writer, missing);
        return;
    }
    write_axes(writer, panel);
    write_line_labels(writer, panel, true);
    fprintf(writer->file, "    plot \\\n");
    const char *separator = "";
    for (size_t series = 0; series < writer->figure->series_count; series++) {
        for (size_t variant = 0; variant < variants(writer->figure, plot); variant++) {
            fprintf(writer->file, "%s", separator);
            (plot->over_time ? write_time_curve : write_curve)(writer, panel, series, variant);
            separator = ", \\\n";
        }
        if (plot->bars && plot->reference != SIZE_MAX) {
            write_gains(writer, panel, series);
        }
    }
    write_published(writer, panel);
    write_lines(writer, panel);
    fprintf(writer->file, "\n    unset logscale\n");
    write_line_labels(writer, panel, false);
}

/* Each name once, whatever the panel. */
static void write_published_legend(const struct writer *writer) {
    const struct hx_figure *figure = writer->figure;
    for (size_t i = 0; i < figure->published_count; i++) {
        const struct hx_fig_published *item = &figure->published[i];
        bool again = !is_published(writer, item);
        for (size_t k = 0; k < i; k++) {
            again = again || (is_published(writer, &figure->published[k]) &&
                              strcmp(figure->published[k].label, item->label) == 0);
        }
        if (!again) {
            fprintf(writer->file, ", \\\n        NaN with points ");
            write_published_style(writer, item, i);
            fprintf(writer->file, " title ");
            write_quoted(writer->file, item->label);
        }
    }
}

static void write_legend(const struct writer *writer) {
    const struct layout *layout = &writer->layout;
    fprintf(writer->file, "\n    # ---- legend\n");
    if (layout->legend_in_cell) {
        write_cell(writer, writer->figure->panel_count);
    } else {
        write_margins(writer, EDGE_LEFT, layout->width - EDGE_RIGHT, HEADER, HEADER + layout->legend_height);
    }
    fprintf(writer->file, "    unset title; unset border; unset tics; unset grid\n    set key center center %s\n",
            layout->legend_in_cell ? "vertical" : "horizontal");
    fprintf(writer->file, "    plot [0:1] [0:1] \\\n");
    const char *separator = "";
    for (size_t series = 0; series < writer->figure->series_count; series++) {
        for (size_t metric = 0; metric < variants(writer->figure, writer->plot); metric++) {
            char title[256];
            const char *label = writer->figure->series[series].label;
            bool one_case = writer->figure->case_count == 1;
            const char *what = !writer->plot->over_time ? writer->plot->y[metric].label
                               : one_case               ? ""
                                                        : writer->figure->cases[metric].label;
            snprintf(title, sizeof(title), "%s%s%s", label, what[0] != '\0' ? ", " : "", what);
            fprintf(writer->file, "%s        NaN with %s ", separator, writer->plot->bars ? "boxes" : "linespoints");
            write_style(writer, series, metric);
            fprintf(writer->file, " title ");
            write_quoted(writer->file, title);
            separator = ", \\\n";
        }
    }
    write_published_legend(writer);
    fprintf(writer->file, "\n");
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

static void write_head(const struct writer *writer) {
    const struct hx_figure *figure = writer->figure;
    const struct hx_fig_plot *plot = writer->plot;
    fprintf(
        writer->file,
        "# Figure %s, plot %s, made by `dmbench figure %s --scale %s`.\n"
        "# To change it: edit, then run `gnuplot %s.gp` in this folder. Colours, lines and fonts are in ../style.gp,\n"
        "# the numbers in %s.tsv.\n"
        "# Shows: %s\n# Keeps: %s\n\n",
        figure->id, plot->id, figure->id, figure->scale, plot->id, plot->id, figure->shows, figure->keeps);
    fprintf(writer->file, "name = \"%s\"\ndata = name.\".tsv\"\nwidth = %d\nheight = %d\nload \"../style.gp\"\n\n",
            plot->id, writer->layout.width, writer->layout.height);
    fprintf(writer->file,
            "pick(panel, series, y) = strcol(\"panel\") eq panel && strcol(\"series\") eq series ? column(y) "
            ": NaN\n\n");
}

static void write_labels(const struct writer *writer) {
    const struct layout *layout = &writer->layout;
    char footer[512];
    double grid_middle = HEADER + layout->legend_height + (double)layout->rows * layout->cell_height / 2;
    double x_middle =
        EDGE_LEFT + PANEL_LEFT + (layout->width - EDGE_LEFT - PANEL_LEFT - EDGE_RIGHT - PANEL_RIGHT) / 2.0;
    footer_text(writer->figure, writer->points, writer->data, footer, sizeof(footer));
    fprintf(writer->file, "    set label 1 ");
    write_quoted(writer->file, writer->plot->title);
    fprintf(writer->file, " at screen 0.5, %.4f center font font_title\n    set label 2 ",
            1 - (double)HEADER * 0.5 / layout->height);
    write_quoted(writer->file, writer->plot->y_label);
    fprintf(writer->file, " at screen %.4f, %.4f center rotate by 90\n    set label 3 ",
            EDGE_LEFT * 0.55 / layout->width, 1 - grid_middle / layout->height);
    write_quoted(writer->file, writer->plot->by_metric ? writer->plot->x.label : writer->figure->x_label);
    fprintf(writer->file, " at screen %.4f, %.4f center\n    set label 4 ", x_middle / layout->width,
            (layout->footer_height - FOOTER * 0.26) / layout->height);
    write_quoted(writer->file, footer);
    bool fits = (double)strlen(footer) * FOOTER_LETTER <= layout->width;
    fprintf(writer->file, " at screen 0.5, %.4f center font %s textcolor rgb color_note\n",
            (layout->footer_height - FOOTER * 0.76) / layout->height, fits ? "font_small" : "font_tiny");
    hx_fig_absent_text(writer->figure, footer, sizeof(footer));
    if (footer[0] != '\0') {
        fprintf(writer->file, "    set label 5 ");
        write_quoted(writer->file, footer);
        fprintf(writer->file, " at screen 0.5, %.4f center font font_small textcolor rgb color_note\n",
                ABSENT * 0.5 / layout->height);
    }
}

int hx_fig_program(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_points *points,
                   const struct hx_fig_data *data, const struct hx_fig_lines *lines, const char *path,
                   struct dm_err *err) {
    struct writer writer = {.figure = figure, .plot = plot, .points = points, .data = data, .lines = lines};
    writer.file = dm_output_open(path, err);
    if (writer.file == NULL) {
        return DM_ERR_IO;
    }
    writer.layout = layout_make(figure, plot);
    write_head(&writer);
    fprintf(writer.file, "do for [kind in kinds] {\n    eval open(kind)\n    set multiplot\n    @panel_look\n");
    write_labels(&writer);
    for (size_t panel = 0; panel < figure->panel_count; panel++) {
        write_panel(&writer, panel);
        if (panel == 0) {
            fprintf(writer.file, "    unset label 1; unset label 2; unset label 3; unset label 4; unset label 5\n");
        }
    }
    if (writer.layout.legend) {
        write_legend(&writer);
    }
    fprintf(writer.file, "    unset multiplot\n    unset output\n    reset\n    load \"../style.gp\"\n}\n");
    return dm_output_close(writer.file, path, err);
}
