/* SPDX-License-Identifier: Apache-2.0
 *
 * The descent (paper, 4.1 and 4.2): from the deepest cached slot of the key, or from the root's.
 *
 * What may be believed. A node's path from the root never changes, its memory is not used for another node, and a slot
 * keeps its byte. So the address of a slot means the same keys for ever, and a slot that was read and is not frozen is
 * in the tree at that moment. A live leaf with the stamp of its slot and the key is the key's leaf, however old the
 * slot is. But that a key is absent follows only from a slot that this operation has read (smart_confirm): the reverse
 * pointer of what a cached slot leads to is corrected after the slot has changed, so for a while it denies the change.
 */
#include "smart.h"

static dm_addr root_slot(void) {
    return dm_addr_make(0, DM_DRAM, SMART_ROOT_OFFSET);
}

int smart_start(struct smart_client *client, uint64_t key, int longest, struct smart_at *at) {
    struct smart_cache_hit hit;
    if (longest >= 0 && smart_cache_search(client->cn->cache, client->ctx, key, (unsigned)longest, &hit)) {
        client->counts[SMART_CACHE_HIT]++;
        at->word = hit.word;
        at->node = hit.node;
        at->index = hit.index;
        at->slot = smart_slot_at(hit.node, hit.index);
        at->depth = hit.length + 1;
        at->cached = true;
        return 0;
    }
    client->counts[SMART_CACHE_MISS]++;
    DM_TRY(dm_read(client->ctx, root_slot(), client->olds, sizeof(uint64_t)));
    at->word = client->olds[0];
    at->node = DM_NULL;
    at->index = 0;
    at->slot = root_slot();
    at->depth = 0;
    at->cached = false;
    return 0;
}

static void copy_forget(struct smart_client *client, uint64_t key, const struct smart_at *at) {
    if (at->depth > 0) {
        smart_cache_drop(client->cn->cache, key, at->depth - 1, at->node);
    }
}

int smart_refresh(struct smart_client *client, uint64_t key, struct smart_at *at) {
    if (at->cached) {
        copy_forget(client, key, at);
    }
    DM_TRY(dm_read(client->ctx, at->slot, client->olds, sizeof(uint64_t)));
    at->word = client->olds[0];
    at->cached = false;
    return 0;
}

int smart_confirm(struct smart_client *client, uint64_t key, struct smart_at *at) {
    if (!at->cached || !client->cn->params->confirm) {
        return 0;
    }
    client->counts[SMART_CONFIRM]++;
    DM_TRY(dm_read(client->ctx, at->slot, client->olds, sizeof(uint64_t)));
    at->cached = false;
    if (client->olds[0] == at->word) {
        return 0;
    }
    copy_forget(client, key, at);
    at->word = client->olds[0];
    DM_TRY(dm_retry(client->ctx, DM_RETRY_STALE, &at->attempts));
    return SMART_AGAIN;
}

/* What the slot leads to is not what it should be: reads the slot again. Returns SMART_AGAIN or a failure. [waits] */
static int stale(struct smart_client *client, uint64_t key, struct smart_at *at, enum smart_counter counter) {
    if (at->cached) {
        client->counts[counter]++;
        DM_TRY(dm_retry(client->ctx, DM_RETRY_STALE, &at->attempts));
    } else {
        DM_TRY(ix_retry(client->ctx, DM_RETRY_CAS, &at->attempts, 0));
    }
    DM_TRY(smart_refresh(client, key, at));
    return SMART_AGAIN;
}

/* Corrects the reverse pointer of what a slot that was just read leads to. */
static int reverse_repair(struct smart_client *client, const struct smart_at *at, uint64_t reverse) {
    client->counts[SMART_REVERSE_REPAIR]++;
    dm_post_cas(client->ctx, smart_slot_addr(at->word), reverse, at->slot.bits, NULL);
    return dm_commit_async(client->ctx);
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

/* Another client replaces the leaf, or takes the node out: waits until the slot has changed. */
static int replaced_wait(struct smart_client *client, uint64_t key, struct smart_at *at) {
    client->counts[SMART_LOCK_CONFLICT]++;
    DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, &at->attempts, 0));
    DM_TRY(smart_refresh(client, key, at));
    return SMART_AGAIN;
}

