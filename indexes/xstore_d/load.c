/* SPDX-License-Identifier: Apache-2.0
 *
 * The empty tree, bulk load and the partition of keys among memory nodes (XStore, section 5.5): each memory node has a
 * tree, tables and models of its own for a range of keys. Bulk load chooses the ranges so that each memory node gets
 * the same number of keys; without keys they are equal shares of the key space. A compute node sends sorted pairs, and
 * the memory node's CPU builds the leaves, the tree and the models.
 */
#include "load.h"

#include <stdlib.h>

#include "btree.h"
#include "client.h"
#include "common/array.h"
#include "indexes/shared/ranges.h"
#include "leaf.h"
#include "log.h"
#include "train.h"

/* ---- on a memory node -------------------------------------------------------------------------------------------- */

struct xstore_loader {
    struct xstore_leaf leaf; /* the current leaf, not stored yet */
    unsigned count, each;    /* keys in it; keys that a leaf gets */
    struct xstore_built *built;
    uint64_t leaves, capacity, keys;
};

void xstore_loader_free(struct xstore_loader *loader) {
    if (loader) {
        free(loader->built);
        free(loader);
    }
}

static int leaf_alloc(struct xstore_server *server, struct dm_ctx *ctx, uint32_t *ref) {
    dm_addr addr;
    DM_TRY(dm_alloc(ctx, server->node, server->layout.leaf_bytes, DM_LINE, DM_MEM_LEAF, &addr));
    *ref = xstore_ref_of(addr);
    return 0;
}

static void slots_clear(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned from) {
    for (unsigned i = from; i < server->layout.slots; i++) {
        xstore_value_clear(server, ctx, ref, i);
    }
}

int xstore_on_format(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct xstore_server *server = arg;
    struct xstore_leaf leaf = {.high = UINT64_MAX};
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    DM_TRY(leaf_alloc(server, ctx, &leaf.ref));
    slots_clear(server, ctx, leaf.ref, 0);
    xstore_fences_store(server, ctx, &leaf);
    xstore_leaf_store(server, ctx, &leaf, (struct xstore_head){0});
    struct xstore_built built = {0, leaf.ref};
    DM_TRY(xstore_build(server, ctx, &built, 1));
    if (server->params->logging) {
        DM_TRY(xstore_log_open(server, ctx));
    }
    return xstore_train_all(&server->load_trainer, ctx,
                            server->params->models > 0 ? (uint32_t)server->params->models : 1);
}

static int built_add(struct xstore_loader *loader) {
    struct xstore_built *built = dm_array_grow(loader->built, loader->leaves, &loader->capacity, sizeof(*built));
    if (!built) {
        return DM_ERR_NO_MEMORY;
    }
    loader->built = built;
    built[loader->leaves++] = (struct xstore_built){loader->leaf.low, loader->leaf.ref};
    return 0;
}

/* The first leaf is the leaf of the empty tree. */
static int loader_open(struct xstore_server *server, struct dm_ctx *ctx) {
    struct xstore_loader *loader = calloc(1, sizeof(*loader));
    if (!loader) {
        return DM_ERR_NO_MEMORY;
    }
    server->loader = loader;
    unsigned each = (unsigned)(server->params->fill * (double)server->layout.slots);
    loader->each = each > 0 ? each : 1;
    DM_TRY(xstore_leaf_lock(server, ctx, 0, &loader->leaf));
    xstore_leaf_unlock(server, ctx, loader->leaf.ref);
    return built_add(loader);
}

static void leaf_finish(struct xstore_server *server, struct dm_ctx *ctx, uint32_t next, uint64_t high) {
    struct xstore_loader *loader = server->loader;
    loader->leaf.high = high;
    slots_clear(server, ctx, loader->leaf.ref, loader->count);
    xstore_fences_store(server, ctx, &loader->leaf);
    xstore_leaf_store(server, ctx, &loader->leaf, (struct xstore_head){.count = loader->count, .next = next});
}

static int pair_append(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, const void *value) {
    struct xstore_loader *loader = server->loader;
    if (loader->count == loader->each) {
        uint32_t ref;
        uint64_t border = xstore_border(xstore_leaf_keys(&loader->leaf)[loader->count - 1], key);
        DM_TRY(leaf_alloc(server, ctx, &ref));
        leaf_finish(server, ctx, ref, border);
        loader->leaf = (struct xstore_leaf){.ref = ref, .low = border};
        loader->count = 0;
        DM_TRY(built_add(loader));
    }
    xstore_value_store(server, ctx, loader->leaf.ref, loader->count, key, value);
    xstore_leaf_keys(&loader->leaf)[loader->count++] = key;
    loader->keys++;
    return 0;
}

int xstore_on_load(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct xstore_server *server = arg;
    struct ix_ranges_pairs pairs;
    (void)resp;
    *resp_len = 0;
    if (!ix_ranges_received(req, req_len, server->layout.user_bytes, &pairs)) {
        return DM_ERR_INVALID;
    }
    if (!server->loader) {
        DM_TRY(loader_open(server, ctx));
    }
    for (uint32_t i = 0; i < pairs.count; i++) {
        uint64_t key = ix_ranges_key(&pairs, i), block;
        DM_TRY(xstore_block_take(server, ctx, &block));
        DM_TRY(pair_append(server, ctx, key,
                           xstore_block_fill(server, ctx, &block, key, ix_ranges_value(&pairs, i), NULL)));
    }
    return 0;
}

static uint32_t models_for(const struct xstore_params *params, uint64_t keys) {
    uint64_t models = params->models > 0 ? params->models : keys / params->keys_per_model;
    uint64_t most = UINT32_MAX / XSTORE_MODEL_BYTES;
    return models < 1 ? 1 : models > most ? (uint32_t)most : (uint32_t)models;
}

int xstore_on_build(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct xstore_server *server = arg;
    struct xstore_loader *loader = server->loader;
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    if (!loader) {
        return 0; /* this memory node got no pairs */
    }
    leaf_finish(server, ctx, 0, UINT64_MAX);
    DM_TRY(xstore_build(server, ctx, loader->built, loader->leaves));
    atomic_store_explicit(&server->keys, loader->keys, memory_order_relaxed);
    DM_TRY(xstore_train_all(&server->load_trainer, ctx, models_for(server->params, loader->keys)));
    xstore_loader_free(loader);
    server->loader = NULL;
    return 0;
}

/* ---- on a compute node ------------------------------------------------------------------------------------------- */

static const struct ix_ranges_use ranges = {XSTORE_BORDERS_OFFSET, XSTORE_FORMAT, XSTORE_LOAD, XSTORE_BUILD};

int xstore_format(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err) {
    (void)params;
    (void)err;
    return ix_ranges_format(ctx, &ranges, shape->topology->mns);
}

int xstore_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    const struct xstore_cn *cn = handle;
    (void)err;
    return ix_ranges_load(ctx, &ranges, cn->shape, pairs);
}
