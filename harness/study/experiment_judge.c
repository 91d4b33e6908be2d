/* SPDX-License-Identifier: Apache-2.0
 *
 * The runs of a published experiment, and the comparison of what they measured with what was published.
 */
#include <math.h>
#include <string.h>

#include "harness/base/json.h"
#include "harness/study/experiment.h"
#include "harness/study/figure_points.h"
#include "harness/study/result_set.h"

/* Published values that are nearer to each other than this factor have no order: sources do not repeat their runs, and
 * those that do show differences of some percent. */
#define TIE_FACTOR 1.05

/* ---- runs ------------------------------------------------------------------------------------------------------- */

/* Merges `over` over *config; NULL changes nothing. */
static int put_over(json_t **config, const json_t *over, struct dm_err *err) {
    json_t *merged = hx_json_merge(*config, over);
    json_decref(*config);
    *config = merged;
    return merged != NULL ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the points of experiments");
}

/* The configuration of one run of a point: the experiment's, the point's, the smaller size of both, `against`. */
static int run_config(const struct hx_experiment *experiment, const struct hx_exp_point *point, bool paper, bool second,
                      json_t **config, struct dm_err *err) {
    const json_t *parts[] = {experiment->config, point->config, paper ? NULL : experiment->quick,
                             paper ? NULL : point->quick, second ? point->against : NULL};
    *config = NULL;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        DM_TRY(put_over(config, parts[i], err));
    }
    return hx_config_put_set_of(config, err);
}

static int add_run(const struct hx_experiment *experiment, struct hx_exp_point *point, bool paper, bool second,
                   struct hx_points *points, struct dm_err *err) {
    char where[512], label[256];
    json_t *config = NULL;
    snprintf(where, sizeof(where), "%s: points[%zu]", experiment->file, (size_t)(point - experiment->points));
    snprintf(label, sizeof(label), "%s: %s", experiment->id, point->label);
    int rc = run_config(experiment, point, paper, second, &config, err);
    rc = rc < 0 ? rc : hx_points_add(points, config, where, label, &point->runs[second], err);
    json_decref(config);
    return rc;
}

