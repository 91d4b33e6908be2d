/* SPDX-License-Identifier: Apache-2.0
 *
 * ROLEX's table: parameters, checks, and the life cycle of compute nodes and clients.
 */
#include <stdlib.h>

#include "client.h"
#include "load.h"
#include "retrain.h"

enum {
    LEAF_BYTES_MAX = 131072,
    BATCH_LEAVES_MAX = 480, /* leaves that one doorbell can read */
    SCAN_LEAVES = 24,       /* leaves after the window that a scan reads with one doorbell */
    EXTRA_WIRES = 3,
};

static const char *const detects[] = {"bounds", "slots", "none", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct rolex_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(epsilon, DM_OPT_COUNT, .initial = "16", .min = 1, .max = 4096, .unit = "keys", .symbol = "epsilon",
        .help = "Greatest error of a model."),
    ROW(delta, DM_OPT_COUNT, .initial = "16", .min = 2, .max = 1024, .unit = "entries", .symbol = "delta",
        .help = "Slots of a leaf."),
    ROW(fill, DM_OPT_REAL, .initial = "1", .min = 0.1, .max = 1,
        .help = "Share of a leaf's slots that bulk load fills; a leaf has as many labels (positions of the model)."),
    ROW(synonyms, DM_OPT_COUNT, .initial = "255", .min = 2, .max = ROLEX_SYNONYMS_MAX, .unit = "entries",
        .help = "Synonym leaves of a model; when half of them are used, clients ask for retraining."),
    ROW(model_leaves, DM_OPT_COUNT, .initial = "1024", .min = 2, .max = 16384, .unit = "entries",
        .help = "Leaves of a model at most, even if one line fits more."),
    ROW(pretrain, DM_OPT_BOOL, .initial = "off", .added = true,
        .help = "Bulk load trains models on the keys that will be inserted, too, and leaves their slots free."),
    ROW(region_bytes, DM_OPT_BYTES, .initial = "0",
        .help = "Size of the first leaf regions; later ones are larger. 0: computed from the expected keys."),
    ROW(adjacent, DM_OPT_BOOL, .initial = "on",
        .help = "One READ fetches the leaves of a window that are next to each other; off: one READ a leaf."),
    ROW(values, DM_OPT_ENUM, .initial = "inline", .choices = ix_values_choices, .added = true, .help = IX_VALUES_HELP),
    ROW(fetch, DM_OPT_ENUM, .initial = "batch", .choices = ix_fetch_choices, .added = true, .help = IX_FETCH_HELP),
    ROW(retrain, DM_OPT_BOOL, .initial = "on",
        .help = "Memory nodes retrain models; off: the client that finds a model full replaces it."),
    ROW(reuse, DM_OPT_BOOL, .initial = "on", .help = "Leaves that deletes have emptied are used again."),
    ROW(local_locks, DM_OPT_BOOL, .initial = "on",
        .help = "Clients of a compute node queue locally before one of them tries a leaf's lock."),
    ROW(detect, DM_OPT_ENUM, .initial = "bounds", .choices = detects,
        .help =
            "How readers notice that their tables are old: bounds of leaves, used-slot counter alone (wrong), or not "
            "at all (wrong)."),
    ROW(carry, DM_OPT_BOOL, .initial = "on",
        .help = "A new model gets the leaves that were made during its training; off is wrong."),
    DM_OPT_END,
};

static const struct ix_counter counters[] = {ROLEX_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct rolex_params *params = values;
    uint32_t window = rolex_window_max(params, rolex_per_leaf(params));
    uint32_t bytes = rolex_layout_of(params, shape).wire_bytes;
    DM_TRY(ix_values_check((enum ix_values)params->values, shape->value_bytes, err));
    if (bytes > LEAF_BYTES_MAX) {
        return dm_fail(err, DM_ERR_INVALID,
                       "a leaf of delta %llu with keys of %u bytes has %u bytes, at most %d: lower delta",
                       (unsigned long long)params->delta, ix_key_bytes(shape), bytes, LEAF_BYTES_MAX);
    }
    if (window + params->synonyms > BATCH_LEAVES_MAX) {
        return dm_fail(err, DM_ERR_INVALID,
                       "epsilon %llu spans %u leaves, with %llu synonyms more than the %d that a read can have: "
                       "lower epsilon or synonyms, or raise delta",
                       (unsigned long long)params->epsilon, window, (unsigned long long)params->synonyms,
                       BATCH_LEAVES_MAX);
    }
    return 0;
}

