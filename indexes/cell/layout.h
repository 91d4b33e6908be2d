/* SPDX-License-Identifier: Apache-2.0
 *
 * Cell's objects in remote memory. A memory node has a B-link tree of its own for a range of keys; its CPU alone writes
 * it, and clients read it.
 *
 *     node    check 8 | count 16, level 16, right link 32 | low 8 | high 8 | keys N x 8 | entries N x E
 *
 *     block   check 8 | value
 *
 * A node covers the keys [low, high), or all keys from low on if high is UINT64_MAX: the min and max fences. Keys are
 * sorted. Of a key of more than 8 bytes nodes have the first 8, which no two keys share, and the rest is behind its
 * value. An entry of an inner node is the ref of a child, whose low fence is the key; an entry of a leaf is the value,
 * or for a long value the ref of its block. A ref is an address on the same memory node in units of 64 bytes; 0 is
 * none.
 *
 * The check of a node (indexes/shared/check_words.h) is over everything but itself and the unused entries, with the ref
 * as seed, so an accepted node is one state of this node. The check of a block has the key as seed, so an accepted
 * block has the value of this key. Nodes are never freed and keep their level and their low fence; high only shrinks,
 * by splits. So a reader that came by an old pointer needs right links alone.
 */
#ifndef DM_INDEXES_CELL_LAYOUT_H
#define DM_INDEXES_CELL_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/prng.h"
#include "indexes/index.h"
#include "indexes/shared/check_words.h"
#include "transport/dm.h"

enum {
    CELL_ENTRIES_MAX = 64,
    CELL_INLINE_MAX = 64,
    CELL_VALUE_MAX = 4096,
    CELL_STORED_MAX = CELL_VALUE_MAX + IX_KEY_BYTES_MAX - IX_KEY_BYTES_MIN, /* of a value and the rest of its key */
    CELL_NODE_WORDS_MAX = 4 + CELL_ENTRIES_MAX * (1 + CELL_INLINE_MAX / 8),
    CELL_LEVELS = 32,
};

/* The words of a node; its entries follow its keys. */
enum { CELL_CHECK, CELL_HEAD, CELL_LOW, CELL_HIGH, CELL_KEYS };

/* The reserved page of a memory node. */
enum {
    CELL_ROOT_OFFSET = 64,     /* ref of the root, its level in the upper half */
    CELL_UNLINKED_OFFSET = 72, /* number of nodes without an entry in a parent, for lack of memory */
    CELL_RANGES_OFFSET = 1024, /* on memory node 0: the ranges of keys (indexes/shared/ranges.h) */
};

/* Methods of a memory node. */
enum {
    CELL_GET = DM_METHOD_FIRST,
    CELL_INSERT,
    CELL_UPDATE,
    CELL_REMOVE,
    CELL_FORMAT,
    CELL_LOAD,
    CELL_BUILD,
};

/* The request of a get and of all writes; the rest of a long key follows, and the value of an insert or update. */
struct cell_request {
    uint64_t key;
};
struct cell_write_reply {
    uint32_t split, pad; /* the insert split a leaf */
};

/* ---- the form of nodes ------------------------------------------------------------------------------------------- */

struct cell_form {
    uint32_t entries, entry_words;
    uint32_t first;       /* word of the first entry */
    uint32_t words;       /* of a node */
    uint32_t alloc_bytes; /* complete lines */
};

struct cell_layout {
    struct cell_form inner, leaf;
    uint32_t value_bytes, padding; /* padding: what a key has beyond 8 bytes */
    uint32_t stored_words;         /* value and padding */
    uint32_t block_bytes;          /* check, value, padding; 0: values are in leaves */
};

static inline struct cell_form cell_form_make(uint32_t entries, uint32_t entry_words) {
    struct cell_form form = {.entries = entries, .entry_words = entry_words, .first = CELL_KEYS + entries};
    form.words = form.first + entries * entry_words;
    form.alloc_bytes = (form.words * 8 + DM_LINE - 1) / DM_LINE * DM_LINE;
    return form;
}

static inline struct cell_layout cell_layout_make(uint32_t slots, uint32_t fanout, const struct ix_shape *shape,
                                                  uint64_t inline_bytes) {
    uint32_t stored_bytes = shape->value_bytes + ix_key_padding(shape);
    struct cell_layout layout = {
        .value_bytes = shape->value_bytes, .padding = ix_key_padding(shape), .stored_words = (stored_bytes + 7) / 8};
    bool is_inline = stored_bytes <= inline_bytes;
    layout.block_bytes = is_inline ? 0 : 8 + layout.stored_words * 8;
    layout.inner = cell_form_make(fanout, 1);
    layout.leaf = cell_form_make(slots, is_inline ? layout.stored_words : 1);
    return layout;
}

