/* SPDX-License-Identifier: Apache-2.0
 *
 * New leaves, and full leaves (paper, III-B2: insert, second scenario, and SMO, both cases).
 *
 * A leaf is split in this order; each step has landed before the next is sent:
 *
 *   1. The new leaf, and the special node if one is made, are written; no client can reach them yet. After that, on the
 *      same memory node and with the same doorbell, the old leaf is written with its smaller range (case 1: its reverse
 *      pointer leads to the special node, and so to both leaves).
 *   2. The word in the node above leads to the new leaf, or to the special node; the locks are released.
 *
 * Between the two steps the keys of the new leaf are unreachable, and readers of them retry. The paper writes the old
 * leaf last. Then a key is in both leaves for a time, and a client that follows an old copy misses what was written to
 * the new one.
 */
#include "dolphin.h"

/* A compaction writes the bytes after the reverse pointer only: the client that holds the node above may be writing
 * that. */
enum { BODY = DOLPHIN_LEAF_MIN_OFFSET };

static void entry_put(struct dolphin_client *client, char *leaf, unsigned byte, const void *value) {
    const struct dolphin_layout *layout = &client->cn->layout;
    const uint64_t *words = dolphin_leaf_words_in(leaf);
    unsigned i = dolphin_leaf_home(layout, byte);
    while (dolphin_entry_state(words[i]) != DOLPHIN_FREE) {
        i = (i + 1) % layout->cap;
    }
    dolphin_leaf_put(layout, leaf, i, byte, value);
}

/* Copies entry i of the current leaf. */
static void entry_move(struct dolphin_client *client, char *leaf, unsigned i) {
    const struct dolphin_layout *layout = &client->cn->layout;
    dolphin_cell_get(layout, client->leaf + dolphin_cell_offset(layout, i), 0, false, client->scratch);
    entry_put(client, leaf, dolphin_entry_byte(dolphin_leaf_words_in(client->leaf)[i]), client->scratch);
}

/* Charges the images of leaves: all lines, and a word and a tag for each entry. */
static void leaf_charge(struct dolphin_client *client, uint32_t leaves) {
    const struct dolphin_layout *layout = &client->cn->layout;
    dm_charge(client->ctx, DM_WORK_LINE_COPY, leaves * layout->used_bytes / DM_LINE);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, 2 * leaves * layout->cap);
}

/* ---- new leaves -------------------------------------------------------------------------------------------------- */

static int spare_take(struct dolphin_client *client) {
    return dm_addr_is_null(client->spare_leaf) ? dm_alloc(client->ctx, DM_ANY_NODE, client->cn->layout.leaf_bytes,
                                                          DM_LINE, DM_MEM_LEAF, &client->spare_leaf)
                                               : 0;
}

/* Posts the write of a leaf for the key's prefix, with the key in it, to the spare leaf's address. */
static void leaf_post(struct dolphin_client *client, uint64_t key, const void *value, uint64_t parent) {
    const struct dolphin_layout *layout = &client->cn->layout;
    uint64_t min = dolphin_low(key, DOLPHIN_SPECIAL);
    dolphin_leaf_init(layout, client->right, min, dolphin_high(key, DOLPHIN_SPECIAL), 1, parent);
    entry_put(client, client->right, (unsigned)(key & 0xff), value);
    leaf_charge(client, 1);
    dm_post_write(client->ctx, client->spare_leaf, client->right, layout->used_bytes);
}

static int changed_meanwhile(struct dolphin_client *client, uint32_t *attempts) {
    DM_TRY(ix_retry(client->ctx, DM_RETRY_STALE, attempts, 0));
    return DOLPHIN_AGAIN;
}

