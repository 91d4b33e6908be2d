/* SPDX-License-Identifier: Apache-2.0
 *
 * What the B-link tree that indexes share promises about nodes that are torn, old, or not nodes at all, on Sherman: how
 * often it reads what, and that it waits for what is not whole.
 */
#include "common/compiler.h"
#include "conformance/index_damage.h"
#include "conformance/quiet.h"
#include "indexes/sherman/sherman.h"

extern const struct ix_ops ix_ops_sherman;

enum { KEYS = 1200, STEP = 2 };

/* ---- damage ------------------------------------------------------------------------------------------------------ */

enum kind_of_damage { DAMAGE_LINE, DAMAGE_MAGIC, DAMAGE_ENTRY, DAMAGE_BLOCK };

struct scene {
    struct world world;
    struct damage damage;
    enum kind_of_damage kind;
    unsigned level, line;
    uint32_t offset, bytes; /* what is damaged of the node or block */
};

static struct ix_btree *btree_of(struct ix_client *client) {
    return &((struct sherman_client *)client->handle)->btree;
}

/* A line of the next write of the node; an entry of which the first line alone has been written; other bytes. */
static void spoil(void *arg, unsigned char *bytes) {
    const struct scene *scene = arg;
    bytes[0] = (unsigned char)(bytes[0] + (scene->kind == DAMAGE_LINE ? 0x10 : 1));
    for (uint32_t i = 1; i < scene->bytes; i++) {
        bytes[i] = (unsigned char)~bytes[i];
    }
}

/* Gets the key while a part of what is at `addr` is damaged, and returns the retries that it counted. */
static uint64_t get_damaged(struct dm_ctx *ctx, struct scene *scene, struct ix_client *client, unsigned number,
                            dm_addr addr) {
    struct dm_account account = {0};
    uint64_t value = 0, retries = 0;
    damage_begin(ctx, &scene->damage, dm_addr_add(addr, scene->offset), scene->bytes);
    dm_account_use(ctx, &account);
    WORLD_CHECK_EQ(ix_get(client, world_key(number, KEYS), &value), 0);
    dm_account_use(ctx, NULL);
    WORLD_CHECK_EQ(world_write_of(number, &value, sizeof(value)), 0);
    damage_end(ctx, &scene->damage);
    for (unsigned i = 0; i < DM_RETRY_COUNT; i++) {
        retries += account.retries[i];
    }
    return retries;
}

/* Sets what is damaged of an entry: its own version byte and its key, if it lies in two lines. */
static bool entry_choose(struct scene *scene, const struct ix_btree *btree, uint64_t key) {
    const struct ix_leaf_layout *layout = &btree->cn->leaf;
    int at = ix_leaf_find(layout, btree->tree.image, key);
    uint32_t offset = at < 0 ? 0 : ix_leaf_offset(layout, (unsigned)at), wire = ix_lines_wire_offset(offset);
    scene->offset = wire;
    scene->bytes = layout->key_offset + layout->key_bytes;
    return at >= 0 && wire / DM_LINE == (wire + scene->bytes - 1) / DM_LINE &&
           ix_lines_span(offset, layout->entry_bytes).bytes > layout->entry_bytes;
}

/* The block of a value that is not inline: 40 bits of its word are the address, in lines. */
static dm_addr block_of(const struct ix_btree *btree, uint64_t key) {
    int at = ix_leaf_find(&btree->cn->leaf, btree->tree.image, key);
    uint64_t word = 0;
    WORLD_CHECK(at >= 0);
    memcpy(&word, ix_leaf_value(&btree->cn->leaf, btree->tree.image, (unsigned)at), sizeof(word));
    return dm_addr_make(0, DM_DRAM, (word & ((UINT64_C(1) << 40) - 1)) * DM_LINE);
}

