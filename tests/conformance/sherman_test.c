/* SPDX-License-Identifier: Apache-2.0
 *
 * What Sherman alone promises: its message sequences in the quiet case, that each technique can be switched off, that
 * the events it declares do happen, and that its known-wrong variants are wrong where the right ones are not.
 */
#include "common/compiler.h"
#include "conformance/index_split.h"
#include "conformance/index_steady.h"
#include "conformance/quiet_tree.h"
#include "indexes/sherman/sherman.h"

extern const struct ix_ops ix_ops_sherman;

/* ---- round trips in the quiet case --------------------------------------------------------------------------------
 */

static void a_quiet_get_is_one_read_of_one_node(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_sherman);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.get.account.round_trips, 1);
    assert_int_equal(quiet.get.account.verbs[DM_VERB_READ], 1);
    assert_int_equal(quiet.get.account.bytes_read, 1024);
    assert_int_equal(quiet.get.account.doorbells, 1);
    assert_int_equal(quiet.absent.account.round_trips, 1);
}

static void a_quiet_write_takes_three_round_trips_with_combining(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_sherman);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    const struct dm_account *writes[] = {&quiet.update.account, &quiet.insert.account, &quiet.remove.account};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(writes[i]->round_trips, 3);
        assert_int_equal(writes[i]->verbs[DM_VERB_CAS], 1);
        assert_int_equal(writes[i]->verbs[DM_VERB_READ], 1);
        assert_int_equal(writes[i]->verbs[DM_VERB_WRITE], 2);
        assert_int_equal(writes[i]->doorbells, 3);
        assert_int_equal(writes[i]->cas_failures, 0);
        /* An entry of 18 bytes, a version byte if it crosses a line, and the unlock and the lock's own word. */
        assert_true(writes[i]->bytes_written <= 18 + 1 + 8 + 16);
    }
}

/* As CHIME's authors run Sherman: no table, no local queues, the same messages. */
static void a_lock_behind_the_node_is_taken_with_the_same_messages(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_sherman);
    config.params[0] = (struct dm_setting){"locks", "node"};
    config.params[1] = (struct dm_setting){"local_locks", "off"};
    config.params[2] = (struct dm_setting){"back_off", "off"};
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    const struct dm_account *writes[] = {&quiet.update.account, &quiet.insert.account, &quiet.remove.account};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(writes[i]->round_trips, 3);
        assert_int_equal(writes[i]->verbs[DM_VERB_CAS], 1);
        assert_int_equal(writes[i]->verbs[DM_VERB_READ], 1);
        assert_int_equal(writes[i]->verbs[DM_VERB_WRITE], 2);
    }
    assert_int_equal(quiet.get.account.bytes_read, 1024);
    assert_int_equal(end.report.broken, 0);
}

static void a_quiet_write_takes_four_round_trips_without_combining(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_sherman);
    config.params[0] = (struct dm_setting){"combine", "off"};
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.update.account.round_trips, 4);
    assert_int_equal(quiet.insert.account.round_trips, 4);
    assert_int_equal(quiet.remove.account.round_trips, 4);
}

static void without_a_cache_every_inner_level_costs_a_read(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_sherman);
    config.cache_bytes = 0;
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    assert_true(end.report.height >= 3);
    assert_int_equal(quiet.get.account.round_trips, end.report.height);
    assert_int_equal(quiet.update.account.round_trips, end.report.height - 1 + 3);
    assert_int_equal(end.cached, 0);
}

static void caching_the_root_alone_saves_one_read(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_sherman);
    config.params[0] = (struct dm_setting){"cache_levels", "1"};
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    assert_int_equal(quiet.get.account.round_trips, end.report.height - 1);
}

static void a_quiet_scan_within_one_parent_is_one_round_trip(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_sherman);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.scan.account.round_trips, 1);
    assert_int_equal(quiet.scan.account.doorbells, 1);
}

struct timed {
    struct world world;
    uint64_t get_ns;
};

