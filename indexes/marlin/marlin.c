/* SPDX-License-Identifier: Apache-2.0
 *
 * Marlin's table: parameters, checks, and the life of its parts on remote memory, compute nodes and clients.
 */
#include "marlin.h"

static const char *const lock_choices[] = {"node", "chip", NULL};
static const char *const release_choices[] = {"behind", "waited", NULL};
static const char *const share_choices[] = {"before", "behind", NULL};
static const char *const split_choices[] = {"fresh", "early", NULL};
static const char *const insert_choices[] = {"checked", "published", NULL};
static const char *const pointer_choices[] = {"checked", "overtaken", "blind", NULL};
static const char *const block_choices[] = {"checked", "unchecked", NULL};
static const char *const version_choices[] = {"lines", "bookend", "none", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct marlin_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(span, DM_OPT_COUNT, .initial = "64", .min = IX_BTREE_CAP_MIN, .max = IX_LEAF_CAP_MAX, .unit = "entries",
        .help = "Entries of a leaf, and at least so many children of an inner node."),
    ROW(fill, DM_OPT_REAL, .initial = "0.8", .min = 0.1, .max = 1,
        .help = "Share of a node's entries that bulk load fills."),
    ROW(locks, DM_OPT_ENUM, .initial = "node", .choices = lock_choices,
        .help = "Where lock words are: in their nodes, or in on-chip memory, where nodes share them by hash."),
    ROW(lock_count, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1048576, .unit = "locks",
        .help = "Lock words a memory node on chip; 0: all of that memory."),
    ROW(combine, DM_OPT_BOOL, .initial = "off",
        .help = "An update sends its block and the compare-and-swap of the pointer with one doorbell."),
    ROW(release, DM_OPT_ENUM, .initial = "behind", .choices = release_choices,
        .help = "A share that nothing depends on is given back without waiting, or is waited for."),
    ROW(merge, DM_OPT_BOOL, .initial = "on",
        .help = "A leaf that deletes have emptied is merged with its right neighbour."),
    ROW(share, DM_OPT_ENUM, .initial = "before", .choices = share_choices,
        .help = "A write takes its share before it reads the leaf, or (wrong, as published) behind that."),
    ROW(split, DM_OPT_ENUM, .initial = "fresh", .choices = split_choices,
        .help =
            "A split uses the leaf as it is when the last share is gone, or (wrong, as published) as it was before."),
    ROW(insert, DM_OPT_ENUM, .initial = "checked", .choices = insert_choices,
        .help =
            "An insert claims an entry and looks for others of its key, or (wrong, as published) writes the pointer "
            "and then the key."),
    ROW(pointer, DM_OPT_ENUM, .initial = "checked", .choices = pointer_choices,
        .help =
            "A refused compare-and-swap is tried again if the entry is still the key's, or an update counts as done "
            "just before the write that was first, or (wrong, as published) it is tried again in any case."),
    ROW(blocks, DM_OPT_ENUM, .initial = "checked", .choices = block_choices,
        .help = "Readers check whether a block is still the one, or (wrong, as published) take what it holds."),
    ROW(versions, DM_OPT_ENUM, .initial = "lines", .choices = version_choices,
        .help = "Versions that readers compare: of every line, or (wrong, as published) of the first and last line, or "
                "none."),
    ROW(fetch, DM_OPT_ENUM, .initial = "batch", .choices = ix_fetch_choices, .help = IX_FETCH_HELP),
    ROW(cache_levels, DM_OPT_COUNT, .initial = "16", .min = 0, .max = 16, .unit = "levels",
        .help = "Levels of inner nodes that may be cached, counted from the root."),
    DM_OPT_END,
};

