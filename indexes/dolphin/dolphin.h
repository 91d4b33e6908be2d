/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of Dolphin share. README.md maps the paper's parts to the files.
 *
 * The life of an operation: dolphin_descend (descent.c) finds the leaf's address through the cache (cache.c). A get
 * (read.c) reads the leaf. A write (write.c) takes a share of its lock and reads its words with one doorbell, changes
 * one entry and releases the share. Where there is no leaf, or the leaf is full, the structure changes (split.c,
 * merge.c), and link.c updates the inner nodes. Locks that an operation holds are noted in its client (lock.c) and
 * released at its end.
 */
#ifndef DM_INDEXES_DOLPHIN_DOLPHIN_H
#define DM_INDEXES_DOLPHIN_DOLPHIN_H

#include <stdatomic.h>

#include "indexes/index.h"
#include "indexes/shared/locks.h"
#include "indexes/shared/node_cache.h"
#include "indexes/shared/retry.h"
#include "leaf.h"
#include "node.h"

/* ---- parameters -------------------------------------------------------------------------------------------------- */

enum { DOLPHIN_LOCKS_LEAF, DOLPHIN_LOCKS_CHIP };

struct dolphin_params {
    uint64_t leaf_bytes;
    double fill;
    unsigned locks;
    uint64_t lock_count;
    bool merge;
    bool strict; /* off switches the next seven off */
    bool keep_slots, publish, check_insert, check_smo, cas_delete, lock_long, check_scan;
    bool backtrack;
};

/* ---- counters ---------------------------------------------------------------------------------------------------- */

/* X(name, text, rare): rare ones are events that a concurrency check must have seen. */
#define DOLPHIN_COUNTERS(X)                                                                                            \
    X(CACHE_HIT, "cache_hit", 0) /* inner nodes found in the cache */                                                  \
    X(CACHE_MISS, "cache_miss", 0)                                                                                     \
    X(CACHE_EVICTION, "cache_eviction", 1)                                                                             \
    X(STALE_CACHE, "stale_cache", 1)         /* the cache led to a wrong or dead leaf or inner node */                 \
    X(BACKTRACK, "backtrack", 1)             /* a leaf's reverse pointer led to its parent */                          \
    X(TORN_LEAF, "torn_leaf", 1)             /* words of different versions, or a value of another one */              \
    X(LOCK_CONFLICT, "lock_conflict", 1)     /* waited for a structure change, or for writers */                       \
    X(SLOT_CONFLICT, "slot_conflict", 1)     /* lost the race for an entry */                                          \
    X(NEW_LEAF, "new_leaf", 1)               /* for a prefix that had none */                                          \
    X(PATH_SPLIT, "path_split", 1)           /* a node inserted where two prefixes separate */                         \
    X(LEAF_SPLIT_FIRST, "leaf_split_new", 1) /* the leaf's parent is an ordinary node: a special one is made */        \
    X(LEAF_SPLIT_MORE, "leaf_split_more", 1) /* the parent is a special node */                                        \
    X(LEAF_COMPACT, "leaf_compact", 1)       /* a leaf was rewritten without its deleted entries */                    \
    X(LEAF_MERGE, "leaf_merge", 1)           /* an empty leaf was taken out */                                         \
    X(MERGE_RANGE, "merge_range", 1)         /* its neighbour inherited its range */                                   \
    X(DEAD_LEAF, "dead_leaf", 1)             /* read a leaf that was taken out */                                      \
    X(GROW_16, "grow_16", 1)                                                                                           \
    X(GROW_48, "grow_48", 1)                                                                                           \
    X(GROW_256, "grow_256", 0)   /* few small runs have so many children */                                            \
    X(DEAD_NODE, "dead_node", 1) /* read an inner node that had been replaced */                                       \
    X(SCAN_GAP, "scan_gap", 0)   /* a scan read inner nodes for its next leaf */
enum dolphin_counter {
#define X(name, text, rare) DOLPHIN_##name,
    DOLPHIN_COUNTERS(X)
#undef X
        DOLPHIN_COUNTER_COUNT,
};

