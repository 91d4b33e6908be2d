/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of points, and which of them run at the same time.
 */
#include "harness/points/points_schedule.h"

#include <stdlib.h>
#include <string.h>

#include "harness/points/points_group.h"

static json_int_t seed_of(const struct hx_points *points, size_t index) {
    return json_integer_value(json_object_get(points->items[index].config, "seed"));
}

static int compare_cost(const void *left, const void *right, void *arg) {
    const struct hx_points *points = arg;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    double difference = points->items[b].cost - points->items[a].cost;
    json_int_t turn = seed_of(points, a) - seed_of(points, b);
    return difference > 0 ? 1 : difference < 0 ? -1 : turn > 0 ? 1 : turn < 0 ? -1 : (a > b) - (a < b);
}

static uint64_t memory_of(const struct hx_schedule *schedule, size_t first) {
    return hx_group_memory(schedule->points, schedule->order + first, schedule->group[first]);
}

/* Appends the groups to `order` and `group` that need more memory than their share, or that do not. */
static size_t append(const struct hx_schedule *schedule, bool are_large, size_t *order, size_t *group, size_t end) {
    uint64_t share = schedule->memory_limit / schedule->job_limit;
    for (size_t first = 0; first < schedule->count; first += schedule->group[first]) {
        if ((memory_of(schedule, first) > share) == are_large) {
            memcpy(order + end, schedule->order + first, schedule->group[first] * sizeof(*order));
            memcpy(group + end, schedule->group + first, schedule->group[first] * sizeof(*group));
            end += schedule->group[first];
        }
    }
    return end;
}

void hx_schedule_order(struct hx_schedule *schedule, size_t shared_jobs) {
    size_t count = schedule->count;
    qsort_r(schedule->order, count, sizeof(*schedule->order), compare_cost, (void *)schedule->points);
    hx_points_group(schedule->points, schedule->order, count, shared_jobs, schedule->group);
    size_t *order = calloc(count + 1, sizeof(*order)), *group = calloc(count + 1, sizeof(*group));
    if (order != NULL && group != NULL) {
        append(schedule, false, order, group, append(schedule, true, order, group, 0));
        memcpy(schedule->order, order, count * sizeof(*order));
        memcpy(schedule->group, group, count * sizeof(*group));
    }
    free(order);
    free(group);
}

int hx_schedule_open(struct hx_schedule *schedule) {
    schedule->head = schedule->job_count = 0;
    schedule->memory_used = schedule->memory_ahead = 0;
    schedule->is_alone = false;
    schedule->started = calloc(schedule->count + 1, sizeof(*schedule->started));
    return schedule->started == NULL ? DM_ERR_NO_MEMORY : 0;
}

void hx_schedule_close(struct hx_schedule *schedule) {
    free(schedule->started);
    schedule->started = NULL;
}

static bool is_real_time(const struct hx_schedule *schedule, size_t first) {
    return hx_point_is_real_time(&schedule->points->items[schedule->order[first]]);
}

/* The first group behind the head that fits into the memory that is free, and that would still leave the head enough
 * when all groups have ended that were started before it waited. count: none. */
static size_t overtaking(const struct hx_schedule *schedule) {
    uint64_t kept = memory_of(schedule, schedule->head) + schedule->memory_ahead;
    uint64_t used = kept > schedule->memory_used ? kept : schedule->memory_used;
    size_t at = schedule->head;
    do {
        at += schedule->group[at];
    } while (at < schedule->count && (schedule->started[at] || is_real_time(schedule, at) ||
                                      used + memory_of(schedule, at) > schedule->memory_limit));
    return at;
}

static void start(struct hx_schedule *schedule, size_t first, struct hx_schedule_job *job) {
    bool is_head = first == schedule->head;
    *job = (struct hx_schedule_job){first, schedule->group[first], memory_of(schedule, first),
                                    is_head ? SIZE_MAX : schedule->head};
    schedule->started[first] = true;
    schedule->job_count++;
    schedule->memory_used += job->memory_bytes;
    schedule->is_alone = is_real_time(schedule, first);
    if (!is_head) {
        schedule->memory_ahead += job->memory_bytes;
        return;
    }
    schedule->memory_ahead = 0;
    while (schedule->head < schedule->count && schedule->started[schedule->head]) {
        schedule->head += schedule->group[schedule->head];
    }
}

bool hx_schedule_start(struct hx_schedule *schedule, struct hx_schedule_job *job) {
    size_t first = schedule->head;
    if (first >= schedule->count || schedule->job_count >= schedule->job_limit || schedule->is_alone) {
        return false;
    }
    if (schedule->job_count > 0) {
        if (is_real_time(schedule, first)) {
            return false;
        }
        if (schedule->memory_used + memory_of(schedule, first) > schedule->memory_limit) {
            first = overtaking(schedule);
        }
    }
    if (first >= schedule->count) {
        return false;
    }
    start(schedule, first, job);
    return true;
}

void hx_schedule_end(struct hx_schedule *schedule, const struct hx_schedule_job *job) {
    schedule->job_count--;
    schedule->memory_used -= job->memory_bytes;
    schedule->memory_ahead -= job->overtaken == schedule->head ? job->memory_bytes : 0;
    schedule->is_alone = false; /* one that runs alone was the only one */
}
