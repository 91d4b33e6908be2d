/* SPDX-License-Identifier: Apache-2.0
 *
 * The empty tree and bulk load. The memory node's processor appends the sorted pairs that a compute node sends to the
 * last leaf; a node that is full is stored, and its right neighbour is entered into the last node of the level above.
 */
#include <stdlib.h>

#include "indexes/shared/fill.h"
#include "indexes/shared/server_tree_node.h"

/* ---- on a memory node -------------------------------------------------------------------------------------------- */

enum { LEVELS = 24 };

/* The last node of every level, not stored yet. */
struct ix_server_loader {
    struct ix_server_node nodes[LEVELS];
    uint32_t firsts[LEVELS]; /* the first node of every level */
    unsigned top;
};

int ix_server_on_format(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                        uint32_t *resp_len) {
    struct ix_server_op op = {.server = arg, .ctx = ctx};
    struct ix_server_node leaf;
    uint32_t ref;
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    DM_TRY(ix_server_node_alloc(&op, 0, &ref));
    ix_server_node_init(&leaf, ref, 0);
    ix_server_node_store(&op, &leaf);
    ix_server_root_set(&op, ref, 0);
    return 0;
}

/* Stores the last node of the level, and makes its right neighbour, from key on, the last one. */
static int node_next(struct ix_server_op *op, unsigned level, uint64_t key) {
    struct ix_server_node *node = &op->server->loader->nodes[level];
    uint32_t ref;
    DM_TRY(ix_server_node_alloc(op, level, &ref));
    node->words[IX_SERVER_HEAD] = ix_server_head(ix_server_count(node), level, ref);
    node->words[IX_SERVER_HIGH] = key;
    ix_server_node_store(op, node);
    ix_server_node_init(node, ref, level);
    return 0;
}

/* Makes the level above the top, with the first node of the top as its only child. */
static int level_open(struct ix_server_op *op) {
    struct ix_server_loader *loader = op->server->loader;
    uint32_t ref;
    if (loader->top + 1 == LEVELS) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(ix_server_node_alloc(op, loader->top + 1, &ref));
    struct ix_server_node *node = &loader->nodes[++loader->top];
    ix_server_node_init(node, ref, loader->top);
    node->words[IX_SERVER_HEAD] = ix_server_head(1, loader->top, 0);
    ix_server_children(&op->server->layout, node)[0] = loader->firsts[loader->top - 1];
    loader->firsts[loader->top] = ref;
    return 0;
}

/* Enters the last leaf, which begins at key, into the levels above. */
static int leaf_enter(struct ix_server_op *op, uint64_t key) {
    struct ix_server_loader *loader = op->server->loader;
    const struct ix_server_layout *layout = &op->server->layout;
    unsigned each = ix_filled(op->server->params->fill, layout->fanout, 2);
    bool is_new = true;
    for (unsigned level = 1; is_new; level++) {
        if (level > loader->top) {
            DM_TRY(level_open(op));
        }
        struct ix_server_node *node = &loader->nodes[level];
        uint32_t child = loader->nodes[level - 1].ref;
        is_new = ix_server_count(node) == each;
        if (!is_new) {
            ix_server_inner_enter(layout, node, key, child);
            break;
        }
        DM_TRY(node_next(op, level, key));
        node->words[IX_SERVER_HEAD] = ix_server_head(1, level, 0);
        ix_server_keys(node)[0] = key;
        ix_server_children(layout, node)[0] = child;
    }
    return 0;
}

static int pair_append(struct ix_server_op *op, uint64_t key, const void *value) {
    struct ix_server_node *leaf = &op->server->loader->nodes[0];
    uint64_t stored[IX_SERVER_INLINE_MAX / 8];
    DM_TRY(ix_server_row_make(op, key, value, stored));
    if (ix_server_count(leaf) == ix_filled(op->server->params->fill, op->server->layout.slots, 1)) {
        DM_TRY(node_next(op, 0, key));
        DM_TRY(leaf_enter(op, key));
    }
    ix_server_leaf_enter(&op->server->layout, leaf, ix_server_count(leaf), key, stored);
    return 0;
}

/* The first leaf is the leaf of the empty tree. */
static int loader_open(struct ix_server_op *op) {
    struct ix_server_loader *loader = calloc(1, sizeof(*loader));
    if (!loader) {
        return DM_ERR_NO_MEMORY;
    }
    loader->firsts[0] = (uint32_t)ix_server_root(op);
    ix_server_node_init(&loader->nodes[0], loader->firsts[0], 0);
    op->server->loader = loader;
    return 0;
}

int ix_server_on_load(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                      uint32_t *resp_len) {
    struct ix_server_op op = {.server = arg, .ctx = ctx};
    struct ix_ranges_pairs pairs;
    (void)resp;
    *resp_len = 0;
    if (!ix_ranges_received(req, req_len, op.server->layout.value_bytes, &pairs)) {
        return DM_ERR_INVALID;
    }
    if (!op.server->loader) {
        DM_TRY(loader_open(&op));
    }
    for (uint32_t i = 0; i < pairs.count; i++) {
        DM_TRY(pair_append(&op, ix_ranges_key(&pairs, i), ix_ranges_value(&pairs, i)));
    }
    return 0;
}

int ix_server_on_build(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                       uint32_t *resp_len) {
    struct ix_server_op op = {.server = arg, .ctx = ctx};
    struct ix_server_loader *loader = op.server->loader;
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    if (!loader) {
        return 0; /* this memory node got no pairs */
    }
    for (unsigned level = 0; level <= loader->top; level++) {
        ix_server_node_store(&op, &loader->nodes[level]);
    }
    ix_server_root_set(&op, loader->nodes[loader->top].ref, loader->top);
    free(loader);
    op.server->loader = NULL;
    return 0;
}

/* ---- on a compute node ------------------------------------------------------------------------------------------- */

static const struct ix_ranges_use ranges = {IX_SERVER_BORDERS_OFFSET, IX_SERVER_FORMAT, IX_SERVER_LOAD,
                                            IX_SERVER_BUILD};

int ix_server_format(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err) {
    (void)params;
    (void)err;
    return ix_ranges_format(ctx, &ranges, shape->topology->mns);
}

int ix_server_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    const struct ix_server_cn *cn = handle;
    (void)err;
    return ix_ranges_load(ctx, &ranges, cn->shape, pairs);
}
