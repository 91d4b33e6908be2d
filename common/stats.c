/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of small samples. Sums run in the order of the values, so that equal inputs give equal bytes.
 */
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/prng.h"

static int compare_doubles(const void *a, const void *b) {
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

void dm_sort(double *values, size_t count) {
    qsort(values, count, sizeof(*values), compare_doubles);
}

/* The value at `share` (0 to 1) between the first and the last of sorted values, of which there is at least one;
 * interpolated. */
static double sorted_quantile(const double *sorted, size_t count, double share) {
    double position = share * (double)(count - 1);
    size_t below = (size_t)position;
    if (below >= count - 1) {
        return sorted[count - 1];
    }
    double rest = position - (double)below;
    /* without the test, two equal infinities would give their difference: not a number */
    return rest > 0.0 ? sorted[below] + rest * (sorted[below + 1] - sorted[below]) : sorted[below];
}

static double median_in_place(double *values, size_t count) {
    dm_sort(values, count);
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

static void resample(struct dm_prng *prng, const double *values, size_t count, double *sample) {
    for (size_t i = 0; i < count; i++) {
        sample[i] = values[dm_prng_below(prng, count)];
    }
}

/* The values between which the middle share of them lies. Sorts them. */
static struct dm_interval middle_share(double *values, size_t count, double share) {
    double tail = (1.0 - share) / 2.0;
    dm_sort(values, count);
    return (struct dm_interval){.low = sorted_quantile(values, count, tail),
                                .high = sorted_quantile(values, count, 1.0 - tail)};
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
            resample(&prng, values, count, sample);
            medians[round] = median_in_place(sample, count);
        }
        interval = middle_share(medians, rounds, confidence);
    }
    free(sample);
    free(medians);
    return interval;
}

/* ---- two samples ------------------------------------------------------------------------------------------------- */

struct dm_interval dm_bootstrap_ratio(const double *a, size_t a_count, const double *b, size_t b_count,
                                      double confidence, unsigned rounds, uint64_t seed) {
    double middle = a_count > 0 && b_count > 0 ? dm_median(b, b_count) / dm_median(a, a_count) : NAN;
    struct dm_interval interval = {.low = middle, .high = middle};
    if (!isfinite(middle) || rounds == 0 || (a_count < 2 && b_count < 2)) {
        return isfinite(middle) ? interval : (struct dm_interval){.low = NAN, .high = NAN};
    }
    double *ratios = calloc(rounds, sizeof(*ratios));
    double *a_sample = calloc(a_count + 1, sizeof(*a_sample));
    double *b_sample = calloc(b_count + 1, sizeof(*b_sample));
    interval = (struct dm_interval){.low = NAN, .high = NAN};
    if (ratios != NULL && a_sample != NULL && b_sample != NULL) {
        struct dm_prng prng = dm_prng_stream(seed, "bootstrap_ratio", 0);
        for (unsigned round = 0; round < rounds; round++) {
            resample(&prng, a, a_count, a_sample);
            resample(&prng, b, b_count, b_sample);
            ratios[round] = median_in_place(b_sample, b_count) / median_in_place(a_sample, a_count);
        }
        interval = middle_share(ratios, rounds, confidence);
    }
    free(b_sample);
    free(a_sample);
    free(ratios);
    return interval;
}

/* Pairs with b above a, ties counted half; *ties: how many pairs are equal. */
static double pairs_above(const double *a, size_t a_count, const double *b, size_t b_count, size_t *ties) {
    size_t above = 0;
    *ties = 0;
    for (size_t i = 0; i < a_count; i++) {
        for (size_t j = 0; j < b_count; j++) {
            above += b[j] > a[i];
            *ties += b[j] == a[i];
        }
    }
    return (double)above + (double)*ties / 2.0;
}

