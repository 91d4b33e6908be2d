/* SPDX-License-Identifier: Apache-2.0
 *
 * What only Clover promises: its message sequences and bytes in the quiet case, that a pointer of any age leads to the
 * last version, that replaced versions are taken back and their space is used again, and what it refuses.
 */
#include "conformance/index_steady.h"
#include "conformance/quiet.h"
#include "indexes/clover/clover.h"

extern const struct ix_ops ix_ops_clover;

/* ---- the quiet case ---------------------------------------------------------------------------------------------- */

enum { QUIET_KEYS = 1000, SPACE_BYTES = 128 };

struct quiet {
    struct world world;
    struct kind get, uncached, unknown, update, insert, refused, remove, removed, again;
    uint64_t counts[CLOVER_COUNTER_COUNT];
};

static int quiet_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(&quiet->world, 0, ctx, NULL);
    uint64_t value = 1, present = world_key(500, QUIET_KEYS), absent = world_key(501, QUIET_KEYS);
    WORLD_CHECK_EQ(ix_update(&client, world_key(100, QUIET_KEYS), &value), 0); /* gets space for the next ones */
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->uncached, &client, GET, present, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->get, &client, GET, present, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->unknown, &client, GET, absent, &value), DM_NOT_FOUND);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->unknown, &client, UPDATE, absent, &value), DM_NOT_FOUND);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->unknown, &client, REMOVE, absent, &value), DM_NOT_FOUND);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->update, &client, UPDATE, present, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->get, &client, GET, present, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->update, &client, UPDATE, present, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->insert, &client, INSERT, absent, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->get, &client, GET, absent, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->refused, &client, INSERT, absent, &value), DM_EXISTS);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->remove, &client, REMOVE, absent, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->removed, &client, GET, absent, &value), DM_NOT_FOUND);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->removed, &client, UPDATE, absent, &value), DM_NOT_FOUND);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->again, &client, INSERT, absent, &value), 0);
    memcpy(quiet->counts, ix_counts(&client), sizeof(quiet->counts));
    ix_detach(&client);
    return 0;
}

static struct quiet_end quiet_run(struct quiet *quiet) {
    struct world_config config = world_least(&ix_ops_clover);
    config.mns = 2;
    config.expected_keys = QUIET_KEYS;
    memset(quiet, 0, sizeof(*quiet));
    return quiet_half_world(&quiet->world, &config, QUIET_KEYS, quiet_entry, quiet);
}

static void a_quiet_get_reads_version_and_shortcut_in_one_round_trip(void **state) {
    (void)state;
    struct quiet quiet;
    struct quiet_end end = quiet_run(&quiet);
    assert_int_equal(end.report.keys, QUIET_KEYS / 2 + 1);
    assert_true(kind_took(&quiet.get, 1));
    assert_int_equal(quiet.get.account.verbs[DM_VERB_READ], 2 * quiet.get.count);
    assert_int_equal(quiet.get.account.bytes_read, (SPACE_BYTES + 8) * quiet.get.count);
    assert_int_equal(quiet.get.account.verbs[DM_VERB_CALL], 0);
    assert_int_equal(quiet.counts[CLOVER_HOP] + quiet.counts[CLOVER_STALE_POINTER], 0);
}

static void a_key_that_is_not_cached_costs_a_call_and_an_unknown_one_nothing_else(void **state) {
    (void)state;
    struct quiet quiet;
    quiet_run(&quiet);
    assert_true(kind_took(&quiet.uncached, 2));
    assert_int_equal(quiet.uncached.account.verbs[DM_VERB_CALL], 1);
    assert_true(kind_took(&quiet.unknown, 1));
    assert_int_equal(quiet.unknown.account.verbs[DM_VERB_CALL], quiet.unknown.count);
}

static void a_quiet_write_is_a_write_and_a_compare_and_swap_and_a_new_key_a_write_and_a_call(void **state) {
    (void)state;
    struct quiet quiet;
    quiet_run(&quiet);
    assert_true(kind_took(&quiet.update, 2));
    assert_int_equal(quiet.update.account.verbs[DM_VERB_WRITE], quiet.update.count);
    assert_int_equal(quiet.update.account.verbs[DM_VERB_CAS], quiet.update.count);
    assert_int_equal(quiet.update.account.bytes_written, (SPACE_BYTES + 8) * quiet.update.count);
    assert_true(kind_took(&quiet.insert, 2));
    assert_int_equal(quiet.insert.account.verbs[DM_VERB_WRITE], 1);
    assert_int_equal(quiet.insert.account.verbs[DM_VERB_CALL], 1);
    assert_true(kind_took(&quiet.remove, 2));
    assert_int_equal(quiet.remove.account.verbs[DM_VERB_CAS], 1);
    assert_int_equal(quiet.remove.account.bytes_written, DM_LINE + 8); /* a tombstone has no value */
}