static int timed_entry(struct dm_ctx *ctx, void *arg) {
    struct timed *timed = arg;
    struct ix_client client = world_attach(&timed->world, 0, ctx, NULL);
    uint64_t value, key = world_key(5000, QUIET_KEYS);
    quiet_warm(&client, QUIET_KEYS, 0, 4, 0);
    uint64_t begin_ns = dm_now(ctx);
    WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
    timed->get_ns = dm_now(ctx) - begin_ns;
    ix_detach(&client);
    return 0;
}

/* Nanoseconds of a quiet get whose leaf's parent is found in a skip list of so many nodes; 0: of those cached. */
static uint64_t get_ns_by_list(uint64_t nodes) {
    char text[24];
    struct timed timed = {.get_ns = 0};
    struct world_config config = world_least(&ix_ops_sherman);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)nodes);
    config.params[0] = (struct dm_setting){"cache_find", "list"};
    config.params[1] = (struct dm_setting){"list_nodes", text};
    quiet_half_world(&timed.world, &config, QUIET_KEYS, timed_entry, &timed);
    return timed.get_ns;
}

/* A million nodes of a line are more than a processor's caches hold, and ten levels of 3.75 nodes. */
static void finding_a_parent_in_a_list_is_client_work_that_grows_with_its_nodes(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_sherman);
    config.params[0] = (struct dm_setting){"cache_find", "list"};
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.get.account.round_trips, 1);
    assert_int_equal(quiet.update.account.round_trips, 3);
    uint64_t few = get_ns_by_list(1000), many = get_ns_by_list(1000000), most = get_ns_by_list(4000000);
    assert_true(get_ns_by_list(0) <= few);
    assert_true(many > few + 200);
    assert_true(most > many + 100);
    assert_true(most < few + 10000);
}

struct split {
    struct world *world;
    struct dm_account account; /* of the insert that split a leaf */
};

static int split_entry(struct dm_ctx *ctx, void *arg) {
    struct split *split = arg;
    struct ix_client client = world_attach(split->world, 0, ctx, NULL);
    uint64_t value = 1;
    quiet_warm(&client, QUIET_KEYS, 0, 4, 0);
    for (uint64_t i = 5001; ix_counts(&client)[SHERMAN_LEAF_SPLIT] < 2; i += 2) {
        /* The second split: the first also fetches a chunk and spare nodes. */
        split->account = (struct dm_account){0};
        dm_account_use(ctx, &split->account);
        WORLD_CHECK_EQ(ix_insert(&client, world_key(i, QUIET_KEYS), &value), 0);
    }
    WORLD_CHECK_EQ(ix_counts(&client)[SHERMAN_INNER_SPLIT], 0);
    dm_account_use(ctx, NULL);
    ix_detach(&client);
    return 0;
}

static void a_quiet_leaf_split_takes_six_round_trips_on_one_memory_node(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_sherman);
    config.params[0] = (struct dm_setting){"fill", "1"};
    struct world world;
    struct world_pairs pairs;
    struct split split = {.world = &world};
    quiet_world(&world, &config, world_pairs(&pairs, QUIET_KEYS, 2, config.value_bytes), split_entry, &split);
    assert_int_equal(split.account.verbs[DM_VERB_CALL], 0);
    assert_int_equal(split.account.round_trips, 6);
    assert_int_equal(split.account.verbs[DM_VERB_CAS], 2);
    assert_int_equal(split.account.verbs[DM_VERB_READ], 2);
    /* Both halves and the parent, each once, and two unlocks. */
    assert_int_equal(split.account.verbs[DM_VERB_WRITE], 5);
    assert_int_equal(split.account.bytes_written, 3 * 1024 + 2 * (8 + 8));
}

struct splits {
    struct world *world;
    unsigned same, apart;             /* of which both halves are on one memory node, or on two */
    uint64_t trips_same, trips_apart; /* the most that one took */
    uint64_t least_same, least_apart;
};

static void split_count(struct splits *splits, bool is_apart, uint64_t trips) {
    uint64_t *most = is_apart ? &splits->trips_apart : &splits->trips_same;
    uint64_t *least = is_apart ? &splits->least_apart : &splits->least_same;
    unsigned *count = is_apart ? &splits->apart : &splits->same;
    *most = trips > *most ? trips : *most;
    *least = *count == 0 || trips < *least ? trips : *least;
    ++*count;
}

