/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's part of the index and a client's, and the operations on them.
 */
#ifndef DM_INDEXES_CELL_CLIENT_H
#define DM_INDEXES_CELL_CLIENT_H

#include <stdatomic.h>

#include "indexes/shared/node_cache.h"
#include "indexes/shared/ranges.h"
#include "layout.h"
#include "params.h"

enum { CELL_SCAN_BATCH_MAX = 32, CELL_BLOCK_BATCH = 16 };

struct cell_cn {
    const struct cell_params *params;
    const struct ix_shape *shape;
    struct cell_layout layout;
    struct ix_cache *cache;             /* inner nodes from level cache_above on */
    _Atomic uint64_t roots[DM_MNS_MAX]; /* the last root word read from each memory node */
};

struct cell_client {
    struct cell_cn *cn;
    struct dm_ctx *ctx;
    unsigned thread;
    struct ix_ranges ranges;
    uint64_t *node;        /* device memory: the last node read */
    uint64_t *leaves;      /* device memory: the leaves of a scan, scan_batch of them */
    uint64_t *blocks;      /* device memory: CELL_BLOCK_BATCH blocks */
    uint64_t *root;        /* device memory: a root word, or the ranges */
    char *request, *reply; /* device memory */
    unsigned scan_batch;
    uint64_t counts[CELL_COUNTER_COUNT];
};

/* Outcomes in addition to those of dm.h: a call has to complete the walk; a ref that is not of a node. */
enum { CELL_BY_CALL = 1000, CELL_NO_NODE };

static inline void cell_count_event(struct cell_client *client, enum cell_counter counter) {
    client->counts[counter]++;
}

static inline unsigned cell_node_of(struct cell_client *client, uint64_t key) {
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    return ix_ranges_node(&client->ranges, client->cn->shape->topology->mns, key);
}

/* ---- walk.c ------------------------------------------------------------------------------------------------------ */

/* Reads the root word of a memory node. [waits] */
int cell_root_refresh(struct cell_client *client, unsigned node);

/* True if what was fetched from `ref` is one state of the node. */
bool cell_is_consistent(struct cell_client *client, unsigned level, uint32_t ref, const uint64_t *words);

/* Reads the node at `ref` into `into` until it is consistent. 0; CELL_NO_NODE if the ref is not in memory; or a
 * failure. [waits] */
int cell_node_read(struct cell_client *client, unsigned node, uint32_t ref, unsigned level, uint64_t *into,
                   uint32_t *attempts);

/* Where a descent ended. */
struct cell_walked {
    unsigned level; /* below the one asked for if the tree is lower */
    dm_addr addr;
    uint32_t stamp; /* of the cached copy that it is; 0: it was read */
};

/* Walks to the node of `level` that covers key; its words are in client->node. 0; CELL_BY_CALL if the walk was stale
 * and `by_call` permits it; or a failure. [waits] */
int cell_walk(struct cell_client *client, unsigned node, uint64_t key, unsigned level, bool by_call,
              struct cell_walked *walked, uint32_t *attempts);

/* ---- read.c ------------------------------------------------------------------------------------------------------ */

/* True if the block holds the value of the key, complete. */
bool cell_block_is_value(struct cell_client *client, uint64_t key, const uint64_t *block);

/* ---- operations -------------------------------------------------------------------------------------------------- */

int cell_format(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err);
int cell_load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);
int cell_get(void *client, uint64_t key, void *value);
int cell_insert(void *client, uint64_t key, const void *value);
int cell_update(void *client, uint64_t key, const void *value);
int cell_remove(void *client, uint64_t key);
int cell_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);
int cell_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

#endif
