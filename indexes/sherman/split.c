/* SPDX-License-Identifier: Apache-2.0
 *
 * Splitting a leaf. What a reader, or a client that stops, can see at each step:
 *   1. the right leaf is written: nobody can reach it, the tree is as before;
 *   2. the left leaf is written (upper fence and sibling in one whole write): keys that moved are found through the
 *      sibling; the unlock follows on the same connection;
 *   3. the parent has the new child: found directly. Until then everything is right, only one read longer.
 * All nodes that the way up can need are allocated before step 1, so running out of memory leaves the tree untouched.
 */
#include "sherman.h"

int sherman_split_insert(struct sherman_client *client, dm_addr addr, uint64_t key, const void *value) {
    struct ix_tree *tree = &client->tree;
    const struct node_layout *layout = &client->cn->layout;
    dm_addr right;
    int rc = ix_tree_reserve(tree);
    rc = rc < 0 ? rc : dm_alloc(client->ctx, DM_ANY_NODE, layout->node_bytes, DM_LINE, DM_MEM_LEAF, &right);
    if (rc < 0) {
        return ix_tree_leave(tree, true, rc);
    }
    uint64_t middle = leaf_split(layout, tree->image, tree->image_right, right, tree->order, client->scratch);
    char *half = key < middle ? tree->image : tree->image_right;
    leaf_set(layout, half, (unsigned)leaf_find_unused(layout, half), key, value);
    leaf_refresh(layout, tree->image, (uint8_t)((ix_lines_node_version(tree->wire) + 1) & 0xf));
    leaf_refresh(layout, tree->image_right, 0);
    rc = ix_tree_split_end(tree, ix_tree_halves_write(tree, addr, right), middle, right);
    /* The key is in: a parent that could not be told is no reason to say otherwise. */
    return rc == DM_ERR_NO_MEMORY ? 0 : rc;
}
