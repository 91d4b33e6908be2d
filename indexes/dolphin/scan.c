/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans (paper, III-B2): the cache gives the words of the leaves that will be needed, and those are read with one
 * doorbell a memory node. Leaves are taken in order, each from the cursor to the end of its own range.
 *
 * What makes the result right is not the cache. A leaf says what it covers, so while ranges follow one another nothing
 * can be missing between. A gap is only passed over if an inner node that this scan has read says that nothing is
 * there: under an ordinary parent that node is read along with the leaves (under a special one ranges follow one
 * another); otherwise nodes are read from the root on. Each key is so judged by one state of the leaf that was
 * responsible for it, or of the word that would lead to one, at some moment of the scan.
 */
#include "dolphin.h"

#include <string.h>

struct scan {
    struct dolphin_client *client;
    uint32_t attempts;
    uint64_t cursor; /* everything below is done */
    uint32_t wanted, found;
    uint64_t *keys;
    char *values;
    unsigned leaves; /* taken so far */
    bool reads;      /* the cache was of no use: read the nodes */
    bool end;
};

/* Leaves of one parent, or of several special ones. */
struct row {
    uint64_t words[DOLPHIN_SCAN_BATCH_MAX];
    unsigned count, room;
    uint64_t parent; /* an ordinary one, whose copy in client->node was read by this scan; 0: special ones */
};

static bool scan_done(const struct scan *scan) {
    return scan->end || scan->found == scan->wanted;
}

/* Everything up to and including `last` is done. */
static void cursor_pass(struct scan *scan, uint64_t last) {
    scan->end |= last >= IX_KEY_MAX;
    scan->cursor = last >= scan->cursor ? last + 1 : scan->cursor;
}

/* Leaves that the rest of the scan should take, by what leaves held so far, or by the fill that load gives; one more
 * because the first one is begun somewhere in the middle. */
static unsigned leaves_wanted(const struct scan *scan) {
    const struct dolphin_cn *cn = scan->client->cn;
    double each = scan->leaves > 0 ? (double)scan->found / scan->leaves : cn->layout.cap * cn->params->fill;
    double leaves = (double)(scan->wanted - scan->found) / (each < 1 ? 1 : each) + 2;
    return leaves < cn->scan_batch ? (unsigned)leaves : cn->scan_batch;
}

/* ---- taking leaves ---------------------------------------------------------------------------------------------- */

/* Takes the pairs from the cursor on. False: a value was half-written; everything before it is done. */
static bool pairs_take(struct scan *scan, const void *leaf) {
    struct dolphin_client *client = scan->client;
    const struct dolphin_layout *layout = &client->cn->layout;
    const struct dolphin_leaf_head *head = dolphin_leaf_head_in(leaf);
    dm_charge(client->ctx, DM_WORK_NODE_PROBE, 1);
    unsigned live = dolphin_leaf_sort(layout, leaf, client->order);
    for (unsigned i = 0; i < live && scan->found < scan->wanted; i++) {
        uint64_t key =
            dolphin_low(head->min, DOLPHIN_SPECIAL) | dolphin_entry_byte(dolphin_leaf_words_in(leaf)[client->order[i]]);
        if (key < scan->cursor) {
            continue;
        }
        const char *cell = (const char *)leaf + dolphin_cell_offset(layout, client->order[i]);
        if (!dolphin_cell_get(layout, cell, head->version, client->cn->publish,
                              scan->values + (size_t)scan->found * layout->value_bytes)) {
            return false;
        }
        scan->keys[scan->found++] = key;
        cursor_pass(scan, key);
    }
    if (scan->found < scan->wanted) {
        cursor_pass(scan, head->max);
    }
    scan->leaves++;
    return true;
}

/* True if the parent, which this scan has read, has nothing between the cursor and the child that `word` leads to. */
static bool gap_is_empty(const struct scan *scan, const struct row *row, uint64_t word) {
    const struct dolphin_node *node = scan->client->node;
    unsigned depth = dolphin_word_depth(row->parent);
    if (row->parent == 0 || dolphin_low(scan->cursor, depth) != node->head.prefix) {
        return false;
    }
    uint64_t next = dolphin_words_next(node->words, dolphin_room(dolphin_word_type(row->parent)),
                                       dolphin_byte(scan->cursor, depth));
    return next == word;
}

