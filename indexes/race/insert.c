/* SPDX-License-Identifier: Apache-2.0
 *
 * Insert: the block is written while the buckets are read; a compare-and-swap puts it into an empty slot, tentatively;
 * the buckets are read again; and if no other slot has the key and the subtable has not split, the slot is committed by
 * a compare-and-swap that is not waited for.
 *
 * Only the client itself changes its tentative slot (a split copies it only after it is committed), so the insert is
 * decided when the buckets have been read again. A client that meets a tentative slot of its key waits. Of two clients
 * that find each other's slots, the one with the higher address takes its slot back.
 */
#include "race.h"

enum outcome { COMMIT = 1300, WITHDRAW_EXISTS, WITHDRAW_RETRY, LOOK_AGAIN };

/* What follows from the slots that have the key beside the own one, at `own`. */
static enum outcome others_judge(const struct race_client *client, dm_addr own) {
    enum outcome outcome = COMMIT;
    for (unsigned i = 0; i < client->same_count; i++) {
        const struct race_match *match = &client->same[i];
        if (!race_slot_tentative(match->slot)) {
            return WITHDRAW_EXISTS;
        }
        if (match->view == &client->old || match->addr.bits < own.bits) {
            outcome = WITHDRAW_RETRY;
        } else if (outcome == COMMIT) {
            outcome = LOOK_AGAIN;
        }
    }
    return outcome;
}

/* Reads the buckets again until it is clear whether the slot may be committed. [waits] */
static int slot_confirm(struct race_client *client, uint64_t key, dm_addr own, uint32_t *attempts) {
    for (;;) {
        bool moved;
        int rc = race_find_again(client, key, own, &moved, attempts);
        DM_TRY(rc);
        if (moved) {
            client->counts[RACE_INSERT_MISPLACED]++;
            return WITHDRAW_RETRY;
        }
        enum outcome outcome = rc == 0 ? others_judge(client, own) : LOOK_AGAIN;
        if (outcome != LOOK_AGAIN) {
            client->counts[RACE_DUPLICATE_REMOVED] += outcome != COMMIT;
            return (int)outcome;
        }
        if (rc == 0) {
            client->counts[RACE_TENTATIVE_MET]++;
            DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, attempts, 0));
        }
    }
}

/* As published: the slot counts from the start, and of several slots with the key the lowest one stays. [waits] */
static int published_confirm(struct race_client *client, uint64_t key, dm_addr own, uint32_t *attempts) {
    bool moved;
    int rc;
    do {
        rc = race_find_again(client, key, own, &moved, attempts);
        DM_TRY(rc);
    } while (rc == RACE_AGAIN);
    if (moved) {
        return WITHDRAW_RETRY;
    }
    for (unsigned i = 0; i < client->same_count; i++) {
        const struct race_match *match = &client->same[i];
        if (match->addr.bits < own.bits) {
            client->counts[RACE_DUPLICATE_REMOVED]++;
            return WITHDRAW_EXISTS;
        }
        client->counts[RACE_DUPLICATE_REMOVED]++;
        dm_post_cas(client->ctx, match->addr, match->slot, 0, &client->olds[i]);
    }
    DM_TRY(dm_commit(client->ctx));
    return COMMIT;
}

/* Makes a tentative slot count, which is not waited for. [waits] */
static int slot_commit(struct race_client *client, dm_addr own, uint64_t slot) {
    client->unsettled_at = own;
    client->unsettled = slot;
    dm_post_cas(client->ctx, own, slot | RACE_SLOT_TENTATIVE, slot, NULL);
    return dm_commit_async(client->ctx);
}

/* Takes the slot back, after a failure `rc` of the verbs before, too: others would wait for a tentative slot for ever.
 * [waits] */
static int slot_withdraw(struct race_client *client, dm_addr own, uint64_t first, int rc) {
    uint32_t failures = 0;
    int withdrawn;
    do {
        withdrawn = race_repeat(client, dm_cas(client->ctx, own, first, 0, client->olds), &failures);
    } while (withdrawn == RACE_AGAIN);
    return rc < 0 ? rc : withdrawn;
}

