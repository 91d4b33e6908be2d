/* SPDX-License-Identifier: Apache-2.0
 *
 * Storage of the event heap; its operations are in the header.
 */
#include "common/heap.h"

#include <string.h>

#include "common/aligned.h"

bool dm_heap_reserve(struct dm_heap *heap, uint32_t capacity) {
    if (capacity <= heap->capacity) {
        return true;
    }
    struct dm_heap_entry *entries = dm_aligned_new(capacity, sizeof(*entries));
    if (!entries) {
        return false;
    }
    if (heap->count) {
        memcpy(entries, heap->entries, (DM_HEAP_ROOT + heap->count) * sizeof(*entries));
    }
    free(heap->entries);
    heap->entries = entries;
    heap->capacity = capacity;
    return true;
}

void dm_heap_fini(struct dm_heap *heap) {
    free(heap->entries);
    *heap = (struct dm_heap){0};
}