static void an_insert_reads_the_last_version_of_a_known_key_first(void **state) {
    (void)state;
    struct quiet quiet;
    quiet_run(&quiet);
    assert_true(kind_took(&quiet.refused, 1));
    assert_true(kind_took(&quiet.removed, 1));
    assert_true(kind_took(&quiet.again, 3));
    assert_int_equal(quiet.counts[CLOVER_REVIVED], 1);
}

/* ---- pointers of any age ----------------------------------------------------------------------------------------- */

enum { OLD_KEYS = 64, OLD_WRITES = 400 };

struct old {
    struct world world;
    uint64_t write;
    uint64_t reader_counts[CLOVER_COUNTER_COUNT], writer_counts[CLOVER_COUNTER_COUNT];
};

/* The first compute node learns all pointers, the second replaces the versions, and the first reads again. */
static int old_reader(struct dm_ctx *ctx, void *arg) {
    struct old *old = arg;
    struct ix_client client = world_attach(&old->world, 0, ctx, NULL);
    uint64_t value;
    for (uint64_t i = 0; i < OLD_KEYS; i++) {
        WORLD_CHECK_EQ(ix_get(&client, world_key(i, OLD_KEYS), &value), 0);
        WORLD_CHECK_EQ(world_write_of(i, &value, sizeof(value)), old->write);
    }
    for (unsigned i = 0; i < CLOVER_COUNTER_COUNT; i++) {
        old->reader_counts[i] += ix_counts(&client)[i];
    }
    ix_detach(&client);
    return 0;
}

static int old_writer(struct dm_ctx *ctx, void *arg) {
    struct old *old = arg;
    struct ix_client client = world_attach(&old->world, 1, ctx, NULL);
    for (uint64_t write = 1; write <= OLD_WRITES; write++) {
        for (uint64_t i = 0; i < OLD_KEYS; i++) {
            uint64_t value;
            world_value(i, old->write + write, &value, sizeof(value));
            WORLD_CHECK_EQ(ix_update(&client, world_key(i, OLD_KEYS), &value), 0);
        }
    }
    old->write += OLD_WRITES;
    for (unsigned i = 0; i < CLOVER_COUNTER_COUNT; i++) {
        old->writer_counts[i] += ix_counts(&client)[i];
    }
    ix_detach(&client);
    return 0;
}

static void old_run(struct old *old, struct dm_setting setting) {
    struct world_config config = world_least(&ix_ops_clover);
    struct world_pairs pairs;
    config.cns = 2;
    config.clients = 2;
    config.mns = 3;
    config.expected_keys = OLD_KEYS;
    config.params[0] = setting;
    memset(old, 0, sizeof(*old));
    world_begin(&old->world, &config, world_pairs(&pairs, OLD_KEYS, 1, config.value_bytes));
    world_do(&old->world, 0, old_reader, old);
    for (unsigned round = 0; round < 3; round++) {
        world_do(&old->world, 1, old_writer, old);
        world_do(&old->world, 0, old_reader, old);
    }
    assert_int_equal(world_verify(&old->world).keys, OLD_KEYS);
    world_close(&old->world);
}

static void a_pointer_to_space_that_was_used_again_leads_to_the_last_version(void **state) {
    (void)state;
    struct old old;
    old_run(&old, (struct dm_setting){NULL, NULL});
    assert_true(old.reader_counts[CLOVER_STALE_POINTER] > OLD_KEYS);
    assert_true(old.reader_counts[CLOVER_SHORTCUT_TAKEN] > OLD_KEYS);
    uint64_t writes = 3 * OLD_KEYS * OLD_WRITES;
    /* Nearly every write uses the space of an earlier version. */
    assert_true(old.writer_counts[CLOVER_EVENT_COLLECTED] > writes * 9 / 10);
    assert_true(old.writer_counts[CLOVER_EVENT_REUSED] > writes * 9 / 10);
    assert_int_equal(old.writer_counts[CLOVER_EVENT_RETIRED], 0);
}

static void space_is_given_up_before_a_pointer_could_name_two_versions(void **state) {
    (void)state;
    struct old old;
    old_run(&old, (struct dm_setting){"uses", "5"});
    uint64_t collected = old.writer_counts[CLOVER_EVENT_COLLECTED];
    assert_in_range(old.writer_counts[CLOVER_EVENT_RETIRED], collected / 6, collected / 4);
}

