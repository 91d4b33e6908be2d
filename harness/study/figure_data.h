/* SPDX-License-Identifier: Apache-2.0
 *
 * What the points of a figure measured.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_DATA_H
#define DM_HARNESS_STUDY_FIGURE_DATA_H

#include <jansson.h>

#include "harness/points/points.h"
#include "harness/study/figure.h"

/* The results of the figure's points. */
struct hx_fig_data {
    json_t **results; /* one per slot and seed; NULL: missing */
    size_t missing;   /* slots with a missing seed */
};
int hx_fig_data_load(const struct hx_figure *figure, const struct hx_points *points, struct hx_fig_data *data,
                     struct dm_err *err);
void hx_fig_data_fini(const struct hx_figure *figure, struct hx_fig_data *data);

/* Slots of a panel with a missing result. */
size_t hx_fig_data_missing(const struct hx_figure *figure, const struct hx_fig_data *data, size_t panel);

/* A metric's value in a result (a path as hx_result_number takes it), with its factor; NaN where it has none. */
double hx_fig_metric_value(const struct hx_fig_metric *metric, const json_t *result);

/* A metric in a slot: the median over the seeds, and its 95 % bootstrap interval, which with fewer than six
 * seeds goes from the smallest value to the greatest. NaN where a seed is missing. */
struct hx_fig_value {
    double middle, low, high;
};
struct hx_fig_value hx_fig_value(const struct hx_figure *figure, const struct hx_fig_data *data,
                                 const struct hx_fig_metric *metric, size_t slot);

/* The x of a case as a number, with its factor: the option's resolved value, or the position of a named case. */
double hx_figure_x(const struct hx_figure *figure, const struct hx_points *points, size_t slot, size_t at);

#endif