/* Adds a leaf to a node that has no child for the key. */
static int leaf_add(struct dolphin_client *client, uint64_t key, const void *value, uint64_t parent,
                    uint32_t *attempts) {
    unsigned depth = dolphin_word_depth(parent);
    bool special = depth == DOLPHIN_SPECIAL;
    unsigned byte = special ? 0 : dolphin_byte(key, depth);
    leaf_post(client, key, value, dolphin_word_with(parent, 0));
    int rc = dolphin_node_lock(client, parent, client->node, attempts);
    DM_TRY(rc);
    if (rc == DOLPHIN_AGAIN ||
        dolphin_words_find(client->node->words, dolphin_capacity(dolphin_word_type(parent)), byte, special) != 0) {
        return changed_meanwhile(client, attempts);
    }
    struct dolphin_link link = {.node = dolphin_word_with(parent, 0)};
    DM_TRY(dolphin_link_plan(client, byte, attempts, &link));
    uint64_t word = dolphin_word(byte, 0, DOLPHIN_LEAF, client->spare_leaf);
    client->spare_leaf = DM_NULL;
    client->counts[DOLPHIN_NEW_LEAF]++;
    return dolphin_link_finish(client, &link, word);
}

/* Links the new node, which is locked. What other clients see at each step:
 *
 *   1. The child's reverse pointer leads nowhere. While it led to the parent, it proved that no node had been inserted
 *      between (dolphin_judge). Now readers read the parent itself.
 *   2. The parent leads to the new node.
 *   3. The child's reverse pointer leads to it too. Not earlier, as a client that follows it would find the new key
 *      while those that come from above do not. And not after the new node's lock is released, as the client that
 *      inserts the next node writes the reverse pointer too.
 */
static int path_link(struct dolphin_client *client, uint64_t parent, int position, uint64_t child, uint64_t word) {
    dm_addr reverse = dolphin_parent_address(child);
    uint64_t *outs = client->outs;
    outs[0] = word;
    outs[1] = 0;
    outs[2] = dolphin_word_with(word, 0);
    dolphin_hold_add(client, dolphin_word_addr(word), DOLPHIN_EXCLUSIVE_UNDO);
    dm_post_write(client->ctx, reverse, &outs[1], sizeof(uint64_t));
    DM_TRY(dolphin_commit_between(client, reverse, dolphin_word_addr(parent)));
    dm_post_write(client->ctx, dolphin_word_address(parent, position), &outs[0], sizeof(uint64_t));
    DM_TRY(dolphin_commit_between(client, dolphin_word_addr(parent), reverse));
    dm_post_write(client->ctx, reverse, &outs[2], sizeof(uint64_t));
    dolphin_hold_post_all(client);
    DM_TRY(dm_commit(client->ctx));
    client->node->words[position] = word;
    dolphin_cache_put(client, parent, client->node, dolphin_word_byte(word));
    return 0;
}

/* Inserts a node, with the child and a new leaf, where the paths of the key and of the child separate. The node is at
 * `node`, on the child's memory node. */
static int path_split(struct dolphin_client *client, uint64_t key, const void *value,
                      const struct dolphin_target *target, dm_addr node, uint32_t *attempts) {
    uint64_t parent = dolphin_word_with(target->parent, 0);
    unsigned depth = dolphin_difference(key, target->prefix);
    unsigned byte = dolphin_byte(key, dolphin_word_depth(parent));
    uint64_t word = dolphin_word(byte, depth, DOLPHIN_N4, node);
    dolphin_node_init(client->fresh, DOLPHIN_N4, depth, key, parent);
    client->fresh->head.lock = DOLPHIN_EXCLUSIVE;
    client->fresh->words[0] = dolphin_word_with(target->child, dolphin_byte(target->prefix, depth));
    client->fresh->words[1] = dolphin_word(dolphin_byte(key, depth), 0, DOLPHIN_LEAF, client->spare_leaf);
    leaf_post(client, key, value, dolphin_word_with(word, 0));
    dm_post_write(client->ctx, node, client->fresh, dolphin_node_bytes(DOLPHIN_N4));
    int rc = dolphin_node_lock(client, parent, client->node, attempts);
    DM_TRY(rc);
    int position = rc == 0 ? dolphin_node_child_index(client->node, dolphin_word_addr(target->child)) : -1;
    if (position < 0 || client->node->words[position] != target->child) {
        return changed_meanwhile(client, attempts);
    }
    client->spare_leaf = DM_NULL;
    client->counts[DOLPHIN_PATH_SPLIT]++;
    return path_link(client, parent, position, target->child, word);
}