static const struct ix_counter counters[] = {MARLIN_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

static struct ix_btree_config config_of(const struct marlin_params *params) {
    return (struct ix_btree_config){
        .policy = &marlin_locking,
        .format = &ix_format_word,
        .leaf_format = &marlin_leaf_format,
        .pointers = (uint32_t)params->span,
        .node_bytes = marlin_node_bytes(params->span),
        .versions = params->versions,
        .values = params->blocks == MARLIN_BLOCKS_CHECKED ? IX_VALUES_COMPACT : IX_VALUES_COMPACT_UNCHECKED,
        .fetch = params->fetch,
        .fill = params->fill,
        .cache_levels = params->cache_levels,
        .combine = true,
        .unfinished = marlin_leaf_claims,
    };
}

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    DM_TRY(ix_values_check(IX_VALUES_COMPACT, shape->value_bytes, err));
    if (shape->topology->mn_bytes > IX_INDIRECT_COMPACT_MEMORY) {
        return dm_fail(err, DM_ERR_INVALID, "memory nodes of %llu bytes: pointers reach %llu of each",
                       (unsigned long long)shape->topology->mn_bytes, (unsigned long long)IX_INDIRECT_COMPACT_MEMORY);
    }
    return marlin_locks_check(values, shape->topology, err);
}

static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    struct ix_btree_config config = config_of(values);
    return ix_btree_memory_needed(&config, shape, keys) + marlin_locks_bytes(values, shape->topology);
}

static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    struct ix_btree_config config = config_of(values);
    DM_TRY(marlin_locks_format(ctx, values, shape->topology, err));
    return ix_btree_format(&config, ctx, shape, err);
}

/* ---- compute nodes ----------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct marlin_cn *cn = handle;
    ix_btree_close(&cn->btree);
    ix_locks_close(cn->locks);
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct marlin_cn *cn = handle;
    struct ix_btree_config config = config_of(values);
    (void)err;
    cn->params = values;
    DM_TRY(ix_btree_open(&cn->btree, &config, ctx, cn, shape));
    return marlin_locks_open(cn, ctx);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct marlin_client *client = handle;
    struct ix_btree_counts counts = {
        .tree = &client->counts[MARLIN_LEAF_SPLIT],
        .cache = &client->counts[MARLIN_CACHE_HIT],
        .reused = &client->counts[MARLIN_BLOCK_REUSED],
    };
    (void)err;
    client->cn = cn_handle;
    client->ctx = ctx;
    client->wires = dm_local_alloc(ctx, sizeof(*client->wires));
    DM_TRY(ix_btree_attach(&client->btree, &client->cn->btree, ctx, client, &counts));
    return client->wires ? 0 : DM_ERR_NO_MEMORY;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

IX_BTREE_READ_HOOKS(struct marlin_cn, struct marlin_client)

static const struct ix_wrong wrong_values[] = {
    {"share", "behind", 2000, "a write changes an entry of the leaf as it was before a split, and the key is lost"},
    {"split", "early", 400, "a split writes back entries that other clients have changed since it read them"},
    {"insert", "published", 40, "a pointer is visible without its key, and one key is inserted twice"},
    {"pointer", "blind", 40, "an update revives a key that has been deleted, or writes into another key's entry"},
    {"blocks", "unchecked", 100, "a block that has been used again is taken for what it was"},
    {"versions", "bookend", 0, "a read whose first and last line agree mixes two writes of the lines between"},
    {"versions", "none", 2000, "a read mixes two writes of one node"},
    {.param = NULL},
};

static const struct ix_setting tiny[] = {{"span", "4"}, {.param = NULL}};

const struct ix_ops ix_ops_marlin = {
    .name = "marlin",
    .summary = "B-link tree of pointers to values; writes of a leaf run side by side under a ternary lock",
    .paper =
        "H. An, F. Wang, D. Feng, X. Zou, Z. Liu, J. Zhang: Marlin: A Concurrent and Write-Optimized B+-tree Index "
        "on Disaggregated Memory. ICPP 2023",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT,
    .params = params_table,
    .params_bytes = sizeof(struct marlin_params),
    .counters = counters,
    .counts_offset = offsetof(struct marlin_client, counts),
    .wrong = wrong_values,
    .tiny = tiny,
    .cn_bytes = sizeof(struct marlin_cn),
    .client_bytes = sizeof(struct marlin_client),
    .check = check,
    .memory_needed = memory_needed,
    .format = format,
    .open = open_cn,
    .close = close_cn,
    .load = load,
    .attach = attach,
    .detach = detach,
    .get = get,
    .insert = marlin_insert,
    .update = marlin_update,
    .remove = marlin_remove,
    .scan = scan,
    .cache_bytes = cache_bytes,
    .verify = verify,
};
