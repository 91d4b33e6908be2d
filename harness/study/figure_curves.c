/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows of the table make which curve, bar or number of a panel. Colours, line and point types are in
 * plots/systems.json and plots/style.gp.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "harness/study/figure_layout.h"
#include "harness/study/figure_published.h"
#include "harness/study/figure_text.h"

/* The share of a case's width that its bars fill. */
#define GROUP_WIDTH 0.84

/* Tags beyond those that gnuplot gives to labels without one; a mark has labels for its rim, itself and its number. */
enum { MARK_TAG = 5000, TAGS_OF_MARK = 3 };

static size_t bar_count(const struct hx_picture *picture) {
    return picture->plot->stacked ? 1 : picture->figure->series_count;
}

/* The middle of a series' bar, beside that of its case. */
static double bar_shift(const struct hx_picture *picture, size_t series) {
    double count = (double)bar_count(picture);
    return picture->plot->stacked ? 0 : ((double)series - (count - 1) / 2) * GROUP_WIDTH / count;
}

static double bar_width(const struct hx_picture *picture) {
    return GROUP_WIDTH / (double)bar_count(picture) * (bar_count(picture) > 1 ? 0.94 : 0.8);
}

static const char *x_column(const struct hx_picture *picture) {
    return picture->plot->bars ? "position" : picture->plot->by_metric ? picture->plot->x.column : "x";
}

/* Series in colour, the metrics of one series by variants of its line. */
static void write_style(const struct hx_picture *picture, size_t series, size_t metric) {
    fprintf(picture->file, "linestyle style_of(\"%s\", %zu)", picture->figure->series[series].style, metric);
}

/* An expression over the panel's and series' rows. */
static void write_pick(const struct hx_picture *picture, size_t panel, const char *series, const char *expression) {
    fprintf(picture->file, ":(pick(");
    hx_picture_quote(picture->file, picture->figure->panels[panel].label);
    fprintf(picture->file, ", ");
    hx_picture_quote(picture->file, series);
    fprintf(picture->file, ", %s))", expression);
}

static void write_column(const struct hx_picture *picture, size_t panel, size_t series, const char *column,
                         const char *suffix) {
    char expression[160];
    snprintf(expression, sizeof(expression), "column(\"%s%s\")", column, suffix);
    write_pick(picture, panel, picture->figure->series[series].label, expression);
}

/* Rows of one point over time. */
static void write_time_curve(const struct hx_picture *picture, size_t panel, size_t series, size_t at) {
    fprintf(picture->file, "        data using (column(\"position\") == %zu ? column(\"%s\") : NaN)", at,
            picture->plot->x.column);
    write_column(picture, panel, series, picture->plot->y[0].column, "");
    fprintf(picture->file, " with lines ");
    write_style(picture, series, at);
    fprintf(picture->file, " notitle");
}

/* With several seeds, bars of error from the low to the high end of the interval. A curve on which a later one lies is
 * wide, so that both can be seen. */
static void write_curve(const struct hx_picture *picture, size_t panel, size_t series, size_t metric) {
    const char *column = picture->plot->y[metric].column;
    bool repeated = picture->figure->repeat > 1;
    fprintf(picture->file, "        data using (column(\"%s\"))", x_column(picture));
    write_column(picture, panel, series, column, "");
    if (repeated) {
        write_column(picture, panel, series, column, "_low");
        write_column(picture, panel, series, column, "_high");
    }
    fprintf(picture->file, " with %s ", repeated ? "yerrorlines" : "linespoints");
    write_style(picture, series, metric);
    if (hx_picture_is_covered(picture, panel, series, metric)) {
        fprintf(picture->file, " linewidth 3.6 pointsize 0.9");
    }
    fprintf(picture->file, " notitle");
}

static void write_bar(const struct hx_picture *picture, size_t panel, size_t series) {
    const char *column = picture->plot->y[0].column;
    bool repeated = picture->figure->repeat > 1;
    fprintf(picture->file, "        data using (column(\"position\") + %.4f)", bar_shift(picture, series));
    write_column(picture, panel, series, column, "");
    if (repeated) {
        write_column(picture, panel, series, column, "_low");
        write_column(picture, panel, series, column, "_high");
    }
    fprintf(picture->file, ":(%.4f) with %s ", bar_width(picture), repeated ? "boxerrorbars" : "boxes");
    write_style(picture, series, 0);
    fprintf(picture->file, " notitle");
}

/* The parts up to and with one, drawn from the last to the first: each covers the lower end of the one before. */
static void write_part(const struct hx_picture *picture, size_t panel, size_t last) {
    char sum[HX_METRICS_MAX * 48] = "";
    size_t length = 0;
    for (size_t i = 0; i <= last; i++) {
        length += (size_t)snprintf(sum + length, sizeof(sum) - length, "%spart(\"%s\")", i > 0 ? " + " : "",
                                   picture->plot->y[i].column);
    }
    fprintf(picture->file, "        data using (column(\"position\"))");
    write_pick(picture, panel, picture->figure->series[0].label, sum);
    fprintf(picture->file, ":(%.4f) with boxes fillcolor rgb part_color(%zu) notitle", bar_width(picture), last);
}

