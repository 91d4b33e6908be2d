/* SPDX-License-Identifier: Apache-2.0
 *
 * Sherman inside: what its files share. README.md maps the paper's parts to the files.
 *
 * A B-link tree with fixed leaves (shared/btree.h) whose nodes have versioned lines, whose entries are written back
 * alone, and whose locks are words in a table beside the nodes, with local lock queues and hand-over (lock.c); or, as
 * CHIME's authors run it, words behind the nodes.
 */
#ifndef DM_INDEXES_SHERMAN_SHERMAN_H
#define DM_INDEXES_SHERMAN_SHERMAN_H

#include "indexes/index.h"
#include "indexes/shared/btree.h"
#include "indexes/shared/locks.h"

/* ---- parameters -------------------------------------------------------------------------------------------------- */

enum { SHERMAN_LOCKS_AUTO, SHERMAN_LOCKS_CHIP, SHERMAN_LOCKS_DRAM, SHERMAN_LOCKS_NODE };
enum { SHERMAN_TORN_RETRY, SHERMAN_TORN_ABSENT };
enum { SHERMAN_FIND_LEVELS, SHERMAN_FIND_LIST };

struct sherman_params {
    uint64_t node_bytes, span;
    double fill;
    unsigned locks;
    uint64_t lock_count;
    bool local_locks, hand_over;
    uint64_t hand_over_max;
    bool back_off;
    bool combine;
    unsigned versions; /* enum ix_versions */
    unsigned torn;
    unsigned values; /* enum ix_values */
    unsigned fetch;  /* enum ix_fetch */
    uint64_t cache_levels;
    unsigned cache_find;
    uint64_t list_nodes;
};

/* ---- counters; see sherman_client.counts ------------------------------------------------------------------------- */

/* X(name, text, rare): rare ones are events that a concurrency check must have seen. */
#define SHERMAN_COUNTERS(X)                                                                                            \
    IX_TREE_COUNTERS(X)                                                                                                \
    IX_TREE_CACHE_COUNTERS(X)                                                                                          \
    X(HAND_OVER, "hand_over", 1)                                                                                       \
    X(TORN_ENTRY, "torn_entry", 1)                                                                                     \
    X(BLOCK_REUSED, "block_reused", 1) /* a value's block had been reused before it was read */
enum sherman_counter {
#define X(name, text, rare) SHERMAN_##name,
    SHERMAN_COUNTERS(X)
#undef X
        SHERMAN_COUNTER_COUNT,
};

/* ---- a compute node and a client --------------------------------------------------------------------------------- */

struct sherman_cn {
    struct ix_btree_cn btree;
    const struct sherman_params *params;
    struct ix_locks *locks;
};

struct sherman_client {
    struct ix_btree btree;
    struct sherman_cn *cn;
    struct ix_lock lock; /* of a leaf or an inner node: one at a time */
    uint64_t counts[SHERMAN_COUNTER_COUNT];
};

/* ---- lock.c ------------------------------------------------------------------------------------------------------ */

extern const struct ix_tree_policy sherman_locking;

/* Refuses lock tables that do not fit the memory nodes. */
int sherman_locks_check(const struct sherman_params *params, const struct dm_topology *topology, struct dm_err *err);

/* Of a memory node's DRAM, or of its on-chip memory. */
uint64_t sherman_locks_bytes(const struct sherman_params *params, const struct dm_topology *topology);

/* Makes the lock tables and stores their addresses in the reserved page; opens a compute node's side of them. [waits]
 */
int sherman_locks_format(struct dm_ctx *ctx, const struct sherman_params *params, const struct dm_topology *topology,
                         struct dm_err *err);
int sherman_locks_open(struct sherman_cn *cn, struct dm_ctx *ctx);

#endif
