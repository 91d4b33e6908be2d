/* SPDX-License-Identifier: Apache-2.0
 *
 * The event queue's heap: 4-ary, keyed by (time, sequence), so that events of one instant leave in the order they came.
 * Sixteen bytes an entry, four children in one cache line. Bodies are here because the simulator's inner loop is made
 * of them.
 */
#ifndef DM_COMMON_HEAP_H
#define DM_COMMON_HEAP_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/compiler.h"

struct dm_heap_entry {
    uint64_t time;
    uint64_t order; /* sequence in the upper 40 bits, the caller's tag in the lower 24 */
};

enum { DM_HEAP_TAG_BITS = 24 };

struct dm_heap {
    struct dm_heap_entry *entries; /* entries[3] is the root: children of i start at 4 * i - 8, cache-line aligned */
    uint32_t count, capacity;
    uint64_t sequence;
};

static inline bool dm_heap_before(struct dm_heap_entry a, struct dm_heap_entry b) {
    unsigned __int128 ka = (unsigned __int128)a.time << 64 | a.order;
    unsigned __int128 kb = (unsigned __int128)b.time << 64 | b.order;
    return ka < kb;
}

/* Makes the capacity at least `capacity` entries; false when out of memory. */
bool dm_heap_reserve(struct dm_heap *heap, uint32_t capacity);
void dm_heap_fini(struct dm_heap *heap);

enum { DM_HEAP_ROOT = 3 };

static inline bool dm_heap_empty(const struct dm_heap *heap) {
    return heap->count == 0;
}

static inline uint64_t dm_heap_next_time(const struct dm_heap *heap) {
    return heap->entries[DM_HEAP_ROOT].time;
}

static inline bool dm_heap_push(struct dm_heap *heap, uint64_t time, uint32_t tag) {
    if (dm_unlikely(heap->count + DM_HEAP_ROOT + 1 >= heap->capacity) &&
        !dm_heap_reserve(heap, heap->capacity ? heap->capacity * 2 : 1024)) {
        return false;
    }
    struct dm_heap_entry *entries = heap->entries;
    struct dm_heap_entry entry = {time, heap->sequence++ << DM_HEAP_TAG_BITS | tag};
    uint32_t at = DM_HEAP_ROOT + heap->count++;
    while (at > DM_HEAP_ROOT) {
        uint32_t parent = (at + 8) >> 2;
        if (dm_heap_before(entries[parent], entry)) {
            break;
        }
        entries[at] = entries[parent];
        at = parent;
    }
    entries[at] = entry;
    return true;
}

/* Removes the earliest entry; the heap must not be empty. */
static inline struct dm_heap_entry dm_heap_pop(struct dm_heap *heap) {
    assert(heap->count > 0);
    struct dm_heap_entry *entries = heap->entries;
    struct dm_heap_entry top = entries[DM_HEAP_ROOT];
    uint32_t end = DM_HEAP_ROOT + --heap->count;
    struct dm_heap_entry last = entries[end];
    uint32_t at = DM_HEAP_ROOT;
    for (;;) {
        uint32_t child = 4 * at - 8;
        if (child >= end) {
            break;
        }
        uint32_t least = child;
        uint32_t stop = child + 4 < end ? child + 4 : end;
        for (uint32_t next = child + 1; next < stop; next++) {
            least = dm_heap_before(entries[next], entries[least]) ? next : least;
        }
        if (!dm_heap_before(entries[least], last)) {
            break;
        }
        entries[at] = entries[least];
        at = least;
    }
    entries[at] = last;
    return top;
}

/* Removes the earliest entry and adds one, in a single pass: what dm_heap_pop and then dm_heap_push do. The heap must
 * not be empty. In a large heap it cannot be predicted which of four children is the earliest, so they are compared
 * without branches. In a small heap that would only make each step wait for the one before. */
enum { DM_HEAP_LARGE = 64 };

static inline void dm_heap_replace(struct dm_heap *heap, uint64_t time, uint32_t tag) {
    assert(heap->count > 0);
    struct dm_heap_entry *entries = heap->entries;
    struct dm_heap_entry entry = {time, heap->sequence++ << DM_HEAP_TAG_BITS | tag};
    uint32_t end = DM_HEAP_ROOT + heap->count, at = DM_HEAP_ROOT;
    if (heap->count > DM_HEAP_LARGE) {
        for (uint32_t child = 4 * at - 8; child + 4 <= end; child = 4 * at - 8) {
            uint32_t low = child + dm_heap_before(entries[child + 1], entries[child]);
            uint32_t high = child + 2 + dm_heap_before(entries[child + 3], entries[child + 2]);
            uint32_t least = low + (high - low) * dm_heap_before(entries[high], entries[low]);
            if (!dm_heap_before(entries[least], entry)) {
                entries[at] = entry;
                return;
            }
            entries[at] = entries[least];
            at = least;
        }
    }
    for (uint32_t child = 4 * at - 8; child < end; child = 4 * at - 8) {
        uint32_t least = child;
        uint32_t stop = child + 4 < end ? child + 4 : end;
        for (uint32_t next = child + 1; next < stop; next++) {
            least = dm_heap_before(entries[next], entries[least]) ? next : least;
        }
        if (!dm_heap_before(entries[least], entry)) {
            break;
        }
        entries[at] = entries[least];
        at = least;
    }
    entries[at] = entry;
}

static inline uint32_t dm_heap_tag(struct dm_heap_entry entry) {
    return (uint32_t)(entry.order & ((1u << DM_HEAP_TAG_BITS) - 1));
}

#endif
