/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges of keys, one a memory node, for indexes whose memory nodes run a tree of their own. Bulk load chooses the
 * ranges so that each memory node gets the same number of keys; without keys they are equal shares of the key space.
 * They are not moved later. The first keys of the ranges and a check of them are in the reserved page of memory node 0.
 */
#ifndef DM_INDEXES_SHARED_RANGES_H
#define DM_INDEXES_SHARED_RANGES_H

#include <string.h>

#include "indexes/index.h"

/* What the reserved page of memory node 0 has at the index's offset. */
enum { IX_RANGES_WORDS = DM_MNS_MAX + 1 };

/* Where an index has its ranges, and the methods of its memory nodes: `format` makes an empty tree; `load` brings
 * sorted pairs; `build` is the last request of a bulk load to a memory node, which may have got no pairs. */
struct ix_ranges_use {
    uint64_t offset;
    unsigned format, load, build;
};

/* The first key of every memory node; UINT64_MAX behind the last node. */
struct ix_ranges {
    uint64_t borders[DM_MNS_MAX];
};

/* The node whose range has the key. */
static inline unsigned ix_ranges_node(const struct ix_ranges *ranges, unsigned nodes, uint64_t key) {
    for (unsigned node = nodes - 1; node > 0; node--) {
        if (ranges->borders[node] <= key) {
            return node;
        }
    }
    return 0;
}

/* Publishes equal shares of the key space, and calls `format` of every memory node. [waits] */
int ix_ranges_format(struct dm_ctx *ctx, const struct ix_ranges_use *use, unsigned nodes);

/* Reads the ranges; `words` is IX_RANGES_WORDS of device memory. 0, DM_ERR_CORRUPT, or a failure. [waits] */
int ix_ranges_read(struct dm_ctx *ctx, uint64_t offset, uint64_t *words, struct ix_ranges *ranges);

/* Chooses the ranges, publishes them, and sends every memory node its pairs. [waits] */
int ix_ranges_load(struct dm_ctx *ctx, const struct ix_ranges_use *use, const struct ix_shape *shape,
                   const struct ix_pairs *pairs);

/* The pairs of a request to `load`; they point into the request. */
struct ix_ranges_pairs {
    uint32_t count, value_bytes;
    const char *keys, *values;
};

/* False: a request that ix_ranges_load does not send. */
bool ix_ranges_received(const void *request, uint32_t request_bytes, uint32_t value_bytes,
                        struct ix_ranges_pairs *pairs);

static inline uint64_t ix_ranges_key(const struct ix_ranges_pairs *pairs, uint32_t number) {
    uint64_t key;
    memcpy(&key, pairs->keys + sizeof(key) * number, sizeof(key));
    return key;
}

static inline const void *ix_ranges_value(const struct ix_ranges_pairs *pairs, uint32_t number) {
    return pairs->values + (size_t)pairs->value_bytes * number;
}

#endif
