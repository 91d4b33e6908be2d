/* SPDX-License-Identifier: Apache-2.0
 *
 * The index contract. An index is one folder, one line of indexes.def and one constant table, `ix_ops_<name>`. Its code
 * sees this header, transport/dm.h, indexes/shared and common, and nothing else; in particular never the harness, the
 * fabric side or another index.
 *
 * Who owns what: remote memory is the index; `format` writes an empty one. A memory node or index server that runs code
 * for it gets a `server` object. Every compute node opens its own part (`cn`: cache, local locks), and every client
 * context attaches one handle (`client`). The table states the sizes of these three objects; the registry allocates
 * them zeroed and frees them, the hooks only fill them and free what they point to. Only the client operations are on
 * the measured path. They allocate no local memory.
 *
 * Only the functions at the end of this header call the hooks of a table. They put "index <name>: " before an
 * error once, so the messages of hooks do not name their index, and they word an error for a hook that failed without a
 * message of its own.
 */
#ifndef DM_INDEXES_INDEX_H
#define DM_INDEXES_INDEX_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/opt.h"
#include "transport/dm.h"

/* Keys are 0 .. IX_KEY_MAX; UINT64_MAX is free for "plus infinity". Values are shape.value_bytes long, any content
 * (zero too). */
#define IX_KEY_MAX (UINT64_MAX - 1)

enum ix_cap {
    IX_CAP_SCAN = 1 << 0,
    IX_CAP_DELETE = 1 << 1,
    IX_CAP_INSERT = 1 << 2,
    IX_CAP_SERVERS = 1 << 3,      /* needs index servers */
    IX_CAP_SERVER_FAULT = 1 << 4, /* survives the failure of an index server */
    IX_CAP_NO_DATA = 1 << 5,      /* stores nothing: a measurement of something else */
    IX_CAP_CLIENT_STOP = 1 << 6,  /* works on after a client stopped for good inside an operation */
    IX_CAP_RESIZE = 1 << 7,       /* keeps nothing sized by clients or threads: works after dm_fabric_resize */
};

/* A key of more than 8 bytes is its number, which comes first and decides the order, and padding. Indexes store and
 * transfer all bytes; they compare the number, and the padding of the key that they look for. */
enum { IX_KEY_BYTES_MIN = 8, IX_KEY_BYTES_MAX = 256 };

/* What an instance is made for. */
struct ix_shape {
    uint32_t value_bytes;
    uint32_t key_bytes;     /* see ix_key_bytes; 0 stands for 8 */
    uint64_t cache_bytes;   /* budget of index cache a compute node, all its memory counted */
    uint64_t expected_keys; /* loaded plus inserted; a hint for sizing, never a limit */
    uint64_t chunk_bytes;   /* of a memory node that a thread gets at once, for sizing; 0: not known */
    const struct dm_topology *topology;
};

static inline uint32_t ix_key_bytes(const struct ix_shape *shape) {
    return shape->key_bytes > 0 ? shape->key_bytes : IX_KEY_BYTES_MIN;
}
static inline uint32_t ix_key_padding(const struct ix_shape *shape) {
    return ix_key_bytes(shape) - IX_KEY_BYTES_MIN;
}

/* Sorted, distinct pairs for bulk load, pulled in blocks so that they need not all be in memory. */
struct ix_pairs {
    uint64_t count;
    /* Copies up to n keys from position `first` into keys and returns how many; values likewise, n * value_bytes. */
    uint64_t (*keys)(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys);
    void (*value)(const struct ix_pairs *pairs, uint64_t key, void *value);
    /* The keys that will be inserted later, ascending and distinct, none of them a pair's, for an index that trains on
     * them. *keys is valid during the load. 0, DM_ERR_NO_MEMORY, or DM_ERR_UNSUPPORTED: they are not known. Optional:
     * none will be inserted. */
    int (*to_come)(const struct ix_pairs *pairs, const uint64_t **keys, uint64_t *count);
    void *arg;
};

/* A parameter value that is known to be wrong, kept to prove that `dmbench check` can fail: worlds never draw it, and
 * when it is asked for it must be found within that many seeds. */
struct ix_wrong {
    const char *param, *value;
    unsigned seeds;  /* 0: too rare to be asserted; still never drawn */
    const char *why; /* what goes wrong, in a few words */
};

/* A parameter value by name, as text; lists end with a NULL param. */
struct ix_setting {
    const char *param, *value;
};

/* A counter of events: one number a client. */
struct ix_counter {
    const char *name;
    bool rare; /* `dmbench check` must see it happen */
};

/* An index lists its counters once, as rows X(constant, "name", rare) of a macro. IX_COUNTER turns the list into the
 * rows of an array of struct ix_counter, which IX_COUNTERS_END ends; the index makes an enum of the constants. */
#define IX_COUNTER(constant, text, is_rare) {.name = (text), .rare = (is_rare)},
#define IX_COUNTERS_END                                                                                                \
    { .name = NULL }

