/* SPDX-License-Identifier: Apache-2.0
 *
 * Sherman's table: parameters, checks, and the life of its parts on remote memory, compute nodes and clients.
 */
#include "sherman.h"

#include <stdlib.h>

enum {
    NODE_BYTES_MAX = 131072,  /* that a span may lead to */
    LOCKS_IN_DRAM = 16384,    /* lock words a memory node when they are not limited by on-chip memory */
    SCAN_BATCH_BYTES = 16384, /* a client's room for the leaves of one doorbell */
    WORDS = 8,                /* one line: zero, old value of atomics, root word */
};

static const char *const lock_places[] = {"auto", "chip", "dram", NULL};
static const char *const version_modes[] = {"lines", "bookend", "none", NULL};
static const char *const torn_modes[] = {"retry", "absent", NULL};
static const char *const value_places[] = {"inline", "indirect", "unchecked", NULL};

#define ROW(member, opt_type, ...)                                                                                     \
    { .name = #member, .type = opt_type, .offset = offsetof(struct sherman_params, member), __VA_ARGS__ }
static const struct dm_opt params_table[] = {
    ROW(node_bytes, DM_OPT_BYTES, .initial = "1024", .min = 128, .max = 16384,
        .help = "Size of a node in remote memory, a multiple of 64."),
    ROW(span, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1024, .unit = "entries",
        .help = "Entries of a leaf, whatever their size: node_bytes follows from it; 0: node_bytes says."),
    ROW(fill, DM_OPT_REAL, .initial = "0.8", .min = 0.1, .max = 1,
        .help = "Share of a node's entries that bulk load fills."),
    ROW(locks, DM_OPT_ENUM, .initial = "auto", .choices = lock_places,
        .help = "Where lock words are: on-chip memory, DRAM, or on-chip where there is any."),
    ROW(lock_count, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1048576, .unit = "locks",
        .help = "Lock words a memory node; 0: all of the on-chip memory, or 16384 in DRAM."),
    ROW(local_locks, DM_OPT_BOOL, .initial = "on",
        .help = "Contexts of a compute node queue locally before one of them tries the remote lock."),
    ROW(hand_over, DM_OPT_BOOL, .initial = "on", .help = "A held lock is passed on within a compute node."),
    ROW(hand_over_max, DM_OPT_COUNT, .initial = "4", .min = 1, .max = 1000000,
        .help = "Hand-overs in a row before other compute nodes get a chance."),
    ROW(combine, DM_OPT_BOOL, .initial = "on", .help = "The write-back and the unlock go with one doorbell."),
    ROW(versions, DM_OPT_ENUM, .initial = "lines", .choices = version_modes,
        .help = "Versions that readers compare: of every line, or (wrong) of the first and last line, or none."),
    ROW(torn, DM_OPT_ENUM, .initial = "retry", .choices = torn_modes,
        .help = "What a half-written entry means: read again, or (wrong) absent."),
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
    SHERMAN_COUNTERS(X)
#undef X
        NULL,
};

enum {
    RARE_EVENTS = 0
#define X(name, text, rare) | (rare) << SHERMAN_##name
    SHERMAN_COUNTERS(X)
#undef X
};

static enum ix_lock_place lock_place(const struct sherman_params *params, const struct dm_topology *topology) {
    bool chip =
        params->locks == SHERMAN_LOCKS_CHIP || (params->locks == SHERMAN_LOCKS_AUTO && topology->chip_bytes > 0);
    return chip ? IX_LOCK_CHIP : IX_LOCK_DRAM;
}

static uint32_t lock_count(const struct sherman_params *params, const struct dm_topology *topology) {
    if (params->lock_count > 0) {
        return (uint32_t)params->lock_count;
    }
    return lock_place(params, topology) == IX_LOCK_CHIP ? topology->chip_bytes / (uint32_t)sizeof(uint64_t)
                                                        : LOCKS_IN_DRAM;
}

/* Bytes of an entry's value, or of what stands for it. */
static uint32_t stored_bytes(const struct sherman_params *params, const struct ix_shape *shape) {
    return params->values == SHERMAN_VALUES_INLINE ? shape->value_bytes : (uint32_t)sizeof(uint64_t);
}

static uint64_t node_bytes(const struct sherman_params *params, const struct ix_shape *shape) {
    return params->span > 0 ? node_bytes_for((uint32_t)params->span, stored_bytes(params, shape)) : params->node_bytes;
}

static struct node_layout layout_for(const struct sherman_params *params, const struct ix_shape *shape,
                                     enum ix_versions versions) {
    return node_layout_make((uint32_t)node_bytes(params, shape), stored_bytes(params, shape), versions);
}

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct sherman_params *params = values;
    const struct dm_topology *topology = shape->topology;
    if (params->node_bytes % DM_LINE != 0) {
        return dm_fail(err, DM_ERR_INVALID, "sherman: node_bytes %llu is not a multiple of %d",
                       (unsigned long long)params->node_bytes, DM_LINE);
    }
    uint32_t value_max = params->values == SHERMAN_VALUES_INLINE ? 1024 : IX_INDIRECT_VALUE_MAX;
    if (shape->value_bytes < 1 || shape->value_bytes > value_max) {
        return dm_fail(err, DM_ERR_INVALID, "sherman: values of %u bytes: 1 to %u are possible%s", shape->value_bytes,
                       value_max, params->values == SHERMAN_VALUES_INLINE ? ", larger ones with values=indirect" : "");
    }
    if (node_bytes(params, shape) > NODE_BYTES_MAX) {
        return dm_fail(err, DM_ERR_INVALID,
                       "sherman: span %llu with values of %u bytes needs nodes of %llu bytes, %d are possible",
                       (unsigned long long)params->span, shape->value_bytes,
                       (unsigned long long)node_bytes(params, shape), NODE_BYTES_MAX);
    }
    if (params->span > 0 && params->span < NODE_CAP_MIN) {
        return dm_fail(err, DM_ERR_INVALID, "sherman: span %llu: a leaf must hold %d entries",
                       (unsigned long long)params->span, NODE_CAP_MIN);
    }
    if (node_bytes_min(stored_bytes(params, shape)) > node_bytes(params, shape)) {
        return dm_fail(err, DM_ERR_INVALID,
                       "sherman: a leaf must hold %d entries: with node_bytes %llu values may have up to %u bytes, and "
                       "values of %u bytes need node_bytes %u",
                       NODE_CAP_MIN, (unsigned long long)params->node_bytes,
                       node_value_max((uint32_t)params->node_bytes), shape->value_bytes,
                       node_bytes_min(shape->value_bytes));
    }
    if (topology->mns < 1 || topology->mns > SHERMAN_MNS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "sherman: %u memory nodes: 1 to %d are possible", topology->mns,
                       SHERMAN_MNS_MAX);
    }
    if (lock_place(params, topology) == IX_LOCK_CHIP &&
        (lock_count(params, topology) == 0 ||
         (uint64_t)lock_count(params, topology) * sizeof(uint64_t) > topology->chip_bytes)) {
        return dm_fail(err, DM_ERR_INVALID,
                       "sherman: %u locks of 8 bytes do not fit %u bytes of on-chip memory; lower lock_count or set "
                       "locks=dram",
                       lock_count(params, topology), topology->chip_bytes);
    }
    return 0;
}

