/* SPDX-License-Identifier: Apache-2.0
 *
 * Update and delete, and what inserts share with them: leaves that are about to be linked (paper, 4.3).
 *
 * An update in place takes the lock of the leaf by a compare-and-swap that also looks at state and stamp, so it fails
 * if the leaf is not the one that was read any more. The write of the leaf releases the lock; if the leaf has several
 * lines, which land in any order, the release is a write of its own behind it in the same batch.
 *
 * A delete, and an update by replacement (update=rcu), claim the leaf: the same compare-and-swap gives it another
 * state, so no client uses it any more and none other claims it. Then its slot changes. Other inserts may have moved
 * the leaf to another slot meanwhile; then the claimant looks for it (chase). Readers of a leaf that is being replaced
 * wait for the slot.
 */
#include "smart.h"

#include <stdlib.h>

/* ---- memory of leaves -------------------------------------------------------------------------------------------- */

static void pool_put(struct smart_client *client, uint64_t word) {
    struct smart_pool *pool = &client->pool;
    if (pool->count == pool->capacity) {
        uint32_t capacity = 2 * pool->capacity;
        uint64_t *words = calloc(capacity, sizeof(*words));
        if (!words) {
            return; /* the leaf's memory is lost */
        }
        for (uint32_t i = 0; i < pool->count; i++) {
            words[i] = pool->words[(pool->first + i) % pool->capacity];
        }
        free(pool->words);
        *pool = (struct smart_pool){.words = words, .count = pool->count, .capacity = capacity};
    }
    pool->words[(pool->first + pool->count++) % pool->capacity] = word;
}

/* Keeps the memory of a leaf to which `word` led and no slot leads any more. */
static void leaf_retire(struct smart_client *client, uint64_t word) {
    pool_put(client, smart_slot_leaf(0, smart_slot_addr(word), (smart_slot_stamp(word) + 1) & 0xffff));
}

int smart_fresh_take(struct smart_client *client, struct smart_fresh *fresh) {
    struct smart_pool *pool = &client->pool;
    const struct smart_layout *layout = &client->cn->layout;
    if (fresh->word != 0) {
        return 0;
    }
    uint64_t word;
    if (pool->count > 0) {
        word = pool->words[pool->first];
        pool->first = (pool->first + 1) % pool->capacity;
        pool->count--;
    } else {
        dm_addr addr;
        DM_TRY(dm_alloc(client->ctx, DM_ANY_NODE, layout->leaf_alloc, layout->align, DM_MEM_LEAF, &addr));
        word = smart_slot_leaf(0, addr, 0);
    }
    const void *stored = fresh->value;
    if (client->indirect) {
        int rc =
            ix_indirect_make(client->indirect, dm_addr_node(smart_slot_addr(word)), fresh->key, fresh->value, &stored);
        if (rc < 0) {
            pool_put(client, word);
            return rc;
        }
        fresh->block = ix_indirect_word(client->indirect, stored);
    }
    smart_leaf_fill(layout, client->fresh, false, smart_slot_stamp(word), fresh->key, stored);
    smart_leaf_charge(client);
    fresh->word = word;
    fresh->written = false;
    return 0;
}

void smart_fresh_post(struct smart_client *client, struct smart_fresh *fresh, dm_addr slot) {
    dm_addr addr = smart_slot_addr(fresh->word);
    memcpy(client->fresh, &slot.bits, sizeof(slot.bits));
    if (!fresh->written && client->indirect) {
        ix_indirect_post(client->indirect);
    }
    dm_post_write(client->ctx, addr, client->fresh,
                  fresh->written ? (uint32_t)sizeof(uint64_t) : client->cn->layout.leaf_bytes);
}

void smart_fresh_drop(struct smart_client *client, struct smart_fresh *fresh) {
    if (fresh->word != 0) {
        pool_put(client, fresh->word);
        if (client->indirect) {
            ix_indirect_drop(client->indirect, fresh->block);
        }
        fresh->word = 0;
    }
}

