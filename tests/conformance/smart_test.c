/* SPDX-License-Identifier: Apache-2.0
 *
 * What SMART alone promises: its message sequences and bytes in the quiet case, what a cache of any size holds, and
 * that its known-wrong variants are wrong where the right ones are not.
 */
#include "common/compiler.h"
#include "conformance/index_steady.h"
#include "conformance/index_stops.h"
#include "conformance/quiet.h"
#include "indexes/smart/smart.h"

extern const struct ix_ops ix_ops_smart;

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static void leaves_and_nodes_have_the_published_sizes(void **state) {
    (void)state;
    struct smart_layout layout = smart_layout_make(8, 8, 256, true);
    assert_int_equal(layout.leaf_bytes, 34);
    assert_int_equal(layout.leaf_alloc, 256);
    assert_int_equal(SMART_NODE_BYTES, 2064);
    assert_int_equal(layout.types, 7);
    assert_int_equal(smart_layout_make(8, 8, 256, false).types, 4);
    assert_int_equal(smart_capacity(&layout, smart_type_for(&layout, 5)), 8);
}

static void slots_and_headers_keep_what_is_put_into_them(void **state) {
    (void)state;
    dm_addr addr = dm_addr_make(63, DM_DRAM, (UINT64_C(1) << 38) - 64);
    uint64_t leaf = smart_slot_leaf(200, addr, 0xabcd);
    assert_true(smart_slot_is_leaf(leaf) && !smart_slot_is_node(leaf) && !smart_slot_is_vacant(leaf));
    assert_int_equal(smart_slot_byte(leaf), 200);
    assert_int_equal(smart_slot_stamp(leaf), 0xabcd);
    assert_true(dm_addr_equal(smart_slot_addr(leaf), addr));
    uint64_t node = smart_slot_node(7, 5, addr);
    assert_true(smart_slot_is_node(node) && !smart_slot_is_frozen(node));
    assert_int_equal(smart_slot_type(smart_slot_with_type(node, 7)), 7);
    assert_true(smart_slot_is_vacant(smart_slot_kind(0, SMART_KIND_EMPTY)));
    assert_true(smart_slot_has_byte(smart_slot_kind(0, SMART_KIND_EMPTY), 0));
    assert_false(smart_slot_has_byte(0, 0));
    assert_false(smart_slot_has_byte(smart_slot_kind(0, SMART_KIND_CLOSED), 0));
    uint64_t key = UINT64_C(0x0102030405060708);
    uint64_t header = smart_header(key, 1, 6, 3);
    assert_int_equal(smart_header_branch(header), 7);
    assert_int_equal(smart_header_path(header, key), UINT64_C(0x0102030405060700));
    assert_int_equal(smart_header_mismatch(header, key), 6);
    assert_int_equal(smart_header_mismatch(header, key ^ UINT64_C(0x10000)), 4);
}

/* ---- the quiet case ---------------------------------------------------------------------------------------------- */

enum { QUIET_KEYS = 20000 };

struct quiet {
    struct world world;
    struct kind get, absent, sibling, update, present, insert, split, prefix, change, remove, again, scan;
};