static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    const struct rolex_params *params = values;
    uint32_t per_leaf = rolex_per_leaf(params);
    /* A full leaf and the synonym that its first insert makes are half full together, and retraining keeps both.
     * Uniform keys make models of about 3.8 epsilon squared; real ones need more models, and retraining leaves old
     * tables behind. */
    double leaves = (double)keys / per_leaf + 2;
    double epsilon = (double)params->epsilon;
    double models = 2 + (double)keys / (epsilon * epsilon / 2 + 16) + leaves / (double)params->model_leaves;
    double bytes = 2 * 8 * leaves + 2 * models * rolex_model_bytes(1, (uint32_t)params->synonyms);
    bytes +=
        ix_indirect_memory((enum ix_values)params->values, shape->value_bytes + ix_key_padding(shape), keys, shape);
    double regions = rolex_region_memory(params, shape, 2 * leaves);
    return DM_RESERVED_BYTES + (uint64_t)(regions + bytes / shape->topology->mns) + 65536;
}

static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    (void)err;
    return rolex_load_pairs(ctx, values, shape, NULL, NULL);
}

/* ---- compute nodes ----------------------------------------------------------------------------------------------- */

static void close_cn(void *handle) {
    struct rolex_cn *cn = handle;
    rolex_cache_close(cn->cache);
    rolex_cache_close(cn->filling);
    rolex_work_close(cn->work);
    ix_queues_close(cn->queues);
}

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct rolex_cn *cn = handle;
    (void)ctx;
    (void)err;
    cn->params = values;
    cn->shape = shape;
    cn->work = rolex_work_open(values);
    cn->queues = cn->params->local_locks ? ix_queues_open(IX_QUEUES) : NULL;
    return cn->work && (cn->queues || !cn->params->local_locks) ? 0 : DM_ERR_NO_MEMORY;
}

static uint64_t cache_bytes(const void *handle) {
    const struct rolex_cn *cn = handle;
    return rolex_cache_bytes(cn->cache);
}

static int bulk_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    struct rolex_cn *cn = handle;
    struct rolex_pretraining keys = {.count = 0};
    int rc = cn->params->pretrain && pairs->to_come ? pairs->to_come(pairs, &keys.keys, &keys.count) : 0;
    if (rc == DM_ERR_UNSUPPORTED) {
        return dm_fail(err, DM_ERR_INVALID, "pretrain: the keys that a trace or a recording inserts are not known");
    }
    if (rc < 0 || pairs->count + keys.count == 0) {
        return rc;
    }
    return rolex_load_pairs(ctx, cn->params, cn->shape, pairs, &keys);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

/* The first client of a compute node reads the models into its cache. If all clients have left and the index was loaded
 * again, the next first client does so again. */
static int cache_refresh(struct rolex_cn *cn, struct rolex_env *env) {
    uint64_t *root = env->words + ROLEX_W_OWN;
    DM_TRY(dm_mutex_lock(env->ctx, &cn->opening));
    int rc = dm_read(env->ctx, rolex_reserved(0, ROLEX_AT_ROOT), root, sizeof(*root));
    if (rc == 0 && cn->clients == 0 && !rolex_cache_is_of(cn->cache, *root)) {
        rolex_cache_close(cn->cache);
        cn->cache = NULL;
        rc = rolex_cache_open(env, cn->shape->cache_bytes, &cn->filling);
        cn->cache = cn->filling;
        cn->filling = NULL;
    }
    cn->clients += rc == 0;
    dm_mutex_unlock(env->ctx, &cn->opening);
    return rc;
}

static void detach(void *handle) {
    struct rolex_client *client = handle;
    client->cn->clients -= client->is_attached;
    ix_indirect_close(client->indirect);
    free(client->items);
    free(client->image);
}

