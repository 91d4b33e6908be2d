/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load: leaves are filled from sorted pairs, and the inner nodes above them are made from left to right. At each
 * depth at most one node, the rightmost, is incomplete. The first byte in which the prefixes of two adjacent leaves
 * differ shows how many of these nodes are complete. A node's type follows from its number of children, so it is
 * allocated when it is complete; then its children get their reverse pointers.
 */
#include "dolphin.h"

#include <stdlib.h>

struct loader {
    struct dolphin_cn *cn;
    struct dm_ctx *ctx;
    const struct ix_pairs *pairs;
    struct dolphin_node *nodes; /* the incomplete nodes, by depth */
    unsigned counts[DOLPHIN_KEY_BYTES];
    uint64_t *parents; /* device memory: sources of reverse pointers */
    char *leaf;
    char *value;
    uint64_t keys[DOLPHIN_CHILDREN_MAX + 1];
    unsigned key_count;
    uint64_t first; /* index of keys[0] among the pairs */
    unsigned next_mn;
};

static int parents_write(struct loader *loader, const uint64_t *words, unsigned capacity, uint64_t parent) {
    loader->parents[0] = parent;
    for (unsigned i = 0; i < capacity; i++) {
        if (words[i] != 0) {
            dm_post_write(loader->ctx, dolphin_parent_address(words[i]), loader->parents, sizeof(uint64_t));
        }
    }
    return dm_commit(loader->ctx);
}

/* Writes the node of a depth, which is complete: `counts` children, in order. */
static int node_write(struct loader *loader, unsigned mn, unsigned depth, uint64_t key, uint64_t *word) {
    struct dolphin_node *open = &loader->nodes[depth];
    struct dolphin_node *node = &loader->nodes[DOLPHIN_KEY_BYTES];
    enum dolphin_type type = dolphin_type_for(loader->counts[depth]);
    dm_addr addr;
    DM_TRY(dm_alloc(loader->ctx, mn, dolphin_node_bytes(type), DOLPHIN_NODE_ALIGN, DM_MEM_INNER, &addr));
    dolphin_node_init(node, type, depth, key, 0);
    for (unsigned i = 0; i < loader->counts[depth]; i++) {
        node->words[dolphin_node_free_index(node, dolphin_word_byte(open->words[i]))] = open->words[i];
    }
    dm_post_write(loader->ctx, addr, node, dolphin_node_bytes(type));
    *word = dolphin_word(0, depth, type, addr);
    DM_TRY(parents_write(loader, open->words, loader->counts[depth], *word));
    loader->counts[depth] = 0;
    return 0;
}

static void child_add(struct loader *loader, unsigned depth, uint64_t key, uint64_t word) {
    struct dolphin_node *open = &loader->nodes[depth];
    unsigned byte = dolphin_byte(key, depth);
    open->words[loader->counts[depth]++] = dolphin_word_with(word, byte);
}

/* Writes the leaves of one prefix, whose pairs are in keys, and a special node if there are several. */
static int prefix_write(struct loader *loader, unsigned count, uint64_t *word) {
    const struct dolphin_layout *layout = &loader->cn->layout;
    unsigned mn = loader->next_mn++ % loader->cn->shape->topology->mns;
    double each = loader->cn->params->fill * layout->cap;
    unsigned fill = each < 1 ? 1 : (unsigned)each;
    unsigned leaves = count <= layout->cap ? 1 : (count + fill - 1) / fill;
    uint64_t min = dolphin_low(loader->keys[0], DOLPHIN_SPECIAL);
    for (unsigned n = 0; n < leaves; n++) {
        unsigned begin = n * count / leaves;
        unsigned end = (n + 1) * count / leaves;
        uint64_t max = n + 1 == leaves ? dolphin_high(min, DOLPHIN_SPECIAL) : loader->keys[end] - 1;
        dm_addr addr;
        DM_TRY(dm_alloc(loader->ctx, mn, layout->leaf_bytes, DM_LINE, DM_MEM_LEAF, &addr));
        dolphin_leaf_init(layout, loader->leaf, min, max, 1, 0);
        for (unsigned i = begin; i < end; i++) {
            loader->pairs->value(loader->pairs, loader->keys[i], loader->value);
            dolphin_leaf_put(layout, loader->leaf, i - begin, (unsigned)(loader->keys[i] & 0xff), loader->value);
        }
        DM_TRY(dm_write(loader->ctx, addr, loader->leaf, layout->used_bytes));
        *word = dolphin_word(0, 0, DOLPHIN_LEAF, addr);
        if (leaves > 1) {
            child_add(loader, DOLPHIN_SPECIAL, min, *word);
        }
        min = max + 1;
    }
    return leaves > 1 ? node_write(loader, mn, DOLPHIN_SPECIAL, loader->keys[0], word) : 0;
}

