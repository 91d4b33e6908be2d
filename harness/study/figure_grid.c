/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables: a row for each series, or for each metric if there is only one series; a column for each case and metric.
 * What the paper has is beside our number.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "harness/study/figure_layout.h"
#include "harness/study/figure_published.h"
#include "harness/study/figure_text.h"

enum { CELL_BYTES = 200, ROW_HEIGHT = 14, EDGE = 4 };

static bool by_series(const struct hx_picture *picture) {
    return picture->figure->series_count > 1;
}

static size_t row_count(const struct hx_picture *picture) {
    return by_series(picture) ? picture->figure->series_count : picture->plot->y_count;
}

static size_t column_count(const struct hx_picture *picture) {
    return picture->figure->case_count * (by_series(picture) ? picture->plot->y_count : 1);
}

/* A number with three digits; whole ones from 1000 on. */
static void number_text(double value, char *text, size_t capacity) {
    if (!isfinite(value)) {
        snprintf(text, capacity, "–");
    } else {
        snprintf(text, capacity, value >= 1000 ? "%.0f" : "%.3g", value);
    }
}

static void paper_text(double low, double high, char *text, size_t capacity) {
    char ends[2][32];
    number_text(isinf(low) ? high : low, ends[0], sizeof(ends[0]));
    number_text(high, ends[1], sizeof(ends[1]));
    snprintf(text, capacity, "%s%s%s%s",
             isinf(low)    ? "at most "
             : isinf(high) ? "at least "
                           : "",
             ends[0], isfinite(low) && isfinite(high) && high > low ? " to " : "",
             isfinite(low) && isfinite(high) && high > low ? ends[1] : "");
}

/* What the paper has for a series, case and metric; "" if nothing. */
static void find_paper(const struct hx_picture *picture, size_t series, size_t at, size_t metric, char *text,
                       size_t capacity) {
    text[0] = '\0';
    for (size_t i = 0; i < picture->marks->count; i++) {
        const struct hx_fig_mark *mark = &picture->marks->items[i];
        size_t of;
        double low, high;
        if (mark->series == series && mark->at == at && hx_fig_mark_in(mark, picture->plot, &of) && of == metric) {
            (void)hx_picture_mark_y(picture, i, &low, &high);
            paper_text(low, high, text, capacity);
        }
    }
    for (size_t i = 0; i < picture->figure->published_count; i++) {
        const struct hx_fig_published *item = &picture->figure->published[i];
        bool fits =
            item->series == series && item->metric == metric && picture->plot == &picture->figure->plots[item->plot];
        for (size_t k = 0; fits && k < hx_fig_published_count(item); k++) {
            if (hx_fig_published_x(picture->figure, item, k, 1) == (double)at) {
                number_text(hx_fig_published_y(item, k), text, capacity);
            }
        }
    }
}

/* "0.79 (paper 1.2)" */
static void cell_text(const struct hx_picture *picture, size_t row, size_t column, char *text, size_t capacity) {
    const struct hx_figure *figure = picture->figure;
    size_t metrics = picture->plot->y_count;
    size_t series = by_series(picture) ? row : 0;
    size_t metric = by_series(picture) ? column % metrics : row;
    size_t at = by_series(picture) ? column / metrics : column;
    char ours[32], paper[100];
    struct hx_fig_value value =
        hx_fig_value(figure, picture->data, &picture->plot->y[metric], hx_figure_at(figure, 0, series, at));
    number_text(value.middle, ours, sizeof(ours));
    find_paper(picture, series, at, metric, paper, sizeof(paper));
    snprintf(text, capacity, "%s%s%s%s", ours, paper[0] != '\0' ? " (" : "", paper, paper[0] != '\0' ? ")" : "");
}

static void head_text(const struct hx_picture *picture, size_t column, char *text, size_t capacity) {
    size_t metrics = picture->plot->y_count;
    size_t at = by_series(picture) ? column / metrics : column;
    const char *what = by_series(picture) ? picture->plot->y[column % metrics].label : "";
    snprintf(text, capacity, "%s%s%s", what, what[0] != '\0' ? ", " : "", picture->figure->cases[at].label);
}

static const char *row_text(const struct hx_picture *picture, size_t row) {
    return by_series(picture) ? picture->figure->series[row].label : picture->plot->y[row].label;
}

static double first_width(const struct hx_picture *picture) {
    double most = 30;
    for (size_t i = 0; i < row_count(picture); i++) {
        double width = hx_text_width(row_text(picture, i), HX_FONT_LABEL);
        most = width > most ? width : most;
    }
    return most + 10;
}

