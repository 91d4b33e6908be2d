/* SPDX-License-Identifier: Apache-2.0
 *
 * Untimed verbs: they act as timed ones, in the order of each context; contexts take turns, so that one which spins on
 * a lock gets it; time passes as if each batch was alone, or as a sample has shown; and timed verbs follow as if
 * nothing had been before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/transport/sim_world.h"

enum { LOCK = 4096, COUNTER = 4160, CLIENTS = 24, ROUNDS = 500, METHOD = DM_METHOD_FIRST };

struct job {
    struct world *world;
    uint64_t spins, left_until_timed, begin_ns, end_ns;
    unsigned inside, called;
};

static dm_addr at(uint64_t offset) {
    return dm_addr_make(0, DM_DRAM, offset);
}

static void lock(struct dm_ctx *ctx, struct job *job) {
    uint64_t *found = dm_local_alloc(ctx, 8);
    do {
        assert_int_equal(dm_cas(ctx, at(LOCK), 0, 1, found), 0);
        job->spins += *found != 0;
    } while (*found != 0);
}

/* Adds one to a counter under a lock. Its write is not waited for: the unlock behind it must not pass it. */
static void count_main(struct dm_ctx *ctx, void *arg) {
    struct job *job = arg;
    uint64_t *counter = dm_local_alloc(ctx, 8), *zero = dm_local_alloc(ctx, 8);
    *zero = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (job->left_until_timed > 0 && --job->left_until_timed == 0) {
            dm_fabric_timing(job->world->fabric, DM_TIMED);
        }
        lock(ctx, job);
        assert_int_equal(job->inside++, 0);
        assert_int_equal(dm_read(ctx, at(COUNTER), counter, 8), 0);
        *counter += 1;
        dm_post_write(ctx, at(COUNTER), counter, 8);
        assert_int_equal(dm_commit_async(ctx), 0);
        job->inside--;
        dm_post_write(ctx, at(LOCK), zero, 8);
        assert_int_equal(dm_commit(ctx), 0);
    }
}

static void look_main(struct dm_ctx *ctx, void *arg) {
    uint64_t *value = arg;
    uint64_t *read = dm_local_alloc(ctx, 8);
    assert_int_equal(dm_read(ctx, at(COUNTER), read, 8), 0);
    *value = *read;
}

/* Clients count under one lock, the first rounds of all of them untimed. */
static void count_under_a_lock(uint64_t untimed_rounds, struct job *job) {
    struct world world = {.clients = CLIENTS};
    world_open(&world);
    *job = (struct job){.world = &world, .left_until_timed = untimed_rounds};
    dm_fabric_timing(world.fabric, untimed_rounds > 0 ? DM_UNTIMED : DM_TIMED);
    for (unsigned i = 0; i < CLIENTS; i++) {
        world_spawn(&world, i, count_main, job);
    }
    world_run(&world);
    uint64_t counted = 0;
    world_spawn(&world, 0, look_main, &counted);
    world_run(&world);
    assert_int_equal(counted, CLIENTS * ROUNDS);
    world_close(&world);
}

static void no_update_is_lost_under_a_lock(void **state) {
    (void)state;
    struct job timed, untimed, both;
    count_under_a_lock(0, &timed);
    count_under_a_lock(UINT64_MAX, &untimed);
    count_under_a_lock(CLIENTS * ROUNDS / 2, &both);
    /* Contexts do meet one another. */
    assert_true(timed.spins > 0 && untimed.spins > 0 && both.spins > 0);
}

static void read_main(struct dm_ctx *ctx, void *arg) {
    struct job *job = arg;
    unsigned char *buffer = dm_local_alloc(ctx, 64);
    job->begin_ns = dm_now(ctx);
    for (int i = 0; i < 1600; i++) {
        dm_charge(ctx, DM_WORK_LINE_COPY, 100); /* takes no time */
        assert_int_equal(dm_read(ctx, at(LOCK), buffer, 64), 0);
    }
    job->end_ns = dm_now(ctx);
}

