/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of the nodes that serve calls: hyper-threads, and threads for calls alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/transport/sim_world.h"

enum { WORK = DM_METHOD_FIRST, CALLS = 40, BACKGROUNDS = 6 };

struct seen {
    uint64_t calls[4], backgrounds[4]; /* by thread */
    uint64_t elapsed_ns;
};

static int work(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct seen *seen = arg;
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    seen->calls[dm_thread(ctx)]++;
    dm_charge(ctx, DM_WORK_HASH, 1000);
    return 0;
}

static void background(struct dm_ctx *ctx, void *arg) {
    struct seen *seen = arg;
    seen->backgrounds[dm_thread(ctx)]++;
    dm_charge(ctx, DM_WORK_HASH, 1000);
}

static void call_often(struct dm_ctx *ctx, void *arg) {
    struct seen *seen = arg;
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(dm_call(ctx, 0, WORK, NULL, 0, NULL, NULL), 0);
    }
    seen->elapsed_ns = dm_now(ctx);
}

static void call_and_time(struct dm_ctx *ctx, void *arg) {
    uint64_t *longest_ns = arg;
    for (unsigned i = 0; i < CALLS; i++) {
        uint64_t begin = dm_now(ctx);
        assert_int_equal(dm_call(ctx, 0, WORK, NULL, 0, NULL, NULL), 0);
        uint64_t took = dm_now(ctx) - begin;
        *longest_ns = took > *longest_ns ? took : *longest_ns;
    }
}

static struct seen run(const char *mn_hw_cores, unsigned call_threads, unsigned clients) {
    struct seen seen = {0};
    struct world world = {.mn_cores = 4, .clients = clients};
    world_set(&world, "mn_hw_cores", mn_hw_cores);
    assert_int_equal(world_try_open(&world), 0);
    assert_int_equal(dm_register(world.fabric, 0, WORK, work, &seen), 0);
    if (call_threads > 0) {
        assert_int_equal(dm_separate_calls(world.fabric, 0, call_threads), 0);
    }
    for (unsigned i = 0; i < BACKGROUNDS; i++) {
        assert_int_equal(dm_spawn_background(world.fabric, 0, background, &seen), 0);
    }
    dm_fabric_measure(world.fabric);
    for (unsigned i = 0; i < clients; i++) {
        world_spawn(&world, i, call_often, &seen);
    }
    world_run(&world);
    world_close(&world);
    return seen;
}

static void threads_that_share_a_core_work_more_slowly(void **state) {
    (void)state;
    struct seen own = run("0", 0, 1), same = run("4", 0, 1), shared = run("2", 0, 1);
    assert_int_equal(own.elapsed_ns, same.elapsed_ns);
    assert_true(shared.elapsed_ns > own.elapsed_ns);
    /* The factor of the profile, 1.2, for the work of the handlers, which is most of the time. */
    assert_in_range(shared.elapsed_ns * 100 / own.elapsed_ns, 110, 120);
}

static void more_than_two_threads_a_core_are_refused(void **state) {
    (void)state;
    struct world world = {.mn_cores = 3};
    world_set(&world, "mn_hw_cores", "1");
    assert_true(world_try_open(&world) < 0);
    assert_non_null(strstr(world.err.text, "a memory node"));
}

static void calls_and_background_work_have_threads_of_their_own_if_asked(void **state) {
    (void)state;
    struct seen all = run("0", 0, 8), apart = run("0", 3, 8);
    assert_true(all.calls[3] > 0 && all.backgrounds[0] > 0);
    assert_int_equal(apart.calls[3], 0);
    assert_true(apart.calls[0] > 0 && apart.calls[1] > 0 && apart.calls[2] > 0);
    assert_int_equal(apart.calls[0] + apart.calls[1] + apart.calls[2], 8 * CALLS);
    assert_int_equal(apart.backgrounds[3], BACKGROUNDS);
}

/* One stretch of work, without a verb in it. */
static void work_long(struct dm_ctx *ctx, void *arg) {
    const uint32_t *units = arg;
    dm_charge(ctx, DM_WORK_HASH, *units);
}

static uint64_t longest_call_ns(uint32_t background_units) {
    uint64_t longest_ns = 0;
    struct seen seen = {0};
    struct world world = {.mn_cores = 1, .clients = 1};
    world_open(&world);
    assert_int_equal(dm_register(world.fabric, 0, WORK, work, &seen), 0);
    if (background_units > 0) {
        assert_int_equal(dm_spawn_background(world.fabric, 0, work_long, &background_units), 0);
    }
    dm_fabric_measure(world.fabric);
    world_spawn(&world, 0, call_and_time, &longest_ns);
    world_run(&world);
    world_close(&world);
    return longest_ns;
}

/* Background work is done in slices of 10 us. A call that comes within one waits for its end, and not for all of it. */
static void a_call_is_served_between_two_slices_of_background_work(void **state) {
    (void)state;
    uint64_t alone_ns = longest_call_ns(0), beside_ns = longest_call_ns(10000000);
    assert_in_range(beside_ns, alone_ns + 1000, alone_ns + 11000);
}

static void calls_cannot_have_all_threads_or_none(void **state) {
    (void)state;
    struct world world = {.mn_cores = 4};
    world_open(&world);
    assert_int_equal(dm_separate_calls(world.fabric, 0, 0), DM_ERR_INVALID);
    assert_int_equal(dm_separate_calls(world.fabric, 0, 4), DM_ERR_INVALID);
    assert_int_equal(dm_separate_calls(world.fabric, 9, 1), DM_ERR_INVALID);
    assert_int_equal(dm_separate_calls(world.fabric, 0, 3), 0);
    world_close(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_share_a_core_work_more_slowly),
        cmocka_unit_test(more_than_two_threads_a_core_are_refused),
        cmocka_unit_test(calls_and_background_work_have_threads_of_their_own_if_asked),
        cmocka_unit_test(a_call_is_served_between_two_slices_of_background_work),
        cmocka_unit_test(calls_cannot_have_all_threads_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
