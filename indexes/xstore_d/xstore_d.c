/* SPDX-License-Identifier: Apache-2.0
 *
 * XStore-D's table: parameters, checks, and the life cycle of compute nodes and clients.
 */
#include "load.h"
#include "locate.h"
#include "mn.h"
#include "server.h"

enum {
    SCAN_BATCH_BYTES = 16384,
    WORDS_BYTES = 8192, /* space for a value with its check, or the table lines of one read */
};

static const char *const cachings[] = {"all", "models", "top", NULL};
static const char *const fetches[] = {"keys", "leaf", NULL};
static const char *const values_choices[] = {"inline", "indirect", NULL};
static const char *const speculations[] = {"off", "leaf", "link", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct xstore_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(slots, DM_OPT_COUNT, .initial = "16", .min = 4, .max = XSTORE_SLOTS_MAX, .unit = "pairs", .symbol = "N",
        .help = "Pairs of a leaf."),
    ROW(fanout, DM_OPT_COUNT, .initial = "16", .min = 4, .max = XSTORE_FANOUT, .unit = "children",
        .help = "Children of an inner node."),
    ROW(fill, DM_OPT_REAL, .initial = "0.5", .min = 0.1, .max = 1,
        .help = "Share of a node's entries that bulk load fills; the paper's trees are half full."),
    ROW(models, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1 << 26, .unit = "sub-models", .symbol = "M",
        .help = "Sub-models of a memory node at bulk load; 0: one for keys_per_model keys."),
    ROW(keys_per_model, DM_OPT_COUNT, .initial = "200", .min = 4, .max = 1e9, .unit = "keys",
        .help = "Keys of a sub-model at bulk load, if models is 0."),
    ROW(expand, DM_OPT_BOOL, .initial = "on", .help = "Models are doubled when they have too many keys."),
    ROW(expand_at, DM_OPT_COUNT, .initial = "400", .min = 4, .max = 1e9, .unit = "keys",
        .help = "Keys of a sub-model, on average, above which the models are doubled."),
    ROW(trainers, DM_OPT_COUNT, .initial = "1", .min = 1, .max = XSTORE_TRAINERS_MAX, .unit = "contexts",
        .help = "Background contexts of a memory node that train, on the cores that also serve calls."),
    ROW(trainer_share, DM_OPT_REAL, .initial = "1", .min = 0.01, .max = 1,
        .help = "Share of its time that a trainer may train: 0.5 on each of two memory nodes is a thread of a server "
                "that is two memory nodes here."),
    ROW(cache, DM_OPT_ENUM, .initial = "all", .choices = cachings,
        .help = "What compute nodes cache: sub-models and tables, sub-models, or the top model alone."),
    ROW(fetch, DM_OPT_ENUM, .initial = "keys", .choices = fetches,
        .help = "What a look-up reads of a leaf: its keys and then a value, or the complete leaf."),
    ROW(values, DM_OPT_ENUM, .initial = "inline", .choices = values_choices,
        .help = "Where values are: in the leaf, or in blocks of the memory node to which the leaf has pointers."),
    ROW(span_max, DM_OPT_COUNT, .initial = "10", .min = 1, .max = XSTORE_SPAN_MAX, .unit = "leaves",
        .help = "Leaves that a look-up reads; a wider prediction makes it a call."),
    ROW(hint, DM_OPT_BOOL, .initial = "on", .help = "Updates carry the predicted leaves (position hint)."),
    ROW(speculate, DM_OPT_ENUM, .initial = "link", .choices = speculations,
        .help =
            "What a look-up does with a leaf that was split: calls the memory node (off); searches it first; searches "
            "also the leaf one right link further."),
    ROW(prefill, DM_OPT_BOOL, .initial = "on",
        .help = "The clients of a compute node fill its cache when they attach."),
    ROW(logging, DM_OPT_BOOL, .initial = "off", .help = "Memory nodes log writes and drain the log on their cores."),
    ROW(log_rate, DM_OPT_BYTES, .initial = "0",
        .help = "Bytes a second that the device of a memory node's log writes; 0: it is never waited for."),
    ROW(incarnation, DM_OPT_BOOL, .initial = "on",
        .help = "Readers compare the incarnation of a leaf with that in the table; off is wrong."),
    ROW(leaf_check, DM_OPT_BOOL, .initial = "on", .help = "Readers check that a leaf is consistent; off is wrong."),
    ROW(value_check, DM_OPT_BOOL, .initial = "on",
        .help = "Readers check that a value is consistent and belongs to the key; off is wrong."),
    ROW(augment, DM_OPT_BOOL, .initial = "on",
        .help = "Bounds hold at both ends of every leaf, and so for absent keys; off is wrong."),
    DM_OPT_END,
};

static const struct ix_counter counters[] = {XSTORE_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    (void)values;
    return ix_served_check(shape, 31, err); /* a leaf's link has 31 bits */
}

/* Leaves and inner nodes may be half full; tables and records exist twice during an expansion. */
static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    const struct xstore_params *params = values;
    bool indirect = params->values == XSTORE_VALUES_INDIRECT;
    struct xstore_layout layout = xstore_layout_make((uint32_t)params->slots, shape->value_bytes, indirect);
    double fill = params->fill < 0.5 ? params->fill : 0.5;
    double mine = (double)keys / shape->topology->mns + 1;
    double leaf_keys = fill * layout.slots < 1 ? 1 : fill * layout.slots;
    double leaves = mine / leaf_keys + 2;
    double children = fill * (double)params->fanout < 2 ? 2 : fill * (double)params->fanout;
    double inners = leaves / (children - 1) + XSTORE_LEVELS;
    double models = params->models > 0 ? (double)params->models : mine / (double)params->keys_per_model + 1;
    models = params->expand ? models + 2 * mine / (double)params->expand_at : models;
    double tables = (leaves / XSTORE_LINE_ENTRIES + 2 * models) * 1.25 * DM_LINE;
    double bytes = leaves * layout.leaf_bytes + inners * XSTORE_INNER_BYTES;
    bytes += indirect ? ix_blocks_memory(mine, layout.block_bytes) : 0;
    bytes += 3 * (tables + models * XSTORE_MODEL_BYTES);
    return DM_RESERVED_BYTES + (uint64_t)bytes + (UINT64_C(1) << 19);
}

