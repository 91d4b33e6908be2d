/* SPDX-License-Identifier: Apache-2.0
 *
 * CHIME's leaves: hopscotch hash tables with wrap-around (paper, sections 2.3 and 4.2). All functions are pure and work
 * on the image; indexes/shared/lines.h has the wire form. Of a leaf that was read in part only the entries that were
 * read may be looked at.
 *
 *     image   | meta | H entries | meta | H entries | ...            with metadata replication; else one meta in front
 *     meta    | version 1 | valid 1 | sibling 8 | [low 8 | high 8] |  fences only with validation=fences
 *     entry   | version 1 | hop bitmap 2 | key 8 | value |            bit d of the bitmap: the key
 *                                                                      d entries further has its home here
 *     Keys of more than 8 bytes have their padding behind the number, and behind the fences.
 *     after the image, 8-byte aligned: the lock word
 *
 *     lock word, from bit 0: lock 1 | position of the largest key | vacancy bitmap, a bit a group of entries: 1 is full
 *
 * The position is a hint, see write.c; the bitmap is exact. While the lock is held the rest of the word names the
 * holder.
 */
#ifndef DM_INDEXES_CHIME_LEAF_H
#define DM_INDEXES_CHIME_LEAF_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/compiler.h"
#include "common/prng.h"
#include "indexes/shared/lines.h"
#include "transport/dm.h"

enum {
    CHIME_SPAN_MAX = 512,
    CHIME_HOOD_MAX = 16, /* bits of a hop bitmap */
    CHIME_NONE = -1,
    CHIME_KEY_OFFSET = 3, /* in an entry */
};

#define CHIME_NO_KEY UINT64_MAX /* of an empty entry */

struct chime_layout {
    uint32_t span, hood; /* entries of a leaf, and of a neighbourhood (the paper's H) */
    uint32_t key_bytes, value_bytes, entry_bytes, meta_bytes;
    uint32_t groups;       /* copies of the metadata */
    uint32_t hood_inverse; /* 2^16 / hood, rounded up: i * hood_inverse >> 16 is i / hood for every entry */
    uint32_t image_bytes, wire_bytes;
    uint32_t used_bytes;  /* of the wire form: what a write of the whole leaf sends */
    uint32_t lock_offset; /* of the lock word, after those */
    uint32_t alloc_bytes;
    unsigned argmax_bits, vacancy_bits;
    bool replicate, fences;
};

struct chime_layout chime_layout_make(uint32_t span, uint32_t hood, uint32_t key_bytes, uint32_t value_bytes,
                                      bool replicate, bool fences);

/* What every copy of the metadata holds. */
struct chime_meta {
    bool valid;
    dm_addr sibling;
    uint64_t low, high; /* with fences */
};

/* A set of entries. */
struct chime_set {
    uint64_t bits[CHIME_SPAN_MAX / 64];
};
static inline void chime_set_add(struct chime_set *set, unsigned i) {
    set->bits[i / 64] |= UINT64_C(1) << i % 64;
}
static inline bool chime_set_has(const struct chime_set *set, unsigned i) {
    return set->bits[i / 64] >> i % 64 & 1;
}

/* The first entry of the set from `at` on; the span if there is none. */
static inline unsigned chime_set_next(const struct chime_set *set, unsigned at, unsigned span) {
    while (at < span) {
        uint64_t bits = set->bits[at / 64] >> at % 64;
        if (bits != 0) {
            return at + 63 - dm_clz64(bits & (~bits + 1));
        }
        at = (at / 64 + 1) * 64;
    }
    return span;
}

static inline unsigned chime_home(const struct chime_layout *layout, uint64_t key) {
    return (unsigned)((dm_mix64(key) >> 32) * layout->span >> 32);
}
/* The entry `d` after `i`, with wrap-around. */
static inline unsigned chime_at(const struct chime_layout *layout, unsigned i, unsigned d) {
    unsigned at = i + d;
    return at >= layout->span ? at - layout->span : at;
}
/* How many entries `to` is after `from`, with wrap-around. */
static inline unsigned chime_distance(const struct chime_layout *layout, unsigned from, unsigned to) {
    return to >= from ? to - from : to + layout->span - from;
}

static inline uint32_t chime_entry_offset(const struct chime_layout *layout, unsigned i) {
    assert(layout->hood > 0);
    uint32_t metas = layout->replicate ? (i * layout->hood_inverse >> 16) + 1 : 1;
    return metas * layout->meta_bytes + i * layout->entry_bytes;
}
static inline uint32_t chime_meta_offset(const struct chime_layout *layout, unsigned group) {
    return group * (layout->meta_bytes + layout->hood * layout->entry_bytes);
}
/* The copy of the metadata that a read of `hood` or more entries from `start` on includes. */
static inline unsigned chime_meta_near(const struct chime_layout *layout, unsigned start) {
    unsigned group = (start + layout->hood - 1) / layout->hood;
    return group < layout->groups ? group : 0;
}

static inline uint64_t chime_key(const struct chime_layout *layout, const void *image, unsigned i) {
    uint64_t key;
    memcpy(&key, (const char *)image + chime_entry_offset(layout, i) + CHIME_KEY_OFFSET, sizeof(key));
    return key;
}
static inline unsigned chime_hop(const struct chime_layout *layout, const void *image, unsigned i) {
    uint16_t hop;
    memcpy(&hop, (const char *)image + chime_entry_offset(layout, i) + 1, sizeof(hop));
    return hop;
}
static inline void *chime_value(const struct chime_layout *layout, void *image, unsigned i) {
    return (char *)image + chime_entry_offset(layout, i) + CHIME_KEY_OFFSET + layout->key_bytes;
}

