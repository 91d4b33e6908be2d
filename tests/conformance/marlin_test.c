/* SPDX-License-Identifier: Apache-2.0
 *
 * What Marlin alone promises: its message sequences and bytes in the quiet case, that each technique can be switched
 * off, that the events it declares do happen, that a key is inserted once by all who try, and that its known-wrong
 * variants are wrong where the right ones are not.
 */
#include "common/compiler.h"
#include "conformance/index_steady.h"
#include "conformance/index_stops.h"
#include "conformance/quiet_tree.h"
#include "indexes/marlin/marlin.h"

extern const struct ix_ops ix_ops_marlin;

/* ---- the quiet case ---------------------------------------------------------------------------------------------- */

enum { NODE_BYTES = 1088, BLOCK_BYTES = 24, ENTRY_BYTES = 16 };

static void a_quiet_get_reads_the_leaf_and_then_the_block(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_marlin);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.get.account.round_trips, 2);
    assert_int_equal(quiet.get.account.verbs[DM_VERB_READ], 2);
    assert_int_equal(quiet.get.account.bytes_read, NODE_BYTES + BLOCK_BYTES);
    assert_int_equal(quiet.absent.account.round_trips, 1);
}

static void quiet_writes_take_three_round_trips_and_a_delete_two(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_marlin);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    const struct dm_account *update = &quiet.update.account;
    assert_int_equal(update->round_trips, 3);
    assert_int_equal(update->verbs[DM_VERB_READ], 1);
    assert_int_equal(update->verbs[DM_VERB_WRITE], 1);
    assert_int_equal(update->verbs[DM_VERB_CAS], 1);
    assert_int_equal(update->verbs[DM_VERB_FAA], 2);
    assert_int_equal(update->cas_failures, 0);
    const struct dm_account *insert = &quiet.insert.account;
    assert_int_equal(insert->round_trips, 3);
    assert_int_equal(insert->verbs[DM_VERB_READ], 2);
    assert_int_equal(insert->verbs[DM_VERB_WRITE], 2);
    assert_int_equal(insert->verbs[DM_VERB_CAS], 1);
    assert_int_equal(insert->verbs[DM_VERB_FAA], 2);
    assert_int_equal(insert->doorbells, 3);
    const struct dm_account *remove = &quiet.remove.account;
    assert_int_equal(remove->round_trips, 2);
    assert_int_equal(remove->verbs[DM_VERB_WRITE], 0);
    /* Nothing to change: the share alone. */
    assert_int_equal(quiet.missing.account.round_trips, 1);
    assert_int_equal(quiet.present.account.round_trips, 1);
}

static void a_release_that_is_waited_for_costs_a_round_trip(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_marlin);
    config.params[0] = (struct dm_setting){"release", "waited"};
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.update.account.round_trips, 4);
    assert_int_equal(quiet.insert.account.round_trips, 3);
    assert_int_equal(quiet.remove.account.round_trips, 3);
}

static void combining_saves_the_round_trip_of_the_block(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_marlin);
    config.params[0] = (struct dm_setting){"combine", "on"};
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.update.account.round_trips, 2);
    assert_int_equal(quiet.insert.account.round_trips, 3);
}

static void without_a_cache_every_inner_level_costs_a_read(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_marlin);
    config.cache_bytes = 0;
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    assert_true(end.report.height >= 3);
    assert_int_equal(quiet.get.account.round_trips, end.report.height + 1);
    assert_int_equal(quiet.update.account.round_trips, end.report.height - 1 + 3);
}

static void a_quiet_scan_reads_the_leaves_and_then_the_blocks(void **state) {
    (void)state;
    static const char *const ways[] = {"batch", "doorbell", "serial"};
    for (unsigned i = 0; i < 3; i++) {
        struct world_config config = world_least(&ix_ops_marlin);
        config.params[0] = (struct dm_setting){"fetch", ways[i]};
        struct quiet quiet;
        quiet_run(&config, &quiet);
        uint64_t least = i == 2 ? 1 + QUIET_SCANNED : 2;
        assert_in_range(quiet.scan.account.round_trips, least, least + (i == 1));
        assert_true(quiet.scan.account.bytes_read % NODE_BYTES == QUIET_SCANNED * BLOCK_BYTES);
    }
}

