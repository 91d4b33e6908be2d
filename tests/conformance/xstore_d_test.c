/* SPDX-License-Identifier: Apache-2.0
 *
 * What XStore-D alone guarantees: its message sequences in the quiet case for every caching mode; that inserts never
 * fail and training keeps up with them; that each technique can be switched off; that the events it declares happen;
 * and that the checks find its known-wrong variants and nothing in the correct one.
 */
#include "common/compiler.h"
#include "conformance/index_steady.h"
#include "conformance/quiet.h"
#include "indexes/xstore_d/params.h"

extern const struct ix_ops ix_ops_xstore_d;

/* ---- round trips in the quiet case ------------------------------------------------------------------------------- */

enum { QUIET_KEYS = 20000, QUIET_SAMPLES = 200, SCAN_PAIRS = 20 };

struct quiet {
    struct world world;
    struct kind get, absent, update, insert, remove, scan;
    uint64_t counts[XSTORE_COUNTER_COUNT];
};

static int quiet_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(&quiet->world, 0, ctx, NULL);
    for (uint64_t n = 0; n < QUIET_SAMPLES; n++) {
        uint64_t number = 2 * (n * 37 % 5000);
        uint64_t present = world_key(number, QUIET_KEYS);
        uint64_t absent = world_key(number + 1, QUIET_KEYS);
        uint64_t value;
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->get, &client, GET, present, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->absent, &client, GET, absent, &value), DM_NOT_FOUND);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->update, &client, UPDATE, present, &number), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->insert, &client, INSERT, absent, &number), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->remove, &client, REMOVE, absent, &number), 0);
        kind_scan(ctx, &quiet->scan, &client, present, SCAN_PAIRS);
    }
    memcpy(quiet->counts, ix_counts(&client), sizeof(quiet->counts));
    ix_detach(&client);
    return 0;
}

static void quiet_run(const struct world_config *config, struct quiet *quiet) {
    memset(quiet, 0, sizeof(*quiet));
    quiet_half_world(&quiet->world, config, QUIET_KEYS, quiet_entry, quiet);
}

static void a_quiet_get_reads_keys_and_then_a_value(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_xstore_d);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.get, 2));
    assert_true(kind_took(&quiet.absent, 1));
    assert_int_equal(quiet.get.account.verbs[DM_VERB_CALL], 0);
    /* Evenly spaced keys: the models are exact to a leaf. Its header and keys are 144 bytes, a value with its check 16.
     */
    assert_int_equal(quiet.get.account.bytes_read, QUIET_SAMPLES * (144 + 16));
}

static void a_quiet_write_is_one_call_and_an_update_is_found_by_its_hint(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_xstore_d);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    const struct kind *writes[] = {&quiet.update, &quiet.insert, &quiet.remove};
    for (unsigned i = 0; i < 3; i++) {
        assert_true(kind_took(writes[i], 1));
        assert_int_equal(writes[i]->account.verbs[DM_VERB_CALL], QUIET_SAMPLES);
        assert_int_equal(writes[i]->account.verbs[DM_VERB_READ], 0);
    }
    assert_int_equal(quiet.counts[XSTORE_HINT_HIT_COUNT], QUIET_SAMPLES);
    config.params[0] = (struct dm_setting){"hint", "off"};
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.update, 1));
    assert_int_equal(quiet.counts[XSTORE_HINT_HIT_COUNT], 0);
}

static void a_quiet_scan_is_two_round_trips(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_xstore_d);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.scan, 2));
    assert_int_equal(quiet.scan.account.verbs[DM_VERB_CALL], 0);
    config.params[0] = (struct dm_setting){"fetch", "leaf"};
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.scan, 1));
}

static void reading_whole_leaves_saves_a_round_trip(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_xstore_d);
    config.params[0] = (struct dm_setting){"fetch", "leaf"};
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.get, 1));
    assert_true(kind_took(&quiet.absent, 1));
}

