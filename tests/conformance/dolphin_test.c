/* SPDX-License-Identifier: Apache-2.0
 *
 * What only Dolphin promises: its round trips and bytes in the quiet case; that inner nodes grow and paths separate at
 * every boundary; that leaves split, are compacted and are taken out; that full memory keeps the tree consistent; and
 * what parameters it refuses.
 */
#include "conformance/index_steady.h"
#include "conformance/quiet.h"
#include "indexes/dolphin/dolphin.h"

extern const struct ix_ops ix_ops_dolphin;

/* ---- pairs with keys 0, 2, 4, ... -------------------------------------------------------------------------------- */

static uint64_t even_keys(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys) {
    (void)pairs;
    for (uint64_t i = 0; i < n; i++) {
        keys[i] = 2 * (first + i);
    }
    return n;
}

static void even_value(const struct ix_pairs *pairs, uint64_t key, void *value) {
    (void)pairs;
    memcpy(value, &key, sizeof(key));
}

static const struct ix_pairs even_pairs = {.count = 10000, .keys = even_keys, .value = even_value};

/* ---- round trips in the quiet case ------------------------------------------------------------------------------- */

enum { EVEN_END = 20000, QUIET_SAMPLES = 200, COMPACT_KEY = EVEN_END + 25600, COMPACT_INSERTS = 1000 };

struct quiet {
    struct world *world;
    struct kind get, absent, no_leaf, update, insert, compact, split_first, split_more, new_leaf, remove, scan;
};

/* Runs an insert and counts it as what it turned out to be. */
static void insert_run(struct dm_ctx *ctx, struct quiet *quiet, struct ix_client *client, uint64_t key) {
    uint64_t before[DOLPHIN_COUNTER_COUNT];
    const uint64_t *counts = ix_counts(client);
    memcpy(before, counts, sizeof(before));
    struct kind kind = {.count = 0};
    WORLD_CHECK_EQ(kind_run(ctx, &kind, client, INSERT, key, &key), 0);
    struct kind *real = counts[DOLPHIN_LEAF_COMPACT] != before[DOLPHIN_LEAF_COMPACT]           ? &quiet->compact
                        : counts[DOLPHIN_LEAF_SPLIT_FIRST] != before[DOLPHIN_LEAF_SPLIT_FIRST] ? &quiet->split_first
                        : counts[DOLPHIN_LEAF_SPLIT_MORE] != before[DOLPHIN_LEAF_SPLIT_MORE]   ? &quiet->split_more
                        : counts[DOLPHIN_NEW_LEAF] != before[DOLPHIN_NEW_LEAF]                 ? &quiet->new_leaf
                                                                                               : &quiet->insert;
    kind_count(real, &kind.account);
}

static int quiet_entry(struct dm_ctx *ctx, void *arg) {
    struct quiet *quiet = arg;
    struct ix_client client = world_attach(quiet->world, 0, ctx, NULL);
    uint64_t value;
    for (uint64_t key = 0; key < EVEN_END; key += 8) {
        WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
        WORLD_CHECK_EQ(value, key);
    }
    kind_scan(ctx, &quiet->scan, &client, 5000, 20);
    for (uint64_t n = 0; n < QUIET_SAMPLES; n++) {
        uint64_t present = 2 * (n * 37 % 10000);
        uint64_t changed = present + 1;
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->get, &client, GET, present, &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->update, &client, UPDATE, present, &changed), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->absent, &client, GET, present + 1, &value), DM_NOT_FOUND);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->no_leaf, &client, GET, EVEN_END + 256 * (n % 8 + 60), &value),
                       DM_NOT_FOUND);
        insert_run(ctx, quiet, &client, present + 1);
        WORLD_CHECK_EQ(kind_run(ctx, &quiet->remove, &client, REMOVE, present + 1, NULL), 0);
    }
    for (uint64_t n = 0; n < 20; n++) {
        insert_run(ctx, quiet, &client, EVEN_END + 256 * (n + 1));
    }
    /* Each prefix gets more keys than a leaf holds: one split of each case, and further ones. */
    for (uint64_t key = EVEN_END + 5120; key < EVEN_END + 8192; key++) {
        if (ix_get(&client, key, &value) == DM_NOT_FOUND) {
            insert_run(ctx, quiet, &client, key);
        }
    }
    /* Entries that a removal has emptied are free again only after a compaction. */
    insert_run(ctx, quiet, &client, COMPACT_KEY);
    for (unsigned n = 0; n < COMPACT_INSERTS; n++) {
        insert_run(ctx, quiet, &client, COMPACT_KEY + 1);
        WORLD_CHECK_EQ(ix_remove(&client, COMPACT_KEY + 1), 0);
    }
    ix_detach(&client);
    return 0;
}

