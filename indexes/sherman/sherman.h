/* SPDX-License-Identifier: Apache-2.0
 *
 * Sherman inside: what its files share. README.md maps the paper's parts to the files.
 *
 * The life of an operation: ix_tree_descend (shared/tree.c) finds the leaf's address through the cache; then get
 * (tree.c) reads it, or a write (write.c) locks it, reads it, changes one entry and sends the entry and the unlock with
 * one doorbell; a full leaf is split (split.c), and ix_tree_link carries the split up to the parents.
 */
#ifndef DM_INDEXES_SHERMAN_SHERMAN_H
#define DM_INDEXES_SHERMAN_SHERMAN_H

#include "indexes/index.h"
#include "indexes/shared/indirect.h"
#include "indexes/shared/locks.h"
#include "indexes/shared/tree.h"
#include "node.h"

/* ---- parameters ------------------------------------------------------------------------------------------------ */

enum { SHERMAN_LOCKS_AUTO, SHERMAN_LOCKS_CHIP, SHERMAN_LOCKS_DRAM };
enum { SHERMAN_TORN_RETRY, SHERMAN_TORN_ABSENT };

struct sherman_params {
    uint64_t node_bytes, span;
    double fill;
    unsigned locks;
    uint64_t lock_count;
    bool local_locks, hand_over;
    uint64_t hand_over_max;
    bool combine;
    unsigned versions; /* enum ix_versions */
    unsigned torn;
    unsigned values; /* enum ix_values */
    uint64_t cache_levels;
};

/* ---- counters; see sherman_client.counts ------------------------------------------------------------------------- */

/* X(name, text, rare): rare ones are events that a concurrency check must have seen. */
#define SHERMAN_COUNTERS(X)                                                                                            \
    IX_TREE_COUNTERS(X)                                                                                                \
    IX_TREE_CACHE_COUNTERS(X)                                                                                          \
    X(HAND_OVER, "hand_over", 1)                                                                                       \
    X(TORN_ENTRY, "torn_entry", 1)                                                                                     \
    X(BLOCK_GONE, "block_gone", 1) /* a value's block had been used again before it was read */
enum sherman_counter {
#define X(name, text, rare) SHERMAN_##name,
    SHERMAN_COUNTERS(X)
#undef X
        SHERMAN_COUNTER_COUNT,
};

/* ---- remote layout ------------------------------------------------------------------------------------------------
 */

/* In the reserved page of memory node 0: the root word, and the addresses of the lock tables of all memory nodes. */
enum {
    SHERMAN_LOCKS_OFFSET = 512,
};

/* ---- a compute node and a client ------------------------------------------------------------------------------- */

struct sherman_cn {
    struct ix_tree_cn tree; /* inner nodes and their cache */
    const struct sherman_params *params;
    const struct ix_shape *shape;
    struct node_layout layout;
    struct ix_locks *locks;
};

struct sherman_client {
    struct ix_tree tree; /* its buffers serve leaves too */
    struct sherman_cn *cn;
    struct dm_ctx *ctx;
    struct ix_lock lock; /* of a leaf or an inner node: one at a time */
    char *scratch;
    struct ix_indirect *indirect; /* NULL: values are inline */
    uint64_t counts[SHERMAN_COUNTER_COUNT];
};

/* ---- tree.c --------------------------------------------------------------------------------------------------------
 */

/* True if no entry of the leaf in `wire` is half-written; with torn=absent always. */
bool sherman_entries_whole(struct sherman_client *client, const void *wire);
bool sherman_entry_whole(struct sherman_client *client, const void *wire, unsigned i);

int sherman_get(void *client, uint64_t key, void *value);

/* ---- write.c -------------------------------------------------------------------------------------------------------
 */

extern const struct ix_tree_policy sherman_locking;

int sherman_insert(void *client, uint64_t key, const void *value);
int sherman_update(void *client, uint64_t key, const void *value);
int sherman_remove(void *client, uint64_t key);

/* ---- split.c -------------------------------------------------------------------------------------------------------
 */

/* Inserts into the full leaf at addr that is locked and in client->tree.wire and ->image; `value` is what the entry is
 * to hold. Releases the lock. DM_ERR_NO_MEMORY: nothing changed. [waits] */
int sherman_split_insert(struct sherman_client *client, dm_addr addr, uint64_t key, const void *value);

/* ---- scan.c, load.c, verify.c: the hooks of index.h ----------------------------------------------------------------
 */

int sherman_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);
int sherman_load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);
int sherman_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

#endif
