/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans. A cached (or freshly read) parent gives the addresses of the leaves that will be needed; they are read with
 * one doorbell and taken in order. What makes the result right under splits is not the parent but the chain: a leaf
 * counts only if its lower fence is where the last one ended. Where the parent was out of date the scan follows the
 * sibling pointer of the last leaf and returns to the batch as soon as it fits again.
 *
 * A leaf of the batch may have been sampled before its left neighbour. That is allowed: its lower fence never changes,
 * and from the moment that it can be read as a whole it holds everything in its range, so each key is judged by one
 * state of the leaf that was responsible for it at some moment of the scan.
 */
#include "sherman.h"

struct scan {
    struct sherman_client *client;
    uint32_t attempts;
    uint64_t cursor; /* everything below is done */
    uint32_t wanted, found;
    uint32_t whole; /* of those found: the rest have their words in client->found, their values not yet */
    uint64_t *keys;
    char *values;
    dm_addr next; /* the leaf that begins at the cursor or covers it; null: ask the parents */
    bool moved;   /* what leads to the cursor's leaf is a sibling pointer that the parents may not know yet */
    bool end;     /* no leaf begins at the cursor: the index ends there */
};

static void pair_take(struct scan *scan, unsigned at) {
    struct sherman_client *client = scan->client;
    const struct node_layout *layout = &client->cn->layout;
    void *into = client->indirect ? (void *)&client->found[scan->found - scan->whole]
                                  : scan->values + (size_t)scan->found * layout->value_bytes;
    memcpy(into, leaf_value(layout, client->tree.image, at), layout->value_bytes);
    scan->keys[scan->found++] = leaf_key(layout, client->tree.image, at);
}

/* Takes the pairs of the leaf in ->image from the cursor on, and moves the cursor behind it. */
static void leaf_take(struct scan *scan) {
    struct sherman_client *client = scan->client;
    const struct node_layout *layout = &client->cn->layout;
    const struct ix_node_head *head = ix_node_head_in(client->tree.image);
    dm_charge(client->ctx, DM_WORK_NODE_PROBE, 1);
    unsigned n = leaf_sort(layout, client->tree.image, scan->cursor, client->order);
    unsigned i = 0;
    for (; i < n && scan->found < scan->wanted; i++) {
        pair_take(scan, client->order[i]);
    }
    scan->moved = false;
    if (i < n) {
        /* Should some of those found be gone, the rest of this leaf is next. */
        scan->cursor = leaf_key(layout, client->tree.image, client->order[i]);
        scan->next = DM_NULL;
        return;
    }
    scan->cursor = head->high;
    scan->next = head->sibling;
    scan->end = head->high == IX_NODE_INFINITY;
}

/* With torn=absent, the known-wrong way: half-written entries are left out. */
static void torn_drop(struct sherman_client *client, const void *wire) {
    const struct node_layout *layout = &client->cn->layout;
    for (unsigned i = 0; i < layout->leaf_cap; i++) {
        if (leaf_used(layout, client->tree.image, i) && !sherman_entry_whole(client, wire, i)) {
            leaf_clear(layout, client->tree.image, i);
        }
    }
}

/* The parent in use did not know of a leaf: it is out of date. */
static void parent_distrust(struct scan *scan) {
    struct sherman_client *client = scan->client;
    client->counts[SHERMAN_SCAN_GAP]++;
    ix_tree_distrust(&client->tree, 0);
}

/* Takes the leaf that lies in `wire` if it is whole and covers the cursor. Otherwise sets where to look next (null: ask
 * the parents) and counts a retry. 0 or a failure. */
