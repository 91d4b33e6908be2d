/* SPDX-License-Identifier: Apache-2.0
 *
 * An index server of HStore: the hash table server (HTS) or the skip list server (SLS) of a shard. Both have call
 * threads, which append requests to logs, and a worker for each log. All of this is local to one server.
 */
#ifndef DM_INDEXES_HSTORE_SERVER_H
#define DM_INDEXES_HSTORE_SERVER_H

#include "hstore.h"
#include "list.h"
#include "table.h"

enum hstore_state { HSTORE_STARTING, HSTORE_READY };

/* ---- logs of the hash table server ------------------------------------------------------------------------------- */

enum hstore_mark { HSTORE_FREE, HSTORE_APPENDED, HSTORE_APPLIED };

/* An entry of the ring, from its append until its handler has read the outcome. */
struct hstore_pending {
    struct hstore_write write;
    uint64_t hash;
    enum hstore_mark mark;
    bool is_logged; /* it changes something, and is shipped */
    int rc;
    uint64_t old; /* the item that it replaces */
    uint64_t stamp;
    uint64_t appended_ns, queue_ns, log_ns, index_ns;
    struct dm_cond answered;
};

struct hstore_hts_log {
    struct dm_mutex mutex;
    struct dm_cond filled, drained;
    struct hstore_pending *ring;
    uint64_t appended, applied; /* numbers of entries so far; modulo its size they are indices of the ring */
    uint64_t stamp;             /* the last one assigned */
    _Atomic uint64_t settled;   /* the last one applied to the table */
    bool has_worker;
    _Atomic bool in_batch;  /* a batch is being processed */
    _Atomic bool may_apply; /* and may still change the table without another call to the skip list server */
    struct hstore_spare spare;
    char *message; /* a batch in the form in which it is shipped */
};

/* ---- logs of the skip list server -------------------------------------------------------------------------------- */

enum { HSTORE_REQUESTS = 64, HSTORE_SEARCH_PAIRS = 40 };

/* A search of one partition. */
struct hstore_search {
    uint64_t key;
    uint32_t wanted; /* pairs from the key on */
    bool is_find;    /* of this key alone: one pair, whose item is 0 if it is absent */
    /* The result. */
    uint32_t count;
    struct hstore_steps steps;
    uint64_t stamp; /* of the last entry that may be in the pairs */
    uint64_t queue_ns, index_ns;
};

/* A search that a handler requests and the partition's worker does. */
struct hstore_request {
    struct hstore_request *next; /* among those that wait, or that are unused */
    struct hstore_search search;
    struct hstore_pair pairs[HSTORE_SEARCH_PAIRS];
    uint64_t asked_ns;
    bool is_done;
    struct dm_cond done;
};

struct hstore_sls_log {
    struct dm_mutex mutex;
    struct dm_cond filled;
    struct hstore_entry *ring;
    uint64_t appended, applied;
    uint64_t stamp;                 /* of the last entry */
    _Atomic uint64_t trusted_stamp; /* up to this one the hash table has all entries, or no longer exists */
    bool is_doubtful;               /* see hstore_begun.doubts */
    bool in_ship;                   /* a handler has a batch that is being marked and is not appended yet */
    /* The entries that the log's marker must mark; NULL when it has. */
    const struct hstore_entry *to_mark;
    uint32_t to_mark_count;
    bool has_marker;
    struct dm_cond mark_wanted, marked, shipped;
    bool has_worker;
    bool is_lingering; /* the worker waits for further entries */
    struct hstore_request *requests, *unused, *asked, *asked_last;
    struct dm_cond returned; /* a request became unused */
    struct hstore_list list;
};

/* ---- a server ---------------------------------------------------------------------------------------------------- */

/* The pairs of a partition of the skip list that is being rebuilt, in any order. */
struct hstore_gathered {
    struct hstore_pair *pairs;
    uint64_t count, capacity;
};