static void reader(struct dm_ctx *ctx, void *arg) {
    struct scene *scene = arg;
    struct ix_client client = world_attach(&scene->world, 0, ctx, NULL);
    struct ix_btree *btree = btree_of(&client);
    unsigned judged = 0;
    for (unsigned number = 0; number < KEYS && judged < 6; number += 7 * STEP) {
        uint64_t value, key = world_key(number, KEYS);
        bool chosen = true;
        WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
        dm_addr addr = scene->level == 0 ? btree->tree.child.addr : btree->tree.path[scene->level].addr;
        scene->offset = scene->kind == DAMAGE_LINE ? scene->line * DM_LINE : 0;
        scene->bytes = scene->kind == DAMAGE_BLOCK ? 4 : 1;
        if (scene->kind == DAMAGE_MAGIC) {
            scene->offset = ix_lines_wire_offset(offsetof(struct ix_node_head, magic));
        } else if (scene->kind == DAMAGE_ENTRY) {
            chosen = entry_choose(scene, btree, key);
        } else if (scene->kind == DAMAGE_BLOCK) {
            addr = block_of(btree, key);
        }
        if (chosen) {
            WORLD_CHECK(get_damaged(ctx, scene, &client, number, addr) > 0);
            judged++;
        }
    }
    WORLD_CHECK(judged > 0);
    scene->damage.ended = true;
    ix_detach(&client);
}

static struct world_config tree_config(unsigned cns, const char *cache_levels) {
    struct world_config config = world_least(&ix_ops_sherman);
    config.cns = config.clients = cns;
    config.params[0] = (struct dm_setting){"node_bytes", "256"};
    config.params[1] = (struct dm_setting){"cache_levels", cache_levels};
    return config;
}

static void scene_run(enum kind_of_damage kind, unsigned level, unsigned line, const char *values) {
    struct world_config config = tree_config(2, "0");
    struct scene scene = {.kind = kind, .level = level, .line = line};
    scene.damage = (struct damage){.spoil = spoil, .arg = &scene};
    struct world_pairs pairs;
    config.params[2] = (struct dm_setting){"values", values};
    world_begin(&scene.world, &config, world_pairs(&pairs, KEYS, STEP, 8));
    world_spawn(&scene.world, 0, 0, reader, &scene);
    world_spawn(&scene.world, 1, 0, damage_entry, &scene.damage);
    world_run(&scene.world);
    assert_true(world_verify(&scene.world).height >= 3);
    world_close(&scene.world);
}

static void a_node_of_two_writes_is_read_again(void **state) {
    (void)state;
    for (unsigned level = 0; level < 2; level++) {
        for (unsigned line = 1; line < 4; line++) {
            scene_run(DAMAGE_LINE, level, line, "inline");
        }
    }
}

static void bytes_that_are_no_node_are_not_followed(void **state) {
    (void)state;
    scene_run(DAMAGE_MAGIC, 0, 0, "inline");
    scene_run(DAMAGE_MAGIC, 1, 0, "inline");
}

static void a_key_is_not_absent_while_an_entry_is_half_written(void **state) {
    (void)state;
    scene_run(DAMAGE_ENTRY, 0, 0, "inline");
}

static void a_block_of_another_write_is_looked_up_again(void **state) {
    (void)state;
    scene_run(DAMAGE_BLOCK, 0, 0, "indirect");
}

/* Puts the key into a second entry of its leaf, as a scan sees it that read one entry before the key was removed and
 * the other one after it was inserted again. */
static int twice_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    struct ix_btree *btree = btree_of(&client);
    const struct ix_leaf_layout *layout = &btree->cn->leaf;
    uint64_t value, key = world_key(7 * STEP, KEYS), keys[3] = {0}, values[3];
    uint32_t found = 0;
    WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
    dm_addr addr = btree->tree.child.addr;
    uint32_t bytes = btree->tree.cn->inner.node_bytes;
    char *wire = malloc(bytes);
    WORLD_CHECK_EQ(dm_read(ctx, addr, wire, bytes), 0);
    ix_lines_decode(wire, bytes, btree->tree.image);
    unsigned unused = 0;
    while (ix_leaf_is_used(layout, btree->tree.image, unused)) {
        unused++;
    }
    WORLD_CHECK(unused < layout->cap && ix_leaf_find(layout, btree->tree.image, key) >= 0);
    ix_leaf_put(layout, btree->tree.image, unused, key, &value);
    ix_lines_encode(btree->tree.image, bytes, ix_lines_node_version(wire), wire);
    WORLD_CHECK_EQ(dm_write(ctx, addr, wire, bytes), 0);
    free(wire);
    WORLD_CHECK_EQ(ix_scan(&client, key, 3, keys, values, &found), 0);
    WORLD_CHECK_EQ(found, 3);
    WORLD_CHECK_EQ(keys[0], key);
    WORLD_CHECK_EQ(keys[1], world_key(8 * STEP, KEYS));
    WORLD_CHECK_EQ(keys[2], world_key(9 * STEP, KEYS));
    ix_detach(&client);
    return 0;
}

