/* SPDX-License-Identifier: Apache-2.0
 *
 * ROLEX's leaves and table entries as plain bytes and words; nothing here touches remote memory.
 *
 *     leaf image   | low 8 | high 8 | count 2 | key 8 x delta | value x delta |
 *
 *     table entry  | lock 1 | region 7 | synonym 8 | leaf 48 |          as in the paper, section 3.4
 *
 * Of keys of more than 8 bytes, `key` is the number; the padding of keys and bounds follows the values. A leaf is
 * always transferred whole, so where in it the bytes are makes no difference.
 *
 * Keys ascend; the first `count` are used. In remote memory a leaf is stored as versioned lines
 * (indexes/shared/lines.h), and all its lines are written together. A leaf holds the keys of [low, high) and no others;
 * if low = high, it is not in use. The paper's leaves have no bounds; README.md gives the reason for ours. A leaf that
 * was never written is zero, so it is not in use either.
 */
#ifndef DM_INDEXES_ROLEX_LEAF_H
#define DM_INDEXES_ROLEX_LEAF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "indexes/shared/lines.h"

struct rolex_layout {
    uint32_t delta, key_bytes, value_bytes;
    uint32_t image_bytes, wire_bytes;
};

enum {
    ROLEX_LOW_AT = 0,
    ROLEX_HIGH_AT = 8,
    ROLEX_COUNT_AT = 16,
    ROLEX_KEYS_AT = 18,
    ROLEX_SYNONYMS_MAX = 255, /* of a model: 8 bits, of which 0 means none */
    ROLEX_REGIONS_MAX = 127,  /* 7 bits */
};

struct rolex_layout rolex_layout_make(uint32_t delta, uint32_t key_bytes, uint32_t value_bytes);

static inline uint64_t rolex_u64(const char *image, uint32_t at) {
    uint64_t word;
    memcpy(&word, image + at, sizeof(word));
    return word;
}
static inline uint64_t rolex_low(const char *image) {
    return rolex_u64(image, ROLEX_LOW_AT);
}
static inline uint64_t rolex_high(const char *image) {
    return rolex_u64(image, ROLEX_HIGH_AT);
}
static inline bool rolex_covers(const char *image, uint64_t key) {
    return rolex_low(image) <= key && key < rolex_high(image);
}
static inline uint64_t rolex_key(const char *image, uint32_t i) {
    return rolex_u64(image, ROLEX_KEYS_AT + 8 * i);
}
static inline const char *rolex_value(const struct rolex_layout *layout, const char *image, uint32_t i) {
    return image + ROLEX_KEYS_AT + 8 * layout->delta + (size_t)i * layout->value_bytes;
}

/* Bytes of a key beyond its number; and the comparisons, of 8 bytes each, that they are of a key that was found. */
static inline uint32_t rolex_padding(const struct rolex_layout *layout) {
    return layout->key_bytes - (uint32_t)sizeof(uint64_t);
}
static inline uint32_t rolex_padding_compares(const struct rolex_layout *layout) {
    return (rolex_padding(layout) + 7) / 8;
}

/* Keys in the leaf, at most delta, even if the bytes are torn or not a leaf. */
uint32_t rolex_count(const struct rolex_layout *layout, const char *image);

void rolex_bounds_set(char *image, uint64_t low, uint64_t high);
void rolex_leaf_init(const struct rolex_layout *layout, char *image, uint64_t low, uint64_t high);
void rolex_value_set(const struct rolex_layout *layout, char *image, uint32_t i, const void *value);

/* True if the leaf has key, *at being its index; otherwise *at is the index at which to insert it. */
bool rolex_find(const struct rolex_layout *layout, const char *image, uint64_t key, uint32_t *at);

/* Inserts a pair at index i of a leaf that is not full; removes the pair at index i. */
void rolex_pair_insert(const struct rolex_layout *layout, char *image, uint32_t i, uint64_t key, const void *value);
void rolex_pair_remove(const struct rolex_layout *layout, char *image, uint32_t i);

/* Splits a full leaf for the insertion of `key`, which is not in it. `right` gets the upper half, or no pairs if key is
 * above all of them, so that ascending inserts leave full leaves. */
void rolex_leaf_halve(const struct rolex_layout *layout, char *left, char *right, uint64_t key);

/* ---- table entries ----------------------------------------------------------------------------------------------- */

#define ROLEX_LOCK (UINT64_C(1) << 63)

/* Together with the lock in a leaf table: the model has been, or is being, replaced, and the lock is never released. It
 * is the top bit of the leaf number. Readers continue to use the rest of the entry. */
#define ROLEX_DEAD (UINT64_C(1) << 47)

static inline uint64_t rolex_entry(unsigned region, unsigned synonym, uint64_t leaf) {
    return (uint64_t)region << 56 | (uint64_t)synonym << 48 | leaf;
}
static inline unsigned rolex_entry_region(uint64_t entry) {
    return (unsigned)(entry >> 56 & 0x7f);
}
static inline unsigned rolex_entry_synonym(uint64_t entry) {
    return (unsigned)(entry >> 48 & 0xff);
}
static inline uint64_t rolex_entry_leaf(uint64_t entry) {
    return entry & (ROLEX_DEAD - 1);
}
static inline uint64_t rolex_entry_link(uint64_t entry, unsigned synonym) {
    return rolex_entry(rolex_entry_region(entry), synonym, rolex_entry_leaf(entry));
}

#endif
