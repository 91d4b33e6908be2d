/* SPDX-License-Identifier: Apache-2.0
 *
 * Read delegation and write combining; see rdwc.h. The wrapper is the index's own table with other functions for gets
 * and updates, so a wrapped client is called like any other, and an index without wrapper pays nothing.
 *
 * All that members of a round share lies in the table, never in a client: when a run is stopped, clients end in any
 * order, with the rounds they were in left as they are.
 */
#include "indexes/rdwc.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES_PER_CLIENT = 16, PLACES_MIN = 64 };

/* The gets, or the updates, of one key. */
struct side {
    uint64_t begun, done; /* rounds so far; a leader is at work if they differ */
    uint32_t joined;      /* members of the next round, all waiting */
    uint32_t taking;      /* members of round `done` that have yet to take over its outcome */
    int outcome;          /* of that round */
    char *value;          /* gets: what that round found; updates: what the next one is to write */
};

struct place {
    struct dm_mutex mutex; /* never held while the index is called */
    struct dm_cond changed;
    uint64_t key; /* means something while anybody is here */
    uint32_t here;
    struct side gets, updates;
};

struct ix_rdwc {
    struct ix_ops ops; /* what wrapped clients are called by */
    struct ix_rdwc_config config;
    unsigned shift; /* from a mixed key to its place */
    struct place *places;
    char *values; /* two of each place */
};

struct rdwc_client {
    struct ix_rdwc *rdwc;
    struct dm_ctx *ctx;
    struct ix_client index;
    struct ix_rdwc_counts counts;
    char *value; /* that this client writes for its round */
};

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Enters the key's place: 0 with its mutex held, DM_EXISTS when another key has it, or a failure. */
static int place_enter(struct rdwc_client *client, uint64_t key, struct place **out) {
    struct ix_rdwc *rdwc = client->rdwc;
    struct place *place = &rdwc->places[dm_mix64(key) >> rdwc->shift];
    *out = place;
    dm_charge(client->ctx, DM_WORK_HASH, 1);
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    DM_TRY(dm_mutex_lock(client->ctx, &place->mutex));
    if (place->here > 0 && place->key != key) {
        dm_mutex_unlock(client->ctx, &place->mutex);
        client->counts.bypassed++;
        return DM_EXISTS;
    }
    place->key = key;
    place->here++;
    return 0;
}

static int place_leave(struct rdwc_client *client, struct place *place, int outcome) {
    place->here--;
    dm_mutex_unlock(client->ctx, &place->mutex);
    return outcome;
}

/* ---- rounds; all with the place's mutex held --------------------------------------------------------------------- */

enum role { ROLE_LEADER = 0, ROLE_MEMBER = 1 };

/* Joins the next round and waits until it is over or this client must lead it. With `stale` the round that has begun is
 * joined, the known-wrong way. A role, or a failure without the mutex. [waits] */
static int round_join(struct rdwc_client *client, struct place *place, struct side *side, bool stale) {
    bool is_late = stale && side->begun > side->done;
    uint64_t round = side->begun + (is_late ? 0 : 1);
    side->joined += is_late ? 0 : 1;
    side->taking += is_late ? 1 : 0;
    while (side->done < round) {
        /* Outcomes are kept in one place, so nobody begins before the last one has been taken over by all. */
        if (side->begun < round && side->begun == side->done && side->taking == 0) {
            return ROLE_LEADER;
        }
        DM_TRY(dm_cond_wait(client->ctx, &place->changed, &place->mutex));
    }
    return ROLE_MEMBER;
}

/* The joined ones are the round now; whoever comes later is not. */
static void round_begin(struct side *side) {
    side->begun++;
    side->taking = side->joined - 1;
    side->joined = 0;
}

static void round_end(struct rdwc_client *client, struct place *place, struct side *side, int outcome) {
    side->done = side->begun;
    side->outcome = outcome;
    dm_cond_wake_all(client->ctx, &place->changed);
}

