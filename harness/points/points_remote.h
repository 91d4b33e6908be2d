/* SPDX-License-Identifier: Apache-2.0
 *
 * Points on many machines. Used by points_run.c alone.
 */
#ifndef DM_HARNESS_POINTS_POINTS_REMOTE_H
#define DM_HARNESS_POINTS_POINTS_REMOTE_H

#include "harness/points/points.h"

/* Runs the points at `order` through GNU parallel and waits for them, or writes a script for Slurm, as the options say.
 * Returns the exit status, or a failure. */
int hx_points_run_remote(struct hx_points *points, const struct hx_points_options *options, const size_t *order,
                         size_t count, struct dm_err *err);

#endif