/* The same with leases, of a leaf that is in client->leaf: reads the slot again. 0 if it still leads to the leaf, which
 * may then be taken for the key's (lease.c); SMART_AGAIN; or a failure. [waits] */
static int claimed_settle(struct smart_client *client, uint64_t key, struct smart_at *at) {
    uint64_t seen = at->word;
    client->counts[SMART_LOCK_CONFLICT]++;
    DM_TRY(smart_refresh(client, key, at));
    if (at->word != seen) {
        DM_TRY(dm_retry(client->ctx, DM_RETRY_LOCK, &at->attempts));
        return SMART_AGAIN;
    }
    if (at->replaces && !smart_lease_is_over(client, at, seen)) {
        DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, &at->attempts, 0));
        return SMART_AGAIN;
    }
    at->is_claimed = true;
    return 0;
}

/* Reads the leaf that the slot leads to. 0 with *found, SMART_AGAIN, or a failure. [waits] */
static int leaf_follow(struct smart_client *client, uint64_t key, struct smart_at *at, enum smart_found *found) {
    const struct smart_layout *layout = &client->cn->layout;
    dm_addr addr = smart_slot_addr(at->word);
    DM_TRY(dm_read(client->ctx, addr, client->leaf, layout->leaf_bytes));
    smart_leaf_charge(client);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, 1 + (layout->padding + 7) / 8);
    *found = SMART_FOUND_LEAF;
    at->is_claimed = false;
    if (at->own != 0 && smart_slot_same_child(at->word, at->own)) {
        return at->cached ? stale(client, key, at, SMART_STALE_OTHER) : 0;
    }
    uint64_t word = smart_leaf_word_of(client->leaf);
    uint64_t reverse = smart_leaf_reverse(client->leaf);
    if (smart_word_stamp(word) != smart_slot_stamp(at->word)) {
        return stale(client, key, at, SMART_STALE_OTHER);
    }
    if (client->cn->params->check_sum && !smart_leaf_consistent(layout, client->leaf)) {
        client->counts[SMART_TORN_LEAF]++;
        DM_TRY(ix_retry(client->ctx, DM_RETRY_TORN, &at->attempts, 0));
        return SMART_AGAIN;
    }
    if (at->cached && (smart_word_state(word) != SMART_LIVE || reverse != at->slot.bits)) {
        return stale(client, key, at, smart_word_state(word) == SMART_LIVE ? SMART_STALE_REVERSE : SMART_STALE_OTHER);
    }
    if (smart_word_state(word) == SMART_REPLACED) {
        int rc = smart_has_leases(client) ? claimed_settle(client, key, at) : replaced_wait(client, key, at);
        if (rc != 0) {
            return rc;
        }
    }
    if (smart_word_state(word) == SMART_DELETED) {
        *found = SMART_FOUND_VACANT;
        return 0;
    }
    if (smart_difference(smart_leaf_key(client->leaf), key) < at->depth) {
        return stale(client, key, at, SMART_STALE_OTHER);
    }
    return reverse == at->slot.bits ? 0 : reverse_repair(client, at, reverse);
}

/* ---- inner nodes ------------------------------------------------------------------------------------------------- */

void smart_keep(struct smart_client *client, uint64_t key, dm_addr addr, const struct smart_node *node) {
    unsigned branch = smart_header_branch(node->header);
    client->counts[SMART_CACHE_EVICTION] +=
        smart_cache_put(client->cn->cache, client->ctx, smart_header_path(node->header, key), branch, addr,
                        smart_header_type(node->header), node->slots);
}

/* The header has a larger type than the slot: reads the other slots, and corrects the slot's type. [waits] */
static int rest_read(struct smart_client *client, uint64_t key, struct smart_at *at, unsigned type) {
    const struct smart_layout *layout = &client->cn->layout;
    struct smart_node *node = client->node;
    dm_addr addr = smart_slot_addr(at->word);
    unsigned have = smart_capacity(layout, smart_slot_type(at->word));
    unsigned want = smart_capacity(layout, type);
    client->counts[SMART_TYPE_SECOND]++;
    DM_TRY(dm_read(client->ctx, smart_slot_at(addr, have), &node->slots[have], (want - have) * 8));
    if (at->cached) {
        copy_forget(client, key, at);
    } else if (smart_header_type(node->header) == type) {
        uint64_t word = smart_slot_with_type(at->word, type);
        dm_post_cas(client->ctx, at->slot, at->word, word, NULL);
        DM_TRY(dm_commit_async(client->ctx));
        at->word = word;
    }
    return 0;
}