static struct quiet_end quiet_run(const struct world_config *config, struct quiet *quiet) {
    struct world world;
    *quiet = (struct quiet){.world = &world};
    return quiet_world(&world, config, &even_pairs, quiet_entry, quiet);
}

static void a_quiet_get_is_one_round_trip_and_one_read(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_dolphin);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.get.trips[1], QUIET_SAMPLES);
    assert_int_equal(quiet.get.account.verbs[DM_VERB_READ], QUIET_SAMPLES);
    assert_int_equal(quiet.absent.trips[1], QUIET_SAMPLES);
    /* The absence of a leaf is not believed of the cache: the inner node is read. */
    assert_int_equal(quiet.no_leaf.trips[1], QUIET_SAMPLES);
    assert_true(quiet.no_leaf.account.bytes_read == 160 * QUIET_SAMPLES);
}

static void a_quiet_update_is_two_round_trips_and_reads_no_values(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_dolphin);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    struct dolphin_layout layout = dolphin_layout_make(1024, 8, true, true);
    assert_int_equal(quiet.update.trips[2], QUIET_SAMPLES);
    assert_int_equal(quiet.update.account.verbs[DM_VERB_READ], QUIET_SAMPLES);
    assert_int_equal(quiet.update.account.verbs[DM_VERB_CAS], 0);
    assert_int_equal(quiet.update.account.verbs[DM_VERB_FAA], 2 * QUIET_SAMPLES);
    /* Head, words, and the old values of the lock from two fetch-and-adds. */
    assert_true(quiet.update.account.bytes_read <= (layout.keys_bytes + 16) * QUIET_SAMPLES);
    assert_true(layout.keys_bytes < layout.used_bytes / 2);
}

static void a_quiet_insert_is_three_round_trips_in_both_scenarios_and_a_delete_two(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_dolphin);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_true(quiet.insert.count > QUIET_SAMPLES);
    assert_int_equal(quiet.insert.trips[3], quiet.insert.count);
    assert_true(quiet.new_leaf.count >= 20);
    assert_int_equal(quiet.new_leaf.trips[3], quiet.new_leaf.count);
    assert_int_equal(quiet.remove.trips[2], QUIET_SAMPLES);
    assert_int_equal(quiet.remove.account.bytes_written, 16 * QUIET_SAMPLES + 8 * QUIET_SAMPLES);
}

static void a_split_is_five_round_trips_and_a_compaction_three(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_dolphin);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_true(quiet.split_first.count >= 10);
    assert_int_equal(quiet.split_first.trips[5], quiet.split_first.count);
    assert_true(quiet.split_more.count >= 10);
    /* Where the special node has to grow, one lock and two steps are added. A new chunk of memory adds a call. */
    const unsigned *trips = quiet.split_more.trips;
    assert_int_equal(trips[5] + trips[6] + trips[7] + trips[8], quiet.split_more.count);
    assert_true(trips[5] > quiet.split_more.count * 3 / 4);
    assert_true(quiet.compact.count >= 10);
    assert_int_equal(quiet.compact.trips[3], quiet.compact.count);
}

static void a_quiet_scan_of_neighbouring_leaves_is_one_round_trip(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_dolphin);
    struct quiet quiet;
    quiet_run(&config, &quiet);
    assert_int_equal(quiet.scan.account.round_trips, 1);
    assert_int_equal(quiet.scan.account.doorbells, 1);
}

/* Keys that share no prefix of seven bytes: each has its own leaf. */
enum { SPREAD_KEYS = 10000, SPREAD_SCAN = 50, SPREAD_SAMPLES = 50 };
static const uint64_t SPREAD_STEP = UINT64_MAX / SPREAD_KEYS;

static uint64_t spread_keys(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys) {
    (void)pairs;
    for (uint64_t i = 0; i < n; i++) {
        keys[i] = (first + i) * SPREAD_STEP;
    }
    return n;
}

static const struct ix_pairs spread_pairs = {.count = SPREAD_KEYS, .keys = spread_keys, .value = even_value};

