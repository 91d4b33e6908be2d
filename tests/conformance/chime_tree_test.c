/* SPDX-License-Identifier: Apache-2.0
 *
 * What CHIME promises about leaves that are half-written, half-split or merged: what readers wait for, how many round
 * trips a split over memory nodes and a merge take, and that the lock word points at the largest key.
 */
#include "conformance/index_damage.h"
#include "conformance/index_split.h"
#include "conformance/quiet.h"
#include "indexes/chime/chime.h"

extern const struct ix_ops ix_ops_chime;

enum { KEYS = 2000, STEP = 2 };

static struct chime_client *own(struct ix_client *client) {
    return client->handle;
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

enum kind_of_damage { DAMAGE_ENTRIES, DAMAGE_NODE, DAMAGE_HOP };
enum { DENSE_FIRST = 5000, DENSE_KEYS = 300, DENSE_SCAN = 3, JUDGED = 12 };

struct scene {
    struct world world;
    struct damage damage;
    enum kind_of_damage kind;
    struct chime_layout layout;
    unsigned home; /* whose hop bitmap gets a bit more */
};

/* The version of each entry alone, as if the rest of it had not been written yet; of entries within one line, the
 * version of the whole leaf, as if that line were of another write; or a hop bitmap. */
static void spoil(void *arg, unsigned char *bytes) {
    const struct scene *scene = arg;
    const struct chime_layout *layout = &scene->layout;
    if (scene->kind == DAMAGE_HOP) {
        /* Bitmaps have at most 8 bits here. */
        uint32_t bitmap = ix_lines_wire_offset(chime_entry_offset(layout, scene->home) + 1);
        bytes[bitmap] = (unsigned char)(bytes[bitmap] ^ ((1U << layout->hood) - 1));
        return;
    }
    for (unsigned i = 0; i < layout->span; i++) {
        uint32_t offset = chime_entry_offset(layout, i);
        bool within = ix_lines_span(offset, layout->entry_bytes).bytes == layout->entry_bytes;
        if ((scene->kind == DAMAGE_NODE) == within) {
            uint32_t version = ix_lines_wire_offset(offset);
            bytes[version] = (unsigned char)(bytes[version] + (scene->kind == DAMAGE_NODE ? 0x10 : 1));
        }
    }
}

static void absent_reader(struct dm_ctx *ctx, void *arg) {
    struct scene *scene = arg;
    struct ix_client client = world_attach(&scene->world, 0, ctx, NULL);
    unsigned waited = 0;
    scene->layout = own(&client)->cn->layout;
    for (unsigned i = 0; i < JUDGED; i++) {
        uint64_t value, key = world_key(1 + 50 * STEP * i, KEYS);
        WORLD_CHECK_EQ(ix_get(&client, key, &value), DM_NOT_FOUND);
        damage_begin(ctx, &scene->damage, own(&client)->tree.child.addr, scene->layout.used_bytes);
        WORLD_CHECK_EQ(ix_get(&client, key, &value), DM_NOT_FOUND);
        waited += scene->damage.is_mended;
        while (!dm_addr_is_null(scene->damage.addr)) {
            dm_sleep(ctx, DAMAGE_STEP_NS);
        }
    }
    /* Not every neighbourhood has an entry of either kind. */
    WORLD_CHECK(waited > JUDGED / 2);
    scene->damage.ended = true;
    ix_detach(&client);
}

/* Scans of dense keys read the neighbourhoods of those alone; the bitmap of each of them counts. */
static void dense_reader(struct dm_ctx *ctx, void *arg) {
    struct scene *scene = arg;
    struct ix_client client = world_attach(&scene->world, 0, ctx, NULL);
    unsigned judged[DENSE_SCAN] = {0};
    scene->layout = own(&client)->cn->layout;
    for (uint64_t key = DENSE_FIRST; key < DENSE_FIRST + DENSE_KEYS; key++) {
        WORLD_CHECK_EQ(ix_insert(&client, key, &key), 0);
    }
    for (uint64_t first = DENSE_FIRST; first < DENSE_FIRST + DENSE_KEYS - DENSE_SCAN; first++) {
        unsigned which = (unsigned)(first % DENSE_SCAN);
        uint64_t keys[DENSE_SCAN], values[DENSE_SCAN], before = ix_counts(&client)[CHIME_SCAN_PART];
        uint32_t found;
        bool alone = true;
        WORLD_CHECK_EQ(ix_scan(&client, first, DENSE_SCAN, keys, values, &found), 0);
        dm_addr leaf = DM_NULL;
        scene->home = chime_home(&scene->layout, first + which);
        for (unsigned i = 0; i < DENSE_SCAN; i++) {
            uint64_t value;
            WORLD_CHECK_EQ(ix_get(&client, first + i, &value), 0);
            alone = alone && (i == 0 || dm_addr_equal(leaf, own(&client)->tree.child.addr)) &&
                    (i == which || chime_home(&scene->layout, first + i) != scene->home);
            leaf = own(&client)->tree.child.addr;
        }
        if (!alone || ix_counts(&client)[CHIME_SCAN_PART] == before || judged[which] == JUDGED) {
            continue;
        }
        damage_begin(ctx, &scene->damage, leaf, scene->layout.used_bytes);
        WORLD_CHECK_EQ(ix_scan(&client, first, DENSE_SCAN, keys, values, &found), 0);
        damage_end(ctx, &scene->damage);
        judged[which]++;
    }
    for (unsigned i = 0; i < DENSE_SCAN; i++) {
        WORLD_CHECK(judged[i] > 0);
    }
    scene->damage.ended = true;
    ix_detach(&client);
}

static void scene_run(enum kind_of_damage kind, void (*reader)(struct dm_ctx *ctx, void *arg)) {
    struct world_config config = world_least(&ix_ops_chime);
    struct scene scene = {.kind = kind};
    struct world_pairs pairs;
    config.cns = config.clients = 2;
    config.params[0] = (struct dm_setting){"speculative", "off"};
    scene.damage = (struct damage){.spoil = spoil, .arg = &scene};
    world_open(&scene.world, &config);
    if (reader == absent_reader) {
        world_load(&scene.world, world_pairs(&pairs, KEYS, STEP, 8));
    }
    dm_fabric_measure(scene.world.fabric);
    world_spawn(&scene.world, 0, 0, reader, &scene);
    world_spawn(&scene.world, 1, 0, damage_entry, &scene.damage);
    world_run(&scene.world);
    world_verify(&scene.world);
    world_close(&scene.world);
}

static void a_key_is_not_absent_from_a_neighbourhood_of_two_writes(void **state) {
    (void)state;
    scene_run(DAMAGE_ENTRIES, absent_reader);
    scene_run(DAMAGE_NODE, absent_reader);
}

static void the_hop_bitmap_of_every_key_of_a_part_is_compared(void **state) {
    (void)state;
    scene_run(DAMAGE_HOP, dense_reader);
}

/* ---- the lock word ----------------------------------------------------------------------------------------------- */

static int largest_entry(struct dm_ctx *ctx, void *arg) {
    struct world *world = arg;
    struct ix_client client = world_attach(world, 0, ctx, NULL);
    struct chime_client *chime = own(&client);
    const struct chime_layout *layout = &chime->cn->layout;
    uint64_t *word = dm_local_alloc(ctx, sizeof(uint64_t));
    for (unsigned i = 0; i < KEYS; i++) {
        uint64_t key = dm_mix64(i) >> 1, value = i, largest = 0;
        WORLD_CHECK_EQ(ix_insert(&client, key, &value), 0);
        WORLD_CHECK_EQ(ix_get(&client, key, &value), 0);
        dm_addr leaf = chime->tree.child.addr;
        WORLD_CHECK_EQ(dm_read(ctx, chime_leaf_word(chime->cn, leaf), word, sizeof(*word)), 0);
        WORLD_CHECK_EQ(chime_read_part(chime, &chime->leaf, leaf, 0, layout->span), 0);
        for (unsigned at = 0; at < layout->span; at++) {
            uint64_t here = chime_key(layout, chime->leaf.image, at);
            largest = here != CHIME_NO_KEY && here > largest ? here : largest;
        }
        WORLD_CHECK_EQ(chime_key(layout, chime->leaf.image, chime_word_largest(layout, *word)), largest);
    }
    ix_detach(&client);
    return 0;
}

/* Where inserts read all of the leaf the position is no hint, as long as nothing is deleted. */
static void the_lock_word_points_at_the_largest_key(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    struct world world;
    config.params[0] = (struct dm_setting){"vacancy", "none"};
    config.params[1] = (struct dm_setting){"span", "16"};
    config.params[2] = (struct dm_setting){"neighbourhood", "4"};
    world_begin(&world, &config, NULL);
    world_do(&world, 0, largest_entry, &world);
    world_verify(&world);
    world_close(&world);
}

/* ---- round trips of structure changes ---------------------------------------------------------------------------- */

struct changes {
    struct world *world;
    uint64_t most[2]; /* round trips of a split: both halves on one memory node, or on two */
    unsigned count[2];
    uint64_t merge_most;
    unsigned merges;
};

static int changes_entry(struct dm_ctx *ctx, void *arg) {
    struct changes *changes = arg;
    struct ix_client client = world_attach(changes->world, 0, ctx, NULL);
    const struct ix_tree *tree = &own(&client)->tree;
    uint64_t value = 1;
    quiet_warm(&client, KEYS, 0, STEP, 0);
    for (unsigned i = 1; i < KEYS; i += STEP) {
        uint64_t splits = ix_counts(&client)[CHIME_LEAF_SPLIT], inner = ix_counts(&client)[CHIME_INNER_SPLIT];
        struct kind insert = {0};
        WORLD_CHECK_EQ(kind_run(ctx, &insert, &client, INSERT, world_key(i, KEYS), &value), 0);
        if (ix_counts(&client)[CHIME_LEAF_SPLIT] == splits + 1 && ix_counts(&client)[CHIME_INNER_SPLIT] == inner &&
            insert.account.verbs[DM_VERB_CALL] == 0) {
            dm_addr left = tree->child.addr, right = split_right_of(tree, left);
            unsigned apart = dm_addr_node(left) != dm_addr_node(right);
            uint64_t trips = insert.account.round_trips - insert.account.verbs[DM_VERB_READ];
            WORLD_CHECK(!dm_addr_is_null(right));
            changes->count[apart]++;
            changes->most[apart] = trips > changes->most[apart] ? trips : changes->most[apart];
        }
    }
    for (unsigned i = 0; i < KEYS; i++) {
        uint64_t merges = ix_counts(&client)[CHIME_LEAF_MERGE];
        struct kind removal = {0};
        WORLD_CHECK_EQ(kind_run(ctx, &removal, &client, REMOVE, world_key(i, KEYS), &value), 0);
        if (ix_counts(&client)[CHIME_LEAF_MERGE] > merges) {
            uint64_t trips = removal.account.round_trips - removal.account.verbs[DM_VERB_READ];
            changes->merges++;
            changes->merge_most = trips > changes->merge_most ? trips : changes->merge_most;
        }
    }
    ix_detach(&client);
    return 0;
}

/* Without the reads; one of two verbs is counted as two, so some have one round trip less. A split locks, writes with
 * the unlock, and does the same to the parent; over two memory nodes it waits for its right half. A deletion locks and
 * writes; its merge locks two leaves and the parent, writes the parent, and then waits for the leaf that inherits the
 * keys before the other one dies, and for that before it unlocks. */
static void a_split_over_memory_nodes_and_a_merge_wait_for_what_they_name(void **state) {
    (void)state;
    struct world_config config = world_least(&ix_ops_chime);
    struct world world;
    struct world_pairs pairs;
    struct changes changes = {.world = &world};
    config.mns = 2;
    quiet_world(&world, &config, world_pairs(&pairs, KEYS, STEP, 8), changes_entry, &changes);
    assert_true(changes.count[0] > 0 && changes.count[1] > 0 && changes.merges > 0);
    assert_int_equal(changes.most[0], 4);
    assert_int_equal(changes.most[1], 4 + 1);
    assert_int_equal(changes.merge_most, 2 + 3 + 1 + 3);
}

/* ---- a merge beside a split that is not linked yet --------------------------------------------------------------- */

enum { MERGE_KEYS = 240, MERGE_STEP = 2, REMOVED = 24, PAUSE_US = 3000 };

struct beside {
    struct world world;
    uint64_t begin, end; /* verbs before and after the insert that splits a leaf */
    unsigned key;        /* that it inserts */
    bool splits, ended;  /* the other client may begin */
    unsigned event;      /* the counter of the split that it waits for */
    bool there[MERGE_KEYS];
    unsigned wrong;
    uint64_t merges;
};

/* Inserts in the middle until a leaf, or an inner node, is split. */
static void beside_splitter(struct dm_ctx *ctx, void *arg) {
    struct beside *beside = arg;
    struct dm_account account = {0};
    dm_account_use(ctx, &account);
    struct ix_client client = world_attach(&beside->world, 1, ctx, &account);
    for (unsigned number = MERGE_KEYS / 2 + 1; number < MERGE_KEYS && ix_counts(&client)[beside->event] == 0;
         number += MERGE_STEP) {
        uint64_t value = 1;
        beside->begin = world_verbs(&account);
        beside->key = number;
        beside->splits = number >= beside->end; /* the key of a run without a pause */
        WORLD_CHECK_EQ(ix_insert(&client, world_key(number, MERGE_KEYS), &value), 0);
        beside->there[number] = true;
    }
    beside->end = world_verbs(&account);
    beside->ended = true;
    dm_account_use(ctx, NULL);
    ix_detach(&client);
}

/* Those that may be inserted meanwhile are not judged: every second one from `from` on. */
static void beside_get_all(struct beside *beside, struct ix_client *client, unsigned from) {
    for (unsigned number = 0; number < MERGE_KEYS; number++) {
        uint64_t value;
        int rc = ix_get(client, world_key(number, MERGE_KEYS), &value);
        bool judged = number < from || (number - from) % MERGE_STEP != 0;
        beside->wrong += judged && rc != (beside->there[number] ? 0 : DM_NOT_FOUND);
    }
}

/* Empties the left half, so that its leaf wants to be merged, while the other client rests in its split. */
static void beside_remover(struct dm_ctx *ctx, void *arg) {
    struct beside *beside = arg;
    struct ix_client client = world_attach(&beside->world, 0, ctx, NULL);
    while (!beside->splits && !beside->ended) {
        dm_sleep(ctx, 1000);
    }
    dm_sleep(ctx, 50000);
    unsigned splitting = beside->key;
    for (unsigned number = splitting - REMOVED; number < splitting + REMOVED; number++) {
        if (beside->there[number] && number != splitting) {
            WORLD_CHECK_EQ(ix_remove(&client, world_key(number, MERGE_KEYS)), 0);
            beside->there[number] = false;
        }
    }
    beside_get_all(beside, &client, splitting);
    dm_sleep(ctx, UINT64_C(2000) * PAUSE_US);
    beside_get_all(beside, &client, MERGE_KEYS);
    beside->merges = ix_counts(&client)[CHIME_LEAF_MERGE];
    ix_detach(&client);
}

/* Reads all keys while the other client rests, from memory, as a compute node that knows nothing. */
static void beside_reader(struct dm_ctx *ctx, void *arg) {
    struct beside *beside = arg;
    struct ix_client client = world_attach(&beside->world, 0, ctx, NULL);
    while (!beside->splits && !beside->ended) {
        dm_sleep(ctx, 1000);
    }
    while (!beside->ended) {
        beside_get_all(beside, &client, beside->key);
    }
    ix_detach(&client);
}

static void beside_run(struct beside *beside, const char *fault, unsigned splitting, unsigned event,
                       void (*other)(struct dm_ctx *ctx, void *arg)) {
    struct world_config config = world_least(&ix_ops_chime);
    struct world_pairs pairs;
    *beside = (struct beside){.end = splitting, .event = event};
    config.params[0] = (struct dm_setting){"cache_levels", other == beside_reader ? "0" : "16"};
    config.params[1] = (struct dm_setting){"fill", other == beside_reader ? "1" : "0.6"};
    config.tiny = true;
    config.cns = config.clients = 2;
    config.settings[0] = (struct dm_setting){"faults", fault};
    for (unsigned number = 0; number < MERGE_KEYS; number += MERGE_STEP) {
        beside->there[number] = true;
    }
    world_begin(&beside->world, &config, world_pairs(&pairs, MERGE_KEYS, MERGE_STEP, 8));
    world_spawn(&beside->world, 0, 0, other, beside);
    world_spawn(&beside->world, 1, 0, beside_splitter, beside);
    world_run(&beside->world);
    world_verify(&beside->world);
    world_close(&beside->world);
}

static void a_leaf_is_not_merged_over_one_that_its_parent_does_not_have_yet(void **state) {
    (void)state;
    struct beside whole, beside;
    uint64_t merges = 0;
    beside_run(&whole, "", MERGE_KEYS, CHIME_LEAF_SPLIT, beside_remover);
    for (uint64_t verb = whole.begin + 1; verb <= whole.end; verb++) {
        char fault[60];
        snprintf(fault, sizeof(fault), "stop:client=1,verb=%u,for=%uus", (unsigned)verb, PAUSE_US);
        beside_run(&beside, fault, whole.key, CHIME_LEAF_SPLIT, beside_remover);
        assert_int_equal(beside.wrong, 0);
        merges += beside.merges;
    }
    assert_true(merges > 0);
}

/* A leaf ends where its parent says that the next one begins, so no parent may be taken for keys that it has given to
 * its right half, not even for the first of them. */
static void no_key_is_absent_while_an_inner_node_is_split(void **state) {
    (void)state;
    struct beside whole, beside;
    beside_run(&whole, "", MERGE_KEYS, CHIME_INNER_SPLIT, beside_reader);
    assert_true(whole.key < MERGE_KEYS - MERGE_STEP);
    assert_int_equal(whole.wrong, 0);
    for (uint64_t verb = whole.begin + 1; verb <= whole.end; verb++) {
        char fault[60];
        snprintf(fault, sizeof(fault), "stop:client=1,verb=%u,for=%uus", (unsigned)verb, PAUSE_US);
        beside_run(&beside, fault, whole.key, CHIME_INNER_SPLIT, beside_reader);
        assert_int_equal(beside.key, whole.key);
        assert_int_equal(beside.wrong, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_not_absent_from_a_neighbourhood_of_two_writes),
        cmocka_unit_test(the_hop_bitmap_of_every_key_of_a_part_is_compared),
        cmocka_unit_test(the_lock_word_points_at_the_largest_key),
        cmocka_unit_test(a_leaf_is_not_merged_over_one_that_its_parent_does_not_have_yet),
        cmocka_unit_test(no_key_is_absent_while_an_inner_node_is_split),
        cmocka_unit_test(a_split_over_memory_nodes_and_a_merge_wait_for_what_they_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
