/* SPDX-License-Identifier: Apache-2.0
 *
 * HStore's table: parameters and their checks; format; open; attach and detach. server.c has the servers.
 */
#include "hstore.h"

#include <stdlib.h>

#include "list.h"
#include "server.h"
#include "table.h"

static const char *const fetch_modes[] = {"serial", "batch", NULL};
static const char *const lookup_modes[] = {"hash", "list", NULL};
static const char *const ack_modes[] = {"logged", "early", NULL};

#define ROW(member, ...) DM_OPT_ROW(struct hstore_params, member, __VA_ARGS__)

static const struct dm_opt params_table[] = {
    ROW(key_bytes, DM_OPT_COUNT, .initial = "8", .min = 8, .max = HSTORE_KEY_MAX, .unit = "bytes",
        .help = "Size of a stored and sent key: the number, then bytes derived from it."),
    ROW(fill, DM_OPT_REAL, .initial = "0.5", .min = 0.1, .max = 1,
        .help = "Share of the slots that the expected keys take; it determines the number of buckets."),
    ROW(buckets, DM_OPT_COUNT, .initial = "0", .min = 0, .max = HSTORE_BUCKETS_MAX, .unit = "buckets",
        .help = "Buckets of a hash table, without chained ones; 0: from the expected keys and fill."),
    ROW(rpc_threads, DM_OPT_COUNT, .initial = "4", .min = 1, .max = HSTORE_LOGS_MAX, .symbol = "R",
        .help = "Call threads of an index server."),
    ROW(workers, DM_OPT_COUNT, .initial = "4", .min = 1, .max = HSTORE_WORKERS_MAX, .symbol = "W",
        .help = "Worker threads of an index server, each with a log and a partition of the skip list."),
    ROW(batch, DM_OPT_COUNT, .initial = "16", .min = 1, .max = HSTORE_BATCH_MAX, .unit = "entries",
        .help = "Most log entries that a worker ships together."),
    ROW(log_entries, DM_OPT_COUNT, .initial = "1024", .min = 4, .max = 65536, .unit = "entries",
        .help = "Capacity of a log."),
    ROW(sync, DM_OPT_BOOL, .initial = "off",
        .help = "The skip list is changed before a write is acknowledged: HStore (sync)."),
    ROW(apply_us, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1000000, .unit = "us",
        .help = "How long a worker of the skip list waits for further log entries, to apply more of them together."),
    ROW(fetch, DM_OPT_ENUM, .initial = "serial", .choices = fetch_modes,
        .help = "A scan reads its items one by one, or as many as one doorbell takes."),
    ROW(lookup, DM_OPT_ENUM, .initial = "hash", .choices = lookup_modes,
        .help = "A get reads the hash table, or (to compare indexes) calls the skip list server."),
    ROW(strict, DM_OPT_BOOL, .initial = "on",
        .help =
            "A scan waits until the hash table has what the skip list has; off: as published, it is ahead of gets."),
    ROW(recover_batch, DM_OPT_COUNT, .initial = "64", .min = 1, .max = 256, .unit = "items",
        .help = "Items whose keys a recovering skip list server reads from the pool at a time."),
    ROW(slab_items, DM_OPT_COUNT, .initial = "64", .min = 1, .max = 1024, .unit = "items",
        .help = "Items of a slab, the memory that a client allocates at a time."),
    ROW(grace_us, DM_OPT_COUNT, .initial = "1000", .min = 200, .max = 1000000, .unit = "us",
        .help = "How long the space of a replaced item is not reused."),
    ROW(lease_us, DM_OPT_COUNT, .initial = "1000000", .min = 20, .max = 1000000, .unit = "us",
        .help = "How long the address in a slot may be followed; at most grace_us."),
    ROW(probe_us, DM_OPT_COUNT, .initial = "100", .min = 5, .max = 100000, .unit = "us",
        .help = "How long a failed server is not tried again."),
    ROW(sweep_us, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 100000000, .unit = "us",
        .help = "Pause between two sweeps of the pool for orphaned items; 0: no sweeps."),
    ROW(drain, DM_OPT_BOOL, .initial = "on", .help = "A scan applies the log first, or (wrong) does not."),
    ROW(ack, DM_OPT_ENUM, .initial = "logged", .choices = ack_modes,
        .help = "A write is acknowledged when both servers have logged it, or (wrong) before it is shipped."),
    DM_OPT_END,
};

static const struct ix_counter counters[] = {HSTORE_COUNTERS(IX_COUNTER) IX_COUNTERS_END};

static const struct ix_wrong wrongs[] = {
    {"strict", "off", 0, "a scan returns a write that a later get does not"},
    {"drain", "off", 200, "a scan misses writes that were acknowledged"},
    {"ack", "early", 40, "a write that was acknowledged is lost with its server, and scans miss it"},
    {.param = NULL},
};

