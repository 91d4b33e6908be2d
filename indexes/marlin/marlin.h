/* SPDX-License-Identifier: Apache-2.0
 *
 * Marlin inside: what its files share. README.md maps the design's parts to the files.
 *
 * A B-link tree whose leaves hold keys and pointers (leaf.c); values are in compact blocks (shared/indirect.h).
 * Inserts, updates and deletes of one leaf run side by side: each has a share of the leaf's lock and changes one
 * pointer by a compare-and-swap (write.c). Splits and merges have the lock alone (smo.c; lock.c). Reads, scans, bulk
 * load and verify are those of shared/btree.h.
 */
#ifndef DM_INDEXES_MARLIN_MARLIN_H
#define DM_INDEXES_MARLIN_MARLIN_H

#include "indexes/index.h"
#include "indexes/shared/btree.h"
#include "indexes/shared/locks.h"

/* ---- parameters -------------------------------------------------------------------------------------------------- */

enum { MARLIN_LOCKS_NODE, MARLIN_LOCKS_CHIP };
enum { MARLIN_RELEASE_BEHIND, MARLIN_RELEASE_WAITED };
enum { MARLIN_SHARE_BEFORE, MARLIN_SHARE_BEHIND };
enum { MARLIN_SPLIT_FRESH, MARLIN_SPLIT_EARLY };
enum { MARLIN_INSERT_CHECKED, MARLIN_INSERT_PUBLISHED };
enum { MARLIN_POINTER_CHECKED, MARLIN_POINTER_OVERTAKEN, MARLIN_POINTER_BLIND };
enum { MARLIN_BLOCKS_CHECKED, MARLIN_BLOCKS_UNCHECKED };

struct marlin_params {
    uint64_t span;
    double fill;
    unsigned locks;
    uint64_t lock_count;
    bool combine;
    unsigned release;
    bool merge;
    unsigned share, split, insert, pointer, blocks;
    unsigned versions; /* enum ix_versions */
    unsigned fetch;    /* enum ix_fetch */
    uint64_t cache_levels;
};

/* ---- counters; see marlin_client.counts -------------------------------------------------------------------------- */

/* X(name, text, rare): rare ones are events that a concurrency check must have seen. */
#define MARLIN_COUNTERS(X)                                                                                             \
    IX_TREE_COUNTERS(X)                                                                                                \
    IX_TREE_CACHE_COUNTERS(X)                                                                                          \
    X(BLOCK_REUSED, "block_reused", 1)         /* a value's block had been reused before it was read */                \
    X(UNDONE_ADD, "undone_add", 1)             /* a write met a structure change and gave its share back */            \
    X(WRITERS_AWAITED, "writers_awaited", 1)   /* a structure change waited for writes to end */                       \
    X(SPLIT_GIVEN_UP, "split_given_up", 1)     /* another client changed the structure, or there is a slot again */    \
    X(POINTER_CONFLICT, "pointer_conflict", 1) /* another client changed the pointer first */                          \
    X(SLOT_CONFLICT, "slot_conflict", 1)       /* another insert took the slot first */                                \
    X(CLAIM_AWAITED, "claim_awaited", 1)       /* waited for another insert of the key */                              \
    X(CLAIM_WITHDRAWN, "claim_withdrawn", 1)   /* left it to another insert of the key */                              \
    X(LEAF_MERGE, "leaf_merge", 1)                                                                                     \
    X(DEAD_LEAF, "dead_leaf", 1) /* a write was led to a leaf that has been merged */
enum marlin_counter {
#define X(name, text, rare) MARLIN_##name,
    MARLIN_COUNTERS(X)
#undef X
        MARLIN_COUNTER_COUNT,
};

/* ---- a compute node and a client --------------------------------------------------------------------------------- */

struct marlin_cn {
    struct ix_btree_cn btree;
    const struct marlin_params *params;
    struct ix_locks *locks; /* tables of lock words on chip; NULL: a node has its own */
};

/* A lock that a client holds: adding `undo` to the word releases it. */
struct marlin_hold {
    dm_addr word;
    uint64_t undo; /* 0: not held */
};

/* Device memory for what verbs transfer beside nodes. */
struct marlin_wires {
    uint64_t old[2];
    uint64_t entry[2]; /* key, word */
};

struct marlin_client {
    struct ix_btree btree;
    struct marlin_cn *cn;
    struct dm_ctx *ctx;
    struct marlin_hold leaf, right, inner; /* right: of a leaf to be merged */
    struct marlin_wires *wires;
    uint64_t counts[MARLIN_COUNTER_COUNT];
};

/* ---- leaf.c: leaves as they are stored ----------------------------------------------------------------------------
 */

extern const struct ix_node_format marlin_leaf_format;

enum { MARLIN_LEAF_AT = 16 /* what is before it, the lock word too, only atomics change */ };

/* How many entries of a leaf are claimed. */
unsigned marlin_leaf_claims(const struct ix_leaf_layout *layout, const void *wire);

/* Bytes of leaves and of inner nodes with that many entries and children. */
uint32_t marlin_node_bytes(uint64_t span);

/* The offset of entry i, 16 bytes, all of them in one line; and of its word. */
static inline uint32_t marlin_entry_offset(unsigned i) {
    return 48 + 16 * i;
}
static inline uint32_t marlin_word_offset(unsigned i) {
    return marlin_entry_offset(i) + 8;
}