static double column_width(const struct hx_picture *picture) {
    return (picture->layout.width - 2 * EDGE - first_width(picture)) / (double)column_count(picture);
}

/* The largest of the fonts with which all numbers fit their columns. */
static const char *cell_font(const struct hx_picture *picture) {
    double most = 0;
    for (size_t i = 0; i < column_count(picture) * row_count(picture); i++) {
        char text[CELL_BYTES];
        cell_text(picture, i % row_count(picture), i / row_count(picture), text, sizeof(text));
        double width = hx_text_width(text, 1);
        most = width > most ? width : most;
    }
    double space = column_width(picture) - 6;
    return most * HX_FONT_LABEL <= space ? "right font font_label"
           : most * HX_FONT_TIC <= space ? "right font font_tic"
                                         : "right font font_note";
}

static int head_lines(const struct hx_picture *picture) {
    int most = 1;
    for (size_t i = 0; i < column_count(picture); i++) {
        char text[CELL_BYTES], wrapped[CELL_BYTES];
        head_text(picture, i, text, sizeof(text));
        int lines = hx_text_wrap(text, HX_FONT_TIC, column_width(picture) - 6, wrapped, sizeof(wrapped));
        most = lines > most ? lines : most;
    }
    return most;
}

void hx_picture_grid_size(struct hx_picture *picture) {
    struct hx_fig_layout *layout = &picture->layout;
    char notes[HX_NOTES_BYTES];
    hx_picture_notes(picture, notes, sizeof(notes));
    size_t length = strlen(notes);
    snprintf(notes + length, sizeof(notes) - length, "\n%s; in brackets: the paper's", picture->plot->y_label);
    layout->note_lines =
        hx_text_wrap(notes, HX_FONT_NOTE, layout->width - 2 * EDGE, layout->notes, sizeof(layout->notes));
    layout->foot =
        layout->top + head_lines(picture) * (HX_FONT_TIC + 2) + 8 + (double)row_count(picture) * ROW_HEIGHT + 4;
    layout->height = layout->foot + 6 + layout->note_lines * (HX_FONT_NOTE + 2) + EDGE;
    layout->entry_count = 0;
}

static void write_text(const struct hx_picture *picture, const char *text, double x, double y, const char *how) {
    fprintf(picture->file, "    set label ");
    hx_picture_quote(picture->file, text);
    fprintf(picture->file, " at screen %.5f, %.5f %s\n", x / picture->layout.width, 1 - y / picture->layout.height,
            how);
}

static void write_rule(const struct hx_picture *picture, double y) {
    double at = 1 - y / picture->layout.height;
    fprintf(picture->file,
            "    set arrow from screen %.5f, %.5f to screen %.5f, %.5f nohead linewidth 0.8 linecolor rgb color_note\n",
            EDGE / picture->layout.width, at, 1 - EDGE / picture->layout.width, at);
}

/* A column's name, line by line. */
static void write_head(const struct hx_picture *picture, char *text, double right) {
    double y = picture->layout.top + (HX_FONT_TIC + 2) * 0.8;
    for (char *next; text != NULL; text = next, y += HX_FONT_TIC + 2) {
        next = strchr(text, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        write_text(picture, text, right, y, "right font font_tic");
    }
}

void hx_picture_grid(const struct hx_picture *picture) {
    const struct hx_fig_layout *layout = &picture->layout;
    double first = first_width(picture), width = column_width(picture);
    double body = layout->top + head_lines(picture) * (HX_FONT_TIC + 2) + 8;
    write_rule(picture, layout->top);
    write_rule(picture, body - 3);
    write_rule(picture, layout->foot);
    for (size_t i = 0; i < column_count(picture); i++) {
        char text[CELL_BYTES], wrapped[CELL_BYTES];
        double right = EDGE + first + (double)(i + 1) * width - 3;
        head_text(picture, i, text, sizeof(text));
        hx_text_wrap(text, HX_FONT_TIC, width - 6, wrapped, sizeof(wrapped));
        write_head(picture, wrapped, right);
        for (size_t row = 0; row < row_count(picture); row++) {
            cell_text(picture, row, i, text, sizeof(text));
            write_text(picture, text, right, body + ((double)row + 0.5) * ROW_HEIGHT, cell_font(picture));
        }
    }
    for (size_t row = 0; row < row_count(picture); row++) {
        write_text(picture, row_text(picture, row), EDGE + 3, body + ((double)row + 0.5) * ROW_HEIGHT,
                   "left font font_label");
    }
}
