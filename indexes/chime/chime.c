/* SPDX-License-Identifier: Apache-2.0
 *
 * CHIME's table: parameters, checks, and the life of its parts on remote memory, compute nodes and clients.
 */
#include "chime.h"

#include <stdlib.h>

enum {
    SCAN_BATCH_BYTES = 16384, /* a client's room for the leaves of one doorbell */
    WORDS = 8,                /* one line: results of atomics, and lock words to be written */
    LEAF_BYTES_MAX = 131072,
};

static const char *const validations[] = {"siblings", "fences", "none", NULL};
static const char *const vacancies[] = {"piggyback", "read", "none", NULL};
static const char *const unlocks[] = {"behind", "before", NULL};
static const char *const scans[] = {"segments", "leaves", NULL};
static const char *const value_places[] = {"inline", "indirect", "unchecked", NULL};

#define ROW(member, opt_type, ...)                                                                                     \
    { .name = #member, .type = opt_type, .offset = offsetof(struct chime_params, member), __VA_ARGS__ }
static const struct dm_opt params_table[] = {
    ROW(span, DM_OPT_COUNT, .initial = "64", .min = 4, .max = CHIME_SPAN_MAX, .unit = "entries",
        .help = "Entries of a leaf, and children of an inner node."),
    ROW(neighbourhood, DM_OPT_COUNT, .initial = "8", .min = 2, .max = CHIME_HOOD_MAX, .unit = "entries", .symbol = "H",
        .help = "Entries from its home on among which a key is kept; at most the span."),
    ROW(hotspot_bytes, DM_OPT_BYTES, .initial = "0",
        .help = "Hotspot buffer of a compute node, a part of its cache; 0: hotspot_share of the cache."),
    ROW(hotspot_share, DM_OPT_REAL, .initial = "0.3", .min = 0, .max = 1,
        .help = "Share of the cache that is the hotspot buffer, if hotspot_bytes is 0."),
    ROW(fill, DM_OPT_REAL, .initial = "0.8", .min = 0.1, .max = 1,
        .help = "Share of a node's entries that bulk load fills, as far as hashing allows."),
    ROW(speculative, DM_OPT_BOOL, .initial = "on", .help = "Reads of hot keys try one entry before a neighbourhood."),
    ROW(vacancy, DM_OPT_ENUM, .initial = "piggyback", .choices = vacancies,
        .help = "Vacancy bitmap: with the lock, read apart, or not used: inserts read whole leaves."),
    ROW(replicate, DM_OPT_BOOL, .initial = "on",
        .help = "A copy of the metadata for every neighbourhood; off: one, in front, which is read apart."),
    ROW(validation, DM_OPT_ENUM, .initial = "siblings", .choices = validations,
        .help = "How a leaf is known to cover a key: its sibling, fence keys, or (wrong) not at all."),
    ROW(bitmap_check, DM_OPT_BOOL, .initial = "on",
        .help = "Readers compare hop bitmaps with the keys they found; off is wrong."),
    ROW(unlock, DM_OPT_ENUM, .initial = "behind", .choices = unlocks,
        .help = "The lock is released behind the write, or (wrong) before it."),
    ROW(merge, DM_OPT_BOOL, .initial = "on",
        .help = "A leaf that deletes have emptied takes over its right neighbour."),
    ROW(local_locks, DM_OPT_BOOL, .initial = "on",
        .help = "Clients of a compute node queue locally before one of them tries a leaf's lock."),
    ROW(scan, DM_OPT_ENUM, .initial = "segments", .choices = scans,
        .help = "What scans read of a leaf: where few keys can matter their neighbourhoods, or always all of it."),
    ROW(values, DM_OPT_ENUM, .initial = "inline", .choices = value_places,
        .help =
            "Where values are: in the leaf, in blocks that the leaf points to, or the same and (wrong) readers do not "
            "check whether the block is still the one."),
    ROW(cache_levels, DM_OPT_COUNT, .initial = "16", .min = 0, .max = 16, .unit = "levels",
        .help = "Levels of inner nodes that may be cached, counted from the root."),
    DM_OPT_END,
};

static const char *const counter_names[] = {
#define X(name, text, rare) text,
    CHIME_COUNTERS(X)
#undef X
        NULL,
};

enum {
    RARE_EVENTS = 0
#define X(name, text, rare) | (rare) << CHIME_##name
    CHIME_COUNTERS(X)
#undef X
};

/* Of leaves as they are for these values. */
static struct chime_layout layout_for(const struct chime_params *params, const struct ix_shape *shape) {
    uint32_t stored = params->values == CHIME_VALUES_INLINE ? shape->value_bytes : (uint32_t)sizeof(uint64_t);
    return chime_layout_make((uint32_t)params->span, (uint32_t)params->neighbourhood, stored, params->replicate,
                             params->validation == CHIME_VALIDATE_FENCES);
}

static struct ix_inner_layout inner_for(const struct chime_params *params) {
    uint32_t wire = ix_lines_wire_bytes(ix_inner_bytes((uint32_t)params->span, true));
    struct ix_inner_layout inner = ix_inner_layout_of(wire, true, IX_VERSIONS_LINES);
    inner.cap = (uint32_t)params->span;
    return inner;
}

/* The lock word lies behind an inner node. */
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
        return dm_fail(err, DM_ERR_INVALID, "chime: a neighbourhood of %llu does not fit span %llu",
                       (unsigned long long)params->neighbourhood, (unsigned long long)params->span);
    }
    uint32_t value_max = params->values == CHIME_VALUES_INLINE ? 1024 : IX_INDIRECT_VALUE_MAX;
    if (shape->value_bytes < 1 || shape->value_bytes > value_max) {
        return dm_fail(err, DM_ERR_INVALID, "chime: values of %u bytes: 1 to %u are possible%s", shape->value_bytes,
                       value_max, params->values == CHIME_VALUES_INLINE ? ", larger ones with values=indirect" : "");
    }
    struct chime_layout layout = layout_for(params, shape);
    if (layout.wire_bytes > LEAF_BYTES_MAX) {
        uint32_t room = ix_lines_data_bytes(LEAF_BYTES_MAX) - layout.groups * layout.meta_bytes;
        return dm_fail(
            err, DM_ERR_INVALID,
            "chime: a leaf would have %u bytes, %d are possible: with span %u values may have up to %u bytes",
            layout.wire_bytes, LEAF_BYTES_MAX, layout.span,
            room / layout.span - (layout.entry_bytes - layout.value_bytes));
    }
    if (params->speculative && params->hotspot_bytes > shape->cache_bytes) {
        return dm_fail(err, DM_ERR_INVALID, "chime: hotspot_bytes %llu is more than the whole cache of %llu bytes",
                       (unsigned long long)params->hotspot_bytes, (unsigned long long)shape->cache_bytes);
    }
    if (shape->topology->mns < 1 || shape->topology->mns > IX_INDIRECT_MNS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "chime: %u memory nodes: 1 to %d are possible", shape->topology->mns,
                       IX_INDIRECT_MNS_MAX);
    }
    return 0;
}