/* Puts `slot` into the empty slot at `own`, and makes it count if that is right. 0, DM_EXISTS, RACE_AGAIN, or a
 * failure. [waits] */
static int slot_take(struct race_client *client, uint64_t key, dm_addr own, uint64_t slot, uint32_t *attempts) {
    unsigned mode = client->cn->params->insert;
    uint64_t first = mode == RACE_TENTATIVE ? slot | RACE_SLOT_TENTATIVE : slot;
    int rc = dm_cas(client->ctx, own, 0, first, client->olds);
    if (rc == 0 && client->olds[0] != 0) {
        client->counts[RACE_SLOT_CONFLICT]++;
        DM_TRY(ix_retry(client->ctx, DM_RETRY_CAS, attempts, 0));
        return RACE_AGAIN;
    }
    if (rc == 0 && mode == RACE_BLIND) {
        return 0;
    }
    if (rc == 0) {
        rc = mode == RACE_TENTATIVE ? slot_confirm(client, key, own, attempts)
                                    : published_confirm(client, key, own, attempts);
    }
    if (rc == COMMIT) {
        return mode == RACE_TENTATIVE ? slot_commit(client, own, slot) : 0;
    }
    if (dm_is_final(rc)) {
        return rc;
    }
    DM_TRY(slot_withdraw(client, own, first, rc));
    if (rc == WITHDRAW_EXISTS) {
        return DM_EXISTS;
    }
    DM_TRY(ix_retry(client->ctx, DM_RETRY_CAS, attempts, 0));
    return RACE_AGAIN;
}

/* A split reserves in the new subtable the slots that are in use in the old one, which must not change any more: all
 * four headers must state it. */
static bool old_is_closed(const struct race_client *client) {
    bool closed = true;
    for (unsigned k = 0; k < RACE_BUCKETS; k++) {
        closed = closed && race_header_depth(client->old.lines.at[k][0]) >= client->filling_depth;
    }
    return closed;
}

/* One attempt. 0, DM_EXISTS, RACE_AGAIN, or a failure. [waits] */
static int insert_try(struct race_client *client, uint64_t key, uint64_t slot, uint32_t *attempts) {
    const struct race_match *match;
    unsigned bucket;
    unsigned at;
    DM_TRY(race_search(client, key, NULL, &match, attempts));
    if (match) {
        return DM_EXISTS;
    }
    if (client->filling && !old_is_closed(client)) {
        DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, attempts, 0));
        return RACE_AGAIN;
    }
    if (race_choose(&client->now.lines, client->filling ? &client->old.lines : NULL,
                    (unsigned)client->cn->params->slots, &bucket, &at)) {
        dm_addr own = race_slot_addr(client->now.table, client->buckets[bucket], at);
        return slot_take(client, key, own, slot, attempts);
    }
    if (client->filling) {
        client->counts[RACE_SPLIT_BUSY]++;
        DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, attempts, 0));
        return RACE_AGAIN;
    }
    DM_TRY(race_split(client, race_hash(key), attempts));
    return RACE_AGAIN;
}

int race_insert(void *handle, uint64_t key, const void *value) {
    struct race_client *client = handle;
    uint64_t hash = race_hash(key);
    const struct race_match *match;
    uint64_t word = 0;
    uint32_t attempts = 0;
    int rc = race_block_make(client, key, value, &word, &match);
    if (rc != 0) {
        return rc == DM_ERR_NO_MEMORY && match ? DM_EXISTS : race_end(client, rc);
    }
    do {
        rc = insert_try(client, key, race_slot(hash, client->cn->block_bytes, word), &attempts);
    } while (rc == RACE_AGAIN);
    client->unwritten = false;
    if (rc == DM_EXISTS || rc == DM_ERR_NO_MEMORY || rc == DM_ERR_RETRY_LIMIT) {
        ix_indirect_drop(client->indirect, word);
    }
    return race_end(client, rc);
}