static void a_leaf_has_64_entries_and_a_block_24_bytes(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_marlin);
    config.params[0] = (struct dm_setting){"fill", "1"};
    struct world world;
    struct world_pairs pairs;
    struct dm_memory_use use;
    world_open(&world, &config);
    world_load(&world, world_pairs(&pairs, 6400, 1, 8));
    dm_memory_use(world.fabric, &use);
    assert_int_equal(use.bytes[DM_MEM_VALUE], 6400 * BLOCK_BYTES);
    assert_int_equal(use.bytes[DM_MEM_LEAF], 100 * NODE_BYTES);
    assert_int_equal(world_verify(&world).leaves, 100);
    world_close(&world);
}

/* ---- one key, many inserts --------------------------------------------------------------------------------------- */

enum { RIVALS = 12, RIVAL_KEYS = 300, APART_KEYS = 600 };

struct rival {
    struct world *world;
    unsigned number, inserted[RIVAL_KEYS], removed[RIVAL_KEYS];
    uint64_t counts[MARLIN_COUNTER_COUNT];
};

/* All insert the same keys in the same order, and the client that has inserted every third deletes it again. */
static void rival_entry(struct dm_ctx *ctx, void *arg) {
    struct rival *rival = arg;
    struct ix_client client = world_attach(rival->world, 0, ctx, NULL);
    for (uint64_t i = 0; i < RIVAL_KEYS; i++) {
        uint64_t value = i;
        int rc = ix_insert(&client, world_key(i, RIVAL_KEYS), &value);
        rival->inserted[i] += rc == 0;
        if (rc != 0) {
            WORLD_CHECK_EQ(rc, DM_EXISTS);
        }
        if (rc == 0 && i % 3 == 0) {
            WORLD_CHECK_EQ(ix_get(&client, world_key(i, RIVAL_KEYS), &value), 0);
            WORLD_CHECK_EQ(value, i);
            WORLD_CHECK_EQ(ix_remove(&client, world_key(i, RIVAL_KEYS)), 0);
            rival->removed[i]++;
        }
    }
    memcpy(rival->counts, ix_counts(&client), sizeof(rival->counts));
    ix_detach(&client);
}

static void one_of_many_inserts_of_a_key_succeeds(void **state) {
    (void)state;
    static struct rival rivals[RIVALS];
    uint64_t slots = 0;
    uint64_t waits = 0;
    uint64_t again = 0; /* keys that were inserted once more after a delete */
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct world_config config = steady_small(&ix_ops_marlin, seed);
        config.cns = 1;
        config.clients = RIVALS;
        struct world world;
        world_begin(&world, &config, NULL);
        for (unsigned i = 0; i < RIVALS; i++) {
            rivals[i] = (struct rival){.world = &world};
            world_spawn(&world, 0, i, rival_entry, &rivals[i]);
        }
        world_run(&world);
        assert_int_equal(world_verify(&world).keys, RIVAL_KEYS - RIVAL_KEYS / 3);
        world_close(&world);
        for (unsigned k = 0; k < RIVAL_KEYS; k++) {
            unsigned inserted = 0, removed = 0;
            for (unsigned i = 0; i < RIVALS; i++) {
                inserted += rivals[i].inserted[k];
                removed += rivals[i].removed[k];
            }
            /* Between a delete and the next one there is one insert. */
            assert_int_equal(inserted, k % 3 == 0 ? removed : 1);
            assert_int_equal(removed > 0, k % 3 == 0);
            again += removed > 1;
        }
        for (unsigned i = 0; i < RIVALS; i++) {
            slots += rivals[i].counts[MARLIN_SLOT_CONFLICT];
            waits += rivals[i].counts[MARLIN_CLAIM_AWAITED] + rivals[i].counts[MARLIN_CLAIM_WITHDRAWN];
        }
    }
    assert_true(slots > 1000 && waits > 1000 && again > 400);
}

