/* SPDX-License-Identifier: Apache-2.0
 *
 * Structure changes of leaves, with the lock alone. Those above the leaves are shared/tree_split.c.
 *
 * Splitting: the right leaf is written, which no client can reach; then the left one, all but its first 16 bytes, and
 * the release behind that; then the parent has the new child. See shared/btree_write.c for what can be seen meanwhile.
 *
 * Merging (published, nodes are never merged): a leaf that deletes have emptied, or nearly, takes the entries of its
 * right neighbour Y, if they fit and one parent has both. The locks of the leaf, of Y and of the parent are tried; if
 * one is in use the leaf stays as it is. What can be seen at each step, each of which has landed before the next is
 * sent:
 *   1. the parent no longer has Y: that is the tree after a split that the parent does not have yet. It is free again;
 *   2. the leaf has Y's entries, fence and sibling. Y is as it was. A client with an old parent reads Y, others read
 * the leaf: both have the same words, because both leaves are locked;
 *   3. Y is no node any more, and free. A client that an old parent leads there begins again at the root;
 *   4. the leaf is free.
 * Y's memory is not used again: an old parent would take it for what it was.
 */
#include "indexes/shared/sort.h"
#include "marlin.h"

static const struct ix_leaf_layout *layout_of(const struct marlin_client *client) {
    return &client->cn->btree.leaf;
}

static uint32_t node_lines(const struct marlin_client *client) {
    return client->cn->btree.tree.inner.node_bytes / DM_LINE;
}

/* Lays a leaf's image out for a write of all but what only atomics change, and adds the write to the batch. */
static void leaf_post(struct marlin_client *client, dm_addr leaf, const void *image, uint8_t version, char *wire) {
    uint32_t node_bytes = client->cn->btree.tree.inner.node_bytes;
    marlin_leaf_format.encode(image, node_bytes, version, wire);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, node_lines(client));
    dm_post_write(client->ctx, dm_addr_add(leaf, MARLIN_LEAF_AT), wire + MARLIN_LEAF_AT, node_bytes - MARLIN_LEAF_AT);
}

static unsigned used_count(const struct marlin_client *client, const void *image) {
    unsigned used = 0;
    for (unsigned i = 0; i < layout_of(client)->cap; i++) {
        used += ix_leaf_is_used(layout_of(client), image, i);
    }
    return used;
}

/* ---- split ------------------------------------------------------------------------------------------------------- */

/* Writes the halves, and releases the left one. */
static int halves_write(struct marlin_client *client, dm_addr leaf, dm_addr right) {
    struct ix_tree *tree = &client->btree.tree;
    uint32_t node_bytes = tree->cn->inner.node_bytes;
    ix_node_encode_new(&marlin_leaf_format, tree->image_right, node_bytes, tree->wire_right);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, node_lines(client));
    dm_post_write(client->ctx, right, tree->wire_right, node_bytes);
    /* On one memory node posted order is enough; between two the right half must have landed first. */
    if (dm_addr_node(leaf) != dm_addr_node(right)) {
        int rc = dm_commit(client->ctx);
        if (rc < 0) {
            return marlin_leave_waited(client, &client->leaf, rc);
        }
    }
    leaf_post(client, leaf, tree->image, marlin_leaf_next_version(tree->wire), tree->wire);
    return marlin_leave_waited(client, &client->leaf, 0);
}

static int split_alone(struct marlin_client *client, dm_addr leaf, uint64_t key, const void *stored) {
    const struct ix_leaf_layout *layout = layout_of(client);
    struct ix_tree *tree = &client->btree.tree;
    dm_addr right;
    int rc = ix_tree_reserve(tree);
    rc = rc < 0 ? rc : dm_alloc(client->ctx, DM_ANY_NODE, tree->cn->inner.node_bytes, DM_LINE, DM_MEM_LEAF, &right);
    if (rc < 0) {
        return marlin_leave_waited(client, &client->leaf, rc);
    }
    ix_sort_charge(client->ctx, layout->cap, layout->cap);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, 4 * layout->image_bytes / DM_LINE);
    uint64_t middle = ix_leaf_split(layout, tree->image, tree->image_right, right, tree->order, client->btree.scratch);
    ix_leaf_insert(layout, key < middle ? tree->image : tree->image_right, key, stored);
    rc = ix_tree_split_end(tree, halves_write(client, leaf, right), middle, right);
    /* The key is in: a parent that could not be changed is no reason to report a failure. */
    return rc == DM_ERR_NO_MEMORY ? 0 : rc;
}

int marlin_split(struct marlin_client *client, dm_addr leaf, uint64_t key, const void *stored, uint32_t *attempts) {
    struct ix_tree *tree = &client->btree.tree;
    int rc = marlin_alone(client, leaf, attempts);
    if (rc != 0) {
        return rc;
    }
    if (!marlin_leaf_take(client)) {
        return marlin_leave(client, &client->leaf, IX_TREE_AGAIN);
    }
    if (ix_leaf_find(layout_of(client), tree->image, key) != IX_LEAF_NONE) {
        return marlin_leave(client, &client->leaf, DM_EXISTS);
    }
    if (used_count(client, tree->image) < layout_of(client)->cap) {
        client->counts[MARLIN_SPLIT_GIVEN_UP]++;
        return marlin_leave(client, &client->leaf, IX_TREE_AGAIN);
    }
    return split_alone(client, leaf, key, stored);
}

/* ---- merge ------------------------------------------------------------------------------------------------------- */

/* A merge of `leaf` and its right neighbour. */
struct merge {
    struct marlin_client *client;
    uint64_t key; /* of the leaf */
    dm_addr leaf, right;
    uint8_t leaf_version, right_version; /* for the next writes */
};

