/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads all items of the memory pool, without any index, through the lists of slabs of each memory node.
 */
#ifndef DM_INDEXES_HSTORE_POOL_H
#define DM_INDEXES_HSTORE_POOL_H

#include "hstore.h"

/* Called for the space of each item that was ever used; `item` has its bytes. Returns 0 to continue. [waits] */
typedef int (*hstore_pool_visit)(struct dm_ctx *ctx, void *arg, uint64_t packed, const void *item);

/* Buffers for reading the pool; released with the context. */
struct hstore_pool_walk {
    const struct hstore_geometry *geometry;
    unsigned mns;
    char *piece; /* device memory */
    uint32_t piece_items;
};

/* 0 or DM_ERR_NO_MEMORY. */
int hstore_pool_open(struct dm_ctx *ctx, struct hstore_pool_walk *walk, const struct hstore_geometry *geometry,
                     unsigned mns);

/* 0, or the first failure of a verb or of `visit`. [waits] */
int hstore_pool_visit_all(struct dm_ctx *ctx, const struct hstore_pool_walk *walk, hstore_pool_visit visit, void *arg);

#endif
