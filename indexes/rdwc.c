/* SPDX-License-Identifier: Apache-2.0
 *
 * Read delegation and write combining; see rdwc.h. The wrapper is a copy of the index's table with other functions for
 * the operations, so a wrapped client is called like any other, and a client without the wrapper pays nothing.
 *
 * All that members of a round share is in the table, never in a client: when a run is stopped, clients end in any
 * order, with the rounds they were in left as they are.
 */
#include "indexes/rdwc.h"

#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/large.h"

/* The public code has 4 Mi slots a compute node, so that two keys in use never share one. With this number per
 * client it happens to less than one operation in 200. */
enum { SLOTS_PER_CLIENT = 256, SLOTS_MIN = 64 };

/* The gets, or the updates, of one key. */
struct side {
    uint64_t begun, done; /* rounds so far; a leader is at work if they differ */
    uint32_t joined;      /* members of the next round, all waiting */
    uint32_t taking;      /* members of round `done` that have not copied its outcome yet */
    int outcome;          /* of that round */
    char *value;          /* gets: what that round found; updates: what the next round will write */
};

struct slot {
    struct dm_mutex mutex; /* never held while the index is called */
    struct dm_cond changed;
    uint64_t key;  /* valid while `here` is above 0 */
    uint32_t here; /* clients that use the slot */
    struct side gets, updates;
};

struct ix_rdwc {
    struct ix_ops ops; /* the table of wrapped clients */
    struct ix_rdwc_config config;
    unsigned shift; /* a mixed key shifted right by it is the number of its slot */
    struct slot *slots;
    char *values; /* two of each slot */
};

struct rdwc_client {
    struct ix_rdwc *rdwc;
    struct dm_ctx *ctx;
    struct ix_client index;
    struct ix_rdwc_counts counts;
    char *value; /* what this client writes for its round */
};

/* ---- slots ------------------------------------------------------------------------------------------------------ */

/* Enters the key's slot: 0 with its mutex held, DM_EXISTS when another key has it, or a failure. */
static int slot_enter(struct rdwc_client *client, uint64_t key, struct slot **out) {
    struct ix_rdwc *rdwc = client->rdwc;
    struct slot *slot = &rdwc->slots[dm_mix64(key) >> rdwc->shift];
    *out = slot;
    dm_prefetch_lines(slot, sizeof(*slot));
    dm_charge(client->ctx, DM_WORK_HASH, 1);
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    DM_TRY(dm_mutex_lock(client->ctx, &slot->mutex));
    if (slot->here > 0 && slot->key != key) {
        dm_mutex_unlock(client->ctx, &slot->mutex);
        client->counts.bypassed++;
        return DM_EXISTS;
    }
    slot->key = key;
    slot->here++;
    if (!slot->gets.value) {
        /* Not when the table is made: most slots of a short run are never used, and would have to be in memory. */
        slot->gets.value = rdwc->values + 2 * (size_t)(slot - rdwc->slots) * rdwc->config.value_bytes;
        slot->updates.value = slot->gets.value + rdwc->config.value_bytes;
    }
    return 0;
}

static int slot_leave(struct rdwc_client *client, struct slot *slot, int outcome) {
    slot->here--;
    dm_mutex_unlock(client->ctx, &slot->mutex);
    return outcome;
}

/* ---- rounds; all with the slot's mutex held --------------------------------------------------------------------- */

enum role { ROLE_LEADER = 0, ROLE_MEMBER = 1 };

/* Joins the next round and waits until it is over or this client must lead it. If `late`, a round that has begun is
 * joined as well, which is known to be wrong. A role, or a failure without the mutex. [waits] */
static int round_join(struct rdwc_client *client, struct slot *slot, struct side *side, bool late) {
    bool is_late = late && side->begun > side->done;
    uint64_t round = side->begun + (is_late ? 0 : 1);
    side->joined += is_late ? 0 : 1;
    side->taking += is_late ? 1 : 0;
    while (side->done < round) {
        /* There is one buffer for outcomes, so no round begins before all members have copied the last one. */
        if (side->begun < round && side->begun == side->done && side->taking == 0) {
            return ROLE_LEADER;
        }
        DM_TRY(dm_cond_wait(client->ctx, &slot->changed, &slot->mutex));
    }
    return ROLE_MEMBER;
}

/* The clients that have joined are the members of this round; clients that come later are not. */
static void round_begin(struct side *side) {
    side->begun++;
    side->taking = side->joined - 1;
    side->joined = 0;
}

static void round_end(struct rdwc_client *client, struct slot *slot, struct side *side, int outcome) {
    side->done = side->begun;
    side->outcome = outcome;
    dm_cond_wake_all(client->ctx, &slot->changed);
}

