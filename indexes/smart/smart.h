/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of SMART share. README.md maps the paper's parts to the files.
 *
 * The life of an operation: smart_start (descent.c) takes the deepest cached slot of the key, or the root's, and
 * smart_descend follows it to a leaf, to a slot without a child, or to a node in which the key has no slot. A get
 * (read.c) is done then; update and delete (write.c) take the leaf's lock, or claim the leaf; an insert (insert.c) puts
 * a leaf into a slot, or a node above what is there. shrink.c takes nodes out that have few children left.
 */
#ifndef DM_INDEXES_SMART_SMART_H
#define DM_INDEXES_SMART_SMART_H

#include "cache.h"
#include "indexes/index.h"
#include "indexes/shared/indirect.h"
#include "indexes/shared/retry.h"
#include "layout.h"

/* ---- parameters -------------------------------------------------------------------------------------------------- */

enum { SMART_NODES_ART, SMART_NODES_POWERS };
enum smart_update_mode { SMART_IN_PLACE, SMART_RCU, SMART_RCU_LATE };

enum { SMART_TAKES_LEAF, SMART_TAKES_LOCK };

struct smart_params {
    unsigned nodes, update, accounting, values, lease_takes;
    uint64_t align, lease_us, scan_probes;
    bool shrink;
    bool confirm, recheck_lock, unlock_apart, keep_slots, check_sum, wait_type, check_scan;
};

/* ---- counters ---------------------------------------------------------------------------------------------------- */

/* X(name, text, rare): rare ones are events that a concurrency check must have seen. */
#define SMART_COUNTERS(X)                                                                                              \
    X(CACHE_HIT, "cache_hit", 0) /* descents that begin at a cached slot */                                            \
    X(CACHE_MISS, "cache_miss", 0)                                                                                     \
    X(CACHE_EVICTION, "cache_eviction", 1)                                                                             \
    X(STALE_REVERSE, "stale_reverse", 1)   /* a reverse pointer showed that a cached slot was stale */                 \
    X(STALE_OTHER, "stale_cache", 1)       /* another use of a leaf, a deleted leaf, a node that is deeper now */      \
    X(REVERSE_REPAIR, "reverse_repair", 1) /* a wrong reverse pointer was corrected by a reader */                     \
    X(TYPE_SECOND, "second_read", 1)       /* the node was larger than its slot stated */                              \
    X(CONFIRM, "confirm", 1)               /* read a cached slot again before a key was taken for absent */            \
    X(TORN_LEAF, "torn_leaf", 0)           /* needs values of several lines */                                         \
    X(LOCK_CONFLICT, "lock_conflict", 1)   /* found the leaf locked, or being replaced */                              \
    X(CLAIM_LOST, "leaf_lost", 1)          /* the leaf was deleted or replaced before its lock was taken */            \
    X(SLOT_CONFLICT, "slot_conflict", 1)   /* lost the race for a slot */                                              \
    X(SLOT_REUSE, "slot_reuse", 1)         /* inserted into a slot whose child had been deleted */                     \
    X(LEAF_SPLIT, "leaf_split", 1)         /* a node for two leaves */                                                 \
    X(PATH_CHAIN, "path_chain", 0)         /* the same with a common prefix of seven bytes: two nodes */               \
    X(PREFIX_SPLIT, "prefix_split", 1)     /* a node above a node */                                                   \
    X(TYPE_CHANGE, "type_change", 1)                                                                                   \
    X(CHASE, "chase", 1)                 /* a leaf had moved to another slot while it was deleted or replaced */       \
    X(LEASE_BROKEN, "lease_broken", 0)   /* did not wait for a client any more: a lease was over */                    \
    X(LEASE_LOST, "lease_lost", 0)       /* noticed that others had not waited for this one */                         \
    X(FROZEN_SLOT, "frozen_slot", 0)     /* met a node that is being taken out */                                      \
    X(SHRINK, "shrink", 0)               /* a node was taken out: with shrink=on */                                    \
    X(SHRINK_UNDONE, "shrink_undone", 0) /* its children had changed */                                                \
    X(VALUE_REUSED, "value_reused", 0)   /* the block of an indirect value was reused */                               \
    X(SCAN_AGAIN, "scan_again", 0)       /* a scan read a slot again */
