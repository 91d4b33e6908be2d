/* SPDX-License-Identifier: Apache-2.0
 *
 * Address space for a node's memory.
 */
#include <sys/mman.h>

#include "transport/core/core.h"

/* A chunk is filled from its beginning to its end if the node has this much already: pages of small indexes may stay
 * empty, and larger chunks are what a user asked for. */
#define FILLED_FROM (UINT64_C(8) << 20)
#define FILLED_MOST (UINT64_C(1) << 20)

int dm_mapping_open(struct dm_mapping *mapping, uint64_t bytes) {
    size_t mapped = (size_t)(bytes + DM_LARGE_PAGE);
    void *map = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return DM_ERR_NO_MEMORY;
    }
    uintptr_t aligned = ((uintptr_t)map + DM_LARGE_PAGE - 1) & ~(uintptr_t)(DM_LARGE_PAGE - 1);
    *mapping = (struct dm_mapping){.base = (unsigned char *)aligned, .map = map, .map_bytes = mapped};
    return 0;
}

void dm_mapping_close(struct dm_mapping *mapping) {
    if (mapping->map) {
        munmap(mapping->map, mapping->map_bytes);
    }
}

bool dm_mapping_own(const struct dm_mapping *mapping, uint64_t number) {
    unsigned char *part = mapping->base + number * DM_LARGE_PAGE;
    bool is_whole = part + DM_LARGE_PAGE <= (unsigned char *)mapping->map + mapping->map_bytes;
    return !is_whole || dm_large_own(part, DM_LARGE_PAGE);
}

void dm_mapping_expect_bulk(const struct dm_mapping *mapping, uint64_t offset, uint64_t bytes) {
    bool is_filled = offset >= FILLED_FROM && bytes <= FILLED_MOST;
    uint64_t mapped = (uint64_t)((unsigned char *)mapping->map + mapping->map_bytes - mapping->base);
    uint64_t around = is_filled ? DM_LARGE_PAGE - 1 : 0; /* the whole parts that it lies in, else those within it */
    uint64_t from = (offset + DM_LARGE_PAGE - 1 - around) & ~(DM_LARGE_PAGE - 1);
    uint64_t to = offset + bytes + around;
    to = (to < mapped ? to : mapped) & ~(DM_LARGE_PAGE - 1);
    if (from < to) {
        /* Only a hint: fewer address-translation misses on random reads. */
        (void)madvise(mapping->base + from, to - from, MADV_HUGEPAGE);
    }
    if (is_filled) {
        dm_pages_populate(mapping->base + offset, bytes);
    }
}
