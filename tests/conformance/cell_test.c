/* SPDX-License-Identifier: Apache-2.0
 *
 * What Cell alone guarantees: a get is as many READs as there are levels below the cached ones, and the levels follow
 * from the number of keys; writes are calls; walks that are stale recover and repair the cache; and the checks find its
 * known-wrong variants and nothing in the correct one.
 */
#include "common/compiler.h"
#include "conformance/index_steady.h"
#include "conformance/quiet.h"
#include "indexes/cell/params.h"

extern const struct ix_ops ix_ops_cell;

/* ---- the quiet case ---------------------------------------------------------------------------------------------- */

enum { QUIET_SAMPLES = 100, SCAN_PAIRS = 20 };

struct quiet {
    struct world *world;
    uint64_t keys; /* every second is loaded */
    struct kind get, absent, update, insert, remove, scan;
    uint64_t counts[CELL_COUNTER_COUNT];
};

static int quiet_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(quiet->world, 0, ctx, NULL);
    uint64_t value = 1, kept = quiet->keys / 2 / QUIET_SAMPLES * 2;
    quiet_warm(&client, quiet->keys, 0, 2, 0);
    for (uint64_t n = 0; n < QUIET_SAMPLES; n++) {
        uint64_t present = world_key(n * kept, quiet->keys), absent = world_key(n * kept + 1, quiet->keys);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->get, &client, GET, present, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->absent, &client, GET, absent, &value), DM_NOT_FOUND);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->update, &client, UPDATE, present, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->insert, &client, INSERT, absent, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->remove, &client, REMOVE, absent, &value), 0);
    }
    if (quiet->keys >= 20000) {
        kind_scan(ctx, &quiet->scan, &client, 0, SCAN_PAIRS);
    }
    memcpy(quiet->counts, ix_counts(&client), sizeof(quiet->counts));
    ix_detach(&client);
    return 0;
}

static struct quiet_end quiet_run(const struct world_config *config, uint64_t keys, struct quiet *quiet) {
    struct world world;
    *quiet = (struct quiet){.world = &world, .keys = keys};
    return quiet_half_world(&world, config, keys, quiet_entry, quiet);
}

/* Nodes of two pairs and two children, so that few keys make a high tree. */
static struct world_config thin(void) {
    struct world_config config = world_least(&ix_ops_cell);
    config.params[0] = (struct dm_setting){"slots", "4"};
    config.params[1] = (struct dm_setting){"fanout", "4"};
    config.params[2] = (struct dm_setting){"inner_fill", "0.5"};
    return config;
}

/* Levels, leaves included, if bulk load puts `pairs` into a leaf and `children` under an inner node. */
static unsigned levels_of(uint64_t keys, uint64_t pairs, uint64_t children) {
    unsigned levels = 1;
    for (uint64_t nodes = (keys + pairs - 1) / pairs; nodes > 1; levels++) {
        nodes = (nodes + children - 1) / children;
    }
    return levels;
}

static void a_hundred_million_keys_make_eight_levels_as_many_as_these_thin_nodes_do_of_few_keys(void **state) {
    (void)state;
    /* Leaves of 16 are half full, and inner nodes of 16 have 11 children: one memory node, or two. */
    assert_int_equal(levels_of(100000000, 8, 11), 8);
    assert_int_equal(levels_of(50000000, 8, 11), 8);
    static const uint64_t keys[] = {2, 10, 100, 254, 400, 1000};
    for (size_t i = 0; i < DM_ARRAY_LEN(keys); i++) {
        struct world_config config = thin();
        struct world world;
        struct world_pairs pairs;
        world_open(&world, &config);
        world_load(&world, world_pairs(&pairs, keys[i], 1, 8));
        assert_int_equal(world_verify(&world).height, levels_of(keys[i], 2, 2));
        world_close(&world);
    }
    assert_int_equal(levels_of(200, 2, 2), 8);
}

