/* SPDX-License-Identifier: Apache-2.0
 *
 * What EMT and DrTM-Tree alone promise: one call for every operation and the bytes of its messages, scans of any length
 * and values of any size, how full nodes are after inserts in ascending order, the events of concurrent workers, and
 * that known-wrong variants are wrong where the right ones are not.
 */
#include "common/compiler.h"
#include "conformance/index_steady.h"
#include "conformance/quiet_tree.h"
#include "indexes/shared/server_tree.h"

extern const struct ix_ops ix_ops_emt;
extern const struct ix_ops ix_ops_drtm_tree;

static const struct ix_ops *const trees[] = {&ix_ops_emt, &ix_ops_drtm_tree};

/* ---- the quiet case ---------------------------------------------------------------------------------------------- */

enum { SCANNED = 100, HEAD_BYTES = 8, KEY_BYTES = 8, VALUE_BYTES = 8 };

static int quiet_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(&quiet->world, 0, ctx, NULL);
    for (uint64_t i = 0; i < 1000; i += 2) {
        uint64_t present = world_key(i * 10, QUIET_KEYS), absent = world_key(i * 10 + 1, QUIET_KEYS);
        quiet_points(ctx, quiet, &client, present, absent);
    }
    kind_scan(ctx, &quiet->scan, &client, world_key(5000, QUIET_KEYS), SCANNED);
    ix_detach(&client);
    return 0;
}

/* The messages of a kind: one call each, and these bytes. */
static void one_call(const struct kind *kind, uint64_t request, uint64_t response) {
    assert_true(kind_took(kind, 1));
    assert_int_equal(kind->account.verbs[DM_VERB_CALL], kind->count);
    assert_int_equal(kind->account.bytes_written, kind->count * request);
    assert_int_equal(kind->account.bytes_read, kind->count * response);
    for (unsigned verb = 0; verb < DM_VERB_KIND_COUNT; verb++) {
        assert_true(verb == DM_VERB_CALL || kind->account.verbs[verb] == 0);
    }
}

static void quiet_bytes(const struct ix_ops *tree, uint32_t key) {
    struct world_config config = world_least(tree);
    struct quiet quiet = {.get = {.count = 0}};
    config.key_bytes = key;
    struct quiet_end end = quiet_half_world(&quiet.world, &config, QUIET_KEYS, quiet_entry, &quiet);
    one_call(&quiet.get, key, HEAD_BYTES + VALUE_BYTES);
    one_call(&quiet.absent, key, HEAD_BYTES);
    one_call(&quiet.update, key + VALUE_BYTES, HEAD_BYTES);
    one_call(&quiet.missing, key + VALUE_BYTES, HEAD_BYTES);
    one_call(&quiet.insert, key + VALUE_BYTES, HEAD_BYTES);
    one_call(&quiet.present, key + VALUE_BYTES, HEAD_BYTES);
    one_call(&quiet.remove, key, HEAD_BYTES);
    one_call(&quiet.scan, key + 8, HEAD_BYTES + SCANNED * (key + VALUE_BYTES));
    assert_int_equal(end.cached, 0);
    assert_int_equal(end.report.broken, 0);
    assert_true(end.report.height >= 4);
}

static void every_quiet_operation_is_one_call_with_the_least_bytes(void **state) {
    (void)state;
    for (unsigned i = 0; i < DM_ARRAY_LEN(trees); i++) {
        quiet_bytes(trees[i], KEY_BYTES);
        quiet_bytes(trees[i], 40); /* all bytes of a key are sent */
    }
}

/* ---- long scans and large values --------------------------------------------------------------------------------- */

enum { LONG_KEYS = 300, LONG_BYTES = 1000 };

struct long_scan {
    struct world world;
    struct dm_account account;
    uint64_t counts[IX_SERVER_COUNTER_COUNT];
};

static int long_scan_entry(struct dm_ctx *ctx, void *arg) {
    struct long_scan *own = arg;
    struct ix_client client = world_attach(&own->world, 0, ctx, NULL);
    static uint64_t keys[LONG_KEYS + 1];
    static char values[(LONG_KEYS + 1) * LONG_BYTES];
    uint32_t found;
    dm_account_use(ctx, &own->account);
    WORLD_CHECK_EQ(ix_scan(&client, 0, LONG_KEYS + 1, keys, values, &found), 0);
    dm_account_use(ctx, NULL);
    WORLD_CHECK_EQ(found, LONG_KEYS);
    for (uint64_t i = 0; i < LONG_KEYS; i++) {
        WORLD_CHECK_EQ(keys[i], world_key(i, LONG_KEYS));
        WORLD_CHECK_EQ(world_write_of(i, values + i * LONG_BYTES, LONG_BYTES), 0);
    }
    memcpy(own->counts, ix_counts(&client), sizeof(own->counts));
    ix_detach(&client);
    return 0;
}

