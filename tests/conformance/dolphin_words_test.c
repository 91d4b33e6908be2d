/* SPDX-License-Identifier: Apache-2.0
 *
 * Dolphin's leaves word by word: states that last for some hundred nanoseconds, or for ever after a client has stopped,
 * and that random worlds rarely meet. The test writes them itself.
 */
#include "conformance/quiet.h"
#include "indexes/dolphin/dolphin.h"

extern const struct ix_ops ix_ops_dolphin;

enum { KEYS = 40, HALF_NS = 100000, WHOLE_NS = 160000 };

static dm_addr leaf_of(struct ix_client *client, uint64_t key) {
    struct dolphin_descent descent = {0};
    struct dolphin_target target;
    WORLD_CHECK_EQ(dolphin_descend(client->handle, key, &descent, &target), 0);
    return dolphin_word_addr(target.child);
}

/* ---- a leaf of which a part is that of the next version -----------------------------------------------------------
 */

static void half_writer(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    struct dolphin_layout layout = dolphin_layout_make(1024, 8, true, true);
    char *leaf = dm_local_alloc(ctx, layout.leaf_bytes), *next = dm_local_alloc(ctx, layout.leaf_bytes);
    dm_addr addr = leaf_of(&client, 20);
    WORLD_CHECK_EQ(dm_read(ctx, addr, leaf, layout.keys_bytes), 0);
    memcpy(next, leaf, layout.keys_bytes);
    int left = dolphin_leaf_find(&layout, leaf, 20), right = dolphin_leaf_find(&layout, leaf, 30);
    WORLD_CHECK(left >= 0 && right >= 0 && dolphin_word_offset((unsigned)left) >= DM_LINE &&
                dolphin_word_offset((unsigned)right) >= DM_LINE);
    uint32_t version = dolphin_leaf_head_in(leaf)->version + 1;
    dolphin_leaf_words(next)[left] = dolphin_entry(30, DOLPHIN_LIVE, 0, version);
    dolphin_leaf_words(next)[right] = dolphin_entry(20, DOLPHIN_LIVE, 0, version);
    world_sleep_until(ctx, HALF_NS);
    WORLD_CHECK_EQ(dm_write(ctx, dm_addr_add(addr, DM_LINE), next + DM_LINE, layout.keys_bytes - DM_LINE), 0);
    world_sleep_until(ctx, WHOLE_NS);
    WORLD_CHECK_EQ(dm_write(ctx, dm_addr_add(addr, DM_LINE), leaf + DM_LINE, layout.keys_bytes - DM_LINE), 0);
    ix_detach(&client);
}

static void half_reader(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 0, ctx, NULL);
    uint64_t value = 0;
    world_sleep_until(ctx, HALF_NS + 10000);
    WORLD_CHECK_EQ(ix_get(&client, 20, &value), 0);
    WORLD_CHECK_EQ(world_write_of(20, &value, sizeof(value)), 0);
    WORLD_CHECK(dm_now(ctx) > WHOLE_NS);
    ix_detach(&client);
}

static void an_entry_that_has_moved_is_not_read_with_the_value_of_its_predecessor(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_dolphin);
    struct world world;
    struct world_pairs pairs;
    config.clients = 2;
    world_begin(&world, &config, world_dense(&pairs, KEYS, config.value_bytes));
    world_spawn(&world, 0, 0, half_writer, &world);
    world_spawn(&world, 0, 1, half_reader, &world);
    world_run(&world);
    world_close(&world);
}

/* ---- an entry that a client has reserved --------------------------------------------------------------------------
 */

struct reserved {
    struct world *world;
    struct kind remove;
};