static void a_quiet_get_of_eight_levels_is_four_reads_with_the_cache_and_eight_without(void **state) {
    (void)state;
    struct world_config config = thin();
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, 400, &quiet);
    assert_int_equal(end.report.height, 8);
    assert_true(kind_took(&quiet.get, 4));
    assert_true(kind_took(&quiet.absent, 4));
    assert_int_equal(quiet.get.account.verbs[DM_VERB_READ], 4 * QUIET_SAMPLES);
    assert_int_equal(quiet.get.account.verbs[DM_VERB_CALL], 0);
    /* A node is check, header, two fences, four keys and four entries. */
    assert_int_equal(quiet.get.account.bytes_read, 4 * QUIET_SAMPLES * 96);
    config.cache_bytes = 0;
    end = quiet_run(&config, 400, &quiet);
    assert_int_equal(end.cached, 0);
    assert_true(kind_took(&quiet.get, 8));
    assert_true(kind_took(&quiet.absent, 8));
    assert_int_equal(quiet.get.account.bytes_read, 8 * QUIET_SAMPLES * 96);
}

static void each_level_that_is_cached_saves_a_read(void **state) {
    (void)state;
    static const char *const above[] = {"1", "2", "3", "4", "5", "6", "7", "8"};
    for (unsigned i = 0; i < 8; i++) {
        struct world_config config = thin();
        struct quiet quiet;
        config.params[3] = (struct dm_setting){"cache_above", above[i]};
        quiet_run(&config, 400, &quiet);
        assert_true(kind_took(&quiet.absent, i + 1));
    }
}

static void a_quiet_write_is_one_call(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_cell);
    struct quiet quiet;
    quiet_run(&config, 20000, &quiet);
    const struct kind *writes[] = {&quiet.update, &quiet.insert, &quiet.remove};
    for (unsigned i = 0; i < 3; i++) {
        assert_true(kind_took(writes[i], 1));
        assert_int_equal(writes[i]->account.verbs[DM_VERB_CALL], QUIET_SAMPLES);
        assert_int_equal(writes[i]->account.verbs[DM_VERB_READ], 0);
    }
}

static void a_quiet_scan_walks_to_the_parent_and_reads_its_leaves_with_one_doorbell(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_cell);
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, 20000, &quiet);
    assert_int_equal(end.report.height, levels_of(10000, 8, 11));
    assert_int_equal(end.report.height, 4);
    assert_true(kind_took(&quiet.scan, 4));
    /* Three inner nodes, none of which is so high that it is cached, and the leaves of 20 pairs with one to spare. */
    assert_int_equal(quiet.scan.account.verbs[DM_VERB_READ], 3 + 1 + SCAN_PAIRS / 8);
    assert_int_equal(quiet.scan.account.verbs[DM_VERB_CALL], 0);
}

/* ---- long values ------------------------------------------------------------------------------------------------- */

enum { LONG_KEYS = 2000, LONG_BYTES = 1000 };

struct long_values {
    struct world *world;
    struct kind get;
};

static int long_entry(struct dm_ctx *ctx, void *arg) {
    struct long_values *own = arg;
    struct ix_client client = world_attach(own->world, 0, ctx, NULL);
    uint64_t value[LONG_BYTES / 8];
    for (uint64_t n = 0; n < LONG_KEYS; n += 20) {
        WORLD_CHECK_EQ(kind_run(ctx, &own->get, &client, GET, world_key(n, LONG_KEYS), value), 0);
        WORLD_CHECK_EQ(world_write_of(n, value, LONG_BYTES), 0);
    }
    ix_detach(&client);
    return 0;
}

static void a_value_that_is_too_long_for_a_leaf_costs_a_read_of_its_block(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_cell);
    struct world world;
    struct world_pairs pairs;
    struct long_values own = {.world = &world};
    config.value_bytes = LONG_BYTES;
    struct quiet_end end =
        quiet_world(&world, &config, world_pairs(&pairs, LONG_KEYS, 1, LONG_BYTES), long_entry, &own);
    assert_int_equal(end.report.height, 4);
    assert_true(kind_took(&own.get, 4 + 1));
    /* A node is 36 words, a block its check and the value. */
    assert_int_equal(own.get.account.bytes_read, own.get.count * (4 * 288 + 8 + LONG_BYTES));
}

static void gets_by_the_memory_node_are_one_call(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_cell);
    struct quiet quiet;
    config.params[0] = (struct dm_setting){"reads", "server"};
    quiet_run(&config, 20000, &quiet);
    assert_true(kind_took(&quiet.get, 1));
    assert_true(kind_took(&quiet.absent, 1));
    assert_int_equal(quiet.get.account.verbs[DM_VERB_CALL], QUIET_SAMPLES);
}

/* ---- stale walks ------------------------------------------------------------------------------------------------- */

