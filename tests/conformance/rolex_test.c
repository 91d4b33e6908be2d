/* SPDX-License-Identifier: Apache-2.0
 *
 * What ROLEX alone guarantees: its message sequences in the quiet case; the numbers of models and table entries of its
 * paper's table 1; that as many inserts as there are keys never fail, whatever their keys, with retraining and without;
 * and that leaves which deletes have emptied are used again.
 */
#include <math.h>

#include "common/compiler.h"
#include "conformance/index_steady.h"
#include "conformance/quiet.h"
#include "conformance/transport_choice.h"
#include "indexes/rolex/env.h"

extern const struct ix_ops ix_ops_rolex;

static struct world_config sim_config(void) {
    struct world_config config = world_least(&ix_ops_rolex);
    config.cache_bytes = 16 << 20;
    config.expected_keys = 100000;
    return config;
}

/* ---- given keys -------------------------------------------------------------------------------------------------- */

struct key_pairs {
    struct ix_pairs pairs;
    const uint64_t *keys, *others;
    uint64_t other_count;
};

static uint64_t key_pairs_keys(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys) {
    const struct key_pairs *own = pairs->arg;
    memcpy(keys, own->keys + first, n * sizeof(*keys));
    return n;
}

static void key_pairs_value(const struct ix_pairs *pairs, uint64_t key, void *value) {
    (void)pairs;
    memcpy(value, &key, sizeof(key));
}

static const struct ix_pairs *key_pairs(struct key_pairs *own, const uint64_t *keys, uint64_t count) {
    own->keys = keys;
    own->pairs = (struct ix_pairs){.count = count, .keys = key_pairs_keys, .value = key_pairs_value, .arg = own};
    return &own->pairs;
}

static int key_pairs_to_come(const struct ix_pairs *pairs, const uint64_t **keys, uint64_t *count) {
    const struct key_pairs *own = pairs->arg;
    *keys = own->others;
    *count = own->other_count;
    return 0;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Even, sorted, distinct. */
static uint64_t *uniform_keys(uint64_t *count, uint64_t seed) {
    struct dm_prng prng = dm_prng_stream(seed, "rolex keys", 0);
    uint64_t *keys = malloc(*count * sizeof(*keys));
    for (uint64_t i = 0; i < *count; i++) {
        keys[i] = dm_prng_u64(&prng) & ~UINT64_C(1);
    }
    qsort(keys, *count, sizeof(*keys), ascending);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < *count; i++) {
        if (kept == 0 || keys[i] != keys[kept - 1]) {
            keys[kept++] = keys[i];
        }
    }
    *count = kept;
    return keys;
}

/* ---- round trips in the quiet case ------------------------------------------------------------------------------- */

enum { QUIET_KEYS = 20000, QUIET_SAMPLES = 200 };

struct quiet {
    struct world *world;
    const uint64_t *keys; /* QUIET_KEYS of them */
    struct kind kinds[REMOVE + 1], absent, synonym, scan;
};

static int quiet_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(quiet->world, 0, ctx, NULL);
    uint64_t value = 1;
    for (uint64_t i = 0; i < QUIET_KEYS; i += 8) {
        WORLD_CHECK_EQ(ix_get(&client, quiet->keys[i], &value), 0);
    }
    for (uint64_t n = 0; n < QUIET_SAMPLES; n++) {
        uint64_t present = quiet->keys[n * 97 % QUIET_KEYS];
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->kinds[GET], &client, GET, present, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->absent, &client, GET, present + 1, &value), DM_NOT_FOUND);
        kind_scan(ctx, &quiet->scan, &client, quiet->keys[n * 89 % (QUIET_KEYS - 200)], 50);
    }
    for (uint64_t n = 0; n < QUIET_SAMPLES; n++) {
        uint64_t present = quiet->keys[n * 97 % QUIET_KEYS];
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->kinds[UPDATE], &client, UPDATE, present, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->kinds[INSERT], &client, INSERT, present + 1, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->kinds[REMOVE], &client, REMOVE, present + 1, &value), 0);
    }
    /* Inserts into one gap between keys until leaves split. */
    uint64_t base = quiet->keys[100];
    for (uint64_t n = 0; n < 64 && quiet->keys[101] - base > 64; n++) {
        uint64_t before = ix_counts(&client)[ROLEX_SYNONYM];
        struct kind insert = {0};
        WORLD_CHECK_EQ(kind_run(ctx, &insert, &client, INSERT, base + 1 + n, &value), 0);
        if (ix_counts(&client)[ROLEX_SYNONYM] > before) {
            kind_count(&quiet->synonym, &insert.account);
        }
    }
    ix_detach(&client);
    return 0;
}