/* ---- reports of replaced versions -------------------------------------------------------------------------------- */

enum { CROWD = 8, CROWD_CNS = 4, CROWD_KEYS = 3, CROWD_WRITES = 400 };

struct crowd {
    struct world *world;
    unsigned number;
    uint64_t counts[CLOVER_COUNTER_COUNT];
};

static void crowd_entry(struct dm_ctx *ctx, void *arg) {
    struct crowd *crowd = arg;
    struct ix_client client = world_attach(crowd->world, crowd->number % CROWD_CNS, ctx, NULL);
    for (uint64_t write = 1; write <= CROWD_WRITES; write++) {
        uint64_t value, number = write % CROWD_KEYS;
        world_value(number, crowd->number * CROWD_WRITES + write, &value, sizeof(value));
        WORLD_CHECK_EQ(ix_update(&client, world_key(number, CROWD_KEYS), &value), 0);
    }
    memcpy(crowd->counts, ix_counts(&client), sizeof(crowd->counts));
    ix_detach(&client);
}

/* Each compute node reports what its clients replaced, so reports of a key overtake those of other nodes. */
static void reports_that_overtake_each_other_lose_no_space(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_clover);
    struct world world;
    struct world_pairs pairs;
    static struct crowd crowd[CROWD];
    uint64_t walked = 0, lost = 0, long_chases = 0;
    config.clients = CROWD;
    config.cns = CROWD_CNS;
    config.mns = 2;
    config.expected_keys = CROWD_KEYS;
    world_begin(&world, &config, world_pairs(&pairs, CROWD_KEYS, 1, config.value_bytes));
    for (unsigned i = 0; i < CROWD; i++) {
        unsigned node = dm_first_cn(&world.topology) + i % CROWD_CNS;
        crowd[i] = (struct crowd){.world = &world, .number = i};
        assert_int_equal(dm_spawn(world.fabric, node, i / CROWD_CNS, crowd_entry, &crowd[i]), 0);
    }
    world_run(&world);
    struct ix_report report = world_verify(&world);
    world_close(&world);
    for (unsigned i = 0; i < CROWD; i++) {
        walked += crowd[i].counts[CLOVER_EVENT_WALKED];
        lost += crowd[i].counts[CLOVER_CAS_LOST];
        long_chases += crowd[i].counts[CLOVER_LONG_CHASE];
    }
    assert_true(walked > 0);
    assert_true(lost > 0);
    assert_true(long_chases > 0);
    assert_int_equal(report.broken, 0);
    assert_int_equal(report.keys, CROWD_KEYS);
    /* Of 3200 versions the chains have the keys' last ones, and those that have not been reported. */
    assert_true(report.leaves < CROWD_KEYS + CROWD_CNS * 4 * (64 + 16));
    assert_true(report.leaves < CROWD * CROWD_WRITES / 10);
}

static void each_parameter_value_serves_many_clients(void **state) {
    (void)state;
    static const struct {
        struct dm_setting setting;
        unsigned servers;
        uint32_t value_bytes;
        uint64_t cache_bytes;
    } cases[] = {
        {{"batch", "1"}, 1, 8, 4096},         {{"batch", "64"}, 2, 64, 0},      {{"collect_batch", "1"}, 2, 8, 1 << 20},
        {{"collectors", "1"}, 4, 8, 1 << 20}, {{"queue", "1"}, 2, 1000, 4096},  {{"ask_hops", "1"}, 2, 8, 4096},
        {{"uses", "1"}, 2, 8, 1 << 20},       {{"buckets", "1"}, 2, 200, 4096}, {{"load_cached", "on"}, 2, 8, 1 << 20},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world_config config = world_least(&ix_ops_clover);
        config.clients = 8;
        config.clients_per_thread = 2;
        config.cns = 2;
        config.servers = cases[i].servers;
        config.value_bytes = cases[i].value_bytes;
        config.cache_bytes = cases[i].cache_bytes;
        config.params[0] = cases[i].setting;
        struct steady_result result = steady_run(config, 150);
        assert_int_equal(result.violations + result.failed, 0);
        assert_int_equal(result.report.broken, 0);
    }
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void shapes_that_cannot_work_are_refused(void **state) {
    (void)state;
    struct clover_params params;
    struct dm_err err;
    static const struct {
        unsigned servers;
        uint32_t value_bytes;
        uint64_t mn_bytes;
        const char *text;
    } cases[] = {{0, 8, 1 << 20, "index servers"},
                 {65, 8, 1 << 20, "index servers"},
                 {1, 4097, 1 << 20, "4096"},
                 {1, 8, UINT64_C(65) << 30, "memory nodes"}};
    dm_opt_defaults(ix_ops_clover.params, &params);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct dm_topology topology = {
            .mns = 1, .servers = cases[i].servers, .cns = 1, .clients = 1, .mn_bytes = cases[i].mn_bytes};
        struct ix_shape shape = {.value_bytes = cases[i].value_bytes, .expected_keys = 10, .topology = &topology};
        assert_true(ix_memory_needed(&ix_ops_clover, &params, &shape, 10) > 0); /* asked before check */
        assert_int_equal(ix_check(&ix_ops_clover, &params, &shape, &err), DM_ERR_INVALID);
        assert_non_null(strstr(err.text, cases[i].text));
    }
}

