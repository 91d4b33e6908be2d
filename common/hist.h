/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-linear histogram of non-negative 64-bit values (latencies in ns). The relative error of a recorded value is
 * at most 1/128, and there is no upper bound. Counts merge by addition, and the encoded form is what results carry.
 */
#ifndef DM_COMMON_HIST_H
#define DM_COMMON_HIST_H

#include <stddef.h>
#include <stdint.h>

enum {
    DM_HIST_SUB_BITS = 7,
    /* values below 2^7 are exact; each of the 57 octaves above has 2^7 buckets */
    DM_HIST_BUCKETS = (64 - DM_HIST_SUB_BITS + 1) << DM_HIST_SUB_BITS,
};

struct dm_hist {
    uint64_t count;
    uint64_t min;
    uint64_t max;
    /* sum of the values themselves, not of the buckets: the mean is exact */
    unsigned __int128 sum;
    uint64_t buckets[DM_HIST_BUCKETS];
};

void dm_hist_clear(struct dm_hist *hist);
void dm_hist_record(struct dm_hist *hist, uint64_t value);

/* Adds every count of `from` to `into`. */
void dm_hist_merge(struct dm_hist *into, const struct dm_hist *from);

/* The smallest recorded value v such that at least share (0..1) of all values are <= v, as the highest value its
 * bucket can hold, never above the exact maximum. 0 for an empty histogram. */
uint64_t dm_hist_quantile(const struct dm_hist *hist, double share);

/* 0 for an empty histogram. */
double dm_hist_mean(const struct dm_hist *hist);

/* Writes the non-empty buckets as text "bucket:count bucket:count ..." with min, max and sum in front. Returns the
 * bytes needed without the terminating 0, like snprintf. dm_hist_decode reads it back: 0, or DM_ERR_INVALID for text
 * that is not one. */
size_t dm_hist_encode(const struct dm_hist *hist, char *text, size_t capacity);
int dm_hist_decode(struct dm_hist *hist, const char *text);

#endif
