/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans. A cached (or freshly read) parent gives the addresses of the leaves that will be needed; they are read with
 * one doorbell and taken in order. What makes the result right under splits is not the parent but the chain: a leaf
 * counts only if its lower fence is where the last one ended. Where the parent was out of date the scan follows the
 * sibling pointer of the last leaf and returns to the batch as soon as it fits again.
 *
 * A leaf of the batch may have been sampled before its left neighbour. That is allowed: its lower fence never changes,
 * and from the moment that it can be read at all it holds everything in its range, so each key is judged by one
 * state of the leaf that was responsible for it at some moment of the scan.
 */
#include "indexes/shared/btree.h"
#include "indexes/shared/sort.h"

struct scan {
    struct ix_btree *btree;
    uint32_t attempts;
    uint64_t cursor; /* everything below is done */
    struct ix_found found;
    dm_addr next; /* the leaf that begins at the cursor or covers it; null: ask the parents */
    bool moved;   /* the cursor's leaf was found by a sibling pointer that the parents may not have yet */
    bool end;     /* no leaf begins at the cursor: the index ends there */
};

/* True if pair i in order has the key of the one before it. Where entries change without a lock of the leaf, a key that
 * was removed and inserted again while the leaf was read can be seen in two of its entries. */
static bool is_repeated(const struct ix_btree *btree, unsigned i) {
    const struct ix_leaf_layout *layout = &btree->cn->leaf;
    const uint16_t *order = btree->tree.order;
    return !layout->sorted && i > 0 &&
           ix_leaf_key(layout, btree->tree.image, order[i]) == ix_leaf_key(layout, btree->tree.image, order[i - 1]);
}

/* Takes the pairs of the leaf in ->image from the cursor on, and moves the cursor behind it. */
static void leaf_take(struct scan *scan) {
    struct ix_btree *btree = scan->btree;
    const struct ix_leaf_layout *layout = &btree->cn->leaf;
    const struct ix_node_head *head = ix_node_head_in(btree->tree.image);
    unsigned n = ix_leaf_sort(layout, btree->tree.image, scan->cursor, btree->tree.order);
    if (layout->sorted) {
        dm_charge(btree->ctx, DM_WORK_KEY_COMPARE, IX_PAIR_COMPARES * n);
    } else {
        ix_sort_charge(btree->ctx, layout->cap, n);
    }
    unsigned i = 0;
    for (; i < n && (!ix_found_all(&scan->found) || is_repeated(btree, i)); i++) {
        if (!is_repeated(btree, i)) {
            ix_found_add(&scan->found, ix_leaf_key(layout, btree->tree.image, btree->tree.order[i]),
                         ix_leaf_value(layout, btree->tree.image, btree->tree.order[i]));
        }
    }
    ix_found_leaf_end(&scan->found);
    scan->moved = false;
    if (i < n) {
        /* Should some of those found be gone, the rest of this leaf is next. */
        scan->cursor = ix_leaf_key(layout, btree->tree.image, btree->tree.order[i]);
        scan->next = DM_NULL;
        return;
    }
    scan->cursor = head->high;
    scan->next = head->sibling;
    scan->end = head->high == IX_NODE_INFINITY;
}

/* torn_is_absent, which is known to be wrong: half-written entries are left out. */
static void torn_drop(struct ix_btree *btree, const void *wire) {
    const struct ix_leaf_layout *layout = &btree->cn->leaf;
    for (unsigned i = 0; i < layout->cap; i++) {
        if (ix_leaf_is_used(layout, btree->tree.image, i) && !ix_btree_entry_consistent(btree, wire, i)) {
            ix_leaf_remove(layout, btree->tree.image, i);
        }
    }
}

/* The parent in use does not have a leaf: it is out of date. */
static void parent_distrust(struct scan *scan) {
    struct ix_btree *btree = scan->btree;
    btree->tree.counts[IX_TREE_SCAN_GAP]++;
    ix_tree_distrust(&btree->tree, 0);
}

/* Takes the leaf in `wire` if it is consistent and covers the cursor. Otherwise sets where to look next (null: ask
 * the parents) and counts a retry. 0 or a failure. */
static int leaf_use(struct scan *scan, const char *wire) {
    struct ix_btree *btree = scan->btree;
    const struct ix_inner_layout *inner = &btree->cn->tree.inner;
    dm_charge(btree->ctx, DM_WORK_LINE_COPY, inner->node_bytes / DM_LINE);
    int again = ix_tree_judge(&btree->tree, wire, 0, &scan->attempts);
    if (again != 0) {
        return again < 0 ? again : 0;
    }
    ix_tree_format_of(&btree->cn->tree, 0)->decode(wire, inner->node_bytes, btree->tree.image);
    const struct ix_node_head *head = ix_node_head_in(btree->tree.image);
    if (!ix_node_plausible(inner, btree->tree.image, 0) || scan->cursor < head->low) {
        parent_distrust(scan);
        scan->next = DM_NULL;
        scan->moved = false;
        return dm_retry(btree->ctx, DM_RETRY_STALE, &scan->attempts);
    }
    if (scan->cursor >= head->high) {
        scan->next = head->sibling;
        scan->moved = true;
        btree->tree.counts[IX_TREE_MOVED_RIGHT]++;
        if (btree->tree.top > 0) {
            parent_distrust(scan);
        } else {
            /* This compute node's root is from when the tree was one leaf: the chain from there is the whole index. */
            int grown = ix_tree_root_refresh(&btree->tree);
            DM_TRY(grown);
            scan->next = grown > 0 ? DM_NULL : scan->next;
            scan->moved = grown == 0;
        }
        return dm_retry(btree->ctx, DM_RETRY_MOVED, &scan->attempts);
    }
    if (!ix_btree_entries_consistent(btree, wire)) {
        return dm_retry(btree->ctx, DM_RETRY_TORN, &scan->attempts);
    }
    if (btree->cn->config.torn_is_absent) {
        torn_drop(btree, wire);
    }
    leaf_take(scan);
    return 0;
}

