/* SPDX-License-Identifier: Apache-2.0
 *
 * A crowd that can be judged exactly without a history: some keys ("steady") are loaded and never removed, each has one
 * writer that raises its write number, and meanwhile other clients insert and remove the keys between them, so that
 * nodes split under the readers. Then no get may miss a steady key, no reader may see a key's write numbers decrease,
 * no value may be one that was never written, and no scan may leave a steady key out, nor return a key out of order or
 * one that the world does not have. Violations are counted, not asserted, so that variants that are known to be wrong
 * can be shown to be.
 */
#ifndef DM_TESTS_INDEX_STEADY_H
#define DM_TESTS_INDEX_STEADY_H

#include "conformance/index_world.h"

enum { STEADY_CLIENTS = 12, STEADY_KEYS = 240, STEADY_STEP = 4, STEADY_SCAN = 60, STEADY_COUNTERS = 32 };

struct steady_client {
    struct world *world;
    unsigned number, operations;
    uint64_t seed;
    uint64_t seen[STEADY_KEYS]; /* newest write of each steady key that this client knows of */
    uint64_t missing, backwards, torn, scan_missing, scan_wrong, failed;
    int failure; /* the first one */
    uint64_t counts[STEADY_COUNTERS];
    struct dm_account account;
};

struct steady_result {
    uint64_t missing, backwards, torn, scan_missing, scan_wrong, failed;
    int failure;         /* one of those that failed, or 0 */
    uint64_t violations; /* the sum */
    uint64_t counts[STEADY_COUNTERS];
    struct dm_account account;
    struct ix_report report;
};

static inline void steady_judge(struct steady_client *own, uint64_t number, const void *value, uint32_t bytes) {
    uint64_t write = world_write_of(number, value, bytes);
    if (write == UINT64_MAX) {
        own->torn++;
    } else if (number % STEADY_STEP == 0) {
        own->backwards += write < own->seen[number];
        own->seen[number] = write > own->seen[number] ? write : own->seen[number];
    }
}

static inline void steady_outcome(struct steady_client *own, int rc) {
    own->failed += rc < 0;
    own->failure = own->failure ? own->failure : rc < 0 ? rc : 0;
}

static inline void steady_scan(struct steady_client *own, struct ix_client *client, uint64_t first) {
    uint64_t keys[STEADY_SCAN];
    char *values = malloc((size_t)STEADY_SCAN * client->value_bytes);
    uint32_t found = 0;
    uint64_t low = world_key(first, STEADY_KEYS);
    int rc = ix_scan(client, low, STEADY_SCAN, keys, values, &found);
    steady_outcome(own, rc);
    uint64_t expected = (first + STEADY_STEP - 1) / STEADY_STEP * STEADY_STEP;
    for (uint32_t i = 0; i < found && rc == 0; i++) {
        uint64_t number = world_number_of(keys[i], STEADY_KEYS);
        if (number == UINT64_MAX || keys[i] < low || (i > 0 && keys[i] <= keys[i - 1])) {
            own->scan_wrong++;
            continue;
        }
        steady_judge(own, number, values + (size_t)i * client->value_bytes, client->value_bytes);
        if (number % STEADY_STEP == 0) {
            own->scan_missing += number != expected;
            expected = number + STEADY_STEP;
        }
    }
    own->scan_missing += rc == 0 && found < STEADY_SCAN && expected < STEADY_KEYS;
    free(values);
}

static inline void steady_operation(struct steady_client *own, struct ix_client *client, struct dm_prng *prng) {
    uint64_t number = dm_prng_below(prng, STEADY_KEYS);
    unsigned char value[WORLD_VALUE_MAX];
    uint64_t draw = dm_prng_below(prng, 100);
    if (draw < 30) {
        number -= number % STEADY_STEP;
        int rc = ix_get(client, world_key(number, STEADY_KEYS), value);
        own->missing += rc == DM_NOT_FOUND;
        steady_outcome(own, rc);
        if (rc == 0) {
            steady_judge(own, number, value, client->value_bytes);
        }
    } else if (draw < 55) {
        /* Each steady key has one writer: the client whose turn its position is. */
        uint64_t each = STEADY_STEP * STEADY_CLIENTS;
        number = number / each * each + own->number * STEADY_STEP;
        if (number < STEADY_KEYS) {
            world_value(number, own->seen[number] + 1, value, client->value_bytes);
            int rc = ix_update(client, world_key(number, STEADY_KEYS), value);
            own->missing += rc == DM_NOT_FOUND;
            steady_outcome(own, rc);
            own->seen[number] += rc == 0;
        }
    } else if (draw < 92 || !(client->ops->caps & IX_CAP_SCAN)) {
        number += number % STEADY_STEP == 0;
        world_value(number, 1, value, client->value_bytes);
        bool removes = draw >= 80 && client->ops->caps & IX_CAP_DELETE;
        int rc = removes ? ix_remove(client, world_key(number, STEADY_KEYS))
                         : ix_insert(client, world_key(number, STEADY_KEYS), value);
        steady_outcome(own, rc);
    } else {
        steady_scan(own, client, number);
    }
}