struct spread {
    struct world *world;
    struct dm_account account;
    uint64_t gaps;
};

static int spread_entry(struct dm_ctx *ctx, void *arg) {
    struct spread *spread = arg;
    struct ix_client client = world_attach(spread->world, 0, ctx, NULL);
    uint64_t keys[SPREAD_SCAN];
    uint64_t values[SPREAD_SCAN];
    uint32_t found;
    /* The first pass fills the cache and learns how much a leaf holds. */
    for (unsigned pass = 0; pass < 2; pass++) {
        dm_account_use(ctx, pass == 1 ? &spread->account : NULL);
        for (uint64_t n = 0; n < SPREAD_SAMPLES; n++) {
            uint64_t first = n * 197;
            WORLD_CHECK_EQ(ix_scan(&client, first * SPREAD_STEP, SPREAD_SCAN, keys, values, &found), 0);
            WORLD_CHECK_EQ(found, SPREAD_SCAN);
            for (uint32_t i = 0; i < found; i++) {
                WORLD_CHECK_EQ(keys[i], (first + i) * SPREAD_STEP);
            }
        }
    }
    dm_account_use(ctx, NULL);
    WORLD_CHECK_EQ(ix_scan(&client, (SPREAD_KEYS - 10) * SPREAD_STEP, SPREAD_SCAN, keys, values, &found), 0);
    WORLD_CHECK_EQ(found, 10);
    spread->gaps = ix_counts(&client)[DOLPHIN_SCAN_GAP];
    ix_detach(&client);
    return 0;
}

static struct dm_account spread_run(uint64_t cache_bytes) {
    struct world_config config = world_least(&ix_ops_dolphin);
    config.cache_bytes = cache_bytes;
    struct world world;
    world_begin(&world, &config, &spread_pairs);
    struct spread spread = {.world = &world};
    world_do(&world, 0, spread_entry, &spread);
    assert_int_equal(world_verify(&world).leaves, SPREAD_KEYS);
    world_close(&world);
    assert_int_equal(spread.gaps, 0);
    return spread.account;
}

static void a_quiet_scan_of_spread_keys_reads_their_leaves_once_and_the_nodes_between(void **state) {
    (void)state;
    struct dm_account account = spread_run(4 << 20);
    assert_int_equal(account.round_trips, SPREAD_SAMPLES);
    /* A leaf for each key and one or two more, and two or three parents of 16 to 48 children. */
    assert_in_range(account.verbs[DM_VERB_READ], SPREAD_SAMPLES * (SPREAD_SCAN + 2),
                    SPREAD_SAMPLES * (SPREAD_SCAN + 6));
    /* Without a cache: the root, then its children together, then leaves; more leaves if they held less than estimated.
     */
    account = spread_run(0);
    assert_in_range(account.round_trips, 3 * SPREAD_SAMPLES, 5 * SPREAD_SAMPLES);
}

static void without_a_cache_every_inner_level_costs_a_read(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_dolphin);
    config.cache_bytes = 0;
    struct quiet quiet;
    struct quiet_end end = quiet_run(&config, &quiet);
    /* The root, and one node with a child for each prefix: path compression omits the levels between. */
    assert_int_equal(quiet.get.trips[3] + quiet.get.trips[4], QUIET_SAMPLES);
    assert_int_equal(end.cached, 0);
}

/* ---- long values ------------------------------------------------------------------------------------------------- */

struct long_values {
    struct world *world;
    struct kind get, update, insert;
};

static int long_entry(struct dm_ctx *ctx, void *arg) {
    struct long_values *test = arg;
    struct ix_client client = world_attach(test->world, 0, ctx, NULL);
    uint64_t value[25];
    for (uint64_t i = 0; i < 200; i++) {
        uint64_t key = i;
        world_value(i, 1, value, 200);
        int rc = ix_insert(&client, key, value);
        WORLD_CHECK_EQ(rc, 0);
    }
    for (uint64_t i = 0; i < 200; i++) {
        struct dm_account account = {0};
        world_value(i, 2, value, 200);
        dm_account_use(ctx, &account);
        WORLD_CHECK_EQ(ix_update(&client, i, value), 0);
        dm_account_use(ctx, NULL);
        kind_count(&test->update, &account);
        WORLD_CHECK_EQ(ix_get(&client, i, value), 0);
        WORLD_CHECK_EQ(world_write_of(i, value, 200), 2);
    }
    ix_detach(&client);
    return 0;
}

