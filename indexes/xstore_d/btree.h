/* SPDX-License-Identifier: Apache-2.0
 *
 * The levels of the tree above the leaves.
 */
#ifndef DM_INDEXES_XSTORE_D_BTREE_H
#define DM_INDEXES_XSTORE_D_BTREE_H

#include "mn.h"

/* The node of `level` that covered key when it was read; it may have been split since. 0, or a failure. [waits] */
int xstore_descend(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, unsigned level, uint32_t *ref);

/* Inserts an entry for `child`, a node of `level` that begins at key, into the level above. [waits] */
int xstore_link(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, uint32_t child, unsigned level);

/* A node of a level in bulk load, and its lowest key. */
struct xstore_built {
    uint64_t low;
    uint32_t ref;
};

/* Builds the levels above the `count` leaves in `level`, overwriting `level`, and sets the root. [waits] */
int xstore_build(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_built *level, uint64_t count);

#endif