static int leaf_use(struct scan *scan, const char *wire) {
    struct sherman_client *client = scan->client;
    const struct node_layout *layout = &client->cn->layout;
    dm_charge(client->ctx, DM_WORK_LINE_COPY, layout->node_bytes / DM_LINE);
    if (!ix_lines_whole(wire, layout->node_bytes, layout->versions)) {
        client->counts[SHERMAN_TORN_NODE]++;
        return dm_retry(client->ctx, DM_RETRY_TORN, &scan->attempts);
    }
    ix_lines_decode(wire, layout->node_bytes, client->tree.image);
    const struct ix_node_head *head = ix_node_head_in(client->tree.image);
    if (!ix_node_plausible(&layout->inner, client->tree.image, 0) || scan->cursor < head->low) {
        parent_distrust(scan);
        scan->next = DM_NULL;
        scan->moved = false;
        return dm_retry(client->ctx, DM_RETRY_STALE, &scan->attempts);
    }
    if (scan->cursor >= head->high) {
        scan->next = head->sibling;
        scan->moved = true;
        client->counts[SHERMAN_MOVED_RIGHT]++;
        if (client->tree.top > 0) {
            parent_distrust(scan);
        } else {
            /* This node knew the tree when it was one leaf: walking on from there would pass through the whole index.
             */
            int grown = ix_tree_root_refresh(&client->tree);
            DM_TRY(grown);
            scan->next = grown > 0 ? DM_NULL : scan->next;
            scan->moved = grown == 0;
        }
        return dm_retry(client->ctx, DM_RETRY_MOVED, &scan->attempts);
    }
    if (!sherman_entries_whole(client, wire)) {
        return dm_retry(client->ctx, DM_RETRY_TORN, &scan->attempts);
    }
    if (client->cn->params->torn == SHERMAN_TORN_ABSENT) {
        torn_drop(client, wire);
    }
    leaf_take(scan);
    return 0;
}

/* Reads the leaf at scan->next alone and uses it. [waits] */
static int leaf_step(struct scan *scan) {
    struct sherman_client *client = scan->client;
    uint32_t node_bytes = client->cn->layout.node_bytes;
    if (!dm_addr_valid(client->ctx, scan->next, node_bytes)) {
        scan->next = DM_NULL;
        scan->moved = false;
        return dm_retry(client->ctx, DM_RETRY_STALE, &scan->attempts);
    }
    DM_TRY(dm_read(client->ctx, scan->next, client->tree.wire, node_bytes));
    return leaf_use(scan, client->tree.wire);
}

/* Leaves that the rest of the scan should take, by the fill that load gives. */
static unsigned leaves_wanted(const struct scan *scan) {
    const struct sherman_cn *cn = scan->client->cn;
    double each = cn->layout.leaf_cap * cn->params->fill;
    double leaves = (double)(scan->wanted - scan->found) / (each < 1 ? 1 : each) + 1;
    return leaves < cn->scan_batch ? (unsigned)leaves : cn->scan_batch;
}

/* Copies from the parent in `image` the addresses of up to n leaves from the cursor's on; returns how many. */
static unsigned leaves_of(const struct scan *scan, const void *image, dm_addr *leaves, unsigned n) {
    const struct ix_node_head *head = ix_node_head_in(image);
    if (scan->cursor < head->low || scan->cursor >= head->high) {
        return 0;
    }
    unsigned first = ix_inner_find(image, scan->cursor);
    n = n < head->count - first ? n : head->count - first;
    memcpy(leaves, ix_inner_children_in(&scan->client->tree.cn->inner, image) + first, n * sizeof(*leaves));
    return n;
}

/* Finds out where the next leaves are: from the parent that the way down to the cursor passes. [waits] */
static int leaves_find(struct scan *scan, dm_addr *leaves, unsigned *count) {
    struct sherman_client *client = scan->client;
    struct sherman_cn *cn = client->cn;
    unsigned n = leaves_wanted(scan);
    DM_TRY(ix_tree_descend(&client->tree, scan->cursor, 0, &scan->attempts));
    leaves[0] = client->tree.child.addr;
    *count = 0;
    if (client->tree.top >= 1 && client->tree.path[1].stamp == 0) {
        /* The parent was the last node read. */
        *count = leaves_of(scan, client->tree.image, leaves, n);
    } else if (client->tree.top >= 1) {
        uint32_t stamp;
        ix_cache_enter(cn->tree.cache, client->tree.thread);
        const void *copy = ix_cache_find(cn->tree.cache, client->tree.path[1].addr, &stamp);
        *count = copy ? leaves_of(scan, copy, leaves, n) : 0;
        ix_cache_leave(cn->tree.cache, client->tree.thread);
    }
    *count = *count == 0 ? 1 : *count;
    return 0;
}