static void an_update_of_a_long_value_takes_its_entry_first_for_one_more_round_trip(void **state) {
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct world_config config = world_least(&ix_ops_dolphin);
        config.value_bytes = 200;
        config.params[0] = (struct dm_setting){"lock_long", i == 0 ? "on" : "off"};
        struct world world;
        world_begin(&world, &config, NULL);
        struct long_values test = {.world = &world};
        world_do(&world, 0, long_entry, &test);
        assert_int_equal(test.update.trips[i == 0 ? 3 : 2], 200);
        world_close(&world);
    }
}

/* ---- shapes of keys ---------------------------------------------------------------------------------------------- */

enum { SHAPE_KEYS = 1200 };

struct shape {
    struct world *world;
    const uint64_t *keys;
    unsigned count;
    uint64_t counts[DOLPHIN_COUNTER_COUNT];
};

static int keys_compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Inserts in the order given, scans, reads, and removes the lower half of the keys. */
static int shape_entry(struct dm_ctx *ctx, void *arg) {
    struct shape *shape = arg;
    struct ix_client client = world_attach(shape->world, 0, ctx, NULL);
    static uint64_t sorted[SHAPE_KEYS];
    static uint64_t keys[SHAPE_KEYS + 1];
    static uint64_t values[SHAPE_KEYS + 1];
    uint32_t found;
    uint64_t value;
    memcpy(sorted, shape->keys, shape->count * sizeof(uint64_t));
    qsort(sorted, shape->count, sizeof(uint64_t), keys_compare);
    for (unsigned i = 0; i < shape->count; i++) {
        WORLD_CHECK_EQ(ix_insert(&client, shape->keys[i], &shape->keys[i]), 0);
        WORLD_CHECK_EQ(ix_insert(&client, shape->keys[i], &shape->keys[i]), DM_EXISTS);
    }
    WORLD_CHECK_EQ(ix_scan(&client, 0, SHAPE_KEYS + 1, keys, values, &found), 0);
    WORLD_CHECK_EQ(found, shape->count);
    for (unsigned i = 0; i < found && i < shape->count; i++) {
        WORLD_CHECK_EQ(keys[i], sorted[i]);
        WORLD_CHECK_EQ(values[i], sorted[i]);
        WORLD_CHECK_EQ(ix_get(&client, sorted[i], &value), 0);
        WORLD_CHECK_EQ(value, sorted[i]);
    }
    for (unsigned i = 0; i < shape->count / 2; i++) {
        WORLD_CHECK_EQ(ix_remove(&client, sorted[i]), 0);
        WORLD_CHECK_EQ(ix_get(&client, sorted[i], &value), DM_NOT_FOUND);
    }
    WORLD_CHECK_EQ(ix_scan(&client, 0, SHAPE_KEYS, keys, values, &found), 0);
    WORLD_CHECK_EQ(found, shape->count - shape->count / 2);
    for (unsigned i = 0; i < DOLPHIN_COUNTER_COUNT; i++) {
        shape->counts[i] = ix_counts(&client)[i];
    }
    ix_detach(&client);
    return 0;
}

/* Runs a shape with a large cache, a small one and none, and returns the last world's counters. */
static struct shape shape_run(const uint64_t *keys, unsigned count, const char *leaf_bytes) {
    struct shape shape = {.count = 0};
    for (unsigned i = 0; i < 3; i++) {
        struct world_config config = world_least(&ix_ops_dolphin);
        config.cache_bytes = i == 0 ? 1 << 20 : i == 1 ? 1500 : 0;
        config.mns = 1 + i;
        config.params[0] = (struct dm_setting){"leaf_bytes", leaf_bytes};
        struct world world;
        world_open(&world, &config);
        shape = (struct shape){.world = &world, .keys = keys, .count = count};
        world_do(&world, 0, shape_entry, &shape);
        assert_int_equal(world_verify(&world).keys, count - count / 2);
        world_close(&world);
    }
    return shape;
}