static uint64_t time_of_reads(bool is_untimed, unsigned clients) {
    struct world world = {.clients = clients};
    struct job job = {0};
    world_open(&world);
    dm_fabric_timing(world.fabric, is_untimed ? DM_UNTIMED : DM_TIMED);
    for (unsigned i = 0; i < clients; i++) {
        world_spawn(&world, i, read_main, &job);
    }
    world_run(&world);
    uint64_t ns = job.end_ns - job.begin_ns;
    world_close(&world);
    return ns;
}

static void time_passes_as_if_each_batch_was_alone(void **state) {
    (void)state;
    uint64_t one = time_of_reads(true, 1), many = time_of_reads(true, 2000);
    assert_in_range(one / 1600, 1000, 4000);
    assert_in_range(many, one * 9 / 10, one * 11 / 10);
    assert_true(time_of_reads(false, 2000) > 4 * many); /* the network is the limit */
}

/* ---- samples ---------------------------------------------------------------------------------------------------- */

enum {
    RUNNERS = 80,
    SAMPLE = RUNNERS * 64,
    BETWEEN = 4 * SAMPLE,
    READS = 8 * SAMPLE,
    READ_BYTES = 1024,
    BACKGROUND_READS = 64
};

/* Clients on two machines, of which one is the memory node too, draw reads from one budget, which begins with a sample
 * and has another one later. */
struct race {
    struct world *world;
    enum dm_timing sample, otherwise;
    uint64_t drawn, by_node[2]; /* all; and of those outside the samples */
    uint64_t batches;           /* of the background context */
    uint64_t ns;
};

static void race_main(struct dm_ctx *ctx, void *arg) {
    struct race *race = arg;
    unsigned char *buffer = dm_local_alloc(ctx, READ_BYTES);
    while (race->drawn < READS) {
        uint64_t at_sample = race->drawn++ % BETWEEN;
        if (at_sample == 0 || at_sample == SAMPLE) {
            dm_fabric_timing(race->world->fabric, at_sample == 0 ? race->sample : race->otherwise);
        }
        race->by_node[dm_node(ctx) - 1] += at_sample >= SAMPLE;
        assert_int_equal(dm_read(ctx, at(LOCK), buffer, READ_BYTES), 0);
    }
}

/* Posts many reads at once, as the work of memory nodes does that replaces a part of an index. */
static void background_main(struct dm_ctx *ctx, void *arg) {
    struct race *race = arg;
    unsigned char *buffer = dm_local_alloc(ctx, BACKGROUND_READS * 64);
    for (;;) {
        for (unsigned i = 0; i < BACKGROUND_READS; i++) {
            dm_post_read(ctx, at(LOCK), buffer + i * 64, 64);
        }
        if (dm_commit(ctx) < 0) {
            return;
        }
        race->batches++;
    }
}

static void race_run(struct race *race, const char *same_host, bool background) {
    struct world world = {.cns = 2, .clients = RUNNERS};
    race->world = &world;
    world_set(&world, "same_host", same_host);
    world_open(&world);
    for (unsigned i = 0; i < RUNNERS; i++) {
        world_spawn(&world, i, race_main, race);
    }
    if (background) {
        assert_int_equal(dm_spawn_background(world.fabric, 0, background_main, race), 0);
    }
    world_run(&world);
    race->ns = world_ns(&world);
    world_close(&world);
}

/* The share of the machine that is both, in percent. */
static double share_of_the_near(enum dm_timing sample, enum dm_timing otherwise, const char *same_host) {
    struct race race = {.sample = sample, .otherwise = otherwise};
    race_run(&race, same_host, false);
    return 100.0 * (double)race.by_node[0] / (double)(race.by_node[0] + race.by_node[1]);
}

