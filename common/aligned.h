/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that begins on a cache line of the host. What many clients have one of each is fetched from memory again and
 * again, and takes a line more if it begins within one.
 */
#ifndef DM_COMMON_ALIGNED_H
#define DM_COMMON_ALIGNED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/large.h"

enum { DM_HOST_LINE = 64, DM_POPULATED_FROM = 64 << 10 };

/* `count` elements of `size` bytes, all zero; free() releases them. NULL when out of memory. */
static inline void *dm_aligned_new(size_t count, size_t size) {
    size_t most = SIZE_MAX - DM_HOST_LINE;
    size_t bytes = size > 0 && count > most / size ? 0 : count * size;
    bytes = (bytes + DM_HOST_LINE - 1) / DM_HOST_LINE * DM_HOST_LINE;
    void *memory = bytes > 0 ? aligned_alloc(DM_HOST_LINE, bytes) : NULL;
    if (memory && bytes >= DM_POPULATED_FROM) {
        dm_pages_populate(memory, bytes);
    }
    return memory ? memset(memory, 0, bytes) : NULL;
}

#endif
