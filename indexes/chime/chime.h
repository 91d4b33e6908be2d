/* SPDX-License-Identifier: Apache-2.0
 *
 * CHIME inside: what its files share. README.md maps the paper's parts to the files.
 *
 * The life of an operation: ix_tree_descend (shared/tree.c) finds the leaf through the cache, and what its parent says
 * of it: its key range and which leaf comes next. A get (read.c) reads one neighbourhood, or first one entry that the
 * hotspot buffer names. A write (write.c) locks the leaf, whose lock word shows where there are empty entries,
 * reads the neighbourhood or the hop range, and sends the changed entries and after them the lock word. A leaf into
 * which a key does not fit is split (split.c), one that has become empty is merged with its right neighbour (merge.c).
 */
#ifndef DM_INDEXES_CHIME_CHIME_H
#define DM_INDEXES_CHIME_CHIME_H

#include "hotspot.h"
#include "indexes/index.h"
#include "indexes/shared/indirect.h"
#include "indexes/shared/lock_queue.h"
#include "indexes/shared/tree.h"
#include "leaf.h"

/* ---- parameters ------------------------------------------------------------------------------------------------ */

enum { CHIME_VALIDATE_SIBLINGS, CHIME_VALIDATE_FENCES, CHIME_VALIDATE_NONE };
enum { CHIME_VACANCY_PIGGYBACK, CHIME_VACANCY_READ, CHIME_VACANCY_NONE };
enum { CHIME_UNLOCK_BEHIND, CHIME_UNLOCK_BEFORE };
enum { CHIME_SCAN_SEGMENTS, CHIME_SCAN_LEAVES, CHIME_SCAN_HOTSPOTS };

struct chime_params {
    uint64_t span, neighbourhood, hotspot_bytes;
    double hotspot_share, fill;
    bool speculative, replicate, bitmap_check, merge, local_locks, back_off;
    unsigned validation, vacancy, unlock, scan;
    unsigned values; /* enum ix_values */
    unsigned fetch;  /* enum ix_fetch */
    uint64_t cache_levels;
};

/* ---- counters --------------------------------------------------------------------------------------------------- */

#define CHIME_COUNTERS(X)                                                                                              \
    IX_TREE_COUNTERS(X)                                                                                                \
    IX_TREE_CACHE_COUNTERS(X)                                                                                          \
    X(SPLIT_ENTRIES, "split_entries", 0) /* that leaves held when they had to be split, summed */                      \
    X(LEAF_MERGE, "leaf_merge", 1)                                                                                     \
    X(HOP, "hop", 1) /* an insert moved other keys */                                                                  \
    X(TORN_ENTRY, "torn_entry", 1)                                                                                     \
    X(HOP_SEEN, "hop_seen", 1)           /* a reader saw a hop bitmap that does not match the keys */                  \
    X(HALF_SPLIT, "half_split", 1)       /* a leaf's sibling was not the one its parent names */                       \
    X(DEAD_LEAF, "dead_leaf", 1)         /* an out-of-date parent led to a leaf that was merged away */                \
    X(LARGEST_READ, "largest_read", 1)   /* in a half-split, the largest key was read */                               \
    X(HOTSPOT_HIT, "hotspot_hit", 0)     /* a speculative read found the key */                                        \
    X(HOTSPOT_WRONG, "hotspot_wrong", 0) /* it did not */                                                              \
    X(HOTSPOT_MISS, "hotspot_miss", 0)   /* nothing to speculate on */                                                 \
    X(BLOCK_REUSED, "block_reused", 1)   /* a value's block had been reused before it was read */                      \
    X(SCAN_PART, "scan_part", 1)         /* a scan read only parts of a leaf */
enum chime_counter {
#define X(name, text, rare) CHIME_##name,
    CHIME_COUNTERS(X)
#undef X
        CHIME_COUNTER_COUNT,
};

/* ---- a compute node and a client -------------------------------------------------------------------------------- */

