/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of Clover's clients share. README.md maps the paper's parts to the files, and has the
 * protocol with its argument.
 *
 * The versions of a key are a chain in the memory pool; the last one is the key's value, or a tombstone. A get reads
 * the version that the cached pointer names (read.c) and follows the chain to its end (chain.c). A write puts a new
 * version into the pool and adds it to the end of the chain by a compare-and-swap (write.c). A key that is not in the
 * cache is looked up by a call to its metadata server, which also takes back the space of replaced versions
 * (collect.c).
 */
#ifndef DM_INDEXES_CLOVER_CLOVER_H
#define DM_INDEXES_CLOVER_CLOVER_H

#include "cache.h"
#include "indexes/index.h"
#include "wire.h"

/* ---- parameters -------------------------------------------------------------------------------------------------- */

enum { CLOVER_LINK_CAS, CLOVER_LINK_WRITE };

struct clover_params {
    uint64_t buckets;
    uint64_t batch, collect_batch, collectors, queue;
    uint64_t ask_hops, uses;
    bool load_cached;
    bool identity, chase;
    unsigned link;
};

enum {
    CLOVER_SERVERS_MAX = 64,
    CLOVER_COLLECTORS_MAX = 16,
    CLOVER_QUEUE_MAX = 1024,
};

/* ---- counters ---------------------------------------------------------------------------------------------------- */

/* X(name, text, rare): first the events that servers count and send in their replies, then the clients' own. */
#define CLOVER_COUNTERS(X)                                                                                             \
    CLOVER_EVENTS(X)                                                                                                   \
    X(CACHE_HIT, "cache_hit", 0)             /* operations that found the key in the cache */                          \
    X(CACHE_MISS, "cache_miss", 0)           /* operations that called the metadata server for it */                   \
    X(CACHE_REPLACED, "cache_replaced", 1)   /* entries that had to go for another key's */                            \
    X(HOP, "hop", 0)                         /* next pointers that were followed */                                    \
    X(LONG_CHASE, "long_chase", 1)           /* operations that followed two or more */                                \
    X(SHORTCUT_TAKEN, "shortcut_taken", 1)   /* shortcuts that were followed */                                        \
    X(STALE_POINTER, "stale_pointer", 1)     /* pointers to space that had been reused */                              \
    X(ASKED_AGAIN, "asked_again", 1)         /* calls for a pointer after a stale one or after too many hops */        \
    X(CAS_LOST, "cas_lost", 1)               /* new versions that were not the first behind their predecessor */       \
    X(REVIVED, "tombstone_replaced", 1)      /* inserts of a key that had been removed */                              \
    X(GRANT, "grant", 0)                     /* calls for space */                                                     \
    X(COLLECTED_INLINE, "collect_inline", 1) /* messages that a client sent itself, as the queue was full */
enum clover_counter {
#define X(name, text, rare) CLOVER_##name,
    CLOVER_COUNTERS(X)
#undef X
        CLOVER_COUNTER_COUNT,
};

/* ---- geometry ---------------------------------------------------------------------------------------------------- */

/* Sizes that clients and servers derive alike from parameters and shape. */
struct clover_geometry {
    unsigned servers;
    uint64_t buckets; /* of a server */
    uint32_t value_bytes, space_bytes;
};
struct clover_geometry clover_geometry_of(const struct clover_params *params, const struct ix_shape *shape);

static inline uint64_t clover_hash(uint64_t key) {
    return dm_mix64(key ^ UINT64_C(0x2545f4914f6cdd1d));
}
static inline unsigned clover_server_of(const struct clover_geometry *geometry, uint64_t hash) {
    return (unsigned)((hash >> 40) % geometry->servers);
}
static inline uint64_t clover_bucket_of(const struct clover_geometry *geometry, uint64_t hash) {
    return hash % geometry->buckets;
}

/* ---- a compute node and a client --------------------------------------------------------------------------------- */

/* A version that was replaced, until the metadata server knows. */
struct clover_garbage {
    struct clover_replaced replaced;
    uint64_t shortcut; /* bits of its address */
};

/* Replaced versions that wait for a background context of this compute node. */
struct clover_queue {
    struct clover_cn *cn;
    struct dm_mutex mutex;
    struct dm_cond filled;
    struct clover_garbage *garbage; /* params->queue of them */
    uint64_t first, count;
};