/* ---- remote layout ----------------------------------------------------------------------------------------------- */

/* In the reserved page of memory node 0: the word of the root, which is a node of 256 at depth 0 and never moves; and
 * the addresses of the lock tables of all memory nodes. */
enum { DOLPHIN_ROOT_OFFSET = 64, DOLPHIN_LOCKS_OFFSET = 512 };

/* ---- a compute node and a client --------------------------------------------------------------------------------- */

struct dolphin_cn {
    const struct dolphin_params *params;
    const struct ix_shape *shape;
    struct dolphin_layout layout;
    struct ix_cache *cache; /* of pieces of inner nodes; NULL: no cache */
    struct ix_locks *locks; /* lock words on chip; NULL: the lock is in the leaf */
    uint64_t root;          /* the root's word */
    unsigned scan_batch;    /* leaves that one doorbell of a scan reads */
    bool keep_slots, publish, check_insert, check_smo, cas_delete, lock_long, check_scan;
    atomic_bool interrupted; /* an operation of this node ended in the middle of a structure change */
};

enum { DOLPHIN_HOLDS = 6, DOLPHIN_SCAN_BATCH_MAX = 64, DOLPHIN_OLDS = 4, DOLPHIN_OUTS = 16 };

/* For scans: the bytes of inner nodes that one may keep; the unit in which the pairs of a leaf are counted; and the
 * number of leaves that their moving mean covers. */
enum { DOLPHIN_SCAN_NODE_BYTES = 65536, DOLPHIN_DENSITY_ONE = 256, DOLPHIN_DENSITY_MEMORY = 4 };

/* A lock that an operation holds: adding `undo` to the word releases it. */
struct dolphin_hold {
    dm_addr word;
    uint64_t undo;
};

/* Where a descent begins and what it may believe. */
struct dolphin_descent {
    uint64_t start;       /* word of the first node; 0: the root */
    bool is_fresh;        /* the first node is read, even if it is cached */
    unsigned stale_count; /* how often the cache was stale; after some it is bypassed */
    uint32_t attempts;
};

/* The result of a descent: where a key belongs. */
struct dolphin_target {
    uint64_t parent; /* word of the lowest node that the key belongs under */
    bool is_fresh;   /* `child` was read by this operation, not taken from the cache */
    uint64_t child;  /* word of the leaf; or of a node or leaf of another prefix; or 0 */
    bool is_absent;  /* there is no leaf for the key, as this operation has read */
    uint64_t prefix; /* if absent and child is not 0: a key below the child */
};

struct dolphin_client {
    struct dolphin_cn *cn;
    struct dm_ctx *ctx;
    unsigned thread;

    struct dolphin_hold holds[DOLPHIN_HOLDS];
    unsigned hold_count;

    /* Device memory. */
    uint64_t *olds; /* results of atomics */
    uint64_t *outs; /* sources of writes of words */
    char *leaf;     /* the current leaf */
    char *left, *right;
    struct dolphin_node *node;  /* the current or locked inner node */
    struct dolphin_node *upper; /* the one above it, locked while the current one is replaced */
    struct dolphin_node *fresh; /* a new inner node */
    char *batch;                /* leaves of a scan */
    char *scan_nodes;           /* inner nodes of a scan */

    dm_addr spare_leaf; /* allocated but unused; null: none */
    char *scratch;      /* one value */
    uint16_t *order;
    int64_t density[2];  /* mean pairs in a leaf seen by scans, under special nodes in [1]; see scan.c */
    unsigned leaf_depth; /* of the parent of the leaf seen last by a scan */
    uint32_t updates;    /* of long values without a lock */
    struct dolphin_piece *pieces;
    uint64_t counts[DOLPHIN_COUNTER_COUNT];
};

/* An outcome beside those of index.h: what the operation relied on was stale, begin again. */
enum { DOLPHIN_AGAIN = 1000 };

/* ---- cache.c ----------------------------------------------------------------------------------------------------- */

/* Puts the pieces of a node into the cache; of a node of 256 only the piece with the byte. */
void dolphin_cache_put(struct dolphin_client *client, uint64_t word, const struct dolphin_node *node, unsigned byte);

