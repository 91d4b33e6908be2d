/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's part of the index and a client's, and the operations on them.
 */
#ifndef DM_INDEXES_XSTORE_D_CLIENT_H
#define DM_INDEXES_XSTORE_D_CLIENT_H

#include "cache.h"
#include "indexes/shared/ranges.h"
#include "layout.h"
#include "params.h"

enum { XSTORE_SCAN_BATCH_MAX = 32, XSTORE_SPAN_MAX = 16 };

struct xstore_cn {
    const struct xstore_params *params;
    const struct ix_shape *shape;
    struct xstore_layout layout;
    struct xstore_cache records, lines;
    _Atomic uint64_t sets[DM_MNS_MAX][XSTORE_SET_WORDS]; /* the last set of models read from each memory node */
    _Atomic uint32_t filled[DM_MNS_MAX]; /* sub-models of each memory node that clients have begun to prefill */
};

/* Where the models predict a key. */
struct xstore_where {
    unsigned node;
    struct xstore_set set;
    uint32_t number; /* of the sub-model */
    struct xstore_record record;
    double coord;
    uint32_t first, count; /* predicted leaves, as entries of the table */
    struct xstore_entry entries[XSTORE_SPAN_MAX];
};

struct xstore_client {
    struct xstore_cn *cn;
    struct dm_ctx *ctx;
    struct ix_ranges ranges; /* of keys, one a memory node */
    char *leaves;            /* device memory: the leaves of a look-up or a batch */
    uint64_t *words;         /* device memory: a set, a record, a value, lines */
    char *request, *reply;   /* device memory: DM_CALL_MAX bytes each */
    unsigned scan_batch;     /* leaves at most that a scan reads with one doorbell */
    struct xstore_where where;
    uint64_t counts[XSTORE_COUNTER_COUNT];
};

/* Outcomes in addition to those of dm.h. */
enum { XSTORE_BY_CALL = 1000, XSTORE_TORN, XSTORE_STALE };

static inline void xstore_count(struct xstore_client *client, enum xstore_counter counter) {
    client->counts[counter]++;
}

int xstore_get(void *client, uint64_t key, void *value);
int xstore_insert(void *client, uint64_t key, const void *value);
int xstore_update(void *client, uint64_t key, const void *value);
int xstore_remove(void *client, uint64_t key);
int xstore_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);
int xstore_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

static inline uint64_t *xstore_leaf_words(const struct xstore_client *client, unsigned i) {
    return (uint64_t *)(void *)(client->leaves + (size_t)i * client->cn->layout.leaf_bytes);
}

/* True if leaf number i in client->leaves is one state of the leaf (without leaf_check: true if its count is legal). */
static inline bool xstore_fetched_consistent(const struct xstore_client *client, unsigned i, uint32_t ref) {
    const uint64_t *words = xstore_leaf_words(client, i);
    if (!client->cn->params->leaf_check) {
        return xstore_head_of(words[1]).count <= client->cn->layout.slots;
    }
    dm_charge(client->ctx, DM_WORK_HASH, ix_check_hashes(1 + xstore_head_of(words[1]).count));
    return xstore_leaf_consistent(&client->cn->layout, ref, words);
}

#endif
