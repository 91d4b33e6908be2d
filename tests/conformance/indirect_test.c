/* SPDX-License-Identifier: Apache-2.0
 *
 * Values in blocks, for every index that has `values=indirect`: what they cost in the quiet case, that many clients
 * read consistent and current values of any size, that blocks are reused, and that full memory changes nothing.
 */
#include <inttypes.h>

#include "conformance/index_steady.h"
#include "conformance/quiet.h"
#include "indexes/shared/indirect.h"

enum { KEYS = 2000, SAMPLES = 50, SCANNED = 20, ROUNDS = 3000 };

static struct world_config config_of(const struct ix_ops *ops, uint32_t value_bytes) {
    struct world_config config = world_least(ops);
    config.value_bytes = value_bytes;
    config.expected_keys = KEYS;
    config.params[0] = (struct dm_setting){"values", "indirect"};
    return config;
}

/* Calls `test` for each index whose indirect values are those of indexes/shared/indirect.h; at least two are.
 * XStore-D's blocks are written by its memory nodes; xstore_d_test has their test. */
static void for_each_index(void (*test)(const struct ix_ops *ops)) {
    unsigned count = 0;
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        const struct dm_opt *values = (*ops)->params ? dm_opt_find((*ops)->params, "values") : NULL;
        if (values && values->choices == ix_values_choices) {
            test(*ops);
            count++;
        }
    }
    assert_true(count >= 2);
}

/* ---- the quiet case ---------------------------------------------------------------------------------------------- */

struct quiet {
    struct world *world;
    struct dm_account get, absent, update, insert, remove, scan;
};

static int quiet_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(quiet->world, 0, ctx, NULL);
    uint32_t bytes = client.value_bytes;
    unsigned char value[WORLD_VALUE_MAX];
    uint64_t keys[SCANNED];
    unsigned char values[SCANNED * WORLD_VALUE_MAX];
    uint32_t found;
    for (uint64_t i = 0; i < KEYS; i += 2) {
        WORLD_CHECK_EQ(ix_get(&client, world_key(i, KEYS), value), 0);
        WORLD_CHECK_EQ(world_write_of(i, value, bytes), 0);
    }
    for (uint64_t n = 0; n < SAMPLES; n++) {
        uint64_t number = 2 * (n * 7 % 900);
        uint64_t present = world_key(number, KEYS);
        uint64_t absent = world_key(number + 1, KEYS);
        world_value(number, n + 1, value, bytes);
        dm_account_use(ctx, &quiet->update);
        WORLD_CHECK_EQ(ix_update(&client, present, value), 0);
        dm_account_use(ctx, &quiet->get);
        WORLD_CHECK_EQ(ix_get(&client, present, value), 0);
        WORLD_CHECK_EQ(world_write_of(number, value, bytes), n + 1);
        dm_account_use(ctx, &quiet->absent);
        WORLD_CHECK_EQ(ix_get(&client, absent, value), DM_NOT_FOUND);
        dm_account_use(ctx, &quiet->insert);
        WORLD_CHECK_EQ(ix_insert(&client, absent, value), 0);
        dm_account_use(ctx, &quiet->remove);
        WORLD_CHECK_EQ(ix_remove(&client, absent), 0);
    }
    dm_account_use(ctx, &quiet->scan);
    WORLD_CHECK_EQ(ix_scan(&client, world_key(500, KEYS), SCANNED, keys, values, &found), 0);
    WORLD_CHECK_EQ(found, SCANNED);
    dm_account_use(ctx, NULL);
    ix_detach(&client);
    return 0;
}

static struct quiet quiet_run(const struct world_config *config) {
    struct world world;
    struct world_pairs pairs;
    struct quiet quiet = {.world = &world};
    quiet_world(&world, config, world_pairs(&pairs, KEYS, 2, config->value_bytes), quiet_entry, &quiet);
    return quiet;
}

