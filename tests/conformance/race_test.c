/* SPDX-License-Identifier: Apache-2.0
 *
 * What RACE alone promises: its message sequences and bytes in the quiet case, with a directory that is cached or not,
 * what a split leaves, and that its known-wrong variants are wrong where the right one is not.
 */
#include "common/compiler.h"
#include "conformance/index_damage.h"
#include "conformance/index_steady.h"
#include "conformance/quiet.h"
#include "indexes/race/race.h"

extern const struct ix_ops ix_ops_race;

/* ---- layout ------------------------------------------------------------------------------------------------------ */

static void slots_headers_and_entries_keep_what_is_put_into_them(void **state) {
    (void)state;
    uint64_t hash = race_hash(12345);
    uint64_t slot = race_slot(hash, 64 * 70, RACE_SLOT_WORD);
    assert_int_equal(race_slot_word(slot), RACE_SLOT_WORD);
    assert_int_equal(race_slot_fingerprint(slot), race_fingerprint(hash));
    assert_false(race_slot_tentative(slot));
    assert_true(race_slot_tentative(slot | RACE_SLOT_TENTATIVE));
    uint64_t header = race_header(3, 5);
    assert_true(race_header_covers(header, 0xf5) && !race_header_covers(header, 0xf4));
    assert_false(race_header_covers(0, 0));
    assert_false(race_header_filling(header));
    assert_int_equal(race_header_depth(header | RACE_HEADER_FILLING), 3);
    dm_addr table = dm_addr_make(63, DM_DRAM, UINT64_C(0xfedcba987640));
    assert_true(dm_addr_equal(race_entry_table(race_entry(table, 24)), table));
    assert_int_equal(race_entry_depth(race_entry(table, 24)), 24);
}

static void a_key_has_two_main_buckets_with_their_overflow_buckets_beside(void **state) {
    (void)state;
    for (uint64_t groups = 1; groups < 6; groups++) {
        for (uint64_t key = 0; key < 1000; key++) {
            uint32_t buckets[RACE_BUCKETS];
            race_buckets(race_hash(key), groups, buckets);
            assert_int_not_equal(buckets[0], buckets[2]);
            for (unsigned k = 0; k < RACE_BUCKETS; k += 2) {
                assert_true(buckets[k] < groups * 3 && buckets[k] % 3 != 1);
                assert_int_equal(buckets[k + 1], buckets[k] / 3 * 3 + 1);
            }
        }
    }
}

/* ---- the quiet case ---------------------------------------------------------------------------------------------- */

enum { QUIET_KEYS = 20000, QUIET_SAMPLES = 100 };

struct quiet {
    struct world *world;
    struct kind get, absent, update, missing, present, insert, remove;
    uint64_t get_ns, update_ns; /* of all together */
};

static int quiet_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(quiet->world, 0, ctx, NULL);
    uint64_t value = 1;
    for (uint64_t i = 0; i < QUIET_SAMPLES; i++) {
        uint64_t present = world_key(100 * i, QUIET_KEYS);
        uint64_t between = world_key(100 * i + 1, QUIET_KEYS);
        uint64_t other = world_key(100 * i + 2, QUIET_KEYS);
        uint64_t begin_ns = dm_now(ctx);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->get, &client, GET, present, &value), 0);
        quiet->get_ns += dm_now(ctx) - begin_ns;
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->absent, &client, GET, between, &value), DM_NOT_FOUND);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->missing, &client, UPDATE, between, &value), DM_NOT_FOUND);
        begin_ns = dm_now(ctx);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->update, &client, UPDATE, present, &value), 0);
        quiet->update_ns += dm_now(ctx) - begin_ns;
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->present, &client, INSERT, present, &value), DM_EXISTS);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->insert, &client, INSERT, between, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->remove, &client, REMOVE, other, &value), 0);
    }
    ix_detach(&client);
    return 0;
}

