/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench validate --end-to-end`.
 */
#ifndef DM_HARNESS_CLI_END_TO_END_H
#define DM_HARNESS_CLI_END_TO_END_H

#include <stdbool.h>

#include "harness/points/points.h"

struct hx_end_to_end_options {
    const char *plots, *out, *scale;
    const char *only; /* the id of one experiment; "": all */
    bool json;        /* print JSON instead of the table */
    bool dry_run;     /* check everything and print how many runs there are, run nothing */
    struct hx_points_options run;
};

/* Runs what published experiments need and has no result yet, compares, prints, and writes <out>/end_to_end.json and
 * <out>/end_to_end.md. Returns the exit status: 0 all within tolerance, 3 a point is out of it or a published order
 * does not hold, 1 points failed, 2 usage, 130 interrupted; or a failure with the reason in err. */
int hx_end_to_end(const struct hx_end_to_end_options *options, struct dm_err *err);

#endif
