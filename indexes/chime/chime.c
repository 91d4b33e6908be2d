/* SPDX-License-Identifier: Apache-2.0
 *
 * CHIME's table: parameters, checks, and the life of its parts on remote memory, compute nodes and clients.
 */
#include "chime.h"

#include <stdlib.h>

#include "indexes/shared/fill.h"

enum {
    LEAF_BYTES_MAX = 131072,
};

static const char *const validations[] = {"siblings", "fences", "none", NULL};
static const char *const vacancies[] = {"piggyback", "read", "none", NULL};
static const char *const unlocks[] = {"behind", "before", NULL};
static const char *const scans[] = {"segments", "leaves", "hotspots", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct chime_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(span, DM_OPT_COUNT, .initial = "64", .min = 4, .max = CHIME_SPAN_MAX, .unit = "entries",
        .help = "Entries of a leaf, and children of an inner node."),
    ROW(neighbourhood, DM_OPT_COUNT, .initial = "8", .min = 2, .max = CHIME_HOOD_MAX, .unit = "entries", .symbol = "H",
        .help = "Entries from its home on among which a key is kept; at most the span."),
    ROW(hotspot_bytes, DM_OPT_BYTES, .initial = "0",
        .help = "Hotspot buffer of a compute node, a part of its cache; 0: hotspot_share of the cache."),
    ROW(hotspot_share, DM_OPT_REAL, .initial = "0.3", .min = 0, .max = 1,
        .help = "Share of the cache that is the hotspot buffer, if hotspot_bytes is 0."),
    ROW(fill, DM_OPT_REAL, .initial = "0.6", .min = 0.1, .max = 1,
        .help = "Share of a node's entries that bulk load fills, up to the fill that hashing permits."),
    ROW(speculative, DM_OPT_BOOL, .initial = "on", .help = "Reads of hot keys try one entry before a neighbourhood."),
    ROW(vacancy, DM_OPT_ENUM, .initial = "piggyback", .choices = vacancies,
        .help = "Vacancy bitmap: read with the lock, by a read of its own, or not used: inserts read all of a leaf."),
    ROW(replicate, DM_OPT_BOOL, .initial = "on",
        .help = "A copy of the metadata for every neighbourhood; off: one, in front, which needs a read of its own."),
    ROW(validation, DM_OPT_ENUM, .initial = "siblings", .choices = validations,
        .help = "How a leaf is known to cover a key: its sibling, fence keys, or (wrong) not at all."),
    ROW(bitmap_check, DM_OPT_BOOL, .initial = "on",
        .help = "Readers compare hop bitmaps with the keys they found; off is wrong."),
    ROW(unlock, DM_OPT_ENUM, .initial = "behind", .choices = unlocks,
        .help = "The lock is released behind the write, or (wrong) before it."),
    ROW(merge, DM_OPT_BOOL, .initial = "on",
        .help = "A leaf that deletes have emptied is merged with its right neighbour."),
    ROW(local_locks, DM_OPT_BOOL, .initial = "on",
        .help = "Clients of a compute node queue locally before one of them tries a leaf's lock; off as published."),
    ROW(back_off, DM_OPT_BOOL, .initial = "on",
        .help = "A lock that was refused 256 times is tried again after a pause; off: at once, however often."),
    ROW(scan, DM_OPT_ENUM, .initial = "segments", .choices = scans,
        .help = "What scans read of a leaf: where few keys can be in the range their neighbourhoods; always all of it; "
                "or neighbourhoods, but of keys in the hotspot buffer, which learns from scans then, their entries."),
    ROW(values, DM_OPT_ENUM, .initial = "inline", .choices = ix_values_choices, .help = IX_VALUES_HELP),
    ROW(fetch, DM_OPT_ENUM, .initial = "batch", .choices = ix_fetch_choices, .help = IX_FETCH_HELP),
    ROW(cache_levels, DM_OPT_COUNT, .initial = "16", .min = 0, .max = 16, .unit = "levels",
        .help = "Levels of inner nodes that may be cached, counted from the root."),
    DM_OPT_END,
};

