/* SPDX-License-Identifier: Apache-2.0
 *
 * Sherman inside: what its files share. README.md maps the paper's parts to the files.
 *
 * The life of an operation: sherman_descend (tree.c) finds the leaf's address through the cache; then get (tree.c)
 * reads it, or a write (write.c) locks it, reads it, changes one entry and sends the entry and the unlock with one
 * doorbell; a full leaf is split (split.c), and the split is carried up to the parents, one lock at a time.
 */
#ifndef DM_INDEXES_SHERMAN_SHERMAN_H
#define DM_INDEXES_SHERMAN_SHERMAN_H

#include <stdatomic.h>

#include "indexes/index.h"
#include "indexes/shared/locks.h"
#include "indexes/shared/node_cache.h"
#include "node.h"

/* ---- parameters ------------------------------------------------------------------------------------------------ */

enum { SHERMAN_LOCKS_AUTO, SHERMAN_LOCKS_CHIP, SHERMAN_LOCKS_DRAM };
enum { SHERMAN_TORN_RETRY, SHERMAN_TORN_ABSENT };

struct sherman_params {
    uint64_t node_bytes;
    double fill;
    unsigned locks;
    uint64_t lock_count;
    bool local_locks, hand_over;
    uint64_t hand_over_max;
    bool combine;
    unsigned versions; /* enum ix_versions */
    unsigned torn;
    uint64_t cache_levels;
};

/* ---- counters; see sherman_client.counts ------------------------------------------------------------------------- */

/* X(name, text, rare): rare ones are events that a concurrency check must have seen. */
#define SHERMAN_COUNTERS(X)                                                                                            \
    X(LEAF_SPLIT, "leaf_split", 1)                                                                                     \
    X(INNER_SPLIT, "inner_split", 1)                                                                                   \
    X(ROOT_SPLIT, "root_split", 1)                                                                                     \
    X(ROOT_RACE, "root_race", 0) /* somebody else put in a new root first */                                           \
    X(HAND_OVER, "hand_over", 1)                                                                                       \
    X(CACHE_HIT, "cache_hit", 0) /* inner nodes found in the cache */                                                  \
    X(CACHE_MISS, "cache_miss", 0)                                                                                     \
    X(CACHE_EVICTION, "cache_eviction", 1)                                                                             \
    X(STALE_CACHE, "stale_cache", 1)                                                                                   \
    X(MOVED_RIGHT, "moved_right", 1)                                                                                   \
    X(TORN_NODE, "torn_node", 1)                                                                                       \
    X(TORN_ENTRY, "torn_entry", 1)                                                                                     \
    X(SCAN_GAP, "scan_gap", 0) /* a scan met a leaf that its cached parent did not know */
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
    SHERMAN_ROOT_OFFSET = 64,
    SHERMAN_LOCKS_OFFSET = 512,
    SHERMAN_MNS_MAX = 64,
};

enum { SHERMAN_SCAN_BATCH_MAX = 16 }; /* leaves that one doorbell of a scan reads at most */

/* The root word: the address (in DRAM, so its space byte is 0) with the level in the space byte. */
static inline uint64_t sherman_root_word(dm_addr addr, unsigned level) {
    return addr.bits | (uint64_t)level << 48;
}
static inline unsigned sherman_root_level(uint64_t word) {
    return (unsigned)(word >> 48 & 0xff);
}
static inline dm_addr sherman_root_addr(uint64_t word) {
    return (dm_addr){word & ~(UINT64_C(0xff) << 48)};
}
static inline dm_addr sherman_root_place(void) {
    return dm_addr_make(0, DM_DRAM, SHERMAN_ROOT_OFFSET);
}

/* ---- a compute node and a client ------------------------------------------------------------------------------- */

struct sherman_cn {
    const struct sherman_params *params;
    const struct ix_shape *shape;
    struct node_layout layout;
    struct ix_cache *cache; /* of inner nodes; NULL: none */
    struct ix_locks *locks;
    unsigned scan_batch;     /* leaves that one doorbell of a scan reads with this node size */
    _Atomic uint64_t root;   /* the root word as last seen; an old one leads right through siblings */
    atomic_bool interrupted; /* an operation of this node ended in the middle of a split */
};

