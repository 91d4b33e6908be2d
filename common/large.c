/* SPDX-License-Identifier: Apache-2.0
 *
 * Large blocks are mapped, since the heap's need not begin at a large page; what lies before and behind is unmapped.
 */
#include "common/large.h"

#include <stdlib.h>

#include <sys/mman.h>

#define LARGE_PAGE (UINT64_C(2) << 20)

static uint64_t rounded(uint64_t bytes) {
    return (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
}

void *dm_large_alloc(uint64_t bytes) {
    if (bytes < LARGE_PAGE) {
        return calloc(1, bytes > 0 ? bytes : 1);
    }
    uint64_t wanted = rounded(bytes);
    if (wanted < bytes || wanted + LARGE_PAGE < wanted) {
        return NULL;
    }
    char *map =
        mmap(NULL, wanted + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return NULL;
    }
    uint64_t before = (LARGE_PAGE - (uintptr_t)map % LARGE_PAGE) % LARGE_PAGE, behind = LARGE_PAGE - before;
    if (before > 0) {
        munmap(map, before);
    }
    munmap(map + before + wanted, behind);
    madvise(map + before, wanted, MADV_HUGEPAGE);
    return map + before;
}

void dm_large_free(void *memory, uint64_t bytes) {
    if (bytes < LARGE_PAGE) {
        free(memory);
    } else if (memory) {
        munmap(memory, rounded(bytes));
    }
}
