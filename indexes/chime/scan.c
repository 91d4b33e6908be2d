/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans. Keys are in a leaf by their hash, so a range needs all of it. The parent on the descent's path gives the
 * addresses of the leaves that will be needed; they are read with one doorbell, sorted, and taken in order.
 *
 * What makes the result right for any keys is the chain, not the parent: the first leaf begins at or before the cursor
 * (lower bounds never change), and a leaf is taken only if it is the sibling of the one taken before. So everything
 * between has been seen, each key in one state of the leaf that covered it at some moment of the scan. A dead leaf, or
 * the end of what the parent has, does not end the scan: all keys up to the last one taken are done, and the descent is
 * repeated for the leaf that covers the next number.
 */
#include "chime.h"
#include "indexes/shared/sort.h"

/* Of a key: hashed leaves are in no order, which sorting takes longer for. */
enum { TAKE_COMPARES = 6 };

struct scan {
    struct chime_client *client;
    uint32_t attempts;
    uint64_t cursor; /* everything below is done */
    struct ix_found found;
    dm_addr next; /* the leaf after the last one taken, or the first; null: descend again */
    bool end;     /* no leaf follows: the end of the index */
    bool sparse;  /* a window of numbers had fewer keys than were wanted */
    /* The leaf after those that the parent named, and where it begins; null if there is none. */
    dm_addr bound;
    uint64_t bound_key;
};

/* Takes entry `at` of the copy of leaf scan->next and moves the cursor past it. Where entries of hot keys were read, a
 * key that has been taken already was hopping: it is in another entry, too. Reads that compare hop bitmaps never see a
 * key twice, and a mistake of theirs is not hidden here. */
static void pair_take(struct scan *scan, const struct chime_copy *copy, unsigned at) {
    struct chime_client *client = scan->client;
    const struct chime_layout *layout = &client->cn->layout;
    uint64_t key = chime_key(layout, copy->image, at);
    bool hotspots = client->cn->params->scan == CHIME_SCAN_HOTSPOTS;
    if (hotspots && key < scan->cursor) {
        return;
    }
    ix_found_add(&scan->found, key, chime_value(layout, copy->image, at));
    scan->cursor = key + 1;
    if (hotspots) {
        chime_remember(client, scan->next, key, at);
    }
}

/* Takes the pairs of the copy from the cursor on. */
static void leaf_take(struct scan *scan, struct chime_copy *copy) {
    struct chime_client *client = scan->client;
    const struct chime_layout *layout = &client->cn->layout;
    unsigned n = chime_leaf_sort(layout, copy->image, scan->cursor, client->tree.order);
    ix_sort_charge(client->ctx, layout->span, n);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, TAKE_COMPARES * n);
    unsigned i = 0;
    for (; i < n && !ix_found_all(&scan->found); i++) {
        pair_take(scan, copy, client->tree.order[i]);
    }
    ix_found_leaf_end(&scan->found);
    if (i < n) {
        scan->next = DM_NULL; /* if some of those found have been reused, the rest of this leaf is next */
        return;
    }
    scan->next = chime_copy_meta(client, copy).sibling;
    scan->end = dm_addr_is_null(scan->next);
}

/* Takes the leaf in `copy`, all of which was read, if it is consistent and valid. 1: read it again; 0 otherwise, or a
 * failure. */
static int leaf_use(struct scan *scan, struct chime_copy *copy) {
    struct chime_client *client = scan->client;
    const struct chime_layout *layout = &client->cn->layout;
    copy->start = 0;
    copy->count = layout->span;
    if (!chime_copy_consistent(client, copy) || !chime_copy_hops_agree(client, copy)) {
        DM_TRY(dm_retry(client->ctx, DM_RETRY_TORN, &scan->attempts));
        return 1;
    }
    if (!chime_copy_meta(client, copy).valid) {
        client->counts[CHIME_DEAD_LEAF]++;
        scan->next = DM_NULL;
        int rc = ix_tree_misled(&client->tree, 0, false, &scan->attempts);
        return rc < 0 ? rc : 0;
    }
    leaf_take(scan, copy);
    return 0;
}

/* Reads the leaf at scan->next alone and uses it. [waits] */
static int leaf_step(struct scan *scan) {
    struct chime_client *client = scan->client;
    const struct chime_layout *layout = &client->cn->layout;
    int rc;
    do {
        if (!dm_addr_valid(client->ctx, scan->next, layout->alloc_bytes)) {
            scan->next = DM_NULL;
            rc = ix_tree_misled(&client->tree, 0, false, &scan->attempts);
            return rc < 0 ? rc : 0;
        }
        DM_TRY(chime_read_part(client, &client->leaf, scan->next, 0, layout->span));
        rc = leaf_use(scan, &client->leaf);
    } while (rc == 1);
    return rc;
}

