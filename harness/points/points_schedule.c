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

/* Appends the groups to `sorted` that need more than `share` of memory, or that do not. */
static size_t append(const struct hx_points *points, const size_t *order, const size_t *group, size_t count,
                     uint64_t share, bool are_large, size_t *sorted, size_t *sizes, size_t end) {
    for (size_t first = 0; first < count; first += group[first]) {
        if ((hx_group_memory(points, order + first, group[first]) > share) == are_large) {
            memcpy(sorted + end, order + first, group[first] * sizeof(*order));
            memcpy(sizes + end, group + first, group[first] * sizeof(*group));
            end += group[first];
        }
    }
    return end;
}

void hx_schedule_order(const struct hx_points *points, size_t *order, size_t count, size_t jobs, size_t shared_jobs,
                       uint64_t memory, size_t *group) {
    qsort_r(order, count, sizeof(*order), compare_cost, (void *)points);
    hx_points_group(points, order, count, shared_jobs, group);
    size_t *sorted = calloc(count + 1, sizeof(*sorted)), *sizes = calloc(count + 1, sizeof(*sizes));
    if (sorted != NULL && sizes != NULL) {
        size_t large = append(points, order, group, count, memory / jobs, true, sorted, sizes, 0);
        append(points, order, group, count, memory / jobs, false, sorted, sizes, large);
        memcpy(order, sorted, count * sizeof(*order));
        memcpy(group, sizes, count * sizeof(*group));
    }
    free(sorted);
    free(sizes);
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

static uint64_t memory_of(const struct hx_schedule *schedule, size_t first) {
    return hx_group_memory(schedule->points, schedule->order + first, schedule->group[first]);
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
