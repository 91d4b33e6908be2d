/* SPDX-License-Identifier: Apache-2.0
 *
 * What CHIME alone promises: its message sequences and bytes in the quiet case, that each technique can be switched
 * off, that the events it declares do happen, that leaves merge, and that its known-wrong variants are wrong where the
 * right ones are not.
 */
#include "common/compiler.h"
#include "conformance/index_steady.h"
#include "conformance/quiet.h"
#include "indexes/chime/chime.h"

extern const struct ix_ops ix_ops_chime;

/* ---- round trips in the quiet case --------------------------------------------------------------------------------
 */

enum { QUIET_KEYS = 20000, QUIET_SAMPLES = 200 };

struct quiet {
    struct world world;
    struct kind first_get, hot_get, absent, update, hot_update, insert, remove, scan;
    uint64_t wrong, largest_read;
};

static int quiet_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(&quiet->world, 0, ctx, NULL);
    uint64_t value = 1;
    /* The inner nodes come into the cache; keys between are asked for, so that the hotspot buffer stays empty. */
    quiet_warm(&client, QUIET_KEYS, 1, 8, DM_NOT_FOUND);
    for (uint64_t n = 0; n < QUIET_SAMPLES; n++) {
        uint64_t present = world_key(2 * (n * 37 % 5000), QUIET_KEYS);
        uint64_t absent = world_key(2 * (n * 37 % 5000) + 1, QUIET_KEYS);
        WORLD_CHECK_EQ(
            kind_run(ctx, &quiet->update, &client, UPDATE, world_key(2 * (n * 37 % 5000) + 2, QUIET_KEYS), &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->first_get, &client, GET, present, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->hot_get, &client, GET, present, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->hot_update, &client, UPDATE, present, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->absent, &client, GET, absent, &value), DM_NOT_FOUND);
        uint64_t splits = ix_counts(&client)[CHIME_LEAF_SPLIT];
        struct kind insert = quiet->insert;
        WORLD_CHECK_EQ(kind_run(ctx, &insert, &client, INSERT, absent, &value), 0);
        if (ix_counts(&client)[CHIME_LEAF_SPLIT] == splits) {
            quiet->insert = insert;
        }
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->remove, &client, REMOVE, absent, &value), 0);
    }
    kind_scan(ctx, &quiet->scan, &client, world_key(5000, QUIET_KEYS), 30);
    quiet->wrong = ix_counts(&client)[CHIME_HOTSPOT_WRONG];
    quiet->largest_read = ix_counts(&client)[CHIME_LARGEST_READ];
    ix_detach(&client);
    return 0;
}

static struct quiet_end quiet_run(const struct world_config *config, struct quiet *quiet) {
    memset(quiet, 0, sizeof(*quiet));
    return quiet_half_world(&quiet->world, config, QUIET_KEYS, quiet_entry, quiet);
}

static void a_quiet_get_is_one_round_trip_of_under_200_bytes(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.absent.trips[1], QUIET_SAMPLES);
    assert_true(quiet.absent.account.bytes_read < 200 * QUIET_SAMPLES);
    /* Two reads where the neighbourhood goes round the end, with one doorbell. */
    assert_true(quiet.absent.account.verbs[DM_VERB_READ] < QUIET_SAMPLES * 5 / 4);
    assert_int_equal(quiet.absent.account.doorbells, QUIET_SAMPLES);
}

static void a_hotspot_hit_reads_one_entry_and_a_wrong_one_costs_a_round_trip(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.hot_get.trips[1], QUIET_SAMPLES);
    assert_true(quiet.hot_get.account.bytes_read <= 20 * QUIET_SAMPLES);
    assert_int_equal(quiet.first_get.trips[1] + quiet.first_get.trips[2], QUIET_SAMPLES);
    assert_true(quiet.first_get.trips[2] <= quiet.wrong);
}

