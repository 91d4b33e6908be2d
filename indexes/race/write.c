/* SPDX-License-Identifier: Apache-2.0
 *
 * Update and delete: one compare-and-swap of the slot. A slot names a block and its stamp, so that it still has the
 * value that was read only if no client has changed it.
 */
#include "race.h"

/* Keeping a block for another use is as much work as comparing so many keys. */
enum { DROP_COMPARES = 4 };

/* Replaces the key's slot by `slot`. DM_NOT_FOUND if the key is absent. *before is what was replaced. [waits] */
static int slot_replace(struct race_client *client, uint64_t key, uint64_t slot, uint64_t *before) {
    uint32_t attempts = 0;
    for (;;) {
        const struct race_match *match;
        DM_TRY(race_search(client, key, NULL, &match, &attempts));
        if (!match) {
            return DM_NOT_FOUND;
        }
        DM_TRY(dm_cas(client->ctx, match->addr, match->slot, slot, client->olds));
        if (client->olds[0] == match->slot) {
            *before = match->slot;
            return 0;
        }
        client->counts[RACE_SLOT_CONFLICT]++;
        DM_TRY(ix_retry(client->ctx, DM_RETRY_CAS, &attempts, 0));
    }
}

int race_update(void *handle, uint64_t key, const void *value) {
    struct race_client *client = handle;
    uint64_t hash = race_hash(key);
    const struct race_match *match;
    uint64_t word = 0;
    uint64_t before;
    int rc = race_block_make(client, key, value, &word, &match);
    if (rc != 0) {
        return rc == DM_ERR_NO_MEMORY && !match ? DM_NOT_FOUND : race_end(client, rc);
    }
    rc = slot_replace(client, key, race_slot(hash, client->cn->block_bytes, word), &before);
    client->unwritten = false;
    if (rc == 0) {
        dm_charge(client->ctx, DM_WORK_KEY_COMPARE, DROP_COMPARES);
        ix_indirect_drop(client->indirect, race_slot_word(before));
    } else if (rc == DM_NOT_FOUND || rc == DM_ERR_RETRY_LIMIT) {
        ix_indirect_drop(client->indirect, word);
    }
    return race_end(client, rc);
}

int race_remove(void *handle, uint64_t key) {
    struct race_client *client = handle;
    uint64_t before;
    int rc = slot_replace(client, key, 0, &before);
    if (rc == 0) {
        ix_indirect_drop(client->indirect, race_slot_word(before));
    }
    return race_end(client, rc);
}