static bool scan_done(const struct scan *scan) {
    return scan->end || ix_found_all(&scan->found) || scan->cursor == UINT64_MAX;
}

/* Done, or there is no space for the words of another leaf. */
static bool scan_pauses(const struct scan *scan) {
    return scan_done(scan) || ix_found_full(&scan->found, scan->client->cn->layout.span);
}

/* Where keys are dense, all that are wanted are below this number. */
static uint64_t window_of(const struct scan *scan) {
    uint64_t left = scan->found.wanted - scan->found.count;
    return scan->sparse || scan->cursor > UINT64_MAX - left ? UINT64_MAX : scan->cursor + left;
}

/* Takes from the parent in `image` what to read of the leaves that the rest of the scan should take, from the cursor's
 * on, and sets the bound; returns how many. */
static unsigned leaves_of(struct scan *scan, const void *image, struct chime_part *leaves) {
    const struct ix_inner_layout *inner = &scan->client->tree.cn->inner;
    const struct ix_node_head *head = ix_node_head_in(image);
    unsigned first = ix_inner_find(image, scan->cursor);
    const uint64_t *keys = ix_inner_keys_in(image);
    unsigned n = ix_tree_leaves_for(scan->client->tree.cn, keys + first, head->count - first, scan->cursor,
                                    scan->found.wanted - scan->found.count);
    unsigned i = 0;
    do {
        struct chime_part *leaf = &leaves[i];
        leaf->leaf = ix_inner_children_in(inner, image)[first + i];
        leaf->next = scan->bound = ix_inner_next(inner, image, first + i);
        leaf->first = i == 0 || keys[first + i] < scan->cursor ? scan->cursor : keys[first + i];
        scan->bound_key = first + i + 1 < head->count ? keys[first + i + 1] : head->high;
        chime_part_plan(scan->client, scan->bound_key, window_of(scan), leaf);
        i++;
    } while (i < n && leaves[i - 1].end == scan->bound_key);
    return i;
}

/* Finds out where the next leaves are: from the parent that the descent to the cursor passes. [waits] */
static int leaves_find(struct scan *scan, struct chime_part *leaves, unsigned *count) {
    struct ix_tree *tree = &scan->client->tree;
    DM_TRY(ix_tree_descend(tree, scan->cursor, 0, &scan->attempts));
    const void *parent = ix_tree_parent_hold(tree, scan->cursor);
    *count = parent ? leaves_of(scan, parent, leaves) : 0;
    ix_tree_parent_release(tree);
    if (*count == 0) {
        *count = 1;
        scan->bound = tree->child.next;
        scan->bound_key = tree->child.high;
        leaves[0] = (struct chime_part){.leaf = tree->child.addr, .next = scan->bound, .first = scan->cursor};
        chime_part_plan(scan->client, scan->bound_key, window_of(scan), &leaves[0]);
    }
    return 0;
}

/* True while the chain has a leaf to be read before `leaf`. */
static bool before_leaf(const struct scan *scan, dm_addr leaf) {
    return !scan_pauses(scan) && !dm_addr_is_null(scan->next) && !dm_addr_equal(scan->next, leaf);
}

/* The parent in use does not have a leaf: it is out of date. If the root was a leaf when it was read, the chain from
 * there is the whole index. */
static int parent_distrust(struct scan *scan) {
    struct ix_tree *tree = &scan->client->tree;
    scan->client->counts[CHIME_SCAN_GAP]++;
    if (tree->top == 0) {
        int grown = ix_tree_root_refresh(tree);
        DM_TRY(grown);
        scan->next = grown > 0 ? DM_NULL : scan->next;
    } else {
        ix_tree_distrust(tree, 0);
    }
    return dm_retry(scan->client->ctx, DM_RETRY_MOVED, &scan->attempts);
}

/* Copies leaf i of the batch to the current leaf. */
static void batch_take(struct chime_client *client, unsigned i) {
    const struct chime_layout *layout = &client->cn->layout;
    memcpy(client->leaf.wire, client->tree.batch + (size_t)i * layout->wire_bytes, layout->wire_bytes);
    ix_lines_decode(client->leaf.wire, layout->wire_bytes, client->leaf.image);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, layout->wire_bytes / DM_LINE);
}

/* Everything below the bound is done. */
static void bound_reach(struct scan *scan) {
    scan->end |= dm_addr_is_null(scan->bound);
    scan->cursor = scan->bound_key > scan->cursor ? scan->bound_key : scan->cursor;
}

