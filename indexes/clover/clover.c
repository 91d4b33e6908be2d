/* SPDX-License-Identifier: Apache-2.0
 *
 * Clover's table: parameters and their checks; format; open and close; attach and detach. server.c has the servers.
 */
#include "clover.h"

#include <stdlib.h>

#include "server.h"

static const char *const link_modes[] = {"cas", "write", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct clover_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(buckets, DM_OPT_COUNT, .initial = "0", .min = 0, .max = CLOVER_BUCKETS_MAX, .unit = "buckets",
        .help = "Buckets of a metadata server's table; 0: as many as it expects keys."),
    ROW(batch, DM_OPT_COUNT, .initial = "16", .min = 1, .max = CLOVER_BATCH_MAX, .unit = "versions",
        .help = "Space that a client is given at a time."),
    ROW(collect_batch, DM_OPT_COUNT, .initial = "16", .min = 1, .max = CLOVER_BATCH_MAX, .unit = "versions",
        .help = "Most replaced versions that a compute node reports together."),
    ROW(collectors, DM_OPT_COUNT, .initial = "4", .min = 1, .max = CLOVER_COLLECTORS_MAX, .unit = "contexts",
        .help = "Background contexts of a compute node that update shortcuts and report replaced versions."),
    ROW(queue, DM_OPT_COUNT, .initial = "64", .min = 1, .max = CLOVER_QUEUE_MAX, .unit = "versions",
        .help = "Replaced versions that wait for one of them; with more, the client that writes reports some itself."),
    ROW(ask_hops, DM_OPT_COUNT, .initial = "7", .min = 1, .max = 1000, .unit = "hops",
        .help = "Next pointers that are followed before the metadata server is asked."),
    ROW(uses, DM_OPT_COUNT, .initial = "8191", .min = 1, .max = CLOVER_USE_MAX, .unit = "uses",
        .help = "How often a space is used; then it is given up, so that no pointer ever names two versions."),
    ROW(load_cached, DM_OPT_BOOL, .initial = "off",
        .help = "The compute node that loads keys has them in its cache afterwards, as far as they fit."),
    ROW(identity, DM_OPT_BOOL, .initial = "on",
        .help = "Readers check that a space still holds the version that they look for, or (wrong) do not."),
    ROW(chase, DM_OPT_BOOL, .initial = "on", .help = "Chains are followed to their end, or (wrong) are not."),
    ROW(link, DM_OPT_ENUM, .initial = "cas", .choices = link_modes,
        .help = "A new version is added by a compare-and-swap, or (wrong) by a write."),
    DM_OPT_END,
};

static const struct ix_counter counters[] = {CLOVER_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

static const struct ix_wrong wrongs[] = {
    {"identity", "off", 100, "a reader takes the version of another key, or of another time, for the key's"},
    {"chase", "off", 20, "a reader returns a version that was replaced"},
    {"link", "write", 40, "of two versions that are added together, one is lost"},
    {.param = NULL},
};

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct clover_params *params = values;
    const struct dm_topology *topology = shape->topology;
    if (topology->servers < 1 || topology->servers > CLOVER_SERVERS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "%u index servers: metadata servers must be 1 .. %d", topology->servers,
                       CLOVER_SERVERS_MAX);
    }
    if (topology->mn_bytes > CLOVER_NODE_BYTES) {
        return dm_fail(err, DM_ERR_INVALID, "memory nodes of %llu bytes: pointers reach %llu",
                       (unsigned long long)topology->mn_bytes, (unsigned long long)CLOVER_NODE_BYTES);
    }
    struct clover_geometry geometry = clover_geometry_of(params, shape);
    if (geometry.buckets > CLOVER_BUCKETS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "%llu buckets a server, more than %llu: take more servers (--servers)",
                       (unsigned long long)geometry.buckets, (unsigned long long)CLOVER_BUCKETS_MAX);
    }
    return 0;
}

static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    enum { CHUNKS = 1 << 16 };
    const struct clover_params *params = values;
    const struct dm_topology *topology = shape->topology;
    struct clover_geometry geometry = clover_geometry_of(params, shape);
    /* Granted space, and versions that were replaced and not taken back yet. */
    uint64_t spare = (uint64_t)topology->clients * (params->batch + params->collect_batch + 1) +
                     (uint64_t)topology->cns * params->collectors * (params->queue + params->collect_batch);
    uint64_t versions = (keys + spare) / (topology->mns > 0 ? topology->mns : 1) + 1;
    uint64_t pool = versions * (geometry.space_bytes + sizeof(uint64_t)) * 18 / 16 + CHUNKS;
    uint64_t table =
        geometry.buckets * sizeof(uint64_t) + (keys / geometry.servers + 1) * sizeof(struct clover_entry) * 5 / 4;
    uint64_t server = table + CHUNKS;
    return DM_RESERVED_BYTES + (pool > server ? pool : server);
}