static inline void steady_entry(struct dm_ctx *ctx, void *arg) {
    struct steady_client *own = arg;
    struct ix_client client = world_attach(own->world, own->number % own->world->config.cns, ctx, &own->account);
    struct dm_prng prng = dm_prng_stream(own->seed, "steady", own->number);
    for (unsigned i = 0; i < own->operations && own->failed == 0; i++) {
        steady_operation(own, &client, &prng);
    }
    for (unsigned i = 0; i < ix_counter_count(client.ops) && i < STEADY_COUNTERS; i++) {
        own->counts[i] = ix_counts(&client)[i];
    }
    ix_detach(&client);
    dm_account_use(ctx, NULL);
}

/* Weak memory order, where the transport has an option for it. */
static inline void steady_weak(struct world_config *config) {
    if (dm_transport_find(config->transport)->caps & DM_CAP_VIRTUAL_TIME) {
        config->settings[0] = (struct dm_setting){"read_line_order", config->seed % 2 ? "descending" : "random"};
        config->settings[1] = (struct dm_setting){"write_line_order", "random"};
        config->settings[2] = (struct dm_setting){"read_window", "3us"};
        config->settings[3] = (struct dm_setting){"write_window", "3us"};
    }
}

/* Runs the crowd for this configuration (its clients are set here) and sums up what it saw and what verify found. */
static inline struct steady_result steady_run(struct world_config config, unsigned operations) {
    static struct steady_client clients[STEADY_CLIENTS];
    struct world world;
    struct world_pairs pairs;
    config.clients = STEADY_CLIENTS;
    config.retry_limit = config.retry_limit ? config.retry_limit : 20000;
    config.clients_per_thread = STEADY_CLIENTS / config.cns / 2;
    steady_weak(&config);
    world_begin(&world, &config, world_pairs(&pairs, STEADY_KEYS, STEADY_STEP, config.value_bytes));
    for (unsigned i = 0; i < STEADY_CLIENTS; i++) {
        clients[i] =
            (struct steady_client){.world = &world, .number = i, .operations = operations, .seed = config.seed};
        unsigned node = dm_first_cn(&world.topology) + i % config.cns;
        unsigned thread = i / config.cns % dm_thread_count(world.fabric, node);
        assert_int_equal(dm_spawn(world.fabric, node, thread, steady_entry, &clients[i]), 0);
    }
    world_run(&world);
    struct steady_result result = {0};
    for (unsigned i = 0; i < STEADY_CLIENTS; i++) {
        const struct steady_client *own = &clients[i];
        result.missing += own->missing;
        result.backwards += own->backwards;
        result.torn += own->torn;
        result.scan_missing += own->scan_missing;
        result.scan_wrong += own->scan_wrong;
        result.failed += own->failed;
        result.failure = own->failure ? own->failure : result.failure;
        for (unsigned c = 0; c < STEADY_COUNTERS; c++) {
            result.counts[c] += own->counts[c];
        }
        dm_account_add(&result.account, &own->account);
    }
    result.report = world_walk(&world);
    result.violations = result.missing + result.backwards + result.torn + result.scan_missing + result.scan_wrong +
                        result.failed + result.report.broken;
    world_close(&world);
    return result;
}

/* ---- what an index's own tests do with crowds ----------------------------------------------------------------------
 */

/* Small nodes and caches, and one to three memory nodes, by the seed. */
static inline struct world_config steady_small(const struct ix_ops *ops, uint64_t seed) {
    struct world_config config = world_least(ops);
    config.tiny = true;
    config.cns = 2;
    config.mns = 1 + (unsigned)(seed % 3);
    config.cache_bytes = seed % 4 == 0 ? 2500 : 1 << 20;
    config.seed = seed;
    return config;
}

/* Nothing is wrong under any of these settings. */
static inline void steady_all_right(const struct ix_ops *ops, const struct dm_setting *settings, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct world_config config = steady_small(ops, i);
        config.params[0] = settings[i];
        assert_int_equal(steady_run(config, 300).violations, 0);
    }
}

/* Adds what a crowd saw, which must have been right. */
static inline void steady_count(struct world_config config, uint64_t *counts) {
    struct steady_result result = steady_run(config, 300);
    assert_int_equal(result.violations, 0);
    for (unsigned c = 0; c < STEADY_COUNTERS; c++) {
        counts[c] += result.counts[c];
    }
}

/* Every event that the index calls rare was counted, but for those in the bits of `except`. */
static inline void steady_events_seen(const struct ix_ops *ops, const uint64_t *counts, unsigned except) {
    for (unsigned c = 0; c < ix_counter_count(ops) && c < STEADY_COUNTERS; c++) {
        if (ops->counters[c].rare && !(except >> c & 1) && counts[c] == 0) {
            fail_msg("event %s never happened", ops->counters[c].name);
        }
    }
}

/* Seeds until a variant is caught; 0: not within `seeds`. `with` is a second setting, if it has a name. */
static inline uint64_t steady_caught(const struct ix_ops *ops, struct dm_setting variant, struct dm_setting with,
                                     uint32_t value_bytes, uint64_t seeds) {
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct world_config config = steady_small(ops, seed);
        config.value_bytes = value_bytes;
        config.params[0] = variant;
        config.params[1] = with;
        if (steady_run(config, 300).violations > 0) {
            print_message("%s=%s: caught at seed %u\n", variant.name, variant.value, (unsigned)seed);
            return seed;
        }
    }
    return 0;
}

#endif
