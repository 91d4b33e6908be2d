/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner nodes of Dolphin: those of an adaptive radix tree, with capacity for 4, 16, 48 or 256 children (paper, III-A).
 * All functions are pure. What comes from remote memory is checked by dolphin_node_plausible before it is believed.
 *
 *     remote   | head, 32 B | word[0 .. capacity) |      aligned to 32 bytes, so that the head is in one line
 *
 * A node at depth d distinguishes its children by byte d of the key (byte 0 is the highest). Its head holds the
 * complete prefix, bytes 0 .. d - 1. So path compression needs no second look at a leaf, and the head alone shows that
 * a key does not belong under the node. Prefix, depth and capacity of a node never change: a full node is replaced by a
 * larger one, and a path is split by a new node above. One word of 8 bytes describes one child:
 *
 *     word     | byte 8 | depth of the child 4 | type 3 | memory node 6 | offset / 32, 43 bits |      0: no child
 *
 * Words are stored in any order, except that in a node of 256 the word of byte b has index b. A node at depth 7 is the
 * "special" node of the paper: byte b leads to the leaf that begins at b, and a key belongs to the leaf with the
 * largest byte that is not above its own.
 */
#ifndef DM_INDEXES_DOLPHIN_NODE_H
#define DM_INDEXES_DOLPHIN_NODE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/dm.h"

enum dolphin_type { DOLPHIN_NONE, DOLPHIN_LEAF, DOLPHIN_N4, DOLPHIN_N16, DOLPHIN_N48, DOLPHIN_N256, DOLPHIN_TYPES };

enum {
    DOLPHIN_KEY_BYTES = 8,
    DOLPHIN_SPECIAL = 7, /* depth of the nodes that lead to leaves by range: length(key) in the paper's counting */
    DOLPHIN_NODE_ALIGN = 32,
    DOLPHIN_CHILDREN_MAX = 256,
    DOLPHIN_NODE_MAGIC = 0x4e504c44,
};

struct dolphin_head {
    uint64_t lock; /* the lock, see lock.c; only structure changes take that of an inner node */
    uint32_t magic;
    uint8_t type, depth;
    uint8_t dead; /* replaced by a larger node; the content no longer changes */
    uint8_t unused;
    uint64_t prefix; /* of every key below; the bytes from `depth` on are 0 */
    uint64_t parent; /* the reverse pointer: a word that leads to the node above, with byte 0 */
};
static_assert(sizeof(struct dolphin_head) == 32, "the head is laid out as remote memory has it");
enum { DOLPHIN_DEAD_OFFSET = 8, DOLPHIN_PARENT_OFFSET = 24 }; /* of the 8 bytes with `dead`, and of `parent` */

/* A node in local memory: the head, and capacity for the words of the largest type. */
struct dolphin_node {
    struct dolphin_head head;
    uint64_t words[DOLPHIN_CHILDREN_MAX];
};

/* Makes a word. The depth of a leaf is 0. */
static inline uint64_t dolphin_word(unsigned byte, unsigned depth, enum dolphin_type type, dm_addr addr) {
    return (uint64_t)byte << 56 | (uint64_t)depth << 52 | (uint64_t)type << 49 | (uint64_t)dm_addr_node(addr) << 43 |
           dm_addr_offset(addr) >> 5;
}
static inline unsigned dolphin_word_byte(uint64_t word) {
    return (unsigned)(word >> 56);
}
static inline unsigned dolphin_word_depth(uint64_t word) {
    return (unsigned)(word >> 52 & 15);
}
static inline enum dolphin_type dolphin_word_type(uint64_t word) {
    return (enum dolphin_type)(word >> 49 & 7);
}
static inline dm_addr dolphin_word_addr(uint64_t word) {
    return dm_addr_make((unsigned)(word >> 43 & 63), DM_DRAM, (word & ((UINT64_C(1) << 43) - 1)) << 5);
}
static inline bool dolphin_word_is_inner(uint64_t word) {
    return dolphin_word_type(word) >= DOLPHIN_N4 && dolphin_word_type(word) <= DOLPHIN_N256;
}
/* The word of the same child for another byte. */
static inline uint64_t dolphin_word_with(uint64_t word, unsigned byte) {
    return (word & ~(UINT64_C(0xff) << 56)) | (uint64_t)byte << 56;
}

/* Byte d of a key; the key with the bytes from d on cleared, or set; the first byte in which two keys differ, 8 if they
 * are equal. */