int smart_fresh_link(struct smart_client *client, struct smart_fresh *fresh, dm_addr slot, uint64_t expected,
                     unsigned byte) {
    DM_TRY(smart_fresh_take(client, fresh));
    smart_fresh_post(client, fresh, slot);
    if (!fresh->written) {
        DM_TRY(dm_commit(client->ctx));
        fresh->written = true;
    }
    dm_post_cas(client->ctx, slot, expected, smart_slot_with_byte(fresh->word, byte), client->olds);
    DM_TRY(dm_commit(client->ctx));
    return client->olds[0] == expected ? 0 : SMART_AGAIN;
}

/* ---- locks and claims -------------------------------------------------------------------------------------------- */

/* Changes state and lock of the leaf in client->leaf, if it is live, not locked and still has the slot's stamp. With
 * indirect values the leaf is read behind it. 0; SMART_AGAIN: it is not, and `at` has been read again; or a failure.
 * When its lock has been held for a lease: SMART_EXPIRED if the lock is wanted; a claim succeeds, with at->is_expired
 * set. [waits] */
static int leaf_claim(struct smart_client *client, uint64_t key, struct smart_at *at, uint64_t to, uint64_t mask) {
    dm_addr addr = smart_slot_addr(at->word);
    bool may_take = mask == SMART_STATE_MASK || client->cn->params->lease_takes == SMART_TAKES_LOCK;
    at->is_expired = at->is_expired && may_take;
    uint64_t from = smart_leaf_word(SMART_LIVE, at->is_expired, smart_slot_stamp(at->word));
    uint64_t looked_at = client->cn->params->recheck_lock ? SMART_LEAF_MASK : SMART_LOCK_MASK;
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_LOCK);
    int rc = 0;
    for (uint32_t tries = 1; rc == 0; tries++) {
        dm_post_masked_cas(client->ctx, dm_addr_add(addr, SMART_LEAF_WORD), (struct dm_mask){from, looked_at, to, mask},
                           client->olds);
        if (client->indirect) {
            dm_post_read(client->ctx, addr, client->leaf, client->cn->layout.leaf_bytes);
        }
        rc = dm_commit(client->ctx);
        uint64_t old = client->olds[0];
        if (rc < 0 || ((old ^ from) & looked_at) == 0) {
            break;
        }
        if (smart_word_state(old) != SMART_LIVE || smart_word_stamp(old) != smart_slot_stamp(at->word)) {
            client->counts[SMART_CLAIM_LOST]++;
            rc = ix_retry(client->ctx, DM_RETRY_LOCK, &at->attempts, 0);
            rc = rc == 0 ? smart_refresh(client, key, at) : rc;
            rc = rc == 0 ? SMART_AGAIN : rc;
        } else {
            client->counts[SMART_LOCK_CONFLICT]++;
            at->is_expired = smart_lease_is_over(client, at, old) && smart_word_locked(old);
            from = smart_leaf_word(SMART_LIVE, at->is_expired, smart_slot_stamp(at->word));
            rc = at->is_expired && !may_take ? SMART_EXPIRED
                                             : ix_retry(client->ctx, DM_RETRY_LOCK, &at->attempts, tries);
        }
    }
    client->counts[SMART_LEASE_BROKEN] += rc == 0 && at->is_expired;
    dm_phase(client->ctx, before);
    return rc;
}

/* Finds the slot that leads to the claimed leaf at->own. 0, DM_NOT_FOUND, or a failure. [waits] */
static int chase(struct smart_client *client, uint64_t key, struct smart_at *at) {
    client->counts[SMART_CHASE]++;
    DM_TRY(ix_retry(client->ctx, DM_RETRY_CAS, &at->attempts, 0));
    enum smart_found found;
    int rc = SMART_AGAIN;
    while (rc == SMART_AGAIN) {
        DM_TRY(smart_descend(client, key, at, &found));
        if (found == SMART_FOUND_LEAF && smart_slot_same_child(at->word, at->own)) {
            return 0;
        }
        rc = found == SMART_FOUND_NONE ? 0 : smart_confirm(client, key, at);
    }
    return rc < 0 ? rc : DM_NOT_FOUND;
}

