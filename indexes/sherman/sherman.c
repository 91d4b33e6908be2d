/* SPDX-License-Identifier: Apache-2.0
 *
 * Sherman's table: parameters, checks, and the life of its parts on remote memory, compute nodes and clients.
 */
#include "sherman.h"

#include <stdlib.h>

enum {
    NODE_BYTES_MAX = 131072, /* that a span may lead to */
    LOCKS_IN_DRAM = 16384,   /* lock words a memory node when they are not limited by on-chip memory */
};

static const char *const lock_places[] = {"auto", "chip", "dram", NULL};
static const char *const version_modes[] = {"lines", "bookend", "none", NULL};
static const char *const torn_modes[] = {"retry", "absent", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct sherman_params, member, __VA_ARGS__)

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
    ROW(values, DM_OPT_ENUM, .initial = "inline", .choices = ix_values_choices, .help = IX_VALUES_HELP),
    ROW(cache_levels, DM_OPT_COUNT, .initial = "16", .min = 0, .max = 16, .unit = "levels",
        .help = "Levels of inner nodes that may be cached, counted from the root."),
    DM_OPT_END,
};

static const struct ix_counter counters[] = {SHERMAN_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

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
    return ix_values_stored(params->values, shape->value_bytes);
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
        return dm_fail(err, DM_ERR_INVALID, "node_bytes %llu is not a multiple of %d",
                       (unsigned long long)params->node_bytes, DM_LINE);
    }
    DM_TRY(ix_values_check(params->values, shape->value_bytes, err));
    if (node_bytes(params, shape) > NODE_BYTES_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "span %llu with values of %u bytes needs nodes of %llu bytes, more than %d",
                       (unsigned long long)params->span, shape->value_bytes,
                       (unsigned long long)node_bytes(params, shape), NODE_BYTES_MAX);
    }
    if (params->span > 0 && params->span < NODE_CAP_MIN) {
        return dm_fail(err, DM_ERR_INVALID, "span %llu: a leaf must hold %d entries", (unsigned long long)params->span,
                       NODE_CAP_MIN);
    }
    if (node_bytes_min(stored_bytes(params, shape)) > node_bytes(params, shape)) {
        return dm_fail(err, DM_ERR_INVALID,
                       "a leaf must hold %d entries: with node_bytes %llu values may have up to %u bytes, and "
                       "values of %u bytes need node_bytes %u",
                       NODE_CAP_MIN, (unsigned long long)params->node_bytes,
                       node_value_max((uint32_t)params->node_bytes), shape->value_bytes,
                       node_bytes_min(shape->value_bytes));
    }
    if (lock_place(params, topology) == IX_LOCK_CHIP &&
        (lock_count(params, topology) == 0 ||
         (uint64_t)lock_count(params, topology) * sizeof(uint64_t) > topology->chip_bytes)) {
        return dm_fail(err, DM_ERR_INVALID,
                       "%u locks of 8 bytes do not fit %u bytes of on-chip memory; lower lock_count or set "
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
    double blocks = ix_indirect_memory(params->values, shape->value_bytes, keys, shape->topology) / mns;
    return DM_RESERVED_BYTES + locks + (uint64_t)(nodes / mns + 1) * layout.node_bytes + (uint64_t)blocks;
}

/* ---- remote memory ---------------------------------------------------------------------------------------------- */

static dm_addr locks_place(void) {
    return dm_addr_make(0, DM_DRAM, SHERMAN_LOCKS_OFFSET);
}

/* Makes the lock tables and writes down where they are. */
static int locks_format(struct dm_ctx *ctx, const struct sherman_params *params, const struct dm_topology *topology,
                        struct dm_err *err) {
    dm_addr *bases = dm_local_alloc(ctx, sizeof(*bases) * DM_MNS_MAX);
    if (!bases) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of local memory while formatting");
    }
    for (unsigned mn = 0; mn < topology->mns; mn++) {
        int rc = ix_locks_format(ctx, mn, lock_place(params, topology), lock_count(params, topology), &bases[mn]);
        if (rc < 0) {
            return dm_fail(err, rc, "no room for %u locks on memory node %u", lock_count(params, topology), mn);
        }
    }
    int rc = dm_write(ctx, locks_place(), bases, sizeof(*bases) * DM_MNS_MAX);
    return rc < 0 ? dm_fail(err, rc, "cannot write where the locks are: %s", dm_code_text(rc)) : 0;
}