/* One member has what it needs. */
static void outcome_taken(struct rdwc_client *client, struct place *place, struct side *side) {
    if (--side->taking == 0) {
        dm_cond_wake_all(client->ctx, &place->changed);
    }
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static int get_lead(struct rdwc_client *client, struct place *place, uint64_t key, void *value) {
    struct side *side = &place->gets;
    round_begin(side);
    dm_mutex_unlock(client->ctx, &place->mutex);
    int outcome = ix_get(&client->index, key, value);
    if (outcome == DM_ERR_STOPPED) {
        return outcome; /* so are all the others */
    }
    DM_TRY(dm_mutex_lock(client->ctx, &place->mutex));
    if (outcome == 0 && side->taking > 0) {
        memcpy(side->value, value, client->index.value_bytes);
    }
    round_end(client, place, side, outcome);
    return place_leave(client, place, outcome);
}

static int rdwc_get(void *handle, uint64_t key, void *value) {
    struct rdwc_client *client = handle;
    struct place *place;
    int rc = place_enter(client, key, &place);
    if (rc != 0) {
        return rc == DM_EXISTS ? ix_get(&client->index, key, value) : rc;
    }
    struct side *side = &place->gets;
    rc = round_join(client, place, side, client->rdwc->config.mode == IX_RDWC_STALE);
    if (rc != ROLE_MEMBER) {
        return rc == ROLE_LEADER ? get_lead(client, place, key, value) : rc;
    }
    if (side->outcome == 0) {
        memcpy(value, side->value, client->index.value_bytes);
    }
    int outcome = side->outcome;
    client->counts.shared_gets++;
    outcome_taken(client, place, side);
    return place_leave(client, place, outcome);
}

static int update_lead(struct rdwc_client *client, struct place *place, uint64_t key, const void *value) {
    struct side *side = &place->updates;
    if (side->joined > 1) {
        /* The next round collects its value where this one's is. */
        memcpy(client->value, side->value, client->index.value_bytes);
        value = client->value;
    }
    round_begin(side);
    dm_mutex_unlock(client->ctx, &place->mutex);
    int outcome = ix_update(&client->index, key, value);
    if (outcome == DM_ERR_STOPPED) {
        return outcome;
    }
    DM_TRY(dm_mutex_lock(client->ctx, &place->mutex));
    round_end(client, place, side, outcome);
    return place_leave(client, place, outcome);
}

static int rdwc_update(void *handle, uint64_t key, const void *value) {
    struct rdwc_client *client = handle;
    struct place *place;
    int rc = place_enter(client, key, &place);
    if (rc != 0) {
        return rc == DM_EXISTS ? ix_update(&client->index, key, value) : rc;
    }
    struct side *side = &place->updates;
    memcpy(side->value, value, client->index.value_bytes);
    rc = round_join(client, place, side, false);
    if (rc != ROLE_MEMBER) {
        return rc == ROLE_LEADER ? update_lead(client, place, key, value) : rc;
    }
    int outcome = side->outcome;
    client->counts.shared_updates++;
    outcome_taken(client, place, side);
    return place_leave(client, place, outcome);
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
    uint32_t wanted = config->places > 0 ? config->places : PLACES_PER_CLIENT * config->clients;
    wanted = config->places == 0 && wanted < PLACES_MIN ? PLACES_MIN : wanted;
    unsigned bits = 1; /* a shift by 64 means nothing */
    while (UINT64_C(1) << bits < wanted) {
        bits++;
    }
    size_t places = (size_t)1 << bits;
    rdwc->config = *config;
    rdwc->config.places = (uint32_t)places;
    rdwc->shift = 64 - bits;
    rdwc->places = calloc(places, sizeof(*rdwc->places));
    rdwc->values = calloc(2 * places, config->value_bytes);
    if (!rdwc->places || !rdwc->values) {
        ix_rdwc_close(rdwc);
        return NULL;
    }
    for (size_t i = 0; i < places; i++) {
        rdwc->places[i].gets.value = rdwc->values + 2 * i * config->value_bytes;
        rdwc->places[i].updates.value = rdwc->places[i].gets.value + config->value_bytes;
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
        free(rdwc->places);
        free(rdwc->values);
        free(rdwc);
    }
}

uint64_t ix_rdwc_bytes(const struct ix_rdwc *rdwc) {
    if (!rdwc) {
        return 0;
    }
    const struct ix_rdwc_config *config = &rdwc->config;
    return config->places * (sizeof(struct place) + 2 * (uint64_t)config->value_bytes) +
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
