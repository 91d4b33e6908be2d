/* SPDX-License-Identifier: Apache-2.0
 *
 * The quiet case: a single client on a loaded index, so that the cost of an operation is exact. Operations are counted
 * by kind: the sum over all of a kind, and the number of those with a given number of round trips.
 */
#ifndef DM_TESTS_QUIET_H
#define DM_TESTS_QUIET_H

#include "conformance/index_world.h"

enum operation { GET, UPDATE, INSERT, REMOVE };
enum { KIND_TRIPS = 12 };

struct kind {
    struct dm_account account;
    unsigned count, trips[KIND_TRIPS]; /* the last one: that many or more */
};

static inline void kind_count(struct kind *kind, const struct dm_account *account) {
    kind->count++;
    kind->trips[account->round_trips < KIND_TRIPS - 1 ? account->round_trips : KIND_TRIPS - 1]++;
    dm_account_add(&kind->account, account);
}

/* Runs one operation and counts it; returns its outcome. */
static inline int kind_run(struct dm_ctx *ctx, struct kind *kind, struct ix_client *client, enum operation operation,
                           uint64_t key, uint64_t *value) {
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    int rc = operation == GET      ? ix_get(client, key, value)
             : operation == UPDATE ? ix_update(client, key, value)
             : operation == INSERT ? ix_insert(client, key, value)
                                   : ix_remove(client, key);
    dm_account_use(ctx, NULL);
    kind_count(kind, &account);
    return rc;
}

/* Scans `count` pairs, which must exist, and counts the scan. Values have 8 bytes. */
static inline void kind_scan(struct dm_ctx *ctx, struct kind *kind, struct ix_client *client, uint64_t first,
                             uint32_t count) {
    struct dm_account account = {0};
    uint64_t *pairs = malloc(2 * count * sizeof(*pairs));
    uint32_t found;
    dm_account_use(ctx, &account);
    WORLD_CHECK_EQ(ix_scan(client, first, count, pairs, pairs + count, &found), 0);
    dm_account_use(ctx, NULL);
    WORLD_CHECK_EQ(found, count);
    kind_count(kind, &account);
    free(pairs);
}

/* True if there was at least one, and all took that many round trips. */
static inline bool kind_took(const struct kind *kind, unsigned trips) {
    return kind->count > 0 && kind->trips[trips] == kind->count;
}

/* What remains to be checked after a quiet case. */
struct quiet_end {
    struct ix_report report;
    uint64_t cached; /* bytes on the compute node */
};

/* Opens the world, loads the pairs, runs `entry`, verifies and closes. */
static inline struct quiet_end quiet_world(struct world *world, const struct world_config *config,
                                           const struct ix_pairs *pairs, int (*entry)(struct dm_ctx *, void *),
                                           void *arg) {
    struct quiet_end end;
    world_begin(world, config, pairs);
    world_do(world, 0, entry, arg);
    end.cached = ix_cache_bytes(config->ops, world->cns[0]);
    end.report = world_verify(world);
    world_close(world);
    return end;
}

/* quiet_world with every second of `keys` keys loaded: those between are absent. */
static inline struct quiet_end quiet_half_world(struct world *world, const struct world_config *config, uint64_t keys,
                                                int (*entry)(struct dm_ctx *, void *), void *arg) {
    struct world_pairs pairs;
    return quiet_world(world, config, world_pairs(&pairs, keys, 2, config->value_bytes), entry, arg);
}

/* Gets every `step`-th of `keys` keys from number `first` on, each with the same outcome: the inner nodes above them
 * come into the cache. Values have 8 bytes. */
static inline void quiet_warm(struct ix_client *client, uint64_t keys, uint64_t first, uint64_t step, int outcome) {
    uint64_t value;
    for (uint64_t i = first; i < keys; i += step) {
        WORLD_CHECK_EQ(ix_get(client, world_key(i, keys), &value), outcome);
    }
}

#endif
