/* SPDX-License-Identifier: Apache-2.0
 *
 * What XStore-D's files share: parameters, counters, the state of a memory node's server, of a compute node and of a
 * client. The paper's sections are in README.md; the layout of remote memory is in layout.h.
 */
#ifndef DM_INDEXES_XSTORE_D_XSTORE_H
#define DM_INDEXES_XSTORE_D_XSTORE_H

#include <stdatomic.h>

#include "indexes/index.h"
#include "layout.h"

/* ---- parameters and counters ------------------------------------------------------------------------------------ */

enum xstore_caching { XSTORE_CACHE_ALL, XSTORE_CACHE_MODELS, XSTORE_CACHE_TOP };
enum xstore_fetch { XSTORE_FETCH_KEYS, XSTORE_FETCH_LEAF };

struct xstore_params {
    uint64_t slots, fanout, models, keys_per_model, expand_at, span_max, trainers;
    double fill;
    uint64_t cache, fetch; /* enums above */
    bool hint, speculate, prefill, expand, logging;
    bool incarnation, leaf_check, value_check, augment; /* off is wrong */
};

/* X(name, text, rare) */
#define XSTORE_COUNTERS(X)                                                                                             \
    X(LEAF_SPLIT, "leaf_split", 1)                                                                                     \
    X(HINT_HIT, "hint_hit", 0)     /* an update found its key by the position hint */                                  \
    X(HINT_MISS, "hint_miss", 0)   /* it did not, and the tree was searched */                                         \
    X(MODEL_HIT, "model_hit", 0)   /* sub-models found in the cache */                                                 \
    X(MODEL_MISS, "model_miss", 0) /* read from the memory node */                                                     \
    X(TABLE_HIT, "table_hit", 0)   /* lines of translation tables, likewise */                                         \
    X(TABLE_MISS, "table_miss", 0)                                                                                     \
    X(INCARNATION, "incarnation_mismatch", 1) /* a look-up met a leaf that had split */                                \
    X(SPECULATION, "speculation", 1)          /* and found the key there or over one right link */                     \
    X(FALLBACK, "fallback", 1)                /* a read that went to the memory node's CPU */                          \
    X(UNSAFE, "wide_prediction", 0)           /* ... since the model says too little */                                \
    X(RETRAINED, "model_retrained", 1)        /* a client learned of a newer sub-model */                              \
    X(EXPANDED, "expansion", 1)               /* ... of a new generation of models */                                  \
    X(TORN_LEAF, "torn_leaf", 1)                                                                                       \
    X(TORN_VALUE, "torn_value", 1)                                                                                     \
    X(OLD_MODEL, "old_model", 0) /* a sub-model or table was replaced under a reader without it in the cache */        \
    X(SCAN_GAP, "scan_gap", 0)   /* a scan met a leaf that its table does not have */
enum xstore_counter {
#define X(name, text, rare) XSTORE_##name##_COUNT,
    XSTORE_COUNTERS(X)
#undef X
        XSTORE_COUNTER_COUNT,
};

/* ---- memory nodes ----------------------------------------------------------------------------------------------- */

enum { XSTORE_STRIPES = 256 };

/* Sub-models to be trained: each at most once in the ring, and never trained by two at a time. */
enum { XSTORE_QUEUED = 1, XSTORE_BUSY = 2, XSTORE_AGAIN = 4 };
struct xstore_queue {
    uint32_t *ring, room, first, count;
    uint8_t *states;
};

/* Leaves of a sub-model in training, each with room for as many keys as leaves have. */
struct xstore_space {
    char *leaves;
    size_t leaf_bytes;
    uint32_t count, room;
};

/* What a background context that trains, or a load, works with. Its memory is the server's, which outlives contexts. */
struct xstore_server;
struct xstore_trainer {
    struct xstore_server *server;
    struct xstore_space queued, fresh; /* for a sub-model of the queue; of a new generation */
    struct xstore_queue queue;         /* of the generation in the making */
};

enum { XSTORE_TRAINERS_MAX = 8 };

struct xstore_loader;

struct xstore_server {
    const struct xstore_params *params;
    const struct ix_shape *shape;
    struct xstore_layout layout;
    struct dm_fabric *fabric;
    unsigned node;
    struct dm_mutex stripes[XSTORE_STRIPES]; /* of nodes of the tree; a context holds one at a time */

    _Atomic uint64_t keys; /* in the tree: what expansion goes by */

    struct dm_mutex models_lock; /* of all below but the log; never held during a wait */
    struct dm_cond work;         /* something to do, or a trainer is done */
    struct xstore_set set;
    struct xstore_queue queue;
    unsigned busy; /* trainers that work on a sub-model of the set */
    bool wants_expansion, is_expanding, is_full;

    struct xstore_trainer trainers[XSTORE_TRAINERS_MAX], load_trainer;