static void the_time_of_a_lock_is_a_phase_of_its_own(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    const struct kind *writes[] = {&quiet.update, &quiet.insert, &quiet.remove};
    for (unsigned i = 0; i < DM_ARRAY_LEN(writes); i++) {
        assert_true(writes[i]->account.phase_ns[DM_PHASE_LOCK] > QUIET_SAMPLES / 2 * 1000);
    }
    assert_int_equal(quiet.first_get.account.phase_ns[DM_PHASE_LOCK], 0);
}

struct moved {
    struct world *world;
    struct dm_account account;
};

static int moved_entry(struct dm_ctx *ctx, void *arg) {
    struct moved *moved = arg;
    struct ix_client client = world_attach(moved->world, 0, ctx, NULL);
    struct chime_client *inner = client.handle;
    uint64_t key = world_key(100, QUIET_KEYS);
    uint64_t value;
    uint32_t attempts = 0;
    WORLD_CHECK_EQ(ix_tree_descend(&inner->tree, key, 0, &attempts), 0);
    unsigned home = chime_home(&inner->cn->layout, key);
    dm_addr leaf = inner->tree.child.addr;
    int at = CHIME_NONE;
    WORLD_CHECK_EQ(chime_read_part(inner, &inner->leaf, leaf, home, inner->cn->layout.hood), 0);
    at = chime_leaf_find(&inner->cn->layout, inner->leaf.image, key);
    WORLD_CHECK(at >= 0);
    /* Make the buffer point at an entry where the key is not. */
    chime_hotspot_note(inner->cn->hotspot, leaf, home, key, chime_at(&inner->cn->layout, (unsigned)at, 1));
    dm_account_use(ctx, &moved->account);
    WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
    dm_account_use(ctx, NULL);
    WORLD_CHECK_EQ(ix_counts(&client)[CHIME_HOTSPOT_WRONG], 1);
    ix_detach(&client);
    return 0;
}

static void a_wrong_speculation_takes_two_round_trips(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    struct world world;
    struct world_pairs pairs;
    struct moved moved = {.world = &world};
    quiet_world(&world, &config, world_pairs(&pairs, QUIET_KEYS, 2, 8), moved_entry, &moved);
    assert_int_equal(moved.account.round_trips, 2);
}

static void a_quiet_write_takes_three_round_trips_whatever_the_largest_key_is(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.update.trips[3] + quiet.update.trips[4], QUIET_SAMPLES);
    assert_true(quiet.update.trips[4] <= quiet.wrong);
    assert_int_equal(quiet.hot_update.trips[3], QUIET_SAMPLES);
    const struct kind *writes[] = {&quiet.insert, &quiet.remove};
    for (unsigned i = 0; i < 2; i++) {
        unsigned all = writes[i]->count;
        assert_int_equal(writes[i]->trips[3], all);
        assert_int_equal(writes[i]->account.verbs[DM_VERB_MASKED_CAS], all);
    }
    assert_int_equal(quiet.largest_read, 0);
    /* Lock, a hop range, entries and unlock: nothing near a leaf of 1317 bytes. */
    assert_true(quiet.hot_update.account.bytes_written <= (20 + 8 + 40) * QUIET_SAMPLES);
    assert_true(quiet.hot_update.account.bytes_read <= 40 * QUIET_SAMPLES);
}

static void a_bitmap_read_apart_costs_an_insert_a_round_trip(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    config.params[0] = (struct dm_setting){"vacancy", "read"};
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.insert.trips[3], 0);
    assert_int_equal(quiet.insert.trips[4], quiet.insert.count);
}

static void metadata_without_copies_costs_a_read(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    config.params[0] = (struct dm_setting){"replicate", "off"};
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_true(quiet.absent.account.verbs[DM_VERB_READ] > QUIET_SAMPLES * 19 / 10);
    assert_int_equal(quiet.absent.trips[1], QUIET_SAMPLES);
}

static void without_a_cache_every_inner_level_costs_a_read(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    config.cache_bytes = 0;
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    assert_true(end.report.height >= 3);
    assert_true(kind_took(&quiet.absent, end.report.height));
    assert_int_equal(end.cached, 0);
}

