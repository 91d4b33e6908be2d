/* SPDX-License-Identifier: Apache-2.0
 *
 * What every index must do on every transport, judged against a reference map; each test runs for each pair of
 * indexes.def and transports.def (see transport_choice.h).
 */
#include "conformance/index_steady.h"
#include "conformance/transport_choice.h"

#include "common/compiler.h"

struct pair {
    const struct ix_ops *ops;
    const struct dm_transport_info *transport;
};

static bool virtual_time(const struct pair *pair) {
    return pair->transport->caps & DM_CAP_VIRTUAL_TIME;
}

static bool keeps_data(const struct pair *pair) {
    return !(pair->ops->caps & IX_CAP_NO_DATA);
}

/* A device may be one of software on a slow machine, and threads are slow with their sanitizer: a third of the
 * operations, which is still enough to reach all that they are for. */
static bool is_slow(const struct dm_transport_info *transport) {
    return DM_TSAN || transport->caps & DM_CAP_DEVICE;
}

static unsigned sized(const char *transport, unsigned operations) {
    return is_slow(dm_transport_find(transport)) ? operations / 3 : operations;
}

static struct world_config config_of(const struct pair *pair) {
    struct world_config config = world_least(pair->ops);
    config.transport = pair->transport->name;
    config.cache_bytes = 1 << 20;
    config.seed = 7;
    return config;
}

/* ---- one client against a map -------------------------------------------------------------------------------------
 */

enum { MAP_KEYS = 700, SCAN_MAX = 120 };

struct map {
    struct world *world;
    unsigned cn, operations;
    uint64_t seed, writes;
    uint64_t write_of[MAP_KEYS]; /* UINT64_MAX: absent */
};

static void scan_check(const struct map *map, struct ix_client *client, uint64_t first, uint32_t count) {
    uint64_t keys[SCAN_MAX];
    uint32_t found;
    char *values = malloc((size_t)SCAN_MAX * client->value_bytes);
    WORLD_CHECK(values);
    WORLD_CHECK_EQ(ix_scan(client, world_key(first, MAP_KEYS), count, keys, values, &found), 0);
    uint32_t at = 0;
    for (uint64_t number = first; number < MAP_KEYS && at < count; number++) {
        if (map->write_of[number] == UINT64_MAX) {
            continue;
        }
        WORLD_CHECK(at < found);
        if (at >= found) {
            break;
        }
        WORLD_CHECK_EQ(keys[at], world_key(number, MAP_KEYS));
        WORLD_CHECK_EQ(world_write_of(number, values + (size_t)at * client->value_bytes, client->value_bytes),
                       map->write_of[number]);
        at++;
    }
    WORLD_CHECK_EQ(found, at);
    free(values);
}

static void operation_check(struct map *map, struct ix_client *client, struct dm_prng *prng) {
    uint64_t number = dm_prng_below(prng, MAP_KEYS);
    uint64_t key = world_key(number, MAP_KEYS);
    uint64_t *entry = &map->write_of[number];
    bool present = *entry != UINT64_MAX;
    unsigned char value[WORLD_VALUE_MAX];
    uint64_t draw = dm_prng_below(prng, 100);
    if (draw < 30) {
        WORLD_CHECK_EQ(ix_get(client, key, value), present ? 0 : DM_NOT_FOUND);
        if (present) {
            WORLD_CHECK_EQ(world_write_of(number, value, client->value_bytes), *entry);
        }
    } else if (draw < 65) {
        world_value(number, ++map->writes, value, client->value_bytes);
        WORLD_CHECK_EQ(ix_insert(client, key, value), present ? DM_EXISTS : 0);
        *entry = present ? *entry : map->writes;
    } else if (draw < 80) {
        world_value(number, ++map->writes, value, client->value_bytes);
        WORLD_CHECK_EQ(ix_update(client, key, value), present ? 0 : DM_NOT_FOUND);
        *entry = present ? map->writes : *entry;
    } else if (draw < 95 && client->ops->caps & IX_CAP_DELETE) {
        WORLD_CHECK_EQ(ix_remove(client, key), present ? 0 : DM_NOT_FOUND);
        *entry = UINT64_MAX;
    } else if (client->ops->caps & IX_CAP_SCAN) {
        scan_check(map, client, number, (uint32_t)dm_prng_below(prng, SCAN_MAX));
    }
}