    struct dm_mutex log_lock;
    struct dm_cond log_work;
    dm_addr log;
    uint64_t log_head, log_tail; /* bytes appended and drained */

    struct xstore_loader *loader;
};

static inline struct dm_mutex *xstore_stripe(struct xstore_server *server, uint32_t place) {
    return &server->stripes[dm_mix64(place) % XSTORE_STRIPES];
}

/* ---- leaf.c: a leaf under its stripe's mutex, by the node's CPU -------------------------------------------------- */

struct xstore_leaf {
    uint32_t place;
    uint64_t low, high;                                   /* it covers [low, high); high UINT64_MAX: to the end */
    uint64_t words[XSTORE_HEAD_WORDS + XSTORE_SLOTS_MAX]; /* check, header, keys */
};

static inline struct xstore_head xstore_leaf_head(const struct xstore_leaf *leaf) {
    return xstore_head_of(leaf->words[1]);
}
static inline uint64_t *xstore_leaf_keys(struct xstore_leaf *leaf) {
    return leaf->words + XSTORE_HEAD_WORDS;
}

/* Reads header, keys and fences. False: there is no leaf at that place. */
bool xstore_leaf_load(struct xstore_server *server, struct dm_ctx *ctx, uint32_t place, struct xstore_leaf *leaf);

/* Stores keys, header and check; `head` is the new header. */
void xstore_leaf_store(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_leaf *leaf,
                       struct xstore_head head);
void xstore_fences_store(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_leaf *leaf);

/* The slot of the key, or -1. */
int xstore_leaf_find(const struct xstore_leaf *leaf, uint64_t key);

/* Values by words; `value` has value_bytes bytes. */
void xstore_value_load(struct xstore_server *server, struct dm_ctx *ctx, uint32_t place, unsigned slot, void *value);
void xstore_value_store(struct xstore_server *server, struct dm_ctx *ctx, uint32_t place, unsigned slot, uint64_t key,
                        const void *value);
void xstore_value_clear(struct xstore_server *server, struct dm_ctx *ctx, uint32_t place, unsigned slot);

/* Finds and locks the leaf that covers key, and loads it. 0 with its stripe locked, or a failure. [waits] */
int xstore_leaf_lock(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, struct xstore_leaf *leaf);
void xstore_leaf_unlock(struct xstore_server *server, struct dm_ctx *ctx, uint32_t place);

/* ---- btree.c: the levels above ---------------------------------------------------------------------------------- */

/* The place of the node of `level` that covered key a moment ago. 0, or a failure. [waits] */
int xstore_descend(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, unsigned level, uint32_t *place);

/* Makes `child`, a node of `level` that begins at key, known to the level above. [waits] */
int xstore_link(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, uint32_t child, unsigned level);

/* A node of a built level: where it begins. */
struct xstore_built {
    uint64_t low;
    uint32_t place;
};

/* Builds the levels over `count` leaves in `level`, which it uses up, and sets the root. [waits] */
int xstore_build(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_built *level, uint64_t count);

/* ---- train.c ---------------------------------------------------------------------------------------------------- */

/* The leaf that covered [low, high) has split: the sub-models of that range are to be trained, and if they have too
 * many keys by now, all of them anew. */
void xstore_train_later(struct xstore_server *server, struct dm_ctx *ctx, uint64_t low, uint64_t high);

/* A client says that this sub-model is out of date. */
void xstore_train_stale(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_known *known);

/* Trains a whole generation of `models` sub-models and makes it the one in use. DM_ERR_NO_MEMORY leaves the old one.
 * [waits] */
int xstore_train_all(struct xstore_trainer *trainer, struct dm_ctx *ctx, uint32_t models);

/* A background context: trains what is queued, and expands. */
void xstore_trainer_main(struct dm_ctx *ctx, void *trainer);

void xstore_trainer_init(struct xstore_trainer *trainer, struct xstore_server *server);
void xstore_trainer_fini(struct xstore_trainer *trainer);
void xstore_queue_free(struct xstore_queue *queue);

/* ---- log.c ------------------------------------------------------------------------------------------------------ */

int xstore_log_open(struct xstore_server *server, struct dm_ctx *ctx);
int xstore_log_append(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, unsigned method,
                      const void *value);
void xstore_logger_main(struct dm_ctx *ctx, void *server);

/* ---- server.c, load.c ------------------------------------------------------------------------------------------- */

int xstore_serve(struct dm_fabric *fabric, unsigned node, const void *params, const struct ix_shape *shape,
                 void **server, struct dm_err *err);
void xstore_unserve(void *server);

/* Handlers of XSTORE_FORMAT, LOAD and BUILD, and what is left of a load. */
int xstore_on_format(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);
int xstore_on_load(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);
int xstore_on_build(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);
void xstore_loader_free(struct xstore_loader *loader);

int xstore_format(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err);
int xstore_load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);

/* ---- cache.c: a compute node's copies of sub-models and table lines ---------------------------------------------- */

