/* SPDX-License-Identifier: Apache-2.0
 *
 * A B-link tree above its leaves: descent through cached and remote inner nodes, following siblings, splits up to a new
 * root, bulk load, verify. How nodes are stored and locked is a policy, so that trees with different leaves and locks
 * share it (Sherman, CHIME). A tree whose leaves are plain arrays of entries also gets its operations from btree.h.
 *
 * Why an out-of-date view is corrected sooner or later: an inner node's lower fence never changes and an inner node is
 * never freed once it is linked; splits only lower the upper fence and add a node to the right. So from any node that a
 * key once belonged to, following siblings reaches the node it belongs to now, and fences show when that has happened.
 *
 * Returns, if nothing else is said: 0, or a failure (< 0) of the transport, DM_ERR_RETRY_LIMIT, DM_ERR_NO_MEMORY.
 */
#ifndef DM_INDEXES_SHARED_TREE_H
#define DM_INDEXES_SHARED_TREE_H

#include <stdatomic.h>

#include "indexes/index.h"
#include "indexes/shared/inner.h"
#include "indexes/shared/node_cache.h"

/* ---- counters: an index that uses the tree lists these in its own X-macro ---------------------------------------- */

/* X(name, text, rare): rare ones are events that a concurrency check must have seen. */
#define IX_TREE_COUNTERS(X)                                                                                            \
    X(LEAF_SPLIT, "leaf_split", 1)                                                                                     \
    X(INNER_SPLIT, "inner_split", 1)                                                                                   \
    X(ROOT_SPLIT, "root_split", 1)                                                                                     \
    X(ROOT_RACE, "root_race", 0) /* another client put in a new root first */                                          \
    X(MOVED_RIGHT, "moved_right", 1)                                                                                   \
    X(TORN_NODE, "torn_node", 1)                                                                                       \
    X(SCAN_GAP, "scan_gap", 0) /* a scan found a leaf that the parent it used did not have */
enum ix_tree_counter {
#define X(name, text, rare) IX_TREE_##name,
    IX_TREE_COUNTERS(X)
#undef X
        IX_TREE_COUNTER_COUNT,
};

/* Only for a tree that caches inner nodes. */
#define IX_TREE_CACHE_COUNTERS(X)                                                                                      \
    X(CACHE_HIT, "cache_hit", 0) /* inner nodes found in the cache */                                                  \
    X(CACHE_MISS, "cache_miss", 0)                                                                                     \
    X(CACHE_EVICTION, "cache_eviction", 1)                                                                             \
    X(STALE_CACHE, "stale_cache", 1) /* a cached node or root was out of date */
enum ix_tree_cache_counter {
#define X(name, text, rare) IX_TREE_##name,
    IX_TREE_CACHE_COUNTERS(X)
#undef X
        IX_TREE_CACHE_COUNTER_COUNT,
};

/* ---- the policy: how nodes are locked ---------------------------------------------------------------------------- */

struct ix_tree;
struct ix_tree_cn;

/* At most one inner node is locked at a time. Functions find the index's own client in tree->client, and its compute
 * node's part in cn->owner. */
struct ix_tree_policy {
    /* Lock, then read: takes the lock of the node at addr; conflicts count as retries. After a failure
     * the lock is not held, or tree->may_hold says that it may be. NULL for `upgrade`. [waits] */
    int (*lock)(struct ix_tree *tree, dm_addr addr, uint32_t *attempts);

    /* Read, then upgrade: takes the lock of the node that was read into tree->wire if it is still in that version. 0;
     * IX_TREE_AGAIN, counted as a retry, if it is not; a failure. NULL for `lock`. [waits] */
    int (*upgrade)(struct ix_tree *tree, dm_addr addr, uint32_t *attempts);

    /* Sends the posted writes to the locked node and the unlock behind them, and waits. The lock is released in any
     * case, except that no verb can be sent after a final failure. [waits] */
    int (*commit_unlock)(struct ix_tree *tree);

    /* Releases the lock of a node that was not changed. [waits] */
    int (*unlock)(struct ix_tree *tree);

