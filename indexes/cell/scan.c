/* SPDX-License-Identifier: Apache-2.0
 *
 * Scan: a walk to the parent of the first leaf, then READs of the leaves that it names, several with one doorbell. The
 * fences of the leaves show where one was split since: its right neighbours are read by their links. A walk for the
 * next parent begins at the high fence of the last leaf, so no key that is there throughout is missed.
 */
#include "client.h"

struct scan {
    struct cell_client *client;
    unsigned node;
    uint64_t cursor; /* all smaller keys from the first on have been taken */
    bool is_done;    /* of the tree, or of the scan */
    uint32_t count, found;
    uint64_t *keys;
    char *values;
    uint32_t attempts;
};

/* ---- blocks of long values --------------------------------------------------------------------------------------- */

static void *value_at(const struct scan *scan, uint32_t i) {
    return scan->values + (size_t)i * scan->client->cn->layout.value_bytes;
}

/* Copies the value of the next pair if `block` has it. Else the block is being written, or the key was deleted since.
 */
static int block_take(struct scan *scan, uint64_t key, const uint64_t *block) {
    struct cell_client *client = scan->client;
    if (cell_block_is_value(client, key, block)) {
        memcpy(value_at(scan, scan->found), block + 1, client->cn->layout.value_bytes);
    } else {
        cell_count_event(client, CELL_TORN_BLOCK_COUNT);
        int rc = cell_get(client, key, value_at(scan, scan->found));
        if (rc != 0) {
            return rc == DM_NOT_FOUND ? 0 : rc;
        }
    }
    scan->keys[scan->found++] = key;
    return 0;
}

/* Takes up to CELL_BLOCK_BATCH pairs from `position` of a leaf on. */
static int blocks_take(struct scan *scan, const uint64_t *leaf, unsigned position, unsigned count) {
    struct cell_client *client = scan->client;
    const struct cell_layout *layout = &client->cn->layout;
    uint32_t words = layout->block_bytes / 8;
    for (unsigned i = 0; i < count; i++) {
        dm_addr addr = cell_addr(scan->node, cell_child(&layout->leaf, leaf, position + i));
        if (dm_addr_valid(client->ctx, addr, layout->block_bytes)) {
            dm_post_read(client->ctx, addr, client->blocks + (size_t)i * words, layout->block_bytes);
        }
    }
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_VALUE);
    int rc = dm_commit(client->ctx);
    dm_phase(client->ctx, before);
    /* A get uses the first buffer, whose block has been taken by then. */
    for (unsigned i = 0; i < count && rc == 0; i++) {
        rc = block_take(scan, leaf[CELL_KEYS + position + i], client->blocks + (size_t)i * words);
    }
    return rc;
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

/* Takes the pairs of the leaf that covers the cursor, and moves the cursor behind the leaf. */
static int leaf_take(struct scan *scan, const uint64_t *leaf) {
    const struct cell_layout *layout = &scan->client->cn->layout;
    unsigned at = scan->cursor > 0 ? cell_rank(leaf, scan->cursor - 1) : 0, count = cell_count(leaf);
    dm_charge(scan->client->ctx, DM_WORK_KEY_COMPARE, 2 + count);
    while (at < count && scan->found < scan->count) {
        unsigned some = count - at < scan->count - scan->found ? count - at : scan->count - scan->found;
        if (layout->block_bytes > 0) {
            some = some < CELL_BLOCK_BATCH ? some : CELL_BLOCK_BATCH;
            DM_TRY(blocks_take(scan, leaf, at, some));
        } else {
            for (unsigned i = at; i < at + some; i++, scan->found++) {
                scan->keys[scan->found] = leaf[CELL_KEYS + i];
                memcpy(value_at(scan, scan->found), cell_entry(&layout->leaf, leaf, i), layout->value_bytes);
            }
        }
        at += some;
    }
    scan->cursor = leaf[CELL_HIGH];
    scan->is_done = leaf[CELL_HIGH] == UINT64_MAX || scan->found == scan->count;
    return 0;
}

static uint64_t *buffer_at(const struct scan *scan, unsigned i) {
    return scan->client->leaves + (size_t)i * scan->client->cn->layout.leaf.words;
}

/* The buffer of a leaf that is not of a batch. */
static uint64_t *single_buffer(const struct scan *scan) {
    return buffer_at(scan, scan->client->scan_batch);
}

/* Follows right links from `ref` on and takes leaves until the cursor is at `end`. */
static int links_follow(struct scan *scan, uint32_t ref, uint64_t end) {
    struct cell_client *client = scan->client;
    uint64_t *leaf = single_buffer(scan);
    while (!scan->is_done && scan->cursor < end) {
        cell_count_event(client, CELL_SCAN_SPLIT_COUNT);
        DM_TRY(dm_retry(client->ctx, DM_RETRY_MOVED, &scan->attempts));
        int rc = cell_node_read(client, scan->node, ref, 0, leaf, &scan->attempts);
        if (rc != 0) {
            return rc == CELL_NO_NODE ? DM_ERR_CORRUPT : rc;
        }
        ref = cell_right(leaf);
        if (cell_is_left_of_high(leaf, scan->cursor)) {
            DM_TRY(leaf_take(scan, leaf));
        }
    }
    return 0;
}

