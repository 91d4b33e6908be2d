/* SPDX-License-Identifier: Apache-2.0
 *
 * A memory node's server, and the tree as its CPU works on it. Readers take no locks; a node changes under the mutex of
 * its stripe, of which a context holds one at a time.
 */
#ifndef DM_INDEXES_CELL_MN_H
#define DM_INDEXES_CELL_MN_H

#include "indexes/shared/served.h"
#include "layout.h"
#include "params.h"

enum { CELL_STRIPES = 256 };

struct cell_loader;

struct cell_server {
    const struct cell_params *params;
    struct cell_layout layout;
    struct dm_fabric *fabric;
    unsigned node;
    struct dm_mutex stripes[CELL_STRIPES]; /* by hash of the ref */
    struct dm_mutex root_lock;

    struct ix_blocks blocks; /* of values that are not in leaves */

    struct cell_loader *loader;
};

struct cell_node {
    uint32_t ref;
    uint64_t words[CELL_NODE_WORDS_MAX];
};

static inline struct dm_mutex *cell_stripe(struct cell_server *server, uint32_t ref) {
    return &server->stripes[dm_mix64(ref) % CELL_STRIPES];
}
static inline void cell_node_unlock(struct cell_server *server, struct dm_ctx *ctx, const struct cell_node *node) {
    dm_mutex_unlock(ctx, cell_stripe(server, node->ref));
}

/* ---- btree.c ----------------------------------------------------------------------------------------------------- */

int cell_node_alloc(struct cell_server *server, struct dm_ctx *ctx, unsigned level, uint32_t *ref); /* [waits] */
void cell_node_free(struct cell_server *server, struct dm_ctx *ctx, unsigned level, uint32_t ref);

/* Stores the used words of a node with a new check. */
void cell_node_store(struct cell_server *server, struct dm_ctx *ctx, struct cell_node *node);

void cell_root_store(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned level);

/* Finds the node of a level that covers key, locks its stripe and loads it. 0 with the stripe locked; CELL_ABOVE_ROOT
 * if the tree is lower; or a failure. [waits] */
enum { CELL_ABOVE_ROOT = 2000 };
int cell_node_lock(struct cell_server *server, struct dm_ctx *ctx, uint64_t key, unsigned level,
                   struct cell_node *node);

/* Inserts an entry of the form's words behind the last smaller key; the node must have space for it. */
void cell_entry_insert(const struct cell_form *form, uint64_t *words, uint64_t key, const uint64_t *entry);
void cell_entry_remove(const struct cell_form *form, uint64_t *words, unsigned position);

/* Splits the locked, full node and inserts the entry; `right` is the memory of a node of this level. Returns the low
 * fence of the right node, whose entry in the parent is the caller's part. */
uint64_t cell_node_split(struct cell_server *server, struct dm_ctx *ctx, struct cell_node *node, uint32_t right,
                         uint64_t key, const uint64_t *entry);

/* Inserts the entry of `child` into the level above `level`, and so on up while nodes split. Without memory for a
 * split the child has no entry in a parent and is reached by its left neighbour. 0 or a failure. [waits] */
int cell_link(struct cell_server *server, struct dm_ctx *ctx, uint64_t key, uint32_t child, unsigned level);

/* ---- block.c ----------------------------------------------------------------------------------------------------- */

/* With `check` the block has no valid check yet, so readers find no value in it until reveal has written this one. */
void cell_block_write(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref, uint64_t key, const void *value,
                      uint64_t *check);
void cell_block_reveal(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref, uint64_t check);
void cell_block_read(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref, void *value);

/* ---- load.c, server.c -------------------------------------------------------------------------------------------- */

int cell_on_format(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);
int cell_on_load(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);
int cell_on_build(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);
void cell_loader_free(struct cell_loader *loader);

int cell_serve(void *server, struct dm_fabric *fabric, unsigned node, const void *params, const struct ix_shape *shape,
               struct dm_err *err);
void cell_unserve(void *server);

#endif