/* Slots of a fixed number of words, found by number modulo their count, filled and read without a lock: whoever reads
 * one checks it, and that says too whether it is the one that was looked for. */
struct xstore_cache {
    _Atomic uint64_t *words;
    uint64_t slots;
    unsigned slot_words;
    _Atomic uint64_t used; /* slots that were ever filled */
};

int xstore_cache_open(struct xstore_cache *cache, uint64_t bytes, unsigned slot_words);
void xstore_cache_close(struct xstore_cache *cache);
void xstore_cache_get(const struct xstore_cache *cache, uint64_t number, uint64_t *words);
void xstore_cache_put(struct xstore_cache *cache, uint64_t number, const uint64_t *words);
static inline bool xstore_cache_exists(const struct xstore_cache *cache) {
    return cache->slots > 0;
}
uint64_t xstore_cache_used(const struct xstore_cache *cache);

/* ---- compute nodes and clients ---------------------------------------------------------------------------------- */

enum { XSTORE_NODES_MAX = 64, XSTORE_SCAN_BATCH_MAX = 32, XSTORE_SPAN_MAX = 16 };

struct xstore_cn {
    const struct xstore_params *params;
    const struct ix_shape *shape;
    struct xstore_layout layout;
    struct xstore_cache records, lines;
    _Atomic uint64_t sets[XSTORE_NODES_MAX][XSTORE_SET_WORDS]; /* the memory nodes' sets of models as last seen */
    atomic_bool is_filled;                                     /* some client has seen to the prefill */
};

/* Where the models say that a key is. */
struct xstore_where {
    unsigned node;
    struct xstore_set set;
    uint32_t number; /* of the sub-model */
    struct xstore_record record;
    double place;
    uint32_t first, count; /* leaves of its table */
    struct xstore_entry entries[XSTORE_SPAN_MAX];
};

struct xstore_client {
    struct xstore_cn *cn;
    struct dm_ctx *ctx;
    uint64_t borders[XSTORE_NODES_MAX]; /* the first key of every memory node */
    char *leaves;                       /* device memory: for a look-up's or a batch's leaves */
    uint64_t *words;                    /* device memory: a set, a record, a value, lines */
    char *request, *reply;              /* device memory: of calls, DM_CALL_MAX each */
    unsigned scan_batch;                /* leaves that one doorbell of a scan reads at most */
    struct xstore_where where;
    uint64_t counts[XSTORE_COUNTER_COUNT];
};

/* Outcomes beside those of the contract. */
enum { XSTORE_BY_CALL = 1000, XSTORE_TORN, XSTORE_STALE };

static inline void xstore_count(struct xstore_client *client, enum xstore_counter counter) {
    client->counts[counter]++;
}

/* locate.c: finds the leaves that a key may be in. 0 with client->where; XSTORE_BY_CALL if the models say too little; a
 * failure. [waits] */
int xstore_locate(struct xstore_client *client, unsigned node, uint64_t key, uint32_t *attempts);

/* Looks into the cache only: false unless all is there. For position hints. */
bool xstore_locate_cached(struct xstore_client *client, unsigned node, uint64_t key);

/* Entries of the table that client->where belongs to, from leaf `first` on, at most `count`; *got of them. 0, or
 * XSTORE_STALE if the table is not that of the record any more; a failure. [waits] */
int xstore_table(struct xstore_client *client, uint32_t first, uint32_t count, struct xstore_entry *entries,
                 uint32_t *got);

/* Makes client->where that of the next sub-model. 0; DM_NOT_FOUND: there is none; XSTORE_STALE; a failure. [waits] */
int xstore_next_model(struct xstore_client *client);

/* Fills the caches, as far as they go. [waits] */
int xstore_prefill(struct xstore_client *client);

unsigned xstore_node_of(const struct xstore_client *client, uint64_t key);

/* What a response brings along: a newer generation, a record and lines of its table. Returns what follows them.
 * [waits] */
const char *xstore_reply_take(struct xstore_client *client, unsigned node, const struct xstore_known *known,
                              uint32_t reply_len);
struct xstore_known xstore_known_of(const struct xstore_client *client, bool stale);

/* read.c, write.c, scan.c, verify.c */
int xstore_get(void *client, uint64_t key, void *value);
int xstore_insert(void *client, uint64_t key, const void *value);
int xstore_update(void *client, uint64_t key, const void *value);
int xstore_remove(void *client, uint64_t key);
int xstore_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);
int xstore_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

static inline uint64_t *xstore_leaf_words(const struct xstore_client *client, unsigned i) {
    return (uint64_t *)(void *)(client->leaves + (size_t)i * client->cn->layout.leaf_bytes);
}

/* True if the leaf that was fetched as number i is one state of it (always without leaf_check, as far as it is safe).
 */
bool xstore_fetched_whole(const struct xstore_client *client, unsigned i, uint32_t place);

#endif
