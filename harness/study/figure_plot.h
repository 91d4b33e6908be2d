/* SPDX-License-Identifier: Apache-2.0
 *
 * The gnuplot program of a plot.
 *
 *   figure_plot.c writes the program, figure_layout.c says where everything is, figure_axis.c chooses ranges and tics,
 *   figure_curves.c writes curves and bars, figure_notes.c the lines below, figure_grid.c tables.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_PLOT_H
#define DM_HARNESS_STUDY_FIGURE_PLOT_H

#include "harness/study/figure_data.h"

/* How pictures are drawn. */
struct hx_fig_look {
    double width_cm; /* as printed; texts have the size that they have there */
    bool png, svg, pdf;
};

/* What a paper claims, beside the value of a series in a case: that times `low` to `high`, which are equal unless the
 * claim is a range, and may be infinite at one end. */
struct hx_fig_mark {
    size_t panel, series, at;
    struct hx_fig_metric metric;
    double low, high;
    char label[192]; /* "4.3 × Sherman" */
};
struct hx_fig_marks {
    struct hx_fig_mark *items;
    size_t count;
};

/* Whether a mark is drawn in a plot; *metric is the y that it is beside. */
bool hx_fig_mark_in(const struct hx_fig_mark *mark, const struct hx_fig_plot *plot, size_t *metric);

/* Whether the plot's y axis is logarithmic: as its spec says, or because the values of a panel span too much for
 * another (figure_axis.h). */
bool hx_fig_plot_is_log(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_fig_data *data);

/* Writes the plot's gnuplot program. 0, DM_ERR_IO or DM_ERR_NO_MEMORY. */
int hx_fig_program(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_points *points,
                   const struct hx_fig_data *data, const struct hx_fig_marks *marks, const struct hx_fig_look *look,
                   const char *path, struct dm_err *err);

#endif
