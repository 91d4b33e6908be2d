/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a plot, which gnuplot reads.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_TABLE_H
#define DM_HARNESS_STUDY_FIGURE_TABLE_H

#include "harness/study/figure_data.h"

/* Writes the plot's table. 0 or DM_ERR_IO. */
int hx_fig_table(const struct hx_figure *figure, const struct hx_fig_plot *plot, const struct hx_points *points,
                 const struct hx_fig_data *data, const char *path, struct dm_err *err);

#endif
