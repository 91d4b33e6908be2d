/* SPDX-License-Identifier: Apache-2.0
 *
 * What one dependent access to a local structure costs on this host, by the size of the structure: a walk along a
 * random cycle through all lines of a block. The walk continues from round to round, so that no round finds the lines
 * of the one before in the processor's cache unless the block fits.
 *
 * An operation of an index makes some six such accesses in a microsecond or more, so between two of them there is other
 * work here, too. It matters where others share a level of the cache, as on a virtual machine: they evict lines of a
 * structure that is seldom accessed, and not those of a loop that does nothing else (tests/bench/access_bench.c).
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/mman.h>

#include "common/compiler.h"
#include "harness/base/progress.h"
#include "harness/lab/validate.h"

enum {
    ROUNDS = 9,
    STEPS = 50000,
    BETWEEN_NS = 200, /* of work between two accesses of an operation */
    CALIBRATION = 1000000,
    HUGE_PAGE_BYTES = 2 << 20,
    WORDS = DM_LINE / sizeof(uint64_t)
};

/* An odd number and its inverse modulo 2^64, in memory that the compiler does not know. */
static const volatile uint64_t factor = 3, inverse = UINT64_C(0xaaaaaaaaaaaaaaab);

/* Returns the value, after that many pairs of multiplications that depend on each other and on it. */
static inline uint64_t work(uint64_t value, unsigned pairs) {
    uint64_t by = factor, back = inverse;
    for (unsigned i = 0; i < pairs; i++) {
        value = value * by * back;
    }
    return value;
}

/* Pairs of multiplications that take so long. */
static unsigned pairs_of(unsigned ns) {
    volatile uint64_t sink;
    uint64_t begin = hx_host_ns();
    sink = work(begin, CALIBRATION);
    (void)sink;
    uint64_t took = hx_host_ns() - begin;
    return took > 0 ? (unsigned)((uint64_t)ns * CALIBRATION / took) : 0;
}

/* The lines' first words hold where the cycle continues. Large pages as in the caches of indexes. */
static uint64_t *cycle_make(uint64_t bytes) {
    uint64_t lines = bytes / DM_LINE;
    uint64_t capacity = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    uint32_t *order = malloc(lines * sizeof(*order));
    uint64_t *block = order ? aligned_alloc(HUGE_PAGE_BYTES, capacity) : NULL;
    if (block) {
        struct dm_prng prng = dm_prng_stream(1, "cycle", bytes);
        madvise(block, capacity, MADV_HUGEPAGE);
        for (uint64_t i = 0; i < lines; i++) {
            uint64_t j = dm_prng_below(&prng, i + 1);
            order[i] = order[j];
            order[j] = (uint32_t)i;
        }
        for (uint64_t i = 0; i < lines; i++) {
            block[order[i] * WORDS] = order[i + 1 < lines ? i + 1 : 0] * WORDS;
        }
    }
    free(order);
    return block;
}

/* The least time of a step with its access, without the least time of one that has only the work. */
static double step_ns(const uint64_t *block, unsigned pairs) {
    double with = 1e9, without = 1e9;
    uint64_t at = 0;
    volatile uint64_t sink;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t begin = hx_host_ns();
        for (unsigned i = 0; i < STEPS; i++) {
            at = work(((const volatile uint64_t *)block)[at], pairs);
        }
        uint64_t middle = hx_host_ns(), other = at;
        for (unsigned i = 0; i < STEPS; i++) {
            other = work(other, pairs);
        }
        uint64_t end = hx_host_ns();
        sink = other;
        (void)sink;
        with = fmin(with, (double)(middle - begin) / STEPS);
        without = fmin(without, (double)(end - middle) / STEPS);
    }
    return fmax(with - without, 0);
}

int hx_access_ns(uint64_t bytes, unsigned between_ns, double *ns, struct dm_err *err) {
    uint64_t *block = cycle_make(bytes);
    if (!block) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the CPU measurements");
    }
    *ns = step_ns(block, pairs_of(between_ns));
    free(block);
    return 0;
}

int hx_access_costs(json_t *costs, struct dm_err *err) {
    static const struct {
        const char *name, *same;
        uint64_t bytes;
    } sizes[] = {{"work_access_512k_ns", NULL, UINT64_C(512) << 10},
                 {"work_access_4m_ns", NULL, UINT64_C(4) << 20},
                 {"work_access_32m_ns", NULL, UINT64_C(32) << 20},
                 {"work_access_256m_ns", "work_dram_access_ns", UINT64_C(256) << 20},
                 {"work_access_1g_ns", NULL, UINT64_C(1) << 30}};
    uint64_t free_bytes = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    double before = 0;
    for (size_t i = 0; i < DM_ARRAY_LEN(sizes); i++) {
        double ns = before;
        if (sizes[i].bytes < free_bytes / 2) { /* else as the largest that fits */
            DM_TRY(hx_access_ns(sizes[i].bytes, BETWEEN_NS, &ns, err));
        }
        /* A larger structure is no faster; what says so is noise. */
        before = ns > before ? ns : before;
        double value = (double)(uint64_t)(before * 100 + 0.5) / 100;
        json_object_set_new(costs, sizes[i].name, json_real(value));
        if (sizes[i].same) {
            json_object_set_new(costs, sizes[i].same, json_real(value));
        }
    }
    return 0;
}
