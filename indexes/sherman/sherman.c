/* SPDX-License-Identifier: Apache-2.0
 *
 * Sherman's table: parameters, checks, and the life of its parts on remote memory, compute nodes and clients.
 */
#include "sherman.h"

enum {
    NODE_BYTES_MAX = 131072, /* that a span may lead to */
};

static const char *const lock_choices[] = {"auto", "chip", "dram", "node", NULL};
static const char *const version_choices[] = {"lines", "bookend", "none", NULL};
static const char *const find_choices[] = {"levels", "list", NULL};
static const char *const torn_choices[] = {"retry", "absent", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct sherman_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(node_bytes, DM_OPT_BYTES, .initial = "1024", .min = 128, .max = 16384,
        .help = "Size of a node in remote memory, a multiple of 64."),
    ROW(span, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1024, .unit = "entries",
        .help = "Entries of a leaf, whatever their size: node_bytes follows from it; 0: as many as node_bytes holds."),
    ROW(fill, DM_OPT_REAL, .initial = "0.69", .min = 0.1, .max = 1,
        .help = "Share of a node's entries that bulk load fills."),
    ROW(locks, DM_OPT_ENUM, .initial = "auto", .choices = lock_choices,
        .help =
            "Where lock words are: in a table in on-chip memory, in one in DRAM, on-chip where there is any, or behind "
            "each node (CHIME's Sherman)."),
    ROW(lock_count, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1048576, .unit = "locks",
        .help = "Lock words a memory node; 0: all of the on-chip memory, or 16384 in DRAM."),
    ROW(local_locks, DM_OPT_BOOL, .initial = "on",
        .help = "Contexts of a compute node queue locally before one of them tries the remote lock."),
    ROW(hand_over, DM_OPT_BOOL, .initial = "on",
        .help = "A held lock is passed on within a compute node; not with locks=node."),
    ROW(hand_over_max, DM_OPT_COUNT, .initial = "4", .min = 1, .max = 1000000,
        .help = "Hand-overs in a row before other compute nodes get a chance."),
    ROW(back_off, DM_OPT_BOOL, .initial = "on",
        .help = "A lock that was refused 256 times is tried again after a pause; off: at once, however often."),
    ROW(combine, DM_OPT_BOOL, .initial = "on", .help = "The write-back and the unlock go with one doorbell."),
    ROW(versions, DM_OPT_ENUM, .initial = "lines", .choices = version_choices,
        .help = "Versions that readers compare: of every line, or (wrong) of the first and last line, or none."),
    ROW(torn, DM_OPT_ENUM, .initial = "retry", .choices = torn_choices,
        .help = "What a half-written entry means: read again, or (wrong) absent."),
    ROW(values, DM_OPT_ENUM, .initial = "inline", .choices = ix_values_choices, .help = IX_VALUES_HELP),
    ROW(fetch, DM_OPT_ENUM, .initial = "batch", .choices = ix_fetch_choices, .help = IX_FETCH_HELP),
    ROW(cache_levels, DM_OPT_COUNT, .initial = "16", .min = 0, .max = 16, .unit = "levels",
        .help = "Levels of inner nodes that may be cached, counted from the root."),
    ROW(cache_find, DM_OPT_ENUM, .initial = "levels", .choices = find_choices, .added = true,
        .help =
            "How a client finds the cached parent of a leaf: level by level, or as the authors' program by a skip list "
            "of all of them, which is client work alone."),
    ROW(list_nodes, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1000000000, .unit = "nodes", .added = true,
        .help =
            "With cache_find=list: nodes of the list whose search is charged, where a run has fewer keys than what it "
            "stands for; 0: as many as are cached."),
    DM_OPT_END,
};