/* What verify found; `broken` counts the problems. `interrupted` is set by the caller: a client has stopped for good
 * inside an operation, so what one unfinished operation leaves (a held lock, a node that its parent does not point to)
 * is no problem. verify keeps it and sets everything else. */
struct ix_report {
    bool interrupted;
    uint64_t keys, leaves, inner_nodes;
    unsigned height;  /* levels including the leaves; 0: not a tree */
    double leaf_fill; /* used entries divided by all entries of leaves */
    uint64_t broken;
    char first_problem[200];
};

/* The table of an index. The client operations return 0; DM_NOT_FOUND or DM_EXISTS where stated; DM_ERR_NO_MEMORY
 * (nothing changed); DM_ERR_RETRY_LIMIT, DM_ERR_IO, DM_ERR_PEER, DM_ERR_STOPPED (an insert, update or delete may or may
 * not have happened); DM_ERR_UNSUPPORTED. */
struct ix_ops {
    const char *name;
    const char *summary; /* one line for `dmbench list` */
    const char *paper;   /* citation */
    unsigned caps;

    const struct dm_opt *params; /* rows over params_bytes of values; shown, validated, swept, stored in results */
    size_t params_bytes;
    const struct ix_counter *counters; /* the index's own counters, ended by a NULL name; NULL if there are none */
    size_t counts_offset;              /* of the uint64_t array in the client object, one element a counter */
    const struct ix_wrong *wrong;      /* ended by a NULL param; NULL if there are none */
    const struct ix_setting *tiny;     /* make the structure grow high with few keys of 8-byte values; NULL: none */
    const struct ix_setting *patient;  /* give time to an index whose addresses expire, on slow devices; NULL: none */

    /* True if with these parameters the index does what IX_CAP_CLIENT_STOP states. NULL: as caps say. */
    bool (*survives_stops)(const void *params);

    uint32_t value_bytes_max; /* of the values that can be stored; 0: `check` knows, from parameters */
    uint32_t key_bytes_max;   /* of keys; 0: only keys of 8 bytes */

    /* Sizes of the three objects; server_bytes is 0 without `serve`. */
    size_t cn_bytes, client_bytes, server_bytes;

    /* Refuses parameters and shapes that cannot work, naming the limit. The number of memory nodes, value_bytes_max
     * and key_bytes_max have been checked. Required. */
    int (*check)(const void *params, const struct ix_shape *shape, struct dm_err *err);

    /* DRAM bytes a memory node needs for `keys` keys (including space for what operations leave behind, and the ends of
     * chunks in which nothing fits). Also called with shapes that check refuses: any number will do then. Required. */
    uint64_t (*memory_needed)(const void *params, const struct ix_shape *shape, uint64_t keys);

    /* Code that runs on a memory node or index server: registers handlers, starts background contexts. Called for every
     * such node; one that has nothing to do there returns 0. Optional. `unserve` frees what the object points to, also
     * after a `serve` that failed half-way or did nothing. Optional. */
    int (*serve)(void *server, struct dm_fabric *fabric, unsigned node, const void *params,
                 const struct ix_shape *shape, struct dm_err *err);
    void (*unserve)(void *server);

    /* Writes an empty index into remote memory, which is zero; called once, before any open. [waits] Optional: where
     * zeros are an empty index. */
    int (*format)(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err);

    /* Fills a compute node's part; ctx is on that node. params and shape outlive it. [waits] Required. `close` frees
     * what the part points to, after every client has detached, also after an `open` that failed half-way. Optional. */
    int (*open)(void *cn, struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err);
    void (*close)(void *cn);

    /* Fills an empty index. Not measured. [waits] Required. */
    int (*load)(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);

    /* Fills the client handle of this context; all local memory an operation needs is allocated here. [waits] Required.
     * `detach` frees what the handle points to, also after an `attach` that failed half-way, or in which a fault
     * stopped the context for good. Optional. */
    int (*attach)(void *client, void *cn, struct dm_ctx *ctx, struct dm_err *err);
    void (*detach)(void *client);

    /* The operations. [waits] get is required, the others as caps say. */
    int (*get)(void *client, uint64_t key, void *value);          /* DM_NOT_FOUND: absent */
    int (*insert)(void *client, uint64_t key, const void *value); /* DM_EXISTS: present, left as it is */
    int (*update)(void *client, uint64_t key, const void *value); /* DM_NOT_FOUND: absent, left so */
    int (*remove)(void *client, uint64_t key);                    /* DM_NOT_FOUND: absent */

    /* The first `count` pairs with keys >= first, ascending; *found of them (fewer at the end of the index). Not a
     * snapshot: every pair was there at some moment of the scan, and no key that was there throughout is missing. */
    int (*scan)(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);

    /* Bytes of index cache in use on this compute node, everything counted. Required. */
    uint64_t (*cache_bytes)(const void *cn);

    /* The same as the index's authors count it, which is less: used entries alone, for instance. Optional. */
    uint64_t (*cache_entry_bytes)(const void *cn);

