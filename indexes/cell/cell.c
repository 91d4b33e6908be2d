/* SPDX-License-Identifier: Apache-2.0
 *
 * Cell's table: parameters, checks, and the life cycle of compute nodes and clients.
 */
#include "client.h"
#include "indexes/shared/fill.h"
#include "mn.h"

enum { SCAN_BATCH_BYTES = 16384 };

static const char *const reads_choices[] = {"client", "server", NULL};
static const char *const stale_choices[] = {"link", "call", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct cell_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(slots, DM_OPT_COUNT, .initial = "16", .min = 4, .max = CELL_ENTRIES_MAX, .unit = "pairs",
        .help = "Pairs of a leaf."),
    ROW(fanout, DM_OPT_COUNT, .initial = "16", .min = 4, .max = CELL_ENTRIES_MAX, .unit = "children",
        .help = "Children of an inner node."),
    ROW(fill, DM_OPT_REAL, .initial = "0.5", .min = 0.1, .max = 1,
        .help = "Share of a leaf's slots that bulk load fills."),
    ROW(inner_fill, DM_OPT_REAL, .initial = "0.7", .min = 0.1, .max = 1,
        .help = "Share of an inner node's entries that bulk load fills; 0.7 of 16 makes 8 levels of 100 M keys."),
    ROW(cache_above, DM_OPT_COUNT, .initial = "4", .min = 1, .max = IX_CACHE_LEVELS, .unit = "levels",
        .help = "Compute nodes cache the nodes that are at least so many levels above the leaves."),
    ROW(inline_bytes, DM_OPT_BYTES, .initial = "64", .min = 8, .max = CELL_INLINE_MAX,
        .help = "Longest value that leaves hold, together with what keys have beyond 8 bytes; a longer one is in a "
                "block to which the leaf has a pointer."),
    ROW(reads, DM_OPT_ENUM, .initial = "client", .choices = reads_choices,
        .help = "Who walks the tree for a get: the client by READs, or the memory node by a call."),
    ROW(stale, DM_OPT_ENUM, .initial = "link", .choices = stale_choices,
        .help = "how a get continues at a node that was split: by its right link, or by a call."),
    ROW(fences, DM_OPT_BOOL, .initial = "on", .help = "Walks of gets compare the fences of nodes; off is wrong."),
    ROW(node_check, DM_OPT_BOOL, .initial = "on", .help = "Clients check that a node is consistent; off is wrong."),
    ROW(block_check, DM_OPT_BOOL, .initial = "on",
        .help = "Clients check that a block is consistent and of the key; off is wrong."),
    DM_OPT_END,
};

static const struct ix_counter counters[] = {CELL_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

static struct cell_layout layout_of(const struct cell_params *params, const struct ix_shape *shape) {
    return cell_layout_make((uint32_t)params->slots, (uint32_t)params->fanout, shape, params->inline_bytes);
}

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    (void)values;
    return ix_served_check(shape, 32, err);
}

/* Leaves and inner nodes may be half full. */
static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    const struct cell_params *params = values;
    struct cell_layout layout = layout_of(params, shape);
    double fill = params->fill < 0.5 ? params->fill : 0.5,
           inner_fill = params->inner_fill < 0.5 ? params->inner_fill : 0.5;
    double mine = (double)keys / shape->topology->mns + 1;
    double leaves = mine / ix_filled(fill, layout.leaf.entries, 1) + 2;
    double inners = leaves / (ix_filled(inner_fill, layout.inner.entries, 2) - 1) + CELL_LEVELS;
    double bytes = leaves * layout.leaf.alloc_bytes + inners * layout.inner.alloc_bytes;
    bytes += layout.block_bytes > 0 ? ix_blocks_memory(mine, layout.block_bytes) : 0;
    return DM_RESERVED_BYTES + (uint64_t)bytes + (UINT64_C(1) << 19);
}

