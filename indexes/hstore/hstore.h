/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the client files of HStore share, and the geometry that clients and servers agree on. README.md
 * maps the paper's parts to the files, and has the protocol with its argument.
 *
 * The life of an operation: a get reads a bucket of the hash table server (HTS) and the item that it points to
 * (read.c). A write puts the item into the memory pool and calls the HTS (write.c), whose worker ships the log entry to
 * the skip list server (SLS) and then changes the table (table_server.c). A scan calls the SLS and reads the items
 * (scan.c).
 */
#ifndef DM_INDEXES_HSTORE_HSTORE_H
#define DM_INDEXES_HSTORE_HSTORE_H

#include <stdatomic.h>

#include "indexes/index.h"
#include "item.h"
#include "wire.h"

/* ---- parameters -------------------------------------------------------------------------------------------------- */

enum { HSTORE_FETCH_SERIAL, HSTORE_FETCH_BATCH };
enum { HSTORE_LOOKUP_HASH, HSTORE_LOOKUP_LIST };
enum { HSTORE_ACK_LOGGED, HSTORE_ACK_EARLY };

struct hstore_params {
    uint64_t key_bytes;
    double fill;
    uint64_t buckets;
    uint64_t rpc_threads, workers;
    uint64_t log_entries, batch, recover_batch;
    bool sync;
    uint64_t apply_us;
    unsigned fetch, lookup;
    bool strict;
    uint64_t slab_items;
    uint64_t grace_us, lease_us, probe_us, sweep_us;
    bool drain;
    unsigned ack;
};

enum {
    HSTORE_SHARDS_MAX = 16,
    HSTORE_WORKERS_MAX = 16,
    HSTORE_BATCH_MAX = 64,
    HSTORE_VALUE_MAX = 4096,
    HSTORE_KEY_MAX = 64,
};

/* ---- counters ---------------------------------------------------------------------------------------------------- */

/* X(name, text, rare): first the events that servers count and send in their replies, then the client's own. */
#define HSTORE_COUNTERS(X)                                                                                             \
    HSTORE_EVENTS(X)                                                                                                   \
    X(INDEX_ACCESS, "index_access", 0)         /* memory accesses of gets: buckets, or nodes of the skip list */       \
    X(INDEX_FAR, "index_far", 0)               /* of these: outside the last-level cache of a server */                \
    X(BUCKET_READ, "bucket_read", 0)           /* buckets read by gets */                                              \
    X(CHAIN_READ, "chain_read", 1)             /* of these: beyond the first of their chain */                         \
    X(ITEM_MISS, "item_miss", 0)               /* items read because of their hash that had another key */             \
    X(LEASE_EXPIRED, "lease_expired", 1)       /* the lease of an address ended before the item was read */            \
    X(ITEM_REPLACED, "item_replaced", 0)       /* the skip list's address led to a later or unfinished write */        \
    X(ITEM_REUSED, "item_reused", 1)           /* writes into the space of a replaced item */                          \
    X(DEGRADED_GET, "degraded_get", 1)         /* gets that the skip list answered while the hash table was down */    \
    X(FAILURE_RETRY, "failure_retry", 1)       /* attempts that met a failed or recovering server */                   \
    X(DOUBT_APPLIED, "doubt_applied", 1)       /* writes without an answer that had been executed */                   \
    X(DOUBT_REDONE, "doubt_redone", 1)         /* those that had not, and were repeated */                             \
    X(ORPHAN_RECLAIMED, "orphan_reclaimed", 0) /* orphaned items that a sweep found */                                 \
    X(LIST_LOOKUP, "list_lookup", 0)           /* gets that the skip list answered */                                  \
    X(TABLE_REFRESHED, "table_refreshed", 0)   /* reads of the hash table's descriptor */
enum hstore_counter {
#define X(name, text, rare) HSTORE_##name,
    HSTORE_COUNTERS(X)
#undef X
        HSTORE_COUNTER_COUNT,
};

/* ---- geometry: sizes that clients and servers derive alike from parameters and shape ----------------------------- */

struct hstore_geometry {
    unsigned shards, logs; /* logs of a server: each has a worker, and a partition of the skip list */
    uint64_t buckets;      /* of a shard, without chained ones */
    uint32_t key_bytes, value_bytes, item_bytes;
    uint64_t grace_ns, lease_ns, probe_ns;
};
struct hstore_geometry hstore_geometry_of(const struct hstore_params *params, const struct ix_shape *shape);

