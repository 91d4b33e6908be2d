/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking a node out of the tree after deletes; the published index has neither. A node that has at most one child left,
 * a leaf, leaves the tree, and the slot above leads to that leaf, or to nothing.
 *
 *  1. The type in the header gets the bit DYING: no type change and no other shrinking from now on.
 *  2. Every slot that counts is frozen by a compare-and-swap from what it was seen to hold, all in one batch. An insert
 *     that came before has changed a slot; then all is undone. One that comes after fails and waits.
 *  3. The slot above is swapped. Until then readers of a frozen slot wait; a leaf that they have cached stays valid.
 *  4. The type becomes DEAD, and the leaf's reverse pointer is corrected.
 *
 * The memory of a dead node is not used again: addresses of its slots may be cached anywhere, and what makes them safe
 * is that they stay frozen.
 */
#include "smart.h"

struct shrink {
    struct smart_client *client;
    uint64_t key;
    dm_addr node;
    unsigned type, capacity, branch;
    uint64_t slots[SMART_SLOTS]; /* as they were before */
    bool frozen[SMART_SLOTS];
    uint64_t child; /* the leaf that is left; 0: none */
    uint32_t attempts;
};

static uint64_t frozen_word(uint64_t slot) {
    return slot == 0 ? smart_slot_kind(0, SMART_KIND_CLOSED)
                     : smart_slot_kind(smart_slot_byte(slot), SMART_KIND_FROZEN);
}

static void type_post(struct shrink *shrink, unsigned from, unsigned to, uint64_t *old) {
    struct dm_mask mask = {(uint64_t)from << 8, SMART_TYPE_MASK, (uint64_t)to << 8, SMART_TYPE_MASK};
    dm_post_masked_cas(shrink->client->ctx, dm_addr_add(shrink->node, sizeof(uint64_t)), mask, old);
}

/* Reads the node. DM_NOT_FOUND: it has too many children. [waits] */
static int node_look(struct shrink *shrink) {
    struct smart_client *client = shrink->client;
    struct smart_node *node = client->node;
    const struct smart_layout *layout = &client->cn->layout;
    DM_TRY(dm_read(client->ctx, shrink->node, node, smart_node_read_bytes(layout->capacity[1])));
    shrink->type = smart_header_type(node->header);
    shrink->capacity = smart_capacity(layout, shrink->type);
    if (shrink->capacity == 0) {
        return DM_NOT_FOUND;
    }
    if (shrink->capacity > layout->capacity[1]) {
        DM_TRY(dm_read(client->ctx, shrink->node, node, smart_node_read_bytes(shrink->capacity)));
    }
    smart_slots_charge(client, shrink->capacity);
    shrink->branch = smart_header_branch(node->header);
    for (unsigned i = 0; i < shrink->capacity; i++) {
        uint64_t slot = node->slots[i];
        shrink->slots[i] = slot;
        if (smart_slot_is_frozen(slot) || smart_slot_is_node(slot) || (smart_slot_has_child(slot) && shrink->child)) {
            return DM_NOT_FOUND;
        }
        shrink->child = smart_slot_has_child(slot) ? slot : shrink->child;
    }
    return 0;
}

/* Freezes the slots. DM_NOT_FOUND: one has changed. [waits] */
static int slots_freeze(struct shrink *shrink) {
    struct smart_client *client = shrink->client;
    for (unsigned i = 0; i < shrink->capacity; i++) {
        dm_post_cas(client->ctx, smart_slot_at(shrink->node, i), shrink->slots[i], frozen_word(shrink->slots[i]),
                    &client->olds[i]);
    }
    DM_TRY(dm_commit(client->ctx));
    bool all = true;
    for (unsigned i = 0; i < shrink->capacity; i++) {
        shrink->frozen[i] = client->olds[i] == shrink->slots[i];
        all = all && shrink->frozen[i];
    }
    return all ? 0 : DM_NOT_FOUND;
}