static inline unsigned dolphin_byte(uint64_t key, unsigned depth) {
    return (unsigned)(key >> (8 * (7 - depth)) & 0xff);
}
static inline uint64_t dolphin_low(uint64_t key, unsigned depth) {
    return depth >= DOLPHIN_KEY_BYTES ? key : key & ~(UINT64_MAX >> (8 * depth));
}
static inline uint64_t dolphin_high(uint64_t key, unsigned depth) {
    return depth >= DOLPHIN_KEY_BYTES ? key : key | UINT64_MAX >> (8 * depth);
}
static inline unsigned dolphin_difference(uint64_t a, uint64_t b) {
    return a == b ? DOLPHIN_KEY_BYTES : (unsigned)__builtin_clzll(a ^ b) / 8;
}

/* The number of children that a node of this type can hold, and its bytes in remote memory. */
unsigned dolphin_capacity(enum dolphin_type type);
uint32_t dolphin_node_bytes(enum dolphin_type type);

/* The smallest type with capacity for that many children. */
enum dolphin_type dolphin_type_for(unsigned children);

/* True if the head may be that of the node which `word` leads to. */
bool dolphin_node_plausible(const struct dolphin_head *head, uint64_t word);

/* Initialises an empty node. */
void dolphin_node_init(struct dolphin_node *node, enum dolphin_type type, unsigned depth, uint64_t key,
                       uint64_t parent);

/* The word that leads to keys with this byte at the node's depth; 0 if there is none. At ordinary depths it is the
 * byte's own word; at special depth it is the word with the largest byte not above this one, or with the least byte if
 * all are above. `count` words in any order. */
uint64_t dolphin_words_find(const uint64_t *words, unsigned count, unsigned byte, bool special);

/* The word with the least byte that is not below `byte`; 0 if there is none. */
uint64_t dolphin_words_next(const uint64_t *words, unsigned count, unsigned byte);

/* The index where a word with this byte may be stored; -1: the node is full. */
int dolphin_node_free_index(const struct dolphin_node *node, unsigned byte);

/* The index of the word that leads to `child`; -1: there is none. */
int dolphin_node_child_index(const struct dolphin_node *node, dm_addr child);

/* Copies the words of a node into an empty one and returns their number. */
unsigned dolphin_node_copy(struct dolphin_node *to, const struct dolphin_node *from);

/* ---- pieces: how a compute node's cache keeps inner nodes -------------------------------------------------------- */

/* Copies in the cache have one size, but inner nodes have from 1 to 256 children. So a node is kept in pieces of
 * sixteen words, as many as the paper's special nodes have. The key of a piece is the node's address plus the piece's
 * number; nodes are aligned to 32 bytes and have at most 16 pieces, so these addresses are unused. In a node of 256
 * that is not a special one, piece i has the words of bytes 16 i .. 16 i + 15; in all other nodes words are sorted, and
 * each piece holds the first byte of the next piece. Pieces of one node may be of different age. Like everything in the
 * cache they are hints, which the operation that follows one verifies. */
enum { DOLPHIN_PIECE_WORDS = 16, DOLPHIN_PIECES_MAX = DOLPHIN_CHILDREN_MAX / DOLPHIN_PIECE_WORDS };
static_assert((int)DOLPHIN_PIECES_MAX <= (int)DOLPHIN_NODE_ALIGN, "a piece's number fits below a node's address");

struct dolphin_piece {
    uint64_t
        tag; /* the node's prefix; in its last byte, which is 0 in a prefix, the first byte of the next piece less 1 */
    uint64_t words[DOLPHIN_PIECE_WORDS]; /* 0: no child */
};
static_assert(sizeof(struct dolphin_piece) == 136, "a piece costs a cache its words and eight bytes");

static inline uint64_t dolphin_piece_prefix(const struct dolphin_piece *piece) {
    return piece->tag & ~UINT64_C(0xff);
}
/* The first byte of the next piece; 256: there is none. */
static inline unsigned dolphin_piece_next(const struct dolphin_piece *piece) {
    return (unsigned)(piece->tag & 0xff) + 1;
}

/* True if the pieces of the node that `word` leads to are found by number, false if they are sorted. */
static inline bool dolphin_is_direct(uint64_t word) {
    return dolphin_word_type(word) == DOLPHIN_N256 && dolphin_word_depth(word) != DOLPHIN_SPECIAL;
}

/* Makes all pieces of a node and returns their number. */
unsigned dolphin_pieces_make(const struct dolphin_node *node, bool is_direct,
                             struct dolphin_piece pieces[DOLPHIN_PIECES_MAX]);

/* Makes one piece of a node of 256 from its sixteen words. */
void dolphin_piece_make(const struct dolphin_head *head, const uint64_t *words, struct dolphin_piece *piece);

#endif