/* Takes what the chain has before `leaf`, with single reads; *there: the chain has reached it. */
static int chain_follow(struct scan *scan, dm_addr leaf, bool *there) {
    while (before_leaf(scan, leaf)) {
        DM_TRY(parent_distrust(scan));
        if (!dm_addr_is_null(scan->next)) {
            DM_TRY(leaf_step(scan));
        }
    }
    *there = !scan_pauses(scan) && !dm_addr_is_null(scan->next);
    return 0;
}

/* Takes what was read of leaf i of the batch. 1: read it again, all of it; 0 otherwise. */
static int part_use(struct scan *scan, const struct chime_part *part, unsigned i) {
    struct chime_client *client = scan->client;
    const struct chime_layout *layout = &client->cn->layout;
    memcpy(client->leaf.wire, client->tree.batch + (size_t)i * layout->wire_bytes, layout->wire_bytes);
    /* After a leaf that was read again as a whole, this one may begin below the cursor. */
    if (scan->cursor > part->first || !chime_part_use(client, &client->leaf, part)) {
        return 1;
    }
    client->counts[CHIME_SCAN_PART]++;
    unsigned n =
        chime_leaf_sort_some(layout, client->leaf.image, &part->entries, part->first, part->end, client->tree.order);
    ix_sort_charge(client->ctx, n, n);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, TAKE_COMPARES * n);
    bool is_last = part->end < scan->bound_key && dm_addr_equal(part->next, scan->bound);
    unsigned taken = 0;
    for (; taken < n && !ix_found_all(&scan->found); taken++) {
        pair_take(scan, &client->leaf, client->tree.order[taken]);
    }
    ix_found_leaf_end(&scan->found);
    scan->next = taken < n || is_last ? DM_NULL : part->next;
    if (taken == n) {
        scan->cursor = part->end;
        scan->sparse |= is_last;
        scan->end = !is_last && dm_addr_is_null(part->next);
    }
    return 0;
}

/* validation=none, which is known to be wrong: what the parent names is taken, whatever the chain is. */
static int leaves_believe(struct scan *scan, const struct chime_part *leaves, unsigned count) {
    for (unsigned i = 0; i < count && !scan_pauses(scan); i++) {
        batch_take(scan->client, i);
        int rc = leaf_use(scan, &scan->client->leaf);
        DM_TRY(rc);
        if (rc == 1) {
            scan->next = leaves[i].leaf;
            DM_TRY(leaf_step(scan));
        }
    }
    if (!scan_pauses(scan)) {
        bound_reach(scan);
    }
    return 0;
}

/* Reads leaves with one doorbell and takes them in order, with single reads where the chain has others. [waits] */
static int leaves_take(struct scan *scan, const struct chime_part *leaves, unsigned count) {
    struct chime_client *client = scan->client;
    const struct chime_layout *layout = &client->cn->layout;
    for (unsigned i = 0; i < count; i++) {
        if (!dm_addr_valid(client->ctx, leaves[i].leaf, layout->alloc_bytes)) {
            count = i;
            break;
        }
        struct chime_copy slot = {.wire = client->tree.batch + (size_t)i * layout->wire_bytes};
        chime_part_post(client, &slot, &leaves[i]);
    }
    if (count == 0) {
        int rc = ix_tree_misled(&client->tree, 0, false, &scan->attempts);
        return rc < 0 ? rc : 0;
    }
    DM_TRY(dm_commit(client->ctx));
    if (client->cn->params->validation == CHIME_VALIDATE_NONE) {
        return leaves_believe(scan, leaves, count);
    }
    scan->next = leaves[0].leaf;
    bool there;
    for (unsigned i = 0; i < count; i++) {
        DM_TRY(chain_follow(scan, leaves[i].leaf, &there));
        if (!there) {
            return 0;
        }
        int rc = leaves[i].all ? 0 : part_use(scan, &leaves[i], i);
        if (leaves[i].all) {
            batch_take(client, i);
            rc = leaf_use(scan, &client->leaf);
        }
        DM_TRY(rc);
        if (rc == 1) {
            DM_TRY(leaf_step(scan));
        }
    }
    DM_TRY(chain_follow(scan, scan->bound, &there));
    if (there) {
        bound_reach(scan);
    }
    return 0;
}

int chime_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct chime_client *client = handle;
    struct scan scan = {.client = client, .cursor = first};
    scan.found = ix_found_begin(client->indirect, client->cn->shape->value_bytes, count, keys, values);
    *found = 0;
    while (!scan_done(&scan)) {
        struct chime_part leaves[IX_TREE_SCAN_BATCH_MAX];
        unsigned n;
        DM_TRY(leaves_find(&scan, leaves, &n));
        DM_TRY(leaves_take(&scan, leaves, n));
        if (scan_pauses(&scan)) {
            DM_TRY(ix_found_complete(&scan.found, chime_get, client));
        }
    }
    *found = scan.found.count;
    return 0;
}