/* Leaves may be half as full after splits as hashing or bulk load ever fills them; every client keeps a few inner nodes
 * ready. */
static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    const struct chime_params *params = values;
    struct chime_layout layout = layout_for(params, shape);
    struct ix_inner_layout inner = inner_for(params);
    double most = layout.hood < 4 ? 0.3 : layout.hood < 8 ? 0.6 : 0.8;
    double fill = (params->fill < most ? params->fill : most) / 2;
    double leaf_keys = fill * layout.span < 1 ? 1 : fill * layout.span;
    double inner_keys = fill * inner.cap < 2 ? 2 : fill * inner.cap;
    double leaves = (double)keys / leaf_keys + 2;
    double inners = leaves / (inner_keys - 1) + IX_NODE_LEVELS + 6.0 * shape->topology->clients;
    double bytes = leaves * layout.alloc_bytes + inners * inner_alloc_bytes(&inner);
    if (params->values != CHIME_VALUES_INLINE) {
        bytes += ix_indirect_memory(shape->value_bytes, keys, shape->topology);
    }
    return DM_RESERVED_BYTES + (uint64_t)(bytes / shape->topology->mns) + layout.alloc_bytes;
}

/* ---- remote memory ---------------------------------------------------------------------------------------------- */

static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    struct chime_layout layout = layout_for(values, shape);
    uint64_t *word = dm_local_alloc(ctx, sizeof(*word));
    char *wire = dm_local_alloc(ctx, layout.wire_bytes);
    char *image = calloc(1, layout.wire_bytes);
    if (!word || !wire || !image) {
        free(image);
        return dm_fail(err, DM_ERR_NO_MEMORY, "chime: out of local memory while formatting");
    }
    dm_addr root;
    int rc = dm_alloc(ctx, 0, layout.alloc_bytes, DM_LINE, DM_MEM_LEAF, &root);
    if (rc < 0) {
        dm_fail(err, rc, "chime: no room for the first leaf on memory node 0");
        goto out;
    }
    chime_leaf_init(&layout, image, &(struct chime_meta){.valid = true, .high = UINT64_MAX});
    ix_lines_encode(image, layout.wire_bytes, 0, wire);
    *word = ix_tree_root_word(root, 0);
    rc = dm_write(ctx, root, wire, layout.used_bytes); /* the lock word is zero: empty and free */
    rc = rc < 0 ? rc : dm_write(ctx, ix_tree_root_place(), word, sizeof(*word));
    if (rc < 0) {
        dm_fail(err, rc, "chime: cannot write the empty tree: %s", dm_code_text(rc));
    }