/* ---- compute nodes ----------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct xstore_cn *cn = handle;
    xstore_cache_close(&cn->records);
    xstore_cache_close(&cn->lines);
}

/* The budget is first for sub-models, twice the expected number of them; the rest is for tables. */
static int caches_open(struct xstore_cn *cn) {
    const struct xstore_params *params = cn->params;
    uint64_t budget = params->cache == XSTORE_CACHE_TOP ? 0 : cn->shape->cache_bytes;
    uint64_t models = params->models * cn->shape->topology->mns;
    models = models > 0 ? models : cn->shape->expected_keys / params->keys_per_model;
    models = models > 64 ? models : 64;
    uint64_t most = params->cache == XSTORE_CACHE_ALL ? budget / 2 : budget;
    uint64_t records = 2 * models * XSTORE_MODEL_BYTES;
    records = records < most ? records : most;
    DM_TRY(xstore_cache_open(&cn->records, records, XSTORE_RECORD_WORDS));
    uint64_t lines = params->cache == XSTORE_CACHE_ALL ? budget - records : 0;
    return xstore_cache_open(&cn->lines, lines, XSTORE_LINE_ENTRIES + 1);
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct xstore_cn *cn = handle;
    (void)ctx;
    (void)err;
    cn->params = values;
    cn->shape = shape;
    cn->layout = xstore_layout_make((uint32_t)cn->params->slots, shape->value_bytes,
                                    cn->params->values == XSTORE_VALUES_INDIRECT);
    return caches_open(cn);
}

static uint64_t cache_bytes(const void *handle) {
    const struct xstore_cn *cn = handle;
    return xstore_cache_used(&cn->records) + xstore_cache_used(&cn->lines);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static int buffers_make(struct xstore_client *client) {
    uint32_t leaf_bytes = client->cn->layout.leaf_bytes, batch = SCAN_BATCH_BYTES / leaf_bytes;
    client->scan_batch = batch < 2 ? 2 : batch > XSTORE_SCAN_BATCH_MAX ? XSTORE_SCAN_BATCH_MAX : batch;
    uint32_t leaves = client->scan_batch > XSTORE_SPAN_MAX ? client->scan_batch : XSTORE_SPAN_MAX;
    client->leaves = dm_local_alloc(client->ctx, leaves * leaf_bytes);
    client->words = dm_local_alloc(client->ctx, WORDS_BYTES);
    client->request = dm_local_alloc(client->ctx, DM_CALL_MAX);
    client->reply = dm_local_alloc(client->ctx, DM_CALL_MAX);
    return client->leaves && client->words && client->request && client->reply ? 0 : DM_ERR_NO_MEMORY;
}

static int attach(void *handle, void *cn, struct dm_ctx *ctx, struct dm_err *err) {
    struct xstore_client *client = handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    DM_TRY(buffers_make(client));
    DM_TRY(ix_ranges_read(ctx, XSTORE_BORDERS_OFFSET, client->words, &client->ranges));
    return client->cn->params->prefill ? xstore_prefill(client) : 0;
}

static const struct ix_wrong wrong_values[] = {
    {"incarnation", "off", 400, "a key that a split moved is reported absent"},
    {"leaf_check", "off", 400, "the keys of two states of a leaf are mixed"},
    {"value_check", "off", 40, "a value that was moved or is being written is returned for the key"},
    {"augment", "off", 2000, "a key inserted between two trained ones is outside of the predicted leaves"},
    {.param = NULL},
};

static const struct ix_setting tiny[] = {{"slots", "4"}, {"fanout", "4"}, {.param = NULL}};

const struct ix_ops ix_ops_xstore_d = {
    .name = "xstore_d",
    .summary = "B+ tree on the memory nodes' cores; clients read leaves one-sided, found by cached learned models",
    .paper =
        "X. Wei, R. Chen, H. Chen: Fast RDMA-based Ordered Key-Value Store using Remote Learned Cache, OSDI 2020; as "
        "XStore-D in P. Li, Y. Hua, P. Zuo, Z. Chen, J. Sheng: ROLEX, FAST 2023",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_CLIENT_STOP | IX_CAP_RESIZE,
    .params = params_table,
    .params_bytes = sizeof(struct xstore_params),
    .counters = counters,
    .counts_offset = offsetof(struct xstore_client, counts),
    .wrong = wrong_values,
    .tiny = tiny,
    .value_bytes_max = XSTORE_VALUE_MAX,
    .cn_bytes = sizeof(struct xstore_cn),
    .server_bytes = sizeof(struct xstore_server),
    .client_bytes = sizeof(struct xstore_client),
    .check = check,
    .memory_needed = memory_needed,
    .serve = xstore_serve,
    .unserve = xstore_unserve,
    .format = xstore_format,
    .open = open_cn,
    .close = close_cn,
    .load = xstore_load,
    .attach = attach,
    .get = xstore_get,
    .insert = xstore_insert,
    .update = xstore_update,
    .remove = xstore_remove,
    .scan = xstore_scan,
    .cache_bytes = cache_bytes,
    .verify = xstore_verify,
};