static void an_indirect_value_costs_a_read(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_xstore_d);
    struct quiet quiet;
    config.params[0] = (struct dm_setting){"values", "indirect"};
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.get, 3));
    assert_true(kind_took(&quiet.absent, 1));
    assert_true(kind_took(&quiet.update, 1));
}

static void each_part_that_is_not_cached_costs_a_read(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_xstore_d);
    struct quiet quiet;
    config.params[0] = (struct dm_setting){"cache", "models"};
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.get, 3));
    config.params[0] = (struct dm_setting){"cache", "top"};
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.get, 4));
    assert_true(kind_took(&quiet.update, 1));
}

/* ---- leaves that were split -------------------------------------------------------------------------------------- */

enum { SPLIT_LEAVES = 100, SPLIT_SLOTS = 16, SPLIT_KEYS = SPLIT_LEAVES * SPLIT_SLOTS, SPLIT_STEP = 1000 };

struct split {
    struct world *world;
    unsigned moved_trips;
    uint64_t invalidated, first_calls, second_calls, late_calls;
};

/* Splits full leaves, and gets the last key of each, which has moved, at once, again, and after the training. */
static int split_entry(struct dm_ctx *ctx, void *arg) {
    struct split *split = arg;
    struct ix_client client = world_attach(split->world, 0, ctx, NULL);
    const uint64_t *counts = ix_counts(&client);
    uint64_t value = 7;
    for (uint64_t leaf = 1; leaf < SPLIT_LEAVES; leaf += 2) {
        uint64_t first = (leaf * SPLIT_SLOTS) * SPLIT_STEP, last = first + (SPLIT_SLOTS - 1) * SPLIT_STEP;
        struct kind get = {0};
        uint64_t calls = counts[XSTORE_FALLBACK_COUNT], invalid = counts[XSTORE_INVALIDATION_COUNT];
        WORLD_CHECK_EQ(ix_insert(&client, first + SPLIT_STEP + 1, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &get, &client, GET, last, &value), 0);
        split->moved_trips += (unsigned)get.account.round_trips;
        split->invalidated += counts[XSTORE_INVALIDATION_COUNT] - invalid;
        split->first_calls += counts[XSTORE_FALLBACK_COUNT] - calls;
        calls = counts[XSTORE_FALLBACK_COUNT];
        WORLD_CHECK_EQ(ix_get(&client, last, &value), 0);
        split->second_calls += counts[XSTORE_FALLBACK_COUNT] - calls;
        WORLD_CHECK_EQ(dm_sleep(ctx, 1000000), 0);
        WORLD_CHECK_EQ(ix_get(&client, last, &value), 0); /* fetches the model, if the training was too late before */
        calls = counts[XSTORE_FALLBACK_COUNT];
        WORLD_CHECK_EQ(ix_get(&client, last, &value), 0);
        split->late_calls += counts[XSTORE_FALLBACK_COUNT] - calls;
    }
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

static void
a_key_that_a_split_moved_is_found_by_its_link_and_the_entry_is_invalid_until_the_table_is_fetched(void **state) {
    (void)state;
    static const char *const speculations[] = {"off", "leaf", "link"};
    for (unsigned i = 0; i < 3; i++) {
        struct world_config config = world_least(&ix_ops_xstore_d);
        struct world world;
        struct split split = {.world = &world};
        struct ix_pairs pairs = {.count = SPLIT_KEYS, .keys = split_keys, .value = split_value};
        config.params[0] = (struct dm_setting){"speculate", speculations[i]};
        config.params[1] = (struct dm_setting){"fill", "1"};
        (void)quiet_world(&world, &config, &pairs, split_entry, &split);
        unsigned splits = SPLIT_LEAVES / 2, most = splits * 9 / 10;
        print_message("speculate %s: %.2f round trips, %u of %u invalid, calls %u, then %u, then %u\n", speculations[i],
                      split.moved_trips / (double)splits, (unsigned)split.invalidated, splits,
                      (unsigned)split.first_calls, (unsigned)split.second_calls, (unsigned)split.late_calls);
        assert_true(split.invalidated >= most && split.invalidated <= splits);
        assert_int_equal(split.late_calls, 0);
        if (i == 2) {
            /* Keys, keys one link further, value; the next get finds the entry invalid. */
            assert_true(split.moved_trips >= 3 * most && split.first_calls == 0 && split.second_calls >= most);
        } else {
            assert_true(split.moved_trips <= 2 * splits && split.first_calls >= most);
        }
    }
}

/* ---- the log ----------------------------------------------------------------------------------------------------- */

enum { LOGGED_WRITES = 20000 };

static int logged_entry(struct dm_ctx *ctx, void *arg) {
    struct split *own = arg;
    struct ix_client client = world_attach(own->world, 0, ctx, NULL);
    uint64_t value = 7, begin = dm_now(ctx);
    for (uint64_t i = 0; i < LOGGED_WRITES; i++) {
        WORLD_CHECK_EQ(ix_update(&client, i % SPLIT_KEYS * SPLIT_STEP, &value), 0);
    }
    own->late_calls = dm_now(ctx) - begin;
    ix_detach(&client);
    return 0;
}

static uint64_t logged_ns(const char *rate) {
    struct world_config config = world_least(&ix_ops_xstore_d);
    struct world world;
    struct split own = {.world = &world};
    struct ix_pairs pairs = {.count = SPLIT_KEYS, .keys = split_keys, .value = split_value};
    config.params[0] = (struct dm_setting){"logging", "on"};
    config.params[1] = (struct dm_setting){"log_rate", rate};
    (void)quiet_world(&world, &config, &pairs, logged_entry, &own);
    return own.late_calls;
}

static void writes_wait_for_the_device_of_the_log_once_its_buffer_is_full(void **state) {
    (void)state;
    /* 20000 records of 32 bytes, of which the buffer holds 256 KiB, at 4 MB/s. */
    uint64_t least = (LOGGED_WRITES * UINT64_C(32) - (1 << 18)) * 1000 / 4;
    uint64_t slow = logged_ns("4MB"), fast = logged_ns("0");
    print_message("20000 updates: %.1f ms with a device of 4 MB/s, %.1f ms without\n", (double)slow / 1e6,
                  (double)fast / 1e6);
    assert_true(slow >= least && slow < 2 * least);
    assert_true(fast * 6 < slow * 5);
}

/* ---- many inserts ------------------------------------------------------------------------------------------------ */

enum { GROWN_KEYS = 6000 };

struct grown {
    struct world *world;
    uint64_t from, step; /* keys from, from + step ... are inserted */
    uint64_t counts[XSTORE_COUNTER_COUNT];
};

static int grown_entry(struct dm_ctx *ctx, void *arg) {
    struct grown *grown = arg;
    struct ix_client client = world_attach(grown->world, 0, ctx, NULL);
    uint64_t value = 7;
    for (uint64_t i = 0; i < GROWN_KEYS; i++) {
        WORLD_CHECK_EQ(ix_insert(&client, grown->from + i * grown->step, &value), 0);
    }
    /* Training takes time; a get that finds a model too old requests it. */
    for (unsigned round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < GROWN_KEYS; i++) {
            WORLD_CHECK_EQ(ix_get(&client, grown->from + i * grown->step, &value), 0);
            WORLD_CHECK_EQ(value, 7);
        }
        WORLD_CHECK_EQ(dm_sleep(ctx, 20000000), 0);
    }
    memcpy(grown->counts, ix_counts(&client), sizeof(grown->counts));
    uint64_t before = grown->counts[XSTORE_FALLBACK_COUNT];
    for (uint64_t i = 0; i < GROWN_KEYS; i++) {
        WORLD_CHECK_EQ(ix_get(&client, grown->from + i * grown->step, &value), 0);
    }
    /* Training has caught up: hardly any get is a call any more. */
    uint64_t late = ix_counts(&client)[XSTORE_FALLBACK_COUNT] - before;
    uint64_t wide = ix_counts(&client)[XSTORE_UNSAFE_COUNT] - grown->counts[XSTORE_UNSAFE_COUNT];
    WORLD_CHECK(late - wide < GROWN_KEYS / 50);
    ix_detach(&client);
    return 0;
}

