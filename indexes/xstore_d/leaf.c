/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves as the memory node's CPU works on them, under the mutex of their stripe. Clients read the same bytes at the
 * same time, so the order of the stores matters; layout.h has the argument.
 *
 * Invariant between operations: slots below the counter hold the values of their keys, slots above it hold no valid
 * value. So if a client sees a key in a slot and then reads a value of this key there, the value was current when the
 * client read it, or was the last one before the key left the slot, which happened after the client saw the key there.
 */
#include "leaf.h"

#include "btree.h"

static dm_addr leaf_addr(const struct xstore_server *server, uint32_t ref) {
    return xstore_addr(server->node, ref);
}

bool xstore_leaf_load(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, struct xstore_leaf *leaf) {
    const struct xstore_layout *layout = &server->layout;
    dm_addr addr = leaf_addr(server, ref);
    if (ref == 0 || !dm_addr_valid(ctx, addr, layout->leaf_bytes)) {
        return false;
    }
    uint64_t fences[2];
    leaf->ref = ref;
    dm_cpu_read(ctx, addr, leaf->words, layout->keys_bytes);
    dm_cpu_read(ctx, dm_addr_add(addr, layout->fence_offset), fences, sizeof(fences));
    leaf->low = fences[0];
    leaf->high = fences[1];
    dm_charge(ctx, DM_WORK_LINE_COPY, layout->keys_bytes / DM_LINE + 2);
    dm_charge(ctx, DM_WORK_HASH, ix_check_hashes(1 + xstore_leaf_head(leaf).count));
    return xstore_leaf_consistent(layout, ref, leaf->words);
}

void xstore_leaf_store(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_leaf *leaf,
                       struct xstore_head head) {
    leaf->words[1] = xstore_head_word(head);
    dm_charge(ctx, DM_WORK_LINE_COPY, head.count * 8 / DM_LINE + 1);
    dm_charge(ctx, DM_WORK_HASH, ix_check_hashes(1 + head.count));
    leaf->words[0] = xstore_leaf_check(leaf->ref, leaf->words);
    dm_cpu_write(ctx, leaf_addr(server, leaf->ref), leaf->words, (XSTORE_HEAD_WORDS + head.count) * 8);
}

void xstore_fences_store(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_leaf *leaf) {
    uint64_t fences[2] = {leaf->low, leaf->high};
    dm_addr addr = leaf_addr(server, leaf->ref);
    dm_cpu_write(ctx, dm_addr_add(addr, server->layout.fence_offset), fences, sizeof(fences));
}

int xstore_leaf_find(const struct xstore_leaf *leaf, uint64_t key) {
    unsigned count = xstore_leaf_head(leaf).count;
    for (unsigned i = 0; i < count; i++) {
        if (leaf->words[XSTORE_HEAD_WORDS + i] == key) {
            return (int)i;
        }
    }
    return -1;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static dm_addr slot_addr(const struct xstore_server *server, uint32_t ref, unsigned slot) {
    return dm_addr_add(leaf_addr(server, ref), xstore_slot_offset(&server->layout, slot));
}

void xstore_value_load(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned slot, void *value) {
    uint64_t words[XSTORE_VALUE_MAX / 8];
    dm_cpu_read(ctx, dm_addr_add(slot_addr(server, ref, slot), 8), words, server->layout.value_words * 8);
    memcpy(value, words, server->layout.value_bytes);
}

void xstore_value_store(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned slot, uint64_t key,
                        const void *value) {
    const struct xstore_layout *layout = &server->layout;
    uint64_t words[1 + XSTORE_VALUE_MAX / 8];
    ix_check_value(ctx, xstore_value_seed(key), value, layout->value_bytes, words);
    dm_cpu_write(ctx, slot_addr(server, ref, slot), words, layout->slot_bytes);
}

void xstore_value_clear(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned slot) {
    const uint64_t none = 0;
    dm_cpu_write(ctx, slot_addr(server, ref, slot), &none, sizeof(none));
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void block_write(struct xstore_server *server, struct dm_ctx *ctx, uint64_t ref, uint64_t key, const void *value,
                        uint64_t *check) {
    const struct xstore_layout *layout = &server->layout;
    uint64_t words[1 + XSTORE_VALUE_MAX / 8];
    ix_check_value(ctx, xstore_value_seed(key), value, layout->user_bytes, words);
    if (check) {
        *check = words[0];
        words[0] = 0;
    }
    dm_charge(ctx, DM_WORK_LINE_COPY, server->blocks.lines);
    dm_cpu_write(ctx, xstore_addr(server->node, ref), words, layout->block_bytes);
}

int xstore_block_take(struct xstore_server *server, struct dm_ctx *ctx, uint64_t *word) {
    uint32_t ref = 0;
    int rc = server->layout.block_bytes > 0 ? ix_blocks_take(&server->blocks, ctx, &ref) : 0;
    *word = ref;
    return rc;
}

const void *xstore_block_fill(struct xstore_server *server, struct dm_ctx *ctx, const uint64_t *word, uint64_t key,
                              const void *value, uint64_t *check) {
    if (*word == 0) {
        return value;
    }
    block_write(server, ctx, *word, key, value, check);
    return word;
}

void xstore_block_reveal(struct xstore_server *server, struct dm_ctx *ctx, uint64_t word, uint64_t check) {
    if (word != 0) {
        dm_cpu_write(ctx, xstore_addr(server->node, word), &check, sizeof(check));
    }
}

void xstore_block_free(struct xstore_server *server, struct dm_ctx *ctx, uint64_t word) {
    if (word != 0) {
        ix_blocks_free(&server->blocks, ctx, (uint32_t)word);
    }
}

void xstore_value_update(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned slot, uint64_t key,
                         const void *value) {
    uint64_t block;
    if (server->layout.block_bytes == 0) {
        xstore_value_store(server, ctx, ref, slot, key, value);
        return;
    }
    xstore_value_load(server, ctx, ref, slot, &block);
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
    block_write(server, ctx, block, key, value, NULL);
}

void xstore_value_fetch(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned slot, void *value) {
    const struct xstore_layout *layout = &server->layout;
    uint64_t block, words[XSTORE_VALUE_MAX / 8];
    if (layout->block_bytes == 0) {
        xstore_value_load(server, ctx, ref, slot, value);
        return;
    }
    xstore_value_load(server, ctx, ref, slot, &block);
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
    dm_cpu_read(ctx, dm_addr_add(xstore_addr(server->node, block), 8), words, layout->user_words * 8);
    memcpy(value, words, layout->user_bytes);
}

/* ---- locks ------------------------------------------------------------------------------------------------------- */

void xstore_leaf_unlock(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref) {
    dm_mutex_unlock(ctx, xstore_stripe(server, ref));
}

int xstore_leaf_lock(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, struct xstore_leaf *leaf) {
    uint32_t ref;
    DM_TRY(xstore_descend(server, ctx, key, 0, &ref));
    for (;;) {
        DM_TRY(dm_mutex_lock(ctx, xstore_stripe(server, ref)));
        dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
        if (!xstore_leaf_load(server, ctx, ref, leaf)) {
            xstore_leaf_unlock(server, ctx, ref);
            return DM_ERR_CORRUPT;
        }
        if (key < leaf->high || leaf->high == UINT64_MAX) {
            return 0;
        }
        /* The leaf was split since, or has no entry in a parent yet. Keys only move to the right. */
        xstore_leaf_unlock(server, ctx, ref);
        ref = xstore_leaf_head(leaf).next;
    }
}
