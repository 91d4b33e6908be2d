/* SPDX-License-Identifier: Apache-2.0
 *
 * Pathfinding and backtracking (paper, III-B and III-C). A descent goes from the root, byte by byte, down to the leaf's
 * word, through copies in the cache or, where there is none, through remote nodes. Copies may be stale, so
 *
 *  - "there is no child" is never believed of a copy: the node itself is read;
 *  - a node whose prefix differs from the key means that their paths separate above it. If the word that led there came
 *    from a copy, another client may have inserted a node between: the node that holds the word is read;
 *  - a leaf holds the range that it covers. If the key is outside, its reverse pointer leads to the node at which the
 *    descent continues, and that node is read. If that does not help either, the next descent reads every node from the
 *    root on.
 *
 * Each of these costs one read where it happens, and none while no copy is stale.
 *
 * Why the result of a descent is right: prefix, depth and address of a node never change and addresses are never reused
 * for another node. So a word that this operation has read leads, at that moment, to everything below it.
 */
#include "dolphin.h"

enum { STALE_MAX = 2 }; /* a descent that has found so many stale copies bypasses the cache */

/* ---- one node ---------------------------------------------------------------------------------------------------- */

/* 0 if the head that was read belongs to a node in use, else DOLPHIN_AGAIN. */
static int head_use(struct dolphin_client *client, const struct dolphin_head *head, uint64_t word) {
    if (!dolphin_node_plausible(head, word) || head->dead) {
        client->counts[DOLPHIN_DEAD_NODE]++;
        dolphin_cache_drop(client, word);
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
        dolphin_cache_put_words(client, word, &node->head, node->words, 0, DOLPHIN_CHILDREN_MAX);
    }
    return rc;
}

/* Reads what a key needs of a node of 256: its head and sixteen words. */
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
    if (rc == 0) {
        dolphin_cache_put(client, word, node, byte);
    }
    return rc;
}

/* What a descent needs of a node, copied or read. */
struct view {
    uint64_t prefix, child;
    bool is_fresh;
};

static int view_read(struct dolphin_client *client, uint64_t word, uint64_t key, struct view *view) {
    struct dolphin_node *node = client->node;
    unsigned depth = dolphin_word_depth(word);
    unsigned byte = dolphin_byte(key, depth);
    bool is_direct = dolphin_is_direct(word);
    client->counts[DOLPHIN_CACHE_MISS]++;
    int rc = is_direct ? direct_read(client, word, byte, node) : dolphin_node_read(client, word, node);
    if (rc == 0) {
        *view = (struct view){.prefix = node->head.prefix, .is_fresh = true};
        view->child = is_direct ? node->words[byte]
                                : dolphin_words_find(node->words, dolphin_capacity(dolphin_word_type(word)), byte,
                                                     depth == DOLPHIN_SPECIAL);
    }
    return rc;
}

static bool view_cached(struct dolphin_client *client, uint64_t word, uint64_t key, struct view *view) {
    struct dolphin_piece piece;
    unsigned depth = dolphin_word_depth(word);
    unsigned byte = dolphin_byte(key, depth);
    if (!client->cn->cache || depth > DOLPHIN_SPECIAL || !dolphin_cache_find(client, word, byte, &piece)) {
        return false;
    }
    *view =
        (struct view){.prefix = dolphin_piece_prefix(&piece),
                      .child = dolphin_words_find(piece.words, DOLPHIN_PIECE_WORDS, byte, depth == DOLPHIN_SPECIAL)};
    dolphin_words_charge(client, DOLPHIN_PIECE_WORDS);
    client->counts[DOLPHIN_CACHE_HIT]++;
    return true;
}

/* ---- descent ----------------------------------------------------------------------------------------------------- */

void dolphin_descent_restart(struct dolphin_descent *descent) {
    descent->start = 0;
    descent->is_fresh = true;
    descent->stale_count = STALE_MAX;
}

static int stale_retry(struct dolphin_client *client, struct dolphin_descent *descent) {
    descent->stale_count++;
    client->counts[DOLPHIN_STALE_CACHE]++;
    return ix_retry(client->ctx, DM_RETRY_STALE, &descent->attempts, 0);
}

int dolphin_descend(struct dolphin_client *client, uint64_t key, struct dolphin_descent *descent,
                    struct dolphin_target *target) {
    uint64_t word = descent->start != 0 ? descent->start : client->cn->root;
    bool reads = descent->is_fresh;
    struct dolphin_target above = {.parent = 0};
    for (;;) {
        struct view view = {0};
        unsigned depth = dolphin_word_depth(word);
        bool trusts = !reads && descent->stale_count < STALE_MAX;
        int rc = trusts && view_cached(client, word, key, &view) ? 0 : view_read(client, word, key, &view);
        DM_TRY(rc);
        bool is_other = rc == 0 && (dolphin_low(key, depth) != view.prefix);
        if (is_other && above.is_fresh) {
            *target = above;
            target->is_absent = true;
            target->prefix = view.prefix;
            return 0;
        }
        if (is_other && above.parent != 0) {
            /* The word that led here is stale, or paths separate above this node. The node that holds the word shows
             * which. */
            DM_TRY(stale_retry(client, descent));
            word = above.parent;
            above = (struct dolphin_target){.parent = 0};
            reads = true;
            continue;
        }
        if (rc == DOLPHIN_AGAIN || is_other) {
            DM_TRY(stale_retry(client, descent));
            dolphin_descent_restart(descent);
            word = client->cn->root;
            above = (struct dolphin_target){.parent = 0};
            continue;
        }
        if (view.child == 0 && !view.is_fresh) {
            reads = true;
            continue;
        }
        reads = false;
        above = (struct dolphin_target){
            .parent = word, .is_fresh = view.is_fresh, .child = view.child, .is_absent = view.child == 0};
        if (!dolphin_word_is_inner(view.child)) {
            *target = above;
            return 0;
        }
        word = view.child;
    }
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

enum dolphin_verdict dolphin_judge(struct dolphin_client *client, const struct dolphin_leaf_head *head, uint64_t key,
                                   struct dolphin_target *target) {
    if (!dolphin_leaf_plausible(head) || head->dead) {
        client->counts[DOLPHIN_DEAD_LEAF]++;
        return DOLPHIN_ELSEWHERE;
    }
    if (key >= head->min && key <= head->max) {
        return DOLPHIN_COVERS;
    }
    /* Another prefix: paths separate above this leaf. If no node has been inserted there, there is no leaf for the key.
     */
    bool is_parent = dolphin_word_with(head->parent, 0) == dolphin_word_with(target->parent, 0);
    if ((head->min ^ key) >> 8 != 0 && (target->is_fresh || is_parent)) {
        target->is_absent = true;
        target->prefix = head->min;
        return DOLPHIN_ABSENT;
    }
    return DOLPHIN_ELSEWHERE;
}

int dolphin_backtrack(struct dolphin_client *client, const struct dolphin_leaf_head *head,
                      const struct dolphin_target *target, struct dolphin_descent *descent) {
    bool leads = dolphin_leaf_plausible(head) && !head->dead && node_is_valid(client, head->parent);
    client->counts[DOLPHIN_BACKTRACK] += leads;
    if (leads && !target->is_fresh && dolphin_word_with(head->parent, 0) != dolphin_word_with(target->parent, 0)) {
        /* The copy that led here is of a node that has been replaced, or of one that is no longer the leaf's parent. */
        dolphin_cache_drop(client, target->parent);
    }
    descent->start = descent->stale_count >= STALE_MAX ? 0 : leads ? head->parent : target->parent;
    descent->is_fresh = true;
    return stale_retry(client, descent);
}