/* Changes the slot of the claimed leaf at->own, wherever it is now, to `to` with the slot's byte; `fresh` (or NULL) is
 * the leaf that `to` leads to. 0; DM_NOT_FOUND: no slot leads to the claimed leaf; or a failure. *refused: it is known
 * that no slot has been changed. [waits] */
static int claimed_swap(struct smart_client *client, uint64_t key, struct smart_at *at, uint64_t to,
                        struct smart_fresh *fresh, bool *refused) {
    for (;;) {
        *refused = false;
        uint64_t now = smart_slot_with_byte(to, smart_slot_byte(at->word));
        if (fresh && smart_leaf_reverse(client->fresh) != at->slot.bits) {
            smart_fresh_post(client, fresh, at->slot);
        }
        dm_post_cas(client->ctx, at->slot, at->word, now, client->olds);
        DM_TRY(dm_commit(client->ctx));
        if (client->olds[0] == at->word) {
            if (at->depth > 0 && !fresh) {
                smart_cache_patch(client->cn->cache, key, at->depth - 1, at->node, at->index, at->word, now);
            }
            at->word = now;
            return 0;
        }
        *refused = true;
        at->word = client->olds[0];
        at->cached = false;
        int rc = chase(client, key, at);
        if (rc != 0) {
            return rc;
        }
    }
}

/* What becomes free when no slot leads to the claimed leaf any more. */
struct claimed {
    uint64_t block; /* of an indirect value */
    bool is_locked; /* a client may still write to the leaf: neither is used again */
};

/* Of the leaf in client->leaf, which this operation has claimed, or found claimed. */
static struct claimed claimed_look(const struct smart_client *client, const struct smart_at *at) {
    return (struct claimed){
        .block = ix_indirect_word(client->indirect, client->leaf + SMART_LEAF_VALUE),
        .is_locked = at->is_expired || (at->is_claimed && smart_word_locked(smart_leaf_word_of(client->leaf))),
    };
}

static void claimed_keep(struct smart_client *client, uint64_t own, const struct claimed *claimed) {
    if (!claimed->is_locked) {
        leaf_retire(client, own);
        if (client->indirect) {
            ix_indirect_drop(client->indirect, claimed->block);
        }
    }
}

/* No slot leads to the leaf any more that this operation has claimed, or found claimed. With a claim of its own it is
 * done, just before what its slot leads to now. 0; SMART_AGAIN: it begins anew; or a failure. [waits] */
static int overtaken(struct smart_client *client, uint64_t key, struct smart_at *at, bool was_others) {
    if (!smart_has_leases(client)) {
        return DM_ERR_IO;
    }
    client->counts[SMART_LEASE_LOST] += !was_others;
    if (!was_others) {
        return 0;
    }
    at->own = 0;
    at->is_expired = false;
    DM_TRY(dm_retry(client->ctx, DM_RETRY_CAS, &at->attempts));
    DM_TRY(smart_start(client, key, SMART_DEEPEST, at));
    return SMART_AGAIN;
}

/* ---- update ------------------------------------------------------------------------------------------------------ */

/* Writes the leaf, whose lock is held, with the value, and releases the lock. [waits] */
static int leaf_rewrite(struct smart_client *client, uint64_t key, dm_addr addr, const void *stored) {
    const struct smart_layout *layout = &client->cn->layout;
    bool has_lease = smart_has_leases(client);
    bool is_apart = layout->leaf_bytes > DM_LINE && client->cn->params->unlock_apart;
    unsigned stamp = smart_word_stamp(smart_leaf_word_of(client->leaf));
    smart_leaf_fill(layout, client->leaf, is_apart, stamp, key, stored);
    smart_leaf_charge(client);
    uint32_t first = has_lease ? SMART_LEAF_CHECK : SMART_LEAF_WORD;
    dm_post_write(client->ctx, dm_addr_add(addr, first), client->leaf + first, layout->leaf_bytes - first);
    if (has_lease) {
        uint64_t from = smart_leaf_word(SMART_LIVE, true, stamp);
        dm_post_masked_cas(client->ctx, dm_addr_add(addr, SMART_LEAF_WORD),
                           (struct dm_mask){from, SMART_LEAF_MASK, 0, SMART_LOCK_MASK}, client->olds);
        DM_TRY(dm_commit(client->ctx));
        client->counts[SMART_LEASE_LOST] += ((client->olds[0] ^ from) & SMART_LEAF_MASK) != 0;
        return 0;
    }
    if (is_apart) {
        client->outs[0] = 0;
        dm_post_write(client->ctx, dm_addr_add(addr, SMART_LEAF_LOCK), client->outs, 1);
    }
    return dm_commit(client->ctx);
}