/* Each inserts keys of its own, all into the same leaves. */
static void apart_entry(struct dm_ctx *ctx, void *arg) {
    struct rival *rival = arg;
    struct ix_client client = world_attach(rival->world, 0, ctx, NULL);
    for (uint64_t i = rival->number; i < APART_KEYS; i += RIVALS) {
        uint64_t value = i;
        WORLD_CHECK_EQ(ix_insert(&client, world_key(i, APART_KEYS), &value), 0);
    }
    memcpy(rival->counts, ix_counts(&client), sizeof(rival->counts));
    ix_detach(&client);
}

static void inserts_of_different_keys_all_succeed_however_they_are_published(void **state) {
    (void)state;
    static struct rival rivals[RIVALS];
    static const char *const methods[] = {"checked", "published"};
    for (unsigned at = 0; at < DM_ARRAY_LEN(methods); at++) {
        struct world_config config = world_least(&ix_ops_marlin);
        struct world world;
        uint64_t slots = 0;
        config.clients = RIVALS;
        config.params[0] = (struct dm_setting){"insert", methods[at]};
        world_begin(&world, &config, NULL);
        for (unsigned i = 0; i < RIVALS; i++) {
            rivals[i] = (struct rival){.world = &world, .number = i};
            world_spawn(&world, 0, i, apart_entry, &rivals[i]);
        }
        world_run(&world);
        for (unsigned i = 0; i < RIVALS; i++) {
            slots += rivals[i].counts[MARLIN_SLOT_CONFLICT];
        }
        assert_int_equal(world_verify(&world).keys, APART_KEYS);
        assert_true(slots > 0);
        world_close(&world);
    }
}

/* ---- space ---------------------------------------------------------------------------------------------------- */

/* More values than memory has blocks for. */
static int updating_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    char value[WORLD_VALUE_MAX];
    for (uint64_t n = 0; n < 8000; n++) {
        uint64_t number = n % 200;
        world_value(number, n, value, world->config.value_bytes);
        WORLD_CHECK_EQ(ix_update(&client, world_key(number, 200), value), 0);
    }
    ix_detach(&client);
    return 0;
}

/* One client updates a key that another one deletes and inserts: updates that lose must not lose their blocks. */
struct losing {
    struct world *world;
    uint64_t lost;
    bool is_over;
};

static void losing_updater(struct dm_ctx *ctx, void *arg) {
    struct losing *losing = arg;
    struct ix_client client = world_attach(losing->world, 0, ctx, NULL);
    char value[WORLD_VALUE_MAX] = {0};
    for (unsigned n = 0; n < 3000; n++) {
        int rc = ix_update(&client, world_key(1, 4), value);
        WORLD_CHECK(rc == 0 || rc == DM_NOT_FOUND);
    }
    losing->lost = ix_counts(&client)[MARLIN_POINTER_CONFLICT];
    losing->is_over = true;
    ix_detach(&client);
}

static void losing_deleter(struct dm_ctx *ctx, void *arg) {
    struct losing *losing = arg;
    struct ix_client client = world_attach(losing->world, 0, ctx, NULL);
    char value[WORLD_VALUE_MAX] = {0};
    while (!losing->is_over) {
        WORLD_CHECK_EQ(ix_remove(&client, world_key(1, 4)), 0);
        WORLD_CHECK_EQ(ix_insert(&client, world_key(1, 4), value), 0);
    }
    ix_detach(&client);
}

static void updates_that_lose_against_a_delete_keep_their_blocks(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_marlin);
    struct world world;
    struct world_pairs pairs;
    struct losing losing = {.world = &world};
    config.value_bytes = WORLD_VALUE_MAX;
    config.mn_bytes = 256 << 10;
    config.chunk_bytes = 8 << 10;
    config.expected_keys = 4;
    config.clients = 2;
    world_begin(&world, &config, world_pairs(&pairs, 4, 1, config.value_bytes));
    world_spawn(&world, 0, 0, losing_updater, &losing);
    world_spawn(&world, 0, 1, losing_deleter, &losing);
    world_run(&world);
    world_close(&world);
    assert_true(losing.lost > 200); /* more than there is memory for */
}