/* Reads the keys of the next prefix, and one more; *count is the number that the prefix has. */
static int keys_read(struct loader *loader, unsigned *count) {
    uint64_t left = loader->pairs->count - loader->first;
    unsigned want = left < DOLPHIN_CHILDREN_MAX + 1 ? (unsigned)left : DOLPHIN_CHILDREN_MAX + 1;
    if (loader->pairs->keys(loader->pairs, loader->first, want, loader->keys) != want) {
        return DM_ERR_INVALID;
    }
    loader->key_count = want;
    unsigned n = 0;
    while (n < want && n < DOLPHIN_CHILDREN_MAX && (loader->keys[n] ^ loader->keys[0]) >> 8 == 0) {
        n++;
    }
    *count = n;
    return 0;
}

/* Adds a child, with any key below it, to the incomplete nodes; `next` is the first key after it. */
static int child_link(struct loader *loader, uint64_t key, uint64_t word, bool is_last, uint64_t next) {
    unsigned fork = is_last ? 0 : dolphin_difference(key, next);
    for (unsigned depth = DOLPHIN_SPECIAL - 1; depth > fork; depth--) {
        if (loader->counts[depth] > 0) {
            child_add(loader, depth, key, word);
            unsigned mn = loader->next_mn++ % loader->cn->shape->topology->mns;
            DM_TRY(node_write(loader, mn, depth, key, &word));
        }
    }
    child_add(loader, fork, key, word);
    return 0;
}

static int pairs_load(struct loader *loader) {
    while (loader->first < loader->pairs->count) {
        unsigned count;
        DM_TRY(keys_read(loader, &count));
        uint64_t word = 0;
        uint64_t key = loader->keys[0];
        bool is_last = count == loader->key_count;
        uint64_t next = is_last ? 0 : loader->keys[count];
        DM_TRY(prefix_write(loader, count, &word));
        DM_TRY(child_link(loader, key, word, is_last, next));
        loader->first += count;
    }
    /* The root exists already. */
    struct dolphin_node *root = &loader->nodes[DOLPHIN_KEY_BYTES];
    dolphin_node_init(root, DOLPHIN_N256, 0, 0, 0);
    for (unsigned i = 0; i < loader->counts[0]; i++) {
        root->words[dolphin_word_byte(loader->nodes[0].words[i])] = loader->nodes[0].words[i];
    }
    dm_post_write(loader->ctx, dolphin_word_addr(loader->cn->root), root, dolphin_node_bytes(DOLPHIN_N256));
    return parents_write(loader, root->words, DOLPHIN_CHILDREN_MAX, loader->cn->root);
}

int dolphin_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    struct dolphin_cn *cn = handle;
    (void)err;
    if (pairs->count == 0) {
        return 0;
    }
    int rc = DM_ERR_NO_MEMORY;
    struct loader *loader = calloc(1, sizeof(*loader));
    if (loader) {
        loader->cn = cn;
        loader->ctx = ctx;
        loader->pairs = pairs;
        loader->nodes = dm_local_alloc(ctx, (DOLPHIN_KEY_BYTES + 1) * (uint32_t)sizeof(struct dolphin_node));
        loader->parents = dm_local_alloc(ctx, DM_LINE);
        loader->leaf = dm_local_alloc(ctx, cn->layout.leaf_bytes);
        loader->value = calloc(1, cn->layout.value_bytes);
        if (loader->nodes && loader->parents && loader->leaf && loader->value) {
            rc = pairs_load(loader);
        }
        free(loader->value);
        free(loader);
    }
    return rc;
}
