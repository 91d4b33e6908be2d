/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves of Dolphin in remote memory (paper, III-A2, figure 3). All functions are pure.
 *
 *     leaf   | head 32 | word[0 .. cap) 8 B each | cell[0 .. cap) | ... | lock 8 |      64-byte aligned
 *
 * The first line holds the range. A line is read atomically, so one line shows a reader whether the leaf covers its
 * key. All keys of a leaf share their first seven bytes with `min`. A word keeps the last byte; the seven bytes that
 * the paper's key array repeats in each entry hold what the repairs need (README.md, "Strict"):
 *
 *     word   | version 32 | update 20 | state 4 | byte 8 |
 *
 *  - version: the version in the head when the complete leaf was written. A reader that finds different versions has
 *    read a mixture of two states;
 *  - state: free, reserved (the value is not written yet), live, busy (live, and one client is writing a long value),
 *    deleted;
 *  - update: counts the writes of a long value.
 *
 * A cell is a value within one line. With the repairs a tag precedes it, the low bits of the version, so that a value
 * is only believed if it was written after the leaf was. Values that need more than a line have lines of their own with
 * a tag in each, which is the paper's cache-line version: version 4 bits, update 4 bits.
 */
#ifndef DM_INDEXES_DOLPHIN_LEAF_H
#define DM_INDEXES_DOLPHIN_LEAF_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/dm.h"

enum { DOLPHIN_LEAF_MAGIC = 0x4c44, DOLPHIN_CAP_MIN = 2, DOLPHIN_CAP_MAX = 256 };

struct dolphin_leaf_head {
    uint64_t parent;   /* the reverse pointer, a word as in node.h */
    uint64_t min, max; /* the range, both ends included (the paper's [min, max) would lose the key that ends in 255) */
    uint32_t version;
    uint16_t magic;
    uint8_t dead; /* taken out of the tree; the content no longer changes */
    uint8_t unused;
};
static_assert(sizeof(struct dolphin_leaf_head) == 32, "the head is laid out as remote memory has it");
enum { DOLPHIN_LEAF_MIN_OFFSET = 8, DOLPHIN_LEAF_DEAD_OFFSET = 24 };

enum dolphin_state { DOLPHIN_FREE, DOLPHIN_RESERVED, DOLPHIN_LIVE, DOLPHIN_BUSY, DOLPHIN_DELETED };

struct dolphin_layout {
    uint32_t leaf_bytes; /* in remote memory */
    uint32_t value_bytes;
    uint32_t cap;                    /* entries */
    uint32_t keys_bytes;             /* head and words: the bytes that an update reads */
    uint32_t used_bytes;             /* with the cells: the bytes that a get reads */
    uint32_t cell_bytes;             /* a multiple of 64 if the value is long */
    uint32_t lock_offset;            /* of the lock, if it is in the leaf */
    bool is_long;                    /* a value takes more than one line */
    bool is_tagged;                  /* short values have a tag */
    uint32_t cells[DOLPHIN_CAP_MAX]; /* offset of each cell */
};

/* A layout with as many entries as leaf_bytes hold; cap is 0 if there is not space for one. */
struct dolphin_layout dolphin_layout_make(uint32_t leaf_bytes, uint32_t value_bytes, bool is_tagged, bool has_lock);

static inline uint64_t dolphin_entry(unsigned byte, enum dolphin_state state, uint32_t update, uint32_t version) {
    return (uint64_t)version << 32 | (uint64_t)(update & 0xfffff) << 12 | (uint64_t)state << 8 | byte;
}
static inline unsigned dolphin_entry_byte(uint64_t word) {
    return (unsigned)(word & 0xff);
}
static inline enum dolphin_state dolphin_entry_state(uint64_t word) {
    return (enum dolphin_state)(word >> 8 & 0xf);
}
static inline uint32_t dolphin_entry_update(uint64_t word) {
    return (uint32_t)(word >> 12 & 0xfffff);
}
static inline uint32_t dolphin_entry_version(uint64_t word) {
    return (uint32_t)(word >> 32);
}
static inline bool dolphin_entry_is_live(uint64_t word) {
    return dolphin_entry_state(word) == DOLPHIN_LIVE || dolphin_entry_state(word) == DOLPHIN_BUSY;
}

static inline struct dolphin_leaf_head *dolphin_leaf_head_of(void *leaf) {
    return leaf;
}
static inline const struct dolphin_leaf_head *dolphin_leaf_head_in(const void *leaf) {
    return leaf;
}
static inline uint64_t *dolphin_leaf_words(void *leaf) {
    return (uint64_t *)((char *)leaf + sizeof(struct dolphin_leaf_head));
}
static inline const uint64_t *dolphin_leaf_words_in(const void *leaf) {
    return (const uint64_t *)((const char *)leaf + sizeof(struct dolphin_leaf_head));
}
static inline uint32_t dolphin_word_offset(unsigned i) {
    return (uint32_t)(sizeof(struct dolphin_leaf_head) + i * sizeof(uint64_t));
}

/* The offset of cell i. */
static inline uint32_t dolphin_cell_offset(const struct dolphin_layout *layout, unsigned i) {
    return layout->cells[i];
}

/* True if the head may be that of a leaf. */
bool dolphin_leaf_plausible(const struct dolphin_leaf_head *head);

/* Initialises an empty leaf for [min, max]: all words are free, and the tags of all cells are far from this version. */
void dolphin_leaf_init(const struct dolphin_layout *layout, void *leaf, uint64_t min, uint64_t max, uint32_t version,
                       uint64_t parent);

/* Writes a value of this version and update into a cell. */
void dolphin_cell_put(const struct dolphin_layout *layout, void *cell, const void *value, uint32_t version,
                      uint32_t update);

/* Copies the value out of a cell. True if its tags agree with each other and, if `is_checked`, with the version. */
bool dolphin_cell_get(const struct dolphin_layout *layout, const void *cell, uint32_t version, bool is_checked,
                      void *value);

/* Stores a live entry at index i of a leaf in local memory. */
void dolphin_leaf_put(const struct dolphin_layout *layout, void *leaf, unsigned i, unsigned byte, const void *value);

/* The index where the search for entries with this byte begins. */
static inline unsigned dolphin_leaf_home(const struct dolphin_layout *layout, unsigned byte) {
    return byte * layout->cap >> 8;
}

/* Indices of the live entries, by ascending byte; returns their number. `order` has capacity for cap. */
unsigned dolphin_leaf_sort(const struct dolphin_layout *layout, const void *leaf, uint16_t *order);

/* True if every word has the head's version: the leaf was not read in the middle of a change. */
bool dolphin_leaf_consistent(const struct dolphin_layout *layout, const void *leaf);

/* The index of the live entry of a byte; -1: none. */
int dolphin_leaf_find(const struct dolphin_layout *layout, const void *leaf, unsigned byte);

#endif