static void quiet_run(const struct world_config *config, struct quiet *quiet) {
    struct world world;
    struct key_pairs pairs;
    uint64_t count = QUIET_KEYS;
    uint64_t *keys = uniform_keys(&count, 11);
    assert_int_equal(count, QUIET_KEYS); /* no key was drawn twice */
    *quiet = (struct quiet){.world = &world, .keys = keys};
    struct quiet_end end = quiet_world(&world, config, key_pairs(&pairs, keys, count), quiet_entry, quiet);
    assert_true(end.cached <= config->cache_bytes);
    free(keys);
}

static void a_quiet_get_or_scan_is_one_round_trip_with_one_doorbell(void **state) {
    (void)state;
    for (unsigned adjacent = 0; adjacent < 2; adjacent++) {
        struct world_config config = sim_config();
        struct quiet quiet;
        config.params[0] = (struct dm_setting){"adjacent", adjacent ? "on" : "off"};
        quiet_run(&config, &quiet);
        uint64_t reads = quiet.kinds[GET].account.verbs[DM_VERB_READ];
        assert_int_equal(quiet.kinds[GET].trips[1], QUIET_SAMPLES);
        assert_int_equal(quiet.kinds[GET].account.doorbells, QUIET_SAMPLES);
        assert_int_equal(quiet.absent.trips[1], QUIET_SAMPLES);
        assert_true(quiet.scan.account.round_trips <= QUIET_SAMPLES * 11 / 10); /* a few continue in the next model */
        if (adjacent) {
            /* The window's leaves, and the used-slot counter. A few windows go across the end of a region. */
            assert_true(reads >= 2 * QUIET_SAMPLES && reads < 2 * QUIET_SAMPLES + QUIET_SAMPLES / 20);
            assert_int_equal(quiet.absent.account.verbs[DM_VERB_READ], reads);
        } else {
            /* 2 epsilon + 2 labels, 16 for each leaf: 3 leaves, sometimes 4, and 2 or 1 at the ends of a model. */
            assert_true(reads > 3 * QUIET_SAMPLES && reads <= 5 * QUIET_SAMPLES);
        }
    }
}

static void a_quiet_write_is_three_round_trips_and_four_with_a_new_synonym(void **state) {
    (void)state;
    struct world_config config = sim_config();
    struct quiet quiet;
    config.params[0] = (struct dm_setting){"fill", "0.5"};
    quiet_run(&config, &quiet);
    for (unsigned kind = UPDATE; kind <= REMOVE; kind++) {
        assert_int_equal(quiet.kinds[kind].trips[3], QUIET_SAMPLES);
        assert_int_equal(quiet.kinds[kind].account.verbs[DM_VERB_CAS], 2 * QUIET_SAMPLES);
        assert_int_equal(quiet.kinds[kind].account.cas_failures, 0);
    }
    assert_true(quiet.synonym.count >= 3);
    assert_true(kind_took(&quiet.synonym, 4));
}

static void the_first_insert_into_a_full_leaf_is_four_round_trips_as_it_makes_a_synonym(void **state) {
    (void)state;
    struct world_config config = sim_config();
    struct quiet quiet;
    config.params[0] = (struct dm_setting){"reuse", "off"}; /* the leaf that a delete has emptied costs more verbs */
    quiet_run(&config, &quiet);
    const struct kind *insert = &quiet.kinds[INSERT];
    assert_true(insert->trips[3] + insert->trips[4] >= QUIET_SAMPLES - 1); /* one may have to make a region */
    assert_true(insert->trips[4] > QUIET_SAMPLES * 9 / 10);
}

