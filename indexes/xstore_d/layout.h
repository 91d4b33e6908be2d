/* SPDX-License-Identifier: Apache-2.0
 *
 * XStore-D's objects in remote memory (XStore, section 5.1, figure 5) and the check words that make them readable
 * without a lock. Every object is on one memory node and is written by that node's CPU alone.
 *
 *     leaf         check 8 | incarnation 24, counter 8, right link 32 | keys N x 8 | N x {check 8, value} | fences 16
 *
 *     block        check 8 | value, of which the slot of an indirect value has the ref
 *
 *     inner node   check 8 | count 16, level 16, right link 32 | high 8 | keys 16 x 8 | children 16 x 8
 *
 *     sub-model    slope 4, intercept 4 | under 2, over 2, leaves 4 | version 4, table 4 | check 8
 *
 *     table line   7 entries x {valid 1, leaf 31, incarnation 24, counter 8} | check 8
 *
 * Objects refer to each other by a "ref": an address on the same memory node in units of 64 bytes. 31 bits of it reach
 * 128 GiB; 0 is none.
 *
 * Check words (indexes/shared/check_words.h). The paper's leaves are written inside hardware transactions, which abort
 * when a NIC touches them, and have a 16-bit version in each line. Here a store of the CPU is atomic for 8 bytes only,
 * so an object has a check word, whose seed is its identity: its ref, the key of a value, the version of a table.
 */
#ifndef DM_INDEXES_XSTORE_D_LAYOUT_H
#define DM_INDEXES_XSTORE_D_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/prng.h"
#include "indexes/shared/check_words.h"
#include "indexes/shared/rmi.h"
#include "transport/dm.h"

enum {
    XSTORE_SLOTS_MAX = 64,
    XSTORE_VALUE_MAX = 1024,
    XSTORE_FANOUT = 16,
    XSTORE_LEVELS = 20,
    XSTORE_LINE_ENTRIES = 7,
    XSTORE_INNER_WORDS = 3 + 2 * XSTORE_FANOUT,
    XSTORE_INNER_BYTES = 320,
    XSTORE_MODEL_BYTES = 32,
    XSTORE_HEAD_WORDS = 2,
};

/* The reserved page of a memory node. */
enum {
    XSTORE_ROOT_OFFSET = 64,      /* ref of the root, its level in the upper half */
    XSTORE_UNLINKED_OFFSET = 72,  /* number of nodes without an entry in a parent, for lack of memory */
    XSTORE_SET_OFFSET = 128,      /* struct xstore_set on the wire */
    XSTORE_BORDERS_OFFSET = 1024, /* on memory node 0: the first key of every memory node, and a check */
};

/* ---- refs and headers -------------------------------------------------------------------------------------------- */

static inline uint32_t xstore_ref_of(dm_addr addr) {
    return (uint32_t)(dm_addr_offset(addr) / DM_LINE);
}
static inline dm_addr xstore_addr(unsigned node, uint64_t ref) {
    return dm_addr_make(node, DM_DRAM, ref * DM_LINE);
}

#define XSTORE_INCARNATION_MASK UINT32_C(0xffffff)

struct xstore_head {
    uint32_t incarnation; /* 24 bits; raised when the leaf splits */
    uint32_t count;
    uint32_t next; /* the right link; 0: none */
};