static int quiet_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(&quiet->world, 0, ctx, NULL);
    uint64_t value = 1;
    quiet_warm(&client, QUIET_KEYS, 0, 2, 0);
    /* A leaf and a node, so that there is memory for others. */
    uint64_t lone = world_key(7000, QUIET_KEYS);
    WORLD_CHECK_EQ(ix_insert(&client, lone ^ 1, &value), 0);
    uint64_t present = world_key(5000, QUIET_KEYS);
    uint64_t between = world_key(5001, QUIET_KEYS);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->get, &client, GET, present, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->absent, &client, GET, between, &value), DM_NOT_FOUND);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->sibling, &client, GET, present + 1, &value), DM_NOT_FOUND);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->update, &client, UPDATE, present, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->present, &client, INSERT, present, &value), DM_EXISTS);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->insert, &client, INSERT, between, &value), 0);
    kind_scan(ctx, &quiet->scan, &client, world_key(6000, QUIET_KEYS), 10);
    /* The leaf of another key gets a node above. Two more keys, and the node of four is full. */
    uint64_t other = world_key(8000, QUIET_KEYS);
    uint64_t low = other & ~UINT64_C(0xff);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->split, &client, INSERT, low | ((other + 1) & 0xff), &value), 0);
    WORLD_CHECK_EQ(ix_insert(&client, low | ((other + 2) & 0xff), &value), 0);
    WORLD_CHECK_EQ(ix_insert(&client, low | ((other + 3) & 0xff), &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->change, &client, INSERT, low | ((other + 4) & 0xff), &value), 0);
    /* A byte of that node's prefix differs. The first get finds that the cached slot is stale, the second reads the
     * node above. */
    for (unsigned i = 0; i < 2; i++) {
        WORLD_CHECK_EQ(ix_get(&client, other ^ UINT64_C(0x1000000), &value), DM_NOT_FOUND);
    }
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->prefix, &client, INSERT, other ^ UINT64_C(0x1000000), &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->remove, &client, REMOVE, present, &value), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &quiet->again, &client, INSERT, present, &value), 0);
    ix_detach(&client);
    return 0;
}

static struct quiet_end quiet_run(const struct world_config *config, struct quiet *quiet) {
    memset(quiet, 0, sizeof(*quiet));
    return quiet_half_world(&quiet->world, config, QUIET_KEYS, quiet_entry, quiet);
}

static void a_quiet_get_reads_one_leaf(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_smart);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.get, 1));
    assert_int_equal(quiet.get.account.verbs[DM_VERB_READ], 1);
    assert_int_equal(quiet.get.account.bytes_read, 34);
    /* Absent: the node that has no slot; or the leaf of another key, and the slot that led to it. */
    assert_true(kind_took(&quiet.absent, 1));
    assert_true(kind_took(&quiet.sibling, 2));
    assert_int_equal(quiet.sibling.account.bytes_read, 34 + 8);
    assert_true(kind_took(&quiet.present, 1));
}

static void quiet_writes_take_three_round_trips(void **state) {
    (void)state;
    static const char *const updates[] = {"in_place", "rcu"};
    for (unsigned i = 0; i < DM_ARRAY_LEN(updates); i++) {
        struct world_config config = world_least(&ix_ops_smart);
        config.params[0] = (struct dm_setting){"update", updates[i]};
        struct quiet quiet;
        quiet_run(&config, &quiet);
        const struct kind *kinds[] = {&quiet.update, &quiet.insert, &quiet.split, &quiet.prefix, &quiet.remove};
        for (unsigned k = 0; k < DM_ARRAY_LEN(kinds); k++) {
            assert_true(kind_took(kinds[k], 3));
            assert_int_equal(kinds[k]->account.verbs[DM_VERB_READ], 1);
            assert_int_equal(kinds[k]->account.cas_failures, 0);
        }
        /* An atomic counts as 8 bytes in either direction. An update does not write the reverse pointer. */
        assert_int_equal(quiet.update.account.bytes_read, 34 + 8 * (1 + i));
        assert_int_equal(quiet.update.account.bytes_written, i == 0 ? 34 - 8 + 8 : 34 + 2 * 8);
        assert_int_equal(quiet.update.account.verbs[DM_VERB_MASKED_CAS], 1);
        assert_int_equal(quiet.update.account.verbs[DM_VERB_CAS], i);
        assert_int_equal(quiet.insert.account.bytes_written, 34 + 8);
        /* A node of four slots and a leaf; the slot, and the other leaf's reverse pointer, which is not waited for. */
        assert_int_equal(quiet.split.account.bytes_written, 34 + 16 + 4 * 8 + 2 * 8);
        assert_int_equal(quiet.split.account.verbs[DM_VERB_CAS], 2);
        /* The same, and the header of the node that is deeper now. */
        assert_int_equal(quiet.prefix.account.verbs[DM_VERB_CAS], 2);
        assert_int_equal(quiet.prefix.account.verbs[DM_VERB_MASKED_CAS], 1);
        /* Both types after the leaf. */
        assert_true(kind_took(&quiet.change, 4));
        assert_int_equal(quiet.change.account.verbs[DM_VERB_CAS], 2);
        assert_int_equal(quiet.change.account.verbs[DM_VERB_MASKED_CAS], 1);
        /* The slot of a deleted key is cached as vacant: only the leaf and the slot. */
        assert_true(kind_took(&quiet.again, 2));
    }
}

