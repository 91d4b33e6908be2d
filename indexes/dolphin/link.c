/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of the words of inner nodes. A word of 8 bytes is changed by one write, under the node's lock; readers use
 * single words, which are atomic. A full node is replaced by the next larger one in these steps, each of which has
 * landed before the next is sent. What other clients see in between:
 *
 *   1. The larger node is written, locked, and the old one is marked dead. Readers of the old one retry, and find it
 *      linked until step 3. No client can change either node.
 *   2. The children's reverse pointers lead to the larger node. Backtracking readers continue there: it holds what the
 *      old one held, and the new child.
 *   3. The node above leads to the larger one; all locks are released. Old copies still lead to the dead node, whose
 *      memory is therefore never reused.
 */
#include "dolphin.h"

/* Descends by remote reads from the root to the parent of `child` and leaves it in `node`. [waits] */
static int parent_find(struct dolphin_client *client, uint64_t key, dm_addr child, struct dolphin_node *node,
                       uint32_t *attempts, uint64_t *word) {
    *word = client->cn->root;
    for (;;) {
        int rc = dolphin_node_read(client, *word, node);
        DM_TRY(rc);
        uint64_t next = 0;
        if (rc == 0) {
            if (dolphin_node_child_index(node, child) >= 0) {
                return 0;
            }
            next = dolphin_words_find(node->words, dolphin_capacity(dolphin_word_type(*word)),
                                      dolphin_byte(key, dolphin_word_depth(*word)), false);
        }
        *word = next;
        if (!dolphin_word_is_inner(next)) {
            DM_TRY(ix_retry(client->ctx, DM_RETRY_STALE, attempts, 0));
            *word = client->cn->root;
        }
    }
}

/* Locks the parent of `child` and reads it into `node`. [waits] */
static int holder_lock(struct dolphin_client *client, uint64_t key, dm_addr child, struct dolphin_node *node,
                       uint32_t *attempts, uint64_t *word, int *position) {
    for (;;) {
        int rc = dolphin_node_lock(client, *word, node, attempts);
        DM_TRY(rc);
        if (rc == 0) {
            *position = dolphin_node_child_index(node, child);
            dolphin_words_charge(client, 4 * dolphin_capacity(dolphin_word_type(*word)));
            if (*position >= 0) {
                *word = dolphin_word_with(*word, 0);
                return 0;
            }
            dolphin_hold_post_last(client);
            DM_TRY(dm_commit(client->ctx));
        }
        DM_TRY(ix_retry(client->ctx, DM_RETRY_STALE, attempts, 0));
        DM_TRY(parent_find(client, key, child, node, attempts, word));
    }
}

int dolphin_parent_lock(struct dolphin_client *client, uint64_t key, dm_addr child, uint64_t hint, uint32_t *attempts,
                        struct dolphin_link *link) {
    *link = (struct dolphin_link){.node = hint};
    DM_TRY(holder_lock(client, key, child, client->node, attempts, &link->node, &link->position));
    link->parent = link->node;
    return 0;
}

int dolphin_link_plan(struct dolphin_client *client, unsigned byte, uint32_t *attempts, struct dolphin_link *link) {
    const struct dolphin_node *node = client->node;
    link->parent = link->node;
    link->position = dolphin_node_free_index(node, byte);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, link->position >= 0 ? (uint32_t)link->position + 1 : 0);
    if (link->position >= 0) {
        return 0;
    }
    enum dolphin_type type = (enum dolphin_type)(node->head.type + 1);
    dm_addr old = dolphin_word_addr(link->node);
    dm_addr larger;
    uint32_t bytes = dolphin_node_bytes(type);
    DM_TRY(dm_alloc(client->ctx, dm_addr_node(old), bytes, DOLPHIN_NODE_ALIGN, DM_MEM_INNER, &larger));
    link->upper = node->head.parent;
    int rc = holder_lock(client, node->head.prefix, old, client->upper, attempts, &link->upper, &link->upper_position);
    if (rc < 0) {
        dm_free(client->ctx, larger, bytes, DM_MEM_INNER);
        return rc;
    }
    link->grows = true;
    link->parent = dolphin_word(0, node->head.depth, type, larger);
    dolphin_node_init(client->fresh, type, node->head.depth, node->head.prefix, link->upper);
    client->fresh->head.lock = DOLPHIN_EXCLUSIVE;
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, 2 * dolphin_node_copy(client->fresh, node));
    link->position = dolphin_node_free_index(client->fresh, byte);
    return 0;
}

