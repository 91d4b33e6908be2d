/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of RACE share. README.md has the design, and what differs from the published one.
 *
 * The life of an operation: race_search (find.c) takes the key's subtable from the cached directory (directory.c),
 * reads both combined buckets, and the blocks whose fingerprint is the key's; a get (read.c) is done then. Update and
 * delete (write.c) change the slot by a compare-and-swap. An insert (insert.c) takes an empty slot tentatively, reads
 * the buckets again and then commits it. split.c divides a subtable in two during other operations, under the locks of
 * lock.c.
 */
#ifndef DM_INDEXES_RACE_RACE_H
#define DM_INDEXES_RACE_RACE_H

#include <stdatomic.h>

#include "indexes/index.h"
#include "indexes/shared/indirect.h"
#include "indexes/shared/retry.h"
#include "layout.h"

enum race_insert_mode { RACE_TENTATIVE, RACE_PUBLISHED, RACE_BLIND };
enum race_blocks { RACE_BLOCKS_CHECKED, RACE_BLOCKS_UNCHECKED };
enum race_checksum { RACE_CHECKSUM_NONE, RACE_CHECKSUM_BITWISE };

struct race_params {
    uint64_t subtable, slots, initial_depth;
    unsigned insert, blocks, checksum;
    bool check_headers;
};

static inline uint64_t race_groups(const struct race_params *params) {
    return params->subtable / RACE_GROUP_BYTES;
}

/* Bytes of a block beside key, value and stamps: the padding of the key, and a checksum. */
static inline uint32_t race_block_extra(const struct race_params *params, const struct ix_shape *shape) {
    return ix_key_padding(shape) + (params->checksum == RACE_CHECKSUM_NONE ? 0 : IX_INDIRECT_CHECKSUM_BYTES);
}

/* X(name, text, rare): rare ones are events that a concurrency check must have seen. */
#define RACE_COUNTERS(X)                                                                                               \
    X(DIRECTORY_MISS, "directory_miss", 0)       /* the cached directory has no entry */                               \
    X(DIRECTORY_STALE, "directory_stale", 1)     /* a header showed that the cached entry was out of date */           \
    X(DIRECTORY_DOUBLED, "directory_doubled", 1) /* by this client */                                                  \
    X(SPLIT, "split", 1)                         /* this client split a subtable */                                    \
    X(SPLIT_ENTRIES, "split_entries", 0)         /* slots in use in subtables when they had to be split, summed */     \
    X(SPLIT_SLOTS, "split_slots", 0)             /* all slots of those subtables, summed */                            \
    X(SPLIT_MOVED, "split_moved", 1)             /* slots moved by splits */                                           \
    X(SPLIT_OVERTAKEN, "split_overtaken", 1)     /* a slot changed while a split moved it */                           \
    X(SPLIT_BUSY, "split_busy", 1)               /* another client was splitting the subtable */                       \
    X(FILLING, "filling", 1)                     /* read both subtables of an unfinished split */                      \
    X(FALSE_MATCH, "false_match", 1)             /* a block of the same fingerprint and another key */                 \
    X(TENTATIVE_MET, "tentative_met", 1)         /* waited for another client's insert */                              \
    X(DUPLICATE_REMOVED, "duplicate_removed", 1) /* took the own slot back, as another client inserted the key */      \
    X(INSERT_MISPLACED, "insert_misplaced", 1)   /* took the own slot back, as the subtable had split */               \
    X(SLOT_CONFLICT, "slot_conflict", 1)         /* lost the race for a slot */                                        \
    X(BLOCK_REUSED, "block_reused", 1)           /* the block of a slot had been used again */
enum race_counter {
#define X(name, text, rare) RACE_##name,
    RACE_COUNTERS(X)
#undef X
        RACE_COUNTER_COUNT,
};

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* The cached directory of a compute node: entries [0, 2^min(depth, bits)). An entry may be of a subtable that has split
 * since, or zero. */
struct race_directory {
    _Atomic uint64_t *entries; /* NULL: the budget has no space for one */
    _Atomic uint32_t depth;    /* the global depth, as last seen */
    _Atomic uint64_t remote;   /* address of the directory, as last seen */
    unsigned bits;
};

struct race_cn {
    const struct race_params *params;
    const struct ix_shape *shape;
    uint32_t table_bytes, block_bytes;
    struct race_directory directory;
};

/* What was read of a subtable for a key. */
struct race_view {
    dm_addr table;
    uint64_t *wire; /* device memory of both combined buckets */
    struct race_lines lines;
};

/* A slot with the key's fingerprint, or the key. */
struct race_match {
    const struct race_view *view;
    dm_addr addr;
    uint64_t slot;
};