/* Even keys are loaded: of 100 * i, 100 * i + 1 and 100 * i + 2, the first and the last. */
static struct quiet_end quiet_run(const struct world_config *config, struct quiet *quiet) {
    struct world world;
    struct world_pairs pairs;
    *quiet = (struct quiet){.world = &world};
    return quiet_world(&world, config, world_pairs(&pairs, QUIET_KEYS, 2, config->value_bytes), quiet_entry, quiet);
}

/* Operations of more than the least: a slot of the key's fingerprint that is another key's is read before the absence
 * of a key is known. With 28 slots, half of them used, that is one operation of twenty. */
static unsigned kind_beyond(const struct kind *kind, unsigned trips) {
    return kind->count - kind->trips[trips];
}

static void a_quiet_get_reads_two_combined_buckets_and_a_block(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_race);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.get, 2));
    uint64_t false_matches = quiet.get.account.verbs[DM_VERB_READ] - 3 * QUIET_SAMPLES;
    assert_in_range(false_matches, 0, QUIET_SAMPLES / 8);
    assert_int_equal(quiet.get.account.bytes_read, QUIET_SAMPLES * (2 * 128 + 20) + false_matches * 20);
    assert_int_equal(quiet.get.account.bytes_written, 0);
    assert_in_range(kind_beyond(&quiet.absent, 1), 0, QUIET_SAMPLES / 8);
    assert_int_equal(quiet.absent.count, quiet.absent.trips[1] + quiet.absent.trips[2]);
}

static void quiet_writes_take_three_round_trips(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_race);
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    /* A block of 20 bytes with the read of buckets; an atomic counts as 8 bytes in either direction. */
    assert_true(kind_took(&quiet.update, 3));
    assert_int_equal(quiet.update.account.bytes_written, QUIET_SAMPLES * (20 + 8));
    assert_int_equal(quiet.update.account.verbs[DM_VERB_CAS], QUIET_SAMPLES);
    assert_true(kind_took(&quiet.remove, 3));
    assert_int_equal(quiet.remove.account.bytes_written, QUIET_SAMPLES * 8);
    assert_true(kind_took(&quiet.present, 2));
    assert_in_range(kind_beyond(&quiet.missing, 1), 0, QUIET_SAMPLES / 8);
    /* Buckets and block; slot; buckets; and the slot counts, which is not waited for. A false match adds two. */
    assert_in_range(kind_beyond(&quiet.insert, 3), 0, QUIET_SAMPLES / 8);
    assert_int_equal(quiet.insert.count, quiet.insert.trips[3] + quiet.insert.trips[5]);
    assert_int_equal(quiet.insert.account.verbs[DM_VERB_CAS], 2 * QUIET_SAMPLES);
    assert_int_equal(quiet.insert.account.verbs[DM_VERB_WRITE], QUIET_SAMPLES);
    assert_int_equal(quiet.insert.account.bytes_written, QUIET_SAMPLES * (20 + 2 * 8));
    assert_int_equal(end.report.keys, QUIET_KEYS / 2);
    assert_int_equal(end.report.broken, 0);
}

static void without_space_for_the_directory_its_entry_is_read_first(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_race);
    config.cache_bytes = 0;
    struct quiet quiet;
    assert_int_equal(quiet_run(&config, &quiet).cached, 0);
    assert_true(kind_took(&quiet.get, 3));
    assert_true(kind_took(&quiet.update, 4));
}

static void the_cache_is_the_directory_within_its_budget(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_race);
    config.params[0] = (struct dm_setting){"subtable", "192"};
    struct quiet quiet;
    uint64_t whole = quiet_run(&config, &quiet).cached;
    assert_in_range(whole, 8 * QUIET_KEYS / 2 / 21, 8 * QUIET_KEYS);
    assert_int_equal(whole & (whole - 1), 0);
    config.cache_bytes = whole / 2 + 8;
    assert_int_equal(quiet_run(&config, &quiet).cached, whole / 2);
    assert_int_equal(quiet.get.count, QUIET_SAMPLES);
}