static void nodes_grow_at_every_depth_and_at_every_capacity(void **state) {
    (void)state;
    static const unsigned sizes[] = {2, 4, 5, 16, 17, 48, 49, 256};
    uint64_t keys[DOLPHIN_CHILDREN_MAX];
    for (unsigned depth = 1; depth < DOLPHIN_SPECIAL; depth++) {
        for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            /* One prefix, and children that differ in byte `depth`, not in order. */
            for (unsigned n = 0; n < sizes[s]; n++) {
                uint64_t byte = (n * 167 + 5) % 256;
                keys[n] = dolphin_low(UINT64_C(0x8877665544332211), depth) | byte << (8 * (7 - depth)) | n % 3;
            }
            struct shape shape = shape_run(keys, sizes[s], "1024");
            assert_int_equal(shape.counts[DOLPHIN_PATH_SPLIT], 1);
            assert_int_equal(shape.counts[DOLPHIN_GROW_16], sizes[s] > 4);
            assert_int_equal(shape.counts[DOLPHIN_GROW_48], sizes[s] > 16);
            assert_int_equal(shape.counts[DOLPHIN_GROW_256], sizes[s] > 48);
        }
    }
}

static void special_nodes_grow_to_every_capacity(void **state) {
    (void)state;
    uint64_t keys[DOLPHIN_CHILDREN_MAX];
    for (unsigned n = 0; n < DOLPHIN_CHILDREN_MAX; n++) {
        keys[n] = UINT64_C(0xaabbccddeeff1100) | (n * 167 + 5) % 256;
    }
    struct shape shape = shape_run(keys, DOLPHIN_CHILDREN_MAX, "128");
    assert_int_equal(shape.counts[DOLPHIN_LEAF_SPLIT_FIRST], 1);
    assert_int_equal(shape.counts[DOLPHIN_GROW_16] + shape.counts[DOLPHIN_GROW_48], 2);
    assert_true(shape.counts[DOLPHIN_LEAF_SPLIT_MORE] > 47);
    assert_int_equal(shape.counts[DOLPHIN_GROW_256], 1);
    assert_true(shape.counts[DOLPHIN_MERGE_RANGE] > 0);
}

static void paths_separate_at_every_byte(void **state) {
    (void)state;
    /* For every pair of depths three keys: the first two separate at the lower one, the third separates above it. */
    for (unsigned upper = 1; upper < DOLPHIN_SPECIAL; upper++) {
        for (unsigned lower = upper + 1; lower < DOLPHIN_KEY_BYTES; lower++) {
            uint64_t base = UINT64_C(0x1111111111111111);
            uint64_t keys[3] = {base, base ^ UINT64_C(0x20) << (8 * (7 - lower)),
                                base ^ UINT64_C(0x40) << (8 * (7 - upper))};
            struct shape shape = shape_run(keys, 3, "1024");
            assert_int_equal(shape.counts[DOLPHIN_PATH_SPLIT], lower == DOLPHIN_SPECIAL ? 1 : 2);
        }
    }
}

static void random_dense_and_long_shared_prefixes_all_work(void **state) {
    (void)state;
    static uint64_t keys[SHAPE_KEYS];
    for (unsigned form = 0; form < 5; form++) {
        for (unsigned n = 0; n < SHAPE_KEYS; n++) {
            uint64_t number = n * 487 % SHAPE_KEYS;
            keys[n] = form == 0   ? dm_mix64(number) >> 1
                      : form == 1 ? number
                      : form == 2 ? UINT64_C(0xffffffffffffffff) - 1 - number
                      : form == 3 ? number / 40 << 56 | number % 40
                                  : UINT64_C(0x0102030405000000) + number * 1021;
        }
        for (unsigned i = 0; i < 2; i++) {
            shape_run(keys, SHAPE_KEYS, i == 0 ? "1024" : "128");
        }
    }
}

/* ---- bulk load --------------------------------------------------------------------------------------------------- */

struct list {
    struct ix_pairs pairs;
    const uint64_t *keys;
};

static uint64_t list_keys(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys) {
    memcpy(keys, (const uint64_t *)pairs->arg + first, n * sizeof(*keys));
    return n;
}

static int listed_entry(struct dm_ctx *ctx, void *arg) {
    struct shape *shape = arg;
    struct ix_client client = world_attach(shape->world, 0, ctx, NULL);
    for (unsigned i = 0; i < shape->count; i++) {
        uint64_t value;
        WORLD_CHECK_EQ(ix_get(&client, shape->keys[i], &value), 0);
        WORLD_CHECK_EQ(value, shape->keys[i]);
        WORLD_CHECK_EQ(ix_get(&client, shape->keys[i] ^ 1, &value), DM_NOT_FOUND);
    }
    ix_detach(&client);
    return 0;
}

