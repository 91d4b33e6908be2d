/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters and counters of Cell.
 */
#ifndef DM_INDEXES_CELL_PARAMS_H
#define DM_INDEXES_CELL_PARAMS_H

#include "indexes/index.h"

enum cell_reads { CELL_READS_CLIENT, CELL_READS_SERVER };
enum cell_stale { CELL_STALE_LINK, CELL_STALE_CALL };

struct cell_params {
    uint64_t slots, fanout, cache_above, inline_bytes;
    double fill, inner_fill;
    uint64_t reads, stale;                /* of the enums above */
    bool fences, node_check, block_check; /* off: a known-wrong variant */
};

/* X(name, text, rare) */
#define CELL_COUNTERS(X)                                                                                               \
    X(LEAF_SPLIT, "leaf_split", 1)                                                                                     \
    X(CACHE_HIT, "cache_hit", 0) /* a node of a descent was in the cache */                                            \
    X(CACHE_MISS, "cache_miss", 0)                                                                                     \
    X(CACHE_EVICTED, "cache_evicted", 1) /* a copy was replaced by another node's */                                   \
    X(STALE_WALK, "stale_walk", 1)       /* a descent came to a node that was split since its parent was read */       \
    X(ROOT_MOVED, "root_moved", 1)       /* a client noticed that the tree had grown */                                \
    X(FALLBACK, "fallback", 0)           /* a stale walk was completed by a call */                                    \
    X(TORN_NODE, "torn_node", 1)                                                                                       \
    X(TORN_BLOCK, "torn_block", 1) /* a block was being written, or is another key's now */                            \
    X(SCAN_SPLIT, "scan_split", 1) /* a scan read a leaf that was split since its parent was read */
enum cell_counter {
#define X(name, text, rare) CELL_##name##_COUNT,
    CELL_COUNTERS(X)
#undef X
        CELL_COUNTER_COUNT,
};

#endif
