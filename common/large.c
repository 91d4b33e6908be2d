/* SPDX-License-Identifier: Apache-2.0
 *
 * Large blocks are mapped, since the heap's need not begin at a large page; what lies before and behind is unmapped.
 */
#include "common/large.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/compiler.h"

#if defined(__GLIBC__) && !DM_ASAN && !DM_TSAN
#include <malloc.h>
#endif

static uint64_t rounded(uint64_t bytes) {
    return (bytes + DM_LARGE_PAGE - 1) / DM_LARGE_PAGE * DM_LARGE_PAGE;
}

void *dm_large_alloc(uint64_t bytes) {
    if (bytes < DM_LARGE_PAGE) {
        return calloc(1, bytes > 0 ? bytes : 1);
    }
    uint64_t wanted = rounded(bytes);
    if (wanted < bytes || wanted + DM_LARGE_PAGE < wanted) {
        return NULL;
    }
    char *map =
        mmap(NULL, wanted + DM_LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return NULL;
    }
    uint64_t before = (DM_LARGE_PAGE - (uintptr_t)map % DM_LARGE_PAGE) % DM_LARGE_PAGE, behind = DM_LARGE_PAGE - before;
    if (before > 0) {
        munmap(map, before);
    }
    munmap(map + before + wanted, behind);
    madvise(map + before, wanted, MADV_HUGEPAGE);
    return map + before;
}

#ifdef M_TOP_PAD
/* The library's own tunable, glibc.malloc.hugetlb, must be in the environment before the program begins. */
bool dm_large_heap(void) {
    enum { PAD = 256 << 20, LATER_PAD = 1 << 20, FIRST = 100 << 10, FIRST_COUNT = 2 };
    void *volatile first[FIRST_COUNT]; /* more than the heap has now, but too small for mappings */
    mallopt(M_TRIM_THRESHOLD, 2 * PAD);
    mallopt(M_TOP_PAD, PAD);
    for (int i = 0; i < FIRST_COUNT; i++) {
        first[i] = malloc(FIRST);
    }
    mallopt(M_TOP_PAD, LATER_PAD);
    uintptr_t start = rounded((uintptr_t)first[FIRST_COUNT - 1]);
    uintptr_t end = (uintptr_t)sbrk(0) / DM_LARGE_PAGE * DM_LARGE_PAGE;
    for (int i = 0; i < FIRST_COUNT; i++) {
        free(first[i]);
    }
    return start < end && end - start <= PAD && madvise((void *)start, end - start, MADV_HUGEPAGE) == 0;
}
#else
bool dm_large_heap(void) {
    return false;
}
#endif

#ifdef MADV_POPULATE_WRITE
enum { POPULATE_READ = MADV_POPULATE_READ, POPULATE_WRITE = MADV_POPULATE_WRITE };
#else
enum { POPULATE_READ = MADV_NORMAL, POPULATE_WRITE = MADV_NORMAL }; /* without effect */
#endif

static void populate(void *memory, uint64_t bytes, int advice) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)memory & ~(page - 1);
    uintptr_t to = ((uintptr_t)memory + bytes + page - 1) & ~(page - 1);
    (void)madvise((void *)from, to - from, advice);
}

void dm_pages_populate(void *memory, uint64_t bytes) {
    populate(memory, bytes, POPULATE_WRITE);
}

uint64_t dm_memory_available(void) {
    char line[128];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && kib == 0 && fgets(line, sizeof(line), file)) {
        (void)sscanf(line, "MemAvailable: %" SCNu64, &kib);
    }
    if (file) {
        fclose(file);
    }
    return kib * 1024;
}

static bool is_memory_scarce(void) {
    uint64_t available = dm_memory_available();
    return available > 0 && available < (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 8;
}

static bool page_own(char *page) {
    char *map = mmap(NULL, 2 * DM_LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        return false;
    }
    size_t before = -(uintptr_t)map & (DM_LARGE_PAGE - 1);
    char *copy = map + before;
    (void)madvise(copy, DM_LARGE_PAGE, MADV_HUGEPAGE);
    populate(page, DM_LARGE_PAGE, POPULATE_READ); /* parts that were never used have no pages yet */
    memcpy(copy, page, DM_LARGE_PAGE);
    bool is_moved = mremap(copy, DM_LARGE_PAGE, DM_LARGE_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page) != MAP_FAILED;
    munmap(map, is_moved ? before : 2 * DM_LARGE_PAGE);
    if (is_moved) {
        munmap(copy + DM_LARGE_PAGE, DM_LARGE_PAGE - before);
    }
    return is_moved;
}

bool dm_large_own(void *memory, uint64_t bytes) {
    if (bytes < DM_LARGE_PAGE) {
        return true;
    }
    bool is_own = !is_memory_scarce();
    for (uint64_t at = 0; is_own && at < bytes; at += DM_LARGE_PAGE) {
        is_own = page_own((char *)memory + at);
    }
    return is_own;
}

void dm_large_free(void *memory, uint64_t bytes) {
    if (bytes < DM_LARGE_PAGE) {
        free(memory);
    } else if (memory) {
        munmap(memory, rounded(bytes));
    }
}
