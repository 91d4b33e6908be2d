/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the training of piecewise linear models in ns per key on one core, for sorted uniform 64-bit keys. The lower
 * bound is the time to read the keys, with one subtraction and one comparison for each.
 *
 *     build/release/bench/plr_bench [keys]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/prng.h"
#include "indexes/shared/plr.h"

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Trains once. Returns the number of segments, 0 when out of memory. */
static uint64_t train(const uint64_t *keys, uint64_t count, uint32_t epsilon) {
    struct ix_plr *plr;
    struct ix_plr_segment segment;
    uint64_t segments = 0;
    if (ix_plr_open(epsilon, &plr) < 0) {
        return 0;
    }
    for (uint64_t i = 0; i < count; i++) {
        int rc = ix_plr_add(plr, keys[i], i, &segment);
        segments += rc == 1;
    }
    segments += ix_plr_finish(plr, &segment) == 1;
    ix_plr_close(plr);
    return segments;
}

int main(int argc, char **argv) {
    static const uint32_t epsilons[] = {4, 8, 16, 32, 64, 256};
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 5000000;
    uint64_t *keys = malloc((size_t)count * sizeof(*keys));
    if (!keys || count == 0) {
        fprintf(stderr, "plr_bench: no memory for %llu keys\n", (unsigned long long)count);
        return 1;
    }
    struct dm_prng prng = dm_prng_stream(1, "plr_bench", 0);
    for (uint64_t i = 0; i < count; i++) {
        keys[i] = dm_prng_u64(&prng);
    }
    qsort(keys, (size_t)count, sizeof(*keys), ascending);
    double begin = seconds();
    uint64_t narrow = 0;
    for (uint64_t i = 1; i < count; i++) {
        narrow += keys[i] - keys[i - 1] < 1000;
    }
    double floor_ns = 1e9 * (seconds() - begin) / (double)count;
    printf("lower bound: %.2f ns per key (%llu narrow gaps)\n", floor_ns, (unsigned long long)narrow);
    for (size_t e = 0; e < sizeof(epsilons) / sizeof(epsilons[0]); e++) {
        double best = 1e9;
        uint64_t segments = 0;
        for (unsigned round = 0; round < 3; round++) {
            begin = seconds();
            segments = train(keys, count, epsilons[e]);
            double taken = seconds() - begin;
            best = taken < best ? taken : best;
        }
        printf("epsilon %4u: %8llu segments, %9.1f keys each, %6.1f ns per key\n", epsilons[e],
               (unsigned long long)segments, (double)count / (double)segments, 1e9 * best / (double)count);
    }
    free(keys);
    return 0;
}