/* ---- splits ------------------------------------------------------------------------------------------------------ */

struct growth {
    struct world *world;
    uint64_t keys, splits, doubled, entries, slots;
};

static int growth_entry(struct dm_ctx *ctx, void *arg) {
    struct growth *growth = arg;
    struct ix_client client = world_attach(growth->world, 0, ctx, NULL);
    for (uint64_t i = 0; i < growth->keys; i++) {
        uint64_t value = i;
        WORLD_CHECK_EQ(ix_insert(&client, world_key(i, growth->keys), &value), 0);
    }
    for (uint64_t i = 0; i < growth->keys; i++) {
        uint64_t value = growth->keys;
        WORLD_CHECK_EQ(ix_get(&client, world_key(i, growth->keys), &value), 0);
        WORLD_CHECK_EQ(value, i);
    }
    growth->splits = ix_counts(&client)[RACE_SPLIT];
    growth->doubled = ix_counts(&client)[RACE_DIRECTORY_DOUBLED];
    growth->entries = ix_counts(&client)[RACE_SPLIT_ENTRIES];
    growth->slots = ix_counts(&client)[RACE_SPLIT_SLOTS];
    ix_detach(&client);
    return 0;
}

static void a_table_grows_by_splits_as_bulk_load_grows_it(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_race);
    config.mns = 3;
    config.params[0] = (struct dm_setting){"subtable", "1536"};
    struct world world;
    struct world_pairs none;
    struct growth growth = {.world = &world, .keys = 5000};
    struct quiet_end grown =
        quiet_world(&world, &config, world_pairs(&none, 0, 1, config.value_bytes), growth_entry, &growth);
    assert_int_equal(grown.report.keys, growth.keys);
    assert_int_equal(grown.report.broken, 0);
    assert_int_equal(grown.report.leaves, growth.splits + 1);
    assert_in_range(growth.doubled, 5, 12);
    /* A subtable of 1536 bytes has eight groups of 21 slots, and splits when it is nearly full. */
    assert_int_equal(growth.slots, growth.splits * 8 * 21);
    assert_in_range(growth.entries * 100 / growth.slots, 80, 99);
    assert_true(grown.report.leaf_fill > 0.4 && grown.report.leaf_fill < 0.95);
}

/* One client fills subtables and splits them, while verbs of it complete in error, with effect or without. It repeats
 * what has failed. Another one comes later and finds everything: no split is unfinished, no slot waits for its insert,
 * and no lock is held. */
struct unlucky {
    struct world *world;
    unsigned failed, splits;
};

enum { UNLUCKY_KEYS = 24, UNLUCKY_LATER_NS = 2000000 };

static void unlucky_entry(struct dm_ctx *ctx, void *arg) {
    struct unlucky *unlucky = arg;
    struct ix_client client = world_attach(unlucky->world, 0, ctx, NULL);
    for (uint64_t i = 0; i < UNLUCKY_KEYS; i++) {
        int rc;
        while ((rc = ix_insert(&client, world_key(2 * i, 2 * UNLUCKY_KEYS), &i)) == DM_ERR_IO) {
            unlucky->failed++;
        }
        WORLD_CHECK(rc == 0 || rc == DM_EXISTS);
    }
    /* The end of the last insert was not waited for. */
    for (uint64_t i = 0; i < UNLUCKY_KEYS; i++) {
        uint64_t value;
        int rc = ix_get(&client, world_key(2 * i, 2 * UNLUCKY_KEYS), &value);
        WORLD_CHECK(rc == 0 || rc == DM_ERR_IO);
        unlucky->failed += rc != 0;
    }
    unlucky->splits = (unsigned)ix_counts(&client)[RACE_SPLIT];
    ix_detach(&client);
}

