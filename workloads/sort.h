/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting of many 64-bit keys in place.
 */
#ifndef DM_WORKLOADS_SORT_H
#define DM_WORKLOADS_SORT_H

#include <stdint.h>

/* Ascending, in place, with a few kilobytes of stack: a radix sort from the highest byte down. */
void wl_sort_u64(uint64_t *keys, uint64_t count);

/* Drops repeated keys of a sorted array; returns how many are left. */
uint64_t wl_unique_u64(uint64_t *keys, uint64_t count);

#endif