/* Takes one leaf. 0; DOLPHIN_AGAIN: the rest of the row is of no use; a failure. */
static int leaf_take(struct scan *scan, const struct row *row, uint64_t word, const void *leaf) {
    struct dolphin_client *client = scan->client;
    const struct dolphin_leaf_head *head = dolphin_leaf_head_in(leaf);
    bool is_leaf = dolphin_leaf_plausible(head) && !head->dead;
    client->counts[DOLPHIN_DEAD_LEAF] += !is_leaf;
    bool covers = is_leaf && scan->cursor >= head->min && scan->cursor <= head->max;
    bool is_next = is_leaf && !covers && (head->min ^ scan->cursor) >> 8 != 0 && gap_is_empty(scan, row, word);
    if (is_next && scan->cursor > head->max) {
        /* The only leaf for the cursor's byte lies below it. */
        cursor_pass(scan, dolphin_high(scan->cursor, dolphin_word_depth(row->parent) + 1));
        return 0;
    }
    if (!covers && !is_next) {
        client->counts[DOLPHIN_SCAN_GAP]++;
        scan->reads = true;
        DM_TRY(dolphin_retry(client, DM_RETRY_STALE, &scan->attempts));
        return DOLPHIN_AGAIN;
    }
    bool whole = !client->cn->check_smo || dolphin_leaf_whole(&client->cn->layout, leaf);
    if (!whole || !pairs_take(scan, leaf)) {
        client->counts[DOLPHIN_TORN_LEAF]++;
        DM_TRY(dolphin_retry(client, DM_RETRY_TORN, &scan->attempts));
        return DOLPHIN_AGAIN;
    }
    return 0;
}

/* Reads the leaves of a row, with its parent if that is still to be read, and takes them. [waits] */
static int row_take(struct scan *scan, struct row *row, bool reads_parent) {
    struct dolphin_client *client = scan->client;
    const struct dolphin_layout *layout = &client->cn->layout;
    dolphin_charge(client);
    for (unsigned i = 0; i < row->count; i++) {
        dm_addr leaf = dolphin_word_addr(row->words[i]);
        if (!dm_addr_valid(client->ctx, leaf, layout->leaf_bytes)) {
            row->count = i;
            break;
        }
        dm_post_read(client->ctx, leaf, client->batch + (size_t)i * layout->leaf_bytes, layout->used_bytes);
    }
    if (reads_parent) {
        dm_post_read(client->ctx, dolphin_word_addr(row->parent), client->node,
                     dolphin_node_bytes(dolphin_word_type(row->parent)));
    }
    DM_TRY(dm_commit(client->ctx));
    const struct dolphin_head *head = &client->node->head;
    if (row->count == 0 || (reads_parent && (!dolphin_node_plausible(head, row->parent) || head->dead))) {
        scan->reads = true;
        return dolphin_retry(client, DM_RETRY_STALE, &scan->attempts);
    }
    for (unsigned i = 0; i < row->count && !scan_done(scan); i++) {
        int rc = leaf_take(scan, row, row->words[i], client->batch + (size_t)i * layout->leaf_bytes);
        if (rc != 0) {
            return rc < 0 ? rc : 0;
        }
    }
    unsigned depth = dolphin_word_depth(row->parent);
    if (row->parent != 0 && !scan_done(scan) && dolphin_low(scan->cursor, depth) == head->prefix &&
        dolphin_words_next(client->node->words, dolphin_room(dolphin_word_type(row->parent)),
                           dolphin_byte(scan->cursor, depth)) == 0) {
        cursor_pass(scan, dolphin_high(head->prefix, depth));
    }
    return 0;
}

/* ---- finding leaves in the cache -------------------------------------------------------------------------------- */

struct step {
    uint64_t node;
    unsigned byte; /* children from here on */
};

/* Goes down to a child. False: the cache does not have it, or all of it lies below the cursor. */
static bool step_down(const struct scan *scan, uint64_t word, struct step *step) {
    struct dolphin_next found;
    unsigned depth = dolphin_word_depth(word);
    if (!dolphin_cached_find(scan->client, word, scan->cursor, &found)) {
        return false;
    }
    uint64_t low = dolphin_low(scan->cursor, depth);
    unsigned byte =
        depth == DOLPHIN_SPECIAL && found.word != 0 ? dolphin_word_byte(found.word) : dolphin_byte(scan->cursor, depth);
    *step = (struct step){.node = word, .byte = found.prefix == low ? byte : 0};
    return found.prefix >= low;
}