static bool scan_done(const struct scan *scan) {
    return scan->end || scan->found == scan->wanted;
}

/* The same, or there is no room for the words of another leaf. */
static bool scan_rests(const struct scan *scan) {
    const struct sherman_cn *cn = scan->client->cn;
    bool is_full = scan->client->indirect && scan->found - scan->whole + cn->layout.leaf_cap > cn->scan_words;
    return is_full || scan_done(scan);
}

/* True while the chain has a leaf to be read before `leaf`. */
static bool before_leaf(const struct scan *scan, dm_addr leaf) {
    return !scan_rests(scan) && !dm_addr_is_null(scan->next) && !dm_addr_equal(scan->next, leaf);
}

static bool at_leaf(const struct scan *scan, dm_addr leaf) {
    return !scan_rests(scan) && dm_addr_equal(scan->next, leaf);
}

/* Reads leaves with one doorbell and takes them in order, with single reads where the chain has others. [waits] */
static int leaves_take(struct scan *scan, const dm_addr *leaves, unsigned count) {
    struct sherman_client *client = scan->client;
    uint32_t node_bytes = client->cn->layout.node_bytes;
    for (unsigned i = 0; i < count; i++) {
        if (!dm_addr_valid(client->ctx, leaves[i], node_bytes)) {
            count = i;
            break;
        }
        dm_post_read(client->ctx, leaves[i], client->batch + (size_t)i * node_bytes, node_bytes);
    }
    if (count == 0) {
        parent_distrust(scan);
        return dm_retry(client->ctx, DM_RETRY_STALE, &scan->attempts);
    }
    DM_TRY(dm_commit(client->ctx));
    scan->next = leaves[0];
    for (unsigned i = 0; i < count; i++) {
        while (before_leaf(scan, leaves[i])) {
            parent_distrust(scan);
            DM_TRY(dm_retry(client->ctx, DM_RETRY_MOVED, &scan->attempts));
            DM_TRY(leaf_step(scan));
        }
        if (at_leaf(scan, leaves[i])) {
            DM_TRY(leaf_use(scan, client->batch + (size_t)i * node_bytes));
        }
        while (at_leaf(scan, leaves[i])) {
            DM_TRY(leaf_step(scan));
        }
    }
    while (scan->moved && !scan_rests(scan)) {
        DM_TRY(leaf_step(scan));
    }
    return 0;
}

static int get_again(void *arg, uint64_t key, void *value) {
    struct sherman_client *client = arg;
    client->counts[SHERMAN_BLOCK_GONE]++;
    return sherman_get(client, key, value);
}

/* Reads the values of what was found since the last time; keys that are gone meanwhile make room for others. [waits] */
static int values_read(struct scan *scan, uint32_t value_bytes) {
    struct sherman_client *client = scan->client;
    struct ix_indirect_pairs pairs = {
        .count = scan->found - scan->whole,
        .keys = scan->keys + scan->whole,
        .words = client->found,
        .values = scan->values + (size_t)scan->whole * value_bytes,
    };
    DM_TRY(ix_indirect_collect(client->indirect, &pairs, get_again, client));
    scan->whole += pairs.count;
    scan->found = scan->whole;
    return 0;
}

int sherman_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct scan scan = {.client = handle, .cursor = first, .wanted = count, .keys = keys, .values = values};
    *found = 0;
    while (!scan_done(&scan)) {
        dm_addr leaves[SHERMAN_SCAN_BATCH_MAX];
        unsigned n;
        DM_TRY(leaves_find(&scan, leaves, &n));
        DM_TRY(leaves_take(&scan, leaves, n));
        if (scan.client->indirect && scan_rests(&scan)) {
            DM_TRY(values_read(&scan, scan.client->cn->shape->value_bytes));
        }
    }
    *found = scan.found;
    return 0;
}