enum { SPLIT_LEAVES = 60, SPLIT_SLOTS = 16, SPLIT_KEYS = SPLIT_LEAVES * SPLIT_SLOTS, SPLIT_STEP = 1000 };

struct split {
    struct world *world;
    struct kind first, second, third;
    uint64_t counts[CELL_COUNTER_COUNT];
};

/* Splits full leaves, and gets the last key of each, which has moved, three times. */
static int split_entry(struct dm_ctx *ctx, void *arg) {
    struct split *split = arg;
    struct ix_client client = world_attach(split->world, 0, ctx, NULL);
    uint64_t value = 7;
    for (uint64_t key = 0; key < SPLIT_KEYS; key++) {
        WORLD_CHECK_EQ(ix_get(&client, key * SPLIT_STEP, &value), 0);
    }
    for (uint64_t leaf = 1; leaf < SPLIT_LEAVES; leaf += 2) {
        uint64_t first = (leaf * SPLIT_SLOTS) * SPLIT_STEP, last = first + (SPLIT_SLOTS - 1) * SPLIT_STEP;
        WORLD_CHECK_EQ(ix_insert(&client, first + 1, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &split->first, &client, GET, last, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &split->second, &client, GET, last, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &split->third, &client, GET, last, &value), 0);
    }
    memcpy(split->counts, ix_counts(&client), sizeof(split->counts));
    ix_detach(&client);
    return 0;
}

static uint64_t split_keys(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys) {
    (void)pairs;
    for (uint64_t i = 0; i < n; i++) {
        keys[i] = (first + i) * SPLIT_STEP;
    }
    return n;
}

static void split_value(const struct ix_pairs *pairs, uint64_t key, void *value) {
    (void)pairs;
    memcpy(value, &key, sizeof(key));
}

static void split_run(const char *stale, struct split *split) {
    struct world_config config = world_least(&ix_ops_cell);
    struct world world;
    struct ix_pairs pairs = {.count = SPLIT_KEYS, .keys = split_keys, .value = split_value};
    config.params[0] = (struct dm_setting){"fill", "1"};
    config.params[1] = (struct dm_setting){"inner_fill", "0.5"};
    config.params[2] = (struct dm_setting){"cache_above", "1"};
    config.params[3] = (struct dm_setting){"stale", stale};
    *split = (struct split){.world = &world};
    quiet_world(&world, &config, &pairs, split_entry, split);
}

static void a_stale_walk_continues_by_the_link_and_repairs_the_cache(void **state) {
    (void)state;
    struct split split;
    split_run("link", &split);
    assert_int_equal(split.counts[CELL_LEAF_SPLIT_COUNT], SPLIT_LEAVES / 2);
    assert_int_equal(split.counts[CELL_STALE_WALK_COUNT], SPLIT_LEAVES / 2);
    /* The leaf and its right neighbour; the parent, as its copy was dropped, and the leaf; the leaf. */
    assert_true(kind_took(&split.first, 2));
    assert_true(kind_took(&split.second, 2));
    assert_true(kind_took(&split.third, 1));
    assert_int_equal(split.first.account.verbs[DM_VERB_CALL], 0);
}

static void a_stale_walk_may_be_completed_by_a_call(void **state) {
    (void)state;
    struct split split;
    split_run("call", &split);
    assert_int_equal(split.counts[CELL_FALLBACK_COUNT], SPLIT_LEAVES / 2);
    assert_true(kind_took(&split.first, 2));
    assert_int_equal(split.first.account.verbs[DM_VERB_CALL], SPLIT_LEAVES / 2);
    assert_true(kind_took(&split.second, 2));
    assert_int_equal(split.second.account.verbs[DM_VERB_CALL], 0);
    assert_true(kind_took(&split.third, 1));
}

struct grown {
    struct world *world;
    uint64_t trips, counts[CELL_COUNTER_COUNT];
};

enum { GROWN_KEYS = 3000 };

