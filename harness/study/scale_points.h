/* SPDX-License-Identifier: Apache-2.0
 *
 * All points of a scale: of every figure, of the claims with their readings, reasons and the other ends of the
 * network's range, and of the published experiments.
 */
#ifndef DM_HARNESS_STUDY_SCALE_POINTS_H
#define DM_HARNESS_STUDY_SCALE_POINTS_H

#include "common/err.h"
#include "harness/points/points.h"

/* A new set over the folder `out`; `repeat` seeds a point of a figure and of a claim, 0: as
 * many as the figure has at that scale, and one for claims. The caller frees it; NULL with the reason. */
struct hx_points *hx_scale_points(const char *plots, const char *out, const char *scale, unsigned repeat,
                                  struct dm_err *err);

#endif