/* Entry i of a leaf on the wire. */
static inline uint64_t marlin_key_at(const void *wire, unsigned i) {
    uint64_t key;
    memcpy(&key, (const char *)wire + marlin_entry_offset(i), sizeof(key));
    return key;
}
static inline uint64_t marlin_word_at(const void *wire, unsigned i) {
    uint64_t word;
    memcpy(&word, (const char *)wire + marlin_word_offset(i), sizeof(word));
    return word;
}

/* A word: leaf version 4 | generation 6 | 54 bits: 0, a claim, or the word of a block. The generation is raised when
 * the entry becomes another key's, so a client that has seen two words of one generation knows that both are the key's;
 * the bound is 64 such changes between two looks at the word, each of them a delete and an insert of other clients. */
enum { MARLIN_VERSION_SHIFT = 60, MARLIN_GENERATION_SHIFT = 54, MARLIN_STAMP_SHIFT = 40 };
#define MARLIN_CONTENT_MASK ((UINT64_C(1) << MARLIN_GENERATION_SHIFT) - 1)
#define MARLIN_VERSION_MASK (UINT64_C(0xf) << MARLIN_VERSION_SHIFT)

static inline uint64_t marlin_word_version(uint64_t word) {
    return word & MARLIN_VERSION_MASK;
}
/* Version and generation. */
static inline uint64_t marlin_word_tag(uint64_t word) {
    return word & ~MARLIN_CONTENT_MASK;
}
/* The tag of the entry when another key has it. */
static inline uint64_t marlin_word_next_tag(uint64_t word) {
    uint64_t next = (word & ~MARLIN_VERSION_MASK) + (UINT64_C(1) << MARLIN_GENERATION_SHIFT);
    return marlin_word_version(word) | (marlin_word_tag(next) & ~MARLIN_VERSION_MASK);
}
static inline uint64_t marlin_word_content(uint64_t word) {
    return word & MARLIN_CONTENT_MASK;
}
static inline bool marlin_word_is_free(uint64_t word) {
    return marlin_word_content(word) == 0;
}
static inline bool marlin_word_is_block(uint64_t word) {
    return marlin_word_content(word) >> MARLIN_STAMP_SHIFT != 0;
}
static inline bool marlin_word_is_claim(uint64_t word) {
    return !marlin_word_is_free(word) && !marlin_word_is_block(word);
}
static inline uint8_t marlin_leaf_next_version(const void *wire) {
    return (uint8_t)(((marlin_word_at(wire, 0) >> MARLIN_VERSION_SHIFT) + 1) & 0xf);
}

/* Makes the tree's image of the leaf in its wire. False: it is not one, or not of one state. */
bool marlin_leaf_take(struct marlin_client *client);

/* ---- lock.c ------------------------------------------------------------------------------------------------------ */

extern const struct ix_tree_policy marlin_locking;

int marlin_locks_check(const struct marlin_params *params, const struct dm_topology *topology, struct dm_err *err);
uint64_t marlin_locks_bytes(const struct marlin_params *params, const struct dm_topology *topology);
int marlin_locks_format(struct dm_ctx *ctx, const struct marlin_params *params, const struct dm_topology *topology,
                        struct dm_err *err);
int marlin_locks_open(struct marlin_cn *cn, struct dm_ctx *ctx);

/* Takes a share of the leaf's lock and reads the leaf into the tree's wire. [waits] */
int marlin_share(struct marlin_client *client, dm_addr leaf, uint32_t *attempts);

/* Turns the share of the leaf into the lock alone, and reads the leaf into the tree's wire. 0; IX_TREE_AGAIN without
 * lock and share if another client changes the structure; a failure. [waits] */
int marlin_alone(struct marlin_client *client, dm_addr leaf, uint32_t *attempts);

/* Takes the lock alone if no client holds it in any way, and reads the leaf into `to`; the same for an inner node,
 * which is not read. 0; IX_TREE_AGAIN; a failure. [waits] */
int marlin_alone_try(struct marlin_client *client, dm_addr leaf, struct marlin_hold *hold, char *to);
int marlin_inner_try(struct marlin_client *client, dm_addr node);

/* Adds the release to the current batch. Does nothing if the lock is not held. */
void marlin_release_post(struct marlin_client *client, struct marlin_hold *hold);

/* Sends the current batch, which releases a lock: the last of an operation that has nothing to wait for, and another.
 * They return rc if it is a failure. After a final one no verb can be sent. [waits] */
int marlin_leave(struct marlin_client *client, struct marlin_hold *hold, int rc);
int marlin_leave_waited(struct marlin_client *client, struct marlin_hold *hold, int rc);

/* ---- write.c, smo.c ---------------------------------------------------------------------------------------------- */

/* The operations of index.h; `client` is a struct marlin_client. [waits] */
int marlin_insert(void *client, uint64_t key, const void *value);
int marlin_update(void *client, uint64_t key, const void *value);
int marlin_remove(void *client, uint64_t key);

/* Splits the leaf, of which the client has a share, around a new key; `stored` is the word of its block, which has been
 * written. 0; DM_EXISTS; IX_TREE_AGAIN if there is a slot now or another client changes the structure; a failure: in
 * each case without the lock. [waits] */
int marlin_split(struct marlin_client *client, dm_addr leaf, uint64_t key, const void *stored, uint32_t *attempts);

/* Gives the entries of the right neighbour to the leaf of the key, if both together need one leaf. Gives up if another
 * client uses one of them. [waits] */
int marlin_merge(struct marlin_client *client, uint64_t key);

/* True if so few entries are worth the attempt. */
static inline bool marlin_is_low(const struct marlin_client *client, unsigned count) {
    return count <= client->cn->btree.leaf.cap / 8;
}

#endif
