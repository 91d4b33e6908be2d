/* SPDX-License-Identifier: Apache-2.0
 *
 * Read delegation and write combining around an index of one word a key that takes its time: what is shared, with whom,
 * and that no client gets a value that is older than its call.
 */
#include "indexes/rdwc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/transport/sim_world.h"

enum { CLIENTS = 64, ROUNDS = 50, KEYS = 4, SPREAD = 4096, CALL_NS = 1000, ABSENT = 3 };

/* The index: a get samples the word in the middle, an update writes it in the middle. */
struct store {
    uint64_t words[SPREAD];
    uint64_t gets, updates; /* calls that came through */
    uint64_t absences;      /* those of them that found no key */
    int failure;            /* what calls return instead; 0: nothing */
};
struct store_client {
    struct store *store;
    struct dm_ctx *ctx;
};

static int store_outcome(struct store *store, uint64_t key) {
    int outcome = store->failure ? store->failure : key == ABSENT ? DM_NOT_FOUND : 0;
    store->absences += outcome == DM_NOT_FOUND;
    return outcome;
}

static int store_get(void *handle, uint64_t key, void *value) {
    struct store_client *client = handle;
    client->store->gets++;
    DM_TRY(dm_sleep(client->ctx, CALL_NS));
    memcpy(value, &client->store->words[key], sizeof(uint64_t));
    DM_TRY(dm_sleep(client->ctx, CALL_NS));
    return store_outcome(client->store, key);
}

static int store_update(void *handle, uint64_t key, const void *value) {
    struct store_client *client = handle;
    client->store->updates++;
    DM_TRY(dm_sleep(client->ctx, CALL_NS));
    if (key != ABSENT) {
        memcpy(&client->store->words[key], value, sizeof(uint64_t));
    }
    DM_TRY(dm_sleep(client->ctx, CALL_NS));
    return store_outcome(client->store, key);
}

static const struct ix_ops store_ops = {
    .name = "store", .caps = IX_CAP_INSERT, .get = store_get, .update = store_update};

struct test {
    struct world world;
    struct store store;
    struct ix_rdwc *rdwc;
    unsigned clients, keys;
    uint64_t sequence; /* of values written */
    uint64_t asked, shared, bypassed;
    uint64_t stale, foreign; /* answers that must not be */
    uint64_t absent, failed; /* outcomes of calls */
    uint64_t misjudged;      /* outcomes that are not those of their key */
};

static void client_open(struct test *test, struct dm_ctx *ctx, struct store_client *below, struct ix_client *client) {
    *below = (struct store_client){&test->store, ctx};
    *client = (struct ix_client){.ops = &store_ops, .handle = below, .value_bytes = sizeof(uint64_t)};
    assert_int_equal(ix_rdwc_wrap(test->rdwc, ctx, client), 0);
}

/* A call's outcome is that of the index for its key, shared or not. Returns whether it was done. */
static bool outcome_judge(struct test *test, uint64_t key, int outcome) {
    int expected = test->store.failure ? test->store.failure : key == ABSENT ? DM_NOT_FOUND : 0;
    test->asked++;
    test->absent += outcome == DM_NOT_FOUND;
    test->failed += outcome < 0;
    test->misjudged += outcome != expected;
    return outcome == 0;
}

static void client_close(struct test *test, struct ix_client *client) {
    const struct ix_rdwc_counts *counts = ix_rdwc_counts(client);
    test->shared += counts->shared_gets + counts->shared_updates;
    test->bypassed += counts->bypassed;
    ix_rdwc_unwrap(client);
    assert_ptr_equal(client->ops, &store_ops);
}

/* Rests, so that clients get out of step; then returns the word as it is. */
static uint64_t pause_then(struct dm_ctx *ctx, const struct test *test, uint64_t key) {
    assert_int_equal(dm_sleep(ctx, 1 + dm_prng_below(dm_random(ctx), 3 * CALL_NS)), 0);
    return test->store.words[key];
}

/* A word is key << 32 | number of the update, and numbers grow. */
static void reader(struct dm_ctx *ctx, void *arg) {
    struct test *test = arg;
    struct store_client below;
    struct ix_client client;
    client_open(test, ctx, &below, &client);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t key = dm_prng_below(dm_random(ctx), test->keys), before, value = 0;
        before = pause_then(ctx, test, key);
        bool is_done = outcome_judge(test, key, ix_get(&client, key, &value));
        test->stale += is_done && value < before;
        test->foreign += is_done && value >> 32 != key;
    }
    client_close(test, &client);
}

static void writer(struct dm_ctx *ctx, void *arg) {
    struct test *test = arg;
    struct store_client below;
    struct ix_client client;
    client_open(test, ctx, &below, &client);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t key = dm_prng_below(dm_random(ctx), test->keys), value;
        (void)pause_then(ctx, test, key);
        value = key << 32 | ++test->sequence;
        bool is_done = outcome_judge(test, key, ix_update(&client, key, &value));
        /* Values are joined in the order of their numbers, so what is there now is this one or a later one. */
        test->stale += is_done && test->store.words[key] < value;
        test->foreign += test->store.words[key] >> 32 != key;
    }
    client_close(test, &client);
}

static void test_open(struct test *test, enum ix_rdwc_mode mode, uint32_t slots, unsigned keys) {
    const struct ix_rdwc_config config = {
        .mode = mode, .clients = CLIENTS, .slots = slots, .value_bytes = sizeof(uint64_t)};
    *test = (struct test){.keys = keys, .world = {.clients = CLIENTS}};
    for (uint64_t key = 0; key < SPREAD; key++) {
        test->store.words[key] = key << 32;
    }
    test->rdwc = ix_rdwc_open(&store_ops, &config);
    assert_non_null(test->rdwc);
    world_open(&test->world);
}