/* Leaves may be down to half full after splits; every client keeps a few inner nodes ready. */
static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    const struct sherman_params *params = values;
    struct node_layout layout = layout_for(params, shape, IX_VERSIONS_LINES);
    double fill = params->fill < 0.5 ? params->fill : 0.5;
    double leaf_keys = fill * layout.leaf_cap < 1 ? 1 : fill * layout.leaf_cap;
    double inner_keys = fill * layout.inner.cap < 2 ? 2 : fill * layout.inner.cap;
    double leaves = (double)keys / leaf_keys + 2;
    double nodes = leaves * inner_keys / (inner_keys - 1) + IX_NODE_LEVELS + 6.0 * shape->topology->clients;
    uint64_t locks = sizeof(uint64_t) * (uint64_t)lock_count(params, shape->topology);
    double mns = shape->topology->mns;
    double blocks = params->values == SHERMAN_VALUES_INLINE
                        ? 0
                        : ix_indirect_memory(shape->value_bytes, keys, shape->topology) / mns;
    return DM_RESERVED_BYTES + locks + (uint64_t)(nodes / mns + 1) * layout.node_bytes + (uint64_t)blocks;
}

/* ---- remote memory ---------------------------------------------------------------------------------------------- */

static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct sherman_params *params = values;
    struct node_layout layout = layout_for(params, shape, IX_VERSIONS_LINES);
    uint64_t *bases = dm_local_alloc(ctx, sizeof(*bases) * SHERMAN_MNS_MAX);
    char *wire = dm_local_alloc(ctx, layout.node_bytes);
    char *image = calloc(1, layout.image_bytes);
    if (!bases || !wire || !image) {
        free(image);
        return dm_fail(err, DM_ERR_NO_MEMORY, "sherman: out of local memory while formatting");
    }
    int rc = 0;
    for (unsigned mn = 0; mn < shape->topology->mns && rc == 0; mn++) {
        dm_addr base;
        rc = ix_locks_format(ctx, mn, lock_place(params, shape->topology), lock_count(params, shape->topology), &base);
        if (rc < 0) {
            dm_fail(err, rc, "sherman: no room for %u locks on memory node %u", lock_count(params, shape->topology),
                    mn);
            goto out;
        }
        bases[mn] = base.bits;
    }
    dm_addr root;
    rc = dm_alloc(ctx, 0, layout.node_bytes, DM_LINE, DM_MEM_LEAF, &root);
    if (rc < 0) {
        dm_fail(err, rc, "sherman: no room for the first leaf on memory node 0");
        goto out;
    }
    leaf_init(&layout, image, 0, IX_NODE_INFINITY, DM_NULL);
    leaf_refresh(&layout, image, 0);
    ix_lines_encode(image, layout.node_bytes, 0, wire);
    dm_post_write(ctx, root, wire, layout.node_bytes);
    dm_post_write(ctx, dm_addr_make(0, DM_DRAM, SHERMAN_LOCKS_OFFSET), bases, sizeof(*bases) * SHERMAN_MNS_MAX);
    rc = dm_commit(ctx);
    bases[0] = ix_tree_root_word(root, 0);
    rc = rc < 0 ? rc : dm_write(ctx, ix_tree_root_place(), bases, sizeof(*bases));
    if (rc < 0) {
        dm_fail(err, rc, "sherman: cannot write the empty tree: %s", dm_code_text(rc));
    }