static void tables_that_are_not_cached_cost_a_round_trip_for_the_entries_of_the_window(void **state) {
    (void)state;
    struct world_config config = sim_config(), whole = sim_config();
    config.cache_bytes = 1150; /* the models, and at most the table of a short one */
    struct quiet quiet, cached;
    quiet_run(&config, &quiet);
    quiet_run(&whole, &cached);
    const struct kind *get = &quiet.kinds[GET];
    assert_int_equal(get->trips[1] + get->trips[2], QUIET_SAMPLES);
    assert_true(get->trips[2] > QUIET_SAMPLES * 9 / 10);
    /* Up to 4 entries and 8 words of the synonym leaf table, and for one read in 64 a whole table. */
    uint64_t more = get->account.bytes_read - cached.kinds[GET].account.bytes_read;
    assert_true(more < (uint64_t)(4 + 8 + 1024 / 64) * 8 * QUIET_SAMPLES);
}

/* ---- table 1 ----------------------------------------------------------------------------------------------------- */

static void models_and_leaf_tables_are_those_of_table_1(void **state) {
    (void)state;
    uint64_t count = 2000000;
    uint64_t *keys = uniform_keys(&count, 42);
    /* Table 1 has a byte of leaf table for each key, in all of its columns: eight keys for each entry of 8 bytes. The
     * text has leaves of 16 slots that are full after training; both are loaded here. */
    static const char *const fills[] = {"0.5", "1"};
    for (unsigned i = 0; i < 2; i++) {
        struct world_config config = sim_config();
        config.mn_bytes = 1u << 30;
        config.expected_keys = count;
        config.params[0] = (struct dm_setting){"fill", fills[i]};
        struct world world;
        struct key_pairs pairs;
        world_open(&world, &config);
        world_load(&world, key_pairs(&pairs, keys, count));
        struct ix_report report = world_verify(&world);
        double models = (double)report.inner_nodes / (double)count;
        double entries = (double)report.leaves / (double)count;
        print_message("fill %s: keys per model %.1f (paper 970.3), table bytes per key %.4f (paper 1.0000)\n", fills[i],
                      1 / models, 8 * entries);
        assert_int_equal(report.keys, count);
        assert_true(fabs(models / (5153.0 / 5e6) - 1) < 0.03);
        assert_true(fabs((1 + i) * 8 * entries / (4.768 * 1048576 / 5e6) - 1) < 0.05);
        world_close(&world);
    }
    free(keys);
}

/* ---- as many inserts as keys ------------------------------------------------------------------------------------- */

enum { GROWN_KEYS = 24000, GROWN_CLIENTS = 8 };

struct grower {
    struct world *world;
    unsigned number;
    const uint64_t *loaded, *others;
    uint64_t count;
    bool narrow, reading;
    uint64_t counts[ROLEX_COUNTER_COUNT];
};

/* The i-th key that is inserted: odd, and uniform or (narrow) between two loaded keys. */
static uint64_t grown_key(const struct grower *own, uint64_t i) {
    return own->narrow ? own->loaded[own->count / 2] + 1 + 2 * i : own->others[i] | 1;
}

static void grower_entry(struct dm_ctx *ctx, void *arg) {
    struct grower *own = arg;
    struct ix_client client = world_attach(own->world, own->number % own->world->config.cns, ctx, NULL);
    for (uint64_t i = own->number; i < own->count; i += GROWN_CLIENTS) {
        uint64_t at = i * 7919 % own->count; /* in no order */
        uint64_t key = grown_key(own, at);
        uint64_t value = key;
        if (own->reading) {
            WORLD_CHECK_EQ(ix_get(&client, own->loaded[at], &value), 0);
            WORLD_CHECK_EQ(value, own->loaded[at]);
            WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
            WORLD_CHECK_EQ(value, key);
        } else {
            WORLD_CHECK_EQ(ix_insert(&client, key, &value), 0);
        }
    }
    memcpy(own->counts, ix_counts(&client), sizeof(own->counts));
    ix_detach(&client);
}