/* Many keys are loaded with large grants: what they leave unused of chunks must be small. */
static void a_load_fits_the_memory_that_is_asked_for(void **state) {
    (void)state;
    enum { KEYS = 60000 };
    struct world_config config = world_least(&ix_ops_clover);
    struct clover_params params;
    struct world world;
    struct world_pairs pairs;
    struct dm_topology topology = {.mns = 1, .servers = 2, .cns = 1, .clients = 1};
    struct ix_shape shape = {.value_bytes = 32, .expected_keys = KEYS, .topology = &topology};
    dm_opt_defaults(ix_ops_clover.params, &params);
    config.value_bytes = 32;
    config.expected_keys = KEYS;
    config.chunk_bytes = 128 << 10;
    /* A chunk for each of the threads that allocate is the caller's to add. */
    config.mn_bytes = (ix_memory_needed(&ix_ops_clover, &params, &shape, KEYS) + (128 << 10) * 5 + 4095) / 4096 * 4096;
    world_open(&world, &config);
    world_load(&world, world_pairs(&pairs, KEYS, 1, config.value_bytes));
    assert_int_equal(world_verify(&world).keys, KEYS);
    world_close(&world);
}

static int scan_entry(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 0, ctx, NULL);
    uint64_t keys[1], value;
    uint32_t found;
    WORLD_CHECK_EQ(ix_scan(&client, 0, 1, keys, &value, &found), DM_ERR_UNSUPPORTED);
    ix_detach(&client);
    return 0;
}

static void there_are_no_scans(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_clover);
    struct world world;
    world_open(&world, &config);
    world_do(&world, 0, scan_entry, &world);
    world_close(&world);
}

/* A value of 4096 bytes is a power of two with its head in 8 KiB; a pointer keeps all its parts. */
static void sizes_and_pointers_are_as_documented(void **state) {
    (void)state;
    assert_int_equal(clover_space_bytes(8), 128);
    assert_int_equal(clover_space_bytes(104), 128);
    assert_int_equal(clover_space_bytes(105), 256);
    assert_int_equal(clover_space_bytes(4096), 8192);
    dm_addr far = dm_addr_make(63, DM_DRAM, CLOVER_NODE_BYTES - 64);
    uint64_t pointer = clover_pointer_make(far, CLOVER_USE_MAX);
    assert_true(dm_addr_equal(clover_addr_of(pointer | CLOVER_TOMBSTONE), far));
    assert_int_equal(clover_use_of(pointer | CLOVER_TOMBSTONE), CLOVER_USE_MAX);
    uint64_t header = clover_header_make(pointer | CLOVER_TOMBSTONE, clover_pointer_make(far, 7));
    assert_true(clover_next_of(header) == (pointer | CLOVER_TOMBSTONE));
    assert_int_equal(clover_header_use(header), 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_get_reads_version_and_shortcut_in_one_round_trip),
        cmocka_unit_test(a_key_that_is_not_cached_costs_a_call_and_an_unknown_one_nothing_else),
        cmocka_unit_test(a_quiet_write_is_a_write_and_a_compare_and_swap_and_a_new_key_a_write_and_a_call),
        cmocka_unit_test(an_insert_reads_the_last_version_of_a_known_key_first),
        cmocka_unit_test(a_pointer_to_space_that_was_used_again_leads_to_the_last_version),
        cmocka_unit_test(space_is_given_up_before_a_pointer_could_name_two_versions),
        cmocka_unit_test(reports_that_overtake_each_other_lose_no_space),
        cmocka_unit_test(each_parameter_value_serves_many_clients),
        cmocka_unit_test(shapes_that_cannot_work_are_refused),
        cmocka_unit_test(a_load_fits_the_memory_that_is_asked_for),
        cmocka_unit_test(there_are_no_scans),
        cmocka_unit_test(sizes_and_pointers_are_as_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