/* [waits] */
static int update_in_place(struct smart_client *client, uint64_t key, struct smart_at *at, const void *value) {
    dm_addr addr = smart_slot_addr(at->word);
    const void *stored = value;
    if (client->indirect) {
        DM_TRY(ix_indirect_make(client->indirect, dm_addr_node(addr), key, value, &stored));
        ix_indirect_post(client->indirect);
    }
    uint64_t block = ix_indirect_word(client->indirect, stored);
    int rc = leaf_claim(client, key, at, smart_leaf_word(0, true, 0), UINT64_C(1) << 8);
    if (rc != 0) {
        if (client->indirect && (rc > 0 || rc == DM_ERR_RETRY_LIMIT)) {
            ix_indirect_drop(client->indirect, block);
        }
        return rc;
    }
    uint64_t replaced = ix_indirect_word(client->indirect, client->leaf + SMART_LEAF_VALUE);
    DM_TRY(leaf_rewrite(client, key, addr, stored));
    if (client->indirect) {
        ix_indirect_drop(client->indirect, replaced);
    }
    return 0;
}

/* Undoes the claim of a leaf whose slot could not be changed, since readers wait for it: after too many retries, or
 * after a read that failed. Not with leases, as its slot may have changed since. */
static int claim_undo(struct smart_client *client, uint64_t own, int rc) {
    if (!smart_has_leases(client) && (rc == DM_ERR_RETRY_LIMIT || rc == DM_ERR_IO)) {
        uint64_t from = smart_leaf_word(SMART_REPLACED, false, smart_slot_stamp(own));
        DM_TRY(dm_masked_cas(client->ctx, dm_addr_add(smart_slot_addr(own), SMART_LEAF_WORD),
                             (struct dm_mask){from, SMART_LEAF_MASK, SMART_LIVE, SMART_STATE_MASK}, client->olds));
    }
    return rc;
}

/* As published: the slot first, and the old leaf's state afterwards, not waited for. [waits] */
static int replace_late(struct smart_client *client, uint64_t key, struct smart_at *at, struct smart_fresh *fresh) {
    int rc = smart_fresh_link(client, fresh, at->slot, at->word, smart_slot_byte(at->word));
    if (rc != 0) {
        if (rc == SMART_AGAIN) {
            client->counts[SMART_SLOT_CONFLICT]++;
            at->word = client->olds[0];
            at->cached = false;
            DM_TRY(dm_retry(client->ctx, DM_RETRY_CAS, &at->attempts));
        }
        return rc;
    }
    fresh->word = 0;
    client->outs[0] = SMART_REPLACED;
    dm_post_write(client->ctx, dm_addr_add(smart_slot_addr(at->word), SMART_LEAF_WORD), client->outs, 1);
    (void)key;
    return dm_commit_async(client->ctx);
}