static void grown_run(uint64_t from, uint64_t step, const char *expand) {
    struct world_config config = world_least(&ix_ops_xstore_d);
    struct world world;
    struct world_pairs pairs;
    config.params[0] = (struct dm_setting){"expand", expand};
    config.params[1] = (struct dm_setting){"expand_at", "300"};
    config.params[2] = (struct dm_setting){"fill", "0.9"};
    config.mns = 2;
    struct grown grown = {.world = &world, .from = from, .step = step};
    struct quiet_end end = quiet_world(&world, &config, world_pairs(&pairs, 2 * GROWN_KEYS, 2, 8), grown_entry, &grown);
    assert_int_equal(end.report.keys, 2 * GROWN_KEYS);
    assert_true(grown.counts[XSTORE_RETRAINED_COUNT] + grown.counts[XSTORE_EXPANDED_COUNT] > 0);
}

static void as_many_keys_again_are_inserted_and_training_catches_up(void **state) {
    (void)state;
    uint64_t gap = UINT64_MAX / (2 * GROWN_KEYS);
    grown_run(gap / 2, 2 * gap, "on");
    grown_run(gap / 2, 2 * gap, "off");
}

static void as_many_keys_again_fit_into_one_narrow_range(void **state) {
    (void)state;
    grown_run(UINT64_MAX / 3, 3, "off");
    grown_run(UINT64_MAX / 3, 3, "on");
}