struct hstore_server {
    struct dm_fabric *fabric;
    const struct hstore_params *params;
    const struct ix_shape *shape;
    struct hstore_geometry geometry;
    unsigned node, peer, shard;
    bool is_list;
    _Atomic unsigned state;    /* enum hstore_state */
    _Atomic uint32_t tag;      /* of the shard's hash table, to this server's knowledge */
    uint32_t forgotten_before; /* HTS: deletes from tables with a lower tag are unknown */
    uint64_t ring_entries;
    struct dm_mutex rpc[HSTORE_LOGS_MAX]; /* call threads */
    struct hstore_hts_log hts[HSTORE_LOGS_MAX];
    struct hstore_sls_log sls[HSTORE_LOGS_MAX];
    struct hstore_table table;
    struct hstore_gathered gathered[HSTORE_LOGS_MAX]; /* here, as a run may end in the middle of a recovery */
    _Atomic uint64_t removes[HSTORE_REMOVES];         /* the last delete of a client: client << 32 | seq */
    struct dm_mutex gift_mutex;
    uint64_t gifts[HSTORE_REMOVES]; /* packed addresses of items that the sweep has reclaimed for clients */
    _Atomic uint32_t gift_count;
    _Atomic unsigned next_worker; /* workers take the logs in turn as they start */
    _Atomic unsigned next_marker;
    _Atomic uint64_t events[HSTORE_EVENT_COUNT];
};

static inline void hstore_event_add(struct hstore_server *server, enum hstore_event event, uint64_t add) {
    atomic_fetch_add_explicit(&server->events[event], add, memory_order_relaxed);
}
static inline bool hstore_is_ready(struct hstore_server *server) {
    return atomic_load(&server->state) == HSTORE_READY;
}

/* ---- reply.c ----------------------------------------------------------------------------------------------------- */

/* Initialises a reply's head, with the events that no client has received yet. */
void hstore_reply_make(struct hstore_server *server, struct hstore_reply *reply);

/* Adds the events of the other server's reply to this server's, so that they reach a client. */
void hstore_events_pass(struct hstore_server *server, const struct hstore_reply *reply);

/* ---- table_server.c ---------------------------------------------------------------------------------------------- */

int hstore_hts_write(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                     uint32_t *resp_len);
int hstore_hts_begin(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                     uint32_t *resp_len);
int hstore_hts_table(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                     uint32_t *resp_len);
int hstore_hts_load(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                    uint32_t *resp_len);
int hstore_removes(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);
void hstore_hts_worker(struct dm_ctx *ctx, void *server);

/* ---- list_server.c ----------------------------------------------------------------------------------------------- */

int hstore_sls_ship(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                    uint32_t *resp_len);
int hstore_sls_begin(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                     uint32_t *resp_len);
int hstore_sls_list(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                    uint32_t *resp_len);
int hstore_sls_load(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                    uint32_t *resp_len);
void hstore_sls_worker(struct dm_ctx *ctx, void *server);
void hstore_sls_marker(struct dm_ctx *ctx, void *server);

/* ---- search.c ---------------------------------------------------------------------------------------------------- */

/* Takes the request of a find, scan or copy of the list, and sets *resp_len to 0. Returns 0; DM_ERR_INVALID if the
 * request or the buffer of the reply is too small; HSTORE_NOT_READY. */
int hstore_find_take(struct hstore_server *server, const void *req, uint32_t req_len, uint32_t reply_bytes,
                     uint32_t *resp_len, struct hstore_find *find);

int hstore_sls_find(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                    uint32_t *resp_len);
int hstore_sls_scan(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp,
                    uint32_t *resp_len);

/* Applies the oldest entries, up to `count`, and returns their number. The partition's mutex is held. */
uint32_t hstore_sls_apply(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log, uint64_t count);

/* Does the searches that wait for the worker of this log. The partition's mutex is held. */
void hstore_searches_do(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log);

/* ---- recover.c, sweep.c ------------------------------------------------------------------------------------------ */

/* Rebuilds the index of a server that has come back with empty memory. 0 or a failure. [waits] */
int hstore_recover(struct dm_ctx *ctx, struct hstore_server *server);

/* Frees what a recovery has gathered, finished or not. */
void hstore_gathered_free(struct hstore_server *server);

/* Reads the pool periodically and reclaims orphaned items. */
void hstore_sweep(struct dm_ctx *ctx, void *server);

#endif