static void updates_use_the_blocks_again_that_they_replace(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_marlin);
    struct world world;
    struct world_pairs pairs;
    config.value_bytes = 200;
    config.mn_bytes = 1 << 20;
    config.chunk_bytes = 16 << 10;
    config.expected_keys = 200;
    world_begin(&world, &config, world_pairs(&pairs, 200, 1, config.value_bytes));
    world_do(&world, 0, updating_entry, &world);
    assert_int_equal(world_verify(&world).keys, 200);
    world_close(&world);
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

static int empty_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    uint64_t value;
    for (uint64_t i = 0; i < QUIET_KEYS; i += 2) {
        if (i % 256 != 0) {
            WORLD_CHECK_EQ(ix_remove(&client, world_key(i, QUIET_KEYS)), 0);
        }
    }
    for (uint64_t i = 0; i < QUIET_KEYS; i += 2) {
        WORLD_CHECK_EQ(ix_get(&client, world_key(i, QUIET_KEYS), &value), i % 256 == 0 ? 0 : DM_NOT_FOUND);
    }
    ix_detach(&client);
    return 0;
}

static uint64_t leaves_left(const char *merge, uint64_t *keys) {
    struct world_config config = world_least(&ix_ops_marlin);
    config.params[0] = (struct dm_setting){"merge", merge};
    struct world world;
    struct world_pairs pairs;
    struct quiet_end end =
        quiet_world(&world, &config, world_pairs(&pairs, QUIET_KEYS, 2, config.value_bytes), empty_entry, &world);
    *keys = end.report.keys;
    return end.report.leaves;
}

static void leaves_that_deletes_empty_are_merged(void **state) {
    (void)state;
    uint64_t with, without;
    uint64_t merged = leaves_left("on", &with);
    uint64_t unmerged = leaves_left("off", &without);
    assert_int_equal(with, without);
    assert_true(unmerged > 150);
    assert_true(merged < unmerged / 4);
}

/* ---- techniques off, events, wrong variants ---------------------------------------------------------------------- */

static void every_technique_can_be_switched_off_and_the_tree_stays_right(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {
        {"combine", "on"},   {"release", "waited"}, {"merge", "off"},      {"locks", "chip"},
        {"fetch", "serial"}, {"fetch", "doorbell"}, {"cache_levels", "0"}, {"cache_levels", "1"},
        {"fill", "1"},       {"span", "5"},         {"span", "64"},
    };
    steady_all_right(&ix_ops_marlin, settings, DM_ARRAY_LEN(settings));
}

/* Leaves and inner nodes that share one word, or three. */
static void locks_on_chip_may_be_few(void **state) {
    (void)state;
    static const char *const counts[] = {"1", "3"};
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct world_config config = steady_small(&ix_ops_marlin, seed);
        config.params[0] = (struct dm_setting){"locks", "chip"};
        config.params[1] = (struct dm_setting){"lock_count", counts[seed % 2]};
        assert_int_equal(steady_run(config, 300).violations, 0);
    }
}

static void values_of_any_size_are_consistent_and_current(void **state) {
    (void)state;
    static const uint32_t sizes[] = {8, 24, 40, 48, 49, 200, 1024};
    for (unsigned i = 0; i < DM_ARRAY_LEN(sizes); i++) {
        struct world_config config = steady_small(&ix_ops_marlin, i);
        config.value_bytes = sizes[i];
        assert_int_equal(steady_run(config, 300).violations, 0);
    }
}

static void every_declared_event_happens_in_a_small_crowd(void **state) {
    (void)state;
    uint64_t counts[STEADY_COUNTERS] = {0};
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct world_config config = steady_small(&ix_ops_marlin, seed);
        config.params[0] = (struct dm_setting){"locks", seed % 3 == 2 ? "chip" : "node"};
        steady_count(config, counts);
    }
    /* The crowd's inserts of one key hardly ever meet; one_of_many_inserts_of_a_key_succeeds has them. */
    steady_events_seen(&ix_ops_marlin, counts, 1U << MARLIN_CLAIM_AWAITED | 1U << MARLIN_CLAIM_WITHDRAWN);
}

static uint64_t caught(const char *name, const char *value, uint64_t seeds) {
    struct dm_setting none = {NULL, NULL};
    return steady_caught(&ix_ops_marlin, (struct dm_setting){name, value}, none, 8, seeds);
}