static void test_run(struct test *test, unsigned readers, unsigned writers) {
    for (unsigned i = 0; i < readers + writers; i++) {
        world_spawn(&test->world, i, i < readers ? reader : writer, test);
    }
    world_run(&test->world);
    world_close(&test->world);
    ix_rdwc_close(test->rdwc);
    assert_int_equal(test->misjudged, 0);
}

static void clients_that_want_one_key_share_its_reads_and_its_updates(void **state) {
    (void)state;
    struct test test;
    test_open(&test, IX_RDWC_ON, 0, 1);
    test_run(&test, CLIENTS / 2, CLIENTS / 2);
    assert_int_equal(test.asked, CLIENTS * ROUNDS);
    assert_int_equal(test.shared + test.store.gets + test.store.updates, test.asked);
    assert_true(test.shared > test.asked * 9 / 10);
    assert_int_equal(test.bypassed, 0);
    assert_int_equal(test.stale, 0);
    assert_int_equal(test.foreign, 0);
}

static void a_lone_client_shares_nothing(void **state) {
    (void)state;
    struct test test;
    test_open(&test, IX_RDWC_ON, 0, 1);
    test_run(&test, 1, 0);
    assert_int_equal(test.store.gets, ROUNDS);
    assert_int_equal(test.shared, 0);
}

static void keys_of_one_slot_never_share(void **state) {
    (void)state;
    struct test test;
    test_open(&test, IX_RDWC_ON, 2, KEYS - 1);
    test_run(&test, CLIENTS / 2, CLIENTS / 2);
    assert_true(test.bypassed > 0);
    assert_int_equal(test.foreign, 0);
    assert_int_equal(test.stale, 0);
    assert_int_equal(test.shared + test.store.gets + test.store.updates, test.asked);
}

static void a_read_that_joins_one_that_has_begun_is_stale(void **state) {
    (void)state;
    struct test test;
    test_open(&test, IX_RDWC_STALE, 0, 1);
    test_run(&test, CLIENTS / 2, CLIENTS / 2);
    assert_true(test.stale > 0);
}

static void as_published_clients_share_more_reads_and_updates_and_get_old_values_or_lose_new_ones(void **state) {
    (void)state;
    struct test ours;
    test_open(&ours, IX_RDWC_ON, 0, 1);
    test_run(&ours, CLIENTS / 2, CLIENTS / 2);
    struct test reads;
    test_open(&reads, IX_RDWC_PUBLISHED, 0, 1);
    test_run(&reads, CLIENTS / 2, CLIENTS / 2);
    assert_int_equal(reads.shared + reads.store.gets + reads.store.updates, reads.asked);
    assert_true(reads.store.gets < ours.store.gets);
    assert_true(reads.store.updates < ours.store.updates);
    assert_true(reads.stale > 0);
    struct test updates;
    test_open(&updates, IX_RDWC_PUBLISHED, 0, 1);
    test_run(&updates, 0, CLIENTS);
    assert_true(updates.stale > 0); /* an update ended, and the word is from before it */
}

static void two_keys_in_use_seldom_share_a_slot(void **state) {
    (void)state;
    struct test test;
    test_open(&test, IX_RDWC_ON, 0, SPREAD);
    test_run(&test, CLIENTS, 0);
    assert_true(test.bypassed > 0);
    assert_true(test.bypassed * 200 < test.asked);
}

static void absence_and_failures_are_everybodys(void **state) {
    (void)state;
    static const int failures[] = {0, DM_ERR_RETRY_LIMIT};
    for (unsigned i = 0; i < DM_ARRAY_LEN(failures); i++) {
        struct test test;
        test_open(&test, IX_RDWC_ON, 0, KEYS);
        test.store.failure = failures[i];
        test_run(&test, CLIENTS / 2, CLIENTS / 2);
        assert_true(test.shared > test.asked / 2);
        assert_int_equal(test.failed, failures[i] ? test.asked : 0);
        /* A quarter of all calls, of which more are shared than not. */
        assert_true(failures[i] || test.absent > test.asked / 5);
        assert_true(failures[i] || test.absent > 2 * test.store.absences);
        assert_int_equal(test.stale, 0);
        assert_int_equal(test.foreign, 0);
    }
}

static void its_bytes_grow_with_clients_and_values(void **state) {
    (void)state;
    struct ix_rdwc_config config = {.mode = IX_RDWC_ON, .clients = 64, .value_bytes = 8};
    struct ix_rdwc *small = ix_rdwc_open(&store_ops, &config);
    config.value_bytes = 1024;
    struct ix_rdwc *large = ix_rdwc_open(&store_ops, &config);
    assert_true(ix_rdwc_bytes(small) > 64 * 8);
    assert_true(ix_rdwc_bytes(large) > ix_rdwc_bytes(small) + 64 * 1016);
    assert_int_equal(ix_rdwc_bytes(NULL), 0);
    ix_rdwc_close(small);
    ix_rdwc_close(large);
    ix_rdwc_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_that_want_one_key_share_its_reads_and_its_updates),
        cmocka_unit_test(a_lone_client_shares_nothing),
        cmocka_unit_test(keys_of_one_slot_never_share),
        cmocka_unit_test(a_read_that_joins_one_that_has_begun_is_stale),
        cmocka_unit_test(as_published_clients_share_more_reads_and_updates_and_get_old_values_or_lose_new_ones),
        cmocka_unit_test(two_keys_in_use_seldom_share_a_slot),
        cmocka_unit_test(absence_and_failures_are_everybodys),
        cmocka_unit_test(its_bytes_grow_with_clients_and_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
