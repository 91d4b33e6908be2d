/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks when a verb fails: the client gives back its turn and the word, also those that it inherited.
 */
#include "indexes/shared/locks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/transport/sim_world.h"

enum { CLIENTS = 2, SEEDS = 8, HELD_NS = 20000 };

struct test {
    struct world world;
    struct ix_locks *locks;
    dm_addr node; /* what the lock guards */
    bool ready, done;
    int acquired[CLIENTS], released[CLIENTS];
    bool handed; /* to the second client */
    uint64_t word, *zero;
};

static void lock_open(struct test *test, struct dm_ctx *ctx) {
    static const struct ix_lock_config config = {.count = 1, .local = true, .hand_over = true, .hand_over_max = 4};
    dm_addr base;
    assert_int_equal(ix_locks_format(ctx, 0, IX_LOCK_DRAM, config.count, &base), 0);
    assert_int_equal(dm_alloc(ctx, 0, DM_LINE, DM_LINE, DM_MEM_LEAF, &test->node), 0);
    test->locks = ix_locks_open(&config, &base, 1);
    test->zero = dm_local_alloc(ctx, sizeof(uint64_t));
    test->ready = true;
}

/* Takes the lock, holds it for a while if the other client is to wait, and releases it. */
static void turn(struct test *test, struct dm_ctx *ctx, unsigned client, uint64_t held_ns) {
    uint64_t *old = dm_local_alloc(ctx, sizeof(uint64_t));
    uint32_t attempts = 0;
    struct ix_lock lock;
    test->acquired[client] = ix_lock_acquire(ctx, test->locks, test->node, old, &attempts, &lock);
    if (test->acquired[client] == 0) {
        test->handed = lock.handed;
        dm_sleep(ctx, held_ns);
        test->released[client] = ix_lock_release(ctx, test->locks, &lock, test->zero);
    }
}

static void first_client(struct dm_ctx *ctx, void *arg) {
    struct test *test = arg;
    lock_open(test, ctx);
    turn(test, ctx, 0, HELD_NS);
    test->done = true;
}

/* Waits while the first one holds the lock. */
static void second_client(struct dm_ctx *ctx, void *arg) {
    struct test *test = arg;
    while (!test->ready) {
        dm_sleep(ctx, HELD_NS / 20);
    }
    dm_sleep(ctx, HELD_NS / 4);
    turn(test, ctx, 1, 0);
}

static void later_client(struct dm_ctx *ctx, void *arg) {
    struct test *test = arg;
    while (!test->done) {
        dm_sleep(ctx, HELD_NS);
    }
    turn(test, ctx, 1, 0);
}

static void test_run(struct test *test, const char *fault, uint64_t seed,
                     void (*second)(struct dm_ctx *ctx, void *arg)) {
    *test = (struct test){.world = {.clients = CLIENTS, .seed = seed}, .acquired = {1, 1}, .released = {1, 1}};
    world_set(&test->world, "faults", fault);
    world_open(&test->world);
    world_spawn(&test->world, 0, first_client, test);
    world_spawn(&test->world, 1, second, test);
    world_run(&test->world);
    test->word = world_word(&test->world, 0, dm_addr_offset(ix_locks_word(test->locks, test->node)));
    ix_locks_close(test->locks);
    world_close(&test->world);
}

static void a_lock_is_handed_to_a_client_that_waits(void **state) {
    (void)state;
    struct test test;
    test_run(&test, "", 1, second_client);
    assert_int_equal(test.acquired[0] | test.acquired[1] | test.released[0] | test.released[1], 0);
    assert_true(test.handed);
    assert_int_equal(test.word, 0);
}

/* In some of these worlds the compare-and-swap took effect, in some it did not; one that frees the word may fail, too.
 */
static void a_failed_acquisition_gives_back_its_turn_and_the_word(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct test test;
        test_run(&test, "error:client=0,verb=2", seed, later_client);
        assert_int_equal(test.acquired[0], DM_ERR_IO);
        assert_int_equal(test.word, 0);
        assert_int_equal(test.acquired[1], 0);
        assert_int_equal(test.released[1], 0);
    }
}

/* In some of these worlds the write took effect, in some it did not. */
static void a_failed_release_frees_the_word(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct test test;
        test_run(&test, "error:p=1,client=0,kind=write", seed, later_client);
        assert_int_equal(test.released[0], DM_ERR_IO);
        assert_int_equal(test.acquired[1], 0);
        assert_int_equal(test.word, 0);
    }
}

/* The word holds the first client's name. */
static void a_failed_release_of_an_inherited_lock_frees_the_word(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct test test;
        test_run(&test, "error:p=1,client=1,kind=write", seed, second_client);
        assert_true(test.handed);
        assert_int_equal(test.released[1], DM_ERR_IO);
        assert_int_equal(test.word, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_is_handed_to_a_client_that_waits),
        cmocka_unit_test(a_failed_acquisition_gives_back_its_turn_and_the_word),
        cmocka_unit_test(a_failed_release_frees_the_word),
        cmocka_unit_test(a_failed_release_of_an_inherited_lock_frees_the_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