/* One member has copied the outcome. */
static void outcome_taken(struct rdwc_client *client, struct slot *slot, struct side *side) {
    if (--side->taking == 0) {
        dm_cond_wake_all(client->ctx, &slot->changed);
    }
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static int get_lead(struct rdwc_client *client, struct slot *slot, uint64_t key, void *value) {
    struct side *side = &slot->gets;
    round_begin(side);
    dm_mutex_unlock(client->ctx, &slot->mutex);
    int outcome = ix_get(&client->index, key, value);
    if (outcome == DM_ERR_STOPPED) {
        return outcome; /* the other clients are stopped, too */
    }
    DM_TRY(dm_mutex_lock(client->ctx, &slot->mutex));
    if (outcome == 0 && side->taking > 0) {
        memcpy(side->value, value, client->index.value_bytes);
    }
    round_end(client, slot, side, outcome);
    return slot_leave(client, slot, outcome);
}

static int rdwc_get(void *handle, uint64_t key, void *value) {
    struct rdwc_client *client = handle;
    struct slot *slot;
    int rc = slot_enter(client, key, &slot);
    if (rc != 0) {
        return rc == DM_EXISTS ? ix_get(&client->index, key, value) : rc;
    }
    struct side *side = &slot->gets;
    rc = round_join(client, slot, side, client->rdwc->config.mode != IX_RDWC_ON);
    if (rc != ROLE_MEMBER) {
        return rc == ROLE_LEADER ? get_lead(client, slot, key, value) : rc;
    }
    if (side->outcome == 0) {
        memcpy(value, side->value, client->index.value_bytes);
    }
    int outcome = side->outcome;
    client->counts.shared_gets++;
    outcome_taken(client, slot, side);
    return slot_leave(client, slot, outcome);
}

static int update_lead(struct rdwc_client *client, struct slot *slot, uint64_t key, const void *value) {
    struct side *side = &slot->updates;
    if (side->joined > 1) {
        /* side->value collects the value of the next round. */
        memcpy(client->value, side->value, client->index.value_bytes);
        value = client->value;
    }
    round_begin(side);
    dm_mutex_unlock(client->ctx, &slot->mutex);
    int outcome = ix_update(&client->index, key, value);
    if (outcome == DM_ERR_STOPPED) {
        return outcome;
    }
    DM_TRY(dm_mutex_lock(client->ctx, &slot->mutex));
    round_end(client, slot, side, outcome);
    return slot_leave(client, slot, outcome);
}

static int rdwc_update(void *handle, uint64_t key, const void *value) {
    struct rdwc_client *client = handle;
    struct slot *slot;
    int rc = slot_enter(client, key, &slot);
    if (rc != 0) {
        return rc == DM_EXISTS ? ix_update(&client->index, key, value) : rc;
    }
    struct side *side = &slot->updates;
    memcpy(side->value, value, client->index.value_bytes);
    rc = round_join(client, slot, side, client->rdwc->config.mode == IX_RDWC_PUBLISHED);
    if (rc != ROLE_MEMBER) {
        return rc == ROLE_LEADER ? update_lead(client, slot, key, value) : rc;
    }
    int outcome = side->outcome;
    client->counts.shared_updates++;
    outcome_taken(client, slot, side);
    return slot_leave(client, slot, outcome);
}

static int rdwc_insert(void *handle, uint64_t key, const void *value) {
    return ix_insert(&((struct rdwc_client *)handle)->index, key, value);
}

static int rdwc_remove(void *handle, uint64_t key) {
    return ix_remove(&((struct rdwc_client *)handle)->index, key);
}

static int rdwc_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    return ix_scan(&((struct rdwc_client *)handle)->index, first, count, keys, values, found);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

struct ix_rdwc *ix_rdwc_open(const struct ix_ops *index, const struct ix_rdwc_config *config) {
    struct ix_rdwc *rdwc = calloc(1, sizeof(*rdwc));
    if (!rdwc) {
        return NULL;
    }
    uint32_t wanted = config->slots > 0 ? config->slots : SLOTS_PER_CLIENT * config->clients;
    wanted = config->slots == 0 && wanted < SLOTS_MIN ? SLOTS_MIN : wanted;
    unsigned bits = 1; /* a shift by 64 is undefined */
    while (UINT64_C(1) << bits < wanted) {
        bits++;
    }
    size_t slots = (size_t)1 << bits;
    rdwc->config = *config;
    rdwc->config.slots = (uint32_t)slots;
    rdwc->shift = 64 - bits;
    rdwc->slots = dm_large_alloc(slots * sizeof(*rdwc->slots));
    rdwc->values = calloc(2 * slots, config->value_bytes);
    if (!rdwc->slots || !rdwc->values) {
        ix_rdwc_close(rdwc);
        return NULL;
    }
    rdwc->ops = *index;
    rdwc->ops.get = rdwc_get;
    rdwc->ops.insert = rdwc_insert;
    rdwc->ops.update = rdwc_update;
    rdwc->ops.remove = rdwc_remove;
    rdwc->ops.scan = rdwc_scan;
    return rdwc;
}

void ix_rdwc_close(struct ix_rdwc *rdwc) {
    if (rdwc) {
        dm_large_free(rdwc->slots, rdwc->config.slots * sizeof(*rdwc->slots));
        free(rdwc->values);
        free(rdwc);
    }
}

uint64_t ix_rdwc_bytes(const struct ix_rdwc *rdwc) {
    if (!rdwc) {
        return 0;
    }
    const struct ix_rdwc_config *config = &rdwc->config;
    return config->slots * (sizeof(struct slot) + 2 * (uint64_t)config->value_bytes) +
           config->clients * (uint64_t)config->value_bytes;
}

int ix_rdwc_wrap(struct ix_rdwc *rdwc, struct dm_ctx *ctx, struct ix_client *client) {
    struct rdwc_client *wrapped = calloc(1, sizeof(*wrapped) + client->value_bytes);
    if (!wrapped) {
        return DM_ERR_NO_MEMORY;
    }
    wrapped->rdwc = rdwc;
    wrapped->ctx = ctx;
    wrapped->index = *client;
    wrapped->value = (char *)(wrapped + 1);
    client->ops = &rdwc->ops;
    client->handle = wrapped;
    return 0;
}

void ix_rdwc_unwrap(struct ix_client *client) {
    if (client->handle && client->ops->get == rdwc_get) {
        struct rdwc_client *wrapped = client->handle;
        *client = wrapped->index;
        free(wrapped);
    }
}

const struct ix_rdwc_counts *ix_rdwc_counts(const struct ix_client *client) {
    return &((const struct rdwc_client *)client->handle)->counts;
}
