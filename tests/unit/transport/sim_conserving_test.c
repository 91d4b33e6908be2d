/* SPDX-License-Identifier: Apache-2.0
 *
 * No resource of the simulated network is idle while something that could use it waits: random mixes of reads and
 * writes of all sizes, contended atomics, calls with work before them, and handlers that use verbs themselves. A server
 * that is booked ahead of time is seen by the same measure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/transport/sim_world.h"

enum { FIRST = 4096, METHOD = DM_METHOD_FIRST, BYTES_MAX = 8192, WORDS = 3, OPERATIONS = 300, RESOURCES_MAX = 128 };

struct mix {
    unsigned nodes;
    uint64_t seed;
};

static dm_addr some_word(struct dm_prng *prng, unsigned nodes) {
    unsigned space = dm_prng_below(prng, 2) ? DM_CHIP : DM_DRAM;
    /* Few words, some of which share a slot with a word 4 KB further on. */
    uint64_t offset = 64 * dm_prng_below(prng, WORDS) + 4096 * dm_prng_below(prng, 3);
    return dm_addr_make((unsigned)dm_prng_below(prng, nodes), space, offset + (space == DM_DRAM ? FIRST : 0));
}

static void post_some_verb(struct dm_ctx *ctx, const struct mix *mix, unsigned char *buffer, uint64_t *old) {
    struct dm_prng *prng = dm_random(ctx);
    unsigned node = (unsigned)dm_prng_below(prng, mix->nodes);
    uint32_t bytes = 1 + (uint32_t)dm_prng_below(prng, dm_prng_below(prng, 3) ? 300 : BYTES_MAX);
    dm_addr addr = dm_addr_make(node, DM_DRAM, (FIRST << 4) + 64 * dm_prng_below(prng, 1000));
    switch (dm_prng_below(prng, 4)) {
    case 0:
        dm_post_write(ctx, addr, buffer, bytes);
        break;
    case 1:
        dm_post_faa(ctx, some_word(prng, mix->nodes), 1, old);
        break;
    default:
        dm_post_read(ctx, addr, buffer, bytes);
        break;
    }
}

static int handle(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    (void)req;
    (void)resp;
    const struct mix *mix = arg;
    unsigned char bytes[256];
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, (uint32_t)dm_prng_below(dm_random(ctx), 30));
    *resp_len = req_len;
    if (dm_prng_below(dm_random(ctx), 3) > 0) {
        return 0;
    }
    return dm_read(ctx, dm_addr_make((unsigned)dm_prng_below(dm_random(ctx), mix->nodes), DM_DRAM, FIRST), bytes, 256);
}

static void client(struct dm_ctx *ctx, void *arg) {
    const struct mix *mix = arg;
    unsigned char *buffer = dm_local_alloc(ctx, BYTES_MAX), request[512] = {0}, response[512];
    uint64_t old[8] = {0};
    assert_non_null(buffer);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        struct dm_prng *prng = dm_random(ctx);
        dm_charge(ctx, DM_WORK_DRAM_ACCESS, (uint32_t)dm_prng_below(prng, 40));
        if (dm_prng_below(prng, 5) == 0) {
            uint32_t bytes = 512;
            assert_int_equal(dm_call(ctx, (unsigned)dm_prng_below(prng, mix->nodes), METHOD, request,
                                     1 + (uint32_t)dm_prng_below(prng, 512), response, &bytes),
                             0);
            continue;
        }
        for (uint64_t verbs = 1 + dm_prng_below(prng, 4); verbs > 0; verbs--) {
            post_some_verb(ctx, mix, buffer, &old[verbs]);
        }
        assert_int_equal(dm_commit(ctx), 0);
    }
}

/* The sum over all resources; each kind must have served something. */
static uint64_t idle_waited(const struct world *world) {
    struct dm_resource all[RESOURCES_MAX];
    size_t count = dm_resources(world->fabric, all, RESOURCES_MAX);
    assert_true(count <= RESOURCES_MAX);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += all[i].idle_waited_ns;
        if (all[i].node == 0) {
            assert_true(all[i].served > 0);
        }
    }
    return sum;
}

static void assert_conserving(struct world world, uint64_t seed) {
    struct mix mix = {.nodes = world.mns, .seed = seed};
    world.seed = seed;
    world.mn_cores = 2;
    world.clients = 24 * world.cns;
    if (world_try_open(&world) < 0) {
        fail_msg("%s", world.err.text);
    }
    for (unsigned node = 0; node < world.mns; node++) {
        assert_int_equal(dm_register(world.fabric, node, METHOD, handle, &mix), 0);
    }
    dm_fabric_measure(world.fabric);
    for (unsigned i = 0; i < world.clients; i++) {
        world_spawn(&world, i, client, &mix);
    }
    world_run(&world);
    assert_int_equal(idle_waited(&world), 0);
    world_close(&world);
}

static void nothing_is_idle_while_something_waits_for_it(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 12; seed++) {
        struct world world = {.mns = 1 + seed % 3, .cns = 1 + seed % 2, .per_thread = seed % 4 ? 8 : 1};
        assert_conserving(world, seed);
    }
}

static void nor_with_several_nics_or_one_for_both_roles(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct world world = {.mns = 2, .cns = 2, .per_thread = 4};
        if (seed % 2) {
            world_set(&world, "same_host", "on");
        }
        world_set(&world, "nics", seed % 3 ? "2" : "1");
        assert_conserving(world, seed);
    }
}

/* A server that is booked for a time that has not come is idle while a request that comes earlier waits behind it. */
static void a_booking_ahead_of_time_is_seen(void **state) {
    (void)state;
    struct sim_server server = {0};
    assert_int_equal(sim_serve(&server, 100, 10), 110);
    assert_int_equal(sim_serve(&server, 500, 10), 510); /* booked ahead at 100 or so */
    assert_int_equal(server.idle_waited, 0);
    assert_int_equal(sim_serve(&server, 200, 10), 520);
    assert_int_equal(server.idle_waited, 300);
    assert_int_equal(sim_serve(&server, 505, 10), 530);
    assert_int_equal(server.idle_waited, 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_idle_while_something_waits_for_it),
        cmocka_unit_test(nor_with_several_nics_or_one_for_both_roles),
        cmocka_unit_test(a_booking_ahead_of_time_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
