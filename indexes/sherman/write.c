/* SPDX-License-Identifier: Apache-2.0
 *
 * The write path without structure changes: lock the leaf, read it, change one entry, send the entry and the unlock.
 */
#include "sherman.h"

int sherman_commit_unlock(struct sherman_client *client, struct ix_lock *lock) {
    struct sherman_cn *cn = client->cn;
    if (cn->params->combine) {
        /* Node and lock are on one memory node, so the unlock takes effect behind the writes. */
        ix_lock_post_release(client->ctx, cn->locks, lock, client->zero);
        return ix_lock_finish(client->ctx, lock, dm_commit(client->ctx));
    }
    int rc = dm_commit(client->ctx);
    return rc < 0 ? ix_lock_finish(client->ctx, lock, rc) : ix_lock_release(client->ctx, cn->locks, lock, client->zero);
}

/* Locks and reads the node at *addr. 0: it covers key and the lock is held. Otherwise the lock is free again: 1 go on
 * at *addr, SHERMAN_AGAIN, or a failure. */
static int lock_and_read(struct sherman_client *client, uint64_t key, unsigned level, uint32_t *attempts, dm_addr *addr,
                         struct ix_lock *lock) {
    struct sherman_cn *cn = client->cn;
    if (!dm_addr_valid(client->ctx, *addr, cn->layout.node_bytes)) {
        return sherman_misled(client, level, false, attempts);
    }
    DM_TRY(ix_lock_acquire(client->ctx, cn->locks, *addr, client->old, attempts, lock));
    client->counts[SHERMAN_HAND_OVER] += lock->handed;
    int rc = sherman_fetch(client, *addr, level, attempts);
    const struct node_head *head = node_head_in(client->image);
    if (rc == 0 && key >= head->low && key < head->high) {
        return 0;
    }
    int released = ix_lock_release(client->ctx, cn->locks, lock, client->zero);
    DM_TRY(rc);
    DM_TRY(released);
    bool right = rc == 0 && key >= head->high;
    if (right) {
        *addr = head->sibling;
    }
    rc = sherman_misled(client, level, right, attempts);
    return rc == 0 ? 1 : rc;
}

int sherman_lock_node(struct sherman_client *client, uint64_t key, unsigned level, dm_addr from, uint32_t *attempts,
                      dm_addr *addr, struct ix_lock *lock) {
    *addr = from;
    int rc = dm_addr_is_null(from) ? SHERMAN_AGAIN : 1;
    while (rc != 0) {
        if (rc == SHERMAN_AGAIN) {
            rc = sherman_descend(client, key, level, attempts, addr);
            if (rc != 0) {
                return rc;
            }
        }
        rc = lock_and_read(client, key, level, attempts, addr, lock);
        DM_TRY(rc);
    }
    dm_charge(client->ctx, DM_WORK_NODE_PROBE, 1);
    return 0;
}

/* Sends entry `at` as the image has it, and the unlock. */
static int entry_write(struct sherman_client *client, dm_addr addr, unsigned at, struct ix_lock *lock) {
    const struct node_layout *layout = &client->cn->layout;
    uint32_t offset = leaf_entry_offset(layout, at);
    struct ix_span span = ix_lines_put_object(client->wire, offset, client->image + offset, layout->entry_bytes);
    dm_post_write(client->ctx, dm_addr_add(addr, span.offset), client->wire + span.offset, span.bytes);
    return sherman_commit_unlock(client, lock);
}

/* Gives the lock back without a change; `outcome` unless that fails. */
static int leave(struct sherman_client *client, struct ix_lock *lock, int outcome) {
    int rc = ix_lock_release(client->ctx, client->cn->locks, lock, client->zero);
    return rc < 0 ? rc : outcome;
}

int sherman_insert(void *handle, uint64_t key, const void *value) {
    struct sherman_client *client = handle;
    const struct node_layout *layout = &client->cn->layout;
    uint32_t attempts = 0;
    struct ix_lock lock;
    dm_addr addr;
    DM_TRY(sherman_lock_node(client, key, 0, DM_NULL, &attempts, &addr, &lock));
    if (leaf_find(layout, client->image, key) != ENTRY_NONE) {
        return leave(client, &lock, DM_EXISTS);
    }
    int at = leaf_find_unused(layout, client->image);
    if (at == ENTRY_NONE) {
        return sherman_split_insert(client, addr, &lock, key, value);
    }
    leaf_set(layout, client->image, (unsigned)at, key, value);
    return entry_write(client, addr, (unsigned)at, &lock);
}

int sherman_update(void *handle, uint64_t key, const void *value) {
    struct sherman_client *client = handle;
    const struct node_layout *layout = &client->cn->layout;
    uint32_t attempts = 0;
    struct ix_lock lock;
    dm_addr addr;
    DM_TRY(sherman_lock_node(client, key, 0, DM_NULL, &attempts, &addr, &lock));
    int at = leaf_find(layout, client->image, key);
    if (at == ENTRY_NONE) {
        return leave(client, &lock, DM_NOT_FOUND);
    }
    leaf_set(layout, client->image, (unsigned)at, key, value);
    return entry_write(client, addr, (unsigned)at, &lock);
}

int sherman_remove(void *handle, uint64_t key) {
    struct sherman_client *client = handle;
    const struct node_layout *layout = &client->cn->layout;
    uint32_t attempts = 0;
    struct ix_lock lock;
    dm_addr addr;
    DM_TRY(sherman_lock_node(client, key, 0, DM_NULL, &attempts, &addr, &lock));
    int at = leaf_find(layout, client->image, key);
    if (at == ENTRY_NONE) {
        return leave(client, &lock, DM_NOT_FOUND);
    }
    leaf_clear(layout, client->image, (unsigned)at);
    return entry_write(client, addr, (unsigned)at, &lock);
}