/* Drops the pieces of a node that has been replaced. */
void dolphin_cache_drop(struct dolphin_client *client, uint64_t word);

/* Puts what was read of a node into the cache: all of it, or words [begin, end) of a node of 256, which are complete
 * pieces. */
void dolphin_cache_put_words(struct dolphin_client *client, uint64_t word, const struct dolphin_head *head,
                             const uint64_t *words, unsigned begin, unsigned end);

/* Copies the piece of a node that covers the byte. False: it is not cached. */
bool dolphin_cache_find(struct dolphin_client *client, uint64_t word, unsigned byte, struct dolphin_piece *piece);

/* ---- descent.c --------------------------------------------------------------------------------------------------- */

/* Finds where the key belongs. 0 or a failure. [waits] */
int dolphin_descend(struct dolphin_client *client, uint64_t key, struct dolphin_descent *descent,
                    struct dolphin_target *target);

/* Reads an inner node into `node` and puts its pieces into the cache. 0; DOLPHIN_AGAIN if there is no such node or it
 * has been replaced; a failure. [waits] */
int dolphin_node_read(struct dolphin_client *client, uint64_t word, struct dolphin_node *node);

/* What a leaf's head shows about a key whose descent led there. */
enum dolphin_verdict { DOLPHIN_COVERS, DOLPHIN_ABSENT, DOLPHIN_ELSEWHERE };
enum dolphin_verdict dolphin_judge(struct dolphin_client *client, const struct dolphin_leaf_head *head, uint64_t key,
                                   struct dolphin_target *target);

/* After DOLPHIN_ELSEWHERE: the next descent begins at the leaf's parent (paper, III-C), or, if the leaf is out of the
 * tree, at the node that led there. 0 or a failure. [waits] */
int dolphin_backtrack(struct dolphin_client *client, const struct dolphin_leaf_head *head,
                      const struct dolphin_target *target, struct dolphin_descent *descent);

/* Makes the next descent begin at the root and read every node. */
void dolphin_descent_restart(struct dolphin_descent *descent);

/* ---- lock.c ------------------------------------------------------------------------------------------------------ */

dm_addr dolphin_leaf_lock(const struct dolphin_cn *cn, dm_addr leaf);

/* Takes a share of the leaf's lock and reads its words into client->leaf. [waits] */
int dolphin_lock_share(struct dolphin_client *client, dm_addr leaf, uint32_t *attempts);

/* Turns the share of the leaf, the only lock held, into the exclusive lock, and reads the leaf into client->leaf. 0;
 * DOLPHIN_AGAIN with nothing held, if another client changes the leaf; a failure. [waits] */
int dolphin_lock_upgrade(struct dolphin_client *client, dm_addr leaf, uint32_t *attempts);

/* Takes the exclusive lock if no client holds the lock in any way, and reads `bytes` of the leaf into `to`. 0;
 * DOLPHIN_AGAIN if it is held; a failure. [waits] */
int dolphin_lock_try(struct dolphin_client *client, dm_addr leaf, char *to, uint32_t bytes);

/* Takes an inner node's lock, sends what is posted with the first attempt, and reads the node into `node`. 0;
 * DOLPHIN_AGAIN, without the lock, if there is no such node or it has been replaced; a failure. [waits] */
int dolphin_node_lock(struct dolphin_client *client, uint64_t word, struct dolphin_node *node, uint32_t *attempts);

/* Notes a held lock; posts the release of the lock noted last, and of all held locks. */
void dolphin_hold_add(struct dolphin_client *client, dm_addr word, uint64_t undo);
void dolphin_hold_post_last(struct dolphin_client *client);
void dolphin_hold_post_all(struct dolphin_client *client);

/* Releases everything held, in a round trip of its own, and returns rc, or the failure of the release. [waits] */
int dolphin_release(struct dolphin_client *client, int rc);

/* The lock word of a new inner node that its maker holds exclusively, and the addition that releases it. */
#define DOLPHIN_EXCLUSIVE      (~(UINT64_C(1) << 32) + 1)
#define DOLPHIN_EXCLUSIVE_UNDO (UINT64_C(1) << 32)