out:
    free(image);
    return rc;
}

/* ---- compute nodes ---------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct sherman_cn *cn = handle;
    if (cn) {
        ix_cache_close(cn->tree.cache);
        ix_locks_close(cn->locks);
        free(cn);
    }
}

static int cn_open_parts(struct dm_ctx *ctx, struct sherman_cn *cn) {
    const struct sherman_params *params = cn->params;
    char *page = dm_local_alloc(ctx, DM_RESERVED_BYTES);
    if (!page) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(dm_read(ctx, ix_tree_root_place(), page + IX_TREE_ROOT_OFFSET, DM_RESERVED_BYTES - IX_TREE_ROOT_OFFSET));
    uint64_t root;
    dm_addr bases[SHERMAN_MNS_MAX];
    memcpy(&root, page + IX_TREE_ROOT_OFFSET, sizeof(root));
    memcpy(bases, page + SHERMAN_LOCKS_OFFSET, sizeof(bases));
    atomic_init(&cn->tree.root, root);
    struct ix_lock_config locks = {
        .count = lock_count(params, cn->shape->topology),
        .local = params->local_locks,
        .hand_over = params->hand_over,
        .hand_over_max = (uint32_t)params->hand_over_max,
    };
    cn->locks = ix_locks_open(&locks, bases, cn->shape->topology->mns);
    if (!cn->locks) {
        return DM_ERR_NO_MEMORY;
    }
    struct ix_cache_config cache = {
        .bytes = params->cache_levels > 0 ? cn->shape->cache_bytes : 0,
        .copy_bytes = ix_tree_copy_bytes(&cn->layout.inner),
        .threads = dm_thread_count(dm_fabric_of(ctx), dm_node(ctx)),
    };
    return ix_cache_open(&cache, &cn->tree.cache);
}

static int open_cn(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, void **out,
                   struct dm_err *err) {
    const struct sherman_params *params = values;
    *out = NULL;
    struct sherman_cn *cn = calloc(1, sizeof(*cn));
    if (!cn) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "sherman: out of memory on compute node %u", dm_node(ctx));
    }
    cn->params = params;
    cn->shape = shape;
    cn->layout = layout_for(params, shape, (enum ix_versions)params->versions);
    cn->tree.inner = cn->layout.inner;
    cn->tree.alloc_bytes = cn->layout.node_bytes;
    cn->tree.cache_levels = params->cache_levels;
    cn->tree.combine = params->combine;
    uint32_t batch = SCAN_BATCH_BYTES / cn->layout.node_bytes;
    cn->scan_batch = batch < 2 ? 2 : batch > SHERMAN_SCAN_BATCH_MAX ? SHERMAN_SCAN_BATCH_MAX : batch;
    cn->scan_words = (cn->scan_batch + 1) * cn->layout.leaf_cap;
    int rc = cn_open_parts(ctx, cn);
    if (rc < 0) {
        close_cn(cn);
        return dm_fail(err, rc, "sherman: cannot open on compute node %u: %s", dm_node(ctx), dm_code_text(rc));
    }
    *out = cn;
    return 0;
}

static uint64_t cache_bytes(const void *handle) {
    const struct sherman_cn *cn = handle;
    return ix_cache_used(cn->tree.cache);
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static void detach(void *handle) {
    struct sherman_client *client = handle;
    if (client) {
        ix_tree_release(&client->tree);
        ix_indirect_close(client->indirect);
        free(client->found);
        free(client->tree.image);
        free(client);
    }
}

/* What indirect values need. */
static int values_open(struct sherman_client *client) {
    const struct sherman_cn *cn = client->cn;
    if (cn->params->values == SHERMAN_VALUES_INLINE) {
        return 0;
    }
    client->found = calloc(cn->scan_words, sizeof(*client->found));
    int rc = ix_indirect_open(client->ctx, cn->shape->value_bytes, cn->params->values == SHERMAN_VALUES_INDIRECT,
                              &client->indirect);
    return client->found ? rc : DM_ERR_NO_MEMORY;
}

