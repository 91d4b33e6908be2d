/* SPDX-License-Identifier: Apache-2.0
 *
 * The gnuplot program of a plot.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_PLOT_H
#define DM_HARNESS_STUDY_FIGURE_PLOT_H

#include "harness/study/figure_data.h"

/* A claim drawn as a line across a panel of a plot, and as a band where it is a range. */
struct hx_fig_line {
    const char *plot;
    size_t panel;
    double y;
    double low, high; /* the ends of the range; equal: none */
    char label[160];
};
struct hx_fig_lines {
    struct hx_fig_line *items;
    size_t count;
};

/* Writes the plot's gnuplot program. 0 or DM_ERR_IO. */
int hx_fig_program(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_points *points,
                   const struct hx_fig_data *data, const struct hx_fig_lines *lines, const char *path,
                   struct dm_err *err);

#endif