struct clover_cn {
    const struct clover_params *params;
    const struct ix_shape *shape;
    struct clover_geometry geometry;
    struct clover_cache cache;
    struct clover_queue queues[CLOVER_COLLECTORS_MAX];
    _Atomic uint64_t events[CLOVER_EVENT_COUNT]; /* reported to background contexts, not yet counted by a client */
    _Atomic bool has_events;
};

struct clover_client {
    struct clover_cn *cn;
    struct dm_ctx *ctx;
    char *space;     /* device memory: a version that is read */
    char *made;      /* device memory: a version that is written */
    uint64_t *words; /* device memory: a line */
    uint64_t supply[CLOVER_BATCH_MAX];
    uint32_t supply_first, supply_count;
    uint64_t spare;       /* space whose version no other client has seen; 0: none */
    unsigned next_server; /* of the next call for space */
    struct clover_garbage sent[CLOVER_BATCH_MAX];
    uint64_t *shortcuts; /* device memory: CLOVER_BATCH_MAX words */
    uint64_t counts[CLOVER_COUNTER_COUNT];
};

/* ---- call.c ------------------------------------------------------------------------------------------------------ */

/* Calls a metadata server; the reply's head is copied to *reply, and `more` (NULL: none) receives up to more_bytes of
 * what follows. Events are kept for a client. As dm_call. [waits] */
int clover_call(struct clover_cn *cn, struct dm_ctx *ctx, unsigned server, unsigned method, const void *req,
                uint32_t req_len, struct clover_reply *reply, void *more, uint32_t more_bytes);

/* Counts the events that were kept on this compute node. */
void clover_events_take(struct clover_client *client);

/* ---- chain.c ----------------------------------------------------------------------------------------------------- */

/* Where a client is in a key's chain. */
struct clover_spot {
    uint64_t key, hash;
    uint64_t pointer;  /* 0: to be asked for */
    uint64_t shortcut; /* bits of its address */
    bool is_cached;    /* the cache has this pointer */
    bool has_shortcut; /* the shortcut has been read */
    bool was_asked;
    uint32_t hops;
};

/* Looks the key up in the cache. */
void clover_spot_open(struct clover_client *client, uint64_t key, struct clover_spot *spot);

/* Calls the key's metadata server. 0, DM_NOT_FOUND or a failure. [waits] */
int clover_spot_ask(struct clover_client *client, struct clover_spot *spot);

/* Follows the chain to its last version, whose pointer is then in the spot; client->space has its bytes, all of them or
 * (is_whole false) the first line. DM_NOT_FOUND: the metadata server does not know the key. [waits] */
int clover_tail_find(struct clover_client *client, struct clover_spot *spot, bool is_whole, uint32_t *attempts);

/* Keeps the spot in the cache. */
void clover_spot_keep(struct clover_client *client, struct clover_spot *spot);

/* ---- space.c ----------------------------------------------------------------------------------------------------- */

/* Takes space for one version: a pointer with its use. 0, DM_ERR_NO_MEMORY or a failure. [waits] */
int clover_space_take(struct clover_client *client, uint64_t *pointer);

/* ---- garbage.c --------------------------------------------------------------------------------------------------- */

/* Hands a replaced version to the background contexts. [waits] */
int clover_garbage_put(struct clover_client *client, const struct clover_garbage *garbage);

/* Sends all that wait on this compute node. [waits] */
int clover_garbage_flush(struct clover_client *client);

/* A background context: updates shortcuts and reports replaced versions to the metadata servers. `queue` is its own. */
void clover_collector(struct dm_ctx *ctx, void *queue);

/* ---- read.c, write.c, load.c, verify.c: the hooks of index.h ----------------------------------------------------- */

int clover_get(void *client, uint64_t key, void *value);
int clover_insert(void *client, uint64_t key, const void *value);
int clover_update(void *client, uint64_t key, const void *value);
int clover_remove(void *client, uint64_t key);
int clover_load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);
int clover_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

/* ---- server.c: the hooks of index.h ------------------------------------------------------------------------------ */

int clover_serve(void *server, struct dm_fabric *fabric, unsigned node, const void *params,
                 const struct ix_shape *shape, struct dm_err *err);
void clover_unserve(void *server);

#endif
