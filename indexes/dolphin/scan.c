/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans (paper, III-B2): scan_path.c finds the words of the leaves that will be needed, and these leaves are read with
 * one doorbell a memory node. Leaves are processed in order, each from the cursor to the end of its own range.
 *
 * The result does not depend on the cache. A leaf holds its range, so while ranges follow one another without a gap no
 * key can be missed. A gap is only passed if an inner node that this scan has read shows that nothing is there; that
 * node is read along with the leaves. So each key is judged by one state, at some moment of the scan, of the leaf that
 * was responsible for it or of the word that would lead to one.
 */
#include "scan.h"

#include <string.h>

/* Rounds in a row that may read only inner nodes; two for each level are ordinary. */
enum { IDLE_MAX = 2 * DOLPHIN_KEY_BYTES };

static bool scan_done(const struct dolphin_scan *scan) {
    return scan->end || scan->found == scan->wanted;
}

/* Updates the mean number of pairs in leaves, under special and other nodes: an estimate of the leaves that the next
 * scan needs. */
static void density_learn(struct dolphin_client *client, bool special, unsigned live) {
    int64_t *density = &client->density[special];
    *density += ((int64_t)live * DOLPHIN_DENSITY_ONE - *density) / DOLPHIN_DENSITY_MEMORY;
    *density = *density < DOLPHIN_DENSITY_ONE / 4 ? DOLPHIN_DENSITY_ONE / 4 : *density;
}

/* Takes the pairs from the cursor on. False: a value was torn; everything before it is done. */
static bool pairs_take(struct dolphin_scan *scan, const void *leaf, bool special) {
    struct dolphin_client *client = scan->client;
    const struct dolphin_layout *layout = &client->cn->layout;
    const struct dolphin_leaf_head *head = dolphin_leaf_head_in(leaf);
    unsigned live = dolphin_leaf_sort(layout, leaf, client->order);
    /* Each entry is looked at, the live ones again, and their values checked and copied. */
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, layout->cap + 2 * live);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, live * (1 + layout->cell_bytes / DM_LINE));
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
        dolphin_cursor_pass(scan, key);
    }
    if (scan->found < scan->wanted) {
        dolphin_cursor_pass(scan, head->max);
    }
    density_learn(client, special, live);
    return true;
}

/* The path differs from what the cache, or an earlier read, has shown. Returns DOLPHIN_AGAIN or a failure. */
static int path_changed(struct dolphin_scan *scan, bool bypasses_cache) {
    scan->client->counts[DOLPHIN_SCAN_GAP]++;
    if (bypasses_cache || scan->mismatch == scan->cursor) {
        dolphin_path_reset(scan);
    }
    scan->mismatch = scan->cursor;
    DM_TRY(ix_retry(scan->client->ctx, DM_RETRY_STALE, &scan->attempts, 0));
    return DOLPHIN_AGAIN;
}

/* What happens to a leaf that was expected next: take its pairs; pass it; read another leaf instead; the path is
 * unknown. */
enum turn { TAKE, PASS, OTHER, UNKNOWN };

static enum turn leaf_turn(struct dolphin_scan *scan, const struct dolphin_leaf_head *head, uint64_t word) {
    if (scan->cursor >= head->min && scan->cursor <= head->max) {
        return TAKE;
    }
    uint64_t next = scan->client->cn->check_scan ? dolphin_gap_pass(scan) : word;
    if (scan->end || (scan->cursor >= head->min && scan->cursor <= head->max)) {
        return scan->end ? PASS : TAKE;
    }
    /* Another prefix: the leaf is the only one for its byte. */
    bool is_alone = next == word && (head->min ^ scan->cursor) >> 8 != 0;
    return is_alone                                  ? scan->cursor < head->min ? TAKE : PASS
           : dolphin_word_type(next) == DOLPHIN_LEAF ? OTHER
                                                     : UNKNOWN;
}

/* Processes one leaf. 0; DOLPHIN_AGAIN: the leaves after it are unusable; a failure. */
static int leaf_take(struct dolphin_scan *scan, unsigned i) {
    struct dolphin_client *client = scan->client;
    const struct dolphin_layout *layout = &client->cn->layout;
    const char *leaf = client->batch + (size_t)i * layout->leaf_bytes;
    const struct dolphin_leaf_head *head = dolphin_leaf_head_in(leaf);
    if (!dolphin_leaf_plausible(head) || head->dead) {
        client->counts[DOLPHIN_DEAD_LEAF]++;
        return path_changed(scan, true);
    }
    enum turn turn = leaf_turn(scan, head, scan->leaves[i]);
    if (turn == OTHER || turn == UNKNOWN) {
        return path_changed(scan, turn == UNKNOWN);
    }
    dm_charge(client->ctx, DM_WORK_LINE_COPY, layout->keys_bytes / DM_LINE + 1);
    bool is_consistent = !client->cn->check_smo || dolphin_leaf_consistent(layout, leaf);
    if (turn == TAKE && (!is_consistent || !pairs_take(scan, leaf, scan->depths[i] == DOLPHIN_SPECIAL))) {
        client->counts[DOLPHIN_TORN_LEAF]++;
        DM_TRY(ix_retry(client->ctx, DM_RETRY_TORN, &scan->attempts, 0));
        return DOLPHIN_AGAIN;
    }
    scan->last = scan->leaves[i];
    scan->last_prefix = dolphin_low(head->min, DOLPHIN_SPECIAL);
    scan->bypasses_cache = false;
    if (!client->cn->check_scan && scan->depths[i] != DOLPHIN_SPECIAL && !scan_done(scan)) {
        /* As published: there is only this leaf for its byte. */
        dolphin_cursor_pass(scan, dolphin_high(head->min, scan->depths[i] + 1u));
    }
    return 0;
}

/* Reads one round and processes its leaves. [waits] */
static int round_run(struct dolphin_scan *scan) {
    struct dolphin_client *client = scan->client;
    dolphin_path_post(scan);
    bool is_unknown = scan->leaf_count == 0 && scan->seen_count == scan->seen_ready;
    DM_TRY(dm_commit(client->ctx));
    if (!dolphin_path_arrive(scan) || is_unknown) {
        if (is_unknown && (scan->end |= !client->cn->check_scan)) {
            return 0; /* as published: the index ends where the cache does */
        }
        return path_changed(scan, true);
    }
    for (unsigned i = 0; i < scan->leaf_count && !scan_done(scan); i++) {
        int rc = leaf_take(scan, i);
        if (rc != 0) {
            return rc;
        }
    }
    if (!scan_done(scan) && client->cn->check_scan) {
        dolphin_gap_pass(scan);
    }
    return 0;
}

int dolphin_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct dolphin_scan scan;
    memset(&scan, 0, offsetof(struct dolphin_scan, seen));
    scan.client = handle;
    scan.cursor = first;
    scan.wanted = count;
    scan.keys = keys;
    scan.values = values;
    scan.mismatch = UINT64_MAX;
    scan.seen_count = 0;
    scan.seen_ready = 0;
    scan.seen_bytes = 0;
    *found = 0;
    for (unsigned idle = 0; !scan_done(&scan);) {
        uint64_t before = scan.cursor;
        int rc = round_run(&scan);
        if (rc < 0) {
            return rc;
        }
        idle = scan.cursor == before ? idle + 1 : 0;
        if (idle > IDLE_MAX) {
            DM_TRY(ix_retry(scan.client->ctx, DM_RETRY_STALE, &scan.attempts, 0));
        }
    }
    *found = scan.found;
    return 0;
}