/* Reads the leaf at scan->next alone and uses it. [waits] */
static int leaf_step(struct scan *scan) {
    struct ix_btree *btree = scan->btree;
    uint32_t node_bytes = btree->cn->tree.inner.node_bytes;
    if (!dm_addr_valid(btree->ctx, scan->next, node_bytes)) {
        scan->next = DM_NULL;
        scan->moved = false;
        return dm_retry(btree->ctx, DM_RETRY_STALE, &scan->attempts);
    }
    DM_TRY(dm_read(btree->ctx, scan->next, btree->tree.wire, node_bytes));
    return leaf_use(scan, btree->tree.wire);
}

/* Copies from the parent in `image` the addresses of the leaves that the rest of the scan should take, from the
 * cursor's on; returns how many. */
static unsigned leaves_of(const struct scan *scan, const void *image, dm_addr *leaves) {
    unsigned first = ix_inner_find(image, scan->cursor);
    unsigned n =
        ix_tree_leaves_for(scan->btree->tree.cn, ix_inner_keys_in(image) + first, ix_node_head_in(image)->count - first,
                           scan->cursor, scan->found.wanted - scan->found.count);
    memcpy(leaves, ix_inner_children_in(&scan->btree->tree.cn->inner, image) + first, n * sizeof(*leaves));
    return n;
}

/* Finds out where the next leaves are: from the parent that the descent to the cursor passes. [waits] */
static int leaves_find(struct scan *scan, dm_addr *leaves, unsigned *count) {
    struct ix_tree *tree = &scan->btree->tree;
    DM_TRY(ix_tree_descend(tree, scan->cursor, 0, &scan->attempts));
    const void *parent = ix_tree_parent_hold(tree, scan->cursor);
    *count = parent ? leaves_of(scan, parent, leaves) : 1;
    ix_tree_parent_release(tree);
    if (!parent) {
        leaves[0] = tree->child.addr;
    }
    return 0;
}

static bool scan_done(const struct scan *scan) {
    return scan->end || ix_found_all(&scan->found);
}

/* Done, or there is no space for the words of another leaf. */
static bool scan_pauses(const struct scan *scan) {
    return scan_done(scan) || ix_found_full(&scan->found, scan->btree->cn->leaf.cap);
}

/* True while the chain has a leaf to be read before `leaf`. */
static bool before_leaf(const struct scan *scan, dm_addr leaf) {
    return !scan_pauses(scan) && !dm_addr_is_null(scan->next) && !dm_addr_equal(scan->next, leaf);
}

static bool at_leaf(const struct scan *scan, dm_addr leaf) {
    return !scan_pauses(scan) && dm_addr_equal(scan->next, leaf);
}

/* Reads leaves with one doorbell and takes them in order, with single reads where the chain has others. [waits] */
static int leaves_take(struct scan *scan, const dm_addr *leaves, unsigned count) {
    struct ix_btree *btree = scan->btree;
    uint32_t node_bytes = btree->cn->tree.inner.node_bytes;
    for (unsigned i = 0; i < count; i++) {
        if (!dm_addr_valid(btree->ctx, leaves[i], node_bytes)) {
            count = i;
            break;
        }
        dm_post_read(btree->ctx, leaves[i], btree->tree.batch + (size_t)i * node_bytes, node_bytes);
    }
    if (count == 0) {
        parent_distrust(scan);
        return dm_retry(btree->ctx, DM_RETRY_STALE, &scan->attempts);
    }
    DM_TRY(dm_commit(btree->ctx));
    scan->next = leaves[0];
    for (unsigned i = 0; i < count; i++) {
        while (before_leaf(scan, leaves[i])) {
            parent_distrust(scan);
            DM_TRY(dm_retry(btree->ctx, DM_RETRY_MOVED, &scan->attempts));
            DM_TRY(leaf_step(scan));
        }
        if (at_leaf(scan, leaves[i])) {
            DM_TRY(leaf_use(scan, btree->tree.batch + (size_t)i * node_bytes));
        }
        while (at_leaf(scan, leaves[i])) {
            DM_TRY(leaf_step(scan));
        }
    }
    while (scan->moved && !scan_pauses(scan)) {
        DM_TRY(leaf_step(scan));
    }
    return 0;
}

static int get_again(void *btree, uint64_t key, void *value) {
    return ix_btree_get(btree, key, value);
}

int ix_btree_scan(struct ix_btree *btree, uint64_t first, uint32_t count, uint64_t *keys, void *values,
                  uint32_t *found) {
    struct scan scan = {.btree = btree, .cursor = first};
    scan.found = ix_found_begin(btree->indirect, btree->cn->shape->value_bytes, count, keys, values);
    *found = 0;
    while (!scan_done(&scan)) {
        dm_addr leaves[IX_TREE_SCAN_BATCH_MAX];
        unsigned n;
        DM_TRY(leaves_find(&scan, leaves, &n));
        DM_TRY(leaves_take(&scan, leaves, n));
        if (scan_pauses(&scan)) {
            DM_TRY(ix_found_complete(&scan.found, get_again, btree));
        }
    }
    *found = scan.found.count;
    return 0;
}