static void a_scan_continues_behind_a_full_message_and_on_the_next_memory_node(void **state) {
    (void)state;
    enum { PAIRS_A_MESSAGE = (DM_CALL_MAX - HEAD_BYTES) / (KEY_BYTES + LONG_BYTES) };
    for (unsigned i = 0; i < DM_ARRAY_LEN(trees); i++) {
        for (unsigned mns = 1; mns <= 3; mns++) {
            struct world_config config = world_least(trees[i]);
            struct long_scan own = {.account = {0}};
            struct world_pairs pairs;
            config.value_bytes = LONG_BYTES;
            config.mns = mns;
            quiet_world(&own.world, &config, world_pairs(&pairs, LONG_KEYS, 1, LONG_BYTES), long_scan_entry, &own);
            unsigned share = LONG_KEYS / mns, calls = mns * ((share + PAIRS_A_MESSAGE - 1) / PAIRS_A_MESSAGE);
            assert_int_equal(own.account.verbs[DM_VERB_CALL], calls);
            assert_int_equal(own.counts[IX_SERVER_SCAN_CONTINUED], calls - 1);
        }
    }
}

static void values_of_any_size_are_consistent_and_current(void **state) {
    (void)state;
    static const uint32_t sizes[] = {8, 9, 24, 63, 64, 128, 129, 200, 1024};
    for (unsigned i = 0; i < DM_ARRAY_LEN(sizes) * DM_ARRAY_LEN(trees); i++) {
        struct world_config config = steady_small(trees[i % 2], i);
        config.value_bytes = sizes[i / 2];
        assert_int_equal(steady_run(config, 300).violations, 0);
    }
}

static void keys_of_any_size_are_stored_in_leaves_or_rows(void **state) {
    (void)state;
    static const uint32_t sizes[] = {9, 16, 24, 100, 256};
    for (unsigned i = 0; i < 4 * DM_ARRAY_LEN(sizes); i++) {
        struct world_config config = steady_small(trees[i / 2 % 2], i);
        config.key_bytes = sizes[i / 4];
        config.value_bytes = i % 3 == 0 ? 30 : 8;
        config.params[0] = (struct dm_setting){"inline_bytes", i % 2 ? "128" : "0"};
        assert_int_equal(steady_run(config, 300).violations, 0);
    }
}

/* ---- splits ------------------------------------------------------------------------------------------------------ */

enum { ASCENDING = 3000 };

static int ascending_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    for (uint64_t i = 0; i < ASCENDING; i++) {
        WORLD_CHECK_EQ(ix_insert(&client, world_key(i, ASCENDING), &i), 0);
    }
    ix_detach(&client);
    return 0;
}

/* As in Masstree, which leaves a border node full if the new key is behind all others. */
static void ascending_inserts_leave_full_leaves_in_emt_and_half_full_ones_in_a_sorted_tree(void **state) {
    (void)state;
    for (unsigned i = 0; i < DM_ARRAY_LEN(trees); i++) {
        struct world_config config = world_least(trees[i]);
        struct world world;
        world_begin(&world, &config, NULL);
        world_do(&world, 0, ascending_entry, &world);
        struct ix_report report = world_verify(&world);
        world_close(&world);
        assert_int_equal(report.keys, ASCENDING);
        assert_true(trees[i] == &ix_ops_emt ? report.leaf_fill > 0.99
                                            : report.leaf_fill > 0.5 && report.leaf_fill < 0.6);
    }
}

/* ---- concurrent workers ------------------------------------------------------------------------------------------ */

static void every_setting_is_right(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {
        {"order", "sorted"}, {"order", "permuted"}, {"inline_bytes", "0"}, {"inline_bytes", "128"}, {"fill", "1"},
        {"fill", "0.1"},     {"slots", "2"},        {"slots", "15"},       {"fanout", "16"},
    };
    for (unsigned i = 0; i < DM_ARRAY_LEN(trees); i++) {
        steady_all_right(trees[i], settings, DM_ARRAY_LEN(settings));
    }
}

static void every_declared_event_happens_in_a_small_crowd(void **state) {
    (void)state;
    for (unsigned i = 0; i < DM_ARRAY_LEN(trees); i++) {
        uint64_t counts[STEADY_COUNTERS] = {0};
        for (uint64_t seed = 0; seed < 24; seed++) {
            steady_count(steady_small(trees[i], seed), counts);
        }
        steady_events_seen(trees[i], counts, 0);
    }
}