out:
    free(image);
    return rc;
}

/* ---- compute nodes ---------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct chime_cn *cn = handle;
    if (cn) {
        ix_cache_close(cn->tree.cache);
        chime_hotspot_close(cn->hotspot);
        free(cn->gates);
        free(cn);
    }
}

static int cn_open_parts(struct dm_ctx *ctx, struct chime_cn *cn) {
    uint64_t *root = dm_local_alloc(ctx, sizeof(*root));
    if (!root) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(dm_read(ctx, ix_tree_root_place(), root, sizeof(*root)));
    atomic_init(&cn->tree.root, *root);
    cn->gates = cn->params->local_locks ? calloc(CHIME_GATES, sizeof(*cn->gates)) : NULL;
    if (cn->params->local_locks && !cn->gates) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(chime_hotspot_open(hotspot_bytes(cn->params, cn->shape), &cn->hotspot));
    struct ix_cache_config cache = {
        .bytes = cn->params->cache_levels > 0 ? cn->shape->cache_bytes - chime_hotspot_bytes(cn->hotspot) : 0,
        .copy_bytes = ix_tree_copy_bytes(&cn->tree.inner),
        .threads = dm_thread_count(dm_fabric_of(ctx), dm_node(ctx)),
    };
    return ix_cache_open(&cache, &cn->tree.cache);
}

static int open_cn(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, void **out,
                   struct dm_err *err) {
    const struct chime_params *params = values;
    *out = NULL;
    struct chime_cn *cn = calloc(1, sizeof(*cn));
    if (!cn) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "chime: out of memory on compute node %u", dm_node(ctx));
    }
    cn->params = params;
    cn->shape = shape;
    cn->layout = layout_for(params, shape);
    cn->tree.inner = inner_for(params);
    cn->tree.alloc_bytes = inner_alloc_bytes(&cn->tree.inner);
    cn->tree.cache_levels = params->cache_levels;
    cn->tree.combine = true;
    uint32_t batch = SCAN_BATCH_BYTES / cn->layout.wire_bytes;
    cn->scan_batch = batch < 2 ? 2 : batch > CHIME_SCAN_BATCH_MAX ? CHIME_SCAN_BATCH_MAX : batch;
    cn->scan_words = (cn->scan_batch + 1) * cn->layout.span;
    int rc = cn_open_parts(ctx, cn);
    if (rc < 0) {
        close_cn(cn);
        return dm_fail(err, rc, "chime: cannot open on compute node %u: %s", dm_node(ctx), dm_code_text(rc));
    }
    *out = cn;
    return 0;
}

static uint64_t cache_bytes(const void *handle) {
    const struct chime_cn *cn = handle;
    return ix_cache_used(cn->tree.cache) + chime_hotspot_bytes(cn->hotspot);
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static void detach(void *handle) {
    struct chime_client *client = handle;
    if (client) {
        ix_tree_release(&client->tree);
        ix_indirect_close(client->indirect);
        free(client->found);
        free(client->tree.image);
        free(client);
    }
}

/* What indirect values need. */
static int values_open(struct chime_client *client) {
    const struct chime_cn *cn = client->cn;
    if (cn->params->values == CHIME_VALUES_INLINE) {
        return 0;
    }
    client->found = calloc(cn->scan_words, sizeof(*client->found));
    int rc = ix_indirect_open(client->ctx, cn->shape->value_bytes, cn->params->values == CHIME_VALUES_INDIRECT,
                              &client->indirect);
    return client->found ? rc : DM_ERR_NO_MEMORY;
}

