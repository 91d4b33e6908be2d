/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing two sets of results, point by point.
 *
 * A point is a configuration without its seed: results of one point are its repetitions. Points of the two sides belong
 * together when they agree in every option that varies within a side (clients, say); options that are constant within
 * each side may differ between the sides: these are compared (the index, say).
 */
#ifndef DM_HARNESS_STUDY_COMPARE_H
#define DM_HARNESS_STUDY_COMPARE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/stats.h"
#include "harness/study/result_set.h"

enum { HX_COMPARE_NAME_MAX = 48 };

struct hx_compare_metric {
    char name[HX_COMPARE_NAME_MAX]; /* "throughput", "get.p99" */
    double a, b;                    /* medians over the repetitions */
    double ratio;                   /* b / a; infinite where a alone is 0 */
    struct dm_interval interval;    /* of the ratio */
    struct dm_rank_test test;
    double p_holm;  /* the test's p, corrected for all tests of the comparison */
    double delta;   /* Cliff's */
    bool in_bucket; /* a percentile whose two medians are no further apart than a bucket of the histogram is wide */
};

struct hx_compare_point {
    char *label;   /* "clients=64 workload=a" */
    size_t *a, *b; /* indexes of the repetitions in the sets */
    size_t a_count, b_count;
    struct hx_compare_metric *metrics;
    size_t metric_count;
};

struct hx_compare {
    const struct hx_result_set *a, *b;
    char **axes; /* dotted option paths that distinguish points */
    size_t axis_count;
    json_t *differences; /* option path -> [value of A, value of B] */
    json_t *seeds[2];    /* of A and of B, ascending */
    size_t test_count;
    struct hx_compare_point *points;
    size_t point_count;
    size_t only_a, only_b; /* results without a counterpart */
};

struct hx_compare_options {
    bool force;        /* compare also sets that differ in time base, workload or schema */
    double confidence; /* 0.95 */
    unsigned rounds;
    uint64_t seed;
};

/* Compares; both sets must outlive the result, which the caller frees. Refuses (DM_ERR_INVALID) sets that differ in
 * schema version, time base or workload unless forced, sets with two points that no common option distinguishes, and
 * sets that have no point in common. */
int hx_compare_make(const struct hx_result_set *a, const struct hx_result_set *b,
                    const struct hx_compare_options *options, struct hx_compare **compare, struct dm_err *err);
void hx_compare_free(struct hx_compare *compare); /* accepts NULL */

/* A condition on ratios: "p99 > 1.05" applies to the p99 of every operation, "get.p99 > 1.05" to that of gets. */
struct hx_compare_limit {
    char name[HX_COMPARE_NAME_MAX];
    bool above, or_equal;
    double bound;
};

int hx_compare_limit_parse(const char *text, struct hx_compare_limit *limit, struct dm_err *err);

/* Whether the condition holds for a metric; with `certain`, for its complete interval. */
bool hx_compare_limit_holds(const struct hx_compare_limit *limit, const struct hx_compare_metric *metric, bool certain);

/* Whether the condition applies to a metric of that name. */
bool hx_compare_limit_names(const struct hx_compare_limit *limit, const char *name);

#endif