struct chime_cn {
    struct ix_tree_cn tree; /* inner nodes and their cache */
    const struct chime_params *params;
    const struct ix_shape *shape;
    struct chime_layout layout;
    struct chime_hotspot *hotspot; /* NULL: none */
    struct ix_queues *queues;      /* for leaf locks; NULL: clients do not queue */
};

/* A lock that is held. */
struct chime_lock {
    dm_addr word;
    uint64_t held; /* what the word holds now */
    uint64_t old;  /* what it held before: for a leaf, the vacancy bitmap and the position of the largest key */
    struct ix_queue *queue; /* of this compute node, left with the lock; NULL: none */
    bool is_own;            /* no other client's lock has this value of `held` */
    bool is_posted;         /* its release has been posted */
};

/* A leaf in local memory, or a part of it. */
struct chime_copy {
    char *wire, *image;
    unsigned start, count; /* entries that were read */
};

struct chime_client {
    struct ix_tree tree;
    struct chime_cn *cn;
    struct dm_ctx *ctx;
    struct chime_lock leaf_lock, right_lock, inner_lock;
    struct chime_copy leaf, right; /* the current leaf; a split's or a merge's right one */
    struct ix_indirect *indirect;  /* NULL: values are inline */
    uint64_t counts[CHIME_COUNTER_COUNT];
};

/* ---- io.c ------------------------------------------------------------------------------------------------------- */

/* Reads `count` entries from `start` on and a copy of the metadata; all of the leaf if count is the span. [waits] */
int chime_read_part(struct chime_client *client, struct chime_copy *copy, dm_addr leaf, unsigned start, unsigned count);

/* Reads one entry alone into client->leaf. [waits] */
int chime_read_entry(struct chime_client *client, dm_addr leaf, unsigned i);

/* Posts the read of entries first .. last, with the copy of the metadata that precedes them; and decodes them with the
 * line before, where that copy may begin. */
void chime_post_segment(struct chime_client *client, struct chime_copy *copy, dm_addr leaf, unsigned first,
                        unsigned last);
void chime_decode_segment(const struct chime_client *client, const struct chime_copy *copy, unsigned first,
                          unsigned last);

/* True if these entries, and copy `group` of the metadata, are not half-written, and of one write of the whole leaf. */
bool chime_set_consistent(struct chime_client *client, const struct chime_copy *copy, const struct chime_set *entries,
                          unsigned group);

/* True if one entry is not half-written; or nothing that was read is, and all of it is of one write of the whole leaf.
 */
bool chime_entry_consistent(struct chime_client *client, const struct chime_copy *copy, unsigned i);
bool chime_copy_consistent(struct chime_client *client, const struct chime_copy *copy);

/* True if the hop bitmap of `home`, whose neighbourhood was read, agrees with the keys; always without bitmap_check.
 */
bool chime_hops_agree(struct chime_client *client, const struct chime_copy *copy, unsigned home);

/* The same for all homes of a copy of a whole leaf. */
bool chime_copy_hops_agree(struct chime_client *client, const struct chime_copy *copy);

/* The key was found at entry `at` of the leaf: the hotspot buffer, if there is one, learns it. */
void chime_remember(struct chime_client *client, dm_addr leaf, uint64_t key, unsigned at);

/* The metadata that was read along. */
struct chime_meta chime_copy_meta(const struct chime_client *client, const struct chime_copy *copy);

/* Sends the changed entries of the current leaf and the unlock, which leaves `next` in the word; with `block`, before
 * them the block of the value that was made. After a failure that a peer or a stop did not cause, the entries are
 * written once more before the lock is released, so that no hop stays half done. [waits] */
int chime_write_back(struct chime_client *client, dm_addr leaf, const struct chime_set *changed, uint64_t next,
                     bool block);

/* Lays a copy out for a write of the whole leaf with this node version. */
void chime_encode(struct chime_client *client, struct chime_copy *copy, uint8_t version);

/* ---- lock.c ------------------------------------------------------------------------------------------------------ */