static int attach(void *handle, struct dm_ctx *ctx, void **out, struct dm_err *err) {
    struct chime_cn *cn = handle;
    *out = NULL;
    struct chime_client *client = calloc(1, sizeof(*client));
    uint32_t node = cn->tree.inner.node_bytes;
    uint32_t leaf = cn->layout.wire_bytes;
    uint64_t *words = dm_local_alloc(ctx, WORDS * (uint32_t)sizeof(*words) + 2 * node + (2 + cn->scan_batch) * leaf);
    char *images = calloc(1, 2 * (size_t)node + 2 * (size_t)leaf + cn->layout.span * sizeof(uint16_t));
    if (!client || !words || !images) {
        free(images);
        free(client);
        return dm_fail(err, DM_ERR_NO_MEMORY, "chime: out of memory for a client of compute node %u", dm_node(ctx));
    }
    char *wires = (char *)(words + WORDS);
    client->cn = cn;
    client->ctx = ctx;
    client->words = words;
    client->tree = (struct ix_tree){
        .cn = &cn->tree,
        .ctx = ctx,
        .hooks = &chime_hooks,
        .counts = client->counts,
        .thread = dm_thread(ctx),
        .old = words + 1,
        .root = words + 2,
        .wire = wires,
        .wire_right = wires + node,
        .image = images,
        .image_right = images + node,
    };
    client->leaf = (struct chime_copy){.wire = wires + 2 * node, .image = images + 2 * node};
    client->right = (struct chime_copy){.wire = wires + 2 * node + leaf, .image = images + 2 * node + leaf};
    client->batch = wires + 2 * node + 2 * leaf;
    client->order = (uint16_t *)(void *)(images + 2 * node + 2 * leaf);
    int rc = values_open(client);
    if (rc < 0) {
        detach(client);
        return dm_fail(err, rc, "chime: out of memory for a client of compute node %u", dm_node(ctx));
    }
    *out = client;
    return 0;
}

static const uint64_t *count(const void *handle) {
    const struct chime_client *client = handle;
    return client->counts;
}

static const struct ix_wrong wrong_values[] = {
    {"bitmap_check", "off", 4000, "a reader that sees half of a hop misses the key that moved"},
    {"unlock", "before", 200, "the next writer reads entries that are still being written, and writes them back"},
    {"validation", "none", 200, "a reader with an old parent misses keys that a split has moved"},
    {"values", "unchecked", 400, "a block that has been used again is taken for what it was"},
    {.param = NULL},
};

const struct ix_ops ix_ops_chime = {
    .name = "chime",
    .summary = "B-link tree whose leaves are hopscotch hash tables; reads a neighbourhood or an entry, not a leaf",
    .paper =
        "X. Luo, J. Shen, P. Zuo, X. Wang, M. R. Lyu, Y. Zhou: CHIME: A Cache-Efficient and High-Performance Hybrid "
        "Index on Disaggregated Memory. SOSP 2024",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT,
    .params = params_table,
    .params_bytes = sizeof(struct chime_params),
    .counters = counter_names,
    .rare_events = RARE_EVENTS,
    .wrong = wrong_values,
    .check = check,
    .memory_needed = memory_needed,
    .format = format,
    .open = open_cn,
    .close = close_cn,
    .load = chime_bulk_load,
    .attach = attach,
    .detach = detach,
    .get = chime_get,
    .insert = chime_insert,
    .update = chime_update,
    .remove = chime_remove,
    .scan = chime_scan,
    .count = count,
    .cache_bytes = cache_bytes,
    .verify = chime_verify,
};
