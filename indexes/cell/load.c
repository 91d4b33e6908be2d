/* SPDX-License-Identifier: Apache-2.0
 *
 * The empty tree and bulk load: a compute node sends sorted pairs to the memory node of their range, whose CPU builds
 * the leaves, and then the levels above them.
 */
#include <stdlib.h>

#include "client.h"
#include "common/array.h"
#include "indexes/shared/fill.h"
#include "mn.h"

/* A node that was built, as its parent's entry. */
struct built {
    uint64_t low;
    uint32_t ref;
};

struct cell_loader {
    struct cell_node leaf; /* the current leaf, not stored yet */
    unsigned each;         /* keys that a leaf gets */
    struct built *built;
    uint64_t leaves, capacity;
};

void cell_loader_free(struct cell_loader *loader) {
    if (loader) {
        free(loader->built);
        free(loader);
    }
}

int cell_on_format(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct cell_server *server = arg;
    struct cell_node leaf = {.ref = 0};
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    DM_TRY(cell_node_alloc(server, ctx, 0, &leaf.ref));
    leaf.words[CELL_HIGH] = UINT64_MAX;
    cell_node_store(server, ctx, &leaf);
    cell_root_store(server, ctx, leaf.ref, 0);
    return 0;
}

static int leaf_begin(struct cell_loader *loader, uint32_t ref, uint64_t low) {
    struct built *built = dm_array_grow(loader->built, loader->leaves, &loader->capacity, sizeof(*built));
    if (!built) {
        return DM_ERR_NO_MEMORY;
    }
    loader->built = built;
    built[loader->leaves++] = (struct built){low, ref};
    loader->leaf = (struct cell_node){.ref = ref};
    loader->leaf.words[CELL_LOW] = low;
    return 0;
}

/* The first leaf is that of the empty tree. */
static int loader_open(struct cell_server *server, struct dm_ctx *ctx) {
    struct cell_loader *loader = calloc(1, sizeof(*loader));
    if (!loader) {
        return DM_ERR_NO_MEMORY;
    }
    server->loader = loader;
    loader->each = ix_filled(server->params->fill, server->layout.leaf.entries, 1);
    DM_TRY(cell_node_lock(server, ctx, 0, 0, &loader->leaf));
    cell_node_unlock(server, ctx, &loader->leaf);
    return leaf_begin(loader, loader->leaf.ref, 0);
}

static void node_finish(struct cell_server *server, struct dm_ctx *ctx, struct cell_node *node, uint32_t right,
                        uint64_t high) {
    node->words[CELL_HEAD] = cell_head_word(cell_count(node->words), cell_level(node->words), right);
    node->words[CELL_HIGH] = high;
    cell_node_store(server, ctx, node);
}

static int pair_append(struct cell_server *server, struct dm_ctx *ctx, uint64_t key, const void *value) {
    struct cell_loader *loader = server->loader;
    uint64_t entry[CELL_INLINE_MAX / 8] = {0};
    if (cell_count(loader->leaf.words) == loader->each) {
        uint32_t ref;
        DM_TRY(cell_node_alloc(server, ctx, 0, &ref));
        node_finish(server, ctx, &loader->leaf, ref, key);
        DM_TRY(leaf_begin(loader, ref, key));
    }
    if (server->layout.block_bytes > 0) {
        uint32_t block;
        DM_TRY(ix_blocks_take(&server->blocks, ctx, &block));
        cell_block_write(server, ctx, block, key, value, NULL);
        entry[0] = block;
    } else {
        memcpy(entry, value, server->layout.value_bytes);
    }
    cell_entry_insert(&server->layout.leaf, loader->leaf.words, key, entry);
    return 0;
}

int cell_on_load(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct cell_server *server = arg;
    struct ix_ranges_pairs pairs;
    (void)resp;
    *resp_len = 0;
    if (!ix_ranges_received(req, req_len, server->layout.value_bytes, &pairs)) {
        return DM_ERR_INVALID;
    }
    if (!server->loader) {
        DM_TRY(loader_open(server, ctx));
    }
    for (uint32_t i = 0; i < pairs.count; i++) {
        DM_TRY(pair_append(server, ctx, ix_ranges_key(&pairs, i), ix_ranges_value(&pairs, i)));
    }
    return 0;
}

/* ---- the levels above the leaves --------------------------------------------------------------------------------- */

/* Builds a level over `count` children, which its nodes replace in the array. */
static int level_build(struct cell_server *server, struct dm_ctx *ctx, struct built *built, uint64_t *count,
                       unsigned level) {
    uint64_t nodes = ix_nodes_for(*count, server->params->inner_fill, server->layout.inner.entries, 2);
    uint32_t ref, next = 0;
    DM_TRY(cell_node_alloc(server, ctx, level, &ref));
    for (uint64_t i = 0; i < nodes; i++, ref = next) {
        uint64_t begin = *count * i / nodes, end = *count * (i + 1) / nodes;
        struct cell_node node = {.ref = ref};
        node.words[CELL_HEAD] = cell_head_word(0, level, 0);
        node.words[CELL_LOW] = built[begin].low;
        for (uint64_t k = begin; k < end; k++) {
            uint64_t child = built[k].ref;
            cell_entry_insert(&server->layout.inner, node.words, built[k].low, &child);
        }
        next = 0;
        if (i + 1 < nodes) {
            DM_TRY(cell_node_alloc(server, ctx, level, &next));
        }
        node_finish(server, ctx, &node, next, end < *count ? built[end].low : UINT64_MAX);
        built[i] = (struct built){node.words[CELL_LOW], ref};
    }
    *count = nodes;
    return 0;
}

int cell_on_build(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct cell_server *server = arg;
    struct cell_loader *loader = server->loader;
    unsigned level = 0;
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    if (!loader) {
        return 0; /* this memory node got no pairs */
    }
    node_finish(server, ctx, &loader->leaf, 0, UINT64_MAX);
    for (uint64_t count = loader->leaves; count > 1;) {
        DM_TRY(level_build(server, ctx, loader->built, &count, ++level));
    }
    cell_root_store(server, ctx, loader->built[0].ref, level);
    cell_loader_free(loader);
    server->loader = NULL;
    return 0;
}

/* ---- on a compute node ------------------------------------------------------------------------------------------- */

static const struct ix_ranges_use ranges = {CELL_RANGES_OFFSET, CELL_FORMAT, CELL_LOAD, CELL_BUILD};

int cell_format(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err) {
    (void)params;
    (void)err;
    return ix_ranges_format(ctx, &ranges, shape->topology->mns);
}

int cell_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    const struct cell_cn *cn = handle;
    (void)err;
    return ix_ranges_load(ctx, &ranges, cn->shape, pairs);
}