static int attach(void *handle, struct dm_ctx *ctx, void **out, struct dm_err *err) {
    struct sherman_cn *cn = handle;
    const struct node_layout *layout = &cn->layout;
    *out = NULL;
    struct sherman_client *client = calloc(1, sizeof(*client));
    uint32_t wire_bytes = layout->node_bytes;
    uint32_t image_bytes = (layout->image_bytes + 7) / 8 * 8;
    uint64_t *words = dm_local_alloc(ctx, WORDS * (uint32_t)sizeof(*words) + (2 + cn->scan_batch) * wire_bytes);
    char *images = calloc(1, 3 * (size_t)image_bytes + layout->leaf_cap * sizeof(uint16_t));
    if (!client || !words || !images) {
        free(images);
        free(client);
        return dm_fail(err, DM_ERR_NO_MEMORY, "sherman: out of memory for a client of compute node %u", dm_node(ctx));
    }
    client->cn = cn;
    client->ctx = ctx;
    client->zero = words;
    client->tree = (struct ix_tree){
        .cn = &cn->tree,
        .ctx = ctx,
        .hooks = &sherman_hooks,
        .counts = client->counts,
        .thread = dm_thread(ctx),
        .old = words + 1,
        .root = words + 2,
        .wire = (char *)(words + WORDS),
        .wire_right = (char *)(words + WORDS) + wire_bytes,
        .image = images,
        .image_right = images + image_bytes,
    };
    client->batch = client->tree.wire_right + wire_bytes;
    client->scratch = images + 2 * image_bytes;
    client->order = (uint16_t *)(void *)(images + 3 * (size_t)image_bytes);
    int rc = values_open(client);
    if (rc < 0) {
        detach(client);
        return dm_fail(err, rc, "sherman: out of memory for a client of compute node %u", dm_node(ctx));
    }
    *out = client;
    return 0;
}

static const uint64_t *count(const void *handle) {
    const struct sherman_client *client = handle;
    return client->counts;
}

static const struct ix_wrong wrong_values[] = {
    {"versions", "bookend", 2000, "a read whose first and last line agree mixes two writes of the lines between"},
    {"versions", "none", 20, "a read mixes two writes of one node"},
    {"torn", "absent", 40, "an entry that is being written is taken as not there"},
    {"values", "unchecked", 400, "a block that has been used again is taken for what it was"},
    {.param = NULL},
};

const struct ix_ops ix_ops_sherman = {
    .name = "sherman",
    .summary = "B-link tree with on-chip hierarchical locks and versioned lines; one-sided verbs only",
    .paper = "Q. Wang, Y. Lu, J. Shu: Sherman: A Write-Optimized Distributed B+Tree Index on Disaggregated Memory. "
             "SIGMOD 2022",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT,
    .params = params_table,
    .params_bytes = sizeof(struct sherman_params),
    .counters = counter_names,
    .rare_events = RARE_EVENTS,
    .wrong = wrong_values,
    .check = check,
    .memory_needed = memory_needed,
    .format = format,
    .open = open_cn,
    .close = close_cn,
    .load = sherman_load,
    .attach = attach,
    .detach = detach,
    .get = sherman_get,
    .insert = sherman_insert,
    .update = sherman_update,
    .remove = sherman_remove,
    .scan = sherman_scan,
    .count = count,
    .cache_bytes = cache_bytes,
    .verify = sherman_verify,
};