static void a_quiet_scan_reads_nodes_and_leaves_with_one_doorbell(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_smart);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.scan, 1));
    assert_int_equal(quiet.scan.account.doorbells, 1);
}

/* A node of two leaves loses one, and is taken out. */
struct shrinking {
    struct world world;
    struct kind remove, other, shrink, get;
};

static int shrinking_entry(struct dm_ctx *ctx, void *arg) {
    struct shrinking *shrinking = arg;
    struct ix_client client = world_attach(&shrinking->world, 0, ctx, NULL);
    uint64_t value = 1;
    quiet_warm(&client, QUIET_KEYS, 0, 2, 0);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t key = world_key(8000 + 100 * i, QUIET_KEYS);
        WORLD_CHECK_EQ(ix_insert(&client, key ^ 1, &value), 0);
        WORLD_CHECK_EQ(ix_insert(&client, key ^ 2, &value), 0);
        WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &shrinking->remove, &client, REMOVE, key ^ 2, NULL), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &shrinking->other, &client, GET, key, &value), 0);
        uint64_t before = ix_counts(&client)[SMART_SHRINK];
        WORLD_CHECK_EQ(kind_run(ctx, &shrinking->shrink, &client, REMOVE, key ^ 1, NULL), 0);
        WORLD_CHECK_EQ(ix_counts(&client)[SMART_SHRINK] - before, 1);
        WORLD_CHECK_EQ(kind_run(ctx, &shrinking->get, &client, GET, key, &value), 0);
    }
    ix_detach(&client);
    return 0;
}

static void a_node_with_one_leaf_left_is_taken_out_of_tree_and_cache(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_smart);
    static struct shrinking shrinking;
    config.params[0] = (struct dm_setting){"shrink", "on"};
    quiet_half_world(&shrinking.world, &config, QUIET_KEYS, shrinking_entry, &shrinking);
    /* The leaf, its state, the slot; the node, for how many leaves it has; none. */
    assert_true(kind_took(&shrinking.remove, 5));
    assert_true(kind_took(&shrinking.other, 1));
    /* With one leaf left: the node is marked, its slots are frozen, the slot above is swapped, the node is dead. */
    assert_true(kind_took(&shrinking.shrink, 8));
    /* The copy of the node is gone, that of the node above is old: its slot is read again, and the leaf. */
    assert_true(kind_took(&shrinking.get, 3));
}

struct long_value {
    struct world *world;
    struct dm_account update;
};

static int long_value_entry(struct dm_ctx *ctx, void *arg) {
    struct long_value *own = arg;
    struct ix_client client = world_attach(own->world, 0, ctx, NULL);
    unsigned char value[200] = {1};
    WORLD_CHECK_EQ(ix_get(&client, world_key(1, 2), value), 0);
    dm_account_use(ctx, &own->update);
    WORLD_CHECK_EQ(ix_update(&client, world_key(1, 2), value), 0);
    dm_account_use(ctx, NULL);
    ix_detach(&client);
    return 0;
}