static int splits_entry(struct dm_ctx *ctx, void *arg) {
    struct splits *splits = arg;
    struct ix_client client = world_attach(splits->world, 0, ctx, NULL);
    const struct ix_tree *tree = &((struct sherman_client *)client.handle)->btree.tree;
    uint64_t value = 1;
    quiet_warm(&client, QUIET_KEYS, 0, 4, 0);
    for (uint64_t i = 5001; splits->same + splits->apart < 24; i += 2) {
        struct dm_account account = {0};
        uint64_t before = ix_counts(&client)[SHERMAN_LEAF_SPLIT], inner = ix_counts(&client)[SHERMAN_INNER_SPLIT];
        dm_account_use(ctx, &account);
        WORLD_CHECK_EQ(ix_insert(&client, world_key(i, QUIET_KEYS), &value), 0);
        dm_account_use(ctx, NULL);
        dm_addr left = tree->child.addr;
        /* Those that also fetched a chunk of memory, or split the parent, do not count. */
        if (ix_counts(&client)[SHERMAN_LEAF_SPLIT] > before && ix_counts(&client)[SHERMAN_INNER_SPLIT] == inner &&
            account.verbs[DM_VERB_CALL] == 0) {
            dm_addr right = split_right_of(tree, left);
            WORLD_CHECK(!dm_addr_is_null(right));
            split_count(splits, dm_addr_node(left) != dm_addr_node(right), account.round_trips);
        }
    }
    ix_detach(&client);
    return 0;
}

/* The right half has landed before the left one names it: in posted order on one memory node, by one more round trip
 * between two. A value's block has landed before either. */
static void a_split_over_two_memory_nodes_takes_one_more_round_trip(void **state) {
    (void)state;
    static const struct {
        const char *values, *combine;
        unsigned trips, more;
    } cases[] = {{"inline", "on", 6, 1}, {"indirect", "on", 7, 1}, {"inline", "off", 9, 0}};
    for (unsigned i = 0; i < DM_ARRAY_LEN(cases); i++) {
        struct world_config config = world_least(&ix_ops_sherman);
        struct world world;
        struct world_pairs pairs;
        struct splits splits = {.world = &world};
        config.mns = 2;
        config.params[0] = (struct dm_setting){"fill", "1"};
        config.params[1] = (struct dm_setting){"values", cases[i].values};
        config.params[2] = (struct dm_setting){"combine", cases[i].combine};
        quiet_world(&world, &config, world_pairs(&pairs, QUIET_KEYS, 2, config.value_bytes), splits_entry, &splits);
        assert_true(splits.same > 0 && splits.apart > 0);
        assert_int_equal(splits.least_same, cases[i].trips);
        assert_int_equal(splits.trips_same, cases[i].trips);
        assert_int_equal(splits.least_apart, cases[i].trips + cases[i].more);
        assert_int_equal(splits.trips_apart, cases[i].trips + cases[i].more);
    }
}

/* ---- hand-over ----------------------------------------------------------------------------------------------------
 */

enum { PAIR_UPDATES = 400 };

struct rival {
    struct world *world;
    struct dm_account account;
    uint64_t handed;
};

static void rival_entry(struct dm_ctx *ctx, void *arg) {
    struct rival *rival = arg;
    struct ix_client client = world_attach(rival->world, 0, ctx, &rival->account);
    uint64_t value = 1;
    for (unsigned i = 0; i < PAIR_UPDATES; i++) {
        WORLD_CHECK_EQ(ix_update(&client, world_key(0, QUIET_KEYS), &value), 0);
    }
    rival->handed = ix_counts(&client)[SHERMAN_HAND_OVER];
    ix_detach(&client);
    dm_account_use(ctx, NULL);
}

