/* SPDX-License-Identifier: Apache-2.0
 *
 * Insert, update and delete: reach the leaf, hold its lock, change an entry, send the entry or the leaf, and the
 * unlock.
 *
 * With indirect values the block is taken on the leaf's memory node and written before the entry in one batch; the
 * block that an update or delete removes from the leaf is kept once its entry has been written.
 *
 * Splitting a leaf. What a reader, or a client that stops, can see at each step:
 *   1. the right leaf is written: no client can reach it, the tree is as before;
 *   2. the left leaf is written (upper fence and sibling in one write of the whole leaf): keys that moved are found
 *      through the sibling; the unlock follows on the same connection;
 *   3. the parent has the new child: found directly. Until then everything is right, only one read longer.
 * All nodes that the path to the root can need are allocated before step 1, so running out of memory leaves the tree
 * untouched.
 */
#include "indexes/shared/btree.h"
#include "indexes/shared/sort.h"

/* Storing an entry with its versions is as much work as copying so many lines. */
enum { ENTRY_LINES = 4 };

/* Releases the lock after a failure, which is the one to report. */
static int give_up(struct ix_btree *btree, int failure) {
    btree->cn->tree.policy->unlock(&btree->tree);
    return failure;
}

/* Sends entry `at` as the image has it, or the leaf, and the unlock. */
static int entry_write(struct ix_btree *btree, dm_addr leaf, unsigned at) {
    const struct ix_leaf_layout *layout = &btree->cn->leaf;
    struct ix_tree *tree = &btree->tree;
    if (!layout->versions) {
        return ix_tree_write_back(tree, leaf);
    }
    uint32_t offset = ix_leaf_offset(layout, at);
    dm_charge(btree->ctx, DM_WORK_LINE_COPY, ENTRY_LINES);
    struct ix_span span = ix_lines_put_object(tree->wire, offset, tree->image + offset, layout->entry_bytes);
    dm_post_write(btree->ctx, dm_addr_add(leaf, span.offset), tree->wire + span.offset, span.bytes);
    return tree->cn->policy->commit_unlock(tree);
}

/* What the entry in the locked leaf will hold for `value`. A failure without the lock. [waits] */
static int value_make(struct ix_btree *btree, dm_addr leaf, uint64_t key, const void *value, const void **stored) {
    int rc = ix_indirect_make(btree->indirect, dm_addr_node(leaf), key, value, stored);
    return rc < 0 ? give_up(btree, rc) : 0;
}

/* The word of entry `at` of the current leaf; 0 with inline values. */
static uint64_t value_word(const struct ix_btree *btree, unsigned at) {
    return ix_indirect_word(btree->indirect, ix_leaf_value(&btree->cn->leaf, btree->tree.image, at));
}

/* Reaches the leaf that covers key, and holds its lock if the key is there, or is not, as is wanted; *at is its
 * position. 0 with the lock, DM_EXISTS, DM_NOT_FOUND or a failure without. [waits] */
static int leaf_lock(struct ix_btree *btree, uint64_t key, bool present, dm_addr *leaf, int *at) {
    struct ix_tree *tree = &btree->tree;
    uint32_t attempts = 0;
    int rc;
    *leaf = DM_NULL;
    do {
        DM_TRY(ix_tree_reach(tree, key, 0, *leaf, &attempts, leaf));
        *at = ix_leaf_find(&btree->cn->leaf, tree->image, key);
        ix_leaf_find_charge(&btree->cn->leaf, btree->ctx, *at);
        if ((*at != IX_LEAF_NONE) != present) {
            return ix_tree_leave(tree, false, present ? DM_NOT_FOUND : DM_EXISTS);
        }
        rc = ix_tree_hold(tree, *leaf, &attempts);
    } while (rc == IX_TREE_AGAIN);
    return rc;
}