static int reserved_entry(struct dm_ctx *ctx, void *arg) {
    struct reserved *reserved = arg;
    struct ix_client client = world_attach(reserved->world, 0, ctx, NULL);
    struct dolphin_layout layout = dolphin_layout_make(1024, 8, true, true);
    char *leaf = dm_local_alloc(ctx, layout.leaf_bytes);
    uint64_t key = UINT64_C(1) << 40, value = key;
    WORLD_CHECK_EQ(ix_insert(&client, key, &value), 0);
    WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
    dm_addr addr = leaf_of(&client, key);
    WORLD_CHECK_EQ(dm_read(ctx, addr, leaf, layout.keys_bytes), 0);
    unsigned free = dolphin_entry_state(dolphin_leaf_words_in(leaf)[0]) == DOLPHIN_FREE ? 0 : 1;
    uint64_t *word = &dolphin_leaf_words(leaf)[free];
    *word = dolphin_entry(7, DOLPHIN_RESERVED, 0, dolphin_leaf_head_in(leaf)->version);
    WORLD_CHECK_EQ(dm_write(ctx, dm_addr_add(addr, dolphin_word_offset(free)), word, sizeof(*word)), 0);
    WORLD_CHECK_EQ(kind_run(ctx, &reserved->remove, &client, REMOVE, key, NULL), 0);
    WORLD_CHECK_EQ(ix_counts(&client)[DOLPHIN_LEAF_MERGE], 0);
    ix_detach(&client);
    return 0;
}

static void a_leaf_with_an_insert_in_it_is_not_empty(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_dolphin);
    struct world world;
    struct world_pairs pairs;
    struct reserved reserved = {.world = &world};
    world_begin(&world, &config, world_dense(&pairs, KEYS, config.value_bytes));
    world_do(&world, 0, reserved_entry, &reserved);
    world_close(&world);
    assert_true(kind_took(&reserved.remove, 2));
}

/* ---- a neighbour that another change left half done ---------------------------------------------------------------
 */

struct neighbour {
    struct world *world;
    bool is_dead; /* a merge marked it, and its next write was in error; else a split did not link its other half */
};

static int neighbour_entry(struct dm_ctx *ctx, void *arg) {
    const struct neighbour *neighbour = arg;
    struct ix_client client = world_attach(neighbour->world, 0, ctx, NULL);
    struct dolphin_leaf_head *own = dm_local_alloc(ctx, sizeof(*own)), *left = dm_local_alloc(ctx, sizeof(*left));
    WORLD_CHECK_EQ(dm_read(ctx, leaf_of(&client, KEYS / 2), own, sizeof(*own)), 0);
    dm_addr addr = leaf_of(&client, own->min - 1);
    WORLD_CHECK_EQ(dm_read(ctx, addr, left, sizeof(*left)), 0);
    WORLD_CHECK_EQ(left->max + 1, own->min);
    left->dead = neighbour->is_dead;
    left->max -= !neighbour->is_dead;
    WORLD_CHECK_EQ(dm_write(ctx, addr, left, sizeof(*left)), 0);
    for (uint64_t key = own->min; key <= own->max; key++) {
        WORLD_CHECK_EQ(ix_remove(&client, key), 0);
    }
    WORLD_CHECK_EQ(ix_counts(&client)[DOLPHIN_LEAF_MERGE], 0);
    for (uint64_t key = own->min; key <= own->max; key++) {
        WORLD_CHECK_EQ(ix_insert(&client, key, &key), 0);
    }
    ix_detach(&client);
    return 0;
}

static void a_range_is_only_given_to_a_live_leaf_that_ends_where_it_begins(void **state) {
    (void)state;
    for (unsigned is_dead = 0; is_dead < 2; is_dead++) {
        struct world_config config = world_least(&ix_ops_dolphin);
        struct world world;
        struct world_pairs pairs;
        struct neighbour neighbour = {.world = &world, .is_dead = is_dead};
        config.params[0] = (struct dm_setting){"leaf_bytes", "128"};
        config.retry_limit = 100;
        world_begin(&world, &config, world_dense(&pairs, KEYS, config.value_bytes));
        world_do(&world, 0, neighbour_entry, &neighbour);
        world_close(&world);
    }
}

/* ---- the cache after growth ----------------------------------------------------------------------------------------
 */

enum { GROWN = 256 };

static uint64_t grown_key(unsigned n) {
    return UINT64_C(0x1122334400000000) | (uint64_t)((n * 167 + 5) % GROWN) << 24;
}