static void growers_run(struct world *world, struct grower *growers, bool reading, uint64_t *counts) {
    for (unsigned i = 0; i < GROWN_CLIENTS; i++) {
        growers[i].reading = reading;
        unsigned node = dm_first_cn(&world->topology) + i % world->config.cns;
        unsigned thread = i / world->config.cns % dm_thread_count(world->fabric, node);
        assert_int_equal(dm_spawn(world->fabric, node, thread, grower_entry, &growers[i]), 0);
    }
    world_run(world);
    for (unsigned i = 0; i < GROWN_CLIENTS; i++) {
        for (unsigned c = 0; c < ROLEX_COUNTER_COUNT; c++) {
            counts[c] += growers[i].counts[c];
        }
    }
}

static void grow(struct world_config config, bool narrow, uint64_t counts[ROLEX_COUNTER_COUNT]) {
    struct world world;
    struct key_pairs pairs;
    struct grower growers[GROWN_CLIENTS];
    uint64_t count = GROWN_KEYS;
    uint64_t *keys = uniform_keys(&count, 3);
    uint64_t *others = uniform_keys(&count, 4);
    uint64_t gap = count / 2;
    assert_true(keys[gap + 1] - keys[gap] > 2 * count + 2);
    config.clients = GROWN_CLIENTS;
    config.clients_per_thread = 2;
    config.mn_bytes = 256u << 20;
    world_begin(&world, &config, key_pairs(&pairs, keys, count));
    memset(counts, 0, ROLEX_COUNTER_COUNT * sizeof(*counts));
    for (unsigned i = 0; i < GROWN_CLIENTS; i++) {
        growers[i] = (struct grower){
            .world = &world, .number = i, .loaded = keys, .others = others, .count = count, .narrow = narrow};
    }
    growers_run(&world, growers, false, counts);
    struct ix_report report = world_verify(&world);
    assert_int_equal(report.keys, 2 * count);
    growers_run(&world, growers, true, counts);
    print_message("%s %s, retrain %s: %u synonyms, %u models seen retrained, %u replaced by clients\n",
                  config.transport, narrow ? "narrow" : "uniform", config.params[0].value,
                  (unsigned)counts[ROLEX_SYNONYM], (unsigned)counts[ROLEX_RETRAINED],
                  (unsigned)counts[ROLEX_MODEL_SPLIT]);
    world_close(&world);
    free(others);
    free(keys);
}

static void growth_never_fails(const char *transport, unsigned first_mns) {
    for (unsigned i = 0; i < 4; i++) {
        struct world_config config = sim_config();
        uint64_t counts[ROLEX_COUNTER_COUNT];
        bool narrow = i & 1;
        config.transport = transport;
        config.mns = 1 + (first_mns + i) % 3;
        config.cns = 2;
        config.params[0] = (struct dm_setting){"retrain", i & 2 ? "off" : "on"};
        grow(config, narrow, counts);
        if (narrow) {
            assert_true(counts[ROLEX_SYNONYM] > GROWN_KEYS / 16);
            assert_true(i & 2 ? counts[ROLEX_MODEL_SPLIT] > 1 : counts[ROLEX_MODEL_SEEN] > 0);
        }
    }
}

static void as_many_inserts_as_keys_never_fail_whatever_their_keys(void **state) {
    (void)state;
    growth_never_fails("sim", 0);
}

static void in_real_time_as_many_inserts_as_keys_never_fail(void **state) {
    (void)state;
    growth_never_fails("local", 1);
}

/* ---- training on keys to come ------------------------------------------------------------------------------------ */

enum { COMING_KEYS = 12000 };

struct coming {
    struct world *world;
    const uint64_t *loaded, *others;
    struct kind insert;
    uint64_t synonyms;
};