int dolphin_commit_between(struct dolphin_client *client, dm_addr before, dm_addr after) {
    return dm_addr_node(before) == dm_addr_node(after) ? 0 : dm_commit(client->ctx);
}

/* The last step: writes the word that makes the change visible, and releases everything. */
static int word_set(struct dolphin_client *client, const struct dolphin_link *link, uint64_t node, int position,
                    uint64_t word) {
    client->outs[0] = word;
    dm_post_write(client->ctx, dolphin_word_address(node, position), client->outs, sizeof(uint64_t));
    if (!dm_addr_is_null(link->late)) {
        DM_TRY(dm_commit(client->ctx));
        dm_post_write(client->ctx, link->late, link->late_image, client->cn->layout.used_bytes);
    }
    dolphin_hold_post_all(client);
    return dm_commit(client->ctx);
}

/* Steps 1 and 2. */
static int node_replace(struct dolphin_client *client, const struct dolphin_link *link) {
    struct dolphin_node *node = client->node;
    struct dolphin_node *larger = client->fresh;
    enum dolphin_type type = dolphin_word_type(link->parent);
    dm_addr addr = dolphin_word_addr(link->parent);
    node->head.dead = 1;
    dm_post_write(client->ctx, addr, larger, dolphin_node_bytes(type));
    dm_post_write(client->ctx, dm_addr_add(dolphin_word_addr(link->node), DOLPHIN_DEAD_OFFSET),
                  (const char *)node + DOLPHIN_DEAD_OFFSET, sizeof(uint64_t));
    DM_TRY(dm_commit(client->ctx));
    dolphin_hold_add(client, addr, DOLPHIN_EXCLUSIVE_UNDO);
    client->outs[1] = link->parent;
    for (unsigned i = 0; i < dolphin_capacity(type); i++) {
        if (larger->words[i] != 0) {
            dm_post_write(client->ctx, dolphin_parent_address(larger->words[i]), &client->outs[1], sizeof(uint64_t));
        }
    }
    client->counts[type == DOLPHIN_N16 ? DOLPHIN_GROW_16 : type == DOLPHIN_N48 ? DOLPHIN_GROW_48 : DOLPHIN_GROW_256]++;
    return dm_commit(client->ctx);
}

int dolphin_link_finish(struct dolphin_client *client, struct dolphin_link *link, uint64_t word) {
    unsigned byte = dolphin_word_byte(word);
    if (!link->grows) {
        DM_TRY(dm_commit(client->ctx));
        client->node->words[link->position] = word;
        int rc = word_set(client, link, link->node, link->position, word);
        dolphin_cache_put(client, link->node, client->node, byte);
        return rc;
    }
    client->fresh->words[link->position] = word;
    DM_TRY(node_replace(client, link));
    unsigned upper_byte = dolphin_word_byte(client->upper->words[link->upper_position]);
    uint64_t upper_word = dolphin_word_with(link->parent, upper_byte);
    client->upper->words[link->upper_position] = upper_word;
    int rc = word_set(client, link, link->upper, link->upper_position, upper_word);
    dolphin_cache_drop(client, link->node);
    dolphin_cache_put(client, link->upper, client->upper, upper_byte);
    dolphin_cache_put(client, link->parent, client->fresh, byte);
    return rc;
}