    /* For verify: where the lock word of the node at addr is, and whether a word read there is a lock held. */
    dm_addr (*lock_word)(const struct ix_tree_cn *cn, dm_addr addr);
    bool (*is_locked)(uint64_t word);
};

/* Ready-made, for nodes in ix_format_word: optimistic lock coupling. Upgrade: CAS of the version read; release: FAA to
 * the next version, with one doorbell with the writes if cn->combine. */
extern const struct ix_tree_policy ix_tree_optimistic;

/* Its functions, for a policy that differs in one. */
int ix_optimistic_upgrade(struct ix_tree *tree, dm_addr addr, uint32_t *attempts);
int ix_optimistic_commit_unlock(struct ix_tree *tree);
int ix_optimistic_unlock(struct ix_tree *tree);
dm_addr ix_optimistic_lock_word(const struct ix_tree_cn *cn, dm_addr addr);
bool ix_optimistic_is_locked(uint64_t word);

/* `is_locked` of a word that is 0 when free. */
bool ix_tree_word_taken(uint64_t word);

/* ---- the root word, in the reserved page of memory node 0 -------------------------------------------------------- */

enum { IX_TREE_ROOT_OFFSET = 64 };

/* The address (in DRAM, so its space byte is 0) with the level in the space byte. */
static inline uint64_t ix_tree_root_word(dm_addr addr, unsigned level) {
    return addr.bits | (uint64_t)level << 48;
}
static inline unsigned ix_tree_root_level(uint64_t word) {
    return (unsigned)(word >> 48 & 0xff);
}
static inline dm_addr ix_tree_root_addr(uint64_t word) {
    return (dm_addr){word & ~(UINT64_C(0xff) << 48)};
}
static inline dm_addr ix_tree_root_word_addr(void) {
    return dm_addr_make(0, DM_DRAM, IX_TREE_ROOT_OFFSET);
}

/* ---- a compute node's and a client's part ------------------------------------------------------------------------ */

struct ix_tree_cn {
    /* Set by the index before ix_tree_open. */
    const struct ix_tree_policy *policy;
    void *owner;                              /* the index's own, for the policy; may be NULL */
    struct ix_inner_layout inner;             /* with the format of nodes */
    const struct ix_node_format *leaf_format; /* of leaves that are stored in another way; NULL: as inner nodes */
    uint32_t alloc_bytes;  /* of an inner node in remote memory; more than node_bytes if a lock is stored behind */
    uint64_t cache_levels; /* that may be cached, counted from the root; 0: no cache */
    bool cache_list;       /* a leaf's cached parent is found by a skip list, not level by level: client work */
    uint64_t list_nodes;   /* of that list; 0: as many as are cached */
    bool combine;          /* writes of both halves of a split, and the unlock, may share a doorbell */
    uint32_t leaf_bytes;   /* of a leaf in local memory as it is read */
    uint32_t leaf_cap;     /* entries of a leaf */
    double fill;           /* share of a node's entries that bulk load fills */

    /* Set by ix_tree_open. */
    struct ix_cache *cache;  /* of inner nodes; NULL: none */
    unsigned scan_batch;     /* leaves that one doorbell of a scan may read */
    _Atomic uint64_t root;   /* the root word as last seen; an old one leads to the right node through siblings */
    atomic_bool interrupted; /* an operation of this compute node ended in the middle of a structure change */
};

/* A node on the path of a descent. */
struct ix_tree_step {
    dm_addr addr;
    uint32_t stamp; /* of the cached copy that was used; 0: it was read from remote memory */
};

/* The end of a descent as its parent has it; without a parent the whole key space. */
struct ix_tree_child {
    dm_addr addr;
    uint64_t low, high;
    dm_addr next; /* the node behind it, where inner nodes have it (`beyond`) */
    bool last;    /* of its parent's children */
};

enum { IX_TREE_OWN_WORDS = 6 };

