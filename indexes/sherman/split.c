/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits, from a leaf up to a new root. One lock is held at a time: the split node is released before its parent is
 * locked, which is what the B-link order allows.
 *
 * What a reader, or a client that stops, can see at each step of a split:
 *   1. the right node is written: nobody can reach it, the tree is as before;
 *   2. the left node is written (upper fence and sibling in one whole write): keys that moved are found through the
 *      sibling; the unlock follows on the same connection;
 *   3. the parent has the new child: found directly. Until then everything is right, only one read longer.
 * All nodes that the way up can need are allocated before step 1, so running out of memory leaves the tree untouched.
 */
#include "sherman.h"

/* Makes sure of a spare inner node for every level that a split can reach and for a new root. */
static int spares_ensure(struct sherman_client *client) {
    unsigned needed = sherman_root_level(atomic_load_explicit(&client->cn->root, memory_order_relaxed)) + 1;
    needed = needed < NODE_LEVELS ? needed : NODE_LEVELS;
    while (client->spares < needed) {
        dm_addr *spare = &client->spare[client->spares];
        DM_TRY(dm_alloc(client->ctx, DM_ANY_NODE, client->cn->layout.node_bytes, DM_LINE, DM_MEM_INNER, spare));
        client->spares++;
    }
    return 0;
}

static int spare_take(struct sherman_client *client, dm_addr *addr) {
    if (client->spares == 0) {
        /* Another client made the tree higher since the split began. */
        return dm_alloc(client->ctx, DM_ANY_NODE, client->cn->layout.node_bytes, DM_LINE, DM_MEM_INNER, addr);
    }
    *addr = client->spare[--client->spares];
    return 0;
}

static void spare_return(struct sherman_client *client, dm_addr addr) {
    if (client->spares < NODE_LEVELS) {
        client->spare[client->spares++] = addr;
    } else {
        dm_free(client->ctx, addr, client->cn->layout.node_bytes, DM_MEM_INNER);
    }
}

/* Steps 1 and 2 for the halves in ->image and ->image_right; releases the lock. */
static int halves_write(struct sherman_client *client, dm_addr left, dm_addr right, struct ix_lock *lock) {
    const struct node_layout *layout = &client->cn->layout;
    uint8_t version = ix_lines_node_version(client->wire);
    node_encode(layout, client->image, (uint8_t)((version + 1) & 0xf), client->wire);
    node_encode(layout, client->image_right, 0, client->wire_right);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, 2 * layout->node_bytes / DM_LINE);
    dm_post_write(client->ctx, right, client->wire_right, layout->node_bytes);
    /* On one memory node posted order is enough; between two the right half must have landed first. */
    if (dm_addr_node(left) != dm_addr_node(right) || !client->cn->params->combine) {
        int rc = dm_commit(client->ctx);
        if (rc < 0) {
            return ix_lock_finish(client->ctx, lock, rc);
        }
    }
    dm_post_write(client->ctx, left, client->wire, layout->node_bytes);
    return sherman_commit_unlock(client, lock);
}

/* Puts a new root over the old one, which is the leftmost node of its level. 0; SHERMAN_AGAIN if the tree has grown
 * otherwise; a failure. */
static int root_grow(struct sherman_client *client, unsigned level, uint64_t key, dm_addr child, uint32_t *attempts) {
    struct sherman_cn *cn = client->cn;
    uint64_t old_word = atomic_load_explicit(&cn->root, memory_order_relaxed);
    if (sherman_root_level(old_word) >= level) {
        return SHERMAN_AGAIN;
    }
    if (level >= NODE_LEVELS) {
        return DM_ERR_NO_MEMORY;
    }
    dm_addr addr;
    DM_TRY(spare_take(client, &addr));
    node_init(&cn->layout, client->image, level, 0, NODE_INFINITY, DM_NULL);
    inner_add(&cn->layout, client->image, 0, sherman_root_addr(old_word));
    inner_add(&cn->layout, client->image, key, child);
    node_encode(&cn->layout, client->image, 0, client->wire);
    uint64_t word = sherman_root_word(addr, level);
    int rc = dm_write(client->ctx, addr, client->wire, cn->layout.node_bytes);
    rc = rc < 0 ? rc : dm_cas(client->ctx, sherman_root_place(), old_word, word, client->old);
    if (rc < 0) {
        return rc;
    }
    if (*client->old != old_word) {
        spare_return(client, addr);
        client->counts[SHERMAN_ROOT_RACE]++;
        DM_TRY(dm_retry(client->ctx, DM_RETRY_CAS, attempts));
        DM_TRY(sherman_root_refresh(client));
        return SHERMAN_AGAIN;
    }
    client->counts[SHERMAN_ROOT_SPLIT]++;
    atomic_compare_exchange_strong_explicit(&cn->root, &old_word, word, memory_order_relaxed, memory_order_relaxed);
    sherman_cache_keep(client, addr, client->image);
    return 0;
}

