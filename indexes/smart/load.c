/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load: the tree that inserts in order of the keys would leave, built from left to right. At each length of path
 * at most one node is open, the rightmost. The first byte in which two adjacent keys differ is where the first one's
 * leaf, and the nodes below that byte, are complete. A node gets its memory with its first child, because the child's
 * reverse pointer is an address in it.
 */
#include <stdlib.h>

#include "smart.h"

enum { KEYS_AT_ONCE = 1024 };

struct loader {
    struct smart_cn *cn;
    struct dm_ctx *ctx;
    const struct ix_pairs *pairs;
    struct smart_node *open; /* by length of the path */
    dm_addr addrs[SMART_KEY_BYTES];
    unsigned counts[SMART_KEY_BYTES];
    struct smart_node *node;
    char *leaf;
    char *value;
    struct ix_indirect *indirect;
    uint64_t *keys;
    uint64_t first, count; /* of ->keys */
};

static int node_alloc(struct loader *loader, dm_addr *addr) {
    const struct smart_layout *layout = &loader->cn->layout;
    return dm_alloc(loader->ctx, DM_ANY_NODE, layout->node_alloc, layout->align, DM_MEM_INNER, addr);
}

/* Takes the next slot of the open node with this length of path for a key below it. */
static int slot_take(struct loader *loader, unsigned length, dm_addr *slot, unsigned *index) {
    if (loader->counts[length] == 0) {
        DM_TRY(node_alloc(loader, &loader->addrs[length]));
        memset(&loader->open[length], 0, sizeof(loader->open[length]));
    }
    *index = loader->counts[length]++;
    *slot = smart_slot_at(loader->addrs[length], *index);
    return 0;
}

static int node_write(struct loader *loader, dm_addr addr, const struct smart_node *node) {
    unsigned capacity = smart_capacity(&loader->cn->layout, smart_header_type(node->header));
    return dm_write(loader->ctx, addr, node, smart_node_read_bytes(capacity));
}

/* Writes the open node of that length, whose parent is at length `above`; -1: the root's slot. */
static int node_close(struct loader *loader, unsigned length, int above, uint64_t key) {
    struct smart_node *node = &loader->open[length];
    dm_addr addr = loader->addrs[length];
    unsigned type = smart_type_for(&loader->cn->layout, loader->counts[length]);
    unsigned depth = (unsigned)(above + 1);
    dm_addr slot = dm_addr_make(0, DM_DRAM, SMART_ROOT_OFFSET);
    unsigned index = 0;
    loader->counts[length] = 0;
    if (above >= 0) {
        DM_TRY(slot_take(loader, (unsigned)above, &slot, &index));
    }
    node->reverse = slot.bits;
    unsigned own = length - depth;
    uint64_t word = smart_slot_node(0, type, addr);
    if (own > SMART_PREFIX_MAX) {
        /* A common prefix of seven bytes, below the root's slot: one node more. */
        struct smart_node *upper = loader->node;
        dm_addr at;
        DM_TRY(node_alloc(loader, &at));
        memset(upper, 0, sizeof(*upper));
        upper->reverse = slot.bits;
        upper->header = smart_header(key, depth, SMART_PREFIX_MAX, 1);
        depth += SMART_PREFIX_MAX + 1;
        own = length - depth;
        upper->slots[0] = smart_slot_with_byte(word, smart_byte(key, depth - 1));
        node->reverse = smart_slot_at(at, 0).bits;
        DM_TRY(node_write(loader, at, upper));
        word = smart_slot_node(0, 1, at);
    }
    node->header = smart_header(key, depth, own, type);
    DM_TRY(node_write(loader, addr, node));
    if (above >= 0) {
        loader->open[above].slots[index] = smart_slot_with_byte(word, smart_byte(key, (unsigned)above));
        return 0;
    }
    memcpy(loader->leaf, &word, sizeof(word));
    return dm_write(loader->ctx, slot, loader->leaf, sizeof(word));
}