struct ix_tree {
    struct ix_tree_cn *cn;
    struct dm_ctx *ctx;
    void *client;           /* the index's own, for the policy */
    uint64_t *counts;       /* in the order of IX_TREE_COUNTERS */
    uint64_t *cache_counts; /* in the order of IX_TREE_CACHE_COUNTERS */
    unsigned thread;
    unsigned top; /* level where the last descent began; path[level] is valid from there down to its target's parent */
    struct ix_tree_step path[IX_NODE_LEVELS];
    struct ix_tree_child child;

    dm_addr held_word;                               /* ix_tree_optimistic: the word of the locked node */
    uint64_t held;                                   /* what it holds */
    bool may_hold;                                   /* taking it has failed, and may have taken effect */
    uint64_t no_counts[IX_TREE_CACHE_COUNTER_COUNT]; /* cache_counts of a tree without a cache */

    /* Device memory: words for atomics, for the root word and for what the index likes; the current node and a split's
     * right half on the wire; cn->scan_batch leaves. */
    uint64_t *old, *root, *own;
    char *wire, *wire_right, *batch;
    char *image, *image_right;
    uint16_t *order; /* cn->leaf_cap positions in a leaf */

    dm_addr spare[IX_NODE_LEVELS]; /* inner nodes allocated ahead for splits */
    unsigned spares;
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* The first leaf, encoded. */
struct ix_tree_leaf {
    const void *wire;
    uint32_t wire_bytes;  /* to be written */
    uint32_t alloc_bytes; /* it takes in remote memory */
};

/* Writes a tree of this leaf alone. [waits] */
int ix_tree_format(struct dm_ctx *ctx, const struct ix_tree_leaf *leaf, struct dm_err *err);

/* Opens a compute node's part whose parameters are set: the root word and the cache, of cache_bytes unless no level may
 * be cached. After a failure too, the caller closes. [waits] */
int ix_tree_open(struct ix_tree_cn *cn, struct dm_ctx *ctx, uint64_t cache_bytes);
void ix_tree_close(struct ix_tree_cn *cn);

/* Makes a client's part: its buffers, and what belongs to it. `counts` and `cache_counts` (NULL: no cache) are parts of
 * the client's counters. 0 or DM_ERR_NO_MEMORY; the caller detaches in any case. */
int ix_tree_attach(struct ix_tree *tree, struct ix_tree_cn *cn, struct dm_ctx *ctx, void *client, uint64_t *counts,
                   uint64_t *cache_counts);
void ix_tree_detach(struct ix_tree *tree); /* gives the spare nodes back; accepts a zeroed one */

/* ---- descending -------------------------------------------------------------------------------------------------- */

/* Outcomes beside those of index.h: what was assumed turned out old, begin again at the root; the tree is not as high
 * as that, as far as this compute node knows. */
enum { IX_TREE_AGAIN = 1000, IX_TREE_ABOVE_ROOT };

/* Finds the node of `level` that should hold key: fills ->child, and ->path above it. 0; IX_TREE_ABOVE_ROOT. [waits] */
int ix_tree_descend(struct ix_tree *tree, uint64_t key, unsigned level, uint32_t *attempts);

static inline const struct ix_node_format *ix_tree_format_of(const struct ix_tree_cn *cn, unsigned level) {
    return level == 0 && cn->leaf_format ? cn->leaf_format : cn->inner.format;
}

/* Judges a node that was read. 0: consistent; 1: it must be read again, which is counted as a retry, and if it was
 * locked has been waited for. [waits] */
int ix_tree_judge(struct ix_tree *tree, const char *wire, unsigned level, uint32_t *attempts);

/* Reads a node of the inner nodes' size and head into ->wire and ->image until it is consistent. 0; IX_TREE_AGAIN if
 * there is no such node. [waits] */
int ix_tree_fetch(struct ix_tree *tree, dm_addr addr, unsigned level, uint32_t *attempts);

/* To be called when the node at `level` that the path led to does not cover the key. `right`: the key is at or above
 * its upper fence. Drops the cached parent, or reads the root word again if it was the root. 0: continue at the sibling
 * (only if `right`); IX_TREE_AGAIN: at the root. [waits] */
int ix_tree_misled(struct ix_tree *tree, unsigned level, bool right, uint32_t *attempts);

/* Drops the cached copy of the parent of `level` that the path used; false if it was not a cached one. */
bool ix_tree_distrust(struct ix_tree *tree, unsigned level);

/* The parent that the last descent to level 0 passed, as it was read or as the cache has it now, if it covers key; NULL
 * otherwise. Valid until released, which must be before anything else is done with the tree. */
const void *ix_tree_parent_hold(struct ix_tree *tree, uint64_t key);
void ix_tree_parent_release(struct ix_tree *tree);

/* Reads the root word again. 1 if the tree has grown, 0 if not. [waits] */
int ix_tree_root_refresh(struct ix_tree *tree);

/* Puts a copy of an inner node into the cache. */
void ix_tree_cache_keep(struct ix_tree *tree, dm_addr addr, const void *image);

/* ---- locking and writing ----------------------------------------------------------------------------------------- */

/* Finds the node of `level` that covers key and reads it into ->wire and ->image: with its lock held if the policy
 * locks before it reads, without if it upgrades. `from` is where to begin; null: at the root. 0 with the node's address
 * in *addr; IX_TREE_ABOVE_ROOT. [waits] */
int ix_tree_reach(struct ix_tree *tree, uint64_t key, unsigned level, dm_addr from, uint32_t *attempts, dm_addr *addr);

/* Makes sure of the lock of the node that was reached. 0; IX_TREE_AGAIN if it has changed since: reach it again, from
 * its address. [waits] */
int ix_tree_hold(struct ix_tree *tree, dm_addr addr, uint32_t *attempts);

/* Releases a node that was reached, and perhaps held, without a change. Returns `outcome` unless that fails. [waits] */
int ix_tree_leave(struct ix_tree *tree, bool held, int outcome);

/* Reach and hold. 0 with the lock held. [waits] */
int ix_tree_lock_node(struct ix_tree *tree, uint64_t key, unsigned level, dm_addr from, uint32_t *attempts,
                      dm_addr *addr);

/* Writes the locked node in ->image back to addr and releases it. [waits] */
int ix_tree_write_back(struct ix_tree *tree, dm_addr addr);

/* The same for an inner node, of which a copy is kept in the cache. [waits] */
int ix_tree_rewrite(struct ix_tree *tree, dm_addr addr);

/* Writes the halves of a node of the inner nodes' size in ->image and ->image_right and releases the left one's lock.
 * A reader, or a client that stops, sees: first the right node, which no client can reach; then the left one in one
 * write of the whole node, from which moved keys are found through the sibling. [waits] */
int ix_tree_halves_write(struct ix_tree *tree, dm_addr left, dm_addr right);

/* ---- splitting --------------------------------------------------------------------------------------------------- */

/* Makes sure of a spare inner node for every level that a split can reach and for a new root: to be called before the
 * first write of a split. DM_ERR_NO_MEMORY: nothing has changed. [waits] */
int ix_tree_reserve(struct ix_tree *tree);

/* Ends the split of a leaf whose halves have been written with this result: counts it and links the right one. After a
 * failure the compute node's part notes the interruption; DM_ERR_NO_MEMORY: both halves are there, the parent could not
 * be changed, and the tree is correct all the same. [waits] */
int ix_tree_split_end(struct ix_tree *tree, int rc, uint64_t key, dm_addr child);

/* Bytes of the cached nodes as the public code of CHIME counts them, for itself and its Sherman: 51 a node, 17 for each
 * used entry with a key of 8 bytes. The first child has no entry. */
uint64_t ix_tree_cache_entry_bytes(const struct ix_tree_cn *cn);

/* ---- scans ------------------------------------------------------------------------------------------------------- */

enum { IX_TREE_SCAN_BATCH_MAX = 16 /* leaves of one doorbell */ };

/* How many leaves a scan of `keys` keys from `first` on should read at once, at least one: of those that a parent has,
 * `have` from the one that covers `first` on, each beginning at lows[i]. Where keys are consecutive numbers the leaves
 * that have them are known, as in the public code of Sherman and CHIME; elsewhere it is the expected number of leaves,
 * rounded. At most those of one doorbell. */
unsigned ix_tree_leaves_for(const struct ix_tree_cn *cn, const uint64_t *lows, unsigned have, uint64_t first,
                            uint32_t keys);

/* ---- tree_build.c: levels of inner nodes from bottom to top ------------------------------------------------------ */

/* Nodes that wait for their write, IX_TREE_WRITES a doorbell. They are posted only when all are laid out: an
 * allocation in between may have to make a call, which needs an empty batch. */
enum { IX_TREE_WRITES = 32 };
struct ix_tree_writer {
    struct dm_ctx *ctx;
    uint32_t wire_bytes;  /* of a node in local memory */
    uint32_t used_bytes;  /* of those that are written */
    uint32_t word_offset; /* of a lock word behind them, written on its own; 0: none */
    char *wires;
    uint64_t *words;
    dm_addr addrs[IX_TREE_WRITES];
    unsigned waiting;
};

/* Allocates the buffers of a writer whose sizes are set. 0 or DM_ERR_NO_MEMORY. */
int ix_tree_writer_open(struct ix_tree_writer *writer, struct dm_ctx *ctx);

/* Where to lay the next node out, wire_bytes; then add sends it to addr, with its lock word. [waits] */
static inline char *ix_tree_writer_wire(const struct ix_tree_writer *writer) {
    return writer->wires + (size_t)writer->waiting * writer->wire_bytes;
}
int ix_tree_writer_add(struct ix_tree_writer *writer, dm_addr addr, uint64_t word);
int ix_tree_writer_flush(struct ix_tree_writer *writer); /* [waits] */

/* A node of the level just built. */
struct ix_tree_built {
    uint64_t low;
    dm_addr addr;
};

struct ix_tree_level {
    struct ix_tree_built *items;
    uint64_t count, capacity;
};

/* Appends a node. 0 or DM_ERR_NO_MEMORY; the caller frees items. */
int ix_tree_level_add(struct ix_tree_level *level, uint64_t low, dm_addr addr);

/* Which of `entries` entries is the first of node i of `nodes`. */
uint64_t ix_tree_node_begin(uint64_t entries, uint64_t nodes, uint64_t i);

/* Builds the levels over these leaves (which it uses up), sets the root word, here and remotely. [waits] */
int ix_tree_build(struct ix_tree_cn *cn, struct dm_ctx *ctx, struct ix_tree_level *leaves);

/* ---- tree_walk.c: verify ----------------------------------------------------------------------------------------- */

enum { IX_WALK_BATCH = 16 };

struct ix_walk {
    struct ix_tree_cn *cn;
    struct dm_ctx *ctx;
    struct ix_report *report;
    void *owner; /* for `leaf` */
    /* Level 0, if walked: the node is in ->image. NULL if `lowest` is above. [waits] */
    int (*leaf)(struct ix_walk *walk, dm_addr addr, const char *wire);

    /* Set by ix_walk_open. */
    char *wires;     /* IX_WALK_BATCH nodes, and one more for nodes that no parent has */
    uint64_t *words; /* their lock words */
    uint64_t first, loaded;
    char *image;
    struct ix_tree_level expected, below;
};

/* Allocates a walk's buffers: 0 or DM_ERR_NO_MEMORY; the caller closes in any case. */
int ix_walk_open(struct ix_walk *walk);
void ix_walk_close(struct ix_walk *walk);

/* Walks every level along its chain of siblings, from the root's down to `lowest`, and compares the chain with the
 * level above. Then ->expected are the nodes below, as their parents have them. DM_NOT_FOUND: a chain breaks off
 * (reported). [waits] */
int ix_walk_levels(struct ix_walk *walk, unsigned lowest);

/* A client has stopped inside an operation, so unfinished changes and held locks are legal. */
bool ix_walk_is_interrupted(const struct ix_walk *walk);

#endif