/* ---- compute nodes ----------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct cell_cn *cn = handle;
    ix_cache_close(cn->cache);
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct cell_cn *cn = handle;
    (void)err;
    cn->params = values;
    cn->shape = shape;
    cn->layout = layout_of(cn->params, shape);
    struct ix_cache_config cache = {
        .bytes = shape->cache_bytes,
        .copy_bytes = cn->layout.inner.words * 8,
        .threads = dm_thread_count(dm_fabric_of(ctx), dm_node(ctx)),
        .one_thread = dm_is_one_thread(dm_fabric_of(ctx)),
        .lru = true,
    };
    return ix_cache_open(&cache, &cn->cache);
}

static uint64_t cache_bytes(const void *handle) {
    const struct cell_cn *cn = handle;
    return ix_cache_used(cn->cache);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static int buffers_make(struct cell_client *client) {
    const struct cell_layout *layout = &client->cn->layout;
    uint32_t leaf_bytes = layout->leaf.words * 8, batch = SCAN_BATCH_BYTES / leaf_bytes;
    uint32_t node_bytes = layout->inner.words * 8 > leaf_bytes ? layout->inner.words * 8 : leaf_bytes;
    uint32_t call_bytes = (uint32_t)sizeof(struct cell_request) + (layout->stored_words + 1) * 8;
    client->scan_batch = batch < 2 ? 2 : batch > CELL_SCAN_BATCH_MAX ? CELL_SCAN_BATCH_MAX : batch;
    client->node = dm_local_alloc(client->ctx, node_bytes);
    client->leaves = dm_local_alloc(client->ctx, (client->scan_batch + 1) * leaf_bytes);
    client->blocks =
        dm_local_alloc(client->ctx, CELL_BLOCK_BATCH * (layout->block_bytes > 0 ? layout->block_bytes : 8));
    client->root = dm_local_alloc(client->ctx, IX_RANGES_WORDS * 8);
    client->request = dm_local_alloc(client->ctx, call_bytes);
    client->reply = dm_local_alloc(client->ctx, call_bytes);
    return client->node && client->leaves && client->blocks && client->root && client->request && client->reply
               ? 0
               : DM_ERR_NO_MEMORY;
}

/* The compute node opened its part before bulk load, when the roots were empty leaves. */
static int attach(void *handle, void *cn, struct dm_ctx *ctx, struct dm_err *err) {
    struct cell_client *client = handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    client->thread = dm_thread(ctx);
    DM_TRY(buffers_make(client));
    DM_TRY(ix_ranges_read(ctx, CELL_RANGES_OFFSET, client->root, &client->ranges));
    for (unsigned node = 0; node < client->cn->shape->topology->mns; node++) {
        DM_TRY(cell_root_refresh(client, node));
    }
    return 0;
}

static const struct ix_wrong wrong_values[] = {
    {"fences", "off", 400, "a key that a split moved is reported absent"},
    {"node_check", "off", 400, "two states of a node are mixed"},
    {"block_check", "off", 400, "a block that is another key's, or is being written, is returned"},
    {.param = NULL},
};

static const struct ix_setting tiny[] = {{"slots", "4"}, {"fanout", "4"}, {"cache_above", "1"}, {.param = NULL}};

const struct ix_ops ix_ops_cell = {
    .name = "cell",
    .summary =
        "B+ trees on the memory nodes' cores; clients walk them by READs, and cache the nodes far above the leaves",
    .paper = "C. Mitchell, K. Montgomery, L. Nelson, S. Sen, J. Li: Balancing CPU and Network in the Cell Distributed "
             "B-Tree Store, USENIX ATC 2016; as X. Wei, R. Chen, H. Chen compare XStore with it, OSDI 2020",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_CLIENT_STOP,
    .params = params_table,
    .params_bytes = sizeof(struct cell_params),
    .counters = counters,
    .counts_offset = offsetof(struct cell_client, counts),
    .wrong = wrong_values,
    .tiny = tiny,
    .value_bytes_max = CELL_VALUE_MAX,
    .key_bytes_max = IX_KEY_BYTES_MAX,
    .cn_bytes = sizeof(struct cell_cn),
    .server_bytes = sizeof(struct cell_server),
    .client_bytes = sizeof(struct cell_client),
    .check = check,
    .memory_needed = memory_needed,
    .serve = cell_serve,
    .unserve = cell_unserve,
    .format = cell_format,
    .open = open_cn,
    .close = close_cn,
    .load = cell_load,
    .attach = attach,
    .get = cell_get,
    .insert = cell_insert,
    .update = cell_update,
    .remove = cell_remove,
    .scan = cell_scan,
    .cache_bytes = cache_bytes,
    .verify = cell_verify,
};