static void later_entry(struct dm_ctx *ctx, void *arg) {
    struct unlucky *unlucky = arg;
    struct ix_client client = world_attach(unlucky->world, 0, ctx, NULL);
    WORLD_CHECK_EQ(dm_sleep(ctx, UNLUCKY_LATER_NS), 0);
    for (uint64_t i = 0; i < UNLUCKY_KEYS; i++) {
        uint64_t value = i;
        WORLD_CHECK_EQ(ix_insert(&client, world_key(2 * i + 1, 2 * UNLUCKY_KEYS), &value), 0);
        WORLD_CHECK_EQ(ix_get(&client, world_key(2 * i + 1, 2 * UNLUCKY_KEYS), &value), 0);
        WORLD_CHECK_EQ(ix_get(&client, world_key(2 * i, 2 * UNLUCKY_KEYS), &value), 0);
        WORLD_CHECK_EQ(value, i);
    }
    ix_detach(&client);
}

static struct unlucky unlucky_run(const char *faults, uint64_t seed) {
    struct world_config config = world_least(&ix_ops_race);
    struct world world;
    struct unlucky unlucky = {.world = &world};
    config.clients = 2;
    config.seed = seed;
    config.retry_limit = 1000;
    config.params[0] = (struct dm_setting){"subtable", "192"};
    config.params[1] = (struct dm_setting){"slots", "2"};
    config.settings[0] = (struct dm_setting){"faults", faults};
    world_begin(&world, &config, NULL);
    world_spawn(&world, 0, 0, unlucky_entry, &unlucky);
    world_spawn(&world, 0, 1, later_entry, &unlucky);
    world_run(&world);
    struct ix_report report = world_verify(&world);
    assert_int_equal(report.keys, 2 * UNLUCKY_KEYS);
    assert_int_equal(report.broken, 0);
    world_close(&world);
    return unlucky;
}

static void a_verb_in_error_leaves_no_split_unfinished(void **state) {
    (void)state;
    unsigned failed = 0, splits = 0;
    for (unsigned verb = 1; verb <= 800; verb++) {
        char faults[40];
        snprintf(faults, sizeof(faults), "error:client=0,verb=%u", verb);
        struct unlucky unlucky = unlucky_run(faults, verb);
        failed += unlucky.failed;
        splits += unlucky.splits;
    }
    print_message("%u failed, %u splits\n", failed, splits);
    assert_true(failed > 100 && splits > 2400);
}

static void many_verbs_in_error_leave_no_split_unfinished(void **state) {
    (void)state;
    unsigned failed = 0, splits = 0;
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct unlucky unlucky = unlucky_run(seed % 2 ? "error:client=0,p=0.02" : "error:client=0,p=0.1", seed);
        failed += unlucky.failed;
        splits += unlucky.splits;
    }
    print_message("%u failed, %u splits\n", failed, splits);
    assert_true(failed > 1000 && splits > 600);
}

/* One client stops, in many runs inside an insert. The other one's split then waits for a tentative slot until its
 * retry limit, before it comes to the groups behind. It is not finished, and must not be begun again: whatever was
 * inserted is found, or waited for. */
enum { STOPPED_KEYS = 200 };

struct stopped {
    struct world *world;
    struct ix_client stopping;
    unsigned waited;
};

static void stopping_entry(struct dm_ctx *ctx, void *arg) {
    struct stopped *stopped = arg;
    world_attach_into(stopped->world, 0, ctx, NULL, &stopped->stopping);
    for (uint64_t i = 0; i < STOPPED_KEYS; i++) {
        (void)ix_insert(&stopped->stopping, world_key(2 * i, 2 * STOPPED_KEYS), &i);
    }
}