static void rivals_run(const char *hand_over, struct rival rivals[2]) {
    struct world_config config = world_least(&ix_ops_sherman);
    config.clients = 2;
    config.params[0] = (struct dm_setting){"hand_over", hand_over};
    struct world world;
    struct world_pairs pairs;
    world_begin(&world, &config, world_pairs(&pairs, QUIET_KEYS, 2, 8));
    for (unsigned i = 0; i < 2; i++) {
        rivals[i] = (struct rival){.world = &world};
        world_spawn(&world, 0, i, rival_entry, &rivals[i]);
    }
    world_run(&world);
    world_verify(&world);
    world_close(&world);
}

static void a_handed_over_lock_needs_no_compare_and_swap(void **state) {
    (void)state;
    struct rival with[2];
    struct rival without[2];
    rivals_run("on", with);
    rivals_run("off", without);
    uint64_t cas = with[0].account.verbs[DM_VERB_CAS] + with[1].account.verbs[DM_VERB_CAS];
    uint64_t handed = with[0].handed + with[1].handed;
    assert_true(handed > PAIR_UPDATES);
    assert_int_equal(cas + handed, 2 * PAIR_UPDATES);
    /* At most four in a row: every fifth update goes to the remote lock. */
    assert_true(cas >= 2 * PAIR_UPDATES / 5);
    assert_int_equal(without[0].handed + without[1].handed, 0);
    assert_int_equal(without[0].account.verbs[DM_VERB_CAS], PAIR_UPDATES);
}

/* ---- techniques off, events, wrong variants ---------------------------------------------------------------------- */

static void every_technique_can_be_switched_off_and_the_tree_stays_right(void **state) {
    (void)state;
    static const struct dm_setting off[] = {
        {"hand_over", "off"}, {"local_locks", "off"}, {"combine", "off"},      {"locks", "dram"},
        {"lock_count", "1"},  {"lock_count", "3"},    {"cache_levels", "0"},   {"cache_levels", "1"},
        {"fill", "1"},        {"node_bytes", "192"},  {"hand_over_max", "64"}, {"values", "indirect"},
        {"locks", "node"},    {"back_off", "off"},
    };
    steady_all_right(&ix_ops_sherman, off, DM_ARRAY_LEN(off));
}

static void every_declared_event_happens_in_a_small_crowd(void **state) {
    (void)state;
    uint64_t counts[STEADY_COUNTERS] = {0};
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct world_config config = steady_small(&ix_ops_sherman, seed);
        config.value_bytes = seed % 2 ? 8 : 24;
        config.params[0] = (struct dm_setting){"node_bytes", config.value_bytes > 8 ? "192" : "128"};
        config.params[1] = (struct dm_setting){"values", seed % 4 == 3 ? "indirect" : "inline"};
        steady_count(config, counts);
    }
    steady_events_seen(&ix_ops_sherman, counts, 0);
}

static uint64_t caught_after(struct dm_setting variant, uint32_t value_bytes, const char *node_bytes, uint64_t seeds) {
    return steady_caught(&ix_ops_sherman, variant, (struct dm_setting){"node_bytes", node_bytes}, value_bytes, seeds);
}

static void known_wrong_variants_are_wrong_and_the_right_one_is_not(void **state) {
    (void)state;
    assert_int_equal(caught_after((struct dm_setting){"versions", "lines"}, 8, "256", 20), 0);
    assert_int_equal(caught_after((struct dm_setting){"versions", "lines"}, 64, "448", 20), 0);
    assert_int_not_equal(caught_after((struct dm_setting){"versions", "none"}, 8, "256", 20), 0);
    /* Between the first and the last line: of a node in a split, and of an entry that is updated. */
    assert_int_not_equal(caught_after((struct dm_setting){"versions", "bookend"}, 8, "512", 300), 0);
    assert_int_not_equal(caught_after((struct dm_setting){"versions", "bookend"}, 200, "1024", 20), 0);
    assert_int_not_equal(caught_after((struct dm_setting){"torn", "absent"}, 64, "448", 20), 0);
}

/* ---- limits ---------------------------------------------------------------------------------------------------------
 */