static inline dm_addr chime_leaf_word(const struct chime_cn *cn, dm_addr leaf) {
    return dm_addr_add(leaf, cn->layout.lock_offset);
}

/* Takes the lock whose word is at `word`. 0, or a failure: then nothing is held, but for a leaf's word that the failed
 * verb may have taken. [waits] */
int chime_lock_take(struct chime_client *client, dm_addr word, bool leaf, uint32_t *attempts, struct chime_lock *lock);

/* Adds the unlock to the current batch, leaving `next` in the word. Then commit and hand the result to finish, which
 * returns it. After a failed commit the word is freed by compare-and-swap, but not after a final failure (dm_is_final),
 * when no verb can be sent. */
void chime_lock_post(struct chime_client *client, struct chime_lock *lock, uint64_t next);
int chime_lock_finish(struct chime_client *client, struct chime_lock *lock, uint64_t next, int rc);

/* The word stays as it is; the next client of this node has its turn. Returns rc. */
int chime_lock_leave(struct chime_client *client, struct chime_lock *lock, int rc);

/* Posts, commits, finishes; without a change. [waits] */
int chime_lock_release(struct chime_client *client, struct chime_lock *lock);

extern const struct ix_tree_policy chime_inner_locking;

/* ---- read.c, write.c -------------------------------------------------------------------------------------------- */

/* What the metadata of a leaf means for a key that its parent leads there. */
enum chime_verdict { CHIME_COVERS, CHIME_RIGHT, CHIME_DEAD };
enum chime_verdict chime_judge(struct chime_client *client, const struct chime_meta *meta, uint64_t key, dm_addr next);

/* Tries the hotspot buffer: 0 with the entry in client->leaf and its position, DM_NOT_FOUND, or a failure. [waits] */
int chime_speculate(struct chime_client *client, dm_addr leaf, uint64_t key, unsigned *position);

int chime_get(void *client, uint64_t key, void *value);
int chime_insert(void *client, uint64_t key, const void *value);
int chime_update(void *client, uint64_t key, const void *value);
int chime_remove(void *client, uint64_t key);

/* ---- split.c, merge.c ------------------------------------------------------------------------------------------- */

/* Splits the leaf, which is locked and of which everything was read, and inserts the key with what its entry will hold.
 * Releases the lock. 0; IX_TREE_AGAIN if the key still does not fit; a failure. [waits] */
int chime_split_insert(struct chime_client *client, dm_addr leaf, uint64_t key, const void *value);

/* Merges the leaf that covers key with its right neighbour, if few of its entries are used and
 * both fit into one. 0 or a failure. [waits] */
int chime_merge(struct chime_client *client, uint64_t key);

/* ---- segments.c ------------------------------------------------------------------------------------------------- */

/* What a scan needs of one leaf: the keys of [first, end), for which it reads all of it or some entries. */
struct chime_part {
    dm_addr leaf, next; /* the leaf, and the next one as the parent has it */
    uint64_t first, end;
    bool all;
    struct chime_set entries; /* if not all */
    struct chime_set hot;     /* numbers after `first` whose entry the hotspot buffer named; of the others, the
                                 neighbourhood is in `entries` */
};

/* Decides what to read of a leaf that ends at `high`, from part->first on. A scan over dense keys needs none from
 * `window` on. */
void chime_part_plan(struct chime_client *client, uint64_t high, uint64_t window, struct chime_part *part);

/* Adds its read to the current batch. */
void chime_part_post(struct chime_client *client, struct chime_copy *copy, const struct chime_part *part);

/* Decodes entries that were read; true if they are all that the leaf has in [first, end). With entries that the hotspot
 * buffer named, a key may be in two of them: it is hopping, and both have its value. */
bool chime_part_use(struct chime_client *client, struct chime_copy *copy, const struct chime_part *part);

/* ---- scan.c, load.c, verify.c ----------------------------------------------------------------------------------- */

int chime_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);
int chime_load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);
int chime_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

#endif