/* Adds the child to the locked parent at addr, which has room. */
static int parent_add(struct sherman_client *client, dm_addr addr, struct ix_lock *lock, uint64_t key, dm_addr child) {
    const struct node_layout *layout = &client->cn->layout;
    uint8_t version = ix_lines_node_version(client->wire);
    inner_add(layout, client->image, key, child);
    node_encode(layout, client->image, (uint8_t)((version + 1) & 0xf), client->wire);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, layout->node_bytes / DM_LINE);
    dm_post_write(client->ctx, addr, client->wire, layout->node_bytes);
    DM_TRY(sherman_commit_unlock(client, lock));
    sherman_cache_keep(client, addr, client->image);
    return 0;
}

/* Splits the locked full parent at addr around the new child; *key and *child become what its own parent has to add. */
static int parent_split(struct sherman_client *client, dm_addr addr, struct ix_lock *lock, uint64_t *key,
                        dm_addr *child) {
    const struct node_layout *layout = &client->cn->layout;
    dm_addr right;
    int rc = spare_take(client, &right);
    if (rc < 0) {
        int released = ix_lock_release(client->ctx, client->cn->locks, lock, client->zero);
        return released < 0 ? released : rc;
    }
    uint64_t middle = inner_split(layout, client->image, client->image_right, right);
    inner_add(layout, *key < middle ? client->image : client->image_right, *key, *child);
    DM_TRY(halves_write(client, addr, right, lock));
    client->counts[SHERMAN_INNER_SPLIT]++;
    sherman_cache_keep(client, addr, client->image);
    sherman_cache_keep(client, right, client->image_right);
    *key = middle;
    *child = right;
    return 0;
}

/* Step 3: makes child, which begins at key, known to the level above it, and so on up. */
static int link_up(struct sherman_client *client, uint64_t key, dm_addr child) {
    for (unsigned level = 1;; level++) {
        uint32_t attempts = 0;
        struct ix_lock lock;
        dm_addr addr;
        int rc;
        do {
            /* The node that the way down came through is the parent, or left of it. */
            dm_addr from = level <= client->top ? client->path[level].addr : DM_NULL;
            rc = sherman_lock_node(client, key, level, from, &attempts, &addr, &lock);
            if (rc == SHERMAN_ABOVE_ROOT) {
                rc = root_grow(client, level, key, child, &attempts);
                if (rc <= 0) {
                    return rc;
                }
            }
            DM_TRY(rc);
        } while (rc != 0);
        if (node_head_in(client->image)->count < client->cn->layout.inner_cap) {
            return parent_add(client, addr, &lock, key, child);
        }
        DM_TRY(parent_split(client, addr, &lock, &key, &child));
    }
}

int sherman_split_insert(struct sherman_client *client, dm_addr addr, struct ix_lock *lock, uint64_t key,
                         const void *value) {
    struct sherman_cn *cn = client->cn;
    const struct node_layout *layout = &cn->layout;
    dm_addr right;
    int rc = spares_ensure(client);
    rc = rc < 0 ? rc : dm_alloc(client->ctx, DM_ANY_NODE, layout->node_bytes, DM_LINE, DM_MEM_LEAF, &right);
    if (rc < 0) {
        int released = ix_lock_release(client->ctx, cn->locks, lock, client->zero);
        return released < 0 ? released : rc;
    }
    uint64_t middle = leaf_split(layout, client->image, client->image_right, right, client->order, client->scratch);
    char *half = key < middle ? client->image : client->image_right;
    leaf_set(layout, half, (unsigned)leaf_find_unused(layout, half), key, value);
    rc = halves_write(client, addr, right, lock);
    if (rc >= 0) {
        client->counts[SHERMAN_LEAF_SPLIT]++;
        rc = link_up(client, middle, right);
    }
    if (rc < 0) {
        atomic_store_explicit(&cn->interrupted, true, memory_order_relaxed);
    }
    /* The key is in: a parent that could not be told is no reason to say otherwise. */
    return rc == DM_ERR_NO_MEMORY ? 0 : rc;
}
