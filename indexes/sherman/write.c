/* SPDX-License-Identifier: Apache-2.0
 *
 * The write path without structure changes: lock the leaf, read it, change one entry, send the entry and the unlock.
 *
 * With indirect values the block is taken on the leaf's memory node and written in front of the entry in one batch; the
 * block that an update or delete takes out of the leaf is kept once its entry has been written.
 */
#include "sherman.h"

/* ---- how the tree locks a node ------------------------------------------------------------------------------------
 */

static int hook_lock(struct ix_tree *tree, dm_addr addr, uint32_t *attempts) {
    struct sherman_client *client = tree->client;
    DM_TRY(ix_lock_acquire(client->ctx, client->cn->locks, addr, tree->old, attempts, &client->lock));
    client->counts[SHERMAN_HAND_OVER] += client->lock.handed;
    return 0;
}

static int hook_unlock(struct ix_tree *tree) {
    struct sherman_client *client = tree->client;
    return ix_lock_release(client->ctx, client->cn->locks, &client->lock, client->tree.own);
}

/* Writes and unlock in one doorbell, or apart without combining. */
static int hook_commit_unlock(struct ix_tree *tree) {
    struct sherman_client *client = tree->client;
    struct ix_lock *lock = &client->lock;
    if (client->cn->params->combine) {
        /* Node and lock are on one memory node, so the unlock takes effect behind the writes. */
        ix_lock_post_release(client->ctx, client->cn->locks, lock, client->tree.own);
        return ix_lock_finish(client->ctx, lock, dm_commit(client->ctx));
    }
    int rc = dm_commit(client->ctx);
    return rc < 0 ? ix_lock_finish(client->ctx, lock, rc) : hook_unlock(tree);
}

static dm_addr hook_lock_word(const struct ix_tree_cn *tree, dm_addr addr) {
    const struct sherman_cn *cn = tree->owner;
    return ix_locks_word(cn->locks, addr);
}

const struct ix_tree_policy sherman_locking = {
    .lock = hook_lock,
    .commit_unlock = hook_commit_unlock,
    .unlock = hook_unlock,
    .lock_word = hook_lock_word,
    .is_locked = ix_tree_word_taken,
};

/* ---- the operations ------------------------------------------------------------------------------------------------
 */

/* Sends entry `at` as the image has it, and the unlock. */
static int entry_write(struct sherman_client *client, dm_addr addr, unsigned at) {
    const struct node_layout *layout = &client->cn->layout;
    uint32_t offset = leaf_entry_offset(layout, at);
    struct ix_span span =
        ix_lines_put_object(client->tree.wire, offset, client->tree.image + offset, layout->entry_bytes);
    dm_post_write(client->ctx, dm_addr_add(addr, span.offset), client->tree.wire + span.offset, span.bytes);
    return hook_commit_unlock(&client->tree);
}

/* Gives the lock back without a change; `outcome` unless that fails. */
static int leave(struct sherman_client *client, int outcome) {
    int rc = hook_unlock(&client->tree);
    return rc < 0 ? rc : outcome;
}

/* What the entry in the locked leaf is to hold for `value`. A failure without the lock. [waits] */
static int value_make(struct sherman_client *client, dm_addr leaf, uint64_t key, const void *value,
                      const void **stored) {
    int rc = ix_indirect_make(client->indirect, dm_addr_node(leaf), key, value, stored);
    return rc < 0 ? ix_lock_finish(client->ctx, &client->lock, rc) : 0;
}

/* The word of entry `at` of the leaf in hand; 0 with inline values. */
static uint64_t value_word(const struct sherman_client *client, unsigned at) {
    return ix_indirect_word(client->indirect, leaf_value(&client->cn->layout, client->tree.image, at));
}

/* The leaf is full. */
static int split_put(struct sherman_client *client, dm_addr leaf, uint64_t key, const void *stored) {
    ix_indirect_post(client->indirect); /* on its own: the half that names it may go to another memory node */
    int rc = dm_commit(client->ctx);
    if (rc < 0) {
        return ix_lock_finish(client->ctx, &client->lock, rc);
    }
    rc = sherman_split_insert(client, leaf, key, stored);
    if (rc == DM_ERR_NO_MEMORY) {
        ix_indirect_drop(client->indirect, ix_indirect_word(client->indirect, stored));
    }
    return rc;
}

int sherman_insert(void *handle, uint64_t key, const void *value) {
    struct sherman_client *client = handle;
    const struct node_layout *layout = &client->cn->layout;
    uint32_t attempts = 0;
    dm_addr addr;
    DM_TRY(ix_tree_lock_node(&client->tree, key, 0, DM_NULL, &attempts, &addr));
    if (leaf_find(layout, client->tree.image, key) != ENTRY_NONE) {
        return leave(client, DM_EXISTS);
    }
    const void *stored;
    DM_TRY(value_make(client, addr, key, value, &stored));
    int at = leaf_find_unused(layout, client->tree.image);
    if (at == ENTRY_NONE) {
        return split_put(client, addr, key, stored);
    }
    leaf_set(layout, client->tree.image, (unsigned)at, key, stored);
    ix_indirect_post(client->indirect);
    return entry_write(client, addr, (unsigned)at);
}

/* Locks and reads the leaf of a key that is there: 0 with the lock, the leaf's address and the entry's place;
 * DM_NOT_FOUND or a failure without. [waits] */
static int present_lock(struct sherman_client *client, uint64_t key, dm_addr *addr, unsigned *at) {
    uint32_t attempts = 0;
    DM_TRY(ix_tree_lock_node(&client->tree, key, 0, DM_NULL, &attempts, addr));
    int found = leaf_find(&client->cn->layout, client->tree.image, key);
    *at = (unsigned)found;
    return found == ENTRY_NONE ? leave(client, DM_NOT_FOUND) : 0;
}

int sherman_update(void *handle, uint64_t key, const void *value) {
    struct sherman_client *client = handle;
    dm_addr addr;
    unsigned at;
    int rc = present_lock(client, key, &addr, &at);
    if (rc != 0) {
        return rc;
    }
    const void *stored;
    DM_TRY(value_make(client, addr, key, value, &stored));
    uint64_t before = value_word(client, at);
    leaf_set(&client->cn->layout, client->tree.image, at, key, stored);
    ix_indirect_post(client->indirect);
    DM_TRY(entry_write(client, addr, at));
    ix_indirect_drop(client->indirect, before);
    return 0;
}

int sherman_remove(void *handle, uint64_t key) {
    struct sherman_client *client = handle;
    dm_addr addr;
    unsigned at;
    int rc = present_lock(client, key, &addr, &at);
    if (rc != 0) {
        return rc;
    }
    uint64_t before = value_word(client, at);
    leaf_clear(&client->cn->layout, client->tree.image, at);
    DM_TRY(entry_write(client, addr, at));
    ix_indirect_drop(client->indirect, before);
    return 0;
}