int hx_experiment_runs(struct hx_experiment *experiment, bool paper, struct hx_points *points, struct dm_err *err) {
    for (size_t i = 0; i < experiment->point_count; i++) {
        struct hx_exp_point *point = &experiment->points[i];
        if (point->not_run != NULL) {
            continue;
        }
        DM_TRY(add_run(experiment, point, paper, false, points, err));
        if (point->against != NULL) {
            DM_TRY(add_run(experiment, point, paper, true, points, err));
        }
    }
    return 0;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static double mean_us(const json_t *result) {
    return hx_result_number(result, "ops.all.latency_ns.mean") * 1e-3;
}

/* The time of an operation as a line over its round trips, through two runs: its slope. */
static double slope_of(const json_t *one, const json_t *two) {
    double trips_one = hx_result_number(one, "ops.all.round_trips_mean");
    double trips_two = hx_result_number(two, "ops.all.round_trips_mean");
    return (mean_us(two) - mean_us(one)) / (trips_two - trips_one);
}

static double value_of(enum hx_exp_metric metric, const json_t *one, const json_t *two) {
    switch (metric) {
    case HX_EXP_MOPS:
        return hx_result_number(one, "throughput_ops_per_s") * 1e-6;
    case HX_EXP_MEAN:
        return mean_us(one);
    case HX_EXP_P50:
        return hx_result_number(one, "ops.all.latency_ns.p50") * 1e-3;
    case HX_EXP_P90:
        return hx_result_number(one, "ops.all.latency_ns.p90") * 1e-3;
    case HX_EXP_P99:
        return hx_result_number(one, "ops.all.latency_ns.p99") * 1e-3;
    case HX_EXP_US_A_ROUND_TRIP:
        return slope_of(one, two);
    case HX_EXP_METRICS:
        break;
    }
    return NAN;
}

/* The result of a point's run, or NULL: absent, or operations of it failed. */
static json_t *run_result(const struct hx_points *points, size_t run) {
    return hx_result_usable(hx_points_load(points, run, NULL), points->items[run].label, points->items[run].hash);
}

double hx_exp_tolerance(enum hx_exp_bound bound) {
    return bound == HX_EXP_BANDWIDTH ? 1.25 : 1.4;
}

double hx_exp_factor(const struct hx_exp_point *point) {
    double ratio = point->ours / point->published;
    return ratio >= 1 ? ratio : 1 / ratio;
}

static void point_judge(struct hx_exp_point *point, const struct hx_points *points, bool as_is) {
    if (point->not_run != NULL) {
        point->verdict = HX_EXP_NOT_RUN;
        return;
    }
    json_t *one = run_result(points, point->runs[0]);
    json_t *two = point->against != NULL ? run_result(points, point->runs[1]) : NULL;
    bool is_there = one != NULL && (two != NULL) == (point->against != NULL);
    point->ours = is_there ? value_of(point->metric, one, two) : NAN;
    bool usable = isfinite(point->ours) && point->ours > 0;
    point->ours = usable ? point->ours : NAN;
    if (as_is && !is_there) {
        point->not_run = "there is no result yet";
    }
    point->verdict = point->not_run != NULL                                   ? HX_EXP_NOT_RUN
                     : !usable                                                ? HX_EXP_FAILED
                     : hx_exp_factor(point) <= hx_exp_tolerance(point->bound) ? HX_EXP_IN
                                                                              : HX_EXP_OUT;
    json_decref(one);
    json_decref(two);
}

void hx_experiment_judge(struct hx_experiment *experiment, const struct hx_points *points, bool as_is) {
    for (size_t i = 0; i < experiment->point_count; i++) {
        point_judge(&experiment->points[i], points, as_is);
    }
    for (size_t i = 0; i < experiment->pair_count; i++) {
        struct hx_exp_pair *pair = &experiment->pairs[i];
        const struct hx_exp_point *more = &experiment->points[pair->more], *less = &experiment->points[pair->less];
        pair->order = !isfinite(more->ours) || !isfinite(less->ours)   ? HX_EXP_UNJUDGED
                      : more->published < less->published * TIE_FACTOR ? HX_EXP_TIE
                      : more->ours > less->ours                        ? HX_EXP_HOLDS
                                                                       : HX_EXP_BROKEN;
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static void sum_points(const struct hx_experiment *experiment, struct hx_exp_sum *sum, double logs[HX_EXP_BOUNDS + 1]) {
    for (size_t i = 0; i < experiment->point_count; i++) {
        const struct hx_exp_point *point = &experiment->points[i];
        switch (point->verdict) {
        case HX_EXP_IN:
            sum->in[point->bound]++;
            break;
        case HX_EXP_OUT:
            sum->out[point->bound]++;
            sum->unexplained += point->cause[0] == '\0';
            break;
        case HX_EXP_NOT_RUN:
            sum->not_run++;
            continue;
        case HX_EXP_FAILED:
            sum->failed++;
            continue;
        }
        logs[point->bound] += log(hx_exp_factor(point));
        logs[HX_EXP_BOUNDS] += log(hx_exp_factor(point));
    }
}

struct hx_exp_sum hx_experiments_sum(struct hx_experiment *const *experiments, size_t count) {
    struct hx_exp_sum sum = {.failed = 0};
    double logs[HX_EXP_BOUNDS + 1] = {0};
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        sum_points(experiments[i], &sum, logs);
        for (size_t k = 0; k < experiments[i]->pair_count; k++) {
            enum hx_exp_order order = experiments[i]->pairs[k].order;
            sum.holds += order == HX_EXP_HOLDS;
            sum.broken += order == HX_EXP_BROKEN;
            sum.ties += order == HX_EXP_TIE;
            sum.unjudged += order == HX_EXP_UNJUDGED;
        }
    }
    for (int i = 0; i < HX_EXP_BOUNDS; i++) {
        size_t judged = sum.in[i] + sum.out[i];
        sum.typical[i] = judged > 0 ? exp(logs[i] / (double)judged) : NAN;
        all += judged;
    }
    sum.typical[HX_EXP_BOUNDS] = all > 0 ? exp(logs[HX_EXP_BOUNDS] / (double)all) : NAN;
    return sum;
}