/* Comparisons, of 8 bytes each, beyond the first of a key that was found. */
static inline uint32_t chime_padding_compares(const struct chime_layout *layout) {
    return (layout->key_bytes - 1) / (uint32_t)sizeof(uint64_t);
}

/* Starts an empty leaf. */
void chime_leaf_init(const struct chime_layout *layout, void *image, const struct chime_meta *meta);
void chime_meta_set(const struct chime_layout *layout, void *image, const struct chime_meta *meta);
struct chime_meta chime_meta_get(const struct chime_layout *layout, const void *image, unsigned group);

/* Where key is in its neighbourhood, or CHIME_NONE. */
int chime_leaf_find(const struct chime_layout *layout, const void *image, uint64_t key);

/* The hop bitmap of `home` as the keys in its neighbourhood have it. */
unsigned chime_hops_of(const struct chime_layout *layout, const void *image, unsigned home);

/* True if all hop bitmaps of a leaf agree with its keys, each of which is hashed once. */
bool chime_leaf_hops_agree(const struct chime_layout *layout, const void *image);

/* Inserts a key that is not there, moving others if it must, into the `reach` entries from its home on. Changed entries
 * are added to `changed`; *largest follows the key it points at; *filled is the entry that was empty before. The
 * position, or CHIME_NONE: then nothing changed, and *filled is the empty entry that hops could not bring near enough,
 * or the span if there is none. */
int chime_leaf_insert(const struct chime_layout *layout, void *image, uint64_t key, const void *value, unsigned reach,
                      struct chime_set *changed, unsigned *largest, unsigned *filled);

/* Removes the key at entry i. */
void chime_leaf_remove(const struct chime_layout *layout, void *image, unsigned i, struct chime_set *changed);

/* Sets the value at entry i. */
void chime_leaf_update(const struct chime_layout *layout, void *image, unsigned i, const void *value);

/* Positions of the keys from `first` on, ascending by key; returns how many. `order` has space for the span. */
unsigned chime_leaf_sort(const struct chime_layout *layout, const void *image, uint64_t first, uint16_t *order);
/* The same for entries in `some` alone, with keys in [first, end). */
unsigned chime_leaf_sort_some(const struct chime_layout *layout, const void *image, const struct chime_set *some,
                              uint64_t first, uint64_t end, uint16_t *order);

/* The first key of the right half, for a key that chime_leaf_insert refused: the median of that key and of all critical
 * ones (section 4.4). A key is critical if the refused one could be inserted, after hops or without, in case the entry
 * of the former were the empty one that linear probing finds. Some critical key is in the other half than the refused
 * one then, and each half has a key once that is inserted. */
uint64_t chime_leaf_split_key(const struct chime_layout *layout, const void *image, uint64_t key);

/* Moves the keys from `pivot` on to the same entries of `right`, and makes the hop bitmaps of both agree. Metadata is
 * the caller's. */
void chime_leaf_split(const struct chime_layout *layout, void *image, void *right, uint64_t pivot);

/* ---- the lock word ---------------------------------------------------------------------------------------------- */

static inline unsigned chime_group_of(const struct chime_layout *layout, unsigned i) {
    return i * layout->vacancy_bits / layout->span;
}
/* The first entry of a group; the span for the number after the last group's. */
static inline unsigned chime_group_begin(const struct chime_layout *layout, unsigned group) {
    assert(layout->vacancy_bits > 0);
    return (group * layout->span + layout->vacancy_bits - 1) / layout->vacancy_bits;
}
static inline bool chime_word_full(const struct chime_layout *layout, uint64_t word, unsigned group) {
    return word >> (1 + layout->argmax_bits + group) & 1;
}
static inline bool chime_word_locked(uint64_t word) {
    return word & 1;
}
static inline unsigned chime_word_largest(const struct chime_layout *layout, uint64_t word) {
    assert(layout->span > 0);
    return (unsigned)(word >> 1 & ((UINT64_C(1) << layout->argmax_bits) - 1)) % layout->span;
}
static inline uint64_t chime_word_set_largest(const struct chime_layout *layout, uint64_t word, unsigned i) {
    uint64_t mask = ((UINT64_C(1) << layout->argmax_bits) - 1) << 1;
    return (word & ~mask) | (uint64_t)i << 1;
}
/* True if no group is full, as in a leaf that is empty; of a leaf with large groups that says little. */
static inline bool chime_word_low(const struct chime_layout *layout, uint64_t word) {
    return word >> (1 + layout->argmax_bits) == 0;
}

/* Sets the bit of entry i's group as the image has it. */
uint64_t chime_word_refresh(const struct chime_layout *layout, uint64_t word, const void *image, unsigned i);

/* The word after entry i was removed. */
static inline uint64_t chime_word_without(const struct chime_layout *layout, uint64_t word, unsigned i) {
    return word & ~(UINT64_C(1) << (1 + layout->argmax_bits + chime_group_of(layout, i)));
}

/* The word of a leaf with these entries, not locked: with the position of the largest key. */
uint64_t chime_word_of(const struct chime_layout *layout, const void *image);

/* What an insert has to read: *count entries from *start on hold the neighbourhood of home and extend to the first
 * vacancy after it, in whole groups; the span if there is none. */
void chime_reach(const struct chime_layout *layout, uint64_t word, unsigned home, unsigned *start, unsigned *count);

#endif
