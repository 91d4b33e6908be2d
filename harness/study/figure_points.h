/* SPDX-License-Identifier: Apache-2.0
 *
 * The points of a figure.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_POINTS_H
#define DM_HARNESS_STUDY_FIGURE_POINTS_H

#include "harness/points/points.h"
#include "harness/study/figure.h"

/* Adds the figure's points to the set and stores their indexes in figure->points. */
int hx_figure_points(struct hx_figure *figure, struct hx_points *points, struct dm_err *err);

/* Moves what `set_of` has for the point's index into `set`, and drops what it has for others. Replaces *config. */
int hx_config_put_set_of(json_t **config, struct dm_err *err);

#endif