static inline uint64_t xstore_head_word(struct xstore_head head) {
    return (uint64_t)(head.incarnation & XSTORE_INCARNATION_MASK) << 40 | (uint64_t)head.count << 32 | head.next;
}
static inline struct xstore_head xstore_head_of(uint64_t word) {
    return (struct xstore_head){(uint32_t)(word >> 40), (uint32_t)(word >> 32 & 0xff), (uint32_t)word};
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

struct xstore_layout {
    uint32_t slots;
    uint32_t value_bytes, value_words; /* what a slot stores: a value, or with indirect values the ref of its block */
    uint32_t user_bytes, user_words;   /* a value */
    uint32_t block_bytes;              /* of a block: check, value; 0: values are inline */
    uint32_t keys_bytes;               /* what a lookup reads: check, header, keys */
    uint32_t slot_bytes;               /* of a value with its check */
    uint32_t read_bytes;               /* keys and values */
    uint32_t fence_offset;             /* of the fences low and high, which only the memory node reads */
    uint32_t leaf_bytes;
};

static inline struct xstore_layout xstore_layout_make(uint32_t slots, uint32_t value_bytes, bool indirect) {
    struct xstore_layout layout = {.slots = slots, .user_bytes = value_bytes, .user_words = (value_bytes + 7) / 8};
    layout.value_bytes = indirect ? (uint32_t)sizeof(uint64_t) : value_bytes;
    layout.value_words = (layout.value_bytes + 7) / 8;
    layout.block_bytes = indirect ? 8 + layout.user_words * 8 : 0;
    layout.keys_bytes = (XSTORE_HEAD_WORDS + slots) * 8;
    layout.slot_bytes = 8 + layout.value_words * 8;
    layout.read_bytes = layout.keys_bytes + slots * layout.slot_bytes;
    layout.fence_offset = layout.read_bytes;
    layout.leaf_bytes = (layout.fence_offset + 16 + DM_LINE - 1) / DM_LINE * DM_LINE;
    return layout;
}

static inline uint32_t xstore_slot_offset(const struct xstore_layout *layout, unsigned slot) {
    return layout->keys_bytes + slot * layout->slot_bytes;
}

/* The low fence of a leaf whose first key is `first`; `last` is the last key of the leaf before it. It is the middle of
 * the two, so that models need not be exact at either key. */
static inline uint64_t xstore_border(uint64_t last, uint64_t first) {
    return first - (first - last) / 2;
}

/* The check of the leaf at `words`, which begin with the check. The caller refuses a count above the number of slots.
 */
static inline uint64_t xstore_leaf_check(uint32_t ref, const uint64_t *words) {
    return ix_check_word(ix_check_fold(ref), words + 1, 1 + xstore_head_of(words[1]).count);
}
static inline bool xstore_leaf_consistent(const struct xstore_layout *layout, uint32_t ref, const uint64_t *words) {
    return xstore_head_of(words[1]).count <= layout->slots && words[0] == xstore_leaf_check(ref, words);
}

/* The check of a value depends on its key. It replaces the key that the paper stores beside the value. */
static inline uint64_t xstore_value_seed(uint64_t key) {
    return ix_check_fold(key ^ UINT64_C(0x76616c756576616c));
}

static inline uint64_t xstore_value_check(uint64_t key, const uint64_t *words, unsigned count) {
    return ix_check_word(xstore_value_seed(key), words, count);
}

/* Copies a value out of a leaf or a block. Values of a word are common, and a call costs more than their copy. */
static inline void xstore_value_copy(const struct xstore_layout *layout, const uint64_t *words, void *value) {
    if (layout->user_bytes == sizeof(*words)) {
        memcpy(value, words, sizeof(*words));
    } else {
        memcpy(value, words, layout->user_bytes);
    }
}

/* An indirect value is in a block of whole lines, which holds the check of key and value and then the value. The slot
 * has the block's ref. A block belongs to its key until that is deleted, an update writes the value in place, and a
 * block that is free waits for another key: so a reader whose block agrees with its check has a value that was the
 * key's between its read of the leaf and that of the block, or the last one before the key was deleted. */
static inline bool xstore_block_consistent(const struct xstore_layout *layout, uint64_t key, const uint64_t *words) {
    return words[0] == xstore_value_check(key, words + 1, layout->user_words);
}

/* ---- sub-models and the translation table ------------------------------------------------------------------------ */

/* A generation of models, which a model expansion replaces atomically. */
struct xstore_set {
    uint32_t generation;
    struct ix_rmi_top top;
    uint32_t records; /* ref of the array of sub-models */
};
enum { XSTORE_SET_WORDS = 6 };

void xstore_set_encode(const struct xstore_set *set, unsigned node, uint64_t words[XSTORE_SET_WORDS]);
bool xstore_set_decode(const uint64_t words[XSTORE_SET_WORDS], unsigned node, struct xstore_set *set);

/* A sub-model with its table. */
struct xstore_record {
    struct ix_rmi_model model;
    uint32_t leaves;  /* entries of its table */
    uint32_t version; /* raised with every training */
    uint32_t table;   /* ref of the table */
};
enum { XSTORE_RECORD_WORDS = 4 };

static inline uint64_t xstore_record_seed(unsigned node, uint32_t generation, uint32_t number) {
    return ix_check_fold(ix_check_fold((uint64_t)generation << 32 | number) ^ (uint64_t)(node + 1) << 56);
}
void xstore_record_encode(const struct xstore_record *record, uint64_t seed, uint64_t words[XSTORE_RECORD_WORDS]);
bool xstore_record_decode(const uint64_t words[XSTORE_RECORD_WORDS], uint64_t seed, struct xstore_record *record);

/* The check of a table line depends on the record's seed, its version and the number of the line. */
static inline uint64_t xstore_line_seed(uint64_t record_seed, uint32_t version, uint32_t line) {
    return ix_check_fold(record_seed ^ ix_check_fold((uint64_t)version << 32 | line));
}
static inline bool xstore_line_consistent(const uint64_t *line, uint64_t seed) {
    return line[XSTORE_LINE_ENTRIES] == ix_check_word(seed, line, XSTORE_LINE_ENTRIES);
}
static inline uint32_t xstore_lines_for(uint32_t leaves) {
    return (leaves + XSTORE_LINE_ENTRIES - 1) / XSTORE_LINE_ENTRIES;
}

/* Lines that are allocated for a table of so many leaves; there are four sizes between two powers of two. The number of
 * leaves of a sub-model never falls, so the allocated size is a function of it. */
uint32_t xstore_table_lines(uint32_t leaves);

struct xstore_entry {
    bool valid;
    uint32_t leaf; /* ref */
    uint32_t incarnation;
    uint32_t count; /* pairs in it when the sub-model was trained */
};
static inline uint64_t xstore_entry_word(struct xstore_entry entry) {
    return (uint64_t)entry.valid << 63 | (uint64_t)entry.leaf << 32 |
           (uint64_t)(entry.incarnation & XSTORE_INCARNATION_MASK) << 8 | entry.count;
}
static inline struct xstore_entry xstore_entry_of(uint64_t word) {
    return (struct xstore_entry){word >> 63, (uint32_t)(word >> 32 & 0x7fffffff), (uint32_t)(word >> 8 & 0xffffff),
                                 (uint32_t)(word & 0xff)};
}

/* The leaves [*first, *last] of the table that can hold a key with this coordinate. False: the model has no bound. */
bool xstore_record_range(const struct xstore_record *record, uint32_t slots, uint32_t number, double coord,
                         uint32_t *first, uint32_t *last);

/* ---- requests and responses -------------------------------------------------------------------------------------- */

enum {
    XSTORE_GET = DM_METHOD_FIRST, /* a key; answered by its value and newer models, if any */
    XSTORE_INSERT,
    XSTORE_UPDATE,
    XSTORE_REMOVE,
    XSTORE_WALK, /* answered by refs of the leaves from a key, or from a leaf, on */
    XSTORE_FORMAT,
    XSTORE_LOAD,
    XSTORE_BUILD,
};

enum { XSTORE_HINTS = 4, XSTORE_WALK_MAX = 64, XSTORE_REPLY_LINES = 64 };

/* The sub-model that a client used for a key. */
struct xstore_known {
    uint32_t generation, number, version;
    uint32_t stale; /* 1: it predicted a leaf that has split since; 2: and the client wants the table too */
};

struct xstore_get_request {
    uint64_t key;
    struct xstore_known known;
};

/* Followed by the record and the lines that the client does not have, if any, and then by the value or the leaves of a
 * walk. */
struct xstore_reply {
    uint32_t generation; /* of the memory node's models now */
    uint32_t version;    /* of the record that follows; 0: none */
    uint32_t lines;      /* of its table that follow, from `first_line` on */
    uint32_t first_line;
    uint32_t items; /* leaves of a walk; of a get: 1 if there is a value */
    uint32_t pad;
};

struct xstore_write_request {
    uint64_t key;
    uint32_t hint_count, pad;
    uint64_t hints[XSTORE_HINTS]; /* table entries */
};

struct xstore_write_reply {
    uint32_t split, hinted; /* the leaf was split; a position hint named the leaf of the key */
};

struct xstore_walk_request {
    uint64_t key;
    struct xstore_known known;
    uint32_t from;   /* if not 0: begin with this leaf and ignore the key */
    uint32_t wanted; /* leaves */
};

#endif