/* ---- numbers on bars -------------------------------------------------------------------------------------------- */

/* The width of a bar in pixels. */
static double bar_pixels(const struct hx_picture *picture) {
    return hx_picture_plot_width(picture) / (double)picture->figure->case_count * bar_width(picture);
}

/* The number above each bar: its value, or its gain. Upright if bars are narrow; none on bars that are narrower than a
 * letter is high. */
static void write_numbers(const struct hx_picture *picture, size_t panel, size_t series) {
    double pixels = bar_pixels(picture);
    bool upright = pixels < hx_text_width("88.8×", HX_FONT_NOTE);
    bool gain = picture->plot->reference != SIZE_MAX;
    if (pixels < HX_FONT_NOTE - 2) {
        return;
    }
    fprintf(picture->file, ", \\\n        data using (column(\"position\") + %.4f)", bar_shift(picture, series));
    write_column(picture, panel, series, picture->plot->y[0].column, picture->figure->repeat > 1 ? "_high" : "");
    fprintf(picture->file, ":(%s(column(\"%s\"))) with labels %s font font_note notitle", gain ? "times" : "short",
            gain ? "gain" : picture->plot->y[0].column, upright ? "rotate left offset 0, 0.3" : "offset 0, 0.45");
}

/* The share of a part inside it, if there is space for the number. */
static void write_part_number(const struct hx_picture *picture, size_t panel, size_t at) {
    char middle[HX_METRICS_MAX * 48 + 64] = "";
    size_t length = 0;
    double least = picture->y_axes[panel].high * 0.07;
    for (size_t i = 0; i < at; i++) {
        length +=
            (size_t)snprintf(middle + length, sizeof(middle) - length, "part(\"%s\") + ", picture->plot->y[i].column);
    }
    snprintf(middle + length, sizeof(middle) - length, "(part(\"%s\") > %.4g ? part(\"%s\") / 2 : NaN)",
             picture->plot->y[at].column, least, picture->plot->y[at].column);
    fprintf(picture->file, ", \\\n        data using (column(\"position\"))");
    write_pick(picture, panel, picture->figure->series[0].label, middle);
    fprintf(picture->file, ":(short(part(\"%s\"))) with labels font font_note notitle", picture->plot->y[at].column);
}

/* ---- what the paper has ----------------------------------------------------------------------------------------- */

static bool is_published(const struct hx_picture *picture, const struct hx_fig_published *item) {
    return picture->plot == &picture->figure->plots[item->plot];
}

/* What the paper published, as open points; in a plot of bars on the bar of the same system, with a rim. */
static void write_published(const struct hx_picture *picture, size_t panel) {
    const struct hx_fig_plot *plot = picture->plot;
    for (size_t i = 0; i < picture->figure->published_count; i++) {
        const struct hx_fig_published *item = &picture->figure->published[i];
        char expression[160];
        if (item->panel != panel || !is_published(picture, item)) {
            continue;
        }
        double shift = plot->bars && item->series != SIZE_MAX ? bar_shift(picture, item->series) : 0;
        snprintf(expression, sizeof(expression), "column(\"%s\")", plot->y[item->metric].column);
        for (int rim = plot->bars; rim >= 0; rim--) {
            fprintf(picture->file, ", \\\n        data using (column(\"%s\") + %.4f)", x_column(picture), shift);
            write_pick(picture, panel, item->label, expression);
            fprintf(picture->file, " with points linestyle style_of(\"%s\", %zu) pointsize 0.8%s notitle", item->style,
                    item->metric + 1,
                    !plot->bars ? ""
                    : rim       ? " linewidth 3.2 linecolor rgb \"white\""
                                : " linecolor rgb color_claim");
        }
    }
}

struct position {
    double x, y;           /* in the axes' units */
    double across, height; /* from 0 to 1 */
};

static void find_position(const struct hx_picture *picture, size_t mark, double y, struct position *spot) {
    const struct hx_fig_mark *item = &picture->marks->items[mark];
    const struct hx_figure *figure = picture->figure;
    size_t slot = hx_figure_at(figure, item->panel, item->series, item->at);
    const struct hx_axis *axis = &picture->y_axes[item->panel];
    if (picture->plot->bars) {
        spot->x = (double)item->at + bar_shift(picture, item->series);
        spot->across = (spot->x + 0.6) / ((double)figure->case_count + 0.2);
    } else {
        struct hx_axis x_axis;
        hx_picture_x_axis(picture, item->panel, &x_axis);
        spot->x = picture->plot->by_metric ? hx_fig_value(figure, picture->data, &picture->plot->x, slot).middle
                                           : hx_figure_x(figure, picture->points, slot, item->at);
        spot->across = hx_axis_at(&x_axis, spot->x);
    }
    spot->height = hx_axis_at(axis, y);
    spot->height = spot->height > 1 ? 1 : spot->height < 0 || isnan(spot->height) ? 0 : spot->height;
    spot->y = axis->log ? axis->low * pow(axis->high / axis->low, spot->height)
                        : axis->low + (axis->high - axis->low) * spot->height;
}

