/* SPDX-License-Identifier: Apache-2.0
 *
 * What is left to run of a set, and what that will take.
 */
#include "harness/points/points_plan.h"

#include <stdlib.h>
#include <string.h>

#include "harness/points/points_cost.h"
#include "harness/points/points_group.h"
#include "harness/points/points_host.h"
#include "harness/points/points_progress.h"

enum { CALIBRATION_MIN = 3 };

static int compare_reals(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static bool same_index(const struct hx_point *a, const struct hx_point *b) {
    const char *one = json_string_value(json_object_get(a->config, "index"));
    const char *other = json_string_value(json_object_get(b->config, "index"));
    return one != NULL && other != NULL && strcmp(one, other) == 0;
}

/* The median of measured over estimated seconds of points that have results: those with the index of `like`, or all. 0:
 * too few. */
static double past_ratio(const struct hx_points *points, const struct hx_point *like, double *ratios) {
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++) {
        const struct hx_point *point = &points->items[i];
        if (point->past_s > 0 && point->cost > 0 && (like == NULL || same_index(point, like))) {
            ratios[count++] = point->past_s / point->cost;
        }
    }
    qsort(ratios, count, sizeof(*ratios), compare_reals);
    return count >= CALIBRATION_MIN ? ratios[count / 2] : 0;
}

/* What the estimate of each member is multiplied by. Members of one index often follow each other. */
static void past_ratios(const struct hx_points *points, const size_t *members, size_t count, double *factors) {
    double *ratios = calloc(points->count + 1, sizeof(*ratios));
    double overall = ratios != NULL ? past_ratio(points, NULL, ratios) : 0;
    for (size_t i = 0; i < count; i++) {
        const struct hx_point *point = &points->items[members[i]];
        bool repeats = i > 0 && same_index(point, &points->items[members[i - 1]]);
        double own = repeats ? factors[i - 1] : ratios != NULL ? past_ratio(points, point, ratios) : 0;
        factors[i] = own > 0 ? own : overall > 0 ? overall : 1;
    }
    free(ratios);
}

/* A point keeps as much of the machine busy as it has of its cores or of its memory. */
static double share_of(uint64_t bytes, uint64_t memory, size_t jobs) {
    double cores = 1 / (double)jobs, of_memory = memory > 0 ? (double)bytes / (double)memory : 1;
    double share = cores > of_memory ? cores : of_memory;
    return share < 1 ? share : 1;
}

/* Points in the order in which they are run, each group's load once. */
static void plan_groups(const struct hx_points *points, const size_t *order, const size_t *group, const double *factors,
                        size_t jobs, struct hx_points_plan *plan) {
    double longest = 0, job = 0, elapsed = 0;
    uint64_t memory = hx_points_memory(), bytes = 0;
    for (size_t i = 0; i < plan->to_run; i++) {
        struct hx_cost cost;
        const struct hx_point *point = &points->items[order[i]];
        hx_cost_of(point->config, point->hash, &cost);
        double seconds = ((group[i] > 0 ? cost.load_s : 0) + cost.run_s) * factors[i];
        if (group[i] > 0) {
            bytes = hx_group_memory(points, order + i, group[i]);
            job = 0;
        }
        job += seconds;
        longest = job > longest ? job : longest;
        plan->work_s += seconds;
        plan->too_large += point->memory_bytes > memory;
        plan->memory_bytes = bytes > plan->memory_bytes ? bytes : plan->memory_bytes;
        elapsed += seconds * share_of(bytes, memory, jobs);
    }
    plan->elapsed_s = elapsed > longest ? elapsed : longest;
}

void hx_points_plan(const struct hx_points *points, const struct hx_points_options *options, const size_t *members,
                    size_t count, struct hx_points_plan *plan) {
    size_t all = members != NULL ? count : points->count;
    size_t *order = calloc(all + 1, sizeof(*order)), *group = calloc(all + 1, sizeof(*group));
    double *factors = calloc(all + 1, sizeof(*factors));
    *plan = (struct hx_points_plan){.points = all};
    if (order != NULL && group != NULL && factors != NULL) {
        size_t jobs = hx_points_jobs(options->jobs);
        for (size_t i = 0; i < all; i++) {
            size_t index = members != NULL ? members[i] : i;
            if (options->force || points->items[index].state != HX_POINT_THERE) {
                order[plan->to_run++] = index;
            }
        }
        hx_points_group(points, order, plan->to_run, jobs, group);
        past_ratios(points, order, plan->to_run, factors);
        plan_groups(points, order, group, factors, jobs, plan);
    }
    free(order);
    free(group);
    free(factors);
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
