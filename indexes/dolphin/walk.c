/* SPDX-License-Identifier: Apache-2.0
 *
 * Pathfinding and backtracking (paper, III-B and III-C). A descent goes from the root, byte by byte, through copies in
 * the cache and where there is none through remote nodes, down to the leaf's word. Copies may be old, so
 *  - "there is no child" is never believed of a copy: the node itself is read;
 *  - a node with a prefix that the key does not have means that paths part above it. If the word that led there came
 *    from a copy, somebody may have put a node in: the node that has the word is read;
 *  - a leaf says itself what it covers. If that is not the key, its reverse pointer leads to the node to go on from,
 *    which is read. If that does not help either, the next descent reads everything from the root on.
 * So each of these costs one read where it happens, and none where nothing was old.
 *
 * Why what a descent says is right: prefix, depth and address of a node never change and addresses are not used for
 * another node, so a word that this operation has read leads, at that moment, to everything below it.
 */
#include "dolphin.h"

enum { SURPRISES_MAX = 2 };

void dolphin_charge(struct dolphin_client *client) {
    if (client->cache_steps > 0) {
        dm_charge(client->ctx, DM_WORK_CACHE_PROBE, client->cache_steps);
        client->cache_steps = 0;
    }
}

/* ---- the cache -------------------------------------------------------------------------------------------------- */

static dm_addr piece_key(uint64_t word, unsigned number) {
    return dm_addr_add(dolphin_word_addr(word), number);
}

void dolphin_forget(struct dolphin_client *client, uint64_t word) {
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

/* A piece takes the place of an older one: nothing leads any more to children that larger ones have replaced. */
static void replaced_forget(struct dolphin_client *client, const struct dolphin_piece *old,
                            const struct dolphin_piece *piece) {
    for (unsigned i = 0; i < DOLPHIN_PIECE_WORDS; i++) {
        uint64_t child = old->words[i];
        if (child == piece->words[i] || !dolphin_word_is_inner(child)) {
            continue;
        }
        uint64_t now = dolphin_words_find(piece->words, DOLPHIN_PIECE_WORDS, dolphin_word_byte(child), false);
        if (dolphin_word_depth(now) == dolphin_word_depth(child) && dolphin_word_type(now) > dolphin_word_type(child)) {
            dolphin_forget(client, child);
        }
    }
}

static void piece_keep(struct dolphin_client *client, uint64_t word, unsigned number,
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
        replaced_forget(client, &old, piece);
    }
    unsigned level = DOLPHIN_SPECIAL - dolphin_word_depth(word);
    client->counts[DOLPHIN_CACHE_EVICTION] += ix_cache_insert(cache, piece_key(word, number), level, piece);
}

static void node_keep(struct dolphin_client *client, uint64_t word, const struct dolphin_node *node) {
    if (client->cn->cache) {
        unsigned count = dolphin_pieces_make(node, dolphin_is_direct(word), client->pieces);
        for (unsigned i = 0; i < count; i++) {
            piece_keep(client, word, i, &client->pieces[i]);
        }
    }
}

void dolphin_keep(struct dolphin_client *client, uint64_t word, const struct dolphin_node *node, unsigned byte) {
    if (client->cn->cache && dolphin_is_direct(word)) {
        unsigned number = byte / DOLPHIN_PIECE_WORDS;
        dolphin_piece_make(&node->head, node->words + number * DOLPHIN_PIECE_WORDS, &client->pieces[0]);
        piece_keep(client, word, number, &client->pieces[0]);
    } else {
        node_keep(client, word, node);
    }
}

void dolphin_keep_words(struct dolphin_client *client, uint64_t word, const struct dolphin_head *head,
                        const uint64_t *words, unsigned begin, unsigned end) {
    if (client->cn->cache && !dolphin_is_direct(word)) {
        node_keep(client, word, (const struct dolphin_node *)(const void *)head);
    }
    for (unsigned byte = begin; client->cn->cache && dolphin_is_direct(word) && byte < end;
         byte += DOLPHIN_PIECE_WORDS) {
        dolphin_piece_make(head, words + (byte - begin), &client->pieces[0]);
        piece_keep(client, word, byte / DOLPHIN_PIECE_WORDS, &client->pieces[0]);
    }
}