/* One client grows the tree from an empty leaf; the other one attached before and takes that leaf for the root. */
static int grown_entry(struct dm_ctx *ctx, void *arg) {
    struct grown *grown = arg;
    struct ix_client client = world_attach(grown->world, 0, ctx, NULL);
    struct kind late = {0};
    uint64_t value = 7;
    for (uint64_t i = 0; i < GROWN_KEYS; i++) {
        WORLD_CHECK_EQ(ix_insert(&client, world_key(i, GROWN_KEYS), &value), 0);
    }
    for (uint64_t i = GROWN_KEYS; i-- > 0;) {
        WORLD_CHECK_EQ(kind_run(ctx, &late, &client, GET, world_key(i, GROWN_KEYS), &value), 0);
    }
    grown->trips = late.account.round_trips;
    memcpy(grown->counts, ix_counts(&client), sizeof(grown->counts));
    ix_detach(&client);
    return 0;
}

static void a_client_with_an_old_root_reads_the_new_one_and_walks_from_there(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_cell);
    struct world world;
    struct world_pairs pairs;
    struct grown grown = {.world = &world};
    struct ix_pairs none = *world_pairs(&pairs, 1, 1, 8);
    none.count = 0;
    struct quiet_end end = quiet_world(&world, &config, &none, grown_entry, &grown);
    assert_int_equal(end.report.keys, GROWN_KEYS);
    assert_int_equal(grown.counts[CELL_ROOT_MOVED_COUNT], 1);
    assert_int_equal(grown.counts[CELL_STALE_WALK_COUNT], 1);
    /* The first get reads the leaf and the root word besides; no node is high enough to be cached. */
    assert_true(end.report.height <= 4);
    assert_int_equal(grown.trips, (uint64_t)end.report.height * GROWN_KEYS + 2);
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

static void a_small_cache_replaces_copies_and_keeps_its_budget(void **state) {
    (void)state;
    struct world_config config = thin();
    struct quiet quiet;
    config.params[3] = (struct dm_setting){"cache_above", "1"};
    config.cache_bytes = 6000;
    struct quiet_end end = quiet_run(&config, 400, &quiet);
    assert_true(quiet.counts[CELL_CACHE_EVICTED_COUNT] > 0);
    assert_true(end.cached > 3000 && end.cached <= 6000);
    /* Copies age by use: those of the root and of the level below it are used most and stay. */
    assert_true(quiet.absent.account.round_trips <= 6 * QUIET_SAMPLES);
}

/* ---- crowds ------------------------------------------------------------------------------------------------------ */

static void nothing_is_wrong_under_any_setting(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {{"slots", "16"},     {"fanout", "5"},       {"fill", "1"},
                                                 {"inner_fill", "1"}, {"cache_above", "3"},  {"reads", "server"},
                                                 {"stale", "call"},   {"cache_above", "9"},  {"fill", "0.1"},
                                                 {"slots", "5"},      {"inline_bytes", "8"}, {"inner_fill", "0.1"}};
    steady_all_right(&ix_ops_cell, settings, DM_ARRAY_LEN(settings));
}

static void every_declared_event_happens_in_a_small_crowd(void **state) {
    (void)state;
    uint64_t counts[STEADY_COUNTERS] = {0};
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct world_config config = steady_small(&ix_ops_cell, seed);
        config.cache_bytes = seed % 2 ? 3000 : config.cache_bytes;
        config.value_bytes = seed % 8 == 7 ? 600 : config.value_bytes; /* in blocks */
        if (seed % 4 < 2) {                                            /* full nodes, so that the tree grows */
            config.params[0] = (struct dm_setting){"fill", "1"};
            config.params[1] = (struct dm_setting){"inner_fill", "1"};
        }
        steady_count(config, counts);
    }
    steady_events_seen(&ix_ops_cell, counts, 0);
}

static uint64_t caught_after(const char *name, const char *value, uint64_t seeds) {
    return steady_caught(&ix_ops_cell, (struct dm_setting){name, value}, (struct dm_setting){"slots", "4"}, 8, seeds);
}

