/* SPDX-License-Identifier: Apache-2.0
 *
 * What is left to run of a set of points, and what that will take: by points_cost.h, and by how much those of its
 * points that have results were slower or faster than that on their host.
 */
#ifndef DM_HARNESS_POINTS_POINTS_PLAN_H
#define DM_HARNESS_POINTS_POINTS_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/points/points.h"

struct hx_points_plan {
    size_t points, to_run;
    double work_s;         /* on one core; points that share a load have it once */
    double elapsed_s;      /* with as many at once as the options say, cores and memory permit */
    uint64_t memory_bytes; /* of the largest point to run */
    size_t too_large;      /* points to run that need more memory than there is */
};

/* Of points that have been scanned; `members` selects `count` of them, NULL: all. */
void hx_points_plan(const struct hx_points *points, const struct hx_points_options *options, const size_t *members,
                    size_t count, struct hx_points_plan *plan);

/* "12 to run, about 3 min 10 s, up to 1.2 GB each"; how many do not fit into the memory that is there follows. */
void hx_points_plan_text(const struct hx_points_plan *plan, char *text, size_t capacity);

/* Looks which results are there and prints "20 points in results/points, 12 to run, about ..." with a new line. */
void hx_points_plan_print(struct hx_points *points, const struct hx_points_options *options, FILE *out);

#endif
