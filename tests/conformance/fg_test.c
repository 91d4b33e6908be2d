/* SPDX-License-Identifier: Apache-2.0
 *
 * What FG alone promises: its message sequences in the quiet case, with and without the cache of top levels, and that
 * its known-wrong variants are wrong where the right ones are not.
 */
#include "common/compiler.h"
#include "conformance/index_steady.h"
#include "conformance/quiet_tree.h"
#include "indexes/fg/fg.h"

extern const struct ix_ops ix_ops_fg;

/* ---- round trips in the quiet case ------------------------------------------------------------------------------- */

static void a_quiet_get_reads_one_node_a_level(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_fg);
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    assert_true(end.report.height >= 3);
    assert_int_equal(end.cached, 0);
    assert_int_equal(quiet.get.account.round_trips, end.report.height);
    assert_int_equal(quiet.get.account.verbs[DM_VERB_READ], end.report.height);
    assert_int_equal(quiet.get.account.bytes_read, 1024 * end.report.height);
}

static void each_cached_level_saves_one_read(void **state) {
    (void)state;
    static const char *const levels[] = {"1", "2", "16"};
    for (unsigned i = 0; i < DM_ARRAY_LEN(levels); i++) {
        struct world_config config = world_least(&ix_ops_fg);
        config.params[0] = (struct dm_setting){"cache_levels", levels[i]};
        struct quiet quiet;
        struct quiet_end end = quiet_run(&config, &quiet);
        assert_true(end.report.height >= 3);
        unsigned cached = i == 2 ? end.report.height - 1 : i + 1;
        assert_int_equal(quiet.get.account.round_trips, end.report.height - cached);
        assert_int_equal(quiet.update.account.round_trips, end.report.height - cached + 3);
        assert_true(end.cached > 0);
    }
}

static void a_quiet_write_locks_writes_and_unlocks_in_three_round_trips(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_fg);
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    const struct dm_account *writes[] = {&quiet.update.account, &quiet.insert.account, &quiet.remove.account};
    for (unsigned i = 0; i < DM_ARRAY_LEN(writes); i++) {
        assert_int_equal(writes[i]->round_trips, end.report.height + 3);
        assert_int_equal(writes[i]->verbs[DM_VERB_READ], end.report.height);
        assert_int_equal(writes[i]->verbs[DM_VERB_CAS], 1);
        assert_int_equal(writes[i]->verbs[DM_VERB_WRITE], 1);
        assert_int_equal(writes[i]->verbs[DM_VERB_FAA], 1);
        assert_int_equal(writes[i]->cas_failures, 0);
    }
}

static void combining_saves_the_unlock_s_round_trip(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_fg);
    config.params[0] = (struct dm_setting){"combine", "on"};
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    assert_int_equal(quiet.update.account.round_trips, end.report.height + 2);
    assert_int_equal(quiet.insert.account.round_trips, end.report.height + 2);
    assert_int_equal(quiet.remove.account.round_trips, end.report.height + 2);
}

static void a_write_that_changes_nothing_takes_no_lock(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_fg);
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    const struct dm_account *idle[] = {&quiet.missing.account, &quiet.present.account};
    for (unsigned i = 0; i < DM_ARRAY_LEN(idle); i++) {
        assert_int_equal(idle[i]->round_trips, end.report.height);
        assert_int_equal(idle[i]->verbs[DM_VERB_CAS], 0);
        assert_int_equal(idle[i]->verbs[DM_VERB_FAA], 0);
    }
}

static void a_quiet_scan_reads_the_leaves_of_one_parent_together(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_fg);
    config.params[0] = (struct dm_setting){"cache_levels", "16"};
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.scan.account.round_trips, 1);
    assert_int_equal(quiet.scan.account.doorbells, 1);
}

/* ---- verbs in error ---------------------------------------------------------------------------------------------- */

struct failing {
    struct world world;
    bool failed;
    int first, second; /* outcomes */
};

static void failing_entry(struct dm_ctx *ctx, void *arg) {
    struct failing *failing = arg;
    struct ix_client client = world_attach(&failing->world, 0, ctx, NULL);
    uint64_t value = 1;
    failing->first = ix_update(&client, world_key(0, QUIET_KEYS), &value);
    failing->failed = true;
    ix_detach(&client);
}

