/* SPDX-License-Identifier: Apache-2.0
 *
 * Small-sample statistics for comparing results. All functions are deterministic; those that resample take a seed.
 */
#ifndef DM_COMMON_STATS_H
#define DM_COMMON_STATS_H

#include <stddef.h>
#include <stdint.h>

double dm_mean(const double *values, size_t count);

/* Sample standard deviation (n - 1); 0 for fewer than two values. */
double dm_stddev(const double *values, size_t count);

/* Linear interpolation between order statistics; does not change `values`. */
double dm_median(const double *values, size_t count);

struct dm_interval {
    double low, high;
};

/* Percentile bootstrap interval of the median at the given confidence (0.95), `rounds` resamples. */
struct dm_interval dm_bootstrap_median(const double *values, size_t count, double confidence, unsigned rounds,
                                       uint64_t seed);

#endif