/* Numbers of marks at nearly the same position are beside each other. */
static size_t neighbours(const struct hx_picture *picture, size_t mark, const struct position *own) {
    size_t count = 0;
    double low, high;
    for (size_t i = 0; i < mark; i++) {
        struct position other;
        double y = hx_picture_mark_y(picture, i, &low, &high);
        if (picture->marks->items[i].panel != picture->marks->items[mark].panel || !isfinite(y)) {
            continue;
        }
        find_position(picture, i, y, &other);
        count += fabs(other.height - own->height) < 0.08 && fabs(other.across - own->across) < 0.06;
    }
    return count;
}

/* Each mark is a star with its number, a range also a line between its ends; a mark beyond the axis is at its
 * end. */
static void write_marks(const struct hx_picture *picture, size_t panel, bool set) {
    for (size_t i = 0; i < picture->marks->count; i++) {
        double low, high;
        double y = hx_picture_mark_y(picture, i, &low, &high);
        if (picture->marks->items[i].panel != panel || !isfinite(y)) {
            continue;
        }
        if (!set) {
            for (size_t tag = 0; tag < TAGS_OF_MARK; tag++) {
                fprintf(picture->file, "    unset label %zu\n", MARK_TAG + TAGS_OF_MARK * i + tag);
            }
            fprintf(picture->file, "    unset arrow %zu\n", MARK_TAG + i);
            continue;
        }
        struct position spot, ends[2];
        find_position(picture, i, y, &spot);
        double across = (double)neighbours(picture, i, &spot);
        bool right = spot.across > 0.8;
        const size_t tag = MARK_TAG + TAGS_OF_MARK * i;
        if (picture->plot->bars) {
            fprintf(picture->file,
                    "    set label %zu \"\" at first %.10g, first %.10g front point linestyle style_rim\n", tag, spot.x,
                    spot.y);
        }
        fprintf(picture->file, "    set label %zu \"\" at first %.10g, first %.10g front point linestyle style_claim\n",
                tag + 1, spot.x, spot.y);
        fprintf(
            picture->file,
            "    set label %zu \"%zu\" at first %.10g, first %.10g %s offset character %.2f, 0.1 front font font_note "
            "%s\n",
            tag + 2, hx_picture_mark_number(picture, i), spot.x, spot.y, right ? "right" : "left",
            (right ? -1 : 1) * (0.8 + 1.3 * across), picture->plot->bars ? " boxed" : "");
        if (high > low && isfinite(low) && isfinite(high)) {
            find_position(picture, i, low, &ends[0]);
            find_position(picture, i, high, &ends[1]);
            fprintf(picture->file,
                    "    set arrow %zu from first %.10g, first %.10g to first %.10g, first %.10g heads size character "
                    "0.3, 90 front linewidth 1 linecolor rgb color_claim\n",
                    MARK_TAG + i, ends[0].x, ends[0].y, ends[1].x, ends[1].y);
        }
    }
}

/* ---- a panel ---------------------------------------------------------------------------------------------------- */

static void write_series(const struct hx_picture *picture, size_t panel) {
    const struct hx_fig_plot *plot = picture->plot;
    const char *separator = "";
    for (size_t series = 0; series < picture->figure->series_count; series++) {
        size_t count = plot->bars && !plot->stacked ? 1 : hx_picture_variants(picture);
        for (size_t i = 0; i < count; i++) {
            fprintf(picture->file, "%s", separator);
            if (plot->over_time) {
                write_time_curve(picture, panel, series, i);
            } else if (plot->stacked) {
                write_part(picture, panel, count - 1 - i);
            } else if (plot->bars) {
                write_bar(picture, panel, series);
            } else {
                write_curve(picture, panel, series, i);
            }
            separator = ", \\\n";
        }
    }
}

void hx_picture_curves(const struct hx_picture *picture, size_t panel) {
    const struct hx_fig_plot *plot = picture->plot;
    write_marks(picture, panel, true);
    fprintf(picture->file, "    plot \\\n");
    write_series(picture, panel);
    for (size_t series = 0; plot->bars && !plot->stacked && series < picture->figure->series_count; series++) {
        write_numbers(picture, panel, series);
    }
    for (size_t i = 0; plot->stacked && i < plot->y_count; i++) {
        write_part_number(picture, panel, i);
    }
    write_published(picture, panel);
    fprintf(picture->file, "\n");
    write_marks(picture, panel, false);
}
