/* SPDX-License-Identifier: Apache-2.0
 *
 * What is left to run of a set, and what that will take.
 */
#include "harness/points/points_plan.h"

#include <stdlib.h>
#include <string.h>

#include "harness/points/points_cost.h"
#include "harness/points/points_host.h"
#include "harness/points/points_progress.h"
#include "harness/points/points_schedule.h"

enum { CALIBRATION_MIN = 3 };

/* Measured over estimated seconds of a point; its weight is the estimate. */
struct ratio {
    double value, weight;
};

static int compare_ratios(const void *left, const void *right) {
    double a = ((const struct ratio *)left)->value, b = ((const struct ratio *)right)->value;
    return (a > b) - (a < b);
}

static bool same_index(const struct hx_point *a, const struct hx_point *b) {
    const char *one = json_string_value(json_object_get(a->config, "index"));
    const char *other = json_string_value(json_object_get(b->config, "index"));
    return one != NULL && other != NULL && strcmp(one, other) == 0;
}

/* The median of measured over estimated seconds of points that have results: those with the index of `like`, or all.
 * Half of the estimated time is on either side of it, so that many short points do not decide for the long ones. 0: too
 * few. */
static double past_ratio(const struct hx_points *points, const struct hx_point *like, struct ratio *ratios) {
    size_t count = 0;
    double whole = 0;
    for (size_t i = 0; i < points->count; i++) {
        const struct hx_point *point = &points->items[i];
        if (point->past_s > 0 && point->cost > 0 && (like == NULL || same_index(point, like))) {
            ratios[count++] = (struct ratio){.value = point->past_s / point->cost, .weight = point->cost};
            whole += point->cost;
        }
    }
    if (count < CALIBRATION_MIN) {
        return 0;
    }
    qsort(ratios, count, sizeof(*ratios), compare_ratios);
    size_t middle = 0;
    double reached = ratios[0].weight;
    while (reached < whole / 2) {
        reached += ratios[++middle].weight;
    }
    return ratios[middle].value;
}

/* What the estimates are multiplied by, by index of the point. Points of one index often follow each other. */
static void past_ratios(const struct hx_points *points, const size_t *order, size_t count, double *factors) {
    struct ratio *ratios = calloc(points->count + 1, sizeof(*ratios));
    double overall = ratios != NULL ? past_ratio(points, NULL, ratios) : 0;
    for (size_t i = 0; i < count; i++) {
        const struct hx_point *point = &points->items[order[i]];
        bool repeats = i > 0 && same_index(point, &points->items[order[i - 1]]);
        double own = repeats ? factors[order[i - 1]] : ratios != NULL ? past_ratio(points, point, ratios) : 0;
        factors[order[i]] = own > 0 ? own : overall > 0 ? overall : 1;
    }
    free(ratios);
}

/* Seconds of a group, with its load once. */
static double group_seconds(const struct hx_schedule *schedule, size_t first, const double *factors) {
    double seconds = 0;
    for (size_t i = first; i < first + schedule->group[first]; i++) {
        const struct hx_point *point = &schedule->points->items[schedule->order[i]];
        struct hx_cost cost;
        hx_cost_of(point->config, point->hash, &cost);
        seconds += ((i == first ? cost.load_s : 0) + cost.run_s) * factors[schedule->order[i]];
    }
    return seconds;
}

/* A group that runs, in the time of the estimate. */
struct planned {
    struct hx_schedule_job job;
    double end_s;
};

/* Starts and ends the groups of a schedule in estimated time. `running` has an entry for each at once. */
static void play(struct hx_schedule *schedule, struct planned *running, const double *factors,
                 struct hx_points_plan *plan) {
    size_t count = 0;
    double now = 0;
    for (;;) {
        while (hx_schedule_start(schedule, &running[count].job)) {
            double seconds = group_seconds(schedule, running[count].job.first, factors);
            uint64_t bytes = running[count].job.memory_bytes;
            plan->work_s += seconds;
            plan->memory_bytes = bytes > plan->memory_bytes ? bytes : plan->memory_bytes;
            running[count++].end_s = now + seconds;
        }
        if (count == 0) {
            break;
        }
        size_t soonest = 0;
        for (size_t i = 1; i < count; i++) {
            soonest = running[i].end_s < running[soonest].end_s ? i : soonest;
        }
        now = running[soonest].end_s;
        hx_schedule_end(schedule, &running[soonest].job);
        running[soonest] = running[--count];
    }
    plan->elapsed_s = now;
}

void hx_points_plan(const struct hx_points *points, const struct hx_points_options *options, const size_t *members,
                    size_t count, struct hx_points_plan *plan) {
    size_t all = members != NULL ? count : points->count, jobs = hx_points_jobs(options->jobs);
    size_t *order = calloc(all + 1, sizeof(*order)), *group = calloc(all + 1, sizeof(*group));
    double *factors = calloc(points->count + 1, sizeof(*factors));
    struct planned *running = calloc(jobs + 1, sizeof(*running));
    struct hx_schedule schedule = {
        .points = points, .order = order, .group = group, .job_limit = jobs, .memory_limit = hx_points_memory()};
    *plan = (struct hx_points_plan){.points = all};
    if (order != NULL && group != NULL && factors != NULL && running != NULL) {
        for (size_t i = 0; i < all; i++) {
            size_t index = members != NULL ? members[i] : i;
            if (options->force || points->items[index].state != HX_POINT_THERE) {
                order[plan->to_run++] = index;
                plan->too_large += points->items[index].memory_bytes > schedule.memory_limit;
            }
        }
        past_ratios(points, order, plan->to_run, factors);
        schedule.count = plan->to_run;
        hx_schedule_order(&schedule, jobs);
        if (hx_schedule_open(&schedule) == 0) {
            play(&schedule, running, factors, plan);
        }
        hx_schedule_close(&schedule);
    }
    free(order);
    free(group);
    free(factors);
    free(running);
}

void hx_points_plan_text(const struct hx_points_plan *plan, char *text, size_t capacity) {
    char time[32];
    hx_seconds_text(plan->elapsed_s, time, sizeof(time));
    if (plan->to_run == 0) {
        snprintf(text, capacity, "0 to run");
    } else {
        snprintf(text, capacity, "%zu to run, about %s, up to %.1f GB each", plan->to_run, time,
                 (double)plan->memory_bytes * 1e-9);
        size_t length = strlen(text);
        if (plan->too_large > 0 && length < capacity) {
            snprintf(text + length, capacity - length, "; %zu of them more than the %.1f GB here", plan->too_large,
                     (double)hx_points_memory() * 1e-9);
        }
    }
}

void hx_points_plan_print(struct hx_points *points, const struct hx_points_options *options, FILE *out) {
    struct hx_points_plan plan;
    char text[128];
    hx_points_scan(points);
    hx_points_plan(points, options, NULL, 0, &plan);
    hx_points_plan_text(&plan, text, sizeof(text));
    fprintf(out, "%zu points in %s/points, %s\n", points->count, points->out, text);
}
