/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting the entries of a leaf for a scan or a split.
 */
#ifndef DM_INDEXES_SHARED_SORT_H
#define DM_INDEXES_SHARED_SORT_H

#include <stdint.h>

#include "transport/dm.h"

/* Sorts `count` keys in place, ascending, and their positions along with them. */
void ix_sort(uint64_t *keys, uint16_t *positions, unsigned count);

/* Charges looking at `looked` entries of a leaf, and collecting, sorting and copying `sorted` of them. */
void ix_sort_charge(struct dm_ctx *ctx, unsigned looked, unsigned sorted);

#endif