/* ---- the leaves that a parent names ------------------------------------------------------------------------------ */

struct batch {
    unsigned count;
    uint32_t refs[CELL_SCAN_BATCH_MAX];
    uint64_t high; /* where the range of the last child ends */
};

/* The children of the parent in client->node, from the one that covers the cursor on: as many as the scan needs if
 * leaves are as full as bulk load makes them. */
static void batch_make(const struct scan *scan, struct batch *batch) {
    const struct cell_client *client = scan->client;
    const struct cell_form *leaf = &client->cn->layout.leaf, *inner = &client->cn->layout.inner;
    const uint64_t *parent = client->node;
    uint32_t each = (uint32_t)(client->cn->params->fill * leaf->entries);
    unsigned first = cell_child_for(parent, scan->cursor), last;
    uint32_t wanted = 1 + (scan->count - scan->found) / (each > 0 ? each : 1);
    wanted = wanted < client->scan_batch ? wanted : client->scan_batch;
    last = cell_count(parent) - first < wanted ? cell_count(parent) : first + wanted;
    batch->count = last - first;
    for (unsigned i = 0; i < batch->count; i++) {
        batch->refs[i] = cell_child(inner, parent, first + i);
    }
    batch->high = last < cell_count(parent) ? parent[CELL_KEYS + last] : parent[CELL_HIGH];
}

/* Reads the leaves with one doorbell; those that are torn again, one by one. */
static int batch_read(struct scan *scan, const struct batch *batch) {
    struct cell_client *client = scan->client;
    uint32_t bytes = client->cn->layout.leaf.words * 8;
    for (unsigned i = 0; i < batch->count; i++) {
        dm_addr addr = cell_addr(scan->node, batch->refs[i]);
        if (!dm_addr_valid(client->ctx, addr, bytes)) {
            return DM_ERR_CORRUPT;
        }
        dm_post_read(client->ctx, addr, buffer_at(scan, i), bytes);
    }
    DM_TRY(dm_commit(client->ctx));
    for (unsigned i = 0; i < batch->count; i++) {
        if (!cell_is_consistent(client, 0, batch->refs[i], buffer_at(scan, i))) {
            cell_count_event(client, CELL_TORN_NODE_COUNT);
            DM_TRY(dm_retry(client->ctx, DM_RETRY_TORN, &scan->attempts));
            DM_TRY(cell_node_read(client, scan->node, batch->refs[i], 0, buffer_at(scan, i), &scan->attempts));
        }
    }
    return 0;
}

static int batch_take(struct scan *scan, const struct batch *batch) {
    for (unsigned i = 0; i < batch->count && !scan->is_done; i++) {
        const uint64_t *leaf = buffer_at(scan, i);
        uint64_t end = i + 1 < batch->count ? buffer_at(scan, i + 1)[CELL_LOW] : batch->high;
        uint32_t right = cell_right(leaf);
        if (cell_is_left_of_high(leaf, scan->cursor)) {
            DM_TRY(leaf_take(scan, leaf));
        }
        /* A leaf that was split ends before the next child begins. */
        DM_TRY(links_follow(scan, right, end));
    }
    return 0;
}

static int tree_scan(struct scan *scan) {
    struct cell_client *client = scan->client;
    struct cell_walked walked;
    struct batch batch;
    while (!scan->is_done) {
        DM_TRY(cell_walk(client, scan->node, scan->cursor, 1, false, &walked, &scan->attempts));
        if (walked.level == 0) { /* the root is a leaf, or was one */
            uint64_t *leaf = single_buffer(scan);
            memcpy(leaf, client->node, client->cn->layout.leaf.words * 8);
            uint32_t right = cell_right(leaf);
            DM_TRY(leaf_take(scan, leaf));
            DM_TRY(links_follow(scan, right, UINT64_MAX));
        } else {
            batch_make(scan, &batch);
            DM_TRY(batch_read(scan, &batch));
            DM_TRY(batch_take(scan, &batch));
        }
    }
    return 0;
}

int cell_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct cell_client *client = handle;
    unsigned nodes = client->cn->shape->topology->mns;
    struct scan scan = {.client = client, .count = count, .keys = keys, .values = values};
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_INDEX);
    int rc = 0;
    for (unsigned node = cell_node_of(client, first); node < nodes && scan.found < count && rc == 0; node++) {
        scan.node = node;
        scan.cursor = client->ranges.borders[node] > first ? client->ranges.borders[node] : first;
        scan.is_done = false;
        rc = tree_scan(&scan);
    }
    dm_phase(client->ctx, before);
    *found = scan.found;
    return rc;
}
