/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner nodes in the compute node's cache. A node is kept in pieces of sixteen words (node.h), each under the node's
 * address plus the piece's number.
 */
#include "dolphin.h"

enum { PIECE_LINES = (sizeof(struct dolphin_piece) + DM_LINE - 1) / DM_LINE };

static unsigned level_of(uint64_t word) {
    return DOLPHIN_SPECIAL - dolphin_word_depth(word);
}

static dm_addr piece_key(uint64_t word, unsigned number) {
    return dm_addr_add(dolphin_word_addr(word), number);
}

void dolphin_cache_drop(struct dolphin_client *client, uint64_t word) {
    struct ix_cache *cache = client->cn->cache;
    bool is_there = true;
    for (unsigned number = 0; is_there && number < DOLPHIN_PIECES_MAX; number++) {
        uint32_t stamp;
        ix_cache_enter(cache, client->thread);
        is_there = ix_cache_find(cache, piece_key(word, number), &stamp) != NULL;
        ix_cache_leave(cache, client->thread);
        if (is_there) {
            ix_cache_drop(cache, piece_key(word, number), stamp);
        }
    }
}

/* After a piece has replaced an older copy: drops the pieces of children that larger nodes have replaced, which nothing
 * leads to any more. */
static void replaced_drop(struct dolphin_client *client, const struct dolphin_piece *old,
                          const struct dolphin_piece *piece) {
    for (unsigned i = 0; i < DOLPHIN_PIECE_WORDS; i++) {
        uint64_t child = old->words[i];
        if (child == piece->words[i] || !dolphin_word_is_inner(child)) {
            continue;
        }
        uint64_t now = dolphin_words_find(piece->words, DOLPHIN_PIECE_WORDS, dolphin_word_byte(child), false);
        if (dolphin_word_depth(now) == dolphin_word_depth(child) && dolphin_word_type(now) > dolphin_word_type(child)) {
            dolphin_cache_drop(client, child);
        }
    }
}

static void piece_put(struct dolphin_client *client, uint64_t word, unsigned number,
                      const struct dolphin_piece *piece) {
    struct ix_cache *cache = client->cn->cache;
    struct dolphin_piece old;
    uint32_t stamp;
    ix_cache_enter(cache, client->thread);
    const struct dolphin_piece *copy = ix_cache_find(cache, piece_key(word, number), &stamp);
    if (copy) {
        old = *copy;
    }
    ix_cache_leave(cache, client->thread);
    if (copy) {
        replaced_drop(client, &old, piece);
    }
    client->counts[DOLPHIN_CACHE_EVICTION] += ix_cache_insert(cache, piece_key(word, number), level_of(word), piece);
    ix_cache_charge(cache, client->ctx, level_of(word));
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, 2 * PIECE_LINES);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, copy ? DOLPHIN_PIECE_WORDS : 0);
}

static void node_put(struct dolphin_client *client, uint64_t word, const struct dolphin_node *node) {
    if (client->cn->cache) {
        unsigned count = dolphin_pieces_make(node, dolphin_is_direct(word), client->pieces);
        dm_charge(client->ctx, DM_WORK_KEY_COMPARE, 2 * dolphin_capacity(dolphin_word_type(word)));
        for (unsigned i = 0; i < count; i++) {
            piece_put(client, word, i, &client->pieces[i]);
        }
    }
}

void dolphin_cache_put(struct dolphin_client *client, uint64_t word, const struct dolphin_node *node, unsigned byte) {
    if (client->cn->cache && dolphin_is_direct(word)) {
        unsigned number = byte / DOLPHIN_PIECE_WORDS;
        dolphin_piece_make(&node->head, node->words + number * DOLPHIN_PIECE_WORDS, &client->pieces[0]);
        piece_put(client, word, number, &client->pieces[0]);
    } else {
        node_put(client, word, node);
    }
}

void dolphin_cache_put_words(struct dolphin_client *client, uint64_t word, const struct dolphin_head *head,
                             const uint64_t *words, unsigned begin, unsigned end) {
    if (client->cn->cache && !dolphin_is_direct(word)) {
        node_put(client, word, (const struct dolphin_node *)(const void *)head);
    }
    for (unsigned byte = begin; client->cn->cache && dolphin_is_direct(word) && byte < end;
         byte += DOLPHIN_PIECE_WORDS) {
        dolphin_piece_make(head, words + (byte - begin), &client->pieces[0]);
        piece_put(client, word, byte / DOLPHIN_PIECE_WORDS, &client->pieces[0]);
    }
}

bool dolphin_cache_find(struct dolphin_client *client, uint64_t word, unsigned byte, struct dolphin_piece *piece) {
    struct ix_cache *cache = client->cn->cache;
    uint32_t stamp;
    const struct dolphin_piece *copy;
    bool is_direct = dolphin_is_direct(word);
    unsigned number = is_direct ? byte / DOLPHIN_PIECE_WORDS : 0;
    unsigned finds = 0;
    ix_cache_enter(cache, client->thread);
    do {
        copy = ix_cache_find(cache, piece_key(word, number), &stamp);
        finds++;
    } while (copy && !is_direct && dolphin_piece_next(copy) <= byte && ++number < DOLPHIN_PIECES_MAX);
    if (copy) {
        *piece = *copy;
    }
    ix_cache_leave(cache, client->thread);
    for (; finds > 0; finds--) {
        ix_cache_charge(cache, client->ctx, level_of(word));
    }
    dm_charge(client->ctx, DM_WORK_LINE_COPY, PIECE_LINES);
    return copy != NULL;
}