/* Reads the node that the slot leads to into client->node. 0, SMART_AGAIN, or a failure. [waits] */
static int node_follow(struct smart_client *client, uint64_t key, struct smart_at *at, unsigned *capacity) {
    const struct smart_layout *layout = &client->cn->layout;
    struct smart_node *node = client->node;
    dm_addr addr = smart_slot_addr(at->word);
    unsigned stated = smart_capacity(layout, smart_slot_type(at->word));
    if (stated == 0 || !dm_addr_valid(client->ctx, addr, SMART_NODE_BYTES)) {
        return stale(client, key, at, SMART_STALE_OTHER);
    }
    DM_TRY(dm_read(client->ctx, addr, node, smart_node_read_bytes(stated)));
    unsigned type = smart_header_base(node->header);
    bool is_dying = smart_type_is_dying(smart_header_type(node->header));
    if (!smart_header_plausible(node->header) || smart_capacity(layout, type) == 0 ||
        smart_header_depth(node->header) > at->depth) {
        return stale(client, key, at, SMART_STALE_OTHER);
    }
    if (at->cached && node->reverse != at->slot.bits) {
        return stale(client, key, at, SMART_STALE_REVERSE);
    }
    *capacity = smart_capacity(layout, type);
    if (*capacity > stated) {
        DM_TRY(rest_read(client, key, at, type));
    }
    if (!at->cached && node->reverse != at->slot.bits) {
        DM_TRY(reverse_repair(client, at, node->reverse));
    }
    if (!is_dying) {
        smart_keep(client, key, addr, node);
    }
    return 0;
}

/* The node is being taken out: begins at its parent again. [waits] */
static int frozen_wait(struct smart_client *client, uint64_t key, struct smart_at *at) {
    client->counts[SMART_FROZEN_SLOT]++;
    copy_forget(client, key, at);
    DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, &at->attempts, 0));
    return smart_start(client, key, SMART_DEEPEST, at);
}

int smart_step(struct smart_client *client, uint64_t key, struct smart_at *at, enum smart_found *found) {
    unsigned capacity = 0;
    int rc = node_follow(client, key, at, &capacity);
    if (rc != 0) {
        return rc;
    }
    const struct smart_node *node = client->node;
    dm_addr addr = smart_slot_addr(at->word);
    if (smart_header_mismatch(node->header, key) < smart_header_length(node->header)) {
        *found = SMART_FOUND_PREFIX;
        return 0;
    }
    unsigned branch = smart_header_branch(node->header);
    int i = smart_slots_find(node->slots, capacity, smart_byte(key, branch));
    smart_slots_charge(client, i < 0 ? capacity : (unsigned)i);
    if (i < 0) {
        *found = SMART_FOUND_NONE;
        /* Of a node that is being taken out nothing follows: it may be out, and the key elsewhere. */
        return smart_type_is_dying(smart_header_type(node->header)) ? replaced_wait(client, key, at) : 0;
    }
    at->word = node->slots[i];
    at->node = addr;
    at->index = (unsigned)i;
    at->slot = smart_slot_at(addr, (unsigned)i);
    at->depth = branch + 1;
    at->cached = false;
    return SMART_AGAIN;
}

int smart_descend(struct smart_client *client, uint64_t key, struct smart_at *at, enum smart_found *found) {
    int rc = SMART_AGAIN;
    while (rc == SMART_AGAIN) {
        if (smart_slot_is_frozen(at->word)) {
            rc = frozen_wait(client, key, at);
            rc = rc == 0 ? SMART_AGAIN : rc;
        } else if (smart_slot_is_vacant(at->word)) {
            *found = SMART_FOUND_VACANT;
            return 0;
        } else if (smart_slot_is_leaf(at->word)) {
            dm_addr addr = smart_slot_addr(at->word);
            rc = dm_addr_valid(client->ctx, addr, client->cn->layout.leaf_bytes)
                     ? leaf_follow(client, key, at, found)
                     : stale(client, key, at, SMART_STALE_OTHER);
        } else {
            rc = smart_step(client, key, at, found);
        }
    }
    return rc;
}
