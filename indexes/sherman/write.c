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
    struct sherman_client *client = (struct sherman_client *)tree;
    DM_TRY(ix_lock_acquire(client->ctx, client->cn->locks, addr, tree->old, attempts, &client->lock));
    client->counts[SHERMAN_HAND_OVER] += client->lock.handed;
    return 0;
}

static int hook_unlock(struct ix_tree *tree) {
    struct sherman_client *client = (struct sherman_client *)tree;
    return ix_lock_release(client->ctx, client->cn->locks, &client->lock, client->zero);
}

/* Writes and unlock in one doorbell, or apart without combining. */
static int hook_commit_unlock(struct ix_tree *tree) {
    struct sherman_client *client = (struct sherman_client *)tree;
    struct ix_lock *lock = &client->lock;
    if (client->cn->params->combine) {
        /* Node and lock are on one memory node, so the unlock takes effect behind the writes. */
        ix_lock_post_release(client->ctx, client->cn->locks, lock, client->zero);
        return ix_lock_finish(client->ctx, lock, dm_commit(client->ctx));
    }
    int rc = dm_commit(client->ctx);
    return rc < 0 ? ix_lock_finish(client->ctx, lock, rc) : hook_unlock(tree);
}

const struct ix_tree_hooks sherman_hooks = {
    .lock = hook_lock, .commit_unlock = hook_commit_unlock, .unlock = hook_unlock};

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

/* What the entry in the locked leaf is to hold for `value`: itself, or the word of a block that is made for it. A
 * failure without the lock. [waits] */
static int value_make(struct sherman_client *client, dm_addr leaf, uint64_t key, const void *value, uint64_t *word,
                      const void **stored) {
    *stored = client->indirect ? word : value;
    int rc = client->indirect ? ix_indirect_make(client->indirect, dm_addr_node(leaf), key, value, word) : 0;
    return rc < 0 ? ix_lock_finish(client->ctx, &client->lock, rc) : 0;
}

/* Adds the block's write to the batch that is about to publish it. */
static void value_post(struct sherman_client *client) {
    if (client->indirect) {
        ix_indirect_post(client->indirect);
    }
}

/* The word of entry `at` of the leaf in hand; 0 with inline values. */
static uint64_t value_word(const struct sherman_client *client, unsigned at) {
    uint64_t word = 0;
    if (client->indirect) {
        memcpy(&word, leaf_value(&client->cn->layout, client->tree.image, at), sizeof(word));
    }
    return word;
}

/* The word has left the leaf, or has never been there. */
static void value_drop(struct sherman_client *client, uint64_t word) {
    if (client->indirect) {
        ix_indirect_drop(client->indirect, word);
    }
}

/* The leaf is full. */
static int split_put(struct sherman_client *client, dm_addr leaf, uint64_t key, const void *stored) {
    value_post(client); /* on its own: the half that names it may go to another memory node */
    int rc = dm_commit(client->ctx);
    if (rc < 0) {
        return ix_lock_finish(client->ctx, &client->lock, rc);
    }
    rc = sherman_split_insert(client, leaf, key, stored);
    if (client->indirect && rc == DM_ERR_NO_MEMORY) {
        uint64_t word;
        memcpy(&word, stored, sizeof(word));
        value_drop(client, word);
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
    uint64_t word = 0;
    const void *stored;
    DM_TRY(value_make(client, addr, key, value, &word, &stored));
    int at = leaf_find_unused(layout, client->tree.image);
    if (at == ENTRY_NONE) {
        return split_put(client, addr, key, stored);
    }
    leaf_set(layout, client->tree.image, (unsigned)at, key, stored);
    value_post(client);
    return entry_write(client, addr, (unsigned)at);
}

int sherman_update(void *handle, uint64_t key, const void *value) {
    struct sherman_client *client = handle;
    const struct node_layout *layout = &client->cn->layout;
    uint32_t attempts = 0;
    dm_addr addr;
    DM_TRY(ix_tree_lock_node(&client->tree, key, 0, DM_NULL, &attempts, &addr));
    int at = leaf_find(layout, client->tree.image, key);
    if (at == ENTRY_NONE) {
        return leave(client, DM_NOT_FOUND);
    }
    uint64_t word = 0;
    const void *stored;
    DM_TRY(value_make(client, addr, key, value, &word, &stored));
    uint64_t before = value_word(client, (unsigned)at);
    leaf_set(layout, client->tree.image, (unsigned)at, key, stored);
    value_post(client);
    DM_TRY(entry_write(client, addr, (unsigned)at));
    value_drop(client, before);
    return 0;
}

int sherman_remove(void *handle, uint64_t key) {
    struct sherman_client *client = handle;
    const struct node_layout *layout = &client->cn->layout;
    uint32_t attempts = 0;
    dm_addr addr;
    DM_TRY(ix_tree_lock_node(&client->tree, key, 0, DM_NULL, &attempts, &addr));
    int at = leaf_find(layout, client->tree.image, key);
    if (at == ENTRY_NONE) {
        return leave(client, DM_NOT_FOUND);
    }
    uint64_t before = value_word(client, (unsigned)at);
    leaf_clear(layout, client->tree.image, (unsigned)at);
    DM_TRY(entry_write(client, addr, (unsigned)at));
    value_drop(client, before);
    return 0;
}