/* Splits the locked full leaf around the new entry. DM_ERR_NO_MEMORY: nothing changed. Releases the lock. [waits] */
static int leaf_split(struct ix_btree *btree, dm_addr leaf, uint64_t key, const void *stored) {
    const struct ix_leaf_layout *layout = &btree->cn->leaf;
    struct ix_tree *tree = &btree->tree;
    dm_addr right;
    int rc = ix_tree_reserve(tree);
    rc = rc < 0 ? rc : dm_alloc(btree->ctx, DM_ANY_NODE, tree->cn->alloc_bytes, DM_LINE, DM_MEM_LEAF, &right);
    if (rc < 0) {
        return ix_tree_leave(tree, true, rc);
    }
    ix_sort_charge(btree->ctx, layout->cap, layout->cap);
    dm_charge(btree->ctx, DM_WORK_LINE_COPY, 4 * layout->image_bytes / DM_LINE);
    uint64_t middle = ix_leaf_split(layout, tree->image, tree->image_right, right, tree->order, btree->scratch);
    ix_leaf_insert(layout, key < middle ? tree->image : tree->image_right, key, stored);
    ix_leaf_refresh(layout, tree->image, ix_node_next_version(tree->wire));
    ix_leaf_refresh(layout, tree->image_right, 0);
    rc = ix_tree_split_end(tree, ix_tree_halves_write(tree, leaf, right), middle, right);
    /* The key is in: a parent that could not be changed is no reason to report a failure. */
    return rc == DM_ERR_NO_MEMORY ? 0 : rc;
}

/* The leaf is full. */
static int split_insert(struct ix_btree *btree, dm_addr leaf, uint64_t key, const void *stored) {
    ix_indirect_post(btree->indirect); /* alone: the half that names it may be on another memory node */
    int rc = dm_commit(btree->ctx);
    if (rc < 0) {
        return give_up(btree, rc);
    }
    rc = leaf_split(btree, leaf, key, stored);
    if (rc == DM_ERR_NO_MEMORY) {
        ix_indirect_drop(btree->indirect, ix_indirect_word(btree->indirect, stored));
    }
    return rc;
}

int ix_btree_insert(struct ix_btree *btree, uint64_t key, const void *value) {
    dm_addr leaf;
    int at;
    int rc = leaf_lock(btree, key, false, &leaf, &at);
    if (rc != 0) {
        return rc;
    }
    const void *stored;
    DM_TRY(value_make(btree, leaf, key, value, &stored));
    at = ix_leaf_insert(&btree->cn->leaf, btree->tree.image, key, stored);
    ix_leaf_find_charge(&btree->cn->leaf, btree->ctx, at);
    if (at == IX_LEAF_NONE) {
        return split_insert(btree, leaf, key, stored);
    }
    ix_indirect_post(btree->indirect);
    return entry_write(btree, leaf, (unsigned)at);
}

int ix_btree_update(struct ix_btree *btree, uint64_t key, const void *value) {
    dm_addr leaf;
    int at;
    int rc = leaf_lock(btree, key, true, &leaf, &at);
    if (rc != 0) {
        return rc;
    }
    const void *stored;
    DM_TRY(value_make(btree, leaf, key, value, &stored));
    uint64_t before = value_word(btree, (unsigned)at);
    ix_leaf_update(&btree->cn->leaf, btree->tree.image, (unsigned)at, stored);
    ix_indirect_post(btree->indirect);
    DM_TRY(entry_write(btree, leaf, (unsigned)at));
    ix_indirect_drop(btree->indirect, before);
    return 0;
}

int ix_btree_remove(struct ix_btree *btree, uint64_t key) {
    dm_addr leaf;
    int at;
    int rc = leaf_lock(btree, key, true, &leaf, &at);
    if (rc != 0) {
        return rc;
    }
    uint64_t before = value_word(btree, (unsigned)at);
    ix_leaf_remove(&btree->cn->leaf, btree->tree.image, (unsigned)at);
    DM_TRY(entry_write(btree, leaf, (unsigned)at));
    ix_indirect_drop(btree->indirect, before);
    return 0;
}