/* A node on the way down. */
struct sherman_step {
    dm_addr addr;
    uint32_t stamp; /* of the cached copy that was used; 0: it was read from remote memory */
};

struct sherman_client {
    struct sherman_cn *cn;
    struct dm_ctx *ctx;
    unsigned thread;
    unsigned top; /* level where the last descent began; path[level] is valid from there down to its target's parent */
    struct sherman_step path[NODE_LEVELS];
    uint32_t cache_steps; /* cached nodes searched since the last charge */

    /* Device memory: node buffers, and words: zero (unlocks), old (atomics), root. */
    uint64_t *zero, *old, *root;
    char *wire, *wire_right; /* the node in hand and a split's right half, as in remote memory */
    char *batch;             /* scan_batch nodes */
    char *image, *image_right, *scratch;
    uint16_t *order;

    dm_addr spare[NODE_LEVELS]; /* inner nodes allocated ahead for splits */
    unsigned spares;
    uint64_t counts[SHERMAN_COUNTER_COUNT];
};

/* An outcome between these files: what was believed turned out old, begin again at the root. */
enum { SHERMAN_AGAIN = 1000, SHERMAN_ABOVE_ROOT };

/* ---- tree.c --------------------------------------------------------------------------------------------------------
 */

/* Finds the address of the node of `level` that should hold key, filling client->path above it. 0;
 * SHERMAN_ABOVE_ROOT when the tree has no such level as far as this node knows; a failure. [waits] */
int sherman_descend(struct sherman_client *client, uint64_t key, unsigned level, uint32_t *attempts, dm_addr *addr);

/* Reads a node into client->wire and ->image until it is whole. 0; SHERMAN_AGAIN if there is no such node; a failure.
 * [waits] */
int sherman_fetch(struct sherman_client *client, dm_addr addr, unsigned level, uint32_t *attempts);

/* To be called when the node at `level` that the path led to does not cover the key. `right`: the key lies at or above
 * its upper fence. Forgets the cached parent or root that led there. 0: go on at the sibling (only if `right`);
 * SHERMAN_AGAIN: at the root; a failure. [waits] */
int sherman_misled(struct sherman_client *client, unsigned level, bool right, uint32_t *attempts);

/* Reads the root word again. Returns 1 if the tree has grown, 0 if not, or a failure. [waits] */
int sherman_root_refresh(struct sherman_client *client);

/* Puts a copy of an inner node into the cache. */
void sherman_cache_keep(struct sherman_client *client, dm_addr addr, const void *image);

/* True if no entry of the leaf in client->wire is half-written; with torn=absent always. */
bool sherman_entries_whole(struct sherman_client *client, const void *wire);
bool sherman_entry_whole(struct sherman_client *client, const void *wire, unsigned i);

int sherman_get(void *client, uint64_t key, void *value);

/* ---- write.c -------------------------------------------------------------------------------------------------------
 */

int sherman_insert(void *client, uint64_t key, const void *value);
int sherman_update(void *client, uint64_t key, const void *value);
int sherman_remove(void *client, uint64_t key);

/* Locks the node of `level` that covers key and reads it into client->wire and ->image. `from` is where to begin: null
 * for a descent. 0 with the lock held; SHERMAN_ABOVE_ROOT or a failure without. [waits] */
int sherman_lock_node(struct sherman_client *client, uint64_t key, unsigned level, dm_addr from, uint32_t *attempts,
                      dm_addr *addr, struct ix_lock *lock);

/* Sends the posted writes and releases the lock: in one doorbell, or apart without combining. Returns the result of the
 * writes. [waits] */
int sherman_commit_unlock(struct sherman_client *client, struct ix_lock *lock);

/* ---- split.c -------------------------------------------------------------------------------------------------------
 */

/* Inserts into the full leaf at addr that is locked and in client->wire and ->image. Releases the lock. [waits] */
int sherman_split_insert(struct sherman_client *client, dm_addr addr, struct ix_lock *lock, uint64_t key,
                         const void *value);

/* ---- scan.c, load.c, verify.c: the hooks of index.h
 * ------------------------------------------------------------------ */

int sherman_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);
int sherman_load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);
int sherman_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

#endif
