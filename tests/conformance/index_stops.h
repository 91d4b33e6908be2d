/* SPDX-License-Identifier: Apache-2.0
 *
 * A client stops for good before one of the verbs of an update; then another one, on another compute node, reads and
 * writes the same key and its neighbours.
 */
#ifndef DM_TESTS_INDEX_STOPS_H
#define DM_TESTS_INDEX_STOPS_H

#include "conformance/index_world.h"

enum { STOPS_KEYS = 100, STOPS_KEY = 50, STOPS_LATER_NS = 300000, STOPS_VERBS = 12 };

struct stops {
    struct world world;
    struct ix_client writer, other;
    struct dm_account account;
    bool updated; /* the update returned before the fault */
    int get, update, remove, again;
    int insert; /* the first failure of many inserts near the key */
    unsigned inserts;
};

static inline void stops_writer(struct dm_ctx *ctx, void *arg) {
    struct stops *stops = arg;
    unsigned char value[WORLD_VALUE_MAX];
    dm_account_use(ctx, &stops->account);
    world_attach_into(&stops->world, 0, ctx, &stops->account, &stops->writer);
    world_value(STOPS_KEY, 1, value, stops->writer.value_bytes);
    stops->updated = ix_update(&stops->writer, world_key(STOPS_KEY, STOPS_KEYS), value) == 0;
    dm_account_use(ctx, NULL);
}

static inline void stops_other(struct dm_ctx *ctx, void *arg) {
    struct stops *stops = arg;
    struct ix_client *other = &stops->other;
    unsigned char value[WORLD_VALUE_MAX];
    uint64_t key = world_key(STOPS_KEY, STOPS_KEYS);
    *other = world_attach(&stops->world, 1, ctx, NULL);
    dm_sleep(ctx, STOPS_LATER_NS);
    stops->get = ix_get(other, key, value);
    if (stops->get == 0) {
        WORLD_CHECK(world_write_of(STOPS_KEY, value, other->value_bytes) <= 1);
        WORLD_CHECK_EQ(ix_insert(other, key, value), DM_EXISTS);
    }
    world_value(STOPS_KEY, 2, value, other->value_bytes);
    stops->update = ix_update(other, key, value);
    if (stops->update == 0) {
        WORLD_CHECK_EQ(ix_get(other, key, value), 0);
        WORLD_CHECK_EQ(world_write_of(STOPS_KEY, value, other->value_bytes), 2);
    }
    stops->remove = ix_remove(other, key);
    if (stops->remove == 0) {
        WORLD_CHECK_EQ(ix_get(other, key, value), DM_NOT_FOUND);
    }
    stops->again = ix_insert(other, key, value);
    for (; stops->inserts < 2 * STOPS_KEYS && stops->insert == 0; stops->inserts++) {
        stops->insert = ix_insert(other, key + 1 + stops->inserts, value);
    }
    WORLD_CHECK_EQ(ix_get(other, world_key(STOPS_KEY + 1, STOPS_KEYS), value), 0);
}

/* One world; `verb` 0: no client stops. */
static inline void stops_run(struct stops *stops, struct world_config config, unsigned verb) {
    char fault[40];
    struct world_pairs pairs;
    memset(stops, 0, sizeof(*stops));
    config.cns = 2;
    config.clients = 2;
    config.retry_limit = 2000;
    snprintf(fault, sizeof(fault), "stop:client=0,verb=%u", verb);
    config.settings[0] = (struct dm_setting){"faults", verb > 0 ? fault : ""};
    world_open(&stops->world, &config);
    world_load(&stops->world, world_pairs(&pairs, STOPS_KEYS, 1, config.value_bytes));
    dm_fabric_measure(stops->world.fabric);
    unsigned first = dm_first_cn(&stops->world.topology);
    assert_int_equal(dm_spawn(stops->world.fabric, first, 0, stops_writer, stops), 0);
    assert_int_equal(dm_spawn(stops->world.fabric, first + 1, 0, stops_other, stops), 0);
    world_run(&stops->world);
    ix_detach(&stops->writer);
    ix_detach(&stops->other);
    world_close(&stops->world);
}

#endif