static void known_wrong_variants_are_wrong_and_the_right_one_is_not(void **state) {
    (void)state;
    struct dm_setting none = {NULL, NULL};
    for (unsigned i = 0; i < DM_ARRAY_LEN(trees); i++) {
        assert_int_equal(steady_caught(trees[i], (struct dm_setting){"follow", "on"}, none, 8, 20), 0);
        assert_int_not_equal(steady_caught(trees[i], (struct dm_setting){"validate", "off"}, none, 8, 200), 0);
        assert_int_not_equal(steady_caught(trees[i], (struct dm_setting){"follow", "off"}, none, 8, 200), 0);
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

struct filler {
    struct world world;
    uint64_t inserted;
};

static int filler_entry(struct dm_ctx *ctx, void *arg) {
    struct filler *filler = arg;
    struct ix_client client = world_attach(&filler->world, 0, ctx, NULL);
    unsigned char value[200] = {1};
    int rc = 0;
    for (uint64_t key = 0; rc == 0; key += 3) {
        rc = ix_insert(&client, key, value);
        filler->inserted += rc == 0;
    }
    WORLD_CHECK_EQ(rc, DM_ERR_NO_MEMORY);
    for (uint64_t key = 0; key < filler->inserted * 3; key += 3) {
        WORLD_CHECK_EQ(ix_get(&client, key, value), 0);
    }
    ix_detach(&client);
    return 0;
}

static void a_full_memory_node_refuses_inserts_and_loses_no_key(void **state) {
    (void)state;
    for (unsigned i = 0; i < DM_ARRAY_LEN(trees); i++) {
        struct world_config config = world_least(trees[i]);
        struct filler filler = {.inserted = 0};
        config.value_bytes = 200;
        config.mn_bytes = 1 << 20;
        config.chunk_bytes = 4096;
        world_begin(&filler.world, &config, NULL);
        world_do(&filler.world, 0, filler_entry, &filler);
        struct ix_report report = world_verify(&filler.world);
        world_close(&filler.world);
        assert_int_equal(report.keys, filler.inserted);
        assert_true(filler.inserted > 1000);
    }
}

/* ---- more inserts than handlers ---------------------------------------------------------------------------------- */

enum { CROWD = 600, CROWD_KEYS = 12 };

struct crowd {
    struct world *world;
    uint64_t number;
};

/* Leaves of one pair, as many inner nodes of two children, and with EMT a row beside each leaf. */
static void memory_is_enough(const struct ix_ops *tree) {
    enum { NEEDED_KEYS = 40000 };
    struct world_config config = world_least(tree);
    struct world world;
    struct world_pairs pairs;
    config.expected_keys = NEEDED_KEYS;
    config.params[0] = (struct dm_setting){"slots", "2"};
    config.params[1] = (struct dm_setting){"fanout", "3"};
    config.params[2] = (struct dm_setting){"fill", "0.1"};
    world_open(&world, &config);
    config.mn_bytes = ix_memory_needed(config.ops, world.params, &world.shape, NEEDED_KEYS);
    world_close(&world);
    config.chunk_bytes = 64 << 10;
    world_open(&world, &config);
    world_load(&world, world_pairs(&pairs, NEEDED_KEYS, 1, config.value_bytes));
    assert_int_equal(world_verify(&world).keys, NEEDED_KEYS);
    world_close(&world);
}

static void the_memory_that_is_needed_is_enough_for_nodes_that_are_hardly_filled(void **state) {
    (void)state;
    for (unsigned i = 0; i < DM_ARRAY_LEN(trees); i++) {
        memory_is_enough(trees[i]);
    }
}

static void crowd_entry(struct dm_ctx *ctx, void *arg) {
    struct crowd *own = arg;
    struct ix_client client = world_attach(own->world, 0, ctx, NULL);
    unsigned char value[200] = {1};
    for (uint64_t i = 0; i < CROWD_KEYS; i++) {
        WORLD_CHECK_EQ(ix_insert(&client, world_key(i * CROWD + own->number, CROWD * CROWD_KEYS), value), 0);
    }
    ix_detach(&client);
}

/* A chunk of memory comes by a call to the node whose handlers wait for it; figure rolex-16a ended in a deadlock. */
static void more_inserts_than_handlers_wait_for_memory_and_all_end(void **state) {
    (void)state;
    static struct crowd crowd[CROWD];
    for (unsigned i = 0; i < DM_ARRAY_LEN(trees); i++) {
        struct world_config config = world_least(trees[i]);
        struct world world;
        config.value_bytes = 200;
        config.clients = CROWD;
        config.clients_per_thread = CROWD / 4;
        config.chunk_bytes = 4096;
        config.expected_keys = 2 * CROWD * CROWD_KEYS;
        world_begin(&world, &config, NULL);
        for (unsigned k = 0; k < CROWD; k++) {
            crowd[k] = (struct crowd){&world, k};
            world_spawn(&world, 0, k % 4, crowd_entry, &crowd[k]);
        }
        world_run(&world);
        assert_int_equal(world_verify(&world).keys, CROWD * CROWD_KEYS);
        world_close(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_quiet_operation_is_one_call_with_the_least_bytes),
        cmocka_unit_test(a_scan_continues_behind_a_full_message_and_on_the_next_memory_node),
        cmocka_unit_test(values_of_any_size_are_consistent_and_current),
        cmocka_unit_test(keys_of_any_size_are_stored_in_leaves_or_rows),
        cmocka_unit_test(ascending_inserts_leave_full_leaves_in_emt_and_half_full_ones_in_a_sorted_tree),
        cmocka_unit_test(every_setting_is_right),
        cmocka_unit_test(every_declared_event_happens_in_a_small_crowd),
        cmocka_unit_test(known_wrong_variants_are_wrong_and_the_right_one_is_not),
        cmocka_unit_test(a_full_memory_node_refuses_inserts_and_loses_no_key),
        cmocka_unit_test(the_memory_that_is_needed_is_enough_for_nodes_that_are_hardly_filled),
        cmocka_unit_test(more_inserts_than_handlers_wait_for_memory_and_all_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