static int leaf_write(struct loader *loader, uint64_t key, dm_addr slot, uint64_t *word) {
    const struct smart_layout *layout = &loader->cn->layout;
    dm_addr addr;
    DM_TRY(dm_alloc(loader->ctx, DM_ANY_NODE, layout->leaf_alloc, layout->align, DM_MEM_LEAF, &addr));
    loader->pairs->value(loader->pairs, key, loader->value);
    const void *stored = loader->value;
    DM_TRY(loader->indirect ? ix_indirect_load(loader->indirect, dm_addr_node(addr), key, loader->value, &stored) : 0);
    memcpy(loader->leaf, &slot.bits, sizeof(slot.bits));
    smart_leaf_fill(layout, loader->leaf, false, 0, key, stored);
    *word = smart_slot_leaf(0, addr, 0);
    return dm_write(loader->ctx, addr, loader->leaf, layout->leaf_bytes);
}

/* The key of pair i. */
static int key_at(struct loader *loader, uint64_t i, uint64_t *key) {
    if (i >= loader->first + loader->count) {
        uint64_t left = loader->pairs->count - i;
        uint64_t want = left < KEYS_AT_ONCE ? left : KEYS_AT_ONCE;
        if (loader->pairs->keys(loader->pairs, i, want, loader->keys) != want) {
            return DM_ERR_INVALID;
        }
        loader->first = i;
        loader->count = want;
    }
    *key = loader->keys[i - loader->first];
    return 0;
}

static int pairs_load(struct loader *loader) {
    int before = -1; /* the byte in which the key differs from the one before */
    uint64_t key;
    DM_TRY(key_at(loader, 0, &key));
    for (uint64_t i = 0; i < loader->pairs->count; i++) {
        bool is_last = i + 1 == loader->pairs->count;
        uint64_t next = 0;
        DM_TRY(is_last ? 0 : key_at(loader, i + 1, &next));
        int fork = is_last ? -1 : (int)smart_difference(key, next);
        int length = before > fork ? before : fork;
        dm_addr slot = dm_addr_make(0, DM_DRAM, SMART_ROOT_OFFSET);
        unsigned index = 0;
        uint64_t word;
        DM_TRY(length >= 0 ? slot_take(loader, (unsigned)length, &slot, &index) : 0);
        DM_TRY(leaf_write(loader, key, slot, &word));
        if (length < 0) {
            memcpy(loader->leaf, &word, sizeof(word));
            DM_TRY(dm_write(loader->ctx, slot, loader->leaf, sizeof(word)));
            break;
        }
        loader->open[length].slots[index] = smart_slot_with_byte(word, smart_byte(key, (unsigned)length));
        for (int depth = SMART_KEY_BYTES - 1; depth > fork; depth--) {
            if (loader->counts[depth] > 0) {
                int above = depth - 1;
                while (above > fork && loader->counts[above] == 0) {
                    above--;
                }
                DM_TRY(node_close(loader, (unsigned)depth, above, key));
            }
        }
        before = fork;
        key = next;
    }
    return loader->indirect ? ix_indirect_flush(loader->indirect) : 0;
}

int smart_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    struct smart_cn *cn = handle;
    (void)err;
    if (pairs->count == 0) {
        return 0;
    }
    struct loader *loader = calloc(1, sizeof(*loader));
    if (!loader) {
        return DM_ERR_NO_MEMORY;
    }
    struct ix_indirect_config config = {
        .values = cn->params->values, .value_bytes = cn->shape->value_bytes, .padding = ix_key_padding(cn->shape)};
    int rc = ix_indirect_open(ctx, &config, &loader->indirect);
    loader->cn = cn;
    loader->ctx = ctx;
    loader->pairs = pairs;
    loader->open = dm_local_alloc(ctx, (SMART_KEY_BYTES + 1) * (uint32_t)sizeof(struct smart_node));
    loader->leaf = dm_local_alloc(ctx, cn->layout.leaf_bytes);
    loader->value = calloc(1, cn->shape->value_bytes);
    loader->keys = calloc(KEYS_AT_ONCE, sizeof(*loader->keys));
    if (rc == 0 && loader->open && loader->leaf && loader->value && loader->keys) {
        loader->node = &loader->open[SMART_KEY_BYTES];
        rc = pairs_load(loader);
    } else {
        rc = DM_ERR_NO_MEMORY;
    }
    ix_indirect_close(loader->indirect);
    free(loader->keys);
    free(loader->value);
    free(loader);
    return rc;
}
