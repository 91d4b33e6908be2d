/* SPDX-License-Identifier: Apache-2.0
 *
 * Splitting a leaf (section 4.4). What a reader, or a client that stops, can see at each step:
 *   1. the right leaf is written, its lock word with it: no client can reach it, the tree is as before;
 *   2. the left leaf is written as a whole, every copy of its metadata with the new sibling; after it, as a verb of
 *      its own, the lock word;
 *   3. the parent has the new leaf (ix_tree_link). Until then the sibling is not the one that the parent names.
 * All nodes that the path to the root can need are allocated before step 1, so running out of memory leaves the tree
 * untouched.
 */
#include "chime.h"
#include "indexes/shared/sort.h"

/* Of an entry: moving it to its half, setting its hop bitmaps, and the lock words of both halves. */
enum { SPLIT_COMPARES = 8 };

/* Writes both halves; the locks' words are those of the images. */
static int halves_write(struct chime_client *client, dm_addr left, dm_addr right) {
    const struct chime_layout *layout = &client->cn->layout;
    uint8_t version = ix_lines_node_version(client->leaf.wire);
    uint64_t left_word = chime_word_of(layout, client->leaf.image);
    uint64_t right_word = chime_word_of(layout, client->right.image);
    chime_encode(client, &client->leaf, (uint8_t)((version + 1) & 0xf));
    chime_encode(client, &client->right, 0);
    client->tree.own[4] = right_word;
    dm_post_write(client->ctx, right, client->right.wire, layout->used_bytes);
    dm_post_write(client->ctx, chime_leaf_word(client->cn, right), &client->tree.own[4], sizeof(uint64_t));
    /* On one memory node posted order is enough; between two the right half must have landed first. */
    if (dm_addr_node(left) != dm_addr_node(right)) {
        int rc = dm_commit(client->ctx);
        if (rc < 0) {
            return chime_lock_finish(client, &client->leaf_lock, client->leaf_lock.old, rc);
        }
    }
    dm_post_write(client->ctx, left, client->leaf.wire, layout->used_bytes);
    chime_lock_post(client, &client->leaf_lock, left_word);
    return chime_lock_finish(client, &client->leaf_lock, left_word, dm_commit(client->ctx));
}

int chime_split_insert(struct chime_client *client, dm_addr leaf, uint64_t key, const void *value) {
    const struct chime_layout *layout = &client->cn->layout;
    struct chime_copy *left = &client->leaf;
    dm_addr addr;
    int rc = ix_tree_reserve(&client->tree);
    rc = rc < 0 ? rc : dm_alloc(client->ctx, DM_ANY_NODE, layout->alloc_bytes, DM_LINE, DM_MEM_LEAF, &addr);
    if (rc < 0) {
        int released = chime_lock_release(client, &client->leaf_lock);
        return released < 0 ? released : rc;
    }
    struct chime_meta meta = chime_meta_get(layout, left->image, 0);
    client->counts[CHIME_SPLIT_ENTRIES] += chime_leaf_sort(layout, left->image, 0, client->tree.order);
    ix_sort_charge(client->ctx, 2 * layout->span, 2 * layout->span);
    dm_charge(client->ctx, DM_WORK_HASH, 2 * layout->span);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, SPLIT_COMPARES * layout->span);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, 2 * layout->wire_bytes / DM_LINE);
    uint64_t pivot = chime_leaf_split_key(layout, left->image, key);
    chime_leaf_split(layout, left->image, client->right.image, pivot);
    struct chime_set unused = {{0}};
    unsigned largest = 0;
    unsigned ignored;
    /* With this split key the key fits; if not, both halves are correct and the insert is repeated. */
    int at = chime_leaf_insert(layout, key < pivot ? left->image : client->right.image, key, value, layout->span,
                               &unused, &largest, &ignored);
    chime_meta_set(layout, client->right.image,
                   &(struct chime_meta){.valid = true, .sibling = meta.sibling, .low = pivot, .high = meta.high});
    chime_meta_set(layout, left->image,
                   &(struct chime_meta){.valid = true, .sibling = addr, .low = meta.low, .high = pivot});
    rc = ix_tree_split_end(&client->tree, halves_write(client, leaf, addr), pivot, addr);
    if (rc < 0 && rc != DM_ERR_NO_MEMORY) {
        return rc;
    }
    /* The key is in: a parent that could not be changed is no reason to report a failure. */
    return at != CHIME_NONE ? 0 : rc < 0 ? rc : IX_TREE_AGAIN;
}
