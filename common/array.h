/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays that grow by one item at a time.
 */
#ifndef DM_COMMON_ARRAY_H
#define DM_COMMON_ARRAY_H

#include <stdint.h>
#include <stdlib.h>

/* Makes space for one more item in an array of `count` items, which has the capacity *capacity. Returns the array,
 * which may have moved, or NULL when out of memory, with nothing changed. */
static inline void *dm_array_grow(void *items, uint64_t count, uint64_t *capacity, size_t item_bytes) {
    if (count < *capacity) {
        return items;
    }
    uint64_t wanted = *capacity == 0 ? 64 : 2 * *capacity;
    void *grown = realloc(items, wanted * item_bytes);
    *capacity = grown ? wanted : *capacity;
    return grown;
}

#endif
