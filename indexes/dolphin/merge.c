/* SPDX-License-Identifier: Apache-2.0
 *
 * Removal of an empty leaf (paper, III-B2, SMO: "full or empty"; the paper does not say how). The client that deletes
 * the last key tries. If another client uses one of the leaves it gives up, and the leaf stays, empty. So no client
 * waits for a leaf while it holds one.
 *
 * Under an ordinary node the leaf is the only one for its prefix: it is marked dead and its word is cleared. Under a
 * special node its neighbour inherits the range: the leaf is marked dead, then the neighbour's range is widened, then
 * the words are changed. Each step has landed before the next, so at no moment do two live leaves cover one key. A dead
 * leaf is never reused, because old copies of words lead to it.
 */
#include "dolphin.h"

static bool is_empty(const struct dolphin_client *client) {
    const uint64_t *words = dolphin_leaf_words_in(client->leaf);
    for (unsigned i = 0; i < client->cn->layout.cap; i++) {
        enum dolphin_state state = dolphin_entry_state(words[i]);
        if (state != DOLPHIN_FREE && state != DOLPHIN_DELETED) {
            return false;
        }
    }
    return true;
}

static void dead_post(struct dolphin_client *client, dm_addr leaf) {
    struct dolphin_leaf_head *head = dolphin_leaf_head_of(client->leaf);
    head->dead = 1;
    dm_post_write(client->ctx, dm_addr_add(leaf, DOLPHIN_LEAF_DEAD_OFFSET),
                  (const char *)head + DOLPHIN_LEAF_DEAD_OFFSET, sizeof(uint64_t));
    client->counts[DOLPHIN_LEAF_MERGE]++;
}

static void word_post(struct dolphin_client *client, const struct dolphin_link *link, int position, uint64_t word) {
    uint64_t *words = client->node->words;
    words[position] = word;
    dm_post_write(client->ctx, dolphin_word_address(link->node, position), &words[position], sizeof(uint64_t));
}

/* The word of the neighbour to the left, or else to the right; 0 if the leaf has none. */
static uint64_t neighbour_find(const struct dolphin_client *client, const struct dolphin_link *link) {
    const uint64_t *words = client->node->words;
    unsigned capacity = dolphin_capacity(dolphin_word_type(link->node));
    unsigned byte = dolphin_word_byte(words[link->position]);
    uint64_t left = byte > 0 ? dolphin_words_find(words, capacity, byte - 1, true) : 0;
    return left != 0 && dolphin_word_byte(left) < byte ? left : dolphin_words_next(words, capacity, byte + 1);
}

/* Gives the range of the current leaf to the neighbour. */
static int range_merge(struct dolphin_client *client, dm_addr leaf, const struct dolphin_link *link,
                       uint64_t neighbour) {
    const struct dolphin_leaf_head *head = dolphin_leaf_head_in(client->leaf);
    struct dolphin_leaf_head *other = dolphin_leaf_head_of(client->left);
    dm_addr addr = dolphin_word_addr(neighbour);
    if (!dm_addr_valid(client->ctx, addr, client->cn->layout.leaf_bytes)) {
        return 0;
    }
    int rc = dolphin_lock_try(client, addr, client->left, sizeof(*other));
    if (rc != 0) {
        return rc < 0 ? rc : 0;
    }
    bool is_left = other->max + 1 == head->min;
    if (!dolphin_leaf_plausible(other) || other->dead || (!is_left && head->max + 1 != other->min)) {
        return 0;
    }
    dead_post(client, leaf);
    DM_TRY(dolphin_commit_between(client, leaf, addr));
    other->max = is_left ? head->max : other->max;
    other->min = is_left ? other->min : head->min;
    dm_post_write(client->ctx, dm_addr_add(addr, DOLPHIN_LEAF_MIN_OFFSET), &other->min, 2 * sizeof(uint64_t));
    DM_TRY(dolphin_commit_between(client, addr, dolphin_word_addr(link->node)));
    if (is_left) {
        word_post(client, link, link->position, 0);
    } else {
        /* The neighbour begins where the leaf did. */
        int position = dolphin_node_child_index(client->node, addr);
        word_post(client, link, link->position,
                  dolphin_word_with(neighbour, dolphin_word_byte(client->node->words[link->position])));
        word_post(client, link, position, 0);
    }
    client->counts[DOLPHIN_MERGE_RANGE]++;
    dolphin_hold_post_all(client);
    return dm_commit(client->ctx);
}

int dolphin_merge(struct dolphin_client *client, dm_addr leaf) {
    const struct dolphin_leaf_head *head = dolphin_leaf_head_in(client->leaf);
    int rc = dolphin_lock_try(client, leaf, client->leaf, client->cn->layout.keys_bytes);
    if (rc != 0) {
        return rc < 0 ? rc : 0;
    }
    if (!dolphin_leaf_plausible(head) || head->dead || !is_empty(client)) {
        return 0;
    }
    struct dolphin_link link;
    uint32_t attempts = 0;
    DM_TRY(dolphin_parent_lock(client, head->min, leaf, head->parent, &attempts, &link));
    unsigned byte = dolphin_word_byte(client->node->words[link.position]);
    uint64_t neighbour = dolphin_word_depth(link.node) == DOLPHIN_SPECIAL ? neighbour_find(client, &link) : 0;
    if (neighbour != 0) {
        rc = range_merge(client, leaf, &link, neighbour);
    } else {
        dead_post(client, leaf);
        DM_TRY(dolphin_commit_between(client, leaf, dolphin_word_addr(link.node)));
        word_post(client, &link, link.position, 0);
        dolphin_hold_post_all(client);
        rc = dm_commit(client->ctx);
    }
    dolphin_cache_put(client, link.node, client->node, byte);
    return rc;
}
