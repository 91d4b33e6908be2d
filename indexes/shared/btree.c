/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes of a B-link tree with fixed leaves, and the life of its parts; see btree.h.
 */
#include "indexes/shared/btree.h"

#include <stdlib.h>

#include "indexes/shared/fill.h"
#include "indexes/shared/loader.h"

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static uint32_t stored_bytes(const struct ix_btree_config *config, const struct ix_shape *shape) {
    return ix_values_stored((enum ix_values)config->values, shape->value_bytes);
}

static const struct ix_node_format *leaf_format(const struct ix_btree_config *config) {
    return config->leaf_format ? config->leaf_format : config->format;
}

static struct ix_leaf_layout leaf_layout(const struct ix_btree_config *config, const struct ix_shape *shape) {
    if (config->pointers > 0) {
        return ix_leaf_layout_pointers(leaf_format(config)->image_bytes((uint32_t)config->node_bytes),
                                       config->pointers);
    }
    struct ix_leaf_layout layout =
        ix_leaf_layout_of(config->format->image_bytes((uint32_t)config->node_bytes), ix_key_bytes(shape),
                          stored_bytes(config, shape), config->sorted, config->entry_versions);
    layout.cap = config->span > 0 && config->span < layout.cap ? config->span : layout.cap;
    return layout;
}

uint64_t ix_btree_node_bytes(const struct ix_btree_config *config, uint64_t entries, uint32_t key_bytes,
                             uint32_t value_bytes) {
    uint64_t entry = ix_leaf_layout_of(0, key_bytes, value_bytes, config->sorted, config->entry_versions).entry_bytes;
    uint64_t child = key_bytes + sizeof(dm_addr);
    uint64_t image = ix_node_head_bytes(key_bytes) + entries * (entry > child ? entry : child);
    uint64_t wire = (image + IX_LINE_DATA - 1) / IX_LINE_DATA * DM_LINE;
    while (wire < UINT32_MAX && config->format->image_bytes((uint32_t)wire) < image) {
        wire += DM_LINE;
    }
    return wire;
}

/* The largest value that IX_BTREE_CAP_MIN entries of a leaf may have; 0: none. */
static uint32_t value_max(const struct ix_btree_config *config, uint32_t key_bytes) {
    uint32_t image = config->format->image_bytes((uint32_t)config->node_bytes), fixed = ix_node_head_bytes(key_bytes);
    uint32_t each = image > fixed ? (image - fixed) / IX_BTREE_CAP_MIN : 0;
    uint32_t head = ix_leaf_layout_of(0, key_bytes, 0, config->sorted, config->entry_versions).entry_bytes;
    return each > head ? each - head : 0;
}

int ix_btree_check(const struct ix_btree_config *config, const struct ix_shape *shape, struct dm_err *err) {
    if (config->node_bytes % DM_LINE != 0) {
        return dm_fail(err, DM_ERR_INVALID, "node_bytes %llu is not a multiple of %d",
                       (unsigned long long)config->node_bytes, DM_LINE);
    }
    DM_TRY(ix_values_check((enum ix_values)config->values, shape->value_bytes, err));
    uint32_t keys = ix_key_bytes(shape);
    uint64_t least = ix_btree_node_bytes(config, IX_BTREE_CAP_MIN, keys, stored_bytes(config, shape));
    if (least > config->node_bytes) {
        return dm_fail(
            err, DM_ERR_INVALID,
            "a leaf must hold %d entries: with node_bytes %llu and keys of %u bytes, values may have up to %u "
            "bytes, and values of %u bytes need node_bytes %llu",
            IX_BTREE_CAP_MIN, (unsigned long long)config->node_bytes, keys, value_max(config, keys), shape->value_bytes,
            (unsigned long long)least);
    }
    return 0;
}

/* Leaves may be down to half full after splits; every client keeps a few inner nodes ready. */
uint64_t ix_btree_memory_needed(const struct ix_btree_config *config, const struct ix_shape *shape, uint64_t keys) {
    struct ix_leaf_layout leaf = leaf_layout(config, shape);
    struct ix_inner_layout inner =
        ix_inner_layout_of(config->format, (uint32_t)config->node_bytes, ix_key_bytes(shape), false, IX_VERSIONS_LINES);
    double fill = config->fill < 0.5 ? config->fill : 0.5;
    double leaf_keys = ix_filled(fill, leaf.cap, 1), inner_keys = ix_filled(fill, inner.cap, 2);
    double leaves = (double)keys / leaf_keys + 2;
    double nodes = leaves * inner_keys / (inner_keys - 1) + IX_NODE_LEVELS + 6.0 * shape->topology->clients;
    double mns = shape->topology->mns;
    double blocks =
        ix_indirect_memory((enum ix_values)config->values, shape->value_bytes + ix_key_padding(shape), keys, shape) /
        mns;
    double pieces = (nodes / mns + 1) * ix_piece_bytes(shape, ix_btree_alloc_bytes(config));
    return DM_RESERVED_BYTES + (uint64_t)(pieces + blocks);
}

/* ---- remote memory ----------------------------------------------------------------------------------------------- */

