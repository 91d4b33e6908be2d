/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of nodes in real time, and the accesses of their own processors: atomic per word, as the contract says.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "transport/realtime/realtime.h"
#include "transport/realtime/words.h"

#define RT_HUGE_PAGE (UINT64_C(1) << 21)

/* Aligned so that bulk data can lie on huge pages. */
int rt_memory_map(struct rt_memory *memory, uint64_t bytes) {
    size_t mapped = (size_t)(bytes + RT_HUGE_PAGE);
    void *map = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return DM_ERR_NO_MEMORY;
    }
    uintptr_t aligned = ((uintptr_t)map + RT_HUGE_PAGE - 1) & ~(uintptr_t)(RT_HUGE_PAGE - 1);
    memory->map = map;
    memory->map_bytes = mapped;
    memory->base = (unsigned char *)aligned;
    return 0;
}

void rt_memory_unmap(struct rt_memory *memory) {
    if (memory->map) {
        munmap(memory->map, memory->map_bytes);
    }
}

void rt_memory_expect_bulk(const struct rt_memory *memory, uint64_t offset, uint64_t bytes) {
    uint64_t from = (offset + RT_HUGE_PAGE - 1) & ~(RT_HUGE_PAGE - 1);
    uint64_t to = (offset + bytes) & ~(RT_HUGE_PAGE - 1);
    if (from < to) {
        /* Only a hint: fewer address-translation misses on random reads. */
        (void)madvise(memory->base + from, to - from, MADV_HUGEPAGE);
    }
}

void rt_bytes_load(const unsigned char *at, unsigned char *out, uint32_t len) {
    rt_load_any(at, out, len);
}

void rt_bytes_store(unsigned char *at, const unsigned char *data, uint32_t len) {
    rt_store_any(at, data, len);
}

uint64_t rt_word_cas(unsigned char *at, uint64_t expect, uint64_t desired) {
    atomic_compare_exchange_strong((_Atomic uint64_t *)at, &expect, desired);
    return expect;
}