static void going_on_entry(struct dm_ctx *ctx, void *arg) {
    struct stopped *stopped = arg;
    struct ix_client client = world_attach(stopped->world, 0, ctx, NULL);
    bool inserted[STOPPED_KEYS];
    WORLD_CHECK_EQ(dm_sleep(ctx, UNLUCKY_LATER_NS), 0);
    for (uint64_t i = 0; i < STOPPED_KEYS; i++) {
        int rc = ix_insert(&client, world_key(2 * i + 1, 2 * STOPPED_KEYS), &i);
        WORLD_CHECK(rc == 0 || rc == DM_ERR_RETRY_LIMIT);
        inserted[i] = rc == 0;
        stopped->waited += rc != 0;
    }
    for (uint64_t i = 0; i < STOPPED_KEYS; i++) {
        uint64_t value;
        int rc = ix_get(&client, world_key(2 * i + 1, 2 * STOPPED_KEYS), &value);
        WORLD_CHECK(rc == 0 || rc == DM_ERR_RETRY_LIMIT || (rc == DM_NOT_FOUND && !inserted[i]));
    }
    ix_detach(&client);
}

static void an_unfinished_split_is_not_begun_again(void **state) {
    (void)state;
    unsigned waited = 0;
    for (unsigned verb = 1; verb <= 250; verb++) {
        struct world_config config = world_least(&ix_ops_race);
        struct world world;
        struct stopped stopped = {.world = &world};
        char faults[40];
        snprintf(faults, sizeof(faults), "stop:client=0,verb=%u", verb);
        config.clients = 2;
        config.retry_limit = 100;
        config.params[0] = (struct dm_setting){"subtable", "1536"};
        config.params[1] = (struct dm_setting){"slots", "2"};
        config.settings[0] = (struct dm_setting){"faults", faults};
        world_open(&world, &config);
        dm_fabric_measure(world.fabric);
        unsigned cn = dm_first_cn(&world.topology);
        assert_int_equal(dm_spawn(world.fabric, cn, 0, stopping_entry, &stopped), 0);
        assert_int_equal(dm_spawn(world.fabric, cn, 1, going_on_entry, &stopped), 0);
        world_run(&world);
        ix_detach(&stopped.stopping);
        world_close(&world);
        waited += stopped.waited;
    }
    print_message("%u inserts waited until their limit\n", waited);
    assert_true(waited > 100);
}

/* ---- checksums --------------------------------------------------------------------------------------------------- */

enum { SUM_KEYS = 50, SUM_VALUE_AT = 12, SUM_BLOCK_BYTES = 64 };

struct sums {
    struct world *world;
    struct damage damage;
};

static void value_spoil(void *arg, unsigned char *bytes) {
    (void)arg;
    bytes[SUM_VALUE_AT] ^= 1;
}

/* Stamps stay right when a byte of the value is wrong; a reader must wait until it is mended. */
static void sum_reader(struct dm_ctx *ctx, void *arg) {
    struct sums *sums = arg;
    struct ix_client client = world_attach(sums->world, 0, ctx, NULL);
    const struct race_client *own = client.handle;
    for (uint64_t i = 0; i < SUM_KEYS; i++) {
        uint64_t key = world_key(i, SUM_KEYS), value = i, before = ix_counts(&client)[RACE_BLOCK_REUSED];
        WORLD_CHECK_EQ(ix_insert(&client, key, &value), 0);
        WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
        WORLD_CHECK_EQ(ix_counts(&client)[RACE_BLOCK_REUSED], before);
        uint64_t offset = (race_slot_word(own->same[0].slot) & UINT32_MAX >> 1) * SUM_BLOCK_BYTES;
        damage_begin(ctx, &sums->damage, dm_addr_make(0, DM_DRAM, offset), SUM_BLOCK_BYTES);
        WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
        WORLD_CHECK_EQ(value, i);
        damage_end(ctx, &sums->damage);
    }
    sums->damage.ended = true;
    ix_detach(&client);
}

static void a_block_with_a_wrong_checksum_is_read_again(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_race);
    struct world world;
    struct sums sums = {.world = &world, .damage = {.spoil = value_spoil}};
    config.clients = 2;
    config.params[0] = (struct dm_setting){"checksum", "bitwise"};
    world_begin(&world, &config, NULL);
    world_spawn(&world, 0, 0, sum_reader, &sums);
    world_spawn(&world, 0, 1, damage_entry, &sums.damage);
    world_run(&world);
    struct ix_report report = world_verify(&world);
    assert_int_equal(report.keys, SUM_KEYS);
    assert_int_equal(report.broken, 0);
    world_close(&world);
}

