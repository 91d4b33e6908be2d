/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients of ROLEX with old tables meet: a model that another client has replaced costs a read or a write a fixed
 * number of round trips once; every write of a leaf, also of one that is used again, raises its version, so that a
 * reader who comes late sees that lines are of two writes; and a write locks the group that a key belongs to now, also
 * if old tables list its leaf in another one.
 */
#include "common/compiler.h"
#include "conformance/quiet.h"
#include "indexes/rolex/client.h"

extern const struct ix_ops ix_ops_rolex;

/* ---- a replaced model -------------------------------------------------------------------------------------------- */

enum { KEYS = 4000, STEP = 4, FIRST = KEYS / 2 };

enum { READER, UPDATER, INSERTER, CLIENTS };

struct stale {
    struct world world;
    uint64_t trips[CLIENTS][2]; /* the first operation behind the replacement, and the next */
    struct kind split;          /* the insert that replaced the model */
};

/* The last loaded key up to number `last` that the inserts have moved to another leaf: it is in the replaced model. */
static unsigned moved_find(struct ix_client *client, const dm_addr *before, unsigned last) {
    const struct rolex_client *own = client->handle;
    for (unsigned number = last / STEP * STEP; number >= FIRST; number -= STEP) {
        const struct rolex_item *item = NULL;
        uint32_t attempts = 0;
        WORLD_CHECK_EQ(rolex_read_leaf(client->handle, world_key(number, KEYS), &attempts, &item), 0);
        if (item && !dm_addr_equal(item->addr, before[number / STEP]) && own->view.is_cached) {
            return number;
        }
    }
    return KEYS;
}

static int stale_entry(struct dm_ctx *ctx, void *arg) {
    struct stale *stale = arg;
    struct ix_client clients[CLIENTS + 1];
    dm_addr before[KEYS / STEP];
    uint64_t value = 1;
    for (unsigned i = 0; i <= CLIENTS; i++) {
        clients[i] = world_attach(&stale->world, i, ctx, NULL);
        quiet_warm(&clients[i], KEYS, 0, STEP, 0);
    }
    for (unsigned number = 0; number < KEYS; number += STEP) {
        const struct rolex_item *item = NULL;
        uint32_t attempts = 0;
        WORLD_CHECK_EQ(rolex_read_leaf(clients[0].handle, world_key(number, KEYS), &attempts, &item), 0);
        before[number / STEP] = item ? item->addr : DM_NULL;
    }
    /* The last client uses the synonyms up. */
    unsigned absent = FIRST;
    for (; ix_counts(&clients[CLIENTS])[ROLEX_MODEL_SPLIT] == 0; absent++) {
        stale->split = (struct kind){0};
        int rc = kind_run(ctx, &stale->split, &clients[CLIENTS], INSERT, world_key(absent, KEYS), &value);
        WORLD_CHECK_EQ(rc, absent % STEP == 0 ? DM_EXISTS : 0);
    }
    absent += absent % STEP == 0;
    unsigned moved = moved_find(&clients[CLIENTS], before, absent);
    WORLD_CHECK(moved < KEYS);
    for (unsigned i = 0; i < 2; i++) {
        struct kind kinds[CLIENTS];
        memset(kinds, 0, sizeof(kinds));
        WORLD_CHECK_EQ(kind_run(ctx, &kinds[READER], &clients[READER], GET, world_key(moved, KEYS), &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &kinds[UPDATER], &clients[UPDATER], UPDATE, world_key(moved, KEYS), &value), 0);
        WORLD_CHECK_EQ(kind_run(ctx, &kinds[INSERTER], &clients[INSERTER], INSERT, world_key(absent, KEYS), &value),
                       i == 0 ? 0 : DM_EXISTS);
        for (unsigned kind = 0; kind < CLIENTS; kind++) {
            stale->trips[kind][i] = kinds[kind].account.round_trips;
        }
    }
    for (unsigned i = 0; i <= CLIENTS; i++) {
        ix_detach(&clients[i]);
    }
    return 0;
}

