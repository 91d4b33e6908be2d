/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges of keys, one a memory node, for indexes whose memory nodes run a tree of their own. Bulk load chooses the
 * ranges so that each memory node gets the same number of keys; without keys they are equal shares of the key space.
 * They are not moved later. The first keys of the ranges and a check of them are in the reserved page of memory node 0.
 */
#ifndef DM_INDEXES_SHARED_RANGES_H
#define DM_INDEXES_SHARED_RANGES_H

#include "indexes/index.h"

/* What the reserved page has at `offset`, which the index chooses. */
enum { IX_RANGES_WORDS = DM_MNS_MAX + 1 };

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

/* Publishes equal shares of the key space. [waits] */
int ix_ranges_format(struct dm_ctx *ctx, uint64_t offset, unsigned nodes);

/* Reads the ranges; `words` is IX_RANGES_WORDS of device memory. 0, DM_ERR_CORRUPT, or a failure. [waits] */
int ix_ranges_read(struct dm_ctx *ctx, uint64_t offset, uint64_t *words, struct ix_ranges *ranges);

/* The requests of a bulk load: `load` brings sorted pairs, as struct ix_ranges_pairs with the keys and then the values
 * behind it; `build` is the last request to a memory node, which may have got no pairs. */
struct ix_ranges_pairs {
    uint32_t count, pad;
};
struct ix_ranges_methods {
    unsigned load, build;
};

/* Chooses the ranges, publishes them, and sends every memory node its pairs. [waits] */
int ix_ranges_load(struct dm_ctx *ctx, uint64_t offset, const struct ix_shape *shape, const struct ix_pairs *pairs,
                   struct ix_ranges_methods methods);

#endif