/* ---- full memory ------------------------------------------------------------------------------------------------- */

enum { FULL_KEYS = 10000, FULL_BYTES = 1000 };

static int full_entry(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 0, ctx, NULL);
    uint64_t value[FULL_BYTES / 8] = {7}, n = 0;
    int rc = 0;
    for (; n < FULL_KEYS && rc == 0; n++) {
        rc = ix_insert(&client, world_key(n, FULL_KEYS), value);
    }
    WORLD_CHECK_EQ(-rc, -DM_ERR_NO_MEMORY);
    for (uint64_t i = 0; i + 1 < n; i++) {
        WORLD_CHECK_EQ(ix_insert(&client, world_key(i, FULL_KEYS), value), DM_EXISTS);
    }
    ix_detach(&client);
    return 0;
}

static void a_key_that_is_there_is_found_also_when_no_block_is_left(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_xstore_d);
    struct world world;
    struct world_pairs pairs;
    struct ix_pairs none = *world_pairs(&pairs, 1, 1, FULL_BYTES);
    none.count = 0;
    config.value_bytes = FULL_BYTES;
    config.params[0] = (struct dm_setting){"values", "indirect"};
    config.mn_bytes = 3 << 20;
    config.chunk_bytes = 64 << 10;
    quiet_world(&world, &config, &none, full_entry, &world);
}

/* ---- techniques off, events, wrong variants ---------------------------------------------------------------------- */

static void every_technique_can_be_switched_off_and_the_tree_stays_correct(void **state) {
    (void)state;
    static const struct dm_setting off[] = {
        {"cache", "models"},      {"cache", "top"},      {"fetch", "leaf"},       {"hint", "off"},
        {"speculate", "off"},     {"prefill", "off"},    {"expand", "off"},       {"logging", "on"},
        {"span_max", "1"},        {"trainers", "3"},     {"speculate", "leaf"},   {"values", "indirect"},
        {"trainer_share", "0.1"}, {"log_rate", "100MB"}, {"models", "9"},         {"fill", "1"},
        {"slots", "13"},          {"expand_at", "4"},    {"keys_per_model", "5"},
    };
    steady_all_right(&ix_ops_xstore_d, off, DM_ARRAY_LEN(off));
}