static int map_entry(struct dm_ctx *ctx, void *arg) {
    struct map *map = arg;
    struct dm_account account = {0};
    struct ix_client client = world_attach(map->world, map->cn, ctx, &account);
    struct dm_prng prng = dm_prng_stream(map->seed, "map", map->cn);
    for (unsigned i = 0; i < map->operations; i++) {
        operation_check(map, &client, &prng);
    }
    ix_detach(&client);
    dm_account_use(ctx, NULL);
    return 0;
}

/* Compute nodes take turns, so that each finds its cache out of date. */
static struct ix_report map_run(const struct world_config *config, uint64_t loaded_step) {
    struct world world;
    world_open(&world, config);
    struct map map = {.world = &world, .operations = sized(config->transport, 600)};
    for (unsigned i = 0; i < MAP_KEYS; i++) {
        map.write_of[i] = loaded_step > 0 && i % loaded_step == 0 ? 0 : UINT64_MAX;
    }
    struct world_pairs pairs;
    if (loaded_step > 0) {
        world_load(&world, world_pairs(&pairs, MAP_KEYS, loaded_step, config->value_bytes));
        world_verify(&world);
    }
    dm_fabric_measure(world.fabric);
    struct ix_report report = {0};
    for (unsigned turn = 0; turn < 12; turn++) {
        map.cn = turn % config->cns;
        map.seed = config->seed + turn;
        world_do(&world, map.cn, map_entry, &map);
        report = world_verify(&world);
        uint64_t keys = 0;
        for (unsigned i = 0; i < MAP_KEYS; i++) {
            keys += map.write_of[i] != UINT64_MAX;
        }
        assert_int_equal(report.keys, keys);
        assert_true(ix_cache_bytes(config->ops, world.cns[map.cn]) <= config->cache_bytes);
    }
    world_close(&world);
    return report;
}

static void random_operations_agree_with_a_map(void **state) {
    const struct pair *pair = *state;
    static const uint32_t values[] = {8, 64, 200}, keys[] = {8, 40, 9};
    if (!keeps_data(pair)) {
        skip();
    }
    for (unsigned i = 0; i < DM_ARRAY_LEN(values); i++) {
        struct world_config config = config_of(pair);
        config.value_bytes = values[i];
        config.key_bytes = keys[i];
        config.mns = i == 1 ? 3 : 1;
        config.cns = i == 0 ? 1 : 2;
        map_run(&config, i == 2 ? 3 : 0);
    }
}

static void random_operations_agree_with_a_map_on_small_nodes(void **state) {
    const struct pair *pair = *state;
    static const uint64_t caches[] = {1 << 20, 3000, 0};
    if (!keeps_data(pair)) {
        skip();
    }
    for (unsigned i = 0; i < DM_ARRAY_LEN(caches); i++) {
        struct world_config config = config_of(pair);
        config.tiny = true;
        config.mns = i == 1 ? 1 : 3;
        config.cns = 2;
        config.cache_bytes = caches[i];
        config.seed = 100 + i;
        struct ix_report report = map_run(&config, i == 0 ? 0 : 1 + i);
        assert_true(report.height == 0 || report.height >= 4);
    }
}

/* ---- bulk load ------------------------------------------------------------------------------------------------------
 */

struct loaded {
    struct world *world;
    uint64_t keys;
};

static int loaded_entry(struct dm_ctx *ctx, void *arg) {
    struct loaded *loaded = arg;
    struct ix_client client = world_attach(loaded->world, 0, ctx, NULL);
    unsigned char value[WORLD_VALUE_MAX];
    for (uint64_t i = 0; i < 2 * loaded->keys; i++) {
        int rc = ix_get(&client, world_key(i, 2 * loaded->keys), value);
        WORLD_CHECK_EQ(rc, i % 2 == 0 ? 0 : DM_NOT_FOUND);
        if (rc == 0) {
            WORLD_CHECK_EQ(world_write_of(i, value, client.value_bytes), 0);
        }
    }
    ix_detach(&client);
    return 0;
}

static void bulk_load_keeps_every_pair_at_any_size(void **state) {
    const struct pair *pair = *state;
    static const uint64_t sizes[] = {0, 1, 2, 3, 5, 17, 43, 44, 100, 1999};
    if (!keeps_data(pair)) {
        skip();
    }
    for (unsigned i = 0; i < DM_ARRAY_LEN(sizes); i++) {
        struct world_config config = config_of(pair);
        config.tiny = i % 2 == 0;
        config.mns = 1 + i % 3;
        struct world world;
        world_open(&world, &config);
        struct world_pairs pairs;
        const struct ix_pairs *source = world_pairs(&pairs, 2 * sizes[i] + (sizes[i] == 0), 2, 8);
        pairs.pairs.count = sizes[i];
        world_load(&world, source);
        assert_int_equal(world_verify(&world).keys, sizes[i]);
        struct loaded loaded = {.world = &world, .keys = sizes[i]};
        world_do(&world, 0, loaded_entry, &loaded);
        world_close(&world);
    }
}