/* Collects leaves from the cursor on, as far as the cache knows the way. */
static void row_collect(const struct scan *scan, struct row *row) {
    struct step path[DOLPHIN_KEY_BYTES + 1];
    unsigned height = 0;
    if (!step_down(scan, scan->client->cn->root, &path[0])) {
        return;
    }
    while (row->count < row->room) {
        struct step *top = &path[height];
        struct dolphin_next next;
        if (top->byte >= DOLPHIN_ROOM_MAX) {
            next.word = 0;
        } else if (!dolphin_cached_next(scan->client, top->node, top->byte, &next)) {
            return;
        }
        bool special = dolphin_word_depth(top->node) == DOLPHIN_SPECIAL;
        if (next.word == 0) {
            if (height == 0 || row->parent != 0) {
                return; /* what follows an ordinary parent's last leaf is for the next row */
            }
            height--;
            continue;
        }
        top->byte = dolphin_word_byte(next.word) + 1;
        if (dolphin_word_is_inner(next.word)) {
            bool goes = row->parent == 0 && height < DOLPHIN_KEY_BYTES;
            if (!goes || !step_down(scan, next.word, &path[height + 1])) {
                return;
            }
            height++;
        } else if (special || row->count == 0 || row->parent == top->node) {
            row->parent = special ? 0 : top->node;
            row->words[row->count++] = next.word;
        } else {
            return;
        }
    }
}

/* ---- finding leaves in remote nodes ----------------------------------------------------------------------------- */

/* Collects the leaves of the node in client->node from `word` on. */
static void row_from_node(const struct scan *scan, uint64_t parent, uint64_t word, struct row *row) {
    const struct dolphin_node *node = scan->client->node;
    row->parent = dolphin_word_depth(parent) == DOLPHIN_SPECIAL ? 0 : parent;
    while (row->count < row->room && dolphin_word_type(word) == DOLPHIN_LEAF) {
        row->words[row->count++] = word;
        word = dolphin_words_next(node->words, dolphin_room(dolphin_word_type(parent)), dolphin_word_byte(word) + 1);
    }
}

/* The key where byte `byte` of a node at this depth begins. */
static uint64_t key_at(uint64_t prefix, unsigned depth, unsigned byte) {
    return prefix | (uint64_t)byte << (8 * (DOLPHIN_SPECIAL - depth));
}

/* Reads nodes from the root down to the parent of the cursor's leaf, or of the next one there is: moves the cursor over
 * what is empty on the way. An empty row: begin again, with the cursor where it is now. [waits] */
static int row_read(struct scan *scan, struct row *row) {
    struct dolphin_client *client = scan->client;
    uint64_t word = client->cn->root;
    unsigned above = 0; /* depth of the node read before */
    for (;;) {
        unsigned depth = dolphin_word_depth(word);
        int rc = dolphin_node_read(client, word, client->node);
        if (rc != 0) {
            return rc < 0 ? rc : dolphin_retry(client, DM_RETRY_STALE, &scan->attempts);
        }
        uint64_t prefix = client->node->head.prefix;
        if (prefix < dolphin_low(scan->cursor, depth)) {
            /* All of it lies below the cursor: go on behind it, in the node above. */
            cursor_pass(scan, dolphin_high(scan->cursor, above + 1));
            return 0;
        }
        scan->cursor = prefix > scan->cursor ? prefix : scan->cursor;
        unsigned byte = dolphin_byte(scan->cursor, depth);
        unsigned room = dolphin_room(dolphin_word_type(word));
        uint64_t next = depth == DOLPHIN_SPECIAL ? dolphin_words_find(client->node->words, room, byte, true)
                                                 : dolphin_words_next(client->node->words, room, byte);
        if (next == 0) {
            cursor_pass(scan, dolphin_high(prefix, depth));
            return 0;
        }
        if (depth != DOLPHIN_SPECIAL && dolphin_word_byte(next) > byte) {
            scan->cursor = key_at(prefix, depth, dolphin_word_byte(next));
        }
        if (!dolphin_word_is_inner(next)) {
            row_from_node(scan, word, next, row);
            return 0;
        }
        above = depth;
        word = next;
    }
}

int dolphin_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct scan scan = {.client = handle, .cursor = first, .wanted = count, .keys = keys, .values = values};
    *found = 0;
    while (!scan_done(&scan)) {
        struct row row = {.room = leaves_wanted(&scan)};
        bool reads = scan.reads;
        if (!reads) {
            row_collect(&scan, &row);
            reads = row.count == 0;
        }
        if (reads) {
            DM_TRY(row_read(&scan, &row));
        }
        scan.reads = false;
        if (row.count > 0) {
            DM_TRY(row_take(&scan, &row, !reads && row.parent != 0));
        }
    }
    *found = scan.found;
    return 0;
}