bool dolphin_cached_piece(struct dolphin_client *client, uint64_t word, unsigned byte, struct dolphin_piece *piece) {
    struct ix_cache *cache = client->cn->cache;
    uint32_t stamp;
    const struct dolphin_piece *copy;
    bool is_direct = dolphin_is_direct(word);
    unsigned number = is_direct ? byte / DOLPHIN_PIECE_WORDS : 0;
    ix_cache_enter(cache, client->thread);
    do {
        copy = ix_cache_find(cache, piece_key(word, number), &stamp);
        client->cache_steps += copy != NULL;
    } while (copy && !is_direct && dolphin_piece_next(copy) <= byte && ++number < DOLPHIN_PIECES_MAX);
    if (copy) {
        *piece = *copy;
    }
    ix_cache_leave(cache, client->thread);
    return copy != NULL;
}

/* ---- one node --------------------------------------------------------------------------------------------------- */

/* 0 if the head that was read is that of a node in use, else DOLPHIN_AGAIN. */
static int head_use(struct dolphin_client *client, const struct dolphin_head *head, uint64_t word) {
    if (!dolphin_node_plausible(head, word) || head->dead) {
        client->counts[DOLPHIN_DEAD_NODE]++;
        dolphin_forget(client, word);
        return DOLPHIN_AGAIN;
    }
    return 0;
}

static bool node_is_valid(struct dolphin_client *client, uint64_t word) {
    return dolphin_word_is_inner(word) &&
           dm_addr_valid(client->ctx, dolphin_word_addr(word), dolphin_node_bytes(dolphin_word_type(word)));
}

int dolphin_node_read(struct dolphin_client *client, uint64_t word, struct dolphin_node *node) {
    if (!node_is_valid(client, word)) {
        return DOLPHIN_AGAIN;
    }
    DM_TRY(dm_read(client->ctx, dolphin_word_addr(word), node, dolphin_node_bytes(dolphin_word_type(word))));
    dm_charge(client->ctx, DM_WORK_NODE_PROBE, 1);
    int rc = head_use(client, &node->head, word);
    if (rc == 0) {
        node_keep(client, word, node);
    }
    return rc;
}

/* Reads only what a key needs of a node of 256: its head and sixteen words. */
static int direct_read(struct dolphin_client *client, uint64_t word, unsigned byte, struct dolphin_node *node) {
    dm_addr addr = dolphin_word_addr(word);
    unsigned first = byte / DOLPHIN_PIECE_WORDS * DOLPHIN_PIECE_WORDS;
    uint64_t *words = node->words + first;
    if (!node_is_valid(client, word)) {
        return DOLPHIN_AGAIN;
    }
    dm_post_read(client->ctx, addr, node, sizeof(node->head));
    dm_post_read(client->ctx, dm_addr_add(addr, sizeof(node->head) + first * sizeof(uint64_t)), words,
                 DOLPHIN_PIECE_WORDS * sizeof(uint64_t));
    DM_TRY(dm_commit(client->ctx));
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, 1);
    int rc = head_use(client, &node->head, word);
    if (rc == 0 && client->cn->cache) {
        dolphin_piece_make(&node->head, words, &client->pieces[0]);
        piece_keep(client, word, first / DOLPHIN_PIECE_WORDS, &client->pieces[0]);
    }
    return rc;
}

/* What a descent wants to know of a node. */
struct view {
    uint64_t prefix, child;
    bool is_fresh;
};

static int view_read(struct dolphin_client *client, uint64_t word, uint64_t key, struct view *view) {
    struct dolphin_node *node = client->node;
    unsigned depth = dolphin_word_depth(word);
    unsigned byte = dolphin_byte(key, depth);
    bool is_direct = dolphin_is_direct(word);
    dolphin_charge(client);
    client->counts[DOLPHIN_CACHE_MISS]++;
    int rc = is_direct ? direct_read(client, word, byte, node) : dolphin_node_read(client, word, node);
    if (rc == 0) {
        *view = (struct view){.prefix = node->head.prefix, .is_fresh = true};
        view->child = is_direct ? node->words[byte]
                                : dolphin_words_find(node->words, dolphin_room(dolphin_word_type(word)), byte,
                                                     depth == DOLPHIN_SPECIAL);
    }
    return rc;
}

static bool view_cached(struct dolphin_client *client, uint64_t word, uint64_t key, struct view *view) {
    struct dolphin_piece piece;
    unsigned depth = dolphin_word_depth(word);
    unsigned byte = dolphin_byte(key, depth);
    if (!client->cn->cache || depth > DOLPHIN_SPECIAL || !dolphin_cached_piece(client, word, byte, &piece)) {
        return false;
    }
    *view =
        (struct view){.prefix = dolphin_piece_prefix(&piece),
                      .child = dolphin_words_find(piece.words, DOLPHIN_PIECE_WORDS, byte, depth == DOLPHIN_SPECIAL)};
    client->counts[DOLPHIN_CACHE_HIT]++;
    return true;
}