static void a_replaced_model_costs_readers_and_writers_a_few_round_trips_once(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_rolex);
    struct stale stale;
    struct world_pairs pairs;
    config.cns = config.clients = CLIENTS + 1;
    config.params[0] = (struct dm_setting){"synonyms", "4"};
    config.params[1] = (struct dm_setting){"retrain", "off"};
    config.params[2] = (struct dm_setting){"model_leaves", "16"};
    quiet_world(&stale.world, &config, world_pairs(&pairs, KEYS, STEP, 8), stale_entry, &stale);
    /* All of them see at their first read that the model is retired; then they read the fork to the new models, the
     * heads of these, the tables of one, and its leaves. A write locks and unlocks, too. */
    static const uint64_t expected[CLIENTS][2] = {[READER] = {12, 1}, [UPDATER] = {14, 3}, [INSERTER] = {14, 3}};
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_int_equal(stale.trips[i][0], expected[i][0]);
        assert_int_equal(stale.trips[i][1], expected[i][1]);
    }
    /* Of which the last two publish the new models: the parent's word, and then what clients of the old one read. */
    assert_int_equal(stale.split.account.round_trips, 28);
}

/* ---- versions of leaves ------------------------------------------------------------------------------------------ */

enum { LEAVES = 256, ROUNDS = 4, ROUND_KEYS = 60, WIRE = 4096 };

struct leaves {
    struct world *world;
    dm_addr addrs[LEAVES];
    unsigned char *was[LEAVES];
    unsigned count;
    unsigned changed, kept; /* leaves that an operation has changed; those that kept their version */
};

static void leaves_add(struct leaves *leaves, const struct rolex_client *client) {
    for (uint32_t i = 0; i < client->item_count; i++) {
        unsigned at = 0;
        while (at < leaves->count && !dm_addr_equal(leaves->addrs[at], client->items[i].addr)) {
            at++;
        }
        if (at == leaves->count && at < LEAVES) {
            leaves->addrs[at] = client->items[i].addr;
            leaves->was[at] = calloc(1, WIRE);
            leaves->count++;
        }
    }
}

/* Compares each known leaf with what it was before the operation. */
static void leaves_compare(struct dm_ctx *ctx, struct leaves *leaves, const struct rolex_client *client, void *wire) {
    uint32_t bytes = client->env.layout.wire_bytes;
    for (unsigned i = 0; i < leaves->count; i++) {
        WORLD_CHECK_EQ(dm_read(ctx, leaves->addrs[i], wire, bytes), 0);
        if (memcmp(wire, leaves->was[i], bytes) != 0) {
            leaves->changed++;
            leaves->kept += ix_lines_node_version(wire) == ix_lines_node_version(leaves->was[i]);
            memcpy(leaves->was[i], wire, bytes);
        }
    }
}

static int versions_entry(struct dm_ctx *ctx, void *arg) {
    struct leaves *leaves = arg;
    struct ix_client client = world_attach(leaves->world, 0, ctx, NULL);
    const struct rolex_client *own = client.handle;
    void *wire = dm_local_alloc(ctx, WIRE);
    WORLD_CHECK(own->env.layout.wire_bytes <= WIRE);
    for (unsigned n = 0; n < 2 * ROUNDS * ROUND_KEYS; n++) {
        uint64_t value = n, key = ((uint64_t)(n / ROUND_KEYS / 2) << 40) + 1 + n % ROUND_KEYS;
        bool removes = n / ROUND_KEYS % 2 == 1;
        WORLD_CHECK_EQ(removes ? ix_remove(&client, key) : ix_insert(&client, key, &value), 0);
        leaves_compare(ctx, leaves, own, wire);
        WORLD_CHECK_EQ(ix_get(&client, key, &value), removes ? DM_NOT_FOUND : 0);
        unsigned changed = leaves->changed, kept = leaves->kept;
        leaves_add(leaves, own);
        leaves_compare(ctx, leaves, own, wire);
        leaves->changed = changed; /* those that are new here */
        leaves->kept = kept;
    }
    WORLD_CHECK(ix_counts(&client)[ROLEX_REUSED] > 4);
    ix_detach(&client);
    return 0;
}

static void every_write_of_a_leaf_raises_its_version_also_when_it_is_used_again(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_rolex);
    struct world world;
    static struct leaves leaves;
    leaves = (struct leaves){.world = &world};
    config.expected_keys = 100000;
    config.params[0] = (struct dm_setting){"delta", "4"};
    world_begin(&world, &config, NULL);
    world_do(&world, 0, versions_entry, &leaves);
    assert_int_equal(world_verify(&world).keys, 0);
    world_close(&world);
    assert_true(leaves.changed > ROUNDS * ROUND_KEYS);
    assert_int_equal(leaves.kept, 0);
    for (unsigned i = 0; i < leaves.count; i++) {
        free(leaves.was[i]);
    }
}

/* ---- a leaf that another group uses now ---------------------------------------------------------------------------
 */

enum { PER_LEAF = 4, GROUP = 40, GROUP_KEYS = 1600, STALE_TRIES = 100 };

