/* SPDX-License-Identifier: Apache-2.0
 *
 * Get: reading leaves until one answers. The descent is in tree.c.
 */
#include "indexes/shared/btree.h"

/* Checking the versions of an entry is as much work as comparing so many keys. */
enum { ENTRY_COMPARES = 2 };

bool ix_btree_entry_consistent(struct ix_btree *btree, const void *wire, unsigned i) {
    const struct ix_leaf_layout *layout = &btree->cn->leaf;
    enum ix_versions versions = (enum ix_versions)btree->cn->config.versions;
    if (!layout->versions ||
        ix_lines_object_consistent(wire, ix_leaf_offset(layout, i), layout->entry_bytes, versions)) {
        return true;
    }
    ++*btree->torn;
    return false;
}

bool ix_btree_entries_consistent(struct ix_btree *btree, const void *wire) {
    const struct ix_leaf_layout *layout = &btree->cn->leaf;
    if (!layout->versions || btree->cn->config.torn_is_absent) {
        return true;
    }
    dm_charge(btree->ctx, DM_WORK_KEY_COMPARE, ENTRY_COMPARES * layout->cap);
    for (unsigned i = 0; i < layout->cap; i++) {
        if (!ix_btree_entry_consistent(btree, wire, i)) {
            return false;
        }
    }
    return true;
}

/* Looks for key in the leaf just read: 0, DM_NOT_FOUND, or IX_TREE_AGAIN when an entry that matters is half-written. A
 * key that is itself half-written cannot be recognised, so absence counts only if no entry is half-written. */
static int leaf_answer(struct ix_btree *btree, uint64_t key, void *stored) {
    const struct ix_leaf_layout *layout = &btree->cn->leaf;
    int at = ix_leaf_find(layout, btree->tree.image, key);
    ix_leaf_find_charge(layout, btree->ctx, at);
    if (at == IX_LEAF_NONE) {
        return ix_btree_entries_consistent(btree, btree->tree.wire) ? DM_NOT_FOUND : IX_TREE_AGAIN;
    }
    if (!ix_btree_entry_consistent(btree, btree->tree.wire, (unsigned)at)) {
        return btree->cn->config.torn_is_absent ? DM_NOT_FOUND : IX_TREE_AGAIN;
    }
    memcpy(stored, ix_leaf_value(layout, btree->tree.image, (unsigned)at), layout->value_bytes);
    return 0;
}

/* Reads leaves from the descent's on until one answers. */
static int leaf_get(struct ix_btree *btree, uint64_t key, uint32_t *attempts, void *stored) {
    struct ix_tree *tree = &btree->tree;
    dm_addr addr = tree->child.addr;
    for (;;) {
        int rc = ix_tree_fetch(tree, addr, 0, attempts);
        const struct ix_node_head *head = ix_node_head_in(tree->image);
        if (rc == IX_TREE_AGAIN || (rc == 0 && key < head->low)) {
            return ix_tree_misled(tree, 0, false, attempts);
        }
        DM_TRY(rc);
        if (key >= head->high) {
            addr = head->sibling;
            rc = ix_tree_misled(tree, 0, true, attempts);
            if (rc != 0) {
                return rc;
            }
            continue;
        }
        rc = leaf_answer(btree, key, stored);
        if (rc != IX_TREE_AGAIN) {
            return rc;
        }
        DM_TRY(dm_retry(btree->ctx, DM_RETRY_TORN, attempts));
    }
}

int ix_btree_get(struct ix_btree *btree, uint64_t key, void *value) {
    uint32_t attempts = 0;
    uint64_t word = 0;
    int rc;
    do {
        DM_TRY(ix_tree_descend(&btree->tree, key, 0, &attempts));
        rc = leaf_get(btree, key, &attempts, btree->indirect ? &word : value);
        rc = rc == 0 ? ix_indirect_fetch(btree->indirect, key, word, &attempts, value) : rc;
    } while (rc == IX_TREE_AGAIN || rc == IX_INDIRECT_REUSED);
    return rc;
}