static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    (void)values;
    (void)err;
    for (unsigned i = 0; i < shape->topology->servers; i++) {
        DM_TRY(dm_call(ctx, dm_first_server(shape->topology) + i, CLOVER_METHOD_FORMAT, NULL, 0, NULL, NULL));
    }
    return 0;
}

/* ---- compute nodes ---------------------------------------------------------------------------------------------- */

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct clover_cn *cn = handle;
    (void)err;
    cn->params = values;
    cn->shape = shape;
    cn->geometry = clover_geometry_of(values, shape);
    DM_TRY(clover_cache_open(&cn->cache, shape->cache_bytes, shape->expected_keys));
    for (unsigned i = 0; i < cn->params->collectors; i++) {
        struct clover_queue *queue = &cn->queues[i];
        queue->cn = cn;
        queue->garbage = calloc(cn->params->queue, sizeof(*queue->garbage));
        if (!queue->garbage) {
            return DM_ERR_NO_MEMORY;
        }
    }
    for (unsigned i = 0; i < cn->params->collectors; i++) {
        DM_TRY(dm_spawn_background(dm_fabric_of(ctx), dm_node(ctx), clover_collector, &cn->queues[i]));
    }
    return 0;
}

static void close_cn(void *handle) {
    struct clover_cn *cn = handle;
    for (unsigned i = 0; i < CLOVER_COLLECTORS_MAX; i++) {
        free(cn->queues[i].garbage);
    }
    clover_cache_close(&cn->cache);
}

static uint64_t cache_bytes(const void *handle) {
    const struct clover_cn *cn = handle;
    return clover_cache_bytes(&cn->cache);
}

/* A key's pointer and shortcut with the key, as the authors' table has them. */
static uint64_t cache_entry_bytes(const void *handle) {
    const struct clover_cn *cn = handle;
    return atomic_load(&cn->cache.used) * CLOVER_CACHE_ENTRY_BYTES;
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct clover_client *client = handle;
    struct clover_cn *cn = cn_handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    client->next_server = dm_ctx_id(ctx) % cn->geometry.servers;
    client->space = dm_local_alloc(ctx, cn->geometry.space_bytes);
    client->made = dm_local_alloc(ctx, cn->geometry.space_bytes);
    client->words = dm_local_alloc(ctx, DM_LINE);
    client->shortcuts = dm_local_alloc(ctx, CLOVER_BATCH_MAX * sizeof(uint64_t));
    return client->space && client->made && client->words && client->shortcuts ? 0 : DM_ERR_NO_MEMORY;
}

static const struct ix_setting tiny[] = {{"buckets", "16"}, {"batch", "2"}, {"uses", "8"}, {.param = NULL}};

const struct ix_ops ix_ops_clover = {
    .name = "clover",
    .summary = "chains of versions in the memory pool, found by metadata servers and cached pointers; no scans",
    .paper = "S.-Y. Tsai, Y. Shan, Y. Zhang: Disaggregating Persistent Memory and Controlling Them Remotely: An "
             "Exploration of Passive Disaggregated Key-Value Stores. USENIX ATC 2020",
    .caps = IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_SERVERS | IX_CAP_CLIENT_STOP | IX_CAP_RESIZE,
    .params = params_table,
    .params_bytes = sizeof(struct clover_params),
    .wrong = wrongs,
    .tiny = tiny,
    .counters = counters,
    .counts_offset = offsetof(struct clover_client, counts),
    .value_bytes_max = CLOVER_VALUE_MAX,
    .cn_bytes = sizeof(struct clover_cn),
    .server_bytes = sizeof(struct clover_server),
    .client_bytes = sizeof(struct clover_client),
    .check = check,
    .memory_needed = memory_needed,
    .serve = clover_serve,
    .unserve = clover_unserve,
    .format = format,
    .open = open_cn,
    .close = close_cn,
    .load = clover_load,
    .attach = attach,
    .get = clover_get,
    .insert = clover_insert,
    .update = clover_update,
    .remove = clover_remove,
    .cache_bytes = cache_bytes,
    .cache_entry_bytes = cache_entry_bytes,
    .verify = clover_verify,
};