static inline uint64_t hstore_hash(uint64_t key) {
    return dm_mix64(key ^ UINT64_C(0x9e3779b97f4a7c15));
}
static inline unsigned hstore_shard_of(const struct hstore_geometry *geometry, uint64_t hash) {
    return (unsigned)((hash >> 40) % geometry->shards);
}
static inline uint64_t hstore_bucket_of(const struct hstore_geometry *geometry, uint64_t hash) {
    return hash % geometry->buckets;
}
static inline unsigned hstore_part_of_hash(const struct hstore_geometry *geometry, uint64_t hash) {
    return hstore_part_of(hstore_bucket_of(geometry, hash));
}
/* A bucket belongs to one log, hence to one worker. */
static inline unsigned hstore_log_of(const struct hstore_geometry *geometry, uint64_t hash) {
    return (unsigned)(hstore_bucket_of(geometry, hash) % geometry->logs);
}
static inline unsigned hstore_hts_node(const struct dm_topology *topology, unsigned shard) {
    return dm_first_server(topology) + 2 * shard;
}
static inline unsigned hstore_sls_node(const struct dm_topology *topology, unsigned shard) {
    return dm_first_server(topology) + 2 * shard + 1;
}

/* ---- a compute node and a client --------------------------------------------------------------------------------- */

/* What a compute node has learned of a shard. A part of the table is tag << 48 | offset >> 6 of its first bucket; 0:
 * unknown. Each word is complete alone: a client never combines the tag of one part with the offset of another. */
struct hstore_view {
    _Atomic uint64_t parts[HSTORE_PARTS_MAX];
    _Atomic uint64_t down_until_ns; /* until then gets are sent to the skip list */
};

struct hstore_cn {
    const struct hstore_params *params;
    const struct ix_shape *shape;
    struct hstore_geometry geometry;
    struct hstore_view views[HSTORE_SHARDS_MAX];
};

enum { HSTORE_FETCH_BYTES = 65536, HSTORE_FETCH_MAX = 256 };

struct hstore_client {
    struct hstore_cn *cn;
    struct dm_ctx *ctx;
    uint32_t id, seq; /* unique number of the client; number of its current write */
    struct hstore_supply supply;
    uint64_t *words;              /* device memory: one line */
    uint64_t *parts;              /* device memory: the parts of a table */
    struct hstore_bucket *bucket; /* device memory */
    char *item;                   /* device memory: one item */
    char *items;                  /* device memory: fetch_max items */
    char *message;                /* a call's response: DM_CALL_MAX */
    struct hstore_pair *pairs;    /* of a scan, merged */
    struct hstore_pair *runs;     /* of a scan, one for each shard */
    uint32_t fetch_max;           /* items that one doorbell of a scan reads */
    uint64_t counts[HSTORE_COUNTER_COUNT];
};

/* ---- call.c ------------------------------------------------------------------------------------------------------ */

/* Adds the events that servers counted, and moves the parts of the call's time that they measured to their phases. */
void hstore_reply_take(struct hstore_client *client, const struct hstore_reply *reply);

/* Reads the addresses of a shard's table. 0 or as dm_read; *is_usable: there is a complete table. [waits] */
int hstore_view_read(struct hstore_cn *cn, struct dm_ctx *ctx, unsigned shard, uint64_t *words, bool *is_usable);

/* Waits after an attempt that met a failed or recovering server, within the bound on retries. [waits] */
int hstore_failure_wait(struct hstore_client *client, uint32_t *attempts);

/* ---- read.c, write.c, scan.c, load.c, verify.c: the hooks of index.h --------------------------------------------- */

int hstore_get(void *client, uint64_t key, void *value);
int hstore_insert(void *client, uint64_t key, const void *value);
int hstore_update(void *client, uint64_t key, const void *value);
int hstore_remove(void *client, uint64_t key);
int hstore_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);
int hstore_load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);
int hstore_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

/* ---- server.c: the hooks of index.h ------------------------------------------------------------------------------ */

int hstore_serve(void *server, struct dm_fabric *fabric, unsigned node, const void *params,
                 const struct ix_shape *shape, struct dm_err *err);
void hstore_unserve(void *server);

#endif