static int coming_entry(struct dm_ctx *ctx, void *arg) {
    struct coming *coming = arg;
    struct ix_client client = world_attach(coming->world, 0, ctx, NULL);
    uint64_t value, window[3], values[3];
    uint32_t found;
    for (uint64_t i = 0; i < COMING_KEYS; i++) { /* tables into the cache */
        WORLD_CHECK_EQ(ix_get(&client, coming->others[i], &value), DM_NOT_FOUND);
    }
    for (uint64_t n = 0; n < COMING_KEYS; n++) {
        uint64_t key = coming->others[n * 7919 % COMING_KEYS]; /* in no order */
        WORLD_CHECK_EQ(kind_run(ctx, &coming->insert, &client, INSERT, key, &key), 0);
        WORLD_CHECK_EQ(ix_get(&client, coming->loaded[n], &value), 0);
        WORLD_CHECK_EQ(value, coming->loaded[n]);
    }
    for (uint64_t i = 0; i < COMING_KEYS; i++) {
        WORLD_CHECK_EQ(ix_get(&client, coming->others[i], &value), 0);
        WORLD_CHECK_EQ(value, coming->others[i]);
    }
    WORLD_CHECK_EQ(ix_scan(&client, coming->loaded[0], 3, window, values, &found), 0);
    WORLD_CHECK_EQ(found, 3);
    coming->synonyms = ix_counts(&client)[ROLEX_SYNONYM];
    ix_detach(&client);
    return 0;
}

/* Loads every second of 24 000 keys; the others are inserted, half of them above all loaded keys if `behind`. */
static uint64_t coming_run(bool behind, const char *pretrain, struct coming *coming) {
    struct world_config config = sim_config();
    struct world world;
    uint64_t count = 2 * COMING_KEYS, n = 0, o = 0;
    uint64_t *keys = uniform_keys(&count, 5);
    uint64_t *loaded = malloc(count * sizeof(*loaded)), *others = loaded + COMING_KEYS;
    assert_int_equal(count, 2 * COMING_KEYS);
    for (uint64_t i = 0; i < count; i++) {
        bool is_loaded = behind ? i < COMING_KEYS : i % 2 == 0;
        *(is_loaded ? &loaded[n++] : &others[o++]) = keys[i];
    }
    config.mns = 3;
    config.mn_bytes = 64u << 20;
    config.params[0] = (struct dm_setting){"pretrain", pretrain};
    struct key_pairs pairs;
    (void)key_pairs(&pairs, loaded, n);
    pairs.others = others;
    pairs.other_count = o;
    pairs.pairs.to_come = key_pairs_to_come;
    *coming = (struct coming){.world = &world, .loaded = loaded, .others = others};
    world_begin(&world, &config, &pairs.pairs);
    world_do(&world, 0, coming_entry, coming);
    struct ix_report report = world_verify(&world);
    assert_int_equal(report.keys, count);
    world_close(&world);
    free(loaded);
    free(keys);
    return report.leaves;
}

static void inserts_of_keys_that_were_trained_take_three_round_trips_and_make_no_synonym(void **state) {
    (void)state;
    for (unsigned behind = 0; behind < 2; behind++) {
        struct coming trained, untrained;
        uint64_t leaves = coming_run(behind, "on", &trained);
        uint64_t others = coming_run(behind, "off", &untrained);
        assert_int_equal(trained.synonyms, 0);
        assert_int_equal(trained.insert.trips[3], COMING_KEYS);
        assert_true(untrained.synonyms > COMING_KEYS / 32);
        assert_true(leaves < others);
        assert_true(trained.insert.account.bytes_read < untrained.insert.account.bytes_read);
    }
}

/* ---- emptied leaves ---------------------------------------------------------------------------------------------- */

static int emptying_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    for (unsigned round = 0; round < 12; round++) {
        uint64_t base = (uint64_t)round << 40;
        uint64_t value = round;
        for (uint64_t i = 1; i <= 100; i++) {
            WORLD_CHECK_EQ(ix_insert(&client, base + i, &value), 0);
        }
        for (uint64_t i = 1; i <= 100; i++) {
            WORLD_CHECK_EQ(ix_remove(&client, base + i), 0);
            WORLD_CHECK_EQ(ix_get(&client, base + i, &value), DM_NOT_FOUND);
        }
    }
    const uint64_t *counts = ix_counts(&client);
    WORLD_CHECK(counts[ROLEX_UNLINKED] > 50);
    WORLD_CHECK(counts[ROLEX_REUSED] * 10 > counts[ROLEX_UNLINKED] * 8);
    ix_detach(&client);
    return 0;
}