static void known_wrong_variants_are_found_and_the_correct_one_is_not(void **state) {
    (void)state;
    assert_int_equal(caught_after("fences", "on", 50), 0);
    assert_int_not_equal(caught_after("fences", "off", 20), 0);
    assert_int_not_equal(caught_after("node_check", "off", 20), 0);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void keys_of_any_size_are_stored_in_leaves_or_blocks(void **state) {
    (void)state;
    static const uint32_t sizes[] = {9, 24, 64, 100, 256};
    for (unsigned i = 0; i < 2 * DM_ARRAY_LEN(sizes); i++) {
        struct world_config config = steady_small(&ix_ops_cell, i);
        config.key_bytes = sizes[i / 2];
        config.value_bytes = i % 2 ? 30 : 8;
        config.params[0] = (struct dm_setting){"reads", i % 3 ? "client" : "server"};
        assert_int_equal(steady_run(config, 300).violations, 0);
    }
}

struct long_key {
    struct world world;
    struct kind get, update;
};

static int long_key_entry(struct dm_ctx *ctx, void *arg) {
    struct long_key *own = arg;
    struct ix_client client = world_attach(&own->world, 0, ctx, NULL);
    uint64_t value = 0, key = world_key(1, 4);
    WORLD_CHECK_EQ(kind_run(ctx, &own->get, &client, GET, key, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &own->update, &client, UPDATE, key, &value), 0);
    ix_detach(&client);
    return 0;
}

/* A leaf of 16 pairs of 24 + 8 bytes, check, head and fences; a request of the key and the value. */
static void all_bytes_of_a_key_are_read_and_sent(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_cell);
    struct long_key own = {.get = {.count = 0}};
    struct world_pairs pairs;
    config.key_bytes = 24;
    quiet_world(&own.world, &config, world_pairs(&pairs, 4, 1, config.value_bytes), long_key_entry, &own);
    assert_int_equal(own.get.account.bytes_read, 32 + 16 * (24 + 8));
    assert_int_equal(own.update.account.bytes_written, 24 + 8);
}

static int check_of(uint32_t value_bytes, const struct dm_topology *topology, const char *name, const char *value,
                    struct dm_err *err) {
    return world_check(&ix_ops_cell, topology, value_bytes, (struct dm_setting){name, value}, err);
}

static void impossible_shapes_are_refused_with_the_limit(void **state) {
    (void)state;
    struct dm_err err = {0};
    struct dm_topology topology = {.mns = 1, .cns = 1, .mn_cores = 1, .clients = 1, .clients_per_thread = 1};
    assert_int_equal(check_of(8, &topology, "slots", "16", &err), 0);
    assert_int_equal(check_of(4096, &topology, "slots", "64", &err), 0);
    assert_int_equal(check_of(4097, &topology, "slots", "16", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "1 to 4096"));
    assert_int_equal(check_of(8, &topology, "slots", "3", &err), DM_ERR_INVALID);
    assert_int_equal(check_of(8, &topology, "fanout", "65", &err), DM_ERR_INVALID);
    assert_int_equal(check_of(8, &topology, "cache_above", "0", &err), DM_ERR_INVALID);
    topology.mn_cores = 0;
    assert_int_equal(check_of(8, &topology, "slots", "16", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "at least 1 core"));
    topology.mn_cores = 1;
    topology.mn_bytes = UINT64_C(1) << 38;
    assert_int_equal(check_of(8, &topology, "slots", "16", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "256 GiB"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_million_keys_make_eight_levels_as_many_as_these_thin_nodes_do_of_few_keys),
        cmocka_unit_test(a_quiet_get_of_eight_levels_is_four_reads_with_the_cache_and_eight_without),
        cmocka_unit_test(each_level_that_is_cached_saves_a_read),
        cmocka_unit_test(a_quiet_write_is_one_call),
        cmocka_unit_test(a_quiet_scan_walks_to_the_parent_and_reads_its_leaves_with_one_doorbell),
        cmocka_unit_test(a_value_that_is_too_long_for_a_leaf_costs_a_read_of_its_block),
        cmocka_unit_test(gets_by_the_memory_node_are_one_call),
        cmocka_unit_test(a_stale_walk_continues_by_the_link_and_repairs_the_cache),
        cmocka_unit_test(a_stale_walk_may_be_completed_by_a_call),
        cmocka_unit_test(a_client_with_an_old_root_reads_the_new_one_and_walks_from_there),
        cmocka_unit_test(a_small_cache_replaces_copies_and_keeps_its_budget),
        cmocka_unit_test(nothing_is_wrong_under_any_setting),
        cmocka_unit_test(every_declared_event_happens_in_a_small_crowd),
        cmocka_unit_test(known_wrong_variants_are_found_and_the_correct_one_is_not),
        cmocka_unit_test(keys_of_any_size_are_stored_in_leaves_or_blocks),
        cmocka_unit_test(all_bytes_of_a_key_are_read_and_sent),
        cmocka_unit_test(impossible_shapes_are_refused_with_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
