/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts many 64-bit keys in place.
 */
#ifndef DM_WORKLOADS_SORT_H
#define DM_WORKLOADS_SORT_H

#include <stdint.h>

/* Sorts ascending, in place, by a radix sort from the highest byte down that needs a few kilobytes of stack. */
void wl_sort_u64(uint64_t *keys, uint64_t count);

/* Removes the repeated keys of a sorted array; returns how many keys remain. */
uint64_t wl_unique_u64(uint64_t *keys, uint64_t count);

#endif