static void a_leaf_of_several_lines_is_unlocked_by_a_write_of_its_own(void **state) {
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct world_config config = world_least(&ix_ops_smart);
        config.value_bytes = 200;
        config.params[0] = (struct dm_setting){"unlock_apart", i == 0 ? "on" : "off"};
        struct world world;
        struct world_pairs pairs;
        struct long_value own = {.world = &world};
        quiet_world(&world, &config, world_pairs(&pairs, 2, 1, config.value_bytes), long_value_entry, &own);
        assert_int_equal(own.update.round_trips, 3);
        assert_int_equal(own.update.verbs[DM_VERB_WRITE], i == 0 ? 2 : 1);
    }
}

/* ---- clients that stop ------------------------------------------------------------------------------------------- */

static void with_leases_an_update_takes_three_round_trips_too(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_smart);
    config.params[0] = (struct dm_setting){"lease_us", "20"};
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_true(kind_took(&quiet.update, 3));
    assert_int_equal(quiet.update.account.verbs[DM_VERB_MASKED_CAS], 2);
    /* Checksum, key and value; the lock, taken and released. */
    assert_int_equal(quiet.update.account.bytes_written, 22 + 2 * 8);
    assert_true(kind_took(&quiet.remove, 3));
}

/* Every verb of an update: with leases others read, replace and delete what it holds; without, they wait for ever. */
static void what_a_stopped_update_holds_ends_with_its_lease(void **state) {
    (void)state;
    static const struct {
        const char *update, *values;
        uint32_t value_bytes;
    } kinds[] = {{"in_place", "inline", 8}, {"in_place", "inline", 200}, {"in_place", "indirect", 200},
                 {"rcu", "inline", 8},      {"rcu", "inline", 200},      {"rcu", "indirect", 200}};
    static struct stops stops;
    for (unsigned i = 0; i < 2 * DM_ARRAY_LEN(kinds); i++) {
        unsigned kind = i / 2, stuck = 0, halves = 0;
        bool leases = i % 2;
        struct world_config config = world_least(&ix_ops_smart);
        config.value_bytes = kinds[kind].value_bytes;
        config.params[0] = (struct dm_setting){"update", kinds[kind].update};
        config.params[1] = (struct dm_setting){"values", kinds[kind].values};
        config.params[2] = (struct dm_setting){"lease_us", leases ? "20" : "0"};
        for (unsigned verb = 1; verb <= STOPS_VERBS; verb++) {
            stops_run(&stops, config, verb);
            bool reads = stops.get == 0, writes = stops.update == 0 && stops.remove == 0 && stops.again == 0;
            assert_true(writes || stops.update == DM_ERR_RETRY_LIMIT);
            assert_true((reads && writes && stops.insert == 0) || !leases);
            halves += !stops.updated;
            stuck += !writes;
        }
        assert_true(halves > 2 && halves < STOPS_VERBS);
        assert_int_equal(stuck > 0, !leases);
    }
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

static void the_cache_counts_as_published_or_everything(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_smart);
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    config.params[0] = (struct dm_setting){"accounting", "all"};
    uint64_t all = quiet_run(&config, &quiet).cached;
    /* A copy takes 44 bytes and its slots here, and counts 26 and its slots in the authors' code. */
    assert_int_equal((all - end.cached) % (44 - 26), 0);
    uint64_t copies = (all - end.cached) / (44 - 26);
    assert_in_range(copies, 257, end.report.inner_nodes);
    /* The root has 256 slots; most of those below it have 64, for some 40 keys each. */
    assert_in_range(end.cached, 26 * copies + 8 * (256 + 250 * 64), 26 * copies + 8 * (256 + copies * 64));
}

static void a_cache_never_exceeds_its_budget(void **state) {
    (void)state;
    static const uint64_t budgets[] = {0, 57, 58, 1000, 3000, 20000};
    uint64_t before = 0;
    for (unsigned i = 0; i < DM_ARRAY_LEN(budgets); i++) {
        struct world_config config = world_least(&ix_ops_smart);
        config.cache_bytes = budgets[i];
        struct quiet quiet;
        uint64_t cached = quiet_run(&config, &quiet).cached;
        assert_in_range(cached, before, budgets[i]);
        before = cached;
    }
    assert_true(before > 18000);
}

