/* SPDX-License-Identifier: Apache-2.0
 *
 * Which points are started when: in an order, as many at once as cores and memory permit. While the first that has
 * not started waits for memory, points behind it may start if they leave it what it needs. points_run.c starts
 * processes by it, and points_plan.c estimates by it how long a set takes.
 */
#ifndef DM_HARNESS_POINTS_POINTS_SCHEDULE_H
#define DM_HARNESS_POINTS_POINTS_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/points/points.h"

/* A group of points that runs. */
struct hx_schedule_job {
    size_t first, count; /* indexes into the order */
    uint64_t memory_bytes;
    size_t overtaken; /* the group that waited when this one was started; SIZE_MAX: none */
};

struct hx_schedule {
    const struct hx_points *points;
    size_t *order; /* indexes of points; the caller's, as `group` is */
    size_t *group; /* the size of the group that begins at an index of the order; 0 within a group */
    size_t count;
    size_t head;      /* the first group that has not started; count: none */
    size_t job_limit; /* groups at once */
    size_t job_count; /* groups that run */
    uint64_t memory_limit, memory_used;
    uint64_t memory_ahead; /* of groups that run and were started while the head waited */
    bool is_alone;         /* what runs measures in real time, so that nothing runs beside it */
    bool *started;         /* by index of the order */
};

/* Sorts the order and fills in the groups that share a load, for `shared_jobs` of them at once (hx_points_group). First
 * those that need more memory than their share if as many run at once as the limit says, as others can run beside them;
 * then longest first, so that the last ones to run are short. Points of equal cost are run seed by seed, so that a
 * machine that becomes slower affects all of them alike; then in the order of the set. */
void hx_schedule_order(struct hx_schedule *schedule, size_t shared_jobs);

/* The members from `points` to `count` and the limits are set by the caller. Returns 0 or DM_ERR_NO_MEMORY. */
int hx_schedule_open(struct hx_schedule *schedule);
void hx_schedule_close(struct hx_schedule *schedule);

/* Takes the next group that can be started now. False: none can until one that runs has ended, or all have started. */
bool hx_schedule_start(struct hx_schedule *schedule, struct hx_schedule_job *job);

/* A group has ended, or could not be started. */
void hx_schedule_end(struct hx_schedule *schedule, const struct hx_schedule_job *job);

#endif
