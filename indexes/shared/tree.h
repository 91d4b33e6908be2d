/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner part of a B-link tree in remote memory, for trees whose leaves and locks differ (Sherman, CHIME): descent
 * through cached and remote inner nodes, following siblings, carrying a split up to a new root, one lock at a time.
 *
 * Why an old view never misleads for good: an inner node's lower fence never changes and an inner node is never freed
 * once it is linked; splits only lower the upper fence and add a node to the right. So from any node that a key once
 * belonged to, following siblings reaches the node it belongs to now, and fences tell when that has happened.
 */
#ifndef DM_INDEXES_SHARED_TREE_H
#define DM_INDEXES_SHARED_TREE_H

#include <stdatomic.h>

#include "indexes/index.h"
#include "indexes/shared/inner.h"
#include "indexes/shared/node_cache.h"

/* ---- counters: an index that uses the tree lists these first ----------------------------------------------------- */

/* X(name, text, rare): rare ones are events that a concurrency check must have seen. */
#define IX_TREE_COUNTERS(X)                                                                                            \
    X(INNER_SPLIT, "inner_split", 1)                                                                                   \
    X(ROOT_SPLIT, "root_split", 1)                                                                                     \
    X(ROOT_RACE, "root_race", 0) /* somebody else put in a new root first */                                           \
    X(CACHE_HIT, "cache_hit", 0) /* inner nodes found in the cache */                                                  \
    X(CACHE_MISS, "cache_miss", 0)                                                                                     \
    X(CACHE_EVICTION, "cache_eviction", 1)                                                                             \
    X(STALE_CACHE, "stale_cache", 1)                                                                                   \
    X(MOVED_RIGHT, "moved_right", 1)                                                                                   \
    X(TORN_NODE, "torn_node", 1)
enum ix_tree_counter {
#define X(name, text, rare) IX_TREE_##name,
    IX_TREE_COUNTERS(X)
#undef X
};

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
static inline dm_addr ix_tree_root_place(void) {
    return dm_addr_make(0, DM_DRAM, IX_TREE_ROOT_OFFSET);
}

/* ---- a compute node's and a client's side ------------------------------------------------------------------------ */

struct ix_tree_cn {
    struct ix_inner_layout inner;
    uint32_t alloc_bytes;    /* an inner node takes in remote memory; more than node_bytes if a lock lies behind it */
    struct ix_cache *cache;  /* of inner nodes; NULL: none */
    uint64_t cache_levels;   /* that may be cached, from the root */
    bool combine;            /* writes of both halves of a split may share a doorbell */
    uint32_t leaf_bytes;     /* a leaf takes in local memory as it is read */
    uint32_t leaf_cap;       /* entries of a leaf */
    double fill;             /* share of a node's entries that bulk load fills */
    unsigned scan_batch;     /* leaves that one doorbell of a scan may read; set by open */
    _Atomic uint64_t root;   /* the root word as last seen; an old one leads right through siblings */
    atomic_bool interrupted; /* an operation of this node ended in the middle of a structure change */
};

struct ix_tree;

/* How this tree locks an inner node; at most one is held at a time. `unlock` after a failed lock is not called. */
struct ix_tree_hooks {
    int (*lock)(struct ix_tree *tree, dm_addr addr, uint32_t *attempts); /* [waits] */
    int (*commit_unlock)(struct ix_tree *tree); /* sends the posted writes and the unlock behind them [waits] */
    int (*unlock)(struct ix_tree *tree);        /* without a change [waits] */
};

/* A node on the way down. */
struct ix_tree_step {
    dm_addr addr;
    uint32_t stamp; /* of the cached copy that was used; 0: it was read from remote memory */
};

/* The end of a descent as its parent has it; without a parent the whole key space. */
struct ix_tree_child {
    dm_addr addr;
    uint64_t low, high;
    dm_addr next; /* the node behind it, where inner nodes know (`beyond`) */
    bool last;    /* of its parent's children */
};

enum { IX_TREE_OWN_WORDS = 6 };

struct ix_tree {
    struct ix_tree_cn *cn;
    struct dm_ctx *ctx;
    const struct ix_tree_hooks *hooks;
    uint64_t *counts; /* of the client, in the order of IX_TREE_COUNTERS */
    unsigned thread;
    unsigned top; /* level where the last descent began; path[level] is valid from there down to its target's parent */
    struct ix_tree_step path[IX_NODE_LEVELS];
    struct ix_tree_child child;
    uint32_t cache_steps; /* cached nodes searched since the last charge */