static void leaves_that_deletes_empty_are_used_again(void **state) {
    (void)state;
    struct world_config config = sim_config();
    struct world world;
    world_begin(&world, &config, NULL);
    world_do(&world, 0, emptying_entry, &world);
    assert_int_equal(world_verify(&world).keys, 0);
    world_close(&world);
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static void every_parameter_can_be_changed_and_the_index_stays_correct(void **state) {
    (void)state;
    static const struct dm_setting changed[] = {
        {"epsilon", "1"},       {"epsilon", "64"},   {"delta", "2"},        {"delta", "64"},    {"fill", "0.5"},
        {"fill", "0.1"},        {"synonyms", "2"},   {"model_leaves", "2"}, {"retrain", "off"}, {"reuse", "off"},
        {"region_bytes", "64"}, {"adjacent", "off"}, {"pretrain", "on"},
    };
    steady_all_right(&ix_ops_rolex, changed, DM_ARRAY_LEN(changed));
}

static int check_of(uint32_t value_bytes, const char *name, const char *value, struct dm_err *err) {
    struct dm_topology topology = {.mns = 1, .cns = 1, .clients = 1, .clients_per_thread = 1, .mn_cores = 1};
    return world_check(&ix_ops_rolex, &topology, value_bytes, (struct dm_setting){name, value}, err);
}

static void settings_that_cannot_work_are_refused(void **state) {
    (void)state;
    struct dm_err err;
    assert_int_equal(check_of(8, NULL, NULL, &err), 0);
    assert_int_equal(check_of(8, "epsilon", "4096", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "epsilon"));
    assert_int_equal(check_of(8, "epsilon", "0", &err), DM_ERR_INVALID);
    assert_int_equal(check_of(8, "delta", "1", &err), DM_ERR_INVALID);
    assert_int_equal(check_of(1024, "delta", "1024", &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "delta"));
    assert_int_equal(check_of(8, "synonyms", "256", &err), DM_ERR_INVALID);
    assert_int_equal(check_of(2000, NULL, NULL, &err), DM_ERR_INVALID);
}

static void keys_out_of_order_are_refused_by_load(void **state) {
    (void)state;
    static const uint64_t keys[] = {5, 9, 9, 12};
    struct world_config config = sim_config();
    struct world world;
    struct key_pairs pairs;
    world_open(&world, &config);
    struct world_step step = {.world = &world, .pairs = key_pairs(&pairs, keys, 4)};
    int rc = 0;
    struct dm_err err;
    WORLD_MUST(dm_fabric_do(world.fabric, dm_first_cn(&world.topology), world_load_entry, &step, &rc, &err), &err);
    assert_int_equal(rc, DM_ERR_INVALID);
    world_close(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_get_or_scan_is_one_round_trip_with_one_doorbell),
        cmocka_unit_test(a_quiet_write_is_three_round_trips_and_four_with_a_new_synonym),
        cmocka_unit_test(the_first_insert_into_a_full_leaf_is_four_round_trips_as_it_makes_a_synonym),
        cmocka_unit_test(tables_that_are_not_cached_cost_a_round_trip_for_the_entries_of_the_window),
        cmocka_unit_test(models_and_leaf_tables_are_those_of_table_1),
        cmocka_unit_test(as_many_inserts_as_keys_never_fail_whatever_their_keys),
        cmocka_unit_test(in_real_time_as_many_inserts_as_keys_never_fail),
        cmocka_unit_test(inserts_of_keys_that_were_trained_take_three_round_trips_and_make_no_synonym),
        cmocka_unit_test(leaves_that_deletes_empty_are_used_again),
        cmocka_unit_test(every_parameter_can_be_changed_and_the_index_stays_correct),
        cmocka_unit_test(settings_that_cannot_work_are_refused),
        cmocka_unit_test(keys_out_of_order_are_refused_by_load),
    };
    return test_run_chosen("rolex", tests, DM_ARRAY_LEN(tests));
}