/* The two-sided probability of a U as far from its middle, from the number of arrangements that give each U. */
static double exact_probability(size_t m, size_t n, double u) {
    size_t most = m * n;
    double *counts = calloc((m + 1) * (most + 1), sizeof(*counts));
    if (counts == NULL) {
        return NAN;
    }
    /* counts[i][s]: choices of i of the ranks seen so far whose excess over the lowest choice is s. Ranks are
     * added one at a time; the k-th adds k - i to a choice in which it is the i-th. */
    counts[0] = 1.0;
    for (size_t k = 1; k <= m + n; k++) {
        for (size_t i = k < m ? k : m; i >= 1; i--) {
            double *with = counts + i * (most + 1), *without = counts + (i - 1) * (most + 1);
            for (size_t s = k - i; s <= most; s++) {
                with[s] += without[s - (k - i)];
            }
        }
    }
    const double *last = counts + m * (most + 1);
    double all = 0.0, tail = 0.0;
    double low = fmin(u, (double)most - u);
    for (size_t s = 0; s <= most; s++) {
        all += last[s];
        tail += (double)s <= low ? last[s] : 0.0;
    }
    free(counts);
    return fmin(1.0, 2.0 * tail / all);
}

/* The sum of t^3 - t over groups of t equal values of both samples together; NaN when out of memory. */
static double tie_term(const double *a, size_t m, const double *b, size_t n) {
    double *all = calloc(m + n, sizeof(*all));
    double term = 0.0;
    if (all == NULL) {
        return NAN;
    }
    memcpy(all, a, m * sizeof(*all));
    memcpy(all + m, b, n * sizeof(*all));
    dm_sort(all, m + n);
    for (size_t i = 0; i < m + n;) {
        size_t end = i + 1;
        while (end < m + n && all[end] == all[i]) {
            end++;
        }
        double group = (double)(end - i);
        term += group * group * group - group;
        i = end;
    }
    free(all);
    return term;
}

static double normal_probability(const double *a, size_t m, const double *b, size_t n, double u) {
    double pairs = (double)m * (double)n;
    double total = (double)(m + n);
    double variance = pairs / 12.0 * (total + 1.0 - tie_term(a, m, b, n) / (total * (total - 1.0)));
    double off = fmax(0.0, fabs(u - pairs / 2.0) - 0.5);
    return variance > 0.0 ? erfc(off / sqrt(2.0 * variance)) : isnan(variance) ? NAN : 1.0;
}

struct dm_rank_test dm_mann_whitney(const double *a, size_t a_count, const double *b, size_t b_count) {
    enum { EXACT_MAX = 50 };
    struct dm_rank_test test = {.p = 1.0};
    size_t ties;
    if (a_count == 0 || b_count == 0) {
        return test;
    }
    test.u = pairs_above(a, a_count, b, b_count, &ties);
    /* Ties within one sample change nothing in the arrangements that count. */
    test.exact = ties == 0 && a_count <= EXACT_MAX && b_count <= EXACT_MAX;
    test.p =
        test.exact ? exact_probability(a_count, b_count, test.u) : normal_probability(a, a_count, b, b_count, test.u);
    return test;
}

double dm_cliffs_delta(const double *a, size_t a_count, const double *b, size_t b_count) {
    size_t ties;
    if (a_count == 0 || b_count == 0) {
        return 0.0;
    }
    return 2.0 * pairs_above(a, a_count, b, b_count, &ties) / ((double)a_count * (double)b_count) - 1.0;
}

const char *dm_delta_text(double delta) {
    double size = fabs(delta);
    return size < 0.147 ? "negligible" : size < 0.33 ? "small" : size < 0.474 ? "medium" : "large";
}

double dm_mann_whitney_least(size_t a_count, size_t b_count) {
    size_t total = a_count + b_count;
    double arrangements = 1;
    if (a_count == 0 || b_count == 0) {
        return 1;
    }
    for (size_t i = 1; i <= a_count; i++) {
        arrangements *= (double)(total - a_count + i) / (double)i;
    }
    return fmin(1, 2 / arrangements);
}

static int compare_pointed(const void *left, const void *right) {
    double a = **(double *const *)left, b = **(double *const *)right;
    return (a > b) - (a < b);
}

int dm_holm(double *p, size_t count) {
    double **order = calloc(count + 1, sizeof(*order));
    if (order == NULL) {
        return DM_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = &p[i];
    }
    qsort(order, count, sizeof(*order), compare_pointed);
    double least = 0;
    for (size_t i = 0; i < count; i++) {
        least = fmax(least, fmin(1, *order[i] * (double)(count - i)));
        *order[i] = least;
    }
    free(order);
    return 0;
}