static void following_entry(struct dm_ctx *ctx, void *arg) {
    struct failing *failing = arg;
    struct ix_client client = world_attach(&failing->world, 1, ctx, NULL);
    uint64_t value = 2;
    while (!failing->failed) {
        dm_sleep(ctx, 10000);
    }
    failing->second = ix_update(&client, world_key(0, QUIET_KEYS), &value);
    ix_detach(&client);
}

/* Whether the failed verb took effect or not, which differs by the seed. */
static void a_write_that_fails_leaves_its_node_unlocked(void **state) {
    (void)state;
    static const char *const faults[] = {"error:p=1,client=0,kind=write", "error:p=1,client=0,kind=faa"};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world_config config = world_least(&ix_ops_fg);
        struct failing failing = {.first = 1, .second = 1};
        struct world_pairs pairs;
        config.cns = config.clients = 2;
        config.seed = seed;
        config.retry_limit = 100;
        config.settings[0] = (struct dm_setting){"faults", faults[seed % 2]};
        config.params[0] = (struct dm_setting){"combine", seed % 3 ? "off" : "on"};
        world_begin(&failing.world, &config, world_pairs(&pairs, QUIET_KEYS, 2, config.value_bytes));
        world_spawn(&failing.world, 0, 0, failing_entry, &failing);
        world_spawn(&failing.world, 1, 0, following_entry, &failing);
        world_run(&failing.world);
        world_close(&failing.world);
        assert_int_equal(failing.first, DM_ERR_IO);
        assert_int_equal(failing.second, 0);
    }
}

/* ---- settings, events, wrong variants ---------------------------------------------------------------------------- */

static void every_setting_leaves_the_tree_right(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {
        {"combine", "on"}, {"cache_levels", "1"}, {"cache_levels", "16"},
        {"fill", "1"},     {"node_bytes", "192"}, {"values", "indirect"},
    };
    steady_all_right(&ix_ops_fg, settings, DM_ARRAY_LEN(settings));
}

static void every_declared_event_happens_in_a_small_crowd(void **state) {
    (void)state;
    uint64_t counts[STEADY_COUNTERS] = {0};
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct world_config config = steady_small(&ix_ops_fg, seed);
        config.value_bytes = seed % 2 ? 8 : 24;
        config.params[0] = (struct dm_setting){"node_bytes", config.value_bytes > 8 ? "192" : "128"};
        config.params[1] = (struct dm_setting){"values", seed % 4 == 3 ? "indirect" : "inline"};
        config.params[2] = (struct dm_setting){"cache_levels", "16"};
        steady_count(config, counts);
    }
    steady_events_seen(&ix_ops_fg, counts, 0);
}

static uint64_t caught_after(struct dm_setting variant, const char *node_bytes, uint64_t seeds) {
    return steady_caught(&ix_ops_fg, variant, (struct dm_setting){"node_bytes", node_bytes}, 8, seeds);
}

static void known_wrong_variants_are_wrong_and_the_right_one_is_not(void **state) {
    (void)state;
    assert_int_equal(caught_after((struct dm_setting){"versions", "lines"}, "256", 20), 0);
    assert_int_equal(caught_after((struct dm_setting){"upgrade", "version"}, "512", 20), 0);
    assert_int_not_equal(caught_after((struct dm_setting){"versions", "none"}, "256", 20), 0);
    assert_int_not_equal(caught_after((struct dm_setting){"versions", "bookend"}, "512", 100), 0);
    /* upgrade=blind loses updates, which the checker finds (check_test); a reader of fixed keys cannot. */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_get_reads_one_node_a_level),
        cmocka_unit_test(each_cached_level_saves_one_read),
        cmocka_unit_test(a_quiet_write_locks_writes_and_unlocks_in_three_round_trips),
        cmocka_unit_test(combining_saves_the_unlock_s_round_trip),
        cmocka_unit_test(a_write_that_changes_nothing_takes_no_lock),
        cmocka_unit_test(a_quiet_scan_reads_the_leaves_of_one_parent_together),
        cmocka_unit_test(a_write_that_fails_leaves_its_node_unlocked),
        cmocka_unit_test(every_setting_leaves_the_tree_right),
        cmocka_unit_test(every_declared_event_happens_in_a_small_crowd),
        cmocka_unit_test(known_wrong_variants_are_wrong_and_the_right_one_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