/* Ends a merge with this outcome: releases what it holds. */
static int merge_leave(struct merge *merge, int rc) {
    struct marlin_client *client = merge->client;
    marlin_release_post(client, &client->inner);
    marlin_release_post(client, &client->right);
    rc = marlin_leave_waited(client, &client->leaf, rc);
    return rc == IX_TREE_AGAIN ? 0 : rc;
}

/* Takes the leaf into the tree's image, and its neighbour, with the leaf's entries, into the other. 0; IX_TREE_AGAIN:
 * they cannot be merged; a failure. */
static int leaves_join(struct merge *merge) {
    struct marlin_client *client = merge->client;
    const struct ix_leaf_layout *layout = layout_of(client);
    struct ix_tree *tree = &client->btree.tree;
    const struct ix_inner_layout *inner = &tree->cn->inner;
    struct ix_node_head *there = ix_node_head_of(tree->image_right);
    const struct ix_node_head *here = ix_node_head_in(tree->image);
    int rc = marlin_alone_try(client, merge->leaf, &client->leaf, tree->wire);
    if (rc != 0) {
        return rc;
    }
    bool is_leaf = marlin_leaf_take(client);
    if (!is_leaf || merge->key < here->low || merge->key >= here->high ||
        !dm_addr_valid(client->ctx, here->sibling, inner->node_bytes) ||
        !marlin_is_low(client, used_count(client, tree->image))) {
        return IX_TREE_AGAIN;
    }
    merge->right = here->sibling;
    rc = marlin_alone_try(client, merge->right, &client->right, tree->wire_right);
    if (rc != 0) {
        return rc;
    }
    dm_charge(client->ctx, DM_WORK_LINE_COPY, 2 * node_lines(client));
    marlin_leaf_format.decode(tree->wire_right, inner->node_bytes, tree->image_right);
    if (!ix_node_plausible(inner, tree->image_right, 0) || there->low != here->high ||
        used_count(client, tree->image) + used_count(client, tree->image_right) >= layout->cap) {
        return IX_TREE_AGAIN;
    }
    for (unsigned i = 0; i < layout->cap; i++) {
        if (ix_leaf_is_used(layout, tree->image, i)) {
            ix_leaf_insert(layout, tree->image_right, ix_leaf_key(layout, tree->image, i),
                           ix_leaf_value(layout, tree->image, i));
        }
    }
    there->low = here->low;
    merge->leaf_version = marlin_leaf_next_version(tree->wire);
    merge->right_version = marlin_leaf_next_version(tree->wire_right);
    return 0;
}

/* Step 1: removes the neighbour from the parent if it follows the leaf there. 0; IX_TREE_AGAIN; a failure. */
static int parent_cut(struct merge *merge) {
    struct marlin_client *client = merge->client;
    struct ix_tree *tree = &client->btree.tree;
    dm_addr parent = tree->path[1].addr;
    uint32_t attempts = 0;
    int rc = marlin_inner_try(client, parent);
    if (rc != 0) {
        return rc;
    }
    rc = ix_tree_fetch(tree, parent, 1, &attempts);
    const struct ix_node_head *head = ix_node_head_in(tree->image);
    if (rc != 0 || merge->key < head->low || merge->key >= head->high) {
        return rc < 0 ? rc : IX_TREE_AGAIN;
    }
    unsigned at = ix_inner_find(tree->image, merge->key);
    const dm_addr *children = ix_inner_children_in(&tree->cn->inner, tree->image);
    dm_charge(client->ctx, DM_WORK_NODE_PROBE, 1);
    if (at + 1u >= head->count || !dm_addr_equal(children[at], merge->leaf) ||
        !dm_addr_equal(children[at + 1], merge->right)) {
        return IX_TREE_AGAIN;
    }
    ix_inner_remove(&tree->cn->inner, tree->image, at + 1);
    return ix_tree_rewrite(tree, parent);
}

/* Steps 2 to 4, with the merged leaf in the right image. */
static int leaves_write(struct merge *merge) {
    struct marlin_client *client = merge->client;
    struct ix_tree *tree = &client->btree.tree;
    leaf_post(client, merge->leaf, tree->image_right, merge->leaf_version, tree->wire_right);
    DM_TRY(dm_commit(client->ctx));
    memset(tree->image, 0, tree->cn->inner.image_bytes);
    leaf_post(client, merge->right, tree->image, merge->right_version, tree->wire);
    DM_TRY(marlin_leave_waited(client, &client->right, 0));
    return marlin_leave_waited(client, &client->leaf, 0);
}

int marlin_merge(struct marlin_client *client, uint64_t key) {
    struct ix_tree *tree = &client->btree.tree;
    struct merge merge = {.client = client, .key = key};
    uint32_t attempts = 0;
    DM_TRY(ix_tree_descend(tree, key, 0, &attempts));
    merge.leaf = tree->child.addr;
    if (tree->top == 0 || tree->child.last || !dm_addr_valid(client->ctx, merge.leaf, tree->cn->inner.node_bytes)) {
        return 0;
    }
    int rc = leaves_join(&merge);
    rc = rc == 0 ? parent_cut(&merge) : rc;
    if (rc != 0) {
        return merge_leave(&merge, rc);
    }
    rc = leaves_write(&merge);
    if (rc < 0) {
        /* The parent has one leaf for both, and it is unknown which of them has been written: they stay locked. */
        atomic_store_explicit(&client->cn->btree.tree.interrupted, true, memory_order_relaxed);
        client->leaf.undo = client->right.undo = 0;
        return merge_leave(&merge, rc);
    }
    client->counts[MARLIN_LEAF_MERGE]++;
    return 0;
}