/* ---- many clients on few keys -------------------------------------------------------------------------------------
 */

enum { CROWD_KEYS = 48, CROWD_CLIENTS = 12, CROWD_SCAN = 40 };

struct crowd_client {
    struct world *world;
    unsigned number, operations;
    uint64_t seed, hash, oks;
    struct dm_account account;
    uint64_t writes;
};

static void crowd_value_check(const struct ix_client *client, uint64_t number, const void *value) {
    if (client->ops->caps & IX_CAP_NO_DATA) {
        return;
    }
    uint64_t write = world_write_of(number, value, client->value_bytes);
    WORLD_CHECK(write != UINT64_MAX);
    WORLD_CHECK(write == 0 || (write >> 32) <= CROWD_CLIENTS);
}

static void crowd_scan(struct crowd_client *own, struct ix_client *client, uint64_t first) {
    uint64_t keys[CROWD_SCAN];
    uint32_t found;
    char *values = malloc((size_t)CROWD_SCAN * client->value_bytes);
    WORLD_CHECK(values);
    WORLD_CHECK_EQ(ix_scan(client, world_key(first, CROWD_KEYS), CROWD_SCAN, keys, values, &found), 0);
    for (uint32_t i = 0; i < found; i++) {
        WORLD_CHECK(keys[i] >= world_key(first, CROWD_KEYS));
        WORLD_CHECK(i == 0 || keys[i] > keys[i - 1]);
        uint64_t number = world_number_of(keys[i], CROWD_KEYS);
        WORLD_CHECK(number != UINT64_MAX || client->ops->caps & IX_CAP_NO_DATA);
        crowd_value_check(client, number, values + (size_t)i * client->value_bytes);
        own->hash = dm_mix64(own->hash ^ keys[i]);
    }
    free(values);
}

static void crowd_operation(struct crowd_client *own, struct ix_client *client, struct dm_prng *prng) {
    uint64_t number = dm_prng_below(prng, CROWD_KEYS);
    uint64_t key = world_key(number, CROWD_KEYS);
    unsigned char value[WORLD_VALUE_MAX];
    uint64_t draw = dm_prng_below(prng, 100);
    uint64_t write = (uint64_t)(own->number + 1) << 32 | (own->writes + 1);
    int rc = 0;
    if (draw < 30) {
        rc = ix_get(client, key, value);
        if (rc == 0) {
            crowd_value_check(client, number, value);
            own->hash = dm_mix64(own->hash ^ value[0]);
        }
    } else if (draw < 80) {
        own->writes++;
        world_value(number, write, value, client->value_bytes);
        rc = draw < 55 ? ix_insert(client, key, value) : ix_update(client, key, value);
    } else if (draw < 92 && client->ops->caps & IX_CAP_DELETE) {
        rc = ix_remove(client, key);
    } else if (client->ops->caps & IX_CAP_SCAN) {
        crowd_scan(own, client, number);
    }
    WORLD_CHECK(rc >= 0);
    own->oks += rc == 0;
    own->hash = dm_mix64(own->hash ^ (uint64_t)rc);
}

static void crowd_entry(struct dm_ctx *ctx, void *arg) {
    struct crowd_client *own = arg;
    unsigned cn = own->number % own->world->config.cns;
    struct ix_client client = world_attach(own->world, cn, ctx, &own->account);
    struct dm_prng prng = dm_prng_stream(own->seed, "crowd", own->number);
    for (unsigned i = 0; i < own->operations; i++) {
        crowd_operation(own, &client, &prng);
    }
    ix_detach(&client);
    dm_account_use(ctx, NULL);
}

struct crowd_result {
    uint64_t hash;
    struct dm_account account;
    struct ix_report report;
};