static void a_quiet_scan_within_one_parent_is_one_round_trip(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.scan.account.round_trips, 1);
    assert_int_equal(quiet.scan.account.doorbells, 1);
}

/* ---- merges ---------------------------------------------------------------------------------------------------------
 */

static int emptying_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    uint64_t keys[4];
    uint64_t values[4];
    uint32_t found;
    for (uint64_t i = 0; i < QUIET_KEYS; i += 2) {
        if (i % 1000 != 0) {
            WORLD_CHECK_EQ(ix_remove(&client, world_key(i, QUIET_KEYS)), 0);
        }
    }
    WORLD_CHECK_EQ(ix_scan(&client, 0, 4, keys, values, &found), 0);
    WORLD_CHECK_EQ(found, 4);
    for (unsigned i = 0; i < 4; i++) {
        WORLD_CHECK_EQ(keys[i], world_key(1000 * i, QUIET_KEYS));
    }
    WORLD_CHECK(ix_counts(&client)[CHIME_LEAF_MERGE] > 100);
    ix_detach(&client);
    return 0;
}

/* The bitmap of a leaf of 512 entries has a bit for ten of them, so that no bit may be set in a leaf half full. */
static int thinning_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    for (uint64_t i = 0; i < QUIET_KEYS; i += 4) { /* every second key */
        WORLD_CHECK_EQ(ix_remove(&client, world_key(i, QUIET_KEYS)), 0);
    }
    WORLD_CHECK_EQ(ix_counts(&client)[CHIME_LEAF_MERGE], 0);
    ix_detach(&client);
    return 0;
}

/* ---- segments -------------------------------------------------------------------------------------------------------
 */

enum { DENSE_KEYS = 400, DENSE_FIRST = 1000, DENSE_SCAN = 3 };

struct dense {
    struct world *world;
    struct dm_account account;
    uint64_t parts, gap;  /* scans that read parts; a key that is missing among the dense ones, 0: none */
    uint64_t hits, wrong; /* keys in entries that the hotspot buffer named; and not in them */
};

static int dense_entry(struct dm_ctx *ctx, void *arg) {
    struct dense *dense = arg;
    struct ix_client client = world_attach(dense->world, 0, ctx, NULL);
    for (uint64_t key = DENSE_FIRST; key < DENSE_FIRST + DENSE_KEYS; key++) {
        if (key != dense->gap) {
            WORLD_CHECK_EQ(ix_insert(&client, key, &key), 0);
        }
    }
    uint64_t keys[DENSE_SCAN];
    uint64_t values[DENSE_SCAN];
    uint32_t found;
    dm_account_use(ctx, &dense->account);
    for (uint64_t first = DENSE_FIRST - 1; first < DENSE_FIRST + DENSE_KEYS; first++) {
        WORLD_CHECK_EQ(ix_scan(&client, first, DENSE_SCAN, keys, values, &found), 0);
        uint64_t key = first < DENSE_FIRST ? DENSE_FIRST : first;
        uint32_t at = 0;
        for (; key < DENSE_FIRST + DENSE_KEYS && at < DENSE_SCAN; key++) {
            if (key != dense->gap) {
                WORLD_CHECK(at < found && keys[at] == key && values[at] == key);
                at++;
            }
        }
        WORLD_CHECK_EQ(found, at);
    }
    dm_account_use(ctx, NULL);
    dense->parts = ix_counts(&client)[CHIME_SCAN_PART];
    dense->hits = ix_counts(&client)[CHIME_HOTSPOT_HIT];
    dense->wrong = ix_counts(&client)[CHIME_HOTSPOT_WRONG];
    ix_detach(&client);
    return 0;
}

static struct dense dense_run(const char *scan, uint64_t gap) {
    struct world_config config = world_least(&ix_ops_chime);
    struct world world;
    struct dense dense = {.world = &world, .gap = gap};
    config.params[0] = (struct dm_setting){"scan", scan};
    world_begin(&world, &config, NULL);
    world_do(&world, 0, dense_entry, &dense);
    world_verify(&world);
    world_close(&world);
    return dense;
}