static void a_scan_returns_a_key_once_that_it_sees_in_two_entries(void **state) {
    (void)state;
    struct world_config config = tree_config(1, "16");
    struct world world;
    struct world_pairs pairs;
    world_begin(&world, &config, world_pairs(&pairs, KEYS, STEP, 8));
    world_do(&world, 0, twice_entry, &world);
    world_close(&world);
}

/* ---- how many reads ---------------------------------------------------------------------------------------------- */

struct counted {
    struct world world;
    unsigned height;
    uint64_t trips;                   /* over all keys */
    uint64_t stale_first, stale_then; /* of a key that another client's split moved */
    unsigned moved;
};

static uint64_t trips_of(struct dm_ctx *ctx, struct ix_client *client, unsigned number) {
    struct kind kind = {0};
    uint64_t value;
    WORLD_CHECK_EQ(kind_run(ctx, &kind, client, GET, world_key(number, KEYS), &value), 0);
    return kind.account.round_trips;
}

static int all_keys_entry(struct dm_ctx *ctx, void *arg) {
    struct counted *counted = arg;
    struct ix_client client = world_attach(&counted->world, 0, ctx, NULL);
    quiet_warm(&client, KEYS, 0, STEP, 0);
    for (unsigned number = 0; number < KEYS; number += STEP) {
        counted->trips += trips_of(ctx, &client, number);
    }
    ix_detach(&client);
    return 0;
}

/* The first key of a child, too, which is its separator in the parent. */
static void every_key_costs_as_many_reads_as_levels_are_not_cached(void **state) {
    (void)state;
    static const char *const levels[] = {"16", "1", "0"};
    for (unsigned i = 0; i < DM_ARRAY_LEN(levels); i++) {
        struct world_config config = tree_config(1, levels[i]);
        struct counted counted = {.trips = 0};
        struct quiet_end end = quiet_half_world(&counted.world, &config, KEYS, all_keys_entry, &counted);
        unsigned reads = i == 0 ? 1 : i == 1 ? end.report.height - 1 : end.report.height;
        assert_true(end.report.height >= 3);
        assert_int_equal(counted.trips, (uint64_t)reads * KEYS / STEP);
    }
}

/* The first client knows the tree; the second inserts until a leaf is split; then the first gets what was moved. */
static int split_entry(struct dm_ctx *ctx, void *arg) {
    struct counted *counted = arg;
    struct ix_client knows = world_attach(&counted->world, 0, ctx, NULL);
    struct ix_client splits = world_attach(&counted->world, 1, ctx, NULL);
    quiet_warm(&knows, KEYS, 0, STEP, 0);
    uint64_t value;
    dm_addr before[KEYS / STEP];
    for (unsigned number = 0; number < KEYS; number += STEP) {
        WORLD_CHECK_EQ(ix_get(&knows, world_key(number, KEYS), &value), 0);
        before[number / STEP] = btree_of(&knows)->tree.child.addr;
    }
    for (unsigned number = KEYS / 2 + 1; ix_counts(&splits)[SHERMAN_LEAF_SPLIT] == 0; number += STEP) {
        WORLD_CHECK_EQ(ix_insert(&splits, world_key(number, KEYS), &value), 0);
    }
    for (unsigned number = 0; number < KEYS && counted->moved == 0; number += STEP) {
        WORLD_CHECK_EQ(ix_get(&splits, world_key(number, KEYS), &value), 0);
        if (!dm_addr_equal(before[number / STEP], btree_of(&splits)->tree.child.addr)) {
            counted->moved = number;
        }
    }
    counted->stale_first = trips_of(ctx, &knows, counted->moved);
    counted->stale_then = trips_of(ctx, &knows, counted->moved);
    ix_detach(&splits);
    ix_detach(&knows);
    return 0;
}