    /* Walks the whole index when nothing else runs. A failure is one of the walk; what is wrong with the index is in
     * report. [waits] Required. */
    int (*verify)(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);
};

/* ---- the registry ------------------------------------------------------------------------------------------------ */

/* The tables of indexes.def, in its order; NULL-terminated. The first call checks every table by ix_table_check and
 * ends the program with one line if one is refused. */
const struct ix_ops *const *ix_all(void);
const struct ix_ops *ix_find(const char *name);

/* Refuses a table in which a required hook or size is missing, hooks and capabilities disagree, or a counter or setting
 * is not what it must be; the message names index and member. */
int ix_table_check(const struct ix_ops *ops, struct dm_err *err);

size_t ix_counter_count(const struct ix_ops *ops);

/* Sets the parameters of a list (NULL: none). */
int ix_settings_set(const struct ix_ops *ops, const struct ix_setting *settings, void *params, struct dm_err *err);

/* ---- the callers of the hooks ------------------------------------------------------------------------------------ */

/* One attached client. */
struct ix_client {
    const struct ix_ops *ops;
    void *handle;           /* NULL: not attached */
    const uint64_t *counts; /* the client's counters, one a row of ops->counters */
    uint32_t value_bytes;
};

/* The number of memory nodes, the sizes of keys and values, then the index's own check. */
int ix_check(const struct ix_ops *ops, const void *params, const struct ix_shape *shape, struct dm_err *err);
uint64_t ix_memory_needed(const struct ix_ops *ops, const void *params, const struct ix_shape *shape, uint64_t keys);

/* *server is NULL for an index without `serve`. */
int ix_serve(const struct ix_ops *ops, struct dm_fabric *fabric, unsigned node, const void *params,
             const struct ix_shape *shape, void **server, struct dm_err *err);
void ix_unserve(const struct ix_ops *ops, void *server); /* accepts NULL */

int ix_format(const struct ix_ops *ops, struct dm_ctx *ctx, const void *params, const struct ix_shape *shape,
              struct dm_err *err); /* [waits] */

/* *cn is set before the hook waits, and NULL after a failure. [waits] */
int ix_open(const struct ix_ops *ops, struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, void **cn,
            struct dm_err *err);
void ix_close(const struct ix_ops *ops, void *cn); /* accepts NULL */

int ix_load(const struct ix_ops *ops, void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs,
            struct dm_err *err); /* [waits] */

/* Sets all of *client before the hook waits: if a fault stops this context for good, the client can still be detached.
 * After a failure client->handle is NULL. [waits] */
int ix_attach(const struct ix_ops *ops, void *cn, struct dm_ctx *ctx, const struct ix_shape *shape,
              struct ix_client *client, struct dm_err *err);
void ix_detach(struct ix_client *client); /* does nothing to a client that is not attached */

static inline const uint64_t *ix_counts(const struct ix_client *client) {
    return client->counts;
}

/* Bytes of index cache in use on this compute node. */
uint64_t ix_cache_bytes(const struct ix_ops *ops, const void *cn);
/* As the index's authors count them; 0 if the index does not say. */
uint64_t ix_cache_entry_bytes(const struct ix_ops *ops, const void *cn);

int ix_verify(const struct ix_ops *ops, void *cn, struct dm_ctx *ctx, struct ix_report *report,
              struct dm_err *err); /* [waits] */

/* True if the index works on after a client stopped for good inside an operation. */
static inline bool ix_survives_stops(const struct ix_ops *ops, const void *params) {
    return ops->survives_stops ? ops->survives_stops(params) : ops->caps & IX_CAP_CLIENT_STOP;
}

/* The operations; see the hooks of the same names. [waits] */
static inline int ix_get(struct ix_client *client, uint64_t key, void *value) {
    assert(key <= IX_KEY_MAX);
    return client->ops->get(client->handle, key, value);
}
static inline int ix_insert(struct ix_client *client, uint64_t key, const void *value) {
    assert(key <= IX_KEY_MAX);
    return client->ops->caps & IX_CAP_INSERT ? client->ops->insert(client->handle, key, value) : DM_ERR_UNSUPPORTED;
}
static inline int ix_update(struct ix_client *client, uint64_t key, const void *value) {
    assert(key <= IX_KEY_MAX);
    return client->ops->caps & IX_CAP_INSERT ? client->ops->update(client->handle, key, value) : DM_ERR_UNSUPPORTED;
}
static inline int ix_remove(struct ix_client *client, uint64_t key) {
    assert(key <= IX_KEY_MAX);
    return client->ops->caps & IX_CAP_DELETE ? client->ops->remove(client->handle, key) : DM_ERR_UNSUPPORTED;
}
static inline int ix_scan(struct ix_client *client, uint64_t first, uint32_t count, uint64_t *keys, void *values,
                          uint32_t *found) {
    *found = 0;
    return client->ops->caps & IX_CAP_SCAN ? client->ops->scan(client->handle, first, count, keys, values, found)
                                           : DM_ERR_UNSUPPORTED;
}

#endif
