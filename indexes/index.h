/* SPDX-License-Identifier: Apache-2.0
 *
 * The index contract. An index is one folder, one line of indexes.def and one constant table, `ix_ops_<name>`. Its code
 * sees this header, transport/dm.h, indexes/shared and common, and nothing else; in particular never the harness, the
 * fabric side or another index.
 *
 * Who owns what: remote memory is the index; `format` writes an empty one. A memory node or index server that runs code
 * for it gets a `server` object. Every compute node opens its own part (`cn`: cache, local locks), and every client
 * context attaches one handle (`client`). Only the client operations are on the measured path. They allocate no local
 * memory.
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
    IX_CAP_NO_DATA = 1 << 5,      /* keeps nothing: only measures the harness (null) */
    IX_CAP_CLIENT_STOP = 1 << 6,  /* goes on when a client stops for good inside an operation */
};

/* What an instance is made for. */
struct ix_shape {
    uint32_t value_bytes;
    uint64_t cache_bytes;   /* budget of index cache a compute node, all its memory counted */
    uint64_t expected_keys; /* loaded plus inserted; a hint for sizing, never a limit */
    const struct dm_topology *topology;
};

/* Sorted, distinct pairs for bulk load, pulled in blocks so that they need not all be in memory. */
struct ix_pairs {
    uint64_t count;
    /* Copies up to n keys from position `first` into keys and returns how many; values likewise, n * value_bytes. */
    uint64_t (*keys)(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys);
    void (*value)(const struct ix_pairs *pairs, uint64_t key, void *value);
    void *arg;
};

/* A parameter value that is known to be wrong, kept to prove that `dmbench check` can fail: worlds never draw it, and
 * when it is asked for it must be found within that many seeds. */
struct ix_wrong {
    const char *param, *value;
    unsigned seeds;  /* 0: too rare to be asserted; still never drawn */
    const char *why; /* what goes wrong, in a few words */
};

/* What verify found; `broken` is 0 when the structure is whole. `interrupted` is set by the caller: a client has
 * stopped for good inside an operation, so what one unfinished operation leaves behind (a held lock, a node without its
 * parent's pointer) is no breakage. verify keeps it and sets everything else. */
struct ix_report {
    bool interrupted;
    uint64_t keys, leaves, inner_nodes;
    unsigned height;  /* levels including the leaves; 0 where it means nothing */
    double leaf_fill; /* entries used over entries there are */
    uint64_t broken;
    char first_problem[200];
};

/* How one client operation is called on an index. Returns for all: 0; DM_NOT_FOUND or DM_EXISTS where said;
 * DM_ERR_NO_MEMORY (nothing changed); DM_ERR_RETRY_LIMIT, DM_ERR_IO, DM_ERR_PEER, DM_ERR_STOPPED (an insert, update or
 * delete may or may not have happened); DM_ERR_UNSUPPORTED. */
struct ix_ops {
    const char *name;
    const char *summary; /* one line for `dmbench list` */
    const char *paper;   /* citation */
    unsigned caps;

    const struct dm_opt *params; /* rows over params_bytes of values; shown, validated, swept, stored in results */
    size_t params_bytes;
    const char *const *counters;  /* names of the index's own counters, NULL-terminated; see ix_count */
    unsigned rare_events;         /* bit i: counter i is an event that `check` must see happen */
    const struct ix_wrong *wrong; /* ends with a NULL param; NULL if there are none */

    /* Refuses parameters and shapes that cannot work, naming the limit. Required. */
    int (*check)(const void *params, const struct ix_shape *shape, struct dm_err *err);

    /* DRAM bytes a memory node needs for `keys` keys (with room for what operations leave behind). Also asked of shapes
     * that check refuses: any number will do then. Required. */
    uint64_t (*memory_needed)(const void *params, const struct ix_shape *shape, uint64_t keys);

    /* Code that runs on a memory node or index server: registers handlers, starts background contexts. Optional, with
     * stop. */
    int (*serve)(struct dm_fabric *fabric, unsigned node, const void *params, const struct ix_shape *shape,
                 void **server, struct dm_err *err);
    void (*unserve)(void *server);

    /* Writes an empty index into remote memory; called once, before any open. [waits] Required. */
    int (*format)(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err);

    /* Makes a compute node's part; ctx is on that node. params and shape outlive it. [waits] Required, with close. */
    int (*open)(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, void **cn, struct dm_err *err);
    void (*close)(void *cn); /* accepts NULL; every client has detached */

    /* Fills an empty index. Not measured. [waits] Required. */
    int (*load)(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);

    /* A client handle for this context; all local memory an operation needs is allocated here. [waits] Required, with
     * detach. */
    int (*attach)(void *cn, struct dm_ctx *ctx, void **client, struct dm_err *err);
    void (*detach)(void *client); /* accepts NULL */

    /* The operations. [waits] get is required, the others as caps say. */
    int (*get)(void *client, uint64_t key, void *value);          /* DM_NOT_FOUND: absent */
    int (*insert)(void *client, uint64_t key, const void *value); /* DM_EXISTS: present, left as it is */
    int (*update)(void *client, uint64_t key, const void *value); /* DM_NOT_FOUND: absent, left so */
    int (*remove)(void *client, uint64_t key);                    /* DM_NOT_FOUND: absent */

    /* The first `count` pairs with keys >= first, ascending; *found of them (fewer at the end of the index). Not a
     * snapshot: every pair was there at some moment of the scan, and no key that was there throughout is missing. */
    int (*scan)(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);

    /* The client's own counters, one a name in `counters`. Required if there are names. */
    const uint64_t *(*count)(const void *client);

    /* Bytes of index cache in use on this compute node, everything counted. Required. */
    uint64_t (*cache_bytes)(const void *cn);

    /* Walks the whole index when nothing else runs. A failure is one of the walk; what is wrong with the index is in
     * report. [waits] Required. */
    int (*verify)(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);
};

/* The tables of indexes.def, in its order; NULL-terminated. */
const struct ix_ops *const *ix_all(void);
const struct ix_ops *ix_find(const char *name);

/* The only callers of the operations. */
struct ix_client {
    const struct ix_ops *ops;
    void *handle;
    uint32_t value_bytes;
};

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