static int check(const void *values, const struct ix_shape *shape, struct dm_err *err) {
    const struct hstore_params *params = values;
    const struct dm_topology *topology = shape->topology;
    if (topology->servers < 2 || topology->servers % 2 != 0 || topology->servers > 2 * HSTORE_SHARDS_MAX) {
        return dm_fail(err, DM_ERR_INVALID,
                       "%u index servers: a shard needs 2, one for the hash table and one for the skip list; "
                       "must be 2, 4, ... %d",
                       topology->servers, 2 * HSTORE_SHARDS_MAX);
    }
    if (params->log_entries < params->batch) {
        return dm_fail(err, DM_ERR_INVALID, "a log of %llu entries cannot hold a batch of %llu",
                       (unsigned long long)params->log_entries, (unsigned long long)params->batch);
    }
    if (ix_key_bytes(shape) > IX_KEY_BYTES_MIN && params->key_bytes > IX_KEY_BYTES_MIN &&
        params->key_bytes != ix_key_bytes(shape)) {
        return dm_fail(err, DM_ERR_INVALID, "key_bytes %llu contradicts keys of %u bytes: leave one of them out",
                       (unsigned long long)params->key_bytes, ix_key_bytes(shape));
    }
    struct hstore_geometry geometry = hstore_geometry_of(params, shape);
    if (geometry.buckets > HSTORE_BUCKETS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "%llu buckets a shard, more than %llu: take more shards (--servers)",
                       (unsigned long long)geometry.buckets, (unsigned long long)HSTORE_BUCKETS_MAX);
    }
    return 0;
}

/* Items in the rings of replaced items and in unused parts of slabs. */
static uint64_t items_spare(const struct hstore_params *params, const struct dm_topology *topology) {
    return (uint64_t)topology->clients * (HSTORE_RING + params->slab_items);
}

static uint64_t memory_needed(const void *values, const struct ix_shape *shape, uint64_t keys) {
    enum { NODE_BYTES = 48, ARENA_BYTES = 65536 };
    const struct hstore_params *params = values;
    struct hstore_geometry geometry = hstore_geometry_of(params, shape);
    const struct dm_topology *topology = shape->topology;
    uint64_t items = keys + items_spare(params, topology);
    /* Heads of slabs, and the remainders of chunks: up to a slab in 16. */
    uint64_t pool = (items / topology->mns + 1) * (geometry.item_bytes + DM_LINE / 16) * 18 / 16 + DM_RESERVED_BYTES;
    /* Also called before check, which refuses fewer than two servers. */
    uint64_t shard_keys = keys / (geometry.shards ? geometry.shards : 1) + 1;
    uint64_t table = geometry.buckets * HSTORE_BUCKET_STRIDE + shard_keys * HSTORE_BUCKET_STRIDE / HSTORE_SLOTS;
    uint64_t list = shard_keys * NODE_BYTES * 5 / 4 + 2 * (uint64_t)geometry.logs * ARENA_BYTES;
    uint64_t server = DM_RESERVED_BYTES + (table > list ? table : list);
    return pool > server ? pool : server;
}

/* ---- remote memory ---------------------------------------------------------------------------------------------- */

/* Writes the tags of the tables, and makes each server make its empty index. */
static int format(struct dm_ctx *ctx, const void *values, const struct ix_shape *shape, struct dm_err *err) {
    (void)values;
    (void)err;
    uint64_t *tags = dm_local_alloc(ctx, HSTORE_SHARDS_MAX * sizeof(*tags));
    if (!tags) {
        return DM_ERR_NO_MEMORY;
    }
    for (unsigned shard = 0; shard < HSTORE_SHARDS_MAX; shard++) {
        tags[shard] = 1;
    }
    int rc = dm_write(ctx, dm_addr_make(0, DM_DRAM, HSTORE_TAGS_OFFSET), tags, HSTORE_SHARDS_MAX * sizeof(*tags));
    for (unsigned shard = 0; shard < shape->topology->servers / 2 && rc == 0; shard++) {
        rc = dm_call(ctx, hstore_hts_node(shape->topology, shard), HSTORE_METHOD_FORMAT, NULL, 0, NULL, NULL);
        rc = rc == 0 ? dm_call(ctx, hstore_sls_node(shape->topology, shard), HSTORE_METHOD_FORMAT, NULL, 0, NULL, NULL)
                     : rc;
    }
    return rc < 0 ? rc : 0;
}

/* ---- compute nodes ---------------------------------------------------------------------------------------------- */