static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    struct node_layout layout = layout_for(values, shape, IX_VERSIONS_LINES);
    char *image = calloc(1, layout.image_bytes);
    char *wire = dm_local_alloc(ctx, layout.node_bytes);
    if (!image || !wire) {
        free(image);
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory while formatting");
    }
    leaf_init(&layout, image, 0, IX_NODE_INFINITY, DM_NULL);
    leaf_refresh(&layout, image, 0);
    ix_lines_encode(image, layout.node_bytes, 0, wire);
    struct ix_tree_leaf leaf = {wire, layout.node_bytes, layout.node_bytes};
    int rc = locks_format(ctx, values, shape->topology, err);
    rc = rc < 0 ? rc : ix_tree_format(ctx, &leaf, err);
    free(image);
    return rc;
}

/* ---- compute nodes ---------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct sherman_cn *cn = handle;
    ix_tree_close(&cn->tree);
    ix_locks_close(cn->locks);
}

/* Reads where the lock tables are and opens this node's side of them. */
static int locks_open(struct sherman_cn *cn, struct dm_ctx *ctx) {
    const struct sherman_params *params = cn->params;
    const struct dm_topology *topology = cn->shape->topology;
    dm_addr *bases = dm_local_alloc(ctx, sizeof(*bases) * DM_MNS_MAX);
    if (!bases) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(dm_read(ctx, locks_place(), bases, sizeof(*bases) * DM_MNS_MAX));
    struct ix_lock_config locks = {
        .count = lock_count(params, topology),
        .local = params->local_locks,
        .hand_over = params->hand_over,
        .hand_over_max = (uint32_t)params->hand_over_max,
    };
    cn->locks = ix_locks_open(&locks, bases, topology->mns);
    return cn->locks ? 0 : DM_ERR_NO_MEMORY;
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct sherman_cn *cn = handle;
    const struct sherman_params *params = values;
    (void)err;
    cn->params = params;
    cn->shape = shape;
    cn->layout = layout_for(params, shape, (enum ix_versions)params->versions);
    cn->tree.policy = &sherman_locking;
    cn->tree.owner = cn;
    cn->tree.inner = cn->layout.inner;
    cn->tree.alloc_bytes = cn->layout.node_bytes;
    cn->tree.cache_levels = params->cache_levels;
    cn->tree.combine = params->combine;
    cn->tree.leaf_bytes = cn->layout.node_bytes;
    cn->tree.leaf_cap = cn->layout.leaf_cap;
    cn->tree.fill = params->fill;
    DM_TRY(locks_open(cn, ctx));
    return ix_tree_open(&cn->tree, ctx, shape->cache_bytes);
}

static uint64_t cache_bytes(const void *handle) {
    const struct sherman_cn *cn = handle;
    return ix_cache_used(cn->tree.cache);
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static void detach(void *handle) {
    struct sherman_client *client = handle;
    ix_tree_detach(&client->tree);
    ix_indirect_close(client->indirect);
    free(client->scratch);
}

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct sherman_client *client = handle;
    struct sherman_cn *cn = cn_handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    DM_TRY(ix_tree_attach(&client->tree, &cn->tree, ctx, client, client->counts, client->counts + SHERMAN_CACHE_HIT));
    client->scratch = calloc(1, cn->layout.image_bytes);
    if (!client->scratch) {
        return DM_ERR_NO_MEMORY;
    }
    *client->tree.own = 0; /* what an unlock writes */
    struct ix_indirect_config values = {
        .values = cn->params->values,
        .value_bytes = cn->shape->value_bytes,
        .found_max = (cn->tree.scan_batch + 1) * cn->layout.leaf_cap,
        .gone = &client->counts[SHERMAN_BLOCK_GONE],
    };
    return ix_indirect_open(ctx, &values, &client->indirect);
}

static const struct ix_wrong wrong_values[] = {
    {"versions", "bookend", 2000, "a read whose first and last line agree mixes two writes of the lines between"},
    {"versions", "none", 20, "a read mixes two writes of one node"},
    {"torn", "absent", 40, "an entry that is being written is taken as not there"},
    {"values", "unchecked", 400, "a block that has been used again is taken for what it was"},
    {.param = NULL},
};

static const struct ix_setting tiny[] = {{"node_bytes", "128"}, {.param = NULL}};

const struct ix_ops ix_ops_sherman = {
    .name = "sherman",
    .summary = "B-link tree with on-chip hierarchical locks and versioned lines; one-sided verbs only",
    .paper = "Q. Wang, Y. Lu, J. Shu: Sherman: A Write-Optimized Distributed B+Tree Index on Disaggregated Memory. "
             "SIGMOD 2022",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT,
    .params = params_table,
    .params_bytes = sizeof(struct sherman_params),
    .counters = counters,
    .counts_offset = offsetof(struct sherman_client, counts),
    .wrong = wrong_values,
    .tiny = tiny,
    .cn_bytes = sizeof(struct sherman_cn),
    .client_bytes = sizeof(struct sherman_client),
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
    .cache_bytes = cache_bytes,
    .verify = sherman_verify,
};