static const struct ix_counter counters[] = {CHIME_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

/* Of leaves with these values. */
static struct chime_layout layout_for(const struct chime_params *params, const struct ix_shape *shape) {
    uint32_t stored = ix_values_stored(params->values, shape->value_bytes);
    return chime_layout_make((uint32_t)params->span, (uint32_t)params->neighbourhood, ix_key_bytes(shape), stored,
                             params->replicate, params->validation == CHIME_VALIDATE_FENCES);
}

static struct ix_inner_layout inner_for(const struct chime_params *params, const struct ix_shape *shape) {
    uint32_t key_bytes = ix_key_bytes(shape);
    uint32_t wire = ix_lines_wire_bytes(ix_inner_bytes((uint32_t)params->span, key_bytes, true));
    struct ix_inner_layout inner = ix_inner_layout_of(&ix_format_lines, wire, key_bytes, true, IX_VERSIONS_LINES);
    inner.cap = (uint32_t)params->span;
    return inner;
}

/* An inner node is followed by its lock word. */
static uint32_t inner_alloc_bytes(const struct ix_inner_layout *inner) {
    return inner->node_bytes + DM_LINE;
}

static uint64_t hotspot_bytes(const struct chime_params *params, const struct ix_shape *shape) {
    if (!params->speculative) {
        return 0;
    }
    return params->hotspot_bytes > 0 ? params->hotspot_bytes
                                     : (uint64_t)(params->hotspot_share * (double)shape->cache_bytes);
}

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct chime_params *params = values;
    if (params->neighbourhood > params->span) {
        return dm_fail(err, DM_ERR_INVALID, "a neighbourhood of %llu does not fit span %llu",
                       (unsigned long long)params->neighbourhood, (unsigned long long)params->span);
    }
    DM_TRY(ix_values_check(params->values, shape->value_bytes, err));
    struct chime_layout layout = layout_for(params, shape);
    if (layout.wire_bytes > LEAF_BYTES_MAX) {
        uint32_t body = (ix_lines_data_bytes(LEAF_BYTES_MAX) - layout.groups * layout.meta_bytes) / layout.span;
        uint32_t heads = layout.entry_bytes - layout.value_bytes;
        return dm_fail(
            err, DM_ERR_INVALID,
            "a leaf would have %u bytes, more than %d: with span %u and keys of %u bytes, values may have up "
            "to %u bytes",
            layout.wire_bytes, LEAF_BYTES_MAX, layout.span, layout.key_bytes, body > heads ? body - heads : 0);
    }
    if (params->speculative && params->hotspot_bytes > shape->cache_bytes) {
        return dm_fail(err, DM_ERR_INVALID, "hotspot_bytes %llu is more than the whole cache of %llu bytes",
                       (unsigned long long)params->hotspot_bytes, (unsigned long long)shape->cache_bytes);
    }
    return 0;
}

/* Leaves may be half as full after splits as hashing permits or bulk load fills them; every client keeps a few inner
 * nodes ready. */
static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    const struct chime_params *params = values;
    struct chime_layout layout = layout_for(params, shape);
    struct ix_inner_layout inner = inner_for(params, shape);
    double most = layout.hood < 4 ? 0.3 : layout.hood < 8 ? 0.6 : 0.8;
    double fill = (params->fill < most ? params->fill : most) / 2;
    double leaf_keys = ix_filled(fill, layout.span, 1), inner_keys = ix_filled(fill, inner.cap, 2);
    double leaves = (double)keys / leaf_keys + 2;
    double inners = leaves / (inner_keys - 1) + IX_NODE_LEVELS + 6.0 * shape->topology->clients;
    double bytes = leaves * layout.alloc_bytes + inners * inner_alloc_bytes(&inner);
    bytes += ix_indirect_memory(params->values, shape->value_bytes + ix_key_padding(shape), keys, shape);
    return DM_RESERVED_BYTES + (uint64_t)(bytes / shape->topology->mns) + layout.alloc_bytes;
}

/* ---- remote memory ---------------------------------------------------------------------------------------------- */

static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    struct chime_layout layout = layout_for(values, shape);
    char *image = calloc(1, layout.wire_bytes);
    char *wire = dm_local_alloc(ctx, layout.wire_bytes);
    if (!image || !wire) {
        free(image);
        return DM_ERR_NO_MEMORY;
    }
    chime_leaf_init(&layout, image, &(struct chime_meta){.valid = true, .high = UINT64_MAX});
    /* The lock word, after the used bytes, is zero: the leaf is empty and free. */
    ix_lines_encode(image, layout.wire_bytes, 0, wire);
    struct ix_tree_leaf leaf = {wire, layout.used_bytes, layout.alloc_bytes};
    int rc = ix_tree_format(ctx, &leaf, err);
    free(image);
    return rc;
}