static void clients_keep_the_pace_of_the_sample(void **state) {
    (void)state;
    double timed = share_of_the_near(DM_TIMED, DM_TIMED, "on");
    double untimed = share_of_the_near(DM_UNTIMED, DM_UNTIMED, "on");
    double sampled = share_of_the_near(DM_SAMPLED, DM_UNTIMED, "on");
    assert_true(timed > 55.0);
    assert_true(untimed > 49.0 && untimed < 51.0);
    assert_true(sampled > timed - 1.0 && sampled < timed + 1.0);
    double apart = share_of_the_near(DM_SAMPLED, DM_UNTIMED, "off");
    assert_true(apart > 49.0 && apart < 51.0);
    assert_true(share_of_the_near(DM_SAMPLED, DM_SAMPLED, "on") == timed); /* a sample is timed */
}

/* How long a batch of the background context takes. */
static double background_ns(enum dm_timing sample, enum dm_timing otherwise) {
    struct race race = {.sample = sample, .otherwise = otherwise};
    race_run(&race, "off", true);
    assert_true(race.batches > 0);
    return (double)race.ns / (double)race.batches;
}

static void background_work_keeps_the_pace_of_the_sample(void **state) {
    (void)state;
    double timed = background_ns(DM_TIMED, DM_TIMED);
    double sampled = background_ns(DM_SAMPLED, DM_UNTIMED);
    assert_true(background_ns(DM_UNTIMED, DM_UNTIMED) < timed / 2); /* as if it was one read */
    assert_true(sampled > timed * 0.99 && sampled < timed * 1.01);
}

static int answer(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    (void)req;
    (void)req_len;
    struct job *job = arg;
    dm_charge(ctx, DM_WORK_LINE_COPY, 1000);
    job->called++;
    *(unsigned char *)resp = 1;
    *resp_len = 1;
    return 0;
}

static void call_main(struct dm_ctx *ctx, void *arg) {
    struct job *job = arg;
    unsigned char resp[8];
    uint32_t resp_len = sizeof(resp);
    job->begin_ns = dm_now(ctx);
    assert_int_equal(dm_call(ctx, 0, METHOD, "x", 1, resp, &resp_len), 0);
    job->end_ns = dm_now(ctx);
}

static uint64_t time_of_a_call(bool is_untimed) {
    struct world world = {.clients = 1};
    struct job job = {0};
    world_open(&world);
    assert_int_equal(dm_register(world.fabric, 0, METHOD, answer, &job), 0);
    dm_fabric_timing(world.fabric, is_untimed ? DM_UNTIMED : DM_TIMED);
    world_spawn(&world, 0, call_main, &job);
    world_run(&world);
    assert_int_equal(job.called, 1);
    uint64_t ns = job.end_ns - job.begin_ns;
    world_close(&world);
    return ns;
}

static void calls_take_their_time(void **state) {
    (void)state;
    uint64_t timed = time_of_a_call(false), untimed = time_of_a_call(true);
    assert_in_range(untimed, timed * 8 / 10, timed);
}

static void nothing_changes_with_fault_rules(void **state) {
    (void)state;
    uint64_t ns[2];
    for (int is_untimed = 0; is_untimed < 2; is_untimed++) {
        struct world world = {.clients = 3};
        struct job job = {0};
        world_set(&world, "faults", "delay:p=0.1,by=10us");
        world_open(&world);
        dm_fabric_timing(world.fabric, is_untimed ? DM_UNTIMED : DM_TIMED);
        world_spawn(&world, 0, read_main, &job);
        world_run(&world);
        ns[is_untimed] = job.end_ns;
        world_close(&world);
    }
    assert_int_equal(ns[0], ns[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_update_is_lost_under_a_lock),
        cmocka_unit_test(time_passes_as_if_each_batch_was_alone),
        cmocka_unit_test(clients_keep_the_pace_of_the_sample),
        cmocka_unit_test(background_work_keeps_the_pace_of_the_sample),
        cmocka_unit_test(calls_take_their_time),
        cmocka_unit_test(nothing_changes_with_fault_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