static struct crowd_result crowd_run(struct world_config config, unsigned operations) {
    struct world world;
    struct crowd_client clients[CROWD_CLIENTS];
    config.clients = CROWD_CLIENTS;
    config.clients_per_thread = CROWD_CLIENTS / config.cns / 2;
    world_begin(&world, &config, NULL);
    struct crowd_result result = {0};
    for (unsigned i = 0; i < CROWD_CLIENTS; i++) {
        clients[i] = (struct crowd_client){.world = &world, .number = i, .operations = operations, .seed = config.seed};
        unsigned node = dm_first_cn(&world.topology) + i % config.cns;
        unsigned thread = i / config.cns % dm_thread_count(world.fabric, node);
        assert_int_equal(dm_spawn(world.fabric, node, thread, crowd_entry, &clients[i]), 0);
    }
    world_run(&world);
    uint64_t oks = 0;
    for (unsigned i = 0; i < CROWD_CLIENTS; i++) {
        result.hash = dm_mix64(result.hash ^ clients[i].hash);
        dm_account_add(&result.account, &clients[i].account);
        oks += clients[i].oks;
    }
    assert_true(oks > 0);
    result.report = world_verify(&world);
    assert_true(result.report.keys <= CROWD_KEYS);
    world_close(&world);
    return result;
}

static void many_clients_on_few_keys_leave_the_index_whole(void **state) {
    const struct pair *pair = *state;
    static const uint32_t values[] = {8, 8, 64, 200};
    for (unsigned i = 0; i < DM_ARRAY_LEN(values); i++) {
        struct world_config config = config_of(pair);
        config.tiny = true;
        config.mns = i % 2 ? 3 : 1;
        config.cns = 2;
        config.value_bytes = values[i];
        config.key_bytes = i == 2 ? 24 : 0;
        config.cache_bytes = i == 1 ? 2500 : 1 << 20;
        config.seed = 40 + i;
        if (virtual_time(pair)) {
            config.settings[0] = (struct dm_setting){"read_line_order", i % 2 ? "descending" : "random"};
            config.settings[1] = (struct dm_setting){"write_line_order", "random"};
            config.settings[2] = (struct dm_setting){"read_window", "2us"};
            config.settings[3] = (struct dm_setting){"write_window", "2us"};
        }
        crowd_run(config, sized(config.transport, 500));
    }
}

static void a_virtual_run_depends_on_its_seed_alone(void **state) {
    const struct pair *pair = *state;
    if (!virtual_time(pair)) {
        skip();
    }
    struct world_config config = config_of(pair);
    config.tiny = true;
    config.mns = 2;
    config.cns = 2;
    struct crowd_result one = crowd_run(config, 200);
    struct crowd_result two = crowd_run(config, 200);
    assert_memory_equal(&one, &two, sizeof(one));
    config.seed++;
    struct crowd_result other = crowd_run(config, 200);
    assert_true(!keeps_data(pair) || other.hash != one.hash);
    assert_true(!keeps_data(pair) || memcmp(&other.account, &one.account, sizeof(one.account)) != 0);
}

static void keys_that_stay_are_never_missed_while_nodes_split(void **state) {
    const struct pair *pair = *state;
    static const uint32_t values[] = {8, 8, 8, 64, 200};
    if (!keeps_data(pair)) {
        skip();
    }
    unsigned turns = is_slow(pair->transport) ? 1 : 2;
    for (unsigned i = 0; i < turns * DM_ARRAY_LEN(values); i++) {
        struct world_config config = config_of(pair);
        config.tiny = true;
        config.mns = 1 + i % 3;
        config.cns = 1 + i % 2;
        config.value_bytes = values[i % DM_ARRAY_LEN(values)];
        config.key_bytes = config.value_bytes == 64 ? 30 : 0;
        config.cache_bytes = i == 1 ? 2500 : 1 << 20;
        config.seed = 60 + i;
        struct steady_result result = steady_run(config, sized(config.transport, 600));
        assert_int_equal(result.missing, 0);
        assert_int_equal(result.backwards, 0);
        assert_int_equal(result.torn, 0);
        assert_int_equal(result.scan_missing, 0);
        assert_int_equal(result.scan_wrong, 0);
        assert_int_equal(result.failure, 0);
        assert_int_equal(result.failed, 0);
        assert_int_equal(result.report.broken, 0);
        assert_true(result.report.keys >= STEADY_KEYS / STEADY_STEP);
    }
}

/* What a client writes to two memory nodes is seen in either order, however long one of them takes. */
static void a_memory_node_where_writes_land_late_breaks_nothing(void **state) {
    static const char *const late[] = {"delay:p=1,by=20us,kind=write,node=0", "delay:p=1,by=20us,kind=write,node=1"};
    const struct pair *pair = *state;
    if (!keeps_data(pair) || !(pair->transport->caps & DM_CAP_FAULTS)) {
        skip();
    }
    for (unsigned i = 0; i < 2 * DM_ARRAY_LEN(late); i++) {
        struct world_config config = steady_small(pair->ops, 2 * i + 1);
        config.transport = pair->transport->name;
        config.mns = 2;
        config.settings[4] = (struct dm_setting){"faults", late[i % DM_ARRAY_LEN(late)]};
        assert_int_equal(steady_run(config, 200).violations, 0);
    }
}

