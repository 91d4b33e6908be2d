/* SPDX-License-Identifier: Apache-2.0
 *
 * What one dependent access to a local structure costs on this host, by the size of the structure: a walk along a
 * random cycle through all lines of a block. The walk continues from round to round, so that no round finds the lines
 * of the one before in the processor's cache unless the block fits.
 */
#include <stdlib.h>
#include <unistd.h>

#include <sys/mman.h>

#include "common/compiler.h"
#include "harness/base/progress.h"
#include "harness/lab/validate.h"

enum { ROUNDS = 9, STEPS = 50000, HUGE_PAGE_BYTES = 2 << 20, WORDS = DM_LINE / sizeof(uint64_t) };

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

static double step_ns(const uint64_t *block) {
    double least = 1e9;
    uint64_t at = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t begin = hx_host_ns();
        for (unsigned i = 0; i < STEPS; i++) {
            at = ((const volatile uint64_t *)block)[at];
        }
        double ns = (double)(hx_host_ns() - begin) / STEPS;
        least = ns < least ? ns : least;
    }
    return least;
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
            uint64_t *block = cycle_make(sizes[i].bytes);
            if (!block) {
                return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the CPU measurements");
            }
            ns = step_ns(block);
            free(block);
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