/* Compared with inline values a get and a scan have one round trip more, and a write one verb. */
static void quiet_check(const struct ix_ops *ops) {
    struct world_config config = config_of(ops, 8);
    struct quiet indirect = quiet_run(&config);
    config.params[0].value = "inline";
    struct quiet inline_values = quiet_run(&config);
    assert_int_equal(indirect.get.round_trips, inline_values.get.round_trips + SAMPLES);
    assert_int_equal(indirect.get.bytes_read, inline_values.get.bytes_read + SAMPLES * 20);
    assert_int_equal(indirect.absent.round_trips, inline_values.absent.round_trips);
    assert_int_equal(indirect.scan.round_trips, inline_values.scan.round_trips + 1);
    assert_int_equal(indirect.scan.verbs[DM_VERB_READ], inline_values.scan.verbs[DM_VERB_READ] + SCANNED);
    assert_int_equal(indirect.update.round_trips, inline_values.update.round_trips);
    assert_int_equal(indirect.update.verbs[DM_VERB_WRITE], inline_values.update.verbs[DM_VERB_WRITE] + SAMPLES);
    assert_int_equal(indirect.update.doorbells, inline_values.update.doorbells);
    assert_int_equal(indirect.update.bytes_written, inline_values.update.bytes_written + SAMPLES * 20);
    assert_int_equal(indirect.remove.round_trips, inline_values.remove.round_trips);
    /* The first block may need a new chunk, which is one call. */
    assert_true(indirect.insert.round_trips <= inline_values.insert.round_trips + 1);
}

static void a_block_costs_reads_a_round_trip_and_writes_a_verb(void **state) {
    (void)state;
    for_each_index(quiet_check);
}

/* How scans fetch: the same reads, in one round trip, in one a leaf, in one each. Tiny nodes, so that 20 pairs are of
 * several leaves. */
static void fetch_check(const struct ix_ops *ops) {
    if (!dm_opt_find(ops->params, "fetch")) {
        return; /* its scans find values in another way */
    }
    static const char *const ways[] = {"inline", "batch", "doorbell", "serial"};
    struct dm_account scans[4];
    for (unsigned i = 0; i < 4; i++) {
        struct world_config config = config_of(ops, 8);
        config.tiny = true;
        config.params[0].value = i == 0 ? "inline" : "indirect";
        config.params[1] = (struct dm_setting){"fetch", i == 0 ? "batch" : ways[i]};
        scans[i] = quiet_run(&config).scan;
    }
    for (unsigned i = 1; i < 4; i++) {
        assert_int_equal(scans[i].verbs[DM_VERB_READ], scans[1].verbs[DM_VERB_READ]);
        assert_int_equal(scans[i].bytes_read, scans[1].bytes_read);
    }
    uint64_t before = scans[1].round_trips - 1;
    assert_int_equal(scans[3].round_trips, before + SCANNED);
    assert_in_range(scans[2].round_trips, before + 2, before + SCANNED / 2);
    print_message("%s: %" PRIu64 ", %" PRIu64 ", %" PRIu64 " round trips\n", ops->name, scans[1].round_trips,
                  scans[2].round_trips, scans[3].round_trips);
}

static void scans_fetch_together_or_by_leaf_or_one_by_one(void **state) {
    (void)state;
    for_each_index(fetch_check);
}

/* ---- many clients ------------------------------------------------------------------------------------------------ */

static void clients_check(const struct ix_ops *ops) {
    static const uint32_t sizes[] = {8, 200, 1024};
    uint64_t reused = 0;
    for (unsigned i = 0; i < 6; i++) {
        struct world_config config = config_of(ops, sizes[i % 3]);
        config.mns = 1 + i % 2 * 2;
        config.cns = 1 + i % 2;
        config.seed = 21 + i;
        config.tiny = i % 2 == 0;
        if (dm_opt_find(ops->params, "fetch")) {
            config.params[1] = (struct dm_setting){"fetch", ix_fetch_choices[i % 3]};
        }
        struct steady_result result = steady_run(config, 300);
        assert_int_equal(result.violations, 0);
        for (unsigned c = 0; ops->counters[c].name; c++) {
            reused += strcmp(ops->counters[c].name, "block_reused") == 0 ? result.counts[c] : 0;
        }
    }
    print_message("%s: %llu blocks were reused\n", ops->name, (unsigned long long)reused);
}