/* ---- full memory ----------------------------------------------------------------------------------------------------
 */

enum { FULL_KEYS = 20000 };

struct full {
    struct world *world;
    uint64_t inserted, refused;
};

static int full_entry(struct dm_ctx *ctx, void *arg) {
    struct full *full = arg;
    struct ix_client client = world_attach(full->world, 0, ctx, NULL);
    unsigned char value[WORLD_VALUE_MAX];
    struct dm_prng prng = dm_prng_stream(3, "full", 0);
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t number = dm_prng_below(&prng, FULL_KEYS);
        world_value(number, 1, value, client.value_bytes);
        int rc = ix_insert(&client, world_key(number, FULL_KEYS), value);
        WORLD_CHECK(rc == 0 || rc == DM_EXISTS || rc == DM_ERR_NO_MEMORY);
        int seen = ix_get(&client, world_key(number, FULL_KEYS), value);
        WORLD_CHECK_EQ(seen, rc == DM_ERR_NO_MEMORY ? DM_NOT_FOUND : 0);
        full->inserted += rc == 0;
        full->refused += rc == DM_ERR_NO_MEMORY;
    }
    ix_detach(&client);
    return 0;
}

static void a_full_memory_node_refuses_inserts_and_breaks_nothing(void **state) {
    const struct pair *pair = *state;
    if (!keeps_data(pair)) {
        skip();
    }
    struct world_config config = config_of(pair);
    config.tiny = true;
    config.mns = 2;
    config.mn_bytes = 256 << 10;
    config.chunk_bytes = 8 << 10;
    config.value_bytes = 200;
    config.expected_keys = 500; /* more come: the memory of what is sized beforehand is not what runs out */
    struct world world;
    world_begin(&world, &config, NULL);
    struct full full = {.world = &world};
    world_do(&world, 0, full_entry, &full);
    assert_true(full.inserted > 0);
    assert_true(full.refused > 0);
    assert_int_equal(world_verify(&world).keys, full.inserted);
    world_close(&world);
}

/* ---- all pairs ----------------------------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    CMUnitTestFunction function;
} suite[] = {
    {"random operations agree with a map", random_operations_agree_with_a_map},
    {"random operations agree with a map on small nodes", random_operations_agree_with_a_map_on_small_nodes},
    {"bulk load keeps every pair at any size", bulk_load_keeps_every_pair_at_any_size},
    {"many clients on few keys leave the index whole", many_clients_on_few_keys_leave_the_index_whole},
    {"keys that stay are never missed while nodes split", keys_that_stay_are_never_missed_while_nodes_split},
    {"a memory node where writes land late breaks nothing", a_memory_node_where_writes_land_late_breaks_nothing},
    {"a virtual run depends on its seed alone", a_virtual_run_depends_on_its_seed_alone},
    {"a full memory node refuses inserts and breaks nothing", a_full_memory_node_refuses_inserts_and_breaks_nothing},
};

enum { PAIRS_MAX = 64, NAME_MAX_BYTES = 160 };

int main(void) {
    static struct pair pairs[PAIRS_MAX];
    static char names[PAIRS_MAX * DM_ARRAY_LEN(suite)][NAME_MAX_BYTES];
    static struct CMUnitTest tests[PAIRS_MAX * DM_ARRAY_LEN(suite)];
    size_t pair_count = 0;
    size_t count = 0;
    for (const struct dm_transport_info *const *transport = dm_transports(); *transport; transport++) {
        if (!test_runs_on(*transport)) {
            continue;
        }
        for (const struct ix_ops *const *ops = ix_all(); *ops && pair_count < PAIRS_MAX; ops++) {
            if (!((*ops)->caps & IX_CAP_INSERT)) { /* a measurement in the shape of an index */
                continue;
            }
            struct pair *pair = &pairs[pair_count++];
            *pair = (struct pair){*ops, *transport};
            for (size_t i = 0; i < DM_ARRAY_LEN(suite); i++, count++) {
                snprintf(names[count], NAME_MAX_BYTES, "%s on %s: %s", (*ops)->name, (*transport)->name, suite[i].name);
                tests[count] =
                    (struct CMUnitTest){.name = names[count], .test_func = suite[i].function, .initial_state = pair};
            }
        }
    }
    return test_run("index_conformance", tests, count);
}