/* A get computes one checksum of 60 bytes, an update two, of about 0.53 us each. Blocks are of whole lines then. */
static void checksums_are_charged_and_blocks_are_whole_lines(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_race);
    struct quiet with, without;
    quiet_run(&config, &without);
    config.params[0] = (struct dm_setting){"checksum", "bitwise"};
    struct quiet_end end = quiet_run(&config, &with);
    assert_int_equal(end.report.broken, 0);
    uint64_t false_matches = with.get.account.verbs[DM_VERB_READ] - 3 * QUIET_SAMPLES;
    assert_int_equal(with.get.account.bytes_read, QUIET_SAMPLES * (2 * 128 + 64) + false_matches * 64);
    assert_int_equal(with.update.account.bytes_written, QUIET_SAMPLES * (64 + 8));
    assert_in_range((with.get_ns - without.get_ns) / QUIET_SAMPLES, 500, 650);
    assert_in_range((with.update_ns - without.update_ns) / QUIET_SAMPLES, 1000, 1250);
}

/* ---- settings, events, wrong variants ---------------------------------------------------------------------------- */

static void every_setting_leaves_the_table_right(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {
        {"subtable", "192"}, {"subtable", "768"}, {"slots", "2"}, {"initial_depth", "3"}, {"checksum", "bitwise"}};
    steady_all_right(&ix_ops_race, settings, DM_ARRAY_LEN(settings));
}

static void every_event_happens_in_a_small_crowd(void **state) {
    (void)state;
    uint64_t counts[STEADY_COUNTERS] = {0};
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct world_config config = steady_small(&ix_ops_race, seed);
        config.params[0] = (struct dm_setting){"slots", seed % 2 ? "1" : "3"};
        config.settings[0] = (struct dm_setting){"read_window", seed % 4 < 2 ? "0us" : "2us"};
        steady_count(config, counts);
    }
    steady_events_seen(&ix_ops_race, counts, 0);
}

static void known_wrong_variants_are_wrong_and_the_right_one_is_not(void **state) {
    (void)state;
    static const struct dm_setting with = {NULL, NULL};
    assert_int_equal(steady_caught(&ix_ops_race, (struct dm_setting){"insert", "tentative"}, with, 8, 60), 0);
    assert_int_not_equal(steady_caught(&ix_ops_race, (struct dm_setting){"blocks", "unchecked"}, with, 8, 60), 0);
    assert_int_not_equal(steady_caught(&ix_ops_race, (struct dm_setting){"check_headers", "off"}, with, 8, 60), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_headers_and_entries_keep_what_is_put_into_them),
        cmocka_unit_test(a_key_has_two_main_buckets_with_their_overflow_buckets_beside),
        cmocka_unit_test(a_quiet_get_reads_two_combined_buckets_and_a_block),
        cmocka_unit_test(quiet_writes_take_three_round_trips),
        cmocka_unit_test(without_space_for_the_directory_its_entry_is_read_first),
        cmocka_unit_test(the_cache_is_the_directory_within_its_budget),
        cmocka_unit_test(a_table_grows_by_splits_as_bulk_load_grows_it),
        cmocka_unit_test(a_verb_in_error_leaves_no_split_unfinished),
        cmocka_unit_test(many_verbs_in_error_leave_no_split_unfinished),
        cmocka_unit_test(an_unfinished_split_is_not_begun_again),
        cmocka_unit_test(a_block_with_a_wrong_checksum_is_read_again),
        cmocka_unit_test(checksums_are_charged_and_blocks_are_whole_lines),
        cmocka_unit_test(every_setting_leaves_the_table_right),
        cmocka_unit_test(every_event_happens_in_a_small_crowd),
        cmocka_unit_test(known_wrong_variants_are_wrong_and_the_right_one_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
