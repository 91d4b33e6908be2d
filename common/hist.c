/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-linear histogram. A bucket's number is (shift << 7) + (value >> shift), where the shift leaves the value's eight
 * leading bits: values below 256 have a bucket each, and every later octave is cut into 128 equal parts. The numbers
 * continue without gaps, so that their order is the order of the values.
 */
#include "common/hist.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/compiler.h"
#include "common/err.h"

static unsigned bucket_of(uint64_t value) {
    /* the or makes every small value look like the first octave, whose shift is 0 */
    unsigned shift = 63U - DM_HIST_SUB_BITS - dm_clz64(value | (UINT64_C(1) << DM_HIST_SUB_BITS));
    return (shift << DM_HIST_SUB_BITS) + (unsigned)(value >> shift);
}

static unsigned bucket_shift(unsigned bucket) {
    unsigned octave = bucket >> DM_HIST_SUB_BITS;
    return octave > 0 ? octave - 1 : 0;
}

static uint64_t bucket_low(unsigned bucket) {
    unsigned shift = bucket_shift(bucket);
    return (uint64_t)(bucket - (shift << DM_HIST_SUB_BITS)) << shift;
}

static uint64_t bucket_high(unsigned bucket) {
    return bucket_low(bucket) + ((UINT64_C(1) << bucket_shift(bucket)) - 1);
}

void dm_hist_clear(struct dm_hist *hist) {
    memset(hist, 0, sizeof(*hist));
}

void dm_hist_record(struct dm_hist *hist, uint64_t value) {
    if (value < hist->min || hist->count == 0) {
        hist->min = value;
    }
    if (value > hist->max) {
        hist->max = value;
    }
    hist->count++;
    hist->sum += value;
    hist->buckets[bucket_of(value)]++;
}

void dm_hist_merge(struct dm_hist *into, const struct dm_hist *from) {
    if (from->count == 0) {
        return;
    }
    if (from->min < into->min || into->count == 0) {
        into->min = from->min;
    }
    if (from->max > into->max) {
        into->max = from->max;
    }
    into->count += from->count;
    into->sum += from->sum;
    for (unsigned i = 0; i < DM_HIST_BUCKETS; i++) {
        into->buckets[i] += from->buckets[i];
    }
}

/* How many of the count smallest values are needed to make up the share: 1 to count. */
static uint64_t rank_of(double share, uint64_t count) {
    double product = share * (double)count;
    if (share >= 1.0 || product >= (double)count) {
        return count;
    }
    /* so written, a share that is no number counts as 0 */
    uint64_t rank = product >= 1.0 ? (uint64_t)product : 1;
    /* Not the next whole number: the product of 0.07 and 100 comes out above 7. What a rank is of the count decides. */
    while (rank < count && (double)rank / (double)count < share) {
        rank++;
    }
    return rank;
}

uint64_t dm_hist_quantile(const struct dm_hist *hist, double share) {
    if (hist->count == 0) {
        return 0;
    }
    uint64_t rank = rank_of(share, hist->count);
    uint64_t seen = 0;
    for (unsigned i = 0; i < DM_HIST_BUCKETS; i++) {
        seen += hist->buckets[i];
        if (seen >= rank) {
            uint64_t high = bucket_high(i);
            return high < hist->max ? high : hist->max;
        }
    }
    return hist->max;
}

double dm_hist_mean(const struct dm_hist *hist) {
    return hist->count == 0 ? 0.0 : (double)hist->sum / (double)hist->count;
}

enum { U128_DIGITS = 40 };

/* Decimal digits of value, at the end of the buffer; printf has no conversion for 128 bits. */
static const char *format_u128(unsigned __int128 value, char buffer[U128_DIGITS]) {
    char *at = buffer + U128_DIGITS - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value != 0);
    return at;
}

size_t dm_hist_encode(const struct dm_hist *hist, char *text, size_t capacity) {
    char digits[U128_DIGITS];
    int wrote = snprintf(text, capacity, "min=%" PRIu64 " max=%" PRIu64 " sum=%s", hist->min, hist->max,
                         format_u128(hist->sum, digits));
    size_t used = (size_t)wrote;
    for (unsigned i = 0; i < DM_HIST_BUCKETS; i++) {
        if (hist->buckets[i] == 0) {
            continue;
        }
        size_t left = used < capacity ? capacity - used : 0;
        wrote = snprintf(left > 0 ? text + used : NULL, left, " %u:%" PRIu64, i, hist->buckets[i]);
        used += (size_t)wrote;
    }
    return used;
}

/* Reads a decimal number of at most `max` and moves *at behind it; false for no digits, leading zeros (encoding is
 * one-to-one) or a number that is too large. */
static bool read_u128(const char **at, unsigned __int128 max, unsigned __int128 *value) {
    const char *from = *at;
    unsigned __int128 sum = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        unsigned digit = (unsigned)(**at - '0');
        if (sum > (max - digit) / 10) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    *value = sum;
    return *at != from && (*from != '0' || *at == from + 1);
}

static bool read_u64(const char **at, uint64_t *value) {
    unsigned __int128 wide = 0;
    if (!read_u128(at, UINT64_MAX, &wide)) {
        return false;
    }
    *value = (uint64_t)wide;
    return true;
}

static bool skip_word(const char **at, const char *word) {
    size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0) {
        return false;
    }
    *at += length;
    return true;
}

/* Reads " bucket:count" pairs, buckets ascending, up to the end of the text. */
static bool read_buckets(const char *at, struct dm_hist *hist) {
    uint64_t next = 0;
    while (*at != '\0') {
        uint64_t bucket = 0;
        uint64_t count = 0;
        if (!skip_word(&at, " ") || !read_u64(&at, &bucket) || !skip_word(&at, ":") || !read_u64(&at, &count)) {
            return false;
        }
        if (bucket < next || bucket >= DM_HIST_BUCKETS || count == 0 || count > UINT64_MAX - hist->count) {
            return false;
        }
        hist->buckets[bucket] = count;
        hist->count += count;
        next = bucket + 1;
    }
    return true;
}

/* Whether min, max and sum can belong to these buckets. */
static bool is_consistent(const struct dm_hist *hist) {
    if (hist->count == 0) {
        return hist->min == 0 && hist->max == 0 && hist->sum == 0;
    }
    if (hist->buckets[bucket_of(hist->min)] == 0 || hist->buckets[bucket_of(hist->max)] == 0 || hist->min > hist->max) {
        return false;
    }
    unsigned __int128 low = 0;
    unsigned __int128 high = 0;
    for (unsigned i = 0; i < DM_HIST_BUCKETS; i++) {
        if (hist->buckets[i] != 0 && (i < bucket_of(hist->min) || i > bucket_of(hist->max))) {
            return false;
        }
        low += (unsigned __int128)bucket_low(i) * hist->buckets[i];
        high += (unsigned __int128)bucket_high(i) * hist->buckets[i];
    }
    return low <= hist->sum && hist->sum <= high;
}

int dm_hist_decode(struct dm_hist *hist, const char *text) {
    const char *at = text;
    dm_hist_clear(hist);
    bool is_read = skip_word(&at, "min=") && read_u64(&at, &hist->min) && skip_word(&at, " max=") &&
                   read_u64(&at, &hist->max) && skip_word(&at, " sum=") &&
                   read_u128(&at, ~(unsigned __int128)0, &hist->sum) && read_buckets(at, hist);
    if (!is_read || !is_consistent(hist)) {
        dm_hist_clear(hist);
        return DM_ERR_INVALID;
    }
    return DM_OK;
}
