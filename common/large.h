/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a client's own for structures that are accessed at random, such as caches.
 */
#ifndef DM_COMMON_LARGE_H
#define DM_COMMON_LARGE_H

#include <stdint.h>

/* Zeroed memory, with large pages from 2 MB on where the system has them: a random access then misses the processor's
 * translation of addresses less often. Pages are used as they are first touched. NULL if there is no memory. */
void *dm_large_alloc(uint64_t bytes);

/* Frees what dm_large_alloc returned for the same number of bytes; NULL is allowed. */
void dm_large_free(void *memory, uint64_t bytes);

#endif