/* The loaded key number `i` of a group: every fourth one is loaded, and a leaf has four of them. */
static uint64_t group_key(unsigned group, unsigned i) {
    return world_key((uint64_t)(group * PER_LEAF + i) * STEP, GROUP_KEYS);
}

/* An absent key between the first two of a group. Its insert moves the upper half of the leaf to a synonym. */
static uint64_t group_absent(unsigned group) {
    return world_key((uint64_t)group * PER_LEAF * STEP + 1, GROUP_KEYS);
}

/* The leaf of key 2 of a group, which the group's synonym has after a split; `client` knows the tables then. */
static dm_addr moved_leaf(struct ix_client *client, unsigned group, uint32_t *in) {
    const struct rolex_item *item = NULL;
    uint32_t attempts = 0;
    WORLD_CHECK_EQ(rolex_read_leaf(client->handle, group_key(group, 2), &attempts, &item), 0);
    *in = item ? item->leaf : 0;
    return item ? item->addr : DM_NULL;
}

static int regrouped_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client old = world_attach(world, 0, ctx, NULL), other = world_attach(world, 1, ctx, NULL);
    const struct rolex_client *own = other.handle;
    uint64_t value = 1, *words = dm_local_alloc(ctx, 2 * sizeof(*words));
    uint32_t before, after;
    WORLD_CHECK_EQ(ix_insert(&other, group_absent(GROUP), &value), 0);
    dm_addr leaf = moved_leaf(&old, GROUP, &before);
    /* The other client empties the synonym, and the next group takes the same leaf. */
    WORLD_CHECK_EQ(ix_remove(&other, group_key(GROUP, 2)), 0);
    WORLD_CHECK_EQ(ix_remove(&other, group_key(GROUP, 3)), 0);
    WORLD_CHECK_EQ(ix_insert(&other, group_absent(GROUP + 1), &value), 0);
    WORLD_CHECK(dm_addr_equal(moved_leaf(&other, GROUP + 1, &after), leaf));
    WORLD_CHECK_EQ(after, before + 1);
    WORLD_CHECK(dm_addr_equal(moved_leaf(&old, GROUP + 1, &after), leaf));
    WORLD_CHECK_EQ(after, before); /* old tables list it in the first group */
    /* While a third client holds the lock of the key's group, the key is not changed. */
    dm_addr entry = dm_addr_add(rolex_table(own->view.model, &own->view.head), 8 * (uint64_t)(before + 1));
    WORLD_CHECK_EQ(dm_read(ctx, entry, &words[0], sizeof(words[0])), 0);
    WORLD_CHECK(!(words[0] & ROLEX_LOCK));
    words[1] = words[0] | ROLEX_LOCK;
    WORLD_CHECK_EQ(dm_write(ctx, entry, &words[1], sizeof(words[1])), 0);
    value = 2;
    WORLD_CHECK_EQ(ix_update(&old, group_key(GROUP + 1, 2), &value), DM_ERR_RETRY_LIMIT);
    WORLD_CHECK_EQ(ix_remove(&old, group_key(GROUP + 1, 3)), DM_ERR_RETRY_LIMIT);
    WORLD_CHECK_EQ(dm_write(ctx, entry, &words[0], sizeof(words[0])), 0);
    WORLD_CHECK_EQ(ix_update(&old, group_key(GROUP + 1, 2), &value), 0);
    WORLD_CHECK_EQ(ix_remove(&old, group_key(GROUP + 1, 3)), 0);
    WORLD_CHECK_EQ(ix_get(&other, group_key(GROUP + 1, 2), &value), 0);
    WORLD_CHECK_EQ(value, 2);
    ix_detach(&old);
    ix_detach(&other);
    return 0;
}

static void a_write_locks_the_group_of_its_key_not_one_where_old_tables_list_the_leaf(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_rolex);
    struct world world;
    struct world_pairs pairs;
    config.cns = config.clients = 2;
    config.retry_limit = STALE_TRIES;
    config.params[0] = (struct dm_setting){"delta", "4"};
    config.params[1] = (struct dm_setting){"retrain", "off"};
    quiet_world(&world, &config, world_pairs(&pairs, GROUP_KEYS, STEP, 8), regrouped_entry, &world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replaced_model_costs_readers_and_writers_a_few_round_trips_once),
        cmocka_unit_test(every_write_of_a_leaf_raises_its_version_also_when_it_is_used_again),
        cmocka_unit_test(a_write_locks_the_group_of_its_key_not_one_where_old_tables_list_the_leaf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