static int attach(void *handle, void *cn, struct dm_ctx *ctx, struct dm_err *err) {
    struct rolex_client *client = handle;
    (void)err;
    client->cn = cn;
    const struct rolex_params *params = client->cn->params;
    DM_TRY(rolex_env_init(&client->env, ctx, params, client->cn->shape, client->counts));
    const struct rolex_layout *layout = &client->env.layout;
    uint32_t words = rolex_model_bytes((uint32_t)params->model_leaves, (uint32_t)params->synonyms) / 8;
    uint32_t most = rolex_window_max(params, client->env.per_leaf) + (uint32_t)params->synonyms;
    client->item_max = most + SCAN_LEAVES;
    client->items = calloc(client->item_max, sizeof(*client->items));
    client->image = calloc(3, layout->wire_bytes);
    client->wires = dm_local_alloc(ctx, (client->item_max + EXTRA_WIRES) * layout->wire_bytes);
    client->fetched = dm_local_alloc(ctx, words * 8);
    client->view.slots = dm_local_alloc(ctx, 8 * (1 + (uint32_t)params->synonyms));
    client->view.table = dm_local_alloc(ctx, 8 * client->item_max);
    if (!client->items || !client->image || !client->wires || !client->fetched || !client->view.slots ||
        !client->view.table) {
        return DM_ERR_NO_MEMORY;
    }
    client->right = client->image + layout->wire_bytes;
    client->other = client->right + layout->wire_bytes;
    struct ix_indirect_config values = {
        .values = (enum ix_values)params->values,
        .value_bytes = client->cn->shape->value_bytes,
        .padding = ix_key_padding(client->cn->shape),
        .fetch = (enum ix_fetch)params->fetch,
        .found_max = (SCAN_LEAVES + 1) * (uint32_t)params->delta,
        .reused = &client->counts[ROLEX_BLOCK_REUSED],
    };
    DM_TRY(ix_indirect_open(ctx, &values, &client->indirect));
    DM_TRY(cache_refresh(client->cn, &client->env));
    client->is_attached = true;
    return 0;
}

static const struct ix_wrong wrong_values[] = {
    {"detect", "slots", 4000, "the counter may be read before a leaf is split and the leaf after it"},
    {"detect", "none", 100, "a reader with old tables misses keys that have moved to a synonym leaf"},
    {"values", "unchecked", 400, "a block that has been used again is taken for what it was"},
    {"carry", "off", 4000, "leaves made during a retraining are lost with the model it replaces"},
    {.param = NULL},
};

static const struct ix_setting tiny[] = {{"delta", "4"}, {"synonyms", "4"}, {"model_leaves", "8"}, {.param = NULL}};

const struct ix_ops ix_ops_rolex = {
    .name = "rolex",
    .summary = "learned index: linear models predict leaves, clients insert into synonym leaves, memory nodes retrain",
    .paper = "P. Li, Y. Hua, P. Zuo, Z. Chen, J. Sheng: A High-performance RDMA-oriented Learned Key-value Store for "
             "Disaggregated Memory Systems. ACM Transactions on Storage 19(4), 2023",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_RESIZE,
    .params = params_table,
    .params_bytes = sizeof(struct rolex_params),
    .counters = counters,
    .counts_offset = offsetof(struct rolex_client, counts),
    .wrong = wrong_values,
    .tiny = tiny,
    .key_bytes_max = IX_KEY_BYTES_MAX,
    .cn_bytes = sizeof(struct rolex_cn),
    .server_bytes = sizeof(struct rolex_server),
    .client_bytes = sizeof(struct rolex_client),
    .check = check,
    .memory_needed = memory_needed,
    .serve = rolex_serve,
    .unserve = rolex_unserve,
    .format = format,
    .open = open_cn,
    .close = close_cn,
    .load = bulk_load,
    .attach = attach,
    .detach = detach,
    .get = rolex_get,
    .insert = rolex_insert,
    .update = rolex_update,
    .remove = rolex_remove,
    .scan = rolex_scan,
    .cache_bytes = cache_bytes,
    .verify = rolex_verify,
};