/* ---- settings, events, wrong variants ---------------------------------------------------------------------------- */

static void every_setting_leaves_the_tree_right(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {
        {"nodes", "art"},       {"update", "rcu"},     {"align", "64"},   {"shrink", "on"},
        {"values", "indirect"}, {"accounting", "all"}, {"lease_us", "5"},
    };
    steady_all_right(&ix_ops_smart, settings, DM_ARRAY_LEN(settings));
}

static void every_event_of_a_flat_tree_happens_in_a_small_crowd(void **state) {
    (void)state;
    uint64_t counts[STEADY_COUNTERS] = {0};
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct world_config config = steady_small(&ix_ops_smart, seed);
        config.value_bytes = seed % 3 ? 8 : 200;
        config.params[0] = (struct dm_setting){"update", seed % 2 ? "rcu" : "in_place"};
        config.params[1] = (struct dm_setting){"shrink", seed % 4 < 2 ? "on" : "off"};
        steady_count(config, counts);
    }
    /* Keys of these worlds are evenly spread: all are below the root. Splits need others, and check_test sees them. */
    static const enum smart_counter deep[] = {SMART_STALE_REVERSE, SMART_REVERSE_REPAIR, SMART_LEAF_SPLIT,
                                              SMART_PREFIX_SPLIT,  SMART_CACHE_EVICTION, SMART_CHASE,
                                              SMART_LEASE_BROKEN,  SMART_LEASE_LOST};
    unsigned except = 0;
    for (unsigned i = 0; i < DM_ARRAY_LEN(deep); i++) {
        except |= 1u << deep[i];
    }
    steady_events_seen(&ix_ops_smart, counts, except);
}

static void known_wrong_variants_are_wrong_and_the_right_one_is_not(void **state) {
    (void)state;
    static const struct dm_setting with = {NULL, NULL};
    assert_int_equal(steady_caught(&ix_ops_smart, (struct dm_setting){"check_sum", "on"}, with, 200, 30), 0);
    assert_int_not_equal(steady_caught(&ix_ops_smart, (struct dm_setting){"check_sum", "off"}, with, 200, 30), 0);
    assert_int_not_equal(steady_caught(&ix_ops_smart, (struct dm_setting){"keep_slots", "off"}, with, 8, 60), 0);
    assert_int_not_equal(steady_caught(&ix_ops_smart, (struct dm_setting){"recheck_lock", "off"}, with, 8, 60), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_and_nodes_have_the_published_sizes),
        cmocka_unit_test(slots_and_headers_keep_what_is_put_into_them),
        cmocka_unit_test(a_quiet_get_reads_one_leaf),
        cmocka_unit_test(quiet_writes_take_three_round_trips),
        cmocka_unit_test(a_quiet_scan_reads_nodes_and_leaves_with_one_doorbell),
        cmocka_unit_test(a_node_with_one_leaf_left_is_taken_out_of_tree_and_cache),
        cmocka_unit_test(a_leaf_of_several_lines_is_unlocked_by_a_write_of_its_own),
        cmocka_unit_test(with_leases_an_update_takes_three_round_trips_too),
        cmocka_unit_test(what_a_stopped_update_holds_ends_with_its_lease),
        cmocka_unit_test(the_cache_counts_as_published_or_everything),
        cmocka_unit_test(a_cache_never_exceeds_its_budget),
        cmocka_unit_test(every_setting_leaves_the_tree_right),
        cmocka_unit_test(every_event_of_a_flat_tree_happens_in_a_small_crowd),
        cmocka_unit_test(known_wrong_variants_are_wrong_and_the_right_one_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