enum smart_counter {
#define X(name, text, rare) SMART_##name,
    SMART_COUNTERS(X)
#undef X
        SMART_COUNTER_COUNT,
};

/* ---- a compute node and a client --------------------------------------------------------------------------------- */

/* The slot of the root is in the reserved page of memory node 0; its byte is 0. */
enum { SMART_ROOT_OFFSET = 64 };

struct smart_cn {
    const struct smart_params *params;
    const struct ix_shape *shape;
    struct smart_layout layout;
    struct smart_cache *cache;
    enum smart_update_mode update;
    uint32_t scan_batch; /* leaves that one doorbell of a scan reads */
};

enum { SMART_SPARES = 2, SMART_SCAN_BATCH_MAX = 128, SMART_SCAN_BYTES = 65536, SMART_CHAIN_MAX = 2 };

/* A leaf's memory that no slot leads to, for another leaf: words of slots with the next stamp, oldest first. */
struct smart_pool {
    uint64_t *words;
    uint32_t first, count, capacity;
};

struct smart_scan; /* scan.c */

struct smart_client {
    struct smart_cn *cn;
    struct dm_ctx *ctx;

    /* Device memory. */
    struct smart_node *node; /* the node read last */
    struct smart_node *made; /* nodes that are about to be linked: SMART_CHAIN_MAX, only their first slots */
    char *leaf;              /* the leaf read last */
    char *fresh;             /* the leaf that is about to be linked */
    uint64_t *olds;          /* results of atomics and of reads of slots */
    uint64_t *outs;          /* sources of short writes */

    struct smart_pool pool;
    dm_addr spares[SMART_SPARES]; /* nodes that were allocated and never linked */
    unsigned spare_count;
    struct ix_indirect *indirect;
    struct smart_scan *scan;
    uint64_t counts[SMART_COUNTER_COUNT];
};

/* Where an operation has got to. */
struct smart_at {
    uint64_t word;  /* of the slot, as last seen */
    dm_addr slot;   /* its address */
    unsigned depth; /* bytes of the key that the slot fixes; 0: the root's */
    bool cached;    /* `word` is from the cache */
    dm_addr node;   /* that has the slot; null: the root's */
    unsigned index; /* of the slot in it */
    uint64_t own;   /* the leaf that this operation has claimed: found in any state; 0: none */
    uint32_t attempts;

    /* With leases; see lease.c. */
    bool replaces;    /* an update or delete, which waits for the lease of a claimed leaf */
    bool is_claimed;  /* the leaf that was found is claimed by another client, and the slot still leads to it */
    bool is_expired;  /* the leaf's lock has been held for longer than a lease */
    uint64_t watched; /* what is being waited for, and since when */
    uint64_t since_ns;
};

/* What a descent found. */
enum smart_found {
    SMART_FOUND_LEAF,   /* a live leaf, in client->leaf; or the claimed one */
    SMART_FOUND_VACANT, /* the slot has no child, or a deleted leaf */
    SMART_FOUND_NONE,   /* the node in client->node has no slot for the key; `at` is the slot that leads to the node */
    SMART_FOUND_PREFIX, /* the same node's prefix is not the key's */
};

/* An outcome beside those of index.h: look again from where `at` is now. */
enum { SMART_AGAIN = 1000, SMART_EXPIRED };

/* ---- descent.c --------------------------------------------------------------------------------------------------- */

/* Begins at the deepest cached slot of the key with at most `longest` bytes in front, or at the root's slot, which is
 * read. [waits] */
int smart_start(struct smart_client *client, uint64_t key, int longest, struct smart_at *at);
enum { SMART_DEEPEST = SMART_KEY_BYTES - 1 };