/* Puts everything back. [waits] */
static int undo(struct shrink *shrink) {
    struct smart_client *client = shrink->client;
    client->counts[SMART_SHRINK_UNDONE]++;
    for (unsigned i = 0; i < shrink->capacity; i++) {
        if (shrink->frozen[i]) {
            dm_post_cas(client->ctx, smart_slot_at(shrink->node, i), frozen_word(shrink->slots[i]), shrink->slots[i],
                        &client->olds[i]);
        }
    }
    DM_TRY(dm_commit(client->ctx));
    type_post(shrink, shrink->type | SMART_DYING, shrink->type, client->olds);
    return dm_commit(client->ctx);
}

/* Swaps the slot above. 0 with its address; DM_NOT_FOUND: no slot above leads to the node; or a failure. *unknown: the
 * slot may have been swapped, as the compare-and-swap itself failed. [waits] */
static int above_swap(struct shrink *shrink, dm_addr *above, bool *unknown) {
    struct smart_client *client = shrink->client;
    struct smart_at at = {0};
    DM_TRY(smart_start(client, shrink->key, (int)shrink->branch - 1, &at));
    for (;;) {
        if (!smart_slot_is_node(at.word)) {
            int rc = at.cached ? smart_refresh(client, shrink->key, &at) : DM_NOT_FOUND;
            if (rc != 0) {
                return rc;
            }
        } else if (dm_addr_equal(smart_slot_addr(at.word), shrink->node)) {
            unsigned byte = smart_slot_byte(at.word);
            uint64_t now =
                shrink->child ? smart_slot_with_byte(shrink->child, byte) : smart_slot_kind(byte, SMART_KIND_EMPTY);
            int rc = dm_cas(client->ctx, at.slot, at.word, now, client->olds);
            *unknown = rc < 0;
            DM_TRY(rc);
            if (client->olds[0] == at.word) {
                *above = at.slot;
                return 0;
            }
            at.word = client->olds[0];
            at.cached = false;
        } else {
            enum smart_found found;
            int rc = smart_step(client, shrink->key, &at, &found);
            if (rc != SMART_AGAIN) {
                return rc < 0 ? rc : DM_NOT_FOUND;
            }
        }
        DM_TRY(dm_retry(client->ctx, DM_RETRY_CAS, &shrink->attempts));
    }
}

int smart_shrink(struct smart_client *client, uint64_t key, const struct smart_at *at) {
    if (at->depth == 0 || smart_cache_children(client->cn->cache, client->ctx, key, at->depth - 1) > 1) {
        return 0;
    }
    struct shrink shrink = {.client = client, .key = key, .node = at->node};
    int rc = node_look(&shrink);
    if (rc != 0) {
        return rc < 0 ? rc : 0;
    }
    type_post(&shrink, shrink.type, shrink.type | SMART_DYING, client->olds);
    DM_TRY(dm_commit(client->ctx));
    if (smart_header_type(client->olds[0]) != shrink.type) {
        return 0;
    }
    dm_addr above = DM_NULL;
    rc = slots_freeze(&shrink);
    bool unknown = rc < 0;
    rc = rc == 0 ? above_swap(&shrink, &above, &unknown) : rc;
    if (rc != 0) {
        /* Also after a read that failed, as others wait at the frozen slots. */
        if (rc > 0 || rc == DM_ERR_RETRY_LIMIT || (rc == DM_ERR_IO && !unknown)) {
            DM_TRY(undo(&shrink));
        }
        return rc < 0 ? rc : 0;
    }
    client->counts[SMART_SHRINK]++;
    smart_cache_drop(client->cn->cache, key, at->depth - 1, at->node);
    type_post(&shrink, shrink.type | SMART_DYING, SMART_DEAD, NULL);
    if (shrink.child) {
        for (unsigned i = 0; i < shrink.capacity; i++) {
            if (shrink.slots[i] == shrink.child) {
                dm_post_cas(client->ctx, smart_slot_addr(shrink.child), smart_slot_at(shrink.node, i).bits, above.bits,
                            NULL);
            }
        }
    }
    return dm_commit(client->ctx);
}
