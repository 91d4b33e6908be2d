/* SPDX-License-Identifier: Apache-2.0
 *
 * FG, the fine-grained B-link tree: a tree of shared/btree.h whose nodes carry one word that is version and lock.
 */
#include "fg.h"

static const char *const version_choices[] = {"lines", "bookend", "none", NULL};
static const char *const upgrade_choices[] = {"version", "blind", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct fg_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(node_bytes, DM_OPT_BYTES, .initial = "1024", .min = 128, .max = 16384,
        .help = "Size of a node in remote memory, a multiple of 64."),
    ROW(fill, DM_OPT_REAL, .initial = "0.8", .min = 0.1, .max = 1,
        .help = "Share of a node's entries that bulk load fills."),
    ROW(cache_levels, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 16, .unit = "levels",
        .help = "Levels of inner nodes that may be cached, counted from the root; 0: no cache, as published."),
    ROW(combine, DM_OPT_BOOL, .initial = "off", .help = "The write-back and the unlock go with one doorbell."),
    ROW(versions, DM_OPT_ENUM, .initial = "lines", .choices = version_choices,
        .help = "What readers compare beside the lock word: the versions of all lines, or (wrong) of the first and "
                "last line, or none."),
    ROW(upgrade, DM_OPT_ENUM, .initial = "version", .choices = upgrade_choices,
        .help = "A writer locks the version that it has read, or (wrong) whatever version the node has by then."),
    ROW(values, DM_OPT_ENUM, .initial = "inline", .choices = ix_values_choices, .help = IX_VALUES_HELP),
    ROW(fetch, DM_OPT_ENUM, .initial = "batch", .choices = ix_fetch_choices, .help = IX_FETCH_HELP),
    DM_OPT_END,
};

static const struct ix_counter counters[] = {FG_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

/* ---- known to be wrong: a writer that locks without looking at the version it has read --------------------------- */

static int blind_upgrade(struct ix_tree *tree, dm_addr addr, uint32_t *attempts) {
    for (;;) {
        int rc = ix_optimistic_upgrade(tree, addr, attempts);
        if (rc != IX_TREE_AGAIN || ix_optimistic_is_locked(*tree->old)) {
            return rc;
        }
        ix_node_set_word(tree->wire, *tree->old);
    }
}

static const struct ix_tree_policy blind = {
    .upgrade = blind_upgrade,
    .commit_unlock = ix_optimistic_commit_unlock,
    .unlock = ix_optimistic_unlock,
    .lock_word = ix_optimistic_lock_word,
    .is_locked = ix_optimistic_is_locked,
};

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static struct ix_btree_config config_of(const struct fg_params *params) {
    return (struct ix_btree_config){
        .policy = params->upgrade == FG_UPGRADE_BLIND ? &blind : &ix_tree_optimistic,
        .format = &ix_format_word,
        .node_bytes = params->node_bytes,
        .sorted = true,
        .versions = params->versions,
        .values = params->values,
        .fetch = params->fetch,
        .fill = params->fill,
        .cache_levels = params->cache_levels,
        .combine = params->combine,
    };
}

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    struct ix_btree_config config = config_of(values);
    return ix_btree_check(&config, shape, err);
}

static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    struct ix_btree_config config = config_of(values);
    return ix_btree_memory_needed(&config, shape, keys);
}

static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    struct ix_btree_config config = config_of(values);
    return ix_btree_format(&config, ctx, shape, err);
}

/* ---- compute nodes ----------------------------------------------------------------------------------------------- */

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct fg_cn *cn = handle;
    struct ix_btree_config config = config_of(values);
    (void)err;
    return ix_btree_open(&cn->btree, &config, ctx, NULL, shape);
}

static void close_cn(void *handle) {
    struct fg_cn *cn = handle;
    ix_btree_close(&cn->btree);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct fg_client *client = handle;
    struct fg_cn *cn = cn_handle;
    struct ix_btree_counts counts = {
        .tree = &client->counts[FG_LEAF_SPLIT],
        .cache = &client->counts[FG_CACHE_HIT],
        .reused = &client->counts[FG_BLOCK_REUSED],
    };
    (void)err;
    return ix_btree_attach(&client->btree, &cn->btree, ctx, client, &counts);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

IX_BTREE_READ_HOOKS(struct fg_cn, struct fg_client)
IX_BTREE_WRITE_HOOKS(struct fg_client)

static const struct ix_wrong wrong_values[] = {
    {"versions", "bookend", 2000, "a read whose first and last line agree mixes two writes of the lines between"},
    {"versions", "none", 40, "a read mixes two writes of one node: the lock word is in the first line alone"},
    {"upgrade", "blind", 40, "a writer writes back a node that another client has changed since it was read"},
    {"values", "unchecked", 400, "a block that has been reused is taken for the value that it held before"},
    {.param = NULL},
};

static const struct ix_setting tiny[] = {{"node_bytes", "128"}, {.param = NULL}};

const struct ix_ops ix_ops_fg = {
    .name = "fg",
    .summary = "B-link tree spread over memory nodes, a version and lock word a node; one-sided verbs only",
    .paper = "T. Ziegler, S. Tumkur Vani, C. Binnig, R. Fonseca, T. Kraska: Designing Distributed Tree-based Index "
             "Structures for Fast RDMA-capable Networks. SIGMOD 2019",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT,
    .params = params_table,
    .params_bytes = sizeof(struct fg_params),
    .counters = counters,
    .counts_offset = offsetof(struct fg_client, counts),
    .wrong = wrong_values,
    .tiny = tiny,
    .key_bytes_max = IX_KEY_BYTES_MAX,
    .cn_bytes = sizeof(struct fg_cn),
    .client_bytes = sizeof(struct fg_client),
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
    .verify = verify,
};