static void a_short_scan_over_dense_keys_reads_neighbourhoods_not_leaves(void **state) {
    (void)state;
    struct dense parts = dense_run("segments", 0);
    struct dense leaves = dense_run("leaves", 0);
    assert_true(parts.parts > DENSE_KEYS / 2);
    assert_int_equal(leaves.parts, 0);
    assert_true(parts.account.bytes_read * 3 < leaves.account.bytes_read * 2);
}

static void a_scan_over_keys_that_are_not_quite_dense_is_right(void **state) {
    (void)state;
    struct dense parts = dense_run("segments", DENSE_FIRST + 57);
    assert_true(parts.parts > DENSE_KEYS / 2);
}

/* Each range is scanned twice, the second time with all of its keys in the hotspot buffer. */
static void a_scan_over_hot_keys_takes_fewer_reads(void **state) {
    (void)state;
    struct dense hot = dense_run("hotspots", 0);
    struct dense parts = dense_run("segments", 0);
    assert_true(hot.hits > DENSE_KEYS);
    assert_true(hot.wrong > 0 && hot.wrong * 10 < hot.hits); /* some keys have hopped since they were inserted */
    assert_true(hot.account.verbs[DM_VERB_READ] * 10 < parts.account.verbs[DM_VERB_READ] * 9);
    dense_run("hotspots", DENSE_FIRST + 57);
}

static void leaves_that_deletes_empty_are_merged_away(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    struct world world;
    struct world_pairs pairs;
    world_open(&world, &config);
    world_load(&world, world_pairs(&pairs, QUIET_KEYS, 2, 8));
    uint64_t before = world_verify(&world).leaves;
    world_do(&world, 0, emptying_entry, &world);
    struct ix_report report = world_verify(&world);
    assert_int_equal(report.keys, QUIET_KEYS / 1000);
    assert_true(report.leaves < before / 4);
    world_close(&world);
}

static void a_large_leaf_that_deletes_leave_well_filled_is_not_merged(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    struct world world;
    struct world_pairs pairs;
    config.params[0] = (struct dm_setting){"span", "512"};
    world_begin(&world, &config, world_pairs(&pairs, QUIET_KEYS, 2, 8));
    world_do(&world, 0, thinning_entry, &world);
    world_verify(&world);
    world_close(&world);
}

/* ---- techniques off, events, wrong variants -------------------------------------------------------------------------
 */

static void every_technique_can_be_switched_off_and_the_tree_stays_right(void **state) {
    (void)state;
    static const struct dm_setting off[] = {
        {"local_locks", "off"},   {"back_off", "off"},      {"speculative", "off"}, {"vacancy", "read"},
        {"vacancy", "none"},      {"replicate", "off"},     {"merge", "off"},       {"cache_levels", "0"},
        {"cache_levels", "1"},    {"validation", "fences"}, {"fill", "1"},          {"hotspot_share", "1"},
        {"hotspot_bytes", "300"}, {"span", "13"},           {"values", "indirect"}, {"scan", "leaves"},
        {"scan", "hotspots"},
    };
    steady_all_right(&ix_ops_chime, off, DM_ARRAY_LEN(off));
}

static void every_declared_event_happens_in_a_small_crowd(void **state) {
    (void)state;
    uint64_t counts[STEADY_COUNTERS] = {0};
    for (uint64_t seed = 0; seed < 48; seed++) {
        struct world_config config = steady_small(&ix_ops_chime, seed);
        config.value_bytes = seed % 2 ? 8 : 24;
        config.params[0] = (struct dm_setting){"span", seed % 3 ? "8" : "4"};
        config.params[1] = (struct dm_setting){"neighbourhood", seed % 3 ? "4" : "2"};
        config.params[2] = (struct dm_setting){"values", seed % 4 == 3 ? "indirect" : "inline"};
        config.params[3] = (struct dm_setting){"fill", "0.8"}; /* full enough for the root to split too */
        steady_count(config, counts);
    }
    /* Every fourth key of this crowd stays for good, so its leaves never run empty: check sees merges. */
    steady_events_seen(&ix_ops_chime, counts, 1 << CHIME_LEAF_MERGE | 1 << CHIME_DEAD_LEAF);
}