static void bulk_load_makes_the_tree_for_every_shape_of_keys(void **state) {
    (void)state;
    static uint64_t keys[SHAPE_KEYS];
    static const uint64_t gaps[] = {
        2, 64, 256, 1 << 16, 1000002, UINT64_C(1) << 40, UINT64_MAX / SHAPE_KEYS & ~UINT64_C(1)};
    for (unsigned g = 0; g < 2 * sizeof(gaps) / sizeof(gaps[0]); g++) {
        for (unsigned n = 0; n < SHAPE_KEYS; n++) {
            keys[n] = n * gaps[g / 2] + (g % 2 ? 0 : n / 500 * (UINT64_C(1) << 62) % (UINT64_C(1) << 63));
        }
        qsort(keys, SHAPE_KEYS, sizeof(*keys), keys_compare);
        struct world_config config = world_least(&ix_ops_dolphin);
        config.mns = 1 + g % 3;
        config.params[0] = (struct dm_setting){"leaf_bytes", g % 4 < 2 ? "1024" : "128"};
        struct world world;
        world_open(&world, &config);
        struct ix_pairs pairs = {.count = SHAPE_KEYS, .keys = list_keys, .value = even_value, .arg = keys};
        world_load(&world, &pairs);
        assert_int_equal(world_verify(&world).keys, SHAPE_KEYS);
        struct shape shape = {.world = &world, .keys = keys, .count = SHAPE_KEYS};
        world_do(&world, 0, listed_entry, &shape);
        world_close(&world);
    }
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

static int emptying_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    uint64_t keys[4];
    uint64_t values[4];
    uint32_t found;
    for (uint64_t key = 0; key < EVEN_END; key += 2) {
        if (key % 1000 != 0) {
            WORLD_CHECK_EQ(ix_remove(&client, key), 0);
        }
    }
    WORLD_CHECK_EQ(ix_scan(&client, 0, 4, keys, values, &found), 0);
    WORLD_CHECK_EQ(found, 4);
    for (unsigned i = 0; i < found; i++) {
        WORLD_CHECK_EQ(keys[i], 1000 * i);
    }
    WORLD_CHECK(ix_counts(&client)[DOLPHIN_LEAF_MERGE] > 100);
    WORLD_CHECK(ix_counts(&client)[DOLPHIN_MERGE_RANGE] > 10);
    ix_detach(&client);
    return 0;
}

static void leaves_that_deletes_empty_are_taken_out(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_dolphin);
    struct world world;
    world_open(&world, &config);
    world_load(&world, &even_pairs);
    world_do(&world, 0, emptying_entry, &world);
    struct ix_report report = world_verify(&world);
    assert_int_equal(report.keys, EVEN_END / 1000);
    assert_int_equal(report.leaves, EVEN_END / 1000);
    world_close(&world);
}

/* ---- full memory ------------------------------------------------------------------------------------------------- */

struct full {
    struct world *world;
    uint64_t stride, inserted, refused;
};

static int full_entry(struct dm_ctx *ctx, void *arg) {
    struct full *full = arg;
    struct ix_client client = world_attach(full->world, 0, ctx, NULL);
    uint64_t value;
    for (uint64_t n = 0; n < 6000; n++) {
        uint64_t key = n * 1777 % 6000 * full->stride;
        int rc = ix_insert(&client, key, &key);
        WORLD_CHECK(rc == 0 || rc == DM_ERR_NO_MEMORY);
        WORLD_CHECK_EQ(ix_get(&client, key, &value), rc == 0 ? 0 : DM_NOT_FOUND);
        full->inserted += rc == 0;
        full->refused += rc == DM_ERR_NO_MEMORY;
    }
    ix_detach(&client);
    return 0;
}

static void full_memory_refuses_new_leaves_splits_and_larger_nodes_and_keeps_the_tree_consistent(void **state) {
    (void)state;
    static const uint64_t strides[] = {1, 200, 256, 1 << 20, UINT64_C(1) << 50};
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned size = 0; size < 8; size++) {
            struct world_config config = world_least(&ix_ops_dolphin);
            config.mns = 1 + i % 2;
            /* At each size another allocation is the first to fail. */
            config.mn_bytes = (72 << 10) + 1056 * size;
            config.chunk_bytes = 8 << 10;
            config.params[0] = (struct dm_setting){"leaf_bytes", "256"};
            struct world world;
            world_open(&world, &config);
            struct full full = {.world = &world, .stride = strides[i]};
            world_do(&world, 0, full_entry, &full);
            assert_true(full.inserted > 0);
            assert_true(full.refused > 0);
            assert_int_equal(world_verify(&world).keys, full.inserted);
            world_close(&world);
        }
    }
}

