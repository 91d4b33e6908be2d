/* SPDX-License-Identifier: Apache-2.0
 *
 * Small-sample statistics for comparing results. All functions are deterministic; those that resample take a seed.
 */
#ifndef DM_COMMON_STATS_H
#define DM_COMMON_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sorts values that are not NaN, the least first. */
void dm_sort(double *values, size_t count);

/* Linear interpolation between order statistics; does not change `values`. */
double dm_median(const double *values, size_t count);

struct dm_interval {
    double low, high;
};

/* Percentile bootstrap interval of the median at the given confidence (0.95), `rounds` resamples. */
struct dm_interval dm_bootstrap_median(const double *values, size_t count, double confidence, unsigned rounds,
                                       uint64_t seed);

/* Percentile bootstrap interval of median(b) / median(a), each resampled independently. A point where neither
 * sample has two values; NaN where a's median is 0 or a sample is empty. */
struct dm_interval dm_bootstrap_ratio(const double *a, size_t a_count, const double *b, size_t b_count,
                                      double confidence, unsigned rounds, uint64_t seed);

struct dm_rank_test {
    double u; /* pairs in which b's value is the greater one, ties counted half */
    double p; /* two-sided; 1 for an empty sample */
    bool exact;
};

/* Mann-Whitney U. The distribution of U is exact for up to 50 values a side without ties; otherwise the normal
 * approximation with the correction for ties and for continuity. p is NaN when out of memory. */
struct dm_rank_test dm_mann_whitney(const double *a, size_t a_count, const double *b, size_t b_count);

/* The least p that dm_mann_whitney gives for samples of these sizes without ties. 1 for an empty sample. */
double dm_mann_whitney_least(size_t a_count, size_t b_count);

/* Holm's correction for `count` tests, in place: rejecting those at most alpha keeps the probability of any false
 * rejection at most alpha. DM_ERR_NO_MEMORY leaves them as they are. */
int dm_holm(double *p, size_t count);

/* Cliff's delta: the share of pairs in which b is greater less the share in which it is smaller, -1 to 1. 0 for an
 * empty sample. */
double dm_cliffs_delta(const double *a, size_t a_count, const double *b, size_t b_count);

/* "negligible" below 0.147, "small" below 0.33, "medium" below 0.474, else "large" (Romano et al. 2006). */
const char *dm_delta_text(double delta);

#endif