static void a_stale_parent_costs_two_reads_once(void **state) {
    (void)state;
    struct world_config config = tree_config(2, "16");
    struct counted counted = {.trips = 0};
    quiet_half_world(&counted.world, &config, KEYS, split_entry, &counted);
    assert_true(counted.moved > 0);
    assert_int_equal(counted.stale_first, 3); /* the old leaf, the parent, the leaf */
    assert_int_equal(counted.stale_then, 1);
}

/* ---- a split that does not end ----------------------------------------------------------------------------------- */

enum { STOPPED_NS = 3000000, HALVES = 2 /* of a leaf and of its parent: one read more for each */ };

struct stopping {
    struct world world;
    unsigned height;
    uint64_t begin, end; /* verbs before and after the insert that split an inner node */
    bool ended;
    struct ix_client client; /* that stops */
    uint64_t most;           /* round trips of one get afterwards */
};

/* Inserts until an inner node is split. */
static void stopping_entry(struct dm_ctx *ctx, void *arg) {
    struct stopping *stopping = arg;
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    stopping->client = world_attach(&stopping->world, 1, ctx, &account);
    int rc = 0;
    for (unsigned number = KEYS / 2 + 1; rc == 0 && ix_counts(&stopping->client)[SHERMAN_INNER_SPLIT] == 0;
         number += STEP) {
        uint64_t value = 1;
        stopping->begin = world_verbs(&account);
        rc = ix_insert(&stopping->client, world_key(number, KEYS), &value);
        stopping->end = world_verbs(&account);
    }
    stopping->ended = rc == 0;
    dm_account_use(ctx, NULL);
    ix_detach(&stopping->client);
}

static void after_stop_entry(struct dm_ctx *ctx, void *arg) {
    struct stopping *stopping = arg;
    struct ix_client client = world_attach(&stopping->world, 0, ctx, NULL);
    dm_sleep(ctx, STOPPED_NS);
    for (unsigned number = 0; number < KEYS; number += STEP) {
        uint64_t trips = trips_of(ctx, &client, number);
        stopping->most = trips > stopping->most ? trips : stopping->most;
    }
    ix_detach(&client);
}

static void stopping_run(struct stopping *stopping, const char *fault) {
    struct world_config config = tree_config(2, "0");
    struct world_pairs pairs;
    *stopping = (struct stopping){.most = 0};
    config.params[2] = (struct dm_setting){"fill", "1"};
    config.settings[0] = (struct dm_setting){"faults", fault};
    world_open(&stopping->world, &config);
    world_load(&stopping->world, world_pairs(&pairs, KEYS, STEP, 8));
    stopping->height = world_verify(&stopping->world).height;
    dm_fabric_measure(stopping->world.fabric);
    world_spawn(&stopping->world, 0, 0, after_stop_entry, stopping);
    world_spawn(&stopping->world, 1, 0, stopping_entry, stopping);
    world_run(&stopping->world);
    if (stopping->client.handle) {
        ix_detach(&stopping->client);
    }
    world_close(&stopping->world);
}

static void a_split_that_stops_anywhere_costs_a_read_for_each_half_that_is_not_linked(void **state) {
    (void)state;
    struct stopping whole, stopped;
    unsigned longer = 0;
    stopping_run(&whole, "");
    assert_true(whole.ended && whole.height >= 3);
    assert_int_equal(whole.most, whole.height);
    for (uint64_t verb = whole.begin + 1; verb <= whole.end; verb++) {
        char fault[40];
        snprintf(fault, sizeof(fault), "stop:client=1,verb=%u", (unsigned)verb);
        stopping_run(&stopped, fault);
        assert_false(stopped.ended);
        assert_true(stopped.most <= stopped.height + HALVES);
        longer += stopped.most > stopped.height;
    }
    assert_true(longer > 1);
}

/* ---- functions that other clients' operations meet seldom -------------------------------------------------------- */