/* ---- descent ---------------------------------------------------------------------------------------------------- */

void dolphin_distrust(struct dolphin_walk *walk) {
    walk->start = 0;
    walk->is_fresh = true;
    walk->surprises = SURPRISES_MAX;
}

static int surprise(struct dolphin_client *client, struct dolphin_walk *walk) {
    walk->surprises++;
    client->counts[DOLPHIN_STALE_CACHE]++;
    return dolphin_retry(client, DM_RETRY_STALE, &walk->attempts);
}

int dolphin_descend(struct dolphin_client *client, uint64_t key, struct dolphin_walk *walk,
                    struct dolphin_place *place) {
    uint64_t word = walk->start != 0 ? walk->start : client->cn->root;
    bool reads = walk->is_fresh;
    struct dolphin_place above = {.parent = 0};
    for (;;) {
        struct view view = {0};
        unsigned depth = dolphin_word_depth(word);
        bool trusts = !reads && walk->surprises < SURPRISES_MAX;
        int rc = trusts && view_cached(client, word, key, &view) ? 0 : view_read(client, word, key, &view);
        DM_TRY(rc);
        bool is_other = rc == 0 && (dolphin_low(key, depth) != view.prefix);
        if (is_other && above.is_fresh) {
            *place = above;
            place->is_absent = true;
            place->prefix = view.prefix;
            dolphin_charge(client);
            return 0;
        }
        if (is_other && above.parent != 0) {
            /* The word that led here is an old one, or paths part above this node: the node that has the word knows. */
            DM_TRY(surprise(client, walk));
            word = above.parent;
            above = (struct dolphin_place){.parent = 0};
            reads = true;
            continue;
        }
        if (rc == DOLPHIN_AGAIN || is_other) {
            DM_TRY(surprise(client, walk));
            dolphin_distrust(walk);
            word = client->cn->root;
            above = (struct dolphin_place){.parent = 0};
            continue;
        }
        if (view.child == 0 && !view.is_fresh) {
            reads = true;
            continue;
        }
        reads = false;
        above = (struct dolphin_place){
            .parent = word, .is_fresh = view.is_fresh, .child = view.child, .is_absent = view.child == 0};
        if (!dolphin_word_is_inner(view.child)) {
            *place = above;
            dolphin_charge(client);
            return 0;
        }
        word = view.child;
    }
}

/* ---- leaves ----------------------------------------------------------------------------------------------------- */

enum dolphin_verdict dolphin_judge(struct dolphin_client *client, const struct dolphin_leaf_head *head, uint64_t key,
                                   struct dolphin_place *place) {
    if (!dolphin_leaf_plausible(head) || head->dead) {
        client->counts[DOLPHIN_DEAD_LEAF]++;
        return DOLPHIN_ELSEWHERE;
    }
    if (key >= head->min && key <= head->max) {
        return DOLPHIN_COVERS;
    }
    /* Another prefix: paths part above this leaf. If nobody has put a node in, there is no leaf for the key. */
    bool is_parent = dolphin_word_with(head->parent, 0) == dolphin_word_with(place->parent, 0);
    if ((head->min ^ key) >> 8 != 0 && (place->is_fresh || is_parent)) {
        place->is_absent = true;
        place->prefix = head->min;
        return DOLPHIN_ABSENT;
    }
    return DOLPHIN_ELSEWHERE;
}

int dolphin_backtrack(struct dolphin_client *client, const struct dolphin_leaf_head *head,
                      const struct dolphin_place *place, struct dolphin_walk *walk) {
    bool leads = dolphin_leaf_plausible(head) && !head->dead && node_is_valid(client, head->parent);
    client->counts[DOLPHIN_BACKTRACK] += leads;
    if (leads && !place->is_fresh && dolphin_word_with(head->parent, 0) != dolphin_word_with(place->parent, 0)) {
        /* The copy that led here is of a node that has been replaced, or is not the leaf's parent any more. */
        dolphin_forget(client, place->parent);
    }
    walk->start = walk->surprises >= SURPRISES_MAX ? 0 : leads ? head->parent : place->parent;
    walk->is_fresh = true;
    return surprise(client, walk);
}