int ix_btree_format(const struct ix_btree_config *config, struct dm_ctx *ctx, const struct ix_shape *shape,
                    struct dm_err *err) {
    struct ix_leaf_layout layout = leaf_layout(config, shape);
    uint32_t node_bytes = (uint32_t)config->node_bytes;
    char *image = calloc(1, layout.image_bytes);
    char *wire = dm_local_alloc(ctx, node_bytes);
    if (!image || !wire) {
        free(image);
        return DM_ERR_NO_MEMORY;
    }
    ix_leaf_init(&layout, image, 0, IX_NODE_INFINITY, DM_NULL);
    ix_leaf_refresh(&layout, image, 0);
    ix_node_encode_new(leaf_format(config), image, node_bytes, wire);
    free(image);
    struct ix_tree_leaf leaf = {wire, node_bytes, ix_btree_alloc_bytes(config)};
    return ix_tree_format(ctx, &leaf, err);
}

/* ---- a compute node's part --------------------------------------------------------------------------------------- */

int ix_btree_open(struct ix_btree_cn *cn, const struct ix_btree_config *config, struct dm_ctx *ctx, void *owner,
                  const struct ix_shape *shape) {
    uint32_t node_bytes = (uint32_t)config->node_bytes;
    cn->config = *config;
    cn->shape = shape;
    cn->leaf = leaf_layout(config, shape);
    cn->tree.policy = config->policy;
    cn->tree.owner = owner;
    cn->tree.leaf_format = config->leaf_format;
    cn->tree.inner =
        ix_inner_layout_of(config->format, node_bytes, ix_key_bytes(shape), false, (enum ix_versions)config->versions);
    cn->tree.alloc_bytes = ix_btree_alloc_bytes(config);
    cn->tree.cache_levels = config->cache_levels;
    cn->tree.cache_list = config->cache_list;
    cn->tree.list_nodes = config->list_nodes;
    cn->tree.combine = config->combine;
    cn->tree.leaf_bytes = node_bytes;
    cn->tree.leaf_cap = cn->leaf.cap;
    cn->tree.fill = config->fill;
    return ix_tree_open(&cn->tree, ctx, shape->cache_bytes);
}

void ix_btree_close(struct ix_btree_cn *cn) {
    ix_tree_close(&cn->tree);
}

uint64_t ix_btree_cache_bytes(const struct ix_btree_cn *cn) {
    return ix_cache_used(cn->tree.cache);
}

/* ---- bulk load --------------------------------------------------------------------------------------------------- */

static int leaf_fill(struct ix_loader *loader, unsigned node, uint64_t end) {
    const struct ix_btree_cn *cn = loader->leaf->owner;
    uint64_t key;
    ix_leaf_init(&cn->leaf, loader->image, 0, IX_NODE_INFINITY, DM_NULL);
    for (unsigned i = 0; loader->done < end && ix_loader_key(loader, &key); i++) {
        const void *stored;
        DM_TRY(ix_loader_value(loader, node, key, &stored));
        ix_leaf_put(&cn->leaf, loader->image, i, key, stored);
        loader->done++;
    }
    return 0;
}

static uint64_t leaf_finish(struct ix_loader *loader, uint64_t low, uint64_t high, dm_addr sibling, char *wire) {
    const struct ix_btree_cn *cn = loader->leaf->owner;
    struct ix_node_head *head = ix_node_head_of(loader->image);
    head->low = low;
    head->high = high;
    head->sibling = sibling;
    ix_leaf_refresh(&cn->leaf, loader->image, 0);
    ix_node_encode_new(leaf_format(&cn->config), loader->image, cn->tree.inner.node_bytes, wire);
    return 0;
}

int ix_btree_load(struct ix_btree_cn *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    uint32_t node_bytes = cn->tree.inner.node_bytes;
    struct ix_loader_leaf leaf = {
        .wire_bytes = node_bytes,
        .used_bytes = node_bytes,
        .alloc_bytes = cn->tree.alloc_bytes,
        .image_bytes = cn->leaf.image_bytes,
        .leaves = ix_nodes_for(pairs->count, cn->config.fill, cn->leaf.cap, 1),
        .values = (enum ix_values)cn->config.values,
        .value_bytes = cn->shape->value_bytes,
        .padding = ix_key_padding(cn->shape),
        .owner = cn,
        .fill = leaf_fill,
        .finish = leaf_finish,
    };
    return ix_loader_run(&cn->tree, ctx, pairs, &leaf, err);
}

/* ---- a client's part --------------------------------------------------------------------------------------------- */

int ix_btree_attach(struct ix_btree *btree, struct ix_btree_cn *cn, struct dm_ctx *ctx, void *client,
                    const struct ix_btree_counts *counts) {
    btree->cn = cn;
    btree->ctx = ctx;
    btree->torn = counts->torn ? counts->torn : &btree->no_counts[0];
    DM_TRY(ix_tree_attach(&btree->tree, &cn->tree, ctx, client, counts->tree, counts->cache));
    btree->scratch = calloc(1, cn->leaf.image_bytes);
    if (!btree->scratch) {
        return DM_ERR_NO_MEMORY;
    }
    struct ix_indirect_config values = {
        .values = (enum ix_values)cn->config.values,
        .value_bytes = cn->shape->value_bytes,
        .padding = ix_key_padding(cn->shape),
        .fetch = (enum ix_fetch)cn->config.fetch,
        .found_max = (cn->tree.scan_batch + 1) * cn->leaf.cap,
        .reused = counts->reused ? counts->reused : &btree->no_counts[1],
    };
    return ix_indirect_open(ctx, &values, &btree->indirect);
}

void ix_btree_detach(struct ix_btree *btree) {
    ix_tree_detach(&btree->tree);
    ix_indirect_close(btree->indirect);
    free(btree->scratch);
}
