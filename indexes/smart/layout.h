/* SPDX-License-Identifier: Apache-2.0
 *
 * What SMART keeps in remote memory: leaves, inner nodes, and the slots that lead to either. All functions are pure.
 *
 *     leaf    | reverse pointer 8 | state 1 | lock 1 | stamp 2 | checksum 6 | key 8 | value |        34 B for 8 B
 * values node    | reverse pointer 8 | header 8 | slot[0 .. 256) |                                      2064 B in any
 * case header  | depth 8 bits | type 5 | length 3 | up to six bytes of prefix | slot    | byte 8 bits | type 5, kind 2
 * (inner) or stamp 7 (leaf) | leaf 1 | memory node 6, stamp 9, 1 | line 32 |
 *
 * A node distinguishes its children by the byte of the key at depth + length; byte 0 is the highest. All nodes take the
 * space of the largest, so a node changes its type in place: its type states how many slots count. A slot that has held
 * a child keeps its byte until its node is dead, and slots are taken in order. So a byte has at most one slot in a
 * node, and two inserts of one byte meet at the same one.
 *
 * The reverse pointer is the address of the slot that leads here. It is a hint: it may be older than the slot.
 *
 * A leaf may be used again for another key, with the next stamp. A slot names the leaf and its stamp, so a stale copy
 * of a slot never leads to a leaf that means something else now (until the 16 bits repeat, for a copy that was not
 * looked at during 65536 uses of one leaf). State, lock and stamp are in one word, so one compare-and-swap takes the
 * lock only if the leaf is still the one. The head of a leaf and its key are in one line, which is read atomically; the
 * checksum binds a value of several lines to it.
 */
#ifndef DM_INDEXES_SMART_LAYOUT_H
#define DM_INDEXES_SMART_LAYOUT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "transport/dm.h"