static int contracts_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    struct ix_tree *tree = &btree_of(&client)->tree;
    uint64_t value, low = world_key(0, KEYS), high = world_key(KEYS - STEP, KEYS);
    uint32_t attempts = 0;
    WORLD_CHECK_EQ(ix_get(&client, low, &value), 0);
    WORLD_CHECK_EQ(ix_get(&client, high, &value), 0);
    dm_addr last = tree->child.addr;
    /* A parent is given out only to what it covers. */
    WORLD_CHECK(ix_tree_parent_hold(tree, high) != NULL);
    ix_tree_parent_release(tree);
    WORLD_CHECK(ix_tree_parent_hold(tree, low) == NULL);
    ix_tree_parent_release(tree);
    /* Where a search begins is a hint: a leaf to the right of the key does not have it. */
    dm_addr found;
    WORLD_CHECK_EQ(ix_tree_reach(tree, low, 0, last, &attempts, &found), 0);
    WORLD_CHECK(!dm_addr_equal(found, last));
    WORLD_CHECK(ix_node_head_in(tree->image)->low <= low && low < ix_node_head_in(tree->image)->high);
    WORLD_CHECK_EQ(ix_tree_leave(tree, false, 0), 0);
    ix_detach(&client);
    return 0;
}

static void a_parent_and_a_leaf_are_only_taken_for_keys_that_they_cover(void **state) {
    (void)state;
    struct world world;
    struct world_config config = tree_config(1, "16");
    quiet_half_world(&world, &config, KEYS, contracts_entry, &world);
}

/* ---- a tree that grows ------------------------------------------------------------------------------------------- */

enum { CROWD = 4, EACH = 120 };

struct grower {
    struct world *world;
    unsigned number;
    uint64_t races;
};

static void grower_entry(struct dm_ctx *ctx, void *arg) {
    struct grower *grower = arg;
    struct ix_client client = world_attach(grower->world, grower->number, ctx, NULL);
    for (unsigned i = 0; i < EACH; i++) {
        uint64_t value = i;
        WORLD_CHECK_EQ(ix_insert(&client, world_key(i * CROWD + grower->number, CROWD * EACH), &value), 0);
    }
    grower->races = ix_counts(&client)[SHERMAN_ROOT_RACE];
    ix_detach(&client);
}

/* From one leaf on, on compute nodes that know nothing of each other: some put in a new root at the same time. */
static void a_tree_that_many_make_higher_at_once_loses_nothing(void **state) {
    (void)state;
    uint64_t races = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world_config config = tree_config(CROWD, seed % 2 ? "16" : "1");
        struct grower growers[CROWD];
        struct world world;
        config.params[0] = (struct dm_setting){"node_bytes", "128"};
        config.seed = seed;
        config.mns = 1 + (unsigned)(seed % 2);
        config.settings[0] = (struct dm_setting){"faults", "delay:p=0.1,by=30us"};
        world_begin(&world, &config, NULL);
        for (unsigned i = 0; i < CROWD; i++) {
            growers[i] = (struct grower){.world = &world, .number = i};
            world_spawn(&world, i, 0, grower_entry, &growers[i]);
        }
        world_run(&world);
        struct ix_report report = world_verify(&world);
        assert_int_equal(report.keys, CROWD * EACH);
        for (unsigned i = 0; i < CROWD; i++) {
            races += growers[i].races;
        }
        world_close(&world);
    }
    assert_true(races > 0);
}

/* ---- memory that ends while a tree grows ------------------------------------------------------------------------- */

enum { HIGH = 3, BLOCKS = 8, MEMORY = 256 << 10 };

struct ending {
    struct world *world;
    unsigned roots;   /* new roots, the last of which is put in when memory has nearly ended */
    unsigned inserts; /* before the one that puts it in; 0: counts them */
    unsigned left;    /* so many blocks are left by then */
    int rc;
    uint64_t leaf_splits, root_splits; /* that it made */
};

