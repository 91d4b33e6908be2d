/* SPDX-License-Identifier: Apache-2.0
 *
 * A B-link tree that the processors of the memory nodes serve: every operation is one call, and only handlers touch the
 * tree. EMT and DrTM-Tree are this tree with different nodes; their folders have the parameters and the tables.
 *
 * Objects are in the memory node's DRAM and refer to each other by a "ref", an address on the same memory node in units
 * of 64 bytes; 0 is none. Several workers run handlers at once:
 *
 *  - A node has a version. A writer holds the node's mutex and makes the version odd while it stores; a reader takes no
 *    mutex, compares the versions before and after its copy, and reads again if they differ (Masstree's protocol; for
 *    DrTM-Tree it stands for the abort of a hardware transaction).
 *  - A split moves the upper half to a new node on the right, and enters that into the parent afterwards. Until then
 *    readers and writers follow the right link, as they do when a node was split after they had left its parent. So a
 *    context holds one mutex at a time.
 *  - A key is compared by its first 8 bytes in all nodes, as these decide the order. What it has beyond them is stored
 *    behind the value, and compared where the first 8 bytes are those of the key that is looked for.
 *  - Values that are not in the leaf are in rows of their own. A row changes only under the mutex and the version of
 *    its leaf, also when it is freed and used for another key: so the version of the leaf covers the copy of a row.
 *
 * Keys are partitioned among the memory nodes as ranges.h has it.
 */
#ifndef DM_INDEXES_SHARED_SERVER_TREE_H
#define DM_INDEXES_SHARED_SERVER_TREE_H

#include <stdatomic.h>

#include "indexes/index.h"
#include "indexes/shared/ranges.h"

enum {
    IX_SERVER_SLOTS_MAX = 16,
    IX_SERVER_INLINE_MAX = 128, /* largest value that can be in a leaf */
    IX_SERVER_VALUE_MAX = 4096,
    IX_SERVER_STRIPES = 1024,
};

/* What keeps the pairs of a leaf in order: they are moved, or a word has the order of the slots (Masstree). */
enum ix_server_order { IX_SERVER_SORTED, IX_SERVER_PERMUTED };
extern const char *const ix_server_orders[];

struct ix_server_params {
    uint64_t slots, fanout, inline_bytes, order;
    double fill;
    bool validate, follow; /* off: a known-wrong variant */
};

/* X(constant, name, rare): what handlers count and send in their replies, then the client's own. */
#define IX_SERVER_COUNTERS(X)                                                                                          \
    X(TORN_NODE, "torn_node", 1)     /* a node changed while a handler read it */                                      \
    X(NODE_LOCKED, "node_locked", 1) /* a handler found a node that another one is changing */                         \
    X(MOVED_RIGHT, "moved_right", 1) /* a handler followed a right link, as the node had been split */                 \
    X(LEAF_SPLIT, "leaf_split", 1)                                                                                     \
    X(INNER_SPLIT, "inner_split", 1)                                                                                   \
    X(SCAN_CONTINUED, "scan_continued", 0) /* a scan took another call, as the message was full or the range ended */
enum ix_server_counter {
#define X(name, text, rare) IX_SERVER_##name,
    IX_SERVER_COUNTERS(X)
#undef X
        IX_SERVER_COUNTER_COUNT,
};
enum { IX_SERVER_EVENTS = IX_SERVER_SCAN_CONTINUED }; /* the first ones: of handlers */

/* ---- layout ------------------------------------------------------------------------------------------------------ */

/* In words of 8 bytes: version | count 16, level 16, right link 32 | high fence | order of slots | keys | the rest: of
 * a leaf its values or refs of rows, of an inner node its children. The first key of an inner node is its low fence. */
enum { IX_SERVER_VERSION, IX_SERVER_HEAD, IX_SERVER_HIGH, IX_SERVER_ORDER, IX_SERVER_KEYS };
enum {
    IX_SERVER_NODE_BYTES = (IX_SERVER_KEYS + IX_SERVER_SLOTS_MAX) * 8 + IX_SERVER_SLOTS_MAX * IX_SERVER_INLINE_MAX,
    IX_SERVER_NODE_WORDS = (IX_SERVER_NODE_BYTES + DM_LINE - 1) / DM_LINE * DM_LINE / 8, /* whole lines */
};

struct ix_server_layout {
    uint32_t slots, fanout;
    uint32_t value_bytes, padding; /* a value; what a key has beyond 8 bytes */
    uint32_t stored_words;         /* value and padding */
    uint32_t slot_words;           /* what a slot has of them: all, or the ref of their row */
    bool rows, permuted;
    uint32_t row_bytes; /* key, value, padding */
    uint32_t leaf_bytes, inner_bytes;
};
struct ix_server_layout ix_server_layout_make(const struct ix_server_params *params, const struct ix_shape *shape);

static inline uint32_t ix_server_key_bytes(const struct ix_server_layout *layout) {
    return IX_KEY_BYTES_MIN + layout->padding;
}

/* The reserved page of a memory node. */
enum {
    IX_SERVER_ROOT_OFFSET = 64,      /* ref of the root, its level in the upper half */
    IX_SERVER_UNLINKED_OFFSET = 72,  /* number of nodes without an entry in a parent, for lack of memory */
    IX_SERVER_BORDERS_OFFSET = 1024, /* on memory node 0: the ranges */
};

/* ---- the server of a memory node --------------------------------------------------------------------------------- */

struct ix_server_loader;

struct ix_server {
    const struct ix_server_params *params;
    struct ix_server_layout layout;
    struct dm_fabric *fabric;
    unsigned node;
    struct dm_mutex root_lock;
    struct dm_mutex stripes[IX_SERVER_STRIPES]; /* mutexes of nodes, by hash */
    struct ix_server_loader *loader;
};

/* ---- a compute node and a client --------------------------------------------------------------------------------- */

struct ix_server_cn {
    const struct ix_server_params *params;
    const struct ix_shape *shape;
    struct ix_server_layout layout;
};

struct ix_server_client {
    struct ix_server_cn *cn;
    struct dm_ctx *ctx;
    struct ix_ranges ranges;
    char *request, *reply;
    uint64_t counts[IX_SERVER_COUNTER_COUNT];
};

/* ---- the hooks of index.h; their `params` are struct ix_server_params ------------------------------------------- */

int ix_server_check(const void *params, const struct ix_shape *shape, struct dm_err *err);
uint64_t ix_server_memory_needed(const void *params, const struct ix_shape *shape, uint64_t keys);
int ix_server_serve(void *server, struct dm_fabric *fabric, unsigned node, const void *params,
                    const struct ix_shape *shape, struct dm_err *err);
void ix_server_unserve(void *server);
int ix_server_format(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err);
int ix_server_open(void *cn, struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err);
int ix_server_load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);
int ix_server_attach(void *client, void *cn, struct dm_ctx *ctx, struct dm_err *err);
int ix_server_get(void *client, uint64_t key, void *value);
int ix_server_insert(void *client, uint64_t key, const void *value);
int ix_server_update(void *client, uint64_t key, const void *value);
int ix_server_remove(void *client, uint64_t key);
int ix_server_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);
uint64_t ix_server_cache_bytes(const void *cn);
int ix_server_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);
extern const struct ix_counter ix_server_counters[];
extern const struct ix_wrong ix_server_wrong[];
extern const struct ix_setting ix_server_tiny[];

#endif
