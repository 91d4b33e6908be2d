/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of RACE hashing in remote memory; pure functions.
 *
 *     subtable  | lock 8, unused 56 | group | group | ...
 *     group     | main bucket 64 | overflow bucket 64 | main bucket 64 |
 *     bucket    | header 8 | 7 slots of 8 |                                one line, so that both are read together
 *     header    | valid 1 | unused 22 | filling 1 | local depth 8 | suffix 32 |
 *     slot      | fingerprint 8 | tentative 1 | lines of the block 7 | word 48 |                   0: empty
 *     directory | entry 8 | entry 8 | ...    entry i is of the hashes that end in the bits of i
 *     entry     | memory node 8 | local depth 8 | offset of a subtable 48 |
 *
 * The word of a slot is that of indexes/shared/indirect.h.
 *
 * A key has two main buckets of one subtable. A main bucket and its group's overflow bucket are neighbours, and one
 * read fetches both: a combined bucket.
 */
#ifndef DM_INDEXES_RACE_LAYOUT_H
#define DM_INDEXES_RACE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/prng.h"
#include "transport/dm.h"

enum {
    RACE_SLOTS_MAX = 7,
    RACE_BUCKET_WORDS = DM_LINE / 8,
    RACE_GROUP_BUCKETS = 3,
    RACE_GROUP_BYTES = RACE_GROUP_BUCKETS * DM_LINE,
    RACE_COMBINED_BYTES = 2 * DM_LINE,
    RACE_HEAD_BYTES = DM_LINE,
    RACE_BUCKETS = 4, /* of a key: two main buckets, each with its overflow bucket */
    RACE_DEPTH_MAX = 24,
    /* In the reserved page of memory node 0. */
    RACE_DEPTH_OFFSET = 64, /* global depth; then the address of the directory */
    RACE_ROOT_BYTES = 16,
    RACE_LOCK_OFFSET = 128, /* of the directory */
};

/* ---- hashes ------------------------------------------------------------------------------------------------------ */

static inline uint64_t race_hash(uint64_t key) {
    return dm_mix64(key + UINT64_C(0x9e3779b97f4a7c15));
}
static inline uint64_t race_bits(unsigned depth) {
    return (UINT64_C(1) << depth) - 1;
}
static inline unsigned race_fingerprint(uint64_t hash) {
    return (unsigned)(hash >> 56);
}
static inline unsigned race_block_node(uint64_t hash, unsigned mns) {
    return (unsigned)((hash >> 32 & 0xffffff) % mns);
}

/* The two main buckets, which differ, as numbers of buckets of a subtable: the main bucket first, then its overflow
 * bucket. */
static inline void race_buckets(uint64_t hash, uint64_t groups, uint32_t buckets[RACE_BUCKETS]) {
    uint32_t mains = (uint32_t)groups * 2;
    uint32_t first = (uint32_t)((dm_mix64(hash + 1) >> 32) * mains >> 32);
    uint32_t second = (uint32_t)((dm_mix64(hash + 2) >> 32) * (mains - 1) >> 32);
    second += second >= first;
    buckets[0] = first / 2 * RACE_GROUP_BUCKETS + first % 2 * 2;
    buckets[1] = first / 2 * RACE_GROUP_BUCKETS + 1;
    buckets[2] = second / 2 * RACE_GROUP_BUCKETS + second % 2 * 2;
    buckets[3] = second / 2 * RACE_GROUP_BUCKETS + 1;
}

/* ---- headers ----------------------------------------------------------------------------------------------------- */

#define RACE_HEADER_VALID   (UINT64_C(1) << 63)
#define RACE_HEADER_FILLING (UINT64_C(1) << 40)

