/* SPDX-License-Identifier: Apache-2.0
 *
 * FG inside: parameters, counters and the two objects. README.md maps the paper's parts to the files.
 */
#ifndef DM_INDEXES_FG_FG_H
#define DM_INDEXES_FG_FG_H

#include "indexes/index.h"
#include "indexes/shared/btree.h"

enum { FG_UPGRADE_VERSION, FG_UPGRADE_BLIND };

struct fg_params {
    uint64_t node_bytes;
    double fill;
    uint64_t cache_levels;
    bool combine;
    unsigned versions; /* enum ix_versions */
    unsigned upgrade;
    unsigned values; /* enum ix_values */
    unsigned fetch;  /* enum ix_fetch */
};

/* X(name, text, rare): rare ones are events that a concurrency check must have seen. */
#define FG_COUNTERS(X)                                                                                                 \
    IX_TREE_COUNTERS(X)                                                                                                \
    IX_TREE_CACHE_COUNTERS(X)                                                                                          \
    X(BLOCK_REUSED, "block_reused", 1) /* a value's block had been reused before it was read */
enum fg_counter {
#define X(name, text, rare) FG_##name,
    FG_COUNTERS(X)
#undef X
        FG_COUNTER_COUNT,
};

struct fg_cn {
    struct ix_btree_cn btree;
};

struct fg_client {
    struct ix_btree btree;
    uint64_t counts[FG_COUNTER_COUNT];
};

#endif