static int growing_entry(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 0, ctx, NULL);
    for (unsigned n = 0; n < GROWN; n++) {
        uint64_t key = grown_key(n);
        WORLD_CHECK_EQ(ix_insert(&client, key, &key), 0);
    }
    WORLD_CHECK_EQ(ix_counts(&client)[DOLPHIN_GROW_256], 1);
    ix_detach(&client);
    return 0;
}

static int reading_entry(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 1, ctx, NULL);
    for (unsigned n = 0; n < GROWN; n++) {
        uint64_t key = grown_key(n), value;
        WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
        WORLD_CHECK_EQ(value, key);
    }
    ix_detach(&client);
    return 0;
}

static void nodes_that_larger_ones_replaced_leave_the_cache_of_who_replaced_them(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_dolphin);
    struct world world;
    config.cns = 2;
    config.clients = 2;
    world_begin(&world, &config, NULL);
    world_do(&world, 0, growing_entry, &world);
    world_do(&world, 1, reading_entry, &world);
    uint64_t grown = ix_cache_bytes(config.ops, world.cns[0]), fresh = ix_cache_bytes(config.ops, world.cns[1]);
    assert_true(fresh > 0);
    assert_int_equal(grown, fresh);
    world_close(&world);
}

/* A client's copy of the node above may have left the cache since its descent. Then no comparison of an older with a
 * newer copy of that node shows that the replaced one is old. */
static int uncached_entry(struct dm_ctx *ctx, void *arg) {
    struct ix_client client = world_attach(arg, 0, ctx, NULL);
    struct dolphin_client *own = client.handle;
    uint64_t *head = dm_local_alloc(ctx, sizeof(struct dolphin_head)), value = 0, other = UINT64_C(0x1122990000000000);
    struct dolphin_descent descent = {0};
    struct dolphin_target target;
    struct dolphin_piece piece;
    uint32_t attempts = 0;
    WORLD_CHECK_EQ(ix_insert(&client, other, &other), 0);
    for (unsigned n = 0; n < dolphin_capacity(DOLPHIN_N4); n++) {
        uint64_t key = grown_key(n);
        WORLD_CHECK_EQ(ix_insert(&client, key, &key), 0);
    }
    uint64_t key = grown_key(dolphin_capacity(DOLPHIN_N4));
    WORLD_CHECK_EQ(dolphin_descend(own, key, &descent, &target), 0);
    WORLD_CHECK(target.is_absent && target.child == 0);
    unsigned byte = dolphin_byte(key, dolphin_word_depth(target.parent));
    WORLD_CHECK(dolphin_cache_find(own, target.parent, byte, &piece));
    WORLD_CHECK_EQ(dm_read(ctx, dolphin_word_addr(target.parent), head, sizeof(struct dolphin_head)), 0);
    uint64_t above = head[DOLPHIN_PARENT_OFFSET / sizeof(uint64_t)];
    WORLD_CHECK_EQ(dolphin_word_type(above), DOLPHIN_N4);
    dolphin_cache_drop(own, above);
    WORLD_CHECK_EQ(dolphin_new_leaf(own, key, &key, &target, &attempts), 0);
    WORLD_CHECK_EQ(ix_counts(&client)[DOLPHIN_GROW_16], 1);
    WORLD_CHECK(!dolphin_cache_find(own, target.parent, byte, &piece));
    WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
    WORLD_CHECK_EQ(value, key);
    ix_detach(&client);
    return 0;
}

static void a_replaced_node_leaves_the_cache_even_if_the_node_above_is_not_there(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_dolphin);
    struct world world;
    world_begin(&world, &config, NULL);
    world_do(&world, 0, uncached_entry, &world);
    assert_int_equal(world_verify(&world).keys, dolphin_capacity(DOLPHIN_N4) + 2);
    world_close(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_that_has_moved_is_not_read_with_the_value_of_its_predecessor),
        cmocka_unit_test(a_leaf_with_an_insert_in_it_is_not_empty),
        cmocka_unit_test(a_range_is_only_given_to_a_live_leaf_that_ends_where_it_begins),
        cmocka_unit_test(nodes_that_larger_ones_replaced_leave_the_cache_of_who_replaced_them),
        cmocka_unit_test(a_replaced_node_leaves_the_cache_even_if_the_node_above_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
