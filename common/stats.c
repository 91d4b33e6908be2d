/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of small samples. Sums run in the order of the values, so that equal inputs give equal bytes.
 */
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/prng.h"

double dm_mean(const double *values, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return count > 0 ? sum / (double)count : 0.0;
}

double dm_stddev(const double *values, size_t count) {
    if (count < 2) {
        return 0.0;
    }
    /* two passes: the difference of two large sums would lose what is looked for */
    double mean = dm_mean(values, count);
    double squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        double off = values[i] - mean;
        squares += off * off;
    }
    return sqrt(squares / (double)(count - 1));
}

static int compare_doubles(const void *a, const void *b) {
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static void sort(double *values, size_t count) {
    qsort(values, count, sizeof(*values), compare_doubles);
}

/* share (0 to 1) of the way from the first to the last of sorted values, of which there is at least one. */
static double sorted_quantile(const double *sorted, size_t count, double share) {
    double place = share * (double)(count - 1);
    size_t below = (size_t)place;
    if (below >= count - 1) {
        return sorted[count - 1];
    }
    double rest = place - (double)below;
    /* without the test, two equal infinities would give their difference: not a number */
    return rest > 0.0 ? sorted[below] + rest * (sorted[below + 1] - sorted[below]) : sorted[below];
}

static double median_in_place(double *values, size_t count) {
    sort(values, count);
    return sorted_quantile(values, count, 0.5);
}

double dm_median(const double *values, size_t count) {
    if (count == 0) {
        return 0.0;
    }
    double *copy = malloc(count * sizeof(*copy));
    if (copy == NULL) {
        return NAN;
    }
    memcpy(copy, values, count * sizeof(*copy));
    double median = median_in_place(copy, count);
    free(copy);
    return median;
}

struct dm_interval dm_bootstrap_median(const double *values, size_t count, double confidence, unsigned rounds,
                                       uint64_t seed) {
    double median = dm_median(values, count);
    if (count < 2 || rounds == 0) {
        return (struct dm_interval){.low = median, .high = median};
    }
    double *medians = calloc(rounds, sizeof(*medians));
    double *sample = calloc(count, sizeof(*sample));
    struct dm_interval interval = {.low = NAN, .high = NAN};
    if (medians != NULL && sample != NULL) {
        struct dm_prng prng = dm_prng_stream(seed, "bootstrap_median", 0);
        for (unsigned round = 0; round < rounds; round++) {
            for (size_t i = 0; i < count; i++) {
                sample[i] = values[dm_prng_below(&prng, count)];
            }
            medians[round] = median_in_place(sample, count);
        }
        sort(medians, rounds);
        double tail = (1.0 - confidence) / 2.0;
        interval.low = sorted_quantile(medians, rounds, tail);
        interval.high = sorted_quantile(medians, rounds, 1.0 - tail);
    }
    free(sample);
    free(medians);
    return interval;
}
