/* SPDX-License-Identifier: Apache-2.0
 *
 * Hierarchical locks (Sherman's technique, as the papers describe it): a table of lock words on every memory node, in
 * on-chip memory or DRAM, and in front of it a table of local locks on every compute node. Contexts of one node queue
 * at the local lock in order, so that only one of them spins on the remote word; and the holder may hand the remote
 * lock to the next in the queue, which then needs no compare-and-swap. Hand-overs in a row are bounded, for other
 * nodes' sake.
 *
 * A node's lock is found by hashing its address into the table of its own memory node: a write to the node and the
 * unlock behind it go to one memory node, where posted order is kept, so both can share one doorbell. Two nodes may
 * share a lock: never hold two at a time. Instead of the tables each node may have its word behind it; then local
 * queues are shared by hash, and nothing is handed over.
 *
 * The lock word is 0 when free, else it names the context that took it: node << 32 | context id.
 */
#ifndef DM_INDEXES_SHARED_LOCKS_H
#define DM_INDEXES_SHARED_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "indexes/shared/lock_queue.h"
#include "transport/dm.h"

enum ix_lock_memory { IX_LOCK_CHIP, IX_LOCK_DRAM };

struct ix_lock_config {
    uint32_t count;         /* lock words a memory node; unused with `behind` */
    uint32_t behind;        /* above 0: there are no tables, a node's word is so many bytes after its address */
    bool local;             /* queue locally before going to the remote word */
    bool hand_over;         /* needs local, and tables */
    uint32_t hand_over_max; /* in a row */
    bool at_once;           /* a refused compare-and-swap is sent again at once, however often; else as retry.h says */
};

struct ix_locks; /* one compute node's side */

/* A held lock; the caller's storage, set by acquire. */
struct ix_lock {
    struct ix_queue *queue; /* NULL without local locks */
    dm_addr word;
    uint64_t owner; /* what the remote word holds */
    bool handed;    /* came from another context of this node, without a verb */
    bool pass;      /* release decided to hand it on */
};

/* Makes one memory node's table; all words free. Set-up only. [waits] DM_ERR_NO_MEMORY, DM_ERR_UNSUPPORTED. */
int ix_locks_format(struct dm_ctx *ctx, unsigned node, enum ix_lock_memory memory, uint32_t count, dm_addr *base);

/* `bases` are the tables' addresses, one a memory node; copied. None with `behind`. NULL when out of memory. */
struct ix_locks *ix_locks_open(const struct ix_lock_config *config, const dm_addr *bases, unsigned mns);
void ix_locks_close(struct ix_locks *locks); /* accepts NULL */

/* The word that guards a node. */
dm_addr ix_locks_word(const struct ix_locks *locks, dm_addr node);

/* Takes the node's lock. `old` is a buffer of one word, best from dm_local_alloc. Conflicts count as retries in
 * `attempts`. 0, or a failure with nothing held: a word that the failed verb may have taken is freed as by finish.
 * [waits]
 */
int ix_lock_acquire(struct dm_ctx *ctx, struct ix_locks *locks, dm_addr node, uint64_t *old, uint32_t *attempts,
                    struct ix_lock *lock);

/* Releasing after other verbs: post_release adds the unlock to the current batch (nothing when the lock is handed on),
 * then the caller commits and gives the commit's result to `finish`, which returns it. `zero` points to 8 zero bytes
 * that live until the commit. After a failed commit the word is freed by compare-and-swap against the owner, so that it
 * cannot free a lock that another client has taken meanwhile; after a final one (dm_is_final) no verb can be sent
 * and the word stays as it is. */
void ix_lock_post_release(struct dm_ctx *ctx, struct ix_locks *locks, struct ix_lock *lock, const uint64_t *zero);
int ix_lock_finish(struct dm_ctx *ctx, struct ix_lock *lock, int rc);

/* Releases in a round trip of its own (none when handed on). The current batch must be empty. [waits] */
int ix_lock_release(struct dm_ctx *ctx, struct ix_locks *locks, struct ix_lock *lock, const uint64_t *zero);

#endif
