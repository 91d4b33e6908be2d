/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of one scan, shared by scan.c, which takes pairs from leaves, and scan_path.c, which finds the leaves.
 *
 * A scan proceeds in rounds of one doorbell a memory node. Each round follows the path from the cursor on through the
 * cache and through the inner nodes that this scan has read before. It reads the leaves on that path, the inner nodes
 * that show whether anything is between these leaves, and the nodes that were in neither.
 */
#ifndef DM_INDEXES_DOLPHIN_SCAN_H
#define DM_INDEXES_DOLPHIN_SCAN_H

#include "dolphin.h"

enum { DOLPHIN_SEEN_MAX = 64 };

/* An inner node that this scan has read, or a run of words of a node of 256. What it holds was true at a moment of the
 * scan. */
struct dolphin_seen {
    uint64_t word; /* of the node, with byte 0 */
    const struct dolphin_head *head;
    const uint64_t *words;
    unsigned count;
    unsigned begin, end; /* the bytes that its words cover */
    bool is_kept;        /* will be, or has been, put into the cache */
};

struct dolphin_scan {
    struct dolphin_client *client;
    uint32_t attempts;
    uint64_t cursor; /* all keys below it are done */
    uint32_t wanted, found;
    uint64_t *keys;
    char *values;
    bool end;
    bool bypasses_cache;        /* the cache was stale: only what this scan reads is believed */
    uint64_t last, last_prefix; /* the last leaf taken: its word, and the first seven bytes of its keys */
    uint64_t mismatch;          /* the cursor when the path last differed from the expected one */
    uint32_t compares;          /* with nodes in `seen`, not charged yet */
    struct dolphin_seen seen[DOLPHIN_SEEN_MAX];
    unsigned seen_count, seen_ready;         /* those from seen_ready on are still being read */
    uint32_t seen_bytes;                     /* of client->scan_nodes in use */
    uint64_t leaves[DOLPHIN_SCAN_BATCH_MAX]; /* words of the leaves of this round */
    uint8_t depths[DOLPHIN_SCAN_BATCH_MAX];  /* of their parents */
    unsigned leaf_count;
};

/* The key where byte `byte` of a node at this depth begins. */
static inline uint64_t dolphin_key_at(uint64_t prefix, unsigned depth, unsigned byte) {
    return prefix | (uint64_t)byte << (8 * (DOLPHIN_SPECIAL - depth));
}

/* Moves the cursor behind `last`. */
static inline void dolphin_cursor_pass(struct dolphin_scan *scan, uint64_t last) {
    scan->end |= last >= IX_KEY_MAX;
    scan->cursor = last >= scan->cursor ? last + 1 : scan->cursor;
}

/* Posts the reads of a round and sets `leaves`. */
void dolphin_path_post(struct dolphin_scan *scan);

/* To be called after the commit: the inner nodes that were read may be used. False: one of them is no longer in the
 * tree. */
bool dolphin_path_arrive(struct dolphin_scan *scan);

/* Moves the cursor over ranges without keys, as far as the inner nodes that this scan has read show them, up to the
 * next leaf or special node. Returns the word of that; 0: unknown. */
uint64_t dolphin_gap_pass(struct dolphin_scan *scan);

/* The cache was stale: drops what this scan has read, and bypasses the cache from now on. */
void dolphin_path_reset(struct dolphin_scan *scan);

#endif
