/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays that grow by one item at a time.
 */
#ifndef DM_COMMON_ARRAY_H
#define DM_COMMON_ARRAY_H

#include <stdint.h>
#include <stdlib.h>

/* Makes sure of room behind the `count` items of an array that has room for *room. Returns the array, which may have
 * moved, or NULL when out of memory, with nothing changed. */
static inline void *dm_array_grow(void *items, uint64_t count, uint64_t *room, size_t item_bytes) {
    if (count < *room) {
        return items;
    }
    uint64_t wanted = *room == 0 ? 64 : 2 * *room;
    void *grown = realloc(items, wanted * item_bytes);
    *room = grown ? wanted : *room;
    return grown;
}

#endif