static int open_cn(void *handle, struct dm_ctx *ctx, const void *values, const struct ix_shape *shape,
                   struct dm_err *err) {
    struct hstore_cn *cn = handle;
    (void)err;
    cn->params = values;
    cn->shape = shape;
    cn->geometry = hstore_geometry_of(values, shape);
    uint64_t *words = dm_local_alloc(ctx, hstore_part_count(cn->geometry.buckets) * (uint32_t)sizeof(*words));
    if (!words) {
        return DM_ERR_NO_MEMORY;
    }
    for (unsigned shard = 0; shard < cn->geometry.shards; shard++) {
        bool is_usable;
        DM_TRY(hstore_view_read(cn, ctx, shard, words, &is_usable));
        atomic_init(&cn->views[shard].down_until_ns, 0);
    }
    return 0;
}

/* Only the addresses of the tables are cached. */
static uint64_t cache_bytes(const void *handle) {
    (void)handle;
    return 0;
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static void detach(void *handle) {
    struct hstore_client *client = handle;
    free(client->message);
    free(client->pairs);
    free(client->runs);
}

static bool buffers_get(struct hstore_client *client, struct dm_ctx *ctx) {
    const struct hstore_geometry *geometry = &client->cn->geometry;
    uint32_t fits = HSTORE_FETCH_BYTES / geometry->item_bytes;
    client->fetch_max = fits < 1 ? 1 : fits < HSTORE_FETCH_MAX ? fits : HSTORE_FETCH_MAX;
    client->words = dm_local_alloc(ctx, 3 * DM_LINE);
    client->parts = dm_local_alloc(ctx, hstore_part_count(geometry->buckets) * (uint32_t)sizeof(*client->parts));
    client->item = dm_local_alloc(ctx, geometry->item_bytes);
    client->items = dm_local_alloc(ctx, client->fetch_max * geometry->item_bytes);
    client->message = malloc(DM_CALL_MAX);
    client->pairs = malloc(HSTORE_PAIRS_MAX * sizeof(struct hstore_pair));
    client->runs = malloc((size_t)geometry->shards * HSTORE_PAIRS_MAX * sizeof(struct hstore_pair));
    return client->words && client->parts && client->item && client->items && client->message && client->pairs &&
           client->runs;
}

static int attach(void *handle, void *cn_handle, struct dm_ctx *ctx, struct dm_err *err) {
    struct hstore_client *client = handle;
    struct hstore_cn *cn = cn_handle;
    (void)err;
    client->cn = cn;
    client->ctx = ctx;
    if (!buffers_get(client, ctx)) {
        return DM_ERR_NO_MEMORY;
    }
    client->bucket = (struct hstore_bucket *)(void *)(client->words + DM_LINE / sizeof(uint64_t));
    DM_TRY(dm_faa(ctx, dm_addr_make(0, DM_DRAM, HSTORE_IDS_OFFSET), 1, client->words));
    client->id = (uint32_t)client->words[0] + 1;
    client->supply.list = client->id;
    client->supply.item_bytes = cn->geometry.item_bytes;
    client->supply.slab_items = (uint32_t)cn->params->slab_items;
    client->supply.grace_ns = cn->geometry.grace_ns;
    client->supply.is_swept = cn->params->sweep_us > 0;
    client->supply.words = client->words;
    return 0;
}

static const struct ix_setting tiny[] = {{"buckets", "16"}, {.param = NULL}};
static const struct ix_setting patient[] = {{"grace_us", "1000000"}, {.param = NULL}};

const struct ix_ops ix_ops_hstore = {
    .name = "hstore",
    .summary = "hash table and skip list on index servers, values in the memory pool; survives failed servers",
    .paper = "S. Han, M. Zhang, D. Jiang, J. Xiong: Exploiting Hybrid Index Scheme for RDMA-based Key-Value Stores. "
             "SYSTOR 2023",
    .caps = IX_CAP_SCAN | IX_CAP_DELETE | IX_CAP_INSERT | IX_CAP_SERVERS | IX_CAP_SERVER_FAULT | IX_CAP_CLIENT_STOP |
            IX_CAP_RESIZE,
    .params = params_table,
    .params_bytes = sizeof(struct hstore_params),
    .wrong = wrongs,
    .tiny = tiny,
    .patient = patient,
    .counters = counters,
    .counts_offset = offsetof(struct hstore_client, counts),
    .value_bytes_max = HSTORE_VALUE_MAX,
    .key_bytes_max = HSTORE_KEY_MAX,
    .cn_bytes = sizeof(struct hstore_cn),
    .server_bytes = sizeof(struct hstore_server),
    .client_bytes = sizeof(struct hstore_client),
    .check = check,
    .memory_needed = memory_needed,
    .serve = hstore_serve,
    .unserve = hstore_unserve,
    .format = format,
    .open = open_cn,
    .load = hstore_load,
    .attach = attach,
    .detach = detach,
    .get = hstore_get,
    .insert = hstore_insert,
    .update = hstore_update,
    .remove = hstore_remove,
    .scan = hstore_scan,
    .cache_bytes = cache_bytes,
    .verify = hstore_verify,
};