static void known_wrong_variants_are_wrong_and_the_right_one_is_not(void **state) {
    (void)state;
    assert_int_equal(caught("share", "before", 40), 0);
    assert_int_not_equal(caught("share", "behind", 200), 0);
    assert_int_not_equal(caught("split", "early", 200), 0);
    assert_int_not_equal(caught("insert", "published", 200), 0);
    assert_int_not_equal(caught("blocks", "unchecked", 200), 0);
    assert_int_not_equal(caught("versions", "none", 200), 0);
}

/* ---- clients that stop ------------------------------------------------------------------------------------------- */

/* A leaf's lock word has how many clients share it and not which, so none is taken back: reads and writes of the leaf
 * continue, and the insert that must split it waits for ever. */
static void a_share_of_a_client_that_stopped_stops_the_split_of_its_leaf_alone(void **state) {
    (void)state;
    static struct stops stops;
    struct world_config config = world_least(&ix_ops_marlin);
    unsigned split = 0, stuck = 0;
    for (unsigned verb = 1; verb <= STOPS_VERBS; verb++) {
        stops_run(&stops, config, verb);
        assert_int_equal(stops.get, 0);
        assert_int_equal(stops.update, 0);
        assert_int_equal(stops.remove, 0);
        assert_int_equal(stops.again, 0);
        if (stops.insert == DM_ERR_RETRY_LIMIT) {
            assert_true(stops.inserts > 1);
            stuck++;
        } else {
            assert_int_equal(stops.insert, 0);
            split++;
        }
    }
    assert_true(stuck > 1 && split > 1);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static int check_of(uint32_t value_bytes, const char *name, const char *value, uint32_t chip_bytes,
                    struct dm_err *err) {
    struct dm_topology topology = {.mns = 1, .cns = 1, .clients = 1, .clients_per_thread = 1, .chip_bytes = chip_bytes};
    return world_check(&ix_ops_marlin, &topology, value_bytes, (struct dm_setting){name, value}, err);
}

static void impossible_shapes_are_refused_with_the_limit(void **state) {
    (void)state;
    struct dm_err err = {0};
    assert_int_equal(check_of(16384, "span", "64", 0, &err), 0);
    assert_int_equal(check_of(16385, "span", "64", 0, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "16384"));
    assert_int_equal(check_of(8, "locks", "chip", 65536, &err), 0);
    assert_int_equal(check_of(8, "locks", "chip", 0, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "locks=node"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_get_reads_the_leaf_and_then_the_block),
        cmocka_unit_test(quiet_writes_take_three_round_trips_and_a_delete_two),
        cmocka_unit_test(a_release_that_is_waited_for_costs_a_round_trip),
        cmocka_unit_test(combining_saves_the_round_trip_of_the_block),
        cmocka_unit_test(without_a_cache_every_inner_level_costs_a_read),
        cmocka_unit_test(a_quiet_scan_reads_the_leaves_and_then_the_blocks),
        cmocka_unit_test(a_leaf_has_64_entries_and_a_block_24_bytes),
        cmocka_unit_test(one_of_many_inserts_of_a_key_succeeds),
        cmocka_unit_test(inserts_of_different_keys_all_succeed_however_they_are_published),
        cmocka_unit_test(updates_use_the_blocks_again_that_they_replace),
        cmocka_unit_test(updates_that_lose_against_a_delete_keep_their_blocks),
        cmocka_unit_test(leaves_that_deletes_empty_are_merged),
        cmocka_unit_test(every_technique_can_be_switched_off_and_the_tree_stays_right),
        cmocka_unit_test(locks_on_chip_may_be_few),
        cmocka_unit_test(values_of_any_size_are_consistent_and_current),
        cmocka_unit_test(every_declared_event_happens_in_a_small_crowd),
        cmocka_unit_test(known_wrong_variants_are_wrong_and_the_right_one_is_not),
        cmocka_unit_test(a_share_of_a_client_that_stopped_stops_the_split_of_its_leaf_alone),
        cmocka_unit_test(impossible_shapes_are_refused_with_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