static void many_clients_read_consistent_and_current_values_of_any_size(void **state) {
    (void)state;
    for_each_index(clients_check);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

struct memory {
    struct world *world;
    int outcome; /* of the insert that fails */
};

static int churn_entry(struct dm_ctx *ctx, void *arg) {
    struct memory *memory = arg;
    struct ix_client client = world_attach(memory->world, 0, ctx, NULL);
    unsigned char value[WORLD_VALUE_MAX];
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t number = i * 2 % KEYS;
        world_value(number, i, value, client.value_bytes);
        WORLD_CHECK_EQ(ix_update(&client, world_key(number, KEYS), value), 0);
        WORLD_CHECK_EQ(ix_insert(&client, world_key(number + 1, KEYS), value), 0);
        WORLD_CHECK_EQ(ix_remove(&client, world_key(number + 1, KEYS)), 0);
    }
    ix_detach(&client);
    return 0;
}

static void churn_check(const struct ix_ops *ops) {
    struct world_config config = config_of(ops, 256);
    struct world world;
    struct world_pairs pairs;
    struct memory memory = {.world = &world};
    struct dm_memory_use before, after;
    world_open(&world, &config);
    world_load(&world, world_pairs(&pairs, KEYS, 2, config.value_bytes));
    dm_memory_use(world.fabric, &before);
    assert_int_equal(before.bytes[DM_MEM_VALUE], KEYS / 2 * ix_indirect_block_bytes(256));
    dm_fabric_measure(world.fabric);
    world_do(&world, 0, churn_entry, &memory);
    dm_memory_use(world.fabric, &after);
    assert_true(after.bytes[DM_MEM_VALUE] <= before.bytes[DM_MEM_VALUE] + 2 * ix_indirect_block_bytes(256));
    world_verify(&world);
    world_close(&world);
}

static void blocks_are_reused(void **state) {
    (void)state;
    for_each_index(churn_check);
}

static int full_entry(struct dm_ctx *ctx, void *arg) {
    struct memory *memory = arg;
    struct ix_client client = world_attach(memory->world, 0, ctx, NULL);
    unsigned char value[WORLD_VALUE_MAX];
    uint64_t number = 0;
    while (memory->outcome == 0 && number < KEYS) {
        world_value(number, 0, value, client.value_bytes);
        memory->outcome = ix_insert(&client, world_key(number++, KEYS), value);
    }
    WORLD_CHECK_EQ(ix_get(&client, world_key(number - 1, KEYS), value), DM_NOT_FOUND);
    WORLD_CHECK_EQ(ix_get(&client, world_key(number - 2, KEYS), value), 0);
    WORLD_CHECK_EQ(world_write_of(number - 2, value, client.value_bytes), 0);
    ix_detach(&client);
    return 0;
}

static void full_check(const struct ix_ops *ops) {
    struct world_config config = config_of(ops, 1024);
    struct world world;
    struct memory memory = {.world = &world};
    config.mn_bytes = 1 << 20;
    config.chunk_bytes = 1 << 16;
    world_begin(&world, &config, NULL);
    world_do(&world, 0, full_entry, &memory);
    assert_int_equal(memory.outcome, DM_ERR_NO_MEMORY);
    world_verify(&world);
    world_close(&world);
}

static void full_memory_changes_nothing(void **state) {
    (void)state;
    for_each_index(full_check);
}

static void size_check(const struct ix_ops *ops) {
    struct dm_topology topology = {.mns = 1, .cns = 1, .clients = 1, .clients_per_thread = 1, .mn_cores = 1};
    struct dm_setting none = {NULL, NULL};
    struct dm_setting indirect = {"values", "indirect"};
    struct dm_err err = {0};
    if (ops->value_bytes_max == 0) { /* else inline values may be as large as others */
        assert_int_equal(world_check(ops, &topology, 4096, none, &err), DM_ERR_INVALID);
        assert_non_null(strstr(err.text, "values=indirect"));
    }
    assert_int_equal(world_check(ops, &topology, 4096, indirect, &err), 0);
    assert_int_equal(world_check(ops, &topology, IX_INDIRECT_VALUE_MAX + 1, indirect, &err), DM_ERR_INVALID);
}

static void values_that_are_too_large_are_refused_with_what_to_set(void **state) {
    (void)state;
    for_each_index(size_check);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_costs_reads_a_round_trip_and_writes_a_verb),
        cmocka_unit_test(scans_fetch_together_or_by_leaf_or_one_by_one),
        cmocka_unit_test(many_clients_read_consistent_and_current_values_of_any_size),
        cmocka_unit_test(blocks_are_reused),
        cmocka_unit_test(full_memory_changes_nothing),
        cmocka_unit_test(values_that_are_too_large_are_refused_with_what_to_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