static uint64_t caught_after(const char *name, const char *value, uint64_t seeds) {
    return steady_caught(&ix_ops_chime, (struct dm_setting){name, value}, (struct dm_setting){NULL, NULL}, 8, seeds);
}

static void known_wrong_variants_are_wrong_and_the_right_one_is_not(void **state) {
    (void)state;
    assert_int_equal(caught_after("bitmap_check", "on", 100), 0);
    assert_int_not_equal(caught_after("bitmap_check", "off", 100), 0);
    assert_int_not_equal(caught_after("unlock", "before", 20), 0);
    assert_int_not_equal(caught_after("validation", "none", 20), 0);
    assert_int_not_equal(caught_after("values", "unchecked", 20), 0);
}

/* ---- limits ---------------------------------------------------------------------------------------------------------
 */

static int check_of(uint32_t value_bytes, const char *name, const char *value, struct dm_err *err) {
    struct dm_topology topology = {.mns = 1, .cns = 1, .clients = 1, .clients_per_thread = 1};
    return world_check(&ix_ops_chime, &topology, value_bytes, (struct dm_setting){name, value}, err);
}

static void impossible_shapes_are_refused_with_the_limit(void **state) {
    (void)state;
    struct dm_err err = {0};
    assert_int_equal(check_of(8, "span", "64", &err), 0);
    assert_int_equal(check_of(1024, "span", "64", &err), 0);
    assert_int_equal(check_of(1025, "span", "64", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "1 to 1024"));
    assert_int_equal(check_of(1024, "span", "256", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "values may have up to 491 bytes"));
    assert_int_equal(check_of(491, "span", "256", &err), 0);
    assert_int_equal(check_of(492, "span", "256", &err), DM_ERR_INVALID);
    assert_int_equal(check_of(8, "span", "0", &err), DM_ERR_INVALID);
    assert_int_equal(check_of(8, "span", "4", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "neighbourhood of 8"));
    assert_int_equal(check_of(8, "neighbourhood", "17", &err), DM_ERR_INVALID);
    assert_int_equal(check_of(8, "hotspot_bytes", "1000001", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "whole cache"));
    assert_int_equal(check_of(8, "hotspot_bytes", "1000000", &err), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_get_is_one_round_trip_of_under_200_bytes),
        cmocka_unit_test(a_hotspot_hit_reads_one_entry_and_a_wrong_one_costs_a_round_trip),
        cmocka_unit_test(the_time_of_a_lock_is_a_phase_of_its_own),
        cmocka_unit_test(a_wrong_speculation_takes_two_round_trips),
        cmocka_unit_test(a_quiet_write_takes_three_round_trips_whatever_the_largest_key_is),
        cmocka_unit_test(a_bitmap_read_apart_costs_an_insert_a_round_trip),
        cmocka_unit_test(metadata_without_copies_costs_a_read),
        cmocka_unit_test(without_a_cache_every_inner_level_costs_a_read),
        cmocka_unit_test(a_quiet_scan_within_one_parent_is_one_round_trip),
        cmocka_unit_test(a_short_scan_over_dense_keys_reads_neighbourhoods_not_leaves),
        cmocka_unit_test(a_scan_over_keys_that_are_not_quite_dense_is_right),
        cmocka_unit_test(a_scan_over_hot_keys_takes_fewer_reads),
        cmocka_unit_test(leaves_that_deletes_empty_are_merged_away),
        cmocka_unit_test(a_large_leaf_that_deletes_leave_well_filled_is_not_merged),
        cmocka_unit_test(every_technique_can_be_switched_off_and_the_tree_stays_right),
        cmocka_unit_test(every_declared_event_happens_in_a_small_crowd),
        cmocka_unit_test(known_wrong_variants_are_wrong_and_the_right_one_is_not),
        cmocka_unit_test(impossible_shapes_are_refused_with_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
