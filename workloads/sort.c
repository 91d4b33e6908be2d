/* SPDX-License-Identifier: Apache-2.0
 *
 * In-place radix sort (the "American flag" sort). Keys are swapped into the bucket of their highest byte, then each
 * bucket is sorted by the next byte. Small buckets are sorted by insertion.
 */
#include "workloads/sort.h"

#include <string.h>

enum { RADIX_BITS = 8, RADIX = 1 << RADIX_BITS, INSERTION_MAX = 48 };

static void insertion_sort(uint64_t *keys, uint64_t count) {
    for (uint64_t i = 1; i < count; i++) {
        uint64_t key = keys[i];
        uint64_t hole = i;
        while (hole > 0 && keys[hole - 1] > key) {
            keys[hole] = keys[hole - 1];
            hole--;
        }
        keys[hole] = key;
    }
}

static unsigned digit_of(uint64_t key, unsigned shift) {
    return (unsigned)(key >> shift) & (RADIX - 1);
}

/* Moves each key to its bucket, and sets `end` to the ends of the buckets. */
static void distribute(uint64_t *keys, uint64_t count, unsigned shift, uint64_t end[RADIX]) {
    uint64_t next[RADIX];
    memset(end, 0, RADIX * sizeof end[0]);
    for (uint64_t i = 0; i < count; i++) {
        end[digit_of(keys[i], shift)]++;
    }
    uint64_t sum = 0;
    for (unsigned digit = 0; digit < RADIX; digit++) {
        next[digit] = sum;
        sum += end[digit];
        end[digit] = sum;
    }
    for (unsigned digit = 0; digit < RADIX; digit++) {
        while (next[digit] < end[digit]) {
            uint64_t key = keys[next[digit]];
            for (unsigned home = digit_of(key, shift); home != digit; home = digit_of(key, shift)) {
                uint64_t other = keys[next[home]];
                keys[next[home]++] = key;
                key = other;
            }
            keys[next[digit]++] = key;
        }
    }
}

/* Recurses at most 8 deep: one level per byte. */
static void radix_sort(uint64_t *keys, uint64_t count, unsigned shift) {
    uint64_t end[RADIX];
    if (count <= INSERTION_MAX) {
        insertion_sort(keys, count);
        return;
    }
    distribute(keys, count, shift, end);
    if (shift == 0) {
        return;
    }
    uint64_t start = 0;
    for (unsigned digit = 0; digit < RADIX; digit++) {
        if (end[digit] - start > 1) {
            radix_sort(keys + start, end[digit] - start, shift - RADIX_BITS);
        }
        start = end[digit];
    }
}

void wl_sort_u64(uint64_t *keys, uint64_t count) {
    uint64_t all = 0;
    for (uint64_t i = 0; i < count; i++) {
        all |= keys[i];
    }
    unsigned shift = 64 - RADIX_BITS;
    while (shift > 0 && all >> shift == 0) {
        shift -= RADIX_BITS;
    }
    radix_sort(keys, count, shift);
}

uint64_t wl_unique_u64(uint64_t *keys, uint64_t count) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (i == 0 || keys[i] != keys[kept - 1]) {
            keys[kept++] = keys[i];
        }
    }
    return kept;
}