static int check_of(uint32_t value_bytes, const char *name, const char *value, uint32_t chip_bytes,
                    struct dm_err *err) {
    struct dm_topology topology = {.mns = 1, .cns = 1, .clients = 1, .clients_per_thread = 1, .chip_bytes = chip_bytes};
    return world_check(&ix_ops_sherman, &topology, value_bytes, (struct dm_setting){name, value}, err);
}

static void a_span_is_the_number_of_entries_of_a_full_leaf(void **state) {
    (void)state;
    static const struct {
        unsigned span;
        uint32_t value_bytes;
    } shapes[] = {{4, 200}, {16, 200}, {61, 200}, {16, 8}, {128, 8}}; /* of the last, lines have space for more */
    for (unsigned i = 0; i < DM_ARRAY_LEN(shapes); i++) {
        enum { LEAVES = 30 };
        struct world_config config = world_least(&ix_ops_sherman);
        struct world world;
        struct world_pairs pairs;
        char span[8];
        snprintf(span, sizeof(span), "%u", shapes[i].span);
        config.value_bytes = shapes[i].value_bytes;
        config.params[0] = (struct dm_setting){"span", span};
        config.params[1] = (struct dm_setting){"fill", "1"};
        world_begin(&world, &config, world_dense(&pairs, LEAVES * shapes[i].span, config.value_bytes));
        assert_int_equal(world_verify(&world).leaves, LEAVES);
        world_close(&world);
    }
}

static void impossible_shapes_are_refused_with_the_limit(void **state) {
    (void)state;
    struct dm_err err = {0};
    assert_int_equal(check_of(8, "node_bytes", "1024", 65536, &err), 0);
    assert_int_equal(check_of(234, "node_bytes", "1024", 65536, &err), 0);
    assert_int_equal(check_of(235, "node_bytes", "1024", 65536, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "up to 234 bytes"));
    assert_non_null(strstr(err.text, "node_bytes 1088"));
    assert_int_equal(check_of(1024, "node_bytes", "4288", 65536, &err), 0);
    assert_int_equal(check_of(1025, "node_bytes", "8192", 65536, &err), DM_ERR_INVALID);
    assert_int_equal(check_of(8, "node_bytes", "1000", 65536, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "multiple of 64"));
    assert_int_equal(check_of(1024, "span", "64", 65536, &err), 0);
    assert_int_equal(check_of(1024, "span", "256", 65536, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "needs nodes of"));
    assert_int_equal(check_of(8, "lock_count", "8193", 65536, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "locks=dram"));
    assert_int_equal(check_of(8, "locks", "chip", 0, &err), DM_ERR_INVALID);
    assert_int_equal(check_of(8, "locks", "auto", 0, &err), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_get_is_one_read_of_one_node),
        cmocka_unit_test(a_quiet_write_takes_three_round_trips_with_combining),
        cmocka_unit_test(a_lock_behind_the_node_is_taken_with_the_same_messages),
        cmocka_unit_test(a_quiet_write_takes_four_round_trips_without_combining),
        cmocka_unit_test(without_a_cache_every_inner_level_costs_a_read),
        cmocka_unit_test(caching_the_root_alone_saves_one_read),
        cmocka_unit_test(finding_a_parent_in_a_list_is_client_work_that_grows_with_its_nodes),
        cmocka_unit_test(a_quiet_scan_within_one_parent_is_one_round_trip),
        cmocka_unit_test(a_quiet_leaf_split_takes_six_round_trips_on_one_memory_node),
        cmocka_unit_test(a_split_over_two_memory_nodes_takes_one_more_round_trip),
        cmocka_unit_test(a_handed_over_lock_needs_no_compare_and_swap),
        cmocka_unit_test(every_technique_can_be_switched_off_and_the_tree_stays_right),
        cmocka_unit_test(every_declared_event_happens_in_a_small_crowd),
        cmocka_unit_test(known_wrong_variants_are_wrong_and_the_right_one_is_not),
        cmocka_unit_test(a_span_is_the_number_of_entries_of_a_full_leaf),
        cmocka_unit_test(impossible_shapes_are_refused_with_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