/* [waits] */
static int update_by_replacement(struct smart_client *client, uint64_t key, struct smart_at *at,
                                 struct smart_fresh *fresh) {
    if (client->cn->update == SMART_RCU_LATE) {
        return replace_late(client, key, at, fresh);
    }
    uint64_t own = at->word;
    bool was_claimed = at->is_claimed;
    DM_TRY(smart_fresh_take(client, fresh));
    smart_fresh_post(client, fresh, at->slot);
    int rc = was_claimed ? dm_commit(client->ctx) : leaf_claim(client, key, at, SMART_REPLACED, SMART_STATE_MASK);
    fresh->written = rc >= 0;
    if (rc != 0) {
        return rc;
    }
    struct claimed claimed = claimed_look(client, at);
    at->own = own;
    bool refused;
    rc = claimed_swap(client, key, at, fresh->word, fresh, &refused);
    if (rc == DM_NOT_FOUND) {
        return overtaken(client, key, at, was_claimed);
    }
    if (rc != 0) {
        return refused ? claim_undo(client, own, rc) : rc;
    }
    fresh->word = 0;
    if (at->cached && at->depth > 0) {
        smart_cache_drop(client->cn->cache, key, at->depth - 1, at->node);
    }
    claimed_keep(client, own, &claimed);
    client->counts[SMART_LEASE_BROKEN] += was_claimed;
    return 0;
}

int smart_update(void *handle, uint64_t key, const void *value) {
    struct smart_client *client = handle;
    struct smart_at at = {.replaces = true};
    struct smart_fresh fresh = {.key = key, .value = value};
    DM_TRY(smart_start(client, key, SMART_DEEPEST, &at));
    int rc;
    do {
        enum smart_found found;
        rc = smart_descend(client, key, &at, &found);
        if (rc != 0) {
            break;
        }
        if (found == SMART_FOUND_LEAF && smart_leaf_key(client->leaf) == key) {
            rc = client->cn->update == SMART_IN_PLACE && !at.is_claimed ? update_in_place(client, key, &at, value)
                                                                        : SMART_EXPIRED;
            rc = rc == SMART_EXPIRED ? update_by_replacement(client, key, &at, &fresh) : rc;
        } else {
            rc = found == SMART_FOUND_NONE ? 0 : smart_confirm(client, key, &at);
            rc = rc == 0 ? DM_NOT_FOUND : rc;
        }
    } while (rc == SMART_AGAIN);
    if (rc >= 0 || rc == DM_ERR_RETRY_LIMIT) {
        smart_fresh_drop(client, &fresh);
    }
    return rc;
}

/* ---- delete ------------------------------------------------------------------------------------------------------ */

/* [waits] */
static int leaf_remove(struct smart_client *client, uint64_t key, struct smart_at *at) {
    uint64_t own = at->word;
    bool was_claimed = at->is_claimed;
    int rc = was_claimed ? 0 : leaf_claim(client, key, at, SMART_DELETED, SMART_STATE_MASK);
    if (rc != 0) {
        return rc;
    }
    struct claimed claimed = claimed_look(client, at);
    at->own = own;
    uint64_t vacant = client->cn->params->keep_slots ? smart_slot_kind(0, SMART_KIND_EMPTY) : 0;
    if (!client->cn->params->keep_slots && at->depth > 0) {
        DM_TRY(dm_cas(client->ctx, at->slot, at->word, 0, client->olds));
        return 0;
    }
    bool refused;
    rc = claimed_swap(client, key, at, vacant, NULL, &refused);
    if (rc < 0) {
        return rc;
    }
    if (rc == DM_NOT_FOUND && was_claimed) {
        return overtaken(client, key, at, true);
    }
    claimed_keep(client, own, &claimed);
    client->counts[SMART_LEASE_BROKEN] += was_claimed;
    return rc == 0 && client->cn->params->shrink ? smart_shrink(client, key, at) : 0;
}

int smart_remove(void *handle, uint64_t key) {
    struct smart_client *client = handle;
    struct smart_at at = {.replaces = true};
    DM_TRY(smart_start(client, key, SMART_DEEPEST, &at));
    int rc;
    do {
        enum smart_found found;
        DM_TRY(smart_descend(client, key, &at, &found));
        if (found == SMART_FOUND_LEAF && smart_leaf_key(client->leaf) == key) {
            rc = leaf_remove(client, key, &at);
        } else {
            rc = found == SMART_FOUND_NONE ? 0 : smart_confirm(client, key, &at);
            rc = rc == 0 ? DM_NOT_FOUND : rc;
        }
    } while (rc == SMART_AGAIN);
    return rc;
}