    /* Device memory: words for atomics, for the root word and for what the index likes; the node in hand and a split's
     * right half on the wire; cn->scan_batch leaves. */
    uint64_t *old, *root, *own;
    char *wire, *wire_right, *batch;
    char *image, *image_right;
    uint16_t *order; /* cn->leaf_cap positions in a leaf */

    dm_addr spare[IX_NODE_LEVELS]; /* inner nodes allocated ahead for splits */
    unsigned spares;
};

/* ---- the life of a tree: what an index does besides is its own --------------------------------------------------- */

/* The first leaf. */
struct ix_tree_leaf {
    const void *image;
    uint32_t wire_bytes;  /* its lines */
    uint32_t used_bytes;  /* of those that are to be written */
    uint32_t alloc_bytes; /* it takes in remote memory */
};

/* Writes a tree of this leaf alone. `index` is for messages. [waits] */
int ix_tree_format(struct dm_ctx *ctx, const char *index, const struct ix_tree_leaf *leaf, struct dm_err *err);

/* Opens a compute node's part, whose sizes and switches are set: the root word and the cache, of cache_bytes unless no
 * level may be cached. 0 or a failure; the caller closes cn->cache in any case. [waits] */
int ix_tree_open(struct ix_tree_cn *cn, struct dm_ctx *ctx, uint64_t cache_bytes);

/* Makes a client's part: its buffers, and what belongs to it. 0 or DM_ERR_NO_MEMORY; the caller detaches in any case.
 */
int ix_tree_attach(struct ix_tree *tree, struct ix_tree_cn *cn, struct dm_ctx *ctx, const struct ix_tree_hooks *hooks,
                   uint64_t *counts);
void ix_tree_detach(struct ix_tree *tree); /* gives the spare nodes back */

/* The leaves to be read together by a scan that wants so many keys more, by the fill that load gives. */
enum { IX_TREE_SCAN_BATCH_MAX = 16 };
unsigned ix_tree_leaves_for(const struct ix_tree_cn *cn, uint32_t keys);

/* ---- descending, locking, splitting ------------------------------------------------------------------------------ */

/* Outcomes beside those of the contract: what was believed turned out old, begin again at the root; there is no such
 * level as far as this node knows. */
enum { IX_TREE_AGAIN = 1000, IX_TREE_ABOVE_ROOT };

/* Finds the node of `level` that should hold key, filling ->child, and ->path above it. 0; IX_TREE_ABOVE_ROOT; a
 * failure. [waits] */
int ix_tree_descend(struct ix_tree *tree, uint64_t key, unsigned level, uint32_t *attempts);

/* Reads a node of the inner nodes' size and head into ->wire and ->image until it is whole. 0; IX_TREE_AGAIN if there
 * is no such node; a failure. [waits] */
int ix_tree_fetch(struct ix_tree *tree, dm_addr addr, unsigned level, uint32_t *attempts);

/* To be called when the node at `level` that the path led to does not cover the key. `right`: the key lies at or above
 * its upper fence. Forgets the cached parent or root that led there. 0: go on at the sibling (only if `right`);
 * IX_TREE_AGAIN: at the root; a failure. [waits] */
int ix_tree_misled(struct ix_tree *tree, unsigned level, bool right, uint32_t *attempts);

/* Forgets the cached copy of the parent of `level` that the path used, if it was one. */
bool ix_tree_distrust(struct ix_tree *tree, unsigned level);

/* The parent that the last descent to level 0 passed, as it was read or as the cache has it now, if it covers key; NULL
 * otherwise. Stays until let go of, before anything else is done with the tree. */
const void *ix_tree_parent_hold(struct ix_tree *tree, uint64_t key);
void ix_tree_parent_let(struct ix_tree *tree);

/* Reads the root word again. Returns 1 if the tree has grown, 0 if not, or a failure. [waits] */
int ix_tree_root_refresh(struct ix_tree *tree);

/* Puts a copy of an inner node into the cache. */
void ix_tree_cache_keep(struct ix_tree *tree, dm_addr addr, const void *image);

/* Locks the node of `level` that covers key and reads it into ->wire and ->image. `from` is where to begin: null for a
 * descent. 0 with the lock held and its address in *addr; IX_TREE_ABOVE_ROOT or a failure without. [waits] */