/* Follows the slot. 0 with *found, or a failure. [waits] */
int smart_descend(struct smart_client *client, uint64_t key, struct smart_at *at, enum smart_found *found);

/* Reads the node that the slot leads to, and moves `at` to the key's slot in it: SMART_AGAIN. 0 with *found if it has
 * none; or a failure. [waits] */
int smart_step(struct smart_client *client, uint64_t key, struct smart_at *at, enum smart_found *found);

/* After a descent that shows that the key is absent: 0 if that is proved; SMART_AGAIN if it rested on a cached slot
 * that has changed; or a failure. [waits] */
int smart_confirm(struct smart_client *client, uint64_t key, struct smart_at *at);

/* Reads the slot again and forgets the copy that it came from. [waits] */
int smart_refresh(struct smart_client *client, uint64_t key, struct smart_at *at);

/* Puts the node that is in client->node into the cache. */
void smart_keep(struct smart_client *client, uint64_t key, dm_addr addr, const struct smart_node *node);

/* Charges a search through that many slots of a node at hand. */
static inline void smart_slots_charge(struct smart_client *client, unsigned slots) {
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, slots / 4 + 2);
}
static inline void smart_leaf_charge(struct smart_client *client) {
    dm_charge(client->ctx, DM_WORK_LINE_COPY, (client->cn->layout.leaf_bytes + DM_LINE - 1) / DM_LINE);
}

/* ---- lease.c ----------------------------------------------------------------------------------------------------- */

static inline bool smart_has_leases(const struct smart_client *client) {
    return client->cn->params->lease_us > 0;
}

/* True if this operation has met that word, of a slot or a leaf, for as long as a lease. */
bool smart_lease_is_over(struct smart_client *client, struct smart_at *at, uint64_t word);

/* ---- read.c ------------------------------------------------------------------------------------------------------ */

int smart_get(void *client, uint64_t key, void *value);

/* ---- write.c ----------------------------------------------------------------------------------------------------- */

/* A leaf that is about to be linked. */
struct smart_fresh {
    uint64_t key;
    const void *value;
    uint64_t word; /* of its slot, with byte 0; 0: none taken yet */
    bool written;
    uint64_t block; /* of an indirect value */
};

/* Takes memory for the leaf, if it has none, and fills client->fresh. 0, DM_ERR_NO_MEMORY, or a failure. [waits] */
int smart_fresh_take(struct smart_client *client, struct smart_fresh *fresh);

/* Posts what is missing of the leaf with that reverse pointer: all of it, or the pointer. */
void smart_fresh_post(struct smart_client *client, struct smart_fresh *fresh, dm_addr slot);

/* Keeps the memory of a leaf that was not linked. */
void smart_fresh_drop(struct smart_client *client, struct smart_fresh *fresh);

/* Writes the leaf and links it to a slot that holds `expected`. 0; SMART_AGAIN: the slot holds client->olds[0]; or a
 * failure. [waits] */
int smart_fresh_link(struct smart_client *client, struct smart_fresh *fresh, dm_addr slot, uint64_t expected,
                     unsigned byte);

int smart_update(void *client, uint64_t key, const void *value);
int smart_remove(void *client, uint64_t key);

/* ---- insert.c ---------------------------------------------------------------------------------------------------- */

int smart_insert(void *client, uint64_t key, const void *value);

/* ---- shrink.c ---------------------------------------------------------------------------------------------------- */

/* After a delete in the node that has at's slot: takes the node out of the tree if at most a leaf is left in it. 0 or a
 * failure. [waits] */
int smart_shrink(struct smart_client *client, uint64_t key, const struct smart_at *at);

/* ---- scan.c ------------------------------------------------------------------------------------------------------ */

int smart_scan_open(struct smart_client *client);
void smart_scan_close(struct smart_client *client);
int smart_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);

/* ---- load.c, verify.c -------------------------------------------------------------------------------------------- */

int smart_load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);
int smart_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

#endif