enum {
    RACE_AGAIN = 1200,     /* outcome: what was read is out of date, and the retry has been counted */
    RACE_MATCHES_MAX = 56, /* two subtables of four buckets of seven slots */
    RACE_FETCH_MAX = 4,    /* whole blocks that are read with one doorbell */
    RACE_STAGE_BYTES = 16384,
    RACE_FAILURES_MAX = 1000, /* in a row, of verbs that are repeated */
};

struct race_client {
    struct race_cn *cn;
    struct dm_ctx *ctx;
    struct ix_indirect *indirect;
    struct race_view now, old;                /* the key's subtable; the one that it is being split from */
    bool filling;                             /* ->old was read: the split is not finished */
    unsigned filling_depth;                   /* then: the local depth that it leads to */
    bool unwritten;                           /* the block made last is to be written with the next read of buckets */
    struct race_match same[RACE_MATCHES_MAX]; /* slots that hold the key, those of ->old first */
    unsigned same_count;
    dm_addr own;          /* a slot that is not looked at */
    uint64_t unsettled;   /* the slot that the last insert committed without waiting; 0: none, or it is committed */
    dm_addr unsettled_at; /* its address */
    uint64_t token;       /* what this client's locks contain: another value for each split */
    uint32_t buckets[RACE_BUCKETS];
    /* Device memory. */
    uint64_t *root;  /* global depth, address of the directory, an entry */
    uint64_t *words; /* sources of small writes */
    uint64_t *olds;  /* results of compare-and-swaps */
    char *blocks;    /* those read last, RACE_FETCH_MAX */
    char *chosen;    /* a copy of the block of the last committed slot */
    char *stage;
    uint64_t counts[RACE_COUNTER_COUNT];
};

/* ---- directory.c ------------------------------------------------------------------------------------------------- */

/* Reads the directory, with a buffer of RACE_STAGE_BYTES. [waits] */
int race_directory_open(struct race_cn *cn, struct dm_ctx *ctx, uint64_t *buffer);
void race_directory_close(struct race_directory *directory);
uint64_t race_directory_bytes(const struct race_directory *directory);

/* The entry of the hash, cached or read. [waits] */
int race_directory_find(struct race_client *client, uint64_t hash, uint64_t *entry);
/* Reads the entry of the hash again. [waits] */
int race_directory_refresh(struct race_client *client, uint64_t hash, uint64_t *entry);

/* Enters that the subtable of `suffix` has split into itself and `fresh`: `depth` bits now. After a failure *entered
 * states whether others may have seen the new subtable. [waits] */
int race_directory_split(struct race_client *client, uint64_t suffix, unsigned depth, dm_addr table, dm_addr fresh,
                         bool *entered);

/* ---- lock.c ------------------------------------------------------------------------------------------------------ */

/* What follows from the result of verbs that can be repeated: RACE_AGAIN after an error of which there have not been
 * too many, and otherwise `rc`. [waits] */
int race_repeat(struct race_client *client, int rc, uint32_t *failures);

/* To be called with the result of an operation, which it returns. [waits] */
int race_end(struct race_client *client, int rc);

/* Tries once to take the lock. [waits] */
int race_lock_take(struct race_client *client, dm_addr lock, bool *taken);
/* Gives locks back, all with one doorbell. [waits] */
int race_locks_give(struct race_client *client, const dm_addr *locks, unsigned count);

/* ---- find.c ------------------------------------------------------------------------------------------------------ */

/* Reads the buckets again, in the subtables of the last race_search, for the other slots than the one at `own`. *moved:
 * a header shows that the key's subtable has split. [waits] */
int race_find_again(struct race_client *client, uint64_t key, dm_addr own, bool *moved, uint32_t *attempts);

/* Reads the key's buckets until it is in a committed slot or absent. *match is NULL if it is absent; *value, unless
 * NULL, is set. [waits] */
int race_search(struct race_client *client, uint64_t key, void *value, const struct race_match **match,
                uint32_t *attempts);

/* Makes the block of the value, for race_search to write. There may be no memory for it: then *match states whether the
 * key is there, as an outcome that needs no block. [waits] */
int race_block_make(struct race_client *client, uint64_t key, const void *value, uint64_t *word,
                    const struct race_match **match);

/* ---- the others -------------------------------------------------------------------------------------------------- */

/* Splits the subtable of ->now, which has no empty slot for the hash, or waits for a client that does. 0 in any case in
 * which the insert may try again. [waits] */
int race_split(struct race_client *client, uint64_t hash, uint32_t *attempts);

int race_get(void *handle, uint64_t key, void *value);
int race_insert(void *handle, uint64_t key, const void *value);
int race_update(void *handle, uint64_t key, const void *value);
int race_remove(void *handle, uint64_t key);
int race_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);
int race_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

#endif
