/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner nodes and their pieces; see node.h.
 */
#include "node.h"

#include <string.h>

static const unsigned capacities[DOLPHIN_TYPES] = {
    [DOLPHIN_N4] = 4, [DOLPHIN_N16] = 16, [DOLPHIN_N48] = 48, [DOLPHIN_N256] = 256};

unsigned dolphin_capacity(enum dolphin_type type) {
    return type < DOLPHIN_TYPES ? capacities[type] : 0;
}

uint32_t dolphin_node_bytes(enum dolphin_type type) {
    return (uint32_t)(sizeof(struct dolphin_head) + dolphin_capacity(type) * sizeof(uint64_t));
}

enum dolphin_type dolphin_type_for(unsigned children) {
    enum dolphin_type type = DOLPHIN_N4;
    while (capacities[type] < children) {
        type++;
    }
    return type;
}

bool dolphin_node_plausible(const struct dolphin_head *head, uint64_t word) {
    return head->magic == DOLPHIN_NODE_MAGIC && head->type == dolphin_word_type(word) &&
           head->depth == dolphin_word_depth(word) && head->depth <= DOLPHIN_SPECIAL &&
           head->prefix == dolphin_low(head->prefix, head->depth);
}

void dolphin_node_init(struct dolphin_node *node, enum dolphin_type type, unsigned depth, uint64_t key,
                       uint64_t parent) {
    memset(node, 0, dolphin_node_bytes(type));
    node->head = (struct dolphin_head){
        .magic = DOLPHIN_NODE_MAGIC,
        .type = (uint8_t)type,
        .depth = (uint8_t)depth,
        .prefix = dolphin_low(key, depth),
        .parent = parent,
    };
}

/* The byte is the top of a word, so that words compare as their bytes do. Neither search branches on a word: most
 * branches would be mispredicted. */
uint64_t dolphin_words_find(const uint64_t *words, unsigned count, unsigned byte, bool special) {
    uint64_t most = (uint64_t)byte << 56 | UINT64_MAX >> 8;
    uint64_t below = 0;
    uint64_t least = UINT64_MAX; /* less 1, so that 0 is the greatest */
    for (unsigned i = 0; i < count; i++) {
        uint64_t candidate = words[i] <= most ? words[i] : 0;
        below = candidate > below ? candidate : below;
        least = words[i] - 1 < least ? words[i] - 1 : least;
    }
    if (below != 0 && (special || dolphin_word_byte(below) == byte)) {
        return below;
    }
    return special ? least + 1 : 0;
}

uint64_t dolphin_words_next(const uint64_t *words, unsigned count, unsigned byte) {
    enum { LANES = 4 }; /* searches side by side, as each waits for its last comparison */
    uint64_t floor = byte > 0 ? (uint64_t)byte << 56 : 1;
    uint64_t next[LANES] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (unsigned i = 0; i < count; i += LANES) {
        for (unsigned k = 0; k < LANES && i + k < count; k++) {
            uint64_t candidate = words[i + k] >= floor ? words[i + k] : UINT64_MAX;
            next[k] = candidate < next[k] ? candidate : next[k];
        }
    }
    uint64_t low = next[0] < next[1] ? next[0] : next[1];
    uint64_t high = next[2] < next[3] ? next[2] : next[3];
    uint64_t least = low < high ? low : high;
    return least != UINT64_MAX ? least : 0;
}

int dolphin_node_free_index(const struct dolphin_node *node, unsigned byte) {
    if (node->head.type == DOLPHIN_N256) {
        return (int)byte;
    }
    for (unsigned i = 0; i < dolphin_capacity((enum dolphin_type)node->head.type); i++) {
        if (node->words[i] == 0) {
            return (int)i;
        }
    }
    return -1;
}

int dolphin_node_child_index(const struct dolphin_node *node, dm_addr child) {
    for (unsigned i = 0; i < dolphin_capacity((enum dolphin_type)node->head.type); i++) {
        if (node->words[i] != 0 && dm_addr_equal(dolphin_word_addr(node->words[i]), child)) {
            return (int)i;
        }
    }
    return -1;
}

unsigned dolphin_node_copy(struct dolphin_node *to, const struct dolphin_node *from) {
    unsigned count = 0;
    for (unsigned i = 0; i < dolphin_capacity((enum dolphin_type)from->head.type); i++) {
        if (from->words[i] != 0) {
            unsigned at = to->head.type == DOLPHIN_N256 ? dolphin_word_byte(from->words[i]) : count;
            assert(at < dolphin_capacity((enum dolphin_type)to->head.type));
            to->words[at] = from->words[i];
            count++;
        }
    }
    return count;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static void piece_begin(const struct dolphin_head *head, struct dolphin_piece *piece) {
    *piece = (struct dolphin_piece){.tag = (head->prefix & ~UINT64_C(0xff)) | (DOLPHIN_CHILDREN_MAX - 1)};
}

void dolphin_piece_make(const struct dolphin_head *head, const uint64_t *words, struct dolphin_piece *piece) {
    piece_begin(head, piece);
    memcpy(piece->words, words, sizeof(piece->words));
}

unsigned dolphin_pieces_make(const struct dolphin_node *node, bool is_direct,
                             struct dolphin_piece pieces[DOLPHIN_PIECES_MAX]) {
    unsigned made = 0;
    if (is_direct) {
        for (; made < DOLPHIN_PIECES_MAX; made++) {
            dolphin_piece_make(&node->head, node->words + made * DOLPHIN_PIECE_WORDS, &pieces[made]);
        }
        return made;
    }
    /* The words in order: the first one of each byte, by the byte. */
    unsigned capacity = dolphin_capacity((enum dolphin_type)node->head.type);
    uint64_t words[DOLPHIN_CHILDREN_MAX];
    uint64_t has[DOLPHIN_CHILDREN_MAX / 64] = {0};
    for (unsigned i = capacity; i-- > 0;) {
        if (node->words[i] != 0) {
            unsigned byte = dolphin_word_byte(node->words[i]);
            words[byte] = node->words[i];
            has[byte / 64] |= UINT64_C(1) << byte % 64;
        }
    }
    unsigned count = 0;
    piece_begin(&node->head, &pieces[0]);
    for (unsigned part = 0; part < DOLPHIN_CHILDREN_MAX / 64; part++) {
        for (uint64_t left = has[part]; left != 0; left &= left - 1) {
            unsigned byte = part * 64 + (unsigned)__builtin_ctzll(left);
            if (count == DOLPHIN_PIECE_WORDS) {
                pieces[made].tag = (pieces[made].tag & ~UINT64_C(0xff)) | (byte - 1);
                made++;
                piece_begin(&node->head, &pieces[made]);
                count = 0;
            }
            pieces[made].words[count++] = words[byte];
        }
    }
    return made + 1;
}