int dolphin_new_leaf(struct dolphin_client *client, uint64_t key, const void *value,
                     const struct dolphin_target *target, uint32_t *attempts) {
    DM_TRY(spare_take(client));
    if (target->child == 0) {
        return leaf_add(client, key, value, target->parent, attempts);
    }
    unsigned fork = dolphin_difference(key, target->prefix);
    if (fork <= dolphin_word_depth(target->parent) || fork >= DOLPHIN_SPECIAL) {
        return changed_meanwhile(client, attempts);
    }
    dm_addr node;
    uint32_t bytes = dolphin_node_bytes(DOLPHIN_N4);
    unsigned mn = dm_addr_node(dolphin_word_addr(target->child));
    DM_TRY(dm_alloc(client->ctx, mn, bytes, DOLPHIN_NODE_ALIGN, DM_MEM_INNER, &node));
    int rc = path_split(client, key, value, target, node, attempts);
    if (rc != 0 && !dm_addr_is_null(client->spare_leaf)) {
        /* No client has seen it. */
        dm_free(client->ctx, node, bytes, DM_MEM_INNER);
    }
    return rc;
}

/* ---- full leaves ------------------------------------------------------------------------------------------------- */

/* Rewrites the leaf without its deleted entries and with the key. */
static int leaf_compact(struct dolphin_client *client, dm_addr leaf, unsigned byte, const void *value, unsigned live) {
    const struct dolphin_layout *layout = &client->cn->layout;
    const struct dolphin_leaf_head *head = dolphin_leaf_head_in(client->leaf);
    dolphin_leaf_init(layout, client->left, head->min, head->max, head->version + 1, head->parent);
    for (unsigned i = 0; i < live; i++) {
        entry_move(client, client->left, client->order[i]);
    }
    entry_put(client, client->left, byte, value);
    leaf_charge(client, 1);
    client->counts[DOLPHIN_LEAF_COMPACT]++;
    dm_post_write(client->ctx, dm_addr_add(leaf, BODY), client->left + BODY, layout->used_bytes - BODY);
    dolphin_hold_post_all(client);
    return dm_commit(client->ctx);
}

/* Fills the images of both halves and returns the byte where the right one begins. The larger part goes right. */
static unsigned halves_fill(struct dolphin_client *client, uint64_t key, const void *value, unsigned live,
                            uint64_t parent) {
    const struct dolphin_layout *layout = &client->cn->layout;
    const struct dolphin_leaf_head *head = dolphin_leaf_head_in(client->leaf);
    const uint64_t *words = dolphin_leaf_words_in(client->leaf);
    unsigned own = (unsigned)(key & 0xff);
    unsigned below = 0;
    while (below < live && dolphin_entry_byte(words[client->order[below]]) < own) {
        below++;
    }
    unsigned half = (live + 1) / 2;
    unsigned middle = half == below ? own : dolphin_entry_byte(words[client->order[half < below ? half : half - 1]]);
    uint64_t begin = dolphin_low(key, DOLPHIN_SPECIAL) | middle;
    dolphin_leaf_init(layout, client->left, head->min, begin - 1, head->version + 1, parent);
    dolphin_leaf_init(layout, client->right, begin, head->max, 1, parent);
    for (unsigned i = 0; i < live; i++) {
        bool left = dolphin_entry_byte(words[client->order[i]]) < middle;
        entry_move(client, left ? client->left : client->right, client->order[i]);
    }
    entry_put(client, own < middle ? client->left : client->right, own, value);
    leaf_charge(client, 2);
    return middle;
}

/* Posts both halves: the old leaf after the new one or, as published, last of all. */
static void halves_post(struct dolphin_client *client, struct dolphin_link *link, dm_addr leaf, dm_addr right) {
    uint32_t bytes = client->cn->layout.used_bytes;
    dm_post_write(client->ctx, right, client->right, bytes);
    if (client->cn->check_smo) {
        dm_post_write(client->ctx, leaf, client->left, bytes);
    } else {
        link->late = leaf;
        link->late_image = client->left;
    }
}