int ix_tree_lock_node(struct ix_tree *tree, uint64_t key, unsigned level, dm_addr from, uint32_t *attempts,
                      dm_addr *addr);

/* Writes the locked inner node in ->image back to addr, releases it, and keeps a copy in the cache. [waits] */
int ix_tree_rewrite(struct ix_tree *tree, dm_addr addr);

/* Writes the halves of a node of the inner nodes' size in ->image and ->image_right and releases the left one's lock.
 * A reader, or a client that stops, sees: first the right node, which nobody can reach; then the left one in one whole
 * write, from which moved keys are found through the sibling. [waits] */
int ix_tree_halves_write(struct ix_tree *tree, dm_addr left, dm_addr right);

/* Makes sure of a spare inner node for every level that a split can reach and for a new root. DM_ERR_NO_MEMORY: not one
 * is missing from before. [waits] */
int ix_tree_reserve(struct ix_tree *tree);

/* Makes child, a new node of level 0 that begins at key, known to the level above it, and so on up. Until then all is
 * right, only one read longer. [waits] */
int ix_tree_link(struct ix_tree *tree, uint64_t key, dm_addr child);

/* ---- tree_build.c: bulk load ------------------------------------------------------------------------------------- */

/* Whole nodes on their way to remote memory. They are posted only when all are written: an allocation in between may
 * have to make a call, which needs an empty batch. */
enum { IX_TREE_WRITES = 32 }; /* that share a doorbell */
struct ix_tree_writer {
    struct dm_ctx *ctx;
    uint32_t node_bytes;
    char *wires;
    dm_addr addrs[IX_TREE_WRITES];
    unsigned waiting;
};

int ix_tree_writer_open(struct ix_tree_writer *writer, struct dm_ctx *ctx, uint32_t node_bytes); /* or NO_MEMORY */
int ix_tree_write(struct ix_tree_writer *writer, const void *image, dm_addr addr);               /* [waits] */
int ix_tree_write_rest(struct ix_tree_writer *writer);                                           /* [waits] */

/* A node of the level just built. */
struct ix_tree_built {
    uint64_t low;
    dm_addr addr;
};

struct ix_tree_level {
    struct ix_tree_built *items;
    uint64_t count, room;
};

/* Adds a node behind the others. 0 or DM_ERR_NO_MEMORY; the caller frees items. */
int ix_tree_level_add(struct ix_tree_level *level, uint64_t low, dm_addr addr);

/* Nodes that `entries` entries need at this fill, at least `least` each, and where node i of them begins. */
uint64_t ix_tree_nodes_for(uint64_t entries, double fill, uint32_t cap, uint32_t least);
uint64_t ix_tree_node_begin(uint64_t entries, uint64_t nodes, uint64_t i);

/* Builds the levels over these leaves (which it uses up), sets the root word, here and remotely. [waits] */
int ix_tree_build(struct ix_tree_cn *cn, struct dm_ctx *ctx, struct ix_tree_level *leaves);

/* ---- tree_walk.c: verify ----------------------------------------------------------------------------------------- */

enum { IX_WALK_BATCH = 16 };

struct ix_walk {
    struct ix_tree_cn *cn;
    struct dm_ctx *ctx;
    struct ix_report *report;
    void *owner;
    dm_addr (*lock_word)(void *owner, dm_addr node);                   /* 0 there when free */
    int (*leaf)(struct ix_walk *walk, dm_addr addr, const char *wire); /* level 0, if walked; node in ->image. 0 or a
                                                                          failure. [waits] */

    /* Set by ix_walk_open. */
    char *wires;     /* IX_WALK_BATCH nodes, and one more for nodes that no parent knows */
    uint64_t *words; /* their lock words */
    uint64_t first, loaded;
    char *image;
    struct ix_tree_level expected, below;
};

/* Room for a walk: 0 or DM_ERR_NO_MEMORY; the caller closes in any case. */
int ix_walk_open(struct ix_walk *walk);
void ix_walk_close(struct ix_walk *walk);

/* Walks every level along its chain of siblings, from the root's down to `lowest`, and compares the chain with what the
 * level above says. Then ->expected are the nodes below, as their parents have them. DM_NOT_FOUND: a chain breaks off
 * (reported). [waits] */
int ix_walk_levels(struct ix_walk *walk, unsigned lowest);

/* Counts something broken; the first is kept in words. */
void ix_walk_problem(struct ix_walk *walk, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