/* ---- crowds ------------------------------------------------------------------------------------------------------ */

static void every_parameter_keeps_the_tree_consistent(void **state) {
    (void)state;
    static const struct dm_setting choices[] = {
        {"locks", "chip"},      {"lock_count", "1"}, {"merge", "off"},
        {"leaf_bytes", "1024"}, {"fill", "1"},       {"fill", "0.1"},
    };
    for (unsigned i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        struct world_config config = steady_small(&ix_ops_dolphin, i);
        config.params[0] = choices[i];
        config.params[1] = (struct dm_setting){"locks", i < 2 ? "chip" : "leaf"};
        assert_int_equal(steady_run(config, 300).violations, 0);
    }
}

static void values_of_a_line_and_more_are_never_torn(void **state) {
    (void)state;
    static const uint32_t sizes[] = {16, 63, 64, 65, 126, 127, 200, 1024};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct world_config config = steady_small(&ix_ops_dolphin, i);
        config.value_bytes = sizes[i];
        config.params[0] = (struct dm_setting){"leaf_bytes", sizes[i] < 300 ? "1024" : "4096"};
        assert_int_equal(steady_run(config, 200).violations, 0);
    }
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static int check_of(uint32_t value_bytes, const char *name, const char *value, struct dm_err *err) {
    struct dm_topology topology = {.mns = 1, .cns = 1, .clients = 1, .clients_per_thread = 1};
    return world_check(&ix_ops_dolphin, &topology, value_bytes, (struct dm_setting){name, value}, err);
}

static void what_cannot_work_is_refused_with_its_limit(void **state) {
    (void)state;
    static const struct {
        uint32_t value_bytes;
        const char *name, *value, *text;
    } cases[] = {
        {8, "leaf_bytes", "1000", "not a multiple of 64"},
        {8, "locks", "chip", "on-chip memory"},
        {1025, NULL, NULL, "1 to 1024"},
        {0, NULL, NULL, "1 to 1024"},
        {1024, NULL, NULL, "leaf_bytes 1024 is too small"},
        {8, "leaf_bytes", "64", "leaf_bytes"},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct dm_err err = {0};
        assert_true(check_of(cases[i].value_bytes, cases[i].name, cases[i].value, &err) < 0);
        if (!strstr(err.text, cases[i].text)) {
            fail_msg("case %u: %s", i, err.text);
        }
    }
    assert_int_equal(check_of(8, NULL, NULL, NULL), 0);
    assert_int_equal(check_of(1024, "leaf_bytes", "4096", NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_get_is_one_round_trip_and_one_read),
        cmocka_unit_test(a_quiet_update_is_two_round_trips_and_reads_no_values),
        cmocka_unit_test(a_quiet_insert_is_three_round_trips_in_both_scenarios_and_a_delete_two),
        cmocka_unit_test(a_split_is_five_round_trips_and_a_compaction_three),
        cmocka_unit_test(a_quiet_scan_of_neighbouring_leaves_is_one_round_trip),
        cmocka_unit_test(a_quiet_scan_of_spread_keys_reads_their_leaves_once_and_the_nodes_between),
        cmocka_unit_test(without_a_cache_every_inner_level_costs_a_read),
        cmocka_unit_test(an_update_of_a_long_value_takes_its_entry_first_for_one_more_round_trip),
        cmocka_unit_test(nodes_grow_at_every_depth_and_at_every_capacity),
        cmocka_unit_test(special_nodes_grow_to_every_capacity),
        cmocka_unit_test(paths_separate_at_every_byte),
        cmocka_unit_test(random_dense_and_long_shared_prefixes_all_work),
        cmocka_unit_test(bulk_load_makes_the_tree_for_every_shape_of_keys),
        cmocka_unit_test(leaves_that_deletes_empty_are_taken_out),
        cmocka_unit_test(full_memory_refuses_new_leaves_splits_and_larger_nodes_and_keeps_the_tree_consistent),
        cmocka_unit_test(every_parameter_keeps_the_tree_consistent),
        cmocka_unit_test(values_of_a_line_and_more_are_never_torn),
        cmocka_unit_test(what_cannot_work_is_refused_with_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