static inline const struct cell_form *cell_form_of(const struct cell_layout *layout, unsigned level) {
    return level > 0 ? &layout->inner : &layout->leaf;
}

/* Bytes of a request up to the value. */
static inline uint32_t cell_request_bytes(const struct cell_layout *layout) {
    return (uint32_t)sizeof(struct cell_request) + layout->padding;
}

/* Key comparisons for the rest of a key that was found. */
static inline uint32_t cell_padding_compares(const struct cell_layout *layout) {
    return (layout->padding + 7) / 8;
}

/* ---- refs and heads ---------------------------------------------------------------------------------------------- */

static inline uint32_t cell_ref_of(dm_addr addr) {
    return (uint32_t)(dm_addr_offset(addr) / DM_LINE);
}
static inline dm_addr cell_addr(unsigned node, uint64_t ref) {
    return dm_addr_make(node, DM_DRAM, ref * DM_LINE);
}

static inline uint64_t cell_head_word(unsigned count, unsigned level, uint32_t right) {
    return (uint64_t)count << 48 | (uint64_t)level << 32 | right;
}
static inline unsigned cell_count(const uint64_t *words) {
    return (unsigned)(words[CELL_HEAD] >> 48);
}
static inline unsigned cell_level(const uint64_t *words) {
    return (unsigned)(words[CELL_HEAD] >> 32 & 0xffff);
}
static inline uint32_t cell_right(const uint64_t *words) {
    return (uint32_t)words[CELL_HEAD];
}

/* The same encoding for the root: its ref and level. */
static inline uint64_t cell_root_word(uint32_t ref, unsigned level) {
    return (uint64_t)level << 32 | ref;
}

static inline bool cell_is_left_of_high(const uint64_t *words, uint64_t key) {
    return key < words[CELL_HIGH] || words[CELL_HIGH] == UINT64_MAX;
}

static inline const uint64_t *cell_entry(const struct cell_form *form, const uint64_t *words, unsigned position) {
    return words + form->first + (size_t)position * form->entry_words;
}
static inline uint32_t cell_child(const struct cell_form *form, const uint64_t *words, unsigned position) {
    return (uint32_t)*cell_entry(form, words, position);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* The check of a node with a legal count. */
static inline uint64_t cell_node_check(const struct cell_form *form, uint32_t ref, const uint64_t *words) {
    unsigned count = cell_count(words);
    uint64_t seed = ix_check_fold(~(uint64_t)ref);
    uint64_t sum = ix_check_sum(seed, CELL_HEAD, words + CELL_HEAD, CELL_KEYS - CELL_HEAD + count);
    return (sum + ix_check_sum(seed, form->first, words + form->first, count * form->entry_words)) | 1;
}
static inline bool cell_node_consistent(const struct cell_form *form, uint32_t ref, const uint64_t *words) {
    return cell_count(words) <= form->entries && words[CELL_CHECK] == cell_node_check(form, ref, words);
}
static inline uint32_t cell_node_hashes(const struct cell_form *form, const uint64_t *words) {
    return ix_check_hashes(CELL_KEYS - CELL_HEAD + cell_count(words) * (1 + form->entry_words));
}

static inline uint64_t cell_block_seed(uint64_t key) {
    return ix_check_fold(key ^ UINT64_C(0x63656c6c76616c75));
}

static inline uint64_t cell_block_check(uint64_t key, const uint64_t *words, unsigned count) {
    return ix_check_word(cell_block_seed(key), words, count);
}

/* ---- search ------------------------------------------------------------------------------------------------------ */

/* The number of keys that are at most `key`. */
static inline unsigned cell_rank(const uint64_t *words, uint64_t key) {
    unsigned low = 0, high = cell_count(words);
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (words[CELL_KEYS + middle] <= key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The position of the key in a leaf, or -1. */
static inline int cell_find(const uint64_t *words, uint64_t key) {
    unsigned rank = cell_rank(words, key);
    return rank > 0 && words[CELL_KEYS + rank - 1] == key ? (int)rank - 1 : -1;
}

/* The position of the child that covers a key of an inner node. */
static inline unsigned cell_child_for(const uint64_t *words, uint64_t key) {
    unsigned rank = cell_rank(words, key);
    return rank > 0 ? rank - 1 : 0;
}

/* Key comparisons of a binary search in a node. */
static inline uint32_t cell_compares(const struct cell_form *form) {
    uint32_t steps = 1;
    while (form->entries >> steps) {
        steps++;
    }
    return steps;
}

#endif