/* ---- link.c ------------------------------------------------------------------------------------------------------ */

/* A change of one word of an inner node, which is locked in client->node. A full node is replaced. */
struct dolphin_link {
    uint64_t node;  /* word of the inner node */
    int position;   /* index in node->words */
    bool grows;     /* the larger node is in client->fresh, the node above is locked in client->upper */
    uint64_t upper; /* word of the node above, and the index of the node in it */
    int upper_position;
    uint64_t parent; /* word of the node that will be the child's parent: `node`, or the larger one */
    /* A leaf that is written after the link instead of before, the paper's order. Null: none. */
    dm_addr late;
    const char *late_image;
};

/* Locks the parent of `child` and reads it into client->node. `hint` is the word of the node to try first, `key` any
 * key below the child. Sets node and position. The caller holds the child's lock, so that the child stays in the tree.
 * [waits] */
int dolphin_parent_lock(struct dolphin_client *client, uint64_t key, dm_addr child, uint64_t hint, uint32_t *attempts,
                        struct dolphin_link *link);

/* Charges searches through that many words: dolphin_words_find and dolphin_words_next compare four at a time. */
static inline void dolphin_words_charge(const struct dolphin_client *client, unsigned words) {
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, words / 4 + 2);
}

/* The address of word `position` of an inner node. */
static inline dm_addr dolphin_word_address(uint64_t node, int position) {
    return dm_addr_add(dolphin_word_addr(node), sizeof(struct dolphin_head) + (uint64_t)position * sizeof(uint64_t));
}

/* The address of the reverse pointer of the child that a word leads to. */
static inline dm_addr dolphin_parent_address(uint64_t child) {
    return dm_addr_add(dolphin_word_addr(child), dolphin_word_is_inner(child) ? DOLPHIN_PARENT_OFFSET : 0);
}

/* Prepares the addition of a child with this byte to the locked node: sets position and parent, and makes the larger
 * node if this one is full. DM_ERR_NO_MEMORY: nothing changed. [waits] */
int dolphin_link_plan(struct dolphin_client *client, unsigned byte, uint32_t *attempts, struct dolphin_link *link);

/* Commits what is posted, unless the next verb goes to the same memory node, which keeps the order. [waits] */
int dolphin_commit_between(struct dolphin_client *client, dm_addr before, dm_addr after);

/* Commits what is posted, then writes the word, and releases everything held. [waits] */
int dolphin_link_finish(struct dolphin_client *client, struct dolphin_link *link, uint64_t word);

/* ---- read.c, write.c --------------------------------------------------------------------------------------------- */

int dolphin_get(void *client, uint64_t key, void *value);
int dolphin_insert(void *client, uint64_t key, const void *value);
int dolphin_update(void *client, uint64_t key, const void *value);
int dolphin_remove(void *client, uint64_t key);

/* ---- split.c, merge.c -------------------------------------------------------------------------------------------- */

/* Inserts where there is no leaf: makes one, and a node above it if paths separate there. 0; DOLPHIN_AGAIN if another
 * client was first; a failure. [waits] */
int dolphin_new_leaf(struct dolphin_client *client, uint64_t key, const void *value,
                     const struct dolphin_target *target, uint32_t *attempts);

/* Inserts into a full leaf, of which a share is held: rewrites it without its deleted entries, or splits it. 0;
 * DM_EXISTS; DOLPHIN_AGAIN; a failure. Nothing is held afterwards. [waits] */
int dolphin_full_insert(struct dolphin_client *client, dm_addr leaf, uint64_t key, const void *value,
                        uint32_t *attempts);

/* Takes a leaf that may be empty out of the tree, unless another client is using it. 0 or a failure. [waits] */
int dolphin_merge(struct dolphin_client *client, dm_addr leaf);

/* ---- scan.c, load.c, verify.c: the hooks of index.h -------------------------------------------------------------- */

int dolphin_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);
int dolphin_load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);
int dolphin_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

#endif
