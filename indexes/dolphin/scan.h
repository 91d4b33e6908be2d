/* SPDX-License-Identifier: Apache-2.0
 *
 * One scan: what scan.c, which takes leaves, and scan_path.c, which finds them, share.
 *
 * A scan goes in rounds of one doorbell a memory node. Each round asks the cache, and the inner nodes that this scan
 * has read before, for the way from the cursor on, and reads the leaves on it together with the inner nodes that tell
 * what is between the leaves, and those that neither knows.
 */
#ifndef DM_INDEXES_DOLPHIN_SCAN_H
#define DM_INDEXES_DOLPHIN_SCAN_H

#include "dolphin.h"

enum { DOLPHIN_SEEN_MAX = 64 };

/* An inner node that this scan has read, or a run of words of one of 256. What it says was true during the scan. */
struct dolphin_seen {
    uint64_t word; /* of the node, with byte 0 */
    const struct dolphin_head *head;
    const uint64_t *words;
    unsigned count;
    unsigned begin, end; /* the bytes that it has an answer for */
    bool is_kept;        /* goes to the cache, or has gone */
};

struct dolphin_scan {
    struct dolphin_client *client;
    uint32_t attempts;
    uint64_t cursor; /* everything below is done */
    uint32_t wanted, found;
    uint64_t *keys;
    char *values;
    bool end;
    bool bypasses_cache;        /* the cache has misled: only what this scan reads is believed */
    uint64_t last, last_prefix; /* the leaf taken last: its word, and the first seven bytes of its keys */
    uint64_t mismatch;          /* where the cursor was when the way was last found to be another */
    struct dolphin_seen seen[DOLPHIN_SEEN_MAX];
    unsigned seen_count, seen_ready;         /* from seen_ready on they are under way */
    uint32_t seen_bytes;                     /* of client->nodes in use */
    uint64_t leaves[DOLPHIN_SCAN_BATCH_MAX]; /* words */
    uint8_t depths[DOLPHIN_SCAN_BATCH_MAX];  /* of the nodes that they hang under */
    unsigned leaf_count;
};

/* The key where byte `byte` of a node at this depth begins. */
static inline uint64_t dolphin_key_at(uint64_t prefix, unsigned depth, unsigned byte) {
    return prefix | (uint64_t)byte << (8 * (DOLPHIN_SPECIAL - depth));
}

/* Everything up to and including `last` is done. */
static inline void dolphin_cursor_pass(struct dolphin_scan *scan, uint64_t last) {
    scan->end |= last >= IX_KEY_MAX;
    scan->cursor = last >= scan->cursor ? last + 1 : scan->cursor;
}

/* Posts the reads of a round, and sets `leaves`. */
void dolphin_path_post(struct dolphin_scan *scan);

/* After the commit: what was read of inner nodes can be used. False: one of them is not in the tree any more. */
bool dolphin_path_arrive(struct dolphin_scan *scan);

/* Moves the cursor over keys that are not there by what this scan has read of inner nodes, up to the next leaf or
 * special node, and returns the word of that; 0: it is not known. */
uint64_t dolphin_gap_pass(struct dolphin_scan *scan);

/* The cache was wrong: forgets what this scan has read too. */
void dolphin_path_reset(struct dolphin_scan *scan);

#endif