static inline uint64_t race_header(unsigned depth, uint64_t suffix) {
    return RACE_HEADER_VALID | (uint64_t)depth << 32 | suffix;
}
static inline unsigned race_header_depth(uint64_t header) {
    return (unsigned)(header >> 32 & 0xff);
}
static inline uint64_t race_header_suffix(uint64_t header) {
    return header & UINT64_C(0xffffffff);
}
static inline bool race_header_filling(uint64_t header) {
    return (header & RACE_HEADER_FILLING) != 0;
}
static inline bool race_header_plausible(uint64_t header) {
    return (header & RACE_HEADER_VALID) && race_header_depth(header) <= RACE_DEPTH_MAX;
}
/* The bucket is in the subtable of this hash. */
static inline bool race_header_covers(uint64_t header, uint64_t hash) {
    return race_header_plausible(header) && (hash & race_bits(race_header_depth(header))) == race_header_suffix(header);
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

#define RACE_SLOT_TENTATIVE (UINT64_C(1) << 55)
#define RACE_SLOT_LINES     (UINT64_C(0x7f) << 48)
#define RACE_SLOT_WORD      ((UINT64_C(1) << 48) - 1)

static inline uint64_t race_slot(uint64_t hash, uint32_t block_bytes, uint64_t word) {
    return (uint64_t)race_fingerprint(hash) << 56 | (uint64_t)(block_bytes / DM_LINE & 0x7f) << 48 | word;
}
static inline unsigned race_slot_fingerprint(uint64_t slot) {
    return (unsigned)(slot >> 56);
}
static inline uint64_t race_slot_word(uint64_t slot) {
    return slot & RACE_SLOT_WORD;
}
static inline bool race_slot_tentative(uint64_t slot) {
    return (slot & RACE_SLOT_TENTATIVE) != 0;
}
/* The slot as a split leaves it while its copy begins to count: tentative, and as no insert writes it, because no block
 * has so many lines. */
static inline uint64_t race_slot_leaving(uint64_t slot) {
    return slot | RACE_SLOT_TENTATIVE | RACE_SLOT_LINES;
}

/* ---- subtables and entries --------------------------------------------------------------------------------------- */

static inline uint32_t race_table_bytes(uint64_t groups) {
    return RACE_HEAD_BYTES + (uint32_t)groups * RACE_GROUP_BYTES;
}
static inline dm_addr race_bucket_addr(dm_addr table, uint32_t bucket) {
    return dm_addr_add(table, RACE_HEAD_BYTES + (uint64_t)bucket * DM_LINE);
}
static inline dm_addr race_slot_addr(dm_addr table, uint32_t bucket, unsigned slot) {
    return dm_addr_add(race_bucket_addr(table, bucket), 8 * (uint64_t)(slot + 1));
}

static inline uint64_t race_entry(dm_addr table, unsigned depth) {
    return table.bits | (uint64_t)depth << 48;
}
static inline dm_addr race_entry_table(uint64_t entry) {
    return (dm_addr){entry & ~(UINT64_C(0xff) << 48)};
}
static inline unsigned race_entry_depth(uint64_t entry) {
    return (unsigned)(entry >> 48 & 0xff);
}

/* ---- an empty slot for a key ------------------------------------------------------------------------------------- */

/* The lines of a key's buckets, in the order of race_buckets. */
struct race_lines {
    uint64_t *at[RACE_BUCKETS];
};

/* The emptier combined bucket first, and in it the main bucket first. A slot that `other` (may be NULL) has in use is
 * not empty. False if there is none. */
static inline bool race_choose(const struct race_lines *lines, const struct race_lines *other, unsigned slots,
                               unsigned *bucket, unsigned *slot) {
    unsigned used[RACE_BUCKETS];
    unsigned first_empty[RACE_BUCKETS];
    for (unsigned k = 0; k < RACE_BUCKETS; k++) {
        used[k] = 0;
        first_empty[k] = slots;
        for (unsigned i = slots; i-- > 0;) {
            bool empty = lines->at[k][i + 1] == 0 && (!other || other->at[k][i + 1] == 0);
            used[k] += !empty;
            first_empty[k] = empty ? i : first_empty[k];
        }
    }
    unsigned start = used[2] + used[3] < used[0] + used[1] ? 2 : 0;
    for (unsigned step = 0; step < RACE_BUCKETS; step++) {
        unsigned k = (start + step) % RACE_BUCKETS;
        if (first_empty[k] < slots) {
            *bucket = k;
            *slot = first_empty[k];
            return true;
        }
    }
    return false;
}

#endif