/* ---- compute nodes ---------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct chime_cn *cn = handle;
    ix_tree_close(&cn->tree);
    chime_hotspot_close(cn->hotspot);
    ix_queues_close(cn->queues);
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct chime_cn *cn = handle;
    const struct chime_params *params = values;
    (void)err;
    cn->params = params;
    cn->shape = shape;
    cn->layout = layout_for(params, shape);
    cn->tree.policy = &chime_inner_locking;
    cn->tree.inner = inner_for(params, shape);
    cn->tree.alloc_bytes = inner_alloc_bytes(&cn->tree.inner);
    cn->tree.cache_levels = params->cache_levels;
    cn->tree.combine = true;
    cn->tree.leaf_bytes = cn->layout.wire_bytes;
    cn->tree.leaf_cap = cn->layout.span;
    cn->tree.fill = params->fill;
    cn->queues = params->local_locks ? ix_queues_open(IX_QUEUES) : NULL;
    if (params->local_locks && !cn->queues) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(chime_hotspot_open(hotspot_bytes(params, shape), &cn->hotspot));
    return ix_tree_open(&cn->tree, ctx, shape->cache_bytes - chime_hotspot_bytes(cn->hotspot));
}

static uint64_t cache_bytes(const void *handle) {
    const struct chime_cn *cn = handle;
    return ix_cache_used(cn->tree.cache) + chime_hotspot_bytes(cn->hotspot);
}

static uint64_t cache_entry_bytes(const void *handle) {
    const struct chime_cn *cn = handle;
    return ix_tree_cache_entry_bytes(&cn->tree);
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static void detach(void *handle) {
    struct chime_client *client = handle;
    ix_tree_detach(&client->tree);
    ix_indirect_close(client->indirect);
    free(client->leaf.image);
}

/* The current leaf and the right one. */
static int leaves_open(struct chime_client *client) {
    uint32_t bytes = client->cn->layout.wire_bytes;
    char *wires = dm_local_alloc(client->ctx, 2 * bytes);
    char *images = calloc(2, bytes);
    client->leaf = (struct chime_copy){.wire = wires, .image = images};
    if (!wires || !images) {
        return DM_ERR_NO_MEMORY;
    }
    client->right = (struct chime_copy){.wire = wires + bytes, .image = images + bytes};
    return 0;
}

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct chime_client *client = handle;
    struct chime_cn *cn = cn_handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    DM_TRY(ix_tree_attach(&client->tree, &cn->tree, ctx, client, client->counts, client->counts + CHIME_CACHE_HIT));
    DM_TRY(leaves_open(client));
    struct ix_indirect_config values = {
        .values = cn->params->values,
        .value_bytes = cn->shape->value_bytes,
        .padding = ix_key_padding(cn->shape),
        .fetch = cn->params->fetch,
        .found_max = (cn->tree.scan_batch + 1) * cn->layout.span,
        .reused = &client->counts[CHIME_BLOCK_REUSED],
    };
    return ix_indirect_open(ctx, &values, &client->indirect);
}

static const struct ix_wrong wrong_values[] = {
    {"bitmap_check", "off", 4000, "a reader that sees half of a hop misses the key that moved"},
    {"unlock", "before", 200, "the next writer reads entries that are still being written, and writes them back"},
    {"validation", "none", 200, "a reader with an old parent misses keys that a split has moved"},
    {"values", "unchecked", 400, "a block that has been used again is taken for what it was"},
    {.param = NULL},
};

static const struct ix_setting tiny[] = {{"span", "8"}, {"neighbourhood", "4"}, {.param = NULL}};

const struct ix_ops ix_ops_chime = {
    .name = "chime",
    .summary = "B-link tree whose leaves are hopscotch hash tables; reads a neighbourhood or an entry, not a leaf",
    .paper =
        "X. Luo, J. Shen, P. Zuo, X. Wang, M. R. Lyu, Y. Zhou: CHIME: A Cache-Efficient and High-Performance Hybrid "
        "Index on Disaggregated Memory. SOSP 2024",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT,
    .params = params_table,
    .params_bytes = sizeof(struct chime_params),
    .counters = counters,
    .counts_offset = offsetof(struct chime_client, counts),
    .wrong = wrong_values,
    .tiny = tiny,
    .key_bytes_max = IX_KEY_BYTES_MAX,
    .cn_bytes = sizeof(struct chime_cn),
    .client_bytes = sizeof(struct chime_client),
    .check = check,
    .memory_needed = memory_needed,
    .format = format,
    .open = open_cn,
    .close = close_cn,
    .load = chime_load,
    .attach = attach,
    .detach = detach,
    .get = chime_get,
    .insert = chime_insert,
    .update = chime_update,
    .remove = chime_remove,
    .scan = chime_scan,
    .cache_bytes = cache_bytes,
    .cache_entry_bytes = cache_entry_bytes,
    .verify = chime_verify,
};
