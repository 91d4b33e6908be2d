/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the parts of a picture are (figure_layout.c), and what they need (figure_picture.c). Lengths are in CSS pixels,
 * 96 to the inch, at the width at which the picture is printed; y grows downwards.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_LAYOUT_H
#define DM_HARNESS_STUDY_FIGURE_LAYOUT_H

#include <stdio.h>

#include "harness/study/figure_axis.h"
#include "harness/study/figure_plot.h"

/* Sizes of fonts. Printed, the smallest are 5.6 points, as in the figures of most papers. */
#define HX_FONT_TITLE  11.0
#define HX_FONT_LABEL  9.5
#define HX_FONT_TIC    8.5
#define HX_FONT_NOTE   7.5
#define HX_LEGEND_STEP 13.0

enum { HX_TITLE_BYTES = 512, HX_NOTES_BYTES = 8192, HX_ENTRIES_MAX = 128 };

/* A name of the legend. */
struct hx_fig_entry {
    enum { HX_ENTRY_CURVE, HX_ENTRY_PUBLISHED, HX_ENTRY_MARK } kind;
    size_t series, metric; /* of a curve; metric counts the variants of a series */
    size_t item;           /* of figure->published */
    char text[160];
    double x, y; /* of its sample's left end, and its middle line */
};

struct hx_fig_layout {
    double width, height;
    char title[HX_TITLE_BYTES], y_label[HX_TITLE_BYTES], notes[HX_NOTES_BYTES];
    int title_lines, y_label_lines, note_lines;
    size_t columns, rows;
    double left, top; /* of the first cell */
    double cell_width, cell_height;
    double panel_left, panel_top, panel_right, panel_bottom; /* margins of a panel in its cell */
    double foot;                                             /* where the x label's middle line is */
    bool rotated;                                            /* the names of cases do not fit beside each other */
    struct hx_fig_entry entries[HX_ENTRIES_MAX];
    size_t entry_count;
};

/* A picture while it is written. */
struct hx_picture {
    FILE *file;
    const struct hx_figure *figure;
    const struct hx_fig_plot *plot;
    const struct hx_points *points;
    const struct hx_fig_data *data;
    const struct hx_fig_marks *marks;
    const struct hx_fig_look *look;
    struct hx_axis *y_axes; /* one a panel */
    struct hx_fig_layout layout;
};

/* Curves of a series, which differ by their lines: one a metric, and over time one a case. */
size_t hx_picture_variants(const struct hx_picture *picture);

/* The width of a panel's plot area. */
double hx_picture_plot_width(const struct hx_picture *picture);

/* Finds the position of everything; picture->y_axes are set, too. */
void hx_picture_layout(struct hx_picture *picture);

/* A gnuplot string. */
void hx_picture_quote(FILE *file, const char *text);

/* The same for the name of a tic, which gnuplot takes for a number format. */
void hx_picture_quote_tic(FILE *file, const char *text);

/* Whether the y axes are logarithmic. */
bool hx_picture_is_log(const struct hx_picture *picture);

/* The ranges of values in a panel. `least` is the smallest positive one, infinite if there is none; bars, error bars,
 * parts that are stacked and what papers published included. */
void hx_picture_range(const struct hx_picture *picture, size_t panel, double *least, double *most);

/* The x of a panel. */
void hx_picture_x_axis(const struct hx_picture *picture, size_t panel, struct hx_axis *axis);

/* The lines below the picture (figure_notes.c). */
void hx_picture_notes(const struct hx_picture *picture, char *text, size_t capacity);

/* Whether the curve lies on another of the panel that is drawn later (figure_notes.c). */
bool hx_picture_is_covered(const struct hx_picture *picture, size_t panel, size_t series, size_t metric);

/* The number of a mark in the notes, from 1 on; 0: it is not drawn in this plot. */
size_t hx_picture_mark_number(const struct hx_picture *picture, size_t mark);

/* The y of a mark's middle in this plot, and of its ends; NaN if it is not there. */
double hx_picture_mark_y(const struct hx_picture *picture, size_t mark, double *low, double *high);

/* Everything that is drawn in a panel (figure_curves.c). */
void hx_picture_curves(const struct hx_picture *picture, size_t panel);

/* The body of a table's program (figure_grid.c). */
void hx_picture_grid_size(struct hx_picture *picture);
void hx_picture_grid(const struct hx_picture *picture);

#endif
