/* SPDX-License-Identifier: Apache-2.0
 *
 * Points that share a load: those that differ only in options that apply after loading, and in the number of clients.
 * Used by points_schedule.c and points_run.c alone.
 */
#ifndef DM_HARNESS_POINTS_POINTS_GROUP_H
#define DM_HARNESS_POINTS_POINTS_GROUP_H

#include <stdatomic.h>

#include "harness/points/points.h"

/* Puts points that can share a load next to one another in `order`, groups in the order of their first points and in
 * each group the point with the most threads and memory first, for which the index is loaded. Sets group[i] to the size
 * of the group that begins at index i (other entries to 0). `jobs` groups run at once, so that none may be too large;
 * 0: no points share a load. Points that fit into this host's memory one by one, but not with a copy of what they
 * change, are groups of their own, as all are when memory for the grouping itself runs out. */
void hx_points_group(const struct hx_points *points, size_t *order, size_t count, size_t jobs, size_t *group);

/* Bytes that a group of these `count` points needs: of one, or of several the loaded index once and what one of them at
 * a time changes in it. */
uint64_t hx_group_memory(const struct hx_points *points, const size_t *members, size_t count);

/* Runs a group in this process and writes its results. taken[i], in memory that processes share, becomes true
 * when member i has its result. Returns the exit status; why points failed is on stderr. */
int hx_run_group(const struct hx_points *points, const size_t *members, size_t count, atomic_bool *taken);

#endif