static void every_declared_event_happens_in_a_small_crowd(void **state) {
    (void)state;
    uint64_t counts[STEADY_COUNTERS] = {0};
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct world_config config = steady_small(&ix_ops_xstore_d, seed);
        config.params[0] = (struct dm_setting){"expand_at", "12"};
        config.params[1] = (struct dm_setting){"keys_per_model", "10"};
        steady_count(config, counts);
    }
    steady_events_seen(&ix_ops_xstore_d, counts, 0);
}

static uint64_t caught_after(const char *name, const char *value, const char *slots, uint64_t seeds) {
    return steady_caught(&ix_ops_xstore_d, (struct dm_setting){name, value}, (struct dm_setting){"slots", slots}, 8,
                         seeds);
}

static void known_wrong_variants_are_found_and_the_correct_one_is_not(void **state) {
    (void)state;
    assert_int_equal(caught_after("incarnation", "on", "8", 50), 0);
    assert_int_not_equal(caught_after("incarnation", "off", "4", 20), 0);
    /* The keys of 8 slots take two lines, so that a read of them can tear. */
    assert_int_not_equal(caught_after("leaf_check", "off", "8", 200), 0);
    assert_int_not_equal(caught_after("value_check", "off", "4", 20), 0);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static int check_of(uint32_t value_bytes, const struct dm_topology *topology, const char *name, const char *value,
                    struct dm_err *err) {
    return world_check(&ix_ops_xstore_d, topology, value_bytes, (struct dm_setting){name, value}, err);
}

static void impossible_shapes_are_refused_with_the_limit(void **state) {
    (void)state;
    struct dm_err err = {0};
    struct dm_topology topology = {.mns = 1, .cns = 1, .mn_cores = 1, .clients = 1, .clients_per_thread = 1};
    assert_int_equal(check_of(8, &topology, "slots", "16", &err), 0);
    assert_int_equal(check_of(1024, &topology, "slots", "64", &err), 0);
    assert_int_equal(check_of(1025, &topology, "slots", "16", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "1 to 1024"));
    assert_int_equal(check_of(8, &topology, "slots", "3", &err), DM_ERR_INVALID);
    assert_int_equal(check_of(8, &topology, "slots", "65", &err), DM_ERR_INVALID);
    assert_int_equal(check_of(8, &topology, "span_max", "0", &err), DM_ERR_INVALID);
    topology.mn_bytes = UINT64_C(1) << 37;
    assert_int_equal(check_of(8, &topology, "slots", "16", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "128 GiB"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_get_reads_keys_and_then_a_value),
        cmocka_unit_test(a_quiet_write_is_one_call_and_an_update_is_found_by_its_hint),
        cmocka_unit_test(a_quiet_scan_is_two_round_trips),
        cmocka_unit_test(reading_whole_leaves_saves_a_round_trip),
        cmocka_unit_test(an_indirect_value_costs_a_read),
        cmocka_unit_test(each_part_that_is_not_cached_costs_a_read),
        cmocka_unit_test(
            a_key_that_a_split_moved_is_found_by_its_link_and_the_entry_is_invalid_until_the_table_is_fetched),
        cmocka_unit_test(writes_wait_for_the_device_of_the_log_once_its_buffer_is_full),
        cmocka_unit_test(as_many_keys_again_are_inserted_and_training_catches_up),
        cmocka_unit_test(as_many_keys_again_fit_into_one_narrow_range),
        cmocka_unit_test(a_key_that_is_there_is_found_also_when_no_block_is_left),
        cmocka_unit_test(every_technique_can_be_switched_off_and_the_tree_stays_correct),
        cmocka_unit_test(every_declared_event_happens_in_a_small_crowd),
        cmocka_unit_test(known_wrong_variants_are_found_and_the_correct_one_is_not),
        cmocka_unit_test(impossible_shapes_are_refused_with_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
