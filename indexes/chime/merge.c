/* SPDX-License-Identifier: Apache-2.0
 *
 * Merging leaves. The paper only says "like B+ trees on disaggregated memory"; this is a protocol for it. A leaf that
 * is empty, or nearly, adopts the content of its right neighbour Y: a key's position depends on its hash alone, so Y's
 * table is copied as it is and the few remaining keys are inserted. Only children of one parent merge, so a parent
 * keeps its first child, and what other nodes store of that stays true.
 *
 * Locks are taken from left to right and then upwards: the leaf, Y, the parent. Splits hold one lock at a time, so
 * there is no deadlock. What can be seen at each step:
 *   1. the parent no longer has Y: that is the tree after a split of the leaf that the parent does not have yet, and
 *      readers find Y's keys through the sibling. The parent is free again;
 *   2. the leaf holds Y's keys, and its sibling is Y's. Y is as it was. A client with an old parent reads Y, others
 *      read the leaf: both hold the same, because both are locked;
 *   3. Y is dead: not valid and empty, its lock free. Clients that old parents and hotspots lead there notice it;
 *   4. the leaf is free.
 * Each step has landed before the next is sent. Keys move left only here, and readers that moved right past them are at
 * Y or reach a dead leaf. Y's memory is not reused: an old parent would take it for what it was.
 */
#include "chime.h"

enum { LOW_PART = 4 /* a leaf with more than this part of its entries used is not merged */ };

/* Releases what a merge that cannot be done has locked. */
static int merge_leave(struct chime_client *client, bool right) {
    int rc = right ? chime_lock_release(client, &client->right_lock) : 0;
    int other = chime_lock_release(client, &client->leaf_lock);
    return rc < 0 ? rc : other;
}

/* Makes the merged leaf in client->right's image: Y's keys and the leaf's. False if they do not fit. */
static bool images_join(struct chime_client *client) {
    const struct chime_layout *layout = &client->cn->layout;
    struct chime_set unused = {{0}};
    unsigned largest = 0;
    unsigned ignored;
    for (unsigned i = 0; i < layout->span; i++) {
        uint64_t key = chime_key(layout, client->leaf.image, i);
        if (key != CHIME_NO_KEY &&
            chime_leaf_insert(layout, client->right.image, key, chime_value(layout, client->leaf.image, i),
                              layout->span, &unused, &largest, &ignored) == CHIME_NONE) {
            return false;
        }
    }
    struct chime_meta meta = chime_meta_get(layout, client->right.image, 0);
    meta.low = chime_meta_get(layout, client->leaf.image, 0).low;
    chime_meta_set(layout, client->right.image, &meta);
    return true;
}

static unsigned image_keys(const struct chime_layout *layout, const void *image) {
    unsigned keys = 0;
    for (unsigned i = 0; i < layout->span; i++) {
        keys += chime_key(layout, image, i) != CHIME_NO_KEY;
    }
    return keys;
}

/* Step 1: removes Y from the parent if it follows the leaf there. 0; DM_NOT_FOUND with the parent released; a failure.
 */
static int parent_cut(struct chime_client *client, uint64_t key, dm_addr leaf, dm_addr right) {
    struct ix_tree *tree = &client->tree;
    uint32_t attempts = 0;
    dm_addr parent;
    int rc = ix_tree_lock_node(tree, key, 1, tree->path[1].addr, &attempts, &parent);
    if (rc != 0) {
        return rc < 0 ? rc : DM_NOT_FOUND;
    }
    unsigned at = ix_inner_find(tree->image, key);
    const dm_addr *children = ix_inner_children_in(&tree->cn->inner, tree->image);
    if (at + 1u >= ix_node_head_in(tree->image)->count || !dm_addr_equal(children[at], leaf) ||
        !dm_addr_equal(children[at + 1], right)) {
        return ix_tree_leave(tree, true, DM_NOT_FOUND);
    }
    ix_inner_remove(&tree->cn->inner, tree->image, at + 1);
    return ix_tree_rewrite(tree, parent);
}

