/* SPDX-License-Identifier: Apache-2.0
 *
 * How full nodes are. What bulk load does and what an index says that it needs of memory have to agree to the entry:
 * one in thirty is a gigabyte of 10^9 keys.
 */
#ifndef DM_INDEXES_SHARED_FILL_H
#define DM_INDEXES_SHARED_FILL_H

#include <stdint.h>

#include "indexes/index.h"

/* Entries of a node with space for `capacity` of which the share `fill` is used: `least` at least. */
static inline uint32_t ix_filled(double fill, uint32_t capacity, uint32_t least) {
    uint32_t entries = (uint32_t)(fill * capacity);
    return entries < least ? least : entries;
}

/* Nodes that so many entries need at this fill. */
static inline uint64_t ix_nodes_for(uint64_t entries, double fill, uint32_t capacity, uint32_t least) {
    uint32_t each = ix_filled(fill, capacity, least);
    return (entries + each - 1) / each;
}

/* Bytes of a memory node that a piece of `bytes`, more than 0, takes: with its part of the end of a chunk, in which no
 * other fits. */
static inline double ix_piece_bytes(const struct ix_shape *shape, uint64_t bytes) {
    uint64_t pieces = shape->chunk_bytes / bytes;
    return pieces > 0 ? (double)shape->chunk_bytes / (double)pieces : (double)bytes;
}

#endif
