/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a client's own for structures that are accessed at random, such as caches.
 */
#ifndef DM_COMMON_LARGE_H
#define DM_COMMON_LARGE_H

#include <stdbool.h>
#include <stdint.h>

#define DM_LARGE_PAGE (UINT64_C(2) << 20)

/* Zeroed memory, with large pages from 2 MB on where the system has them: a random access then misses the processor's
 * translation of addresses less often. Pages are used as they are first touched. NULL if there is no memory. */
void *dm_large_alloc(uint64_t bytes);

/* Gives the heap large pages for its next 256 MB, used as they are first touched, where the C library and the system
 * can. What a thousand clients have of their own is some ten thousand small pages: that many page faults, each of which
 * takes microseconds on a virtual machine, and as many translations of addresses. To be called once, first of all.
 * False with another C library or a sanitizer's heap, or if there is no such memory: the heap has small pages then. */
bool dm_large_heap(void);

/* Has the system map all pages of a range now, in one call, to be written; what this process shares with another since
 * fork is copied. A fault for each page, at its first write, takes longer, above all on a virtual machine. A hint. */
void dm_pages_populate(void *memory, uint64_t bytes);

/* Bytes that programs could be given without swapping, page cache included; 0 if the system does not say. */
uint64_t dm_memory_available(void);

/* For a process that is a copy, made by fork: gives it large pages of its own for what dm_large_alloc returned for so
 * many bytes, or for other memory of such pages. Otherwise the system copies each small page when it is first written,
 * by a fault, which on a virtual machine takes longer than all else, and a large page is many small ones from then on.
 * False if less than an eighth of the host's memory is available, or it has no large page: then some pages may have
 * been copied. */
bool dm_large_own(void *memory, uint64_t bytes);

/* Frees what dm_large_alloc returned for the same number of bytes; NULL is allowed. */
void dm_large_free(void *memory, uint64_t bytes);

#endif