/* Steps 2 to 4, with the merged leaf in client->right's image. */
static int leaves_write(struct chime_client *client, dm_addr leaf, dm_addr right) {
    const struct chime_layout *layout = &client->cn->layout;
    uint8_t leaf_version = ix_lines_node_version(client->leaf.wire);
    uint8_t right_version = ix_lines_node_version(client->right.wire);
    uint64_t word = chime_word_of(layout, client->right.image);
    struct chime_meta meta = chime_meta_get(layout, client->right.image, 0);
    chime_encode(client, &client->right, (uint8_t)((leaf_version + 1) & 0xf));
    DM_TRY(dm_write(client->ctx, leaf, client->right.wire, layout->used_bytes));
    meta.valid = false;
    chime_leaf_init(layout, client->leaf.image, &meta);
    chime_encode(client, &client->leaf, (uint8_t)((right_version + 1) & 0xf));
    dm_post_write(client->ctx, right, client->leaf.wire, layout->used_bytes);
    chime_lock_post(client, &client->right_lock, 0);
    DM_TRY(chime_lock_finish(client, &client->right_lock, 0, dm_commit(client->ctx)));
    chime_lock_post(client, &client->leaf_lock, word);
    return chime_lock_finish(client, &client->leaf_lock, word, dm_commit(client->ctx));
}

/* Reads the leaf, which is locked. *low: few of its entries are used. The bitmap in the lock word has shown no more
 * than that none of its groups is full, and the groups of a large leaf are large. */
static int left_read(struct chime_client *client, dm_addr leaf, bool *low) {
    const struct chime_layout *layout = &client->cn->layout;
    DM_TRY(chime_read_part(client, &client->leaf, leaf, 0, layout->span));
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, layout->span);
    *low = image_keys(layout, client->leaf.image) <= layout->span / LOW_PART;
    return 0;
}

/* With both leaves locked, and the left one read. */
static int merge_locked(struct chime_client *client, uint64_t key, dm_addr leaf, dm_addr right) {
    const struct chime_layout *layout = &client->cn->layout;
    int rc = chime_read_part(client, &client->right, right, 0, layout->span);
    if (rc < 0) {
        merge_leave(client, true); /* the first failure is the one to report, here and below */
        return rc;
    }
    struct chime_meta here = chime_meta_get(layout, client->leaf.image, 0);
    struct chime_meta there = chime_meta_get(layout, client->right.image, 0);
    bool adjoin = here.valid && there.valid && dm_addr_equal(here.sibling, right);
    if (!adjoin || !images_join(client)) {
        return merge_leave(client, true);
    }
    rc = parent_cut(client, key, leaf, right);
    if (rc != 0) {
        int left = merge_leave(client, true);
        return rc < 0 ? rc : left;
    }
    rc = leaves_write(client, leaf, right);
    client->counts[CHIME_LEAF_MERGE] += rc == 0;
    return rc;
}

int chime_merge(struct chime_client *client, uint64_t key) {
    struct ix_tree *tree = &client->tree;
    uint32_t attempts = 0;
    DM_TRY(ix_tree_descend(tree, key, 0, &attempts));
    struct ix_tree_child child = tree->child;
    uint32_t bytes = client->cn->layout.alloc_bytes;
    if (tree->top == 0 || child.last || !dm_addr_valid(client->ctx, child.addr, bytes) ||
        !dm_addr_valid(client->ctx, child.next, bytes)) {
        return 0;
    }
    DM_TRY(chime_lock_take(client, chime_leaf_word(client->cn, child.addr), true, &attempts, &client->leaf_lock));
    if (!chime_word_low(&client->cn->layout, client->leaf_lock.old)) {
        return merge_leave(client, false);
    }
    bool low = false;
    int rc = left_read(client, child.addr, &low);
    if (rc == 0 && !low) {
        return merge_leave(client, false);
    }
    rc = rc < 0
             ? rc
             : chime_lock_take(client, chime_leaf_word(client->cn, child.next), true, &attempts, &client->right_lock);
    if (rc < 0) {
        int left = merge_leave(client, false);
        return left < 0 ? left : rc;
    }
    rc = merge_locked(client, key, child.addr, child.next);
    if (rc < 0) {
        atomic_store_explicit(&client->cn->tree.interrupted, true, memory_order_relaxed);
    }
    return rc;
}