enum {
    SMART_KEY_BYTES = 8,
    SMART_SLOTS = 256,
    SMART_PREFIX_MAX = 6, /* bytes of prefix that a header holds */
    SMART_TYPES_MAX = 8,
    SMART_NODE_HEAD = 16,
    SMART_NODE_BYTES = SMART_NODE_HEAD + SMART_SLOTS * 8,
    SMART_UNIT = DM_LINE, /* addresses in slots count these */
};

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* Byte d of a key; the key with the bytes from d on cleared, or set. */
static inline unsigned smart_byte(uint64_t key, unsigned depth) {
    return (unsigned)(key >> (8 * (SMART_KEY_BYTES - 1 - depth)) & 0xff);
}
static inline uint64_t smart_low(uint64_t key, unsigned depth) {
    return depth >= SMART_KEY_BYTES ? key : key & ~(UINT64_MAX >> (8 * depth));
}
static inline uint64_t smart_high(uint64_t key, unsigned depth) {
    return depth >= SMART_KEY_BYTES ? key : key | UINT64_MAX >> (8 * depth);
}
/* A path of `depth` bytes, and one byte more. */
static inline uint64_t smart_path_with(uint64_t path, unsigned depth, unsigned byte) {
    return depth < SMART_KEY_BYTES ? path | (uint64_t)byte << (8 * (SMART_KEY_BYTES - 1 - depth)) : path;
}
/* The first byte in which two keys differ. */
static inline unsigned smart_difference(uint64_t a, uint64_t b) {
    return a == b ? SMART_KEY_BYTES : (unsigned)__builtin_clzll(a ^ b) / 8;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

enum smart_kind {
    SMART_KIND_NODE,
    SMART_KIND_EMPTY,  /* the child was deleted; the slot keeps its byte */
    SMART_KIND_FROZEN, /* the node is being taken out of the tree */
    SMART_KIND_CLOSED, /* the same, of a slot that never had a child and has no byte */
};

static inline uint64_t smart_slot_addr_bits(dm_addr addr) {
    return (uint64_t)dm_addr_node(addr) << 16 | dm_addr_offset(addr) / SMART_UNIT << 32;
}
static inline uint64_t smart_slot_leaf(unsigned byte, dm_addr addr, unsigned stamp) {
    return byte | (uint64_t)(stamp & 0x7f) << 8 | UINT64_C(1) << 15 | (uint64_t)(stamp >> 7 & 0x1ff) << 22 |
           smart_slot_addr_bits(addr);
}
static inline uint64_t smart_slot_node(unsigned byte, unsigned type, dm_addr addr) {
    return byte | (uint64_t)type << 8 | smart_slot_addr_bits(addr);
}
static inline uint64_t smart_slot_kind(unsigned byte, enum smart_kind kind) {
    return byte | (uint64_t)kind << 13;
}
static inline unsigned smart_slot_byte(uint64_t slot) {
    return (unsigned)(slot & 0xff);
}
static inline bool smart_slot_is_leaf(uint64_t slot) {
    return slot >> 15 & 1;
}
static inline enum smart_kind smart_slot_kind_of(uint64_t slot) {
    return smart_slot_is_leaf(slot) ? SMART_KIND_NODE : (enum smart_kind)(slot >> 13 & 3);
}
/* True if nothing is below the slot: it never had a child, or the child was deleted. */
static inline bool smart_slot_is_vacant(uint64_t slot) {
    return slot == 0 || smart_slot_kind_of(slot) == SMART_KIND_EMPTY;
}
static inline bool smart_slot_is_frozen(uint64_t slot) {
    return smart_slot_kind_of(slot) >= SMART_KIND_FROZEN;
}
/* True if the slot leads to an inner node or a leaf. */
static inline bool smart_slot_has_child(uint64_t slot) {
    return slot >> 32 != 0;
}
static inline bool smart_slot_is_node(uint64_t slot) {
    return smart_slot_has_child(slot) && !smart_slot_is_leaf(slot);
}
/* True if the slot is the one of this byte. */
static inline bool smart_slot_has_byte(uint64_t slot, unsigned byte) {
    return smart_slot_byte(slot) == byte && slot != 0 && smart_slot_kind_of(slot) != SMART_KIND_CLOSED;
}
static inline unsigned smart_slot_type(uint64_t slot) {
    return (unsigned)(slot >> 8 & 0x1f);
}
static inline unsigned smart_slot_stamp(uint64_t slot) {
    return (unsigned)(slot >> 8 & 0x7f) | (unsigned)(slot >> 22 & 0x1ff) << 7;
}
static inline dm_addr smart_slot_addr(uint64_t slot) {
    return dm_addr_make((unsigned)(slot >> 16 & 0x3f), DM_DRAM, (slot >> 32) * SMART_UNIT);
}
static inline uint64_t smart_slot_with_byte(uint64_t slot, unsigned byte) {
    return (slot & ~UINT64_C(0xff)) | byte;
}
static inline uint64_t smart_slot_with_type(uint64_t slot, unsigned type) {
    return (slot & ~(UINT64_C(0x1f) << 8)) | (uint64_t)type << 8;
}
/* True if both lead to the same use of the same leaf. */
static inline bool smart_slot_same_child(uint64_t a, uint64_t b) {
    return (a ^ b) >> 8 == 0;
}

/* ---- headers of inner nodes -------------------------------------------------------------------------------------- */

/* A node that is being taken out has this bit in its type, so that what counts in it stays known; one that is out has
 * the type SMART_DEAD. */
enum { SMART_DYING = 8, SMART_DEAD = 31 };

#define SMART_TYPE_MASK (UINT64_C(0x1f) << 8)

static inline unsigned smart_header_depth(uint64_t header) {
    return (unsigned)(header & 0xff);
}
static inline unsigned smart_header_type(uint64_t header) {
    return (unsigned)(header >> 8 & 0x1f);
}
static inline bool smart_type_is_dying(unsigned type) {
    return type > SMART_DYING && type < 2 * SMART_DYING;
}
/* The type that states how many slots count; 0 for a node that is out. */
static inline unsigned smart_header_base(uint64_t header) {
    unsigned type = smart_header_type(header);
    return type < 2 * SMART_DYING ? type & (SMART_DYING - 1) : 0;
}
static inline unsigned smart_header_length(uint64_t header) {
    return (unsigned)(header >> 13 & 7);
}
static inline unsigned smart_header_byte(uint64_t header, unsigned i) {
    return (unsigned)(header >> (16 + 8 * i) & 0xff);
}
/* The depth of the byte that distinguishes the children. */
static inline unsigned smart_header_branch(uint64_t header) {
    return smart_header_depth(header) + smart_header_length(header);
}
/* A node at `depth` whose prefix is `length` bytes of the key from there on. */
static inline uint64_t smart_header(uint64_t key, unsigned depth, unsigned length, unsigned type) {
    uint64_t header = depth | (uint64_t)type << 8 | (uint64_t)length << 13;
    for (unsigned i = 0; i < length; i++) {
        header |= (uint64_t)smart_byte(key, depth + i) << (16 + 8 * i);
    }
    return header;
}
/* The bytes in front of the children of a node that a key at its depth led to, as the upper bytes of a number. */
static inline uint64_t smart_header_path(uint64_t header, uint64_t key) {
    uint64_t path = smart_low(key, smart_header_depth(header));
    for (unsigned i = 0; i < smart_header_length(header); i++) {
        path |= (uint64_t)smart_header_byte(header, i) << (8 * (SMART_KEY_BYTES - 1 - smart_header_depth(header) - i));
    }
    return path;
}
/* The index of the first byte of the prefix that differs from the key's; the length if none does. */
static inline unsigned smart_header_mismatch(uint64_t header, uint64_t key) {
    unsigned i = 0;
    while (i < smart_header_length(header) &&
           smart_header_byte(header, i) == smart_byte(key, smart_header_depth(header) + i)) {
        i++;
    }
    return i;
}
/* True if it may be the header of an inner node. */
static inline bool smart_header_plausible(uint64_t header) {
    return smart_header_length(header) <= SMART_PREFIX_MAX && smart_header_depth(header) < SMART_KEY_BYTES &&
           smart_header_branch(header) < SMART_KEY_BYTES && smart_header_type(header) != 0;
}

struct smart_node {
    uint64_t reverse; /* bits of a dm_addr */
    uint64_t header;
    uint64_t slots[SMART_SLOTS];
};
static_assert(sizeof(struct smart_node) == SMART_NODE_BYTES, "a node is laid out as remote memory has it");

static inline dm_addr smart_slot_at(dm_addr node, unsigned i) {
    return dm_addr_add(node, SMART_NODE_HEAD + (uint64_t)i * sizeof(uint64_t));
}
static inline uint32_t smart_node_read_bytes(unsigned capacity) {
    return SMART_NODE_HEAD + capacity * (uint32_t)sizeof(uint64_t);
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

enum smart_state {
    SMART_LIVE = 1,
    SMART_DELETED,
    SMART_REPLACED, /* another leaf takes its slot: look at the slot again */
};

enum {
    SMART_LEAF_WORD = 8, /* offset of the word with state, lock, stamp and a part of the checksum */
    SMART_LEAF_LOCK = 9,
    SMART_LEAF_CHECK = 12,
    SMART_LEAF_KEY = 18,
    SMART_LEAF_VALUE = SMART_LEAF_KEY + SMART_KEY_BYTES,
};
static_assert((int)SMART_LEAF_VALUE <= (int)DM_LINE, "head and key are in one line");

/* The part of the word that a compare-and-swap looks at. */
#define SMART_LEAF_MASK  UINT64_C(0xffffffff)
#define SMART_STATE_MASK UINT64_C(0xff)
#define SMART_LOCK_MASK  UINT64_C(0xff00)
static inline uint64_t smart_leaf_word(enum smart_state state, bool locked, unsigned stamp) {
    return (uint64_t)state | (uint64_t)locked << 8 | (uint64_t)(stamp & 0xffff) << 16;
}
static inline enum smart_state smart_word_state(uint64_t word) {
    return (enum smart_state)(word & 0xff);
}
static inline bool smart_word_locked(uint64_t word) {
    return word >> 8 & 1;
}
static inline unsigned smart_word_stamp(uint64_t word) {
    return (unsigned)(word >> 16 & 0xffff);
}

static inline uint64_t smart_leaf_word_of(const char *leaf) {
    uint64_t word;
    memcpy(&word, leaf + SMART_LEAF_WORD, sizeof(word));
    return word;
}
static inline uint64_t smart_leaf_reverse(const char *leaf) {
    uint64_t reverse;
    memcpy(&reverse, leaf, sizeof(reverse));
    return reverse;
}
static inline uint64_t smart_leaf_key(const char *leaf) {
    uint64_t key;
    memcpy(&key, leaf + SMART_LEAF_KEY, sizeof(key));
    return key;
}

/* What a run's leaves and nodes are like. */
struct smart_layout {
    uint32_t stored_bytes;           /* of what a leaf holds for a value: the value, or the word of its block */
    uint32_t padding;                /* of a key beyond its number, behind the value; no node branches on it */
    uint32_t leaf_bytes;             /* used; what is read and written */
    uint32_t leaf_alloc, node_alloc; /* taken from remote memory */
    uint32_t align;
    unsigned types;                     /* node types 1 .. types */
    uint16_t capacity[SMART_TYPES_MAX]; /* by type; that of type 0 is 0 */
};

struct smart_layout smart_layout_make(uint32_t key_bytes, uint32_t stored_bytes, uint32_t align, bool powers);

/* Slots that count in a node of that type; 0 for a type that is none. */
static inline unsigned smart_capacity(const struct smart_layout *layout, unsigned type) {
    return type <= layout->types ? layout->capacity[type] : 0;
}
/* The smallest type with that many slots. */
unsigned smart_type_for(const struct smart_layout *layout, unsigned slots);

/* Fills a leaf: everything but the reverse pointer. */
void smart_leaf_fill(const struct smart_layout *layout, char *leaf, bool locked, unsigned stamp, uint64_t key,
                     const void *stored);

/* True if the checksum is that of key and value. */
bool smart_leaf_consistent(const struct smart_layout *layout, const char *leaf);

/* The slot of a byte among `count`; -1: there is none. */
int smart_slots_find(const uint64_t *slots, unsigned count, unsigned byte);

#endif