/* Case 1: a special node replaces the leaf in the node above. */
static int split_first(struct dolphin_client *client, dm_addr leaf, dm_addr right, uint64_t key, const void *value,
                       unsigned live, struct dolphin_link *link) {
    dm_addr node;
    DM_TRY(dm_alloc(client->ctx, dm_addr_node(leaf), dolphin_node_bytes(DOLPHIN_N4), DOLPHIN_NODE_ALIGN, DM_MEM_INNER,
                    &node));
    uint64_t word = dolphin_word(0, DOLPHIN_SPECIAL, DOLPHIN_N4, node);
    unsigned middle = halves_fill(client, key, value, live, word);
    dolphin_node_init(client->fresh, DOLPHIN_N4, DOLPHIN_SPECIAL, key, link->node);
    client->fresh->words[0] = dolphin_word(0, 0, DOLPHIN_LEAF, leaf);
    client->fresh->words[1] = dolphin_word(middle, 0, DOLPHIN_LEAF, right);
    dm_post_write(client->ctx, node, client->fresh, dolphin_node_bytes(DOLPHIN_N4));
    halves_post(client, link, leaf, right);
    client->counts[DOLPHIN_LEAF_SPLIT_FIRST]++;
    return dolphin_link_finish(client, link,
                               dolphin_word_with(word, dolphin_byte(key, dolphin_word_depth(link->node))));
}

/* Case 2: the existing special node gets another child. */
static int split_more(struct dolphin_client *client, dm_addr leaf, dm_addr right, uint64_t key, const void *value,
                      unsigned live, struct dolphin_link *link, uint32_t *attempts) {
    unsigned middle = halves_fill(client, key, value, live, link->node);
    DM_TRY(dolphin_link_plan(client, middle, attempts, link));
    dolphin_leaf_head_of(client->left)->parent = link->parent;
    dolphin_leaf_head_of(client->right)->parent = link->parent;
    halves_post(client, link, leaf, right);
    client->counts[DOLPHIN_LEAF_SPLIT_MORE]++;
    return dolphin_link_finish(client, link, dolphin_word(middle, 0, DOLPHIN_LEAF, right));
}

static int leaf_split(struct dolphin_client *client, dm_addr leaf, uint64_t key, const void *value, unsigned live,
                      uint32_t *attempts) {
    const struct dolphin_leaf_head head = *dolphin_leaf_head_in(client->leaf);
    uint32_t bytes = client->cn->layout.leaf_bytes;
    dm_addr right;
    /* On the same memory node as the old one: one doorbell keeps the order of their writes. */
    DM_TRY(dm_alloc(client->ctx, dm_addr_node(leaf), bytes, DM_LINE, DM_MEM_LEAF, &right));
    struct dolphin_link link;
    int rc = dolphin_parent_lock(client, head.min, leaf, head.parent, attempts, &link);
    bool special = rc == 0 && dolphin_word_depth(link.node) == DOLPHIN_SPECIAL;
    rc = rc < 0    ? rc
         : special ? split_more(client, leaf, right, key, value, live, &link, attempts)
                   : split_first(client, leaf, right, key, value, live, &link);
    if (rc == DM_ERR_NO_MEMORY) {
        dm_free(client->ctx, right, bytes, DM_MEM_LEAF);
    }
    return rc;
}

int dolphin_full_insert(struct dolphin_client *client, dm_addr leaf, uint64_t key, const void *value,
                        uint32_t *attempts) {
    const struct dolphin_layout *layout = &client->cn->layout;
    int rc = dolphin_lock_upgrade(client, leaf, attempts);
    if (rc != 0) {
        return rc;
    }
    unsigned byte = (unsigned)(key & 0xff);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, 3 * layout->cap);
    if (dolphin_leaf_find(layout, client->leaf, byte) >= 0) {
        return DM_EXISTS;
    }
    unsigned live = dolphin_leaf_sort(layout, client->leaf, client->order);
    /* With only a few free entries the leaf would soon be full again. */
    return live * 4 <= layout->cap * 3 ? leaf_compact(client, leaf, byte, value, live)
                                       : leaf_split(client, leaf, key, value, live, attempts);
}
