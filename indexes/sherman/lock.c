/* SPDX-License-Identifier: Apache-2.0
 *
 * Sherman's locks: a table of words on every memory node, on chip where there is any such memory, in front of it the
 * local lock queues of shared/locks.h; or a word behind each node; and how the tree uses them.
 *
 * A node's word is on the node's own memory node, so a write and the unlock behind it keep their order and can share a
 * doorbell (command combining).
 */
#include <assert.h>

#include "indexes/shared/lock_tables.h"
#include "sherman.h"

enum {
    LOCKS_OFFSET = 512,    /* in the reserved page of memory node 0: addresses of the lock tables of all memory nodes */
    LOCKS_IN_DRAM = 16384, /* lock words a memory node when they are not limited by on-chip memory */
};

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static enum ix_lock_memory lock_memory(const struct sherman_params *params, const struct dm_topology *topology) {
    assert(params->locks != SHERMAN_LOCKS_NODE);
    bool chip =
        params->locks == SHERMAN_LOCKS_CHIP || (params->locks == SHERMAN_LOCKS_AUTO && topology->chip_bytes > 0);
    return chip ? IX_LOCK_CHIP : IX_LOCK_DRAM;
}

static uint32_t lock_count(const struct sherman_params *params, const struct dm_topology *topology) {
    if (params->lock_count > 0) {
        return (uint32_t)params->lock_count;
    }
    return lock_memory(params, topology) == IX_LOCK_CHIP ? topology->chip_bytes / (uint32_t)sizeof(uint64_t)
                                                         : LOCKS_IN_DRAM;
}

uint64_t sherman_locks_bytes(const struct sherman_params *params, const struct dm_topology *topology) {
    return params->locks == SHERMAN_LOCKS_NODE ? 0 : sizeof(uint64_t) * (uint64_t)lock_count(params, topology);
}

int sherman_locks_check(const struct sherman_params *params, const struct dm_topology *topology, struct dm_err *err) {
    return params->locks == SHERMAN_LOCKS_NODE
               ? 0
               : ix_lock_tables_check(lock_memory(params, topology), lock_count(params, topology), topology,
                                      "locks=dram", err);
}

int sherman_locks_format(struct dm_ctx *ctx, const struct sherman_params *params, const struct dm_topology *topology,
                         struct dm_err *err) {
    return params->locks == SHERMAN_LOCKS_NODE ? 0
                                               : ix_lock_tables_format(ctx, lock_memory(params, topology),
                                                                       lock_count(params, topology), LOCKS_OFFSET, err);
}

int sherman_locks_open(struct sherman_cn *cn, struct dm_ctx *ctx) {
    const struct sherman_params *params = cn->params;
    bool is_behind = params->locks == SHERMAN_LOCKS_NODE;
    struct ix_lock_config locks = {
        .behind = is_behind ? (uint32_t)cn->btree.config.node_bytes : 0,
        .count = is_behind ? 0 : lock_count(params, cn->btree.shape->topology),
        .local = params->local_locks,
        .hand_over = params->hand_over,
        .hand_over_max = (uint32_t)params->hand_over_max,
        .at_once = !params->back_off,
    };
    if (is_behind) {
        cn->locks = ix_locks_open(&locks, NULL, cn->btree.shape->topology->mns);
        return cn->locks ? 0 : DM_ERR_NO_MEMORY;
    }
    return ix_lock_tables_open(ctx, &locks, LOCKS_OFFSET, &cn->locks);
}

/* ---- how the tree locks a node ----------------------------------------------------------------------------------- */

static int lock(struct ix_tree *tree, dm_addr addr, uint32_t *attempts) {
    struct sherman_client *client = tree->client;
    DM_TRY(ix_lock_acquire(tree->ctx, client->cn->locks, addr, tree->old, attempts, &client->lock));
    client->counts[SHERMAN_HAND_OVER] += client->lock.handed;
    return 0;
}

static int unlock(struct ix_tree *tree) {
    struct sherman_client *client = tree->client;
    return ix_lock_release(tree->ctx, client->cn->locks, &client->lock, tree->own);
}

/* Writes and unlock with one doorbell, or with two without combining. */
static int commit_unlock(struct ix_tree *tree) {
    struct sherman_client *client = tree->client;
    if (tree->cn->combine) {
        ix_lock_post_release(tree->ctx, client->cn->locks, &client->lock, tree->own);
        return ix_lock_finish(tree->ctx, &client->lock, dm_commit(tree->ctx));
    }
    int rc = dm_commit(tree->ctx);
    return rc < 0 ? ix_lock_finish(tree->ctx, &client->lock, rc) : unlock(tree);
}

static dm_addr lock_word(const struct ix_tree_cn *tree, dm_addr addr) {
    const struct sherman_cn *cn = tree->owner;
    return ix_locks_word(cn->locks, addr);
}

const struct ix_tree_policy sherman_locking = {
    .lock = lock,
    .commit_unlock = commit_unlock,
    .unlock = unlock,
    .lock_word = lock_word,
    .is_locked = ix_tree_word_taken,
};
