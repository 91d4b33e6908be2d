/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves as the memory node's CPU works on them, under the mutex of their stripe. Clients read the same bytes
 * meanwhile, which is what the orders of stores below are about; layout.h has the argument.
 *
 * Between operations: slots below the counter hold the values of their keys, those above it hold no valid value. So a
 * value that a client finds under the key that it looks for was the key's when it sampled it, or was last when the key
 * left that slot, which was after the client had seen the key there.
 */
#include "leaf.h"

#include "btree.h"

static dm_addr leaf_addr(const struct xstore_server *server, uint32_t place) {
    return xstore_addr(server->node, place);
}

bool xstore_leaf_load(struct xstore_server *server, struct dm_ctx *ctx, uint32_t place, struct xstore_leaf *leaf) {
    const struct xstore_layout *layout = &server->layout;
    dm_addr addr = leaf_addr(server, place);
    if (place == 0 || !dm_addr_valid(ctx, addr, layout->leaf_bytes)) {
        return false;
    }
    uint64_t fences[2];
    leaf->place = place;
    dm_cpu_read(ctx, addr, leaf->words, layout->keys_bytes);
    dm_cpu_read(ctx, dm_addr_add(addr, layout->fence_offset), fences, sizeof(fences));
    leaf->low = fences[0];
    leaf->high = fences[1];
    return xstore_leaf_whole(layout, place, leaf->words);
}

void xstore_leaf_store(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_leaf *leaf,
                       struct xstore_head head) {
    leaf->words[1] = xstore_head_word(head);
    leaf->words[0] = xstore_leaf_check(leaf->place, leaf->words);
    dm_cpu_write(ctx, leaf_addr(server, leaf->place), leaf->words, (XSTORE_HEAD_WORDS + head.count) * 8);
}

void xstore_fences_store(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_leaf *leaf) {
    uint64_t fences[2] = {leaf->low, leaf->high};
    dm_addr addr = leaf_addr(server, leaf->place);
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

/* ---- values ----------------------------------------------------------------------------------------------------- */

static dm_addr slot_addr(const struct xstore_server *server, uint32_t place, unsigned slot) {
    return dm_addr_add(leaf_addr(server, place), xstore_slot_offset(&server->layout, slot));
}

void xstore_value_load(struct xstore_server *server, struct dm_ctx *ctx, uint32_t place, unsigned slot, void *value) {
    uint64_t words[XSTORE_VALUE_MAX / 8];
    dm_cpu_read(ctx, dm_addr_add(slot_addr(server, place, slot), 8), words, server->layout.value_words * 8);
    memcpy(value, words, server->layout.value_bytes);
}

void xstore_value_store(struct xstore_server *server, struct dm_ctx *ctx, uint32_t place, unsigned slot, uint64_t key,
                        const void *value) {
    const struct xstore_layout *layout = &server->layout;
    uint64_t words[1 + XSTORE_VALUE_MAX / 8];
    words[layout->value_words] = 0; /* what the value does not fill */
    memcpy(words + 1, value, layout->value_bytes);
    words[0] = xstore_value_check(key, words + 1, layout->value_words);
    dm_cpu_write(ctx, slot_addr(server, place, slot), words, layout->slot_bytes);
}

void xstore_value_clear(struct xstore_server *server, struct dm_ctx *ctx, uint32_t place, unsigned slot) {
    const uint64_t none = 0;
    dm_cpu_write(ctx, slot_addr(server, place, slot), &none, sizeof(none));
}

/* ---- locks ------------------------------------------------------------------------------------------------------ */

void xstore_leaf_unlock(struct xstore_server *server, struct dm_ctx *ctx, uint32_t place) {
    dm_mutex_unlock(ctx, xstore_stripe(server, place));
}

int xstore_leaf_lock(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, struct xstore_leaf *leaf) {
    uint32_t place;
    DM_TRY(xstore_descend(server, ctx, key, 0, &place));
    for (;;) {
        DM_TRY(dm_mutex_lock(ctx, xstore_stripe(server, place)));
        dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
        if (!xstore_leaf_load(server, ctx, place, leaf)) {
            xstore_leaf_unlock(server, ctx, place);
            return DM_ERR_CORRUPT;
        }
        if (key < leaf->high || leaf->high == UINT64_MAX) {
            return 0;
        }
        /* Split since, or not linked: keys only ever move right. */
        xstore_leaf_unlock(server, ctx, place);
        place = xstore_leaf_head(leaf).next;
    }
}
