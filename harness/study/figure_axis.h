/* SPDX-License-Identifier: Apache-2.0
 *
 * The axes of a panel: their range, whether they are logarithmic, and the tics.
 */
#ifndef DM_HARNESS_STUDY_FIGURE_AXIS_H
#define DM_HARNESS_STUDY_FIGURE_AXIS_H

#include <stdbool.h>
#include <stddef.h>

enum { HX_TICS_MAX = 64 };

struct hx_axis {
    double low, high;
    bool log;
    double tics[HX_TICS_MAX];
    size_t tic_count;
};

/* Values that span more than this are drawn on a logarithmic axis unless the spec says otherwise: on a linear one the
 * smallest would be within the width of a line. */
enum { HX_AXIS_SPAN = 40 };

/* A y axis for values from `least` (the smallest positive one) to `most`, about `tics` tics apart. A linear one begins
 * at 0, so that heights compare. `head`: the share of the axis that stays free above the values. */
void hx_axis_y(struct hx_axis *axis, double least, double most, double limit, double head, int tics);

/* An x axis over the sorted values that an option takes; on a logarithmic one these are the tics. A linear one begins
 * at 0 if that costs less than a third of it. */
void hx_axis_x(struct hx_axis *axis, const double *values, size_t count, int tics);

/* Where a value is on the axis, from 0 to 1. */
double hx_axis_at(const struct hx_axis *axis, double value);

/* Leaves out tics whose texts, of the given font size, would touch on an axis of that many pixels. */
void hx_axis_thin(struct hx_axis *axis, double size, double pixels);

#endif