/* Takes all of the memory node, then gives `left` blocks of a node's size back. */
static void memory_end(struct dm_ctx *ctx, const struct ix_tree *tree, unsigned left) {
    uint32_t bytes = tree->cn->alloc_bytes;
    dm_addr blocks[BLOCKS] = {DM_NULL};
    unsigned count = 0;
    dm_addr addr;
    while (dm_alloc(ctx, 0, bytes, DM_LINE, DM_MEM_INNER, &addr) == 0) {
        blocks[count++ % BLOCKS] = addr;
    }
    WORLD_CHECK(count > BLOCKS);
    for (unsigned i = 0; i < left; i++) {
        dm_free(ctx, blocks[i], bytes, DM_MEM_INNER);
    }
}

static int ending_entry(struct dm_ctx *ctx, void *arg) {
    struct ending *ending = arg;
    struct ix_client client = world_attach(ending->world, 0, ctx, NULL);
    const uint64_t *counts = ix_counts(&client);
    uint64_t value = 1, leaf_splits = 0;
    for (unsigned number = 0; number < KEYS && counts[SHERMAN_ROOT_SPLIT] < ending->roots; number++) {
        if (ending->inserts > 0 && number == ending->inserts) {
            memory_end(ctx, &btree_of(&client)->tree, ending->left);
        }
        leaf_splits = counts[SHERMAN_LEAF_SPLIT];
        ending->rc = ix_insert(&client, world_key(number, KEYS), &value);
        if (ending->inserts > 0 && number == ending->inserts) {
            break;
        }
        WORLD_CHECK_EQ(ending->rc, 0);
        ending->inserts += counts[SHERMAN_ROOT_SPLIT] == ending->roots ? number : 0;
    }
    ending->leaf_splits = counts[SHERMAN_LEAF_SPLIT] - leaf_splits;
    ending->root_splits = counts[SHERMAN_ROOT_SPLIT] + 1 - ending->roots;
    ix_detach(&client);
    return 0;
}

static void ending_run(struct ending *ending) {
    struct world_config config = tree_config(1, "16");
    struct world world;
    config.params[0] = (struct dm_setting){"node_bytes", "128"};
    config.mn_bytes = MEMORY;
    config.chunk_bytes = 4 << 10;
    ending->world = &world;
    world_begin(&world, &config, NULL);
    world_do(&world, 0, ending_entry, ending);
    world_verify(&world);
    world_close(&world);
}

static void a_split_up_to_a_new_root_has_all_its_memory_or_does_not_begin(void **state) {
    (void)state;
    for (unsigned roots = 1; roots <= HIGH; roots++) {
        struct ending whole = {.roots = roots};
        unsigned refused = 0;
        ending_run(&whole);
        assert_int_equal(whole.root_splits, 1);
        for (unsigned left = 0; left < BLOCKS; left++) {
            struct ending ending = {.roots = roots, .inserts = whole.inserts, .left = left};
            ending_run(&ending);
            assert_true(ending.rc == 0 || ending.rc == DM_ERR_NO_MEMORY);
            assert_int_equal(ending.leaf_splits, ending.rc == 0);
            assert_int_equal(ending.root_splits, ending.rc == 0);
            refused += ending.rc != 0;
        }
        /* Half a leaf, half a node of each level above, and the root. */
        assert_in_range(refused, 1, roots + 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_of_two_writes_is_read_again),
        cmocka_unit_test(bytes_that_are_no_node_are_not_followed),
        cmocka_unit_test(a_key_is_not_absent_while_an_entry_is_half_written),
        cmocka_unit_test(a_block_of_another_write_is_looked_up_again),
        cmocka_unit_test(a_scan_returns_a_key_once_that_it_sees_in_two_entries),
        cmocka_unit_test(every_key_costs_as_many_reads_as_levels_are_not_cached),
        cmocka_unit_test(a_stale_parent_costs_two_reads_once),
        cmocka_unit_test(a_split_that_stops_anywhere_costs_a_read_for_each_half_that_is_not_linked),
        cmocka_unit_test(a_parent_and_a_leaf_are_only_taken_for_keys_that_they_cover),
        cmocka_unit_test(a_tree_that_many_make_higher_at_once_loses_nothing),
        cmocka_unit_test(a_split_up_to_a_new_root_has_all_its_memory_or_does_not_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