static const struct ix_counter counters[] = {SHERMAN_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

static struct ix_btree_config config_of(const struct sherman_params *params, const struct ix_shape *shape) {
    struct ix_btree_config config = {
        .policy = &sherman_locking,
        .format = &ix_format_lines,
        .node_bytes = params->node_bytes,
        .span = (uint32_t)params->span,
        .word_behind = params->locks == SHERMAN_LOCKS_NODE,
        .entry_versions = true,
        .versions = params->versions,
        .torn_is_absent = params->torn == SHERMAN_TORN_ABSENT,
        .values = params->values,
        .fetch = params->fetch,
        .fill = params->fill,
        .cache_levels = params->cache_levels,
        .cache_list = params->cache_find == SHERMAN_FIND_LIST,
        .list_nodes = params->list_nodes,
        .combine = params->combine,
    };
    if (params->span > 0) {
        uint32_t stored = ix_values_stored((enum ix_values)params->values, shape->value_bytes);
        config.node_bytes = ix_btree_node_bytes(&config, params->span, ix_key_bytes(shape), stored);
    }
    return config;
}

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct sherman_params *params = values;
    struct ix_btree_config config = config_of(params, shape);
    if (config.node_bytes > NODE_BYTES_MAX) {
        return dm_fail(err, DM_ERR_INVALID,
                       "span %llu with keys of %u and values of %u bytes needs nodes of %llu bytes; they must have %d "
                       "at most",
                       (unsigned long long)params->span, ix_key_bytes(shape), shape->value_bytes,
                       (unsigned long long)config.node_bytes, NODE_BYTES_MAX);
    }
    if (params->list_nodes > 0 && params->cache_find != SHERMAN_FIND_LIST) {
        return dm_fail(err, DM_ERR_INVALID, "list_nodes: no list is searched without cache_find=list");
    }
    if (params->span > 0 && params->span < IX_BTREE_CAP_MIN) {
        return dm_fail(err, DM_ERR_INVALID, "span %llu: a leaf must hold %d entries", (unsigned long long)params->span,
                       IX_BTREE_CAP_MIN);
    }
    DM_TRY(ix_btree_check(&config, shape, err));
    return sherman_locks_check(params, shape->topology, err);
}

static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    const struct sherman_params *params = values;
    struct ix_btree_config config = config_of(params, shape);
    return ix_btree_memory_needed(&config, shape, keys) + sherman_locks_bytes(params, shape->topology);
}

static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    struct ix_btree_config config = config_of(values, shape);
    DM_TRY(sherman_locks_format(ctx, values, shape->topology, err));
    return ix_btree_format(&config, ctx, shape, err);
}

/* ---- compute nodes ----------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct sherman_cn *cn = handle;
    ix_btree_close(&cn->btree);
    ix_locks_close(cn->locks);
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct sherman_cn *cn = handle;
    struct ix_btree_config config = config_of(values, shape);
    (void)err;
    cn->params = values;
    DM_TRY(ix_btree_open(&cn->btree, &config, ctx, cn, shape));
    return sherman_locks_open(cn, ctx);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct sherman_client *client = handle;
    struct ix_btree_counts counts = {
        .tree = &client->counts[SHERMAN_LEAF_SPLIT],
        .cache = &client->counts[SHERMAN_CACHE_HIT],
        .torn = &client->counts[SHERMAN_TORN_ENTRY],
        .reused = &client->counts[SHERMAN_BLOCK_REUSED],
    };
    (void)err;
    client->cn = cn_handle;
    return ix_btree_attach(&client->btree, &client->cn->btree, ctx, client, &counts);
}

static uint64_t cache_entry_bytes(const void *handle) {
    const struct sherman_cn *cn = handle;
    return ix_tree_cache_entry_bytes(&cn->btree.tree);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

IX_BTREE_READ_HOOKS(struct sherman_cn, struct sherman_client)
IX_BTREE_WRITE_HOOKS(struct sherman_client)

static const struct ix_wrong wrong_values[] = {
    {"versions", "bookend", 2000, "a read whose first and last line agree mixes two writes of the lines between"},
    {"versions", "none", 40, "a read mixes two writes of one node"},
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
    .key_bytes_max = IX_KEY_BYTES_MAX,
    .cn_bytes = sizeof(struct sherman_cn),
    .client_bytes = sizeof(struct sherman_client),
    .check = check,
    .memory_needed = memory_needed,
    .format = format,
    .open = open_cn,
    .close = close_cn,
    .load = load,
    .attach = attach,
    .detach = detach,
    .get = get,
    .insert = insert,
    .update = update,
    .remove = remove_key,
    .scan = scan,
    .cache_bytes = cache_bytes,
    .cache_entry_bytes = cache_entry_bytes,
    .verify = verify,
};
