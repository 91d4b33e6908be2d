/* SPDX-License-Identifier: Apache-2.0
 *
 * The limits of the simulated fabric, one by one: caches of queue pairs and of work requests, outstanding reads of a
 * queue pair, fences, cores behind calls; and that its utilisation figures are consistent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/transport/sim_world.h"

enum { FIRST = 4096, METHOD = DM_METHOD_FIRST };

struct load {
    enum dm_verb_kind kind;
    uint32_t batch, left;
    uint64_t latency_ns, waits;
};

static dm_addr some_line(struct dm_ctx *ctx) {
    return dm_addr_make(0, DM_DRAM, FIRST + dm_prng_below(dm_random(ctx), 10000) * 64);
}

static void load_main(struct dm_ctx *ctx, void *arg) {
    struct load *load = arg;
    unsigned char *buffer = dm_local_alloc(ctx, 64);
    while (load->left > 0) {
        load->left -= load->left < load->batch ? load->left : load->batch;
        uint64_t begin = dm_now(ctx);
        for (uint32_t i = 0; i < load->batch; i++) {
            if (load->kind == DM_VERB_READ) {
                dm_post_read(ctx, some_line(ctx), buffer, 8);
            } else if (load->kind == DM_VERB_WRITE) {
                dm_post_write(ctx, some_line(ctx), buffer, 8);
            } else {
                dm_post_faa(ctx, some_line(ctx), 1, (uint64_t *)(void *)buffer);
            }
        }
        assert_int_equal(dm_commit(ctx), 0);
        load->latency_ns += dm_now(ctx) - begin;
        load->waits++;
    }
}

/* M/s */
static double rate_of(struct world *world, struct load *load, unsigned clients) {
    double verbs = load->left;
    world->clients = clients;
    world_open(world);
    for (unsigned i = 0; i < clients; i++) {
        world_spawn(world, i, load_main, load);
    }
    world_run(world);
    double rate = verbs * 1e3 / (double)world_ns(world);
    return rate;
}

static double rate_and_close(struct world world, struct load load, unsigned clients) {
    double rate = rate_of(&world, &load, clients);
    world_close(&world);
    return rate;
}

static void assert_near(double value, double expected, double tolerance) {
    if (value < expected * (1 - tolerance) || value > expected * (1 + tolerance)) {
        fail_msg("%g is not within %g %% of %g", value, tolerance * 100, expected);
    }
}

static void more_queue_pairs_than_a_nic_caches_slow_it_down(void **state) {
    (void)state;
    struct world world = {.profile = "cib-2x56g", .cns = 10};
    struct load load = {.kind = DM_VERB_READ, .batch = 1, .left = 100000};
    double few = rate_and_close(world, load, 260), many = rate_and_close(world, load, 1040);
    assert_near(few / many, 1 + 0.56 * 0.75, 0.02);
    /* Threads have queue pairs; clients of one thread share them. */
    world.per_thread = 4;
    assert_near(rate_and_close(world, load, 1040), few, 0.02);
}

/* A world on a profile with these numbers, opened, and its rate. */
static double rate_of_numbers(struct world *world, struct load *load, unsigned clients, const char *numbers) {
    char path[256];
    snprintf(path, sizeof(path), "/tmp/dm-limits-%d.json", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "{\"schema_version\": 1, \"inherits\": \"cx6-100g\", \"parameters\": {%s}}", numbers);
    assert_int_equal(fclose(file), 0);
    world->profile = path;
    double rate = rate_of(world, load, clients);
    world->profile = NULL;
    remove(path);
    return rate;
}

static double rate_with(struct world world, struct load load, unsigned clients, const char *numbers) {
    double rate = rate_of_numbers(&world, &load, clients, numbers);
    world_close(&world);
    return rate;
}

static void posted_verbs_beyond_the_cache_of_a_requester_slow_it_down(void **state) {
    (void)state;
    static const char numbers[] = "\"tx_write_mops\": 50, \"rx_write_mops\": 100, \"wqe_cache_entries\": 400, "
                                  "\"wqe_miss_factor\": 0, \"wqe_miss_factor_write\": 0.5";
    struct world world = {.mns = 1};
    struct load load = {.kind = DM_VERB_WRITE, .batch = 12, .left = 200000};
    assert_near(rate_with(world, load, 30, numbers), 50, 0.03);
    /* 1200 posted, less the batches that clients are about to post again. */
    assert_near(rate_with(world, load, 100, numbers), 50 / (1 + 0.5 * (1170.0 - 400) / 400), 0.03);
}

static void a_queue_pair_has_at_most_sixteen_reads_outstanding(void **state) {
    (void)state;
    struct world world = {.profile = "cx6-100g-high", .per_thread = 64};
    struct load load = {.kind = DM_VERB_READ, .batch = 1, .left = 50000};
    /* The client's core would post millions; with a slow network the window is what limits. */
    double rate = rate_with(world, load, 64, "\"propagation_ns\": 5000");
    assert_near(rate, 16 / 11.0, 0.05); /* 11 us from leaving the queue pair until the response is back in the NIC */
}

struct pair {
    enum dm_verb_kind kinds[2];
    uint64_t ns;
};

static void pair_main(struct dm_ctx *ctx, void *arg) {
    struct pair *pair = arg;
    uint64_t words[2] = {0}, begin = dm_now(ctx);
    for (unsigned i = 0; i < 2; i++) {
        dm_addr addr = dm_addr_make(0, DM_DRAM, FIRST + 64 * i);
        if (pair->kinds[i] == DM_VERB_READ) {
            dm_post_read(ctx, addr, &words[i], 8);
        } else if (pair->kinds[i] == DM_VERB_WRITE) {
            dm_post_write(ctx, addr, &words[i], 8);
        } else {
            dm_post_faa(ctx, addr, 1, &words[i]);
        }
    }
    assert_int_equal(dm_commit(ctx), 0);
    pair->ns = dm_now(ctx) - begin;
}

static uint64_t pair_ns(enum dm_verb_kind first, enum dm_verb_kind second) {
    struct world world = {.clients = 1};
    struct pair pair = {.kinds = {first, second}};
    world_open(&world);
    world_spawn(&world, 0, pair_main, &pair);
    world_run(&world);
    world_close(&world);
    return pair.ns;
}

static void a_write_or_atomic_behind_a_read_or_atomic_waits_for_it_and_nothing_else_waits(void **state) {
    (void)state;
    uint64_t one = 2500; /* a little more than a round trip */
    assert_in_range(pair_ns(DM_VERB_READ, DM_VERB_READ), 2000, one);
    assert_in_range(pair_ns(DM_VERB_WRITE, DM_VERB_READ), 2000, one);
    assert_in_range(pair_ns(DM_VERB_WRITE, DM_VERB_WRITE), 1500, one);
    assert_in_range(pair_ns(DM_VERB_WRITE, DM_VERB_FAA), 2000, one);
    assert_in_range(pair_ns(DM_VERB_FAA, DM_VERB_READ), 2000, one);
    assert_in_range(pair_ns(DM_VERB_READ, DM_VERB_WRITE), 3400, 5000);
    assert_in_range(pair_ns(DM_VERB_READ, DM_VERB_FAA), 3800, 5000);
    assert_in_range(pair_ns(DM_VERB_FAA, DM_VERB_FAA), 3800, 5000);
    assert_in_range(pair_ns(DM_VERB_FAA, DM_VERB_WRITE), 3400, 5000);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static int work_handler(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                        uint32_t *resp_len) {
    (void)arg;
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, 8);
    return 0;
}

static void caller_main(struct dm_ctx *ctx, void *arg) {
    uint32_t *left = arg;
    while (*left > 0) {
        --*left;
        assert_int_equal(dm_call(ctx, 0, METHOD, left, 4, NULL, NULL), 0);
    }
}

static double call_rate(unsigned cores) {
    struct world world = {.profile = "cx4-100g", .cns = 4, .clients = 80, .mn_cores = cores};
    assert_int_equal(world_try_open(&world), 0);
    assert_int_equal(dm_register(world.fabric, 0, METHOD, work_handler, NULL), 0);
    dm_fabric_measure(world.fabric);
    uint32_t left = 20000;
    for (unsigned i = 0; i < 80; i++) {
        world_spawn(&world, i, caller_main, &left);
    }
    world_run(&world);
    double rate = 20000 * 1e3 / (double)world_ns(&world);
    world_close(&world);
    return rate;
}

static void calls_are_served_at_the_rate_of_the_cores_behind_them(void **state) {
    (void)state;
    /* 225 ns to take the request, 556 of work, 225 to answer, 20 to switch. */
    assert_near(call_rate(1), 1e3 / 1026, 0.02);
    assert_near(call_rate(4), 4e3 / 1026, 0.02);
}

/* ---- what is said of resources ---------------------------------------------------------------------------------- */

static struct dm_resource resource(const struct world *world, unsigned node, const char *name) {
    struct dm_resource all[64];
    size_t count = dm_resources(world->fabric, all, 64);
    for (size_t i = 0; i < count && i < 64; i++) {
        if (all[i].node == node && strcmp(all[i].name, name) == 0) {
            return all[i];
        }
    }
    fail_msg("no resource %s", name);
    return all[0];
}

static const char reads_of_45[] = "\"rx_read_mops\": 45, \"tx_read_mops\": 66, \"pcie_read_spread_ns\": 0";

static void the_bottleneck_is_busy_all_the_time_and_the_others_by_their_share(void **state) {
    (void)state;
    struct world world = {.cns = 4};
    struct load load = {.kind = DM_VERB_READ, .batch = 1, .left = 100000};
    double rate = rate_of_numbers(&world, &load, 256, reads_of_45);
    assert_near(rate, 45, 0.01);
    assert_near(resource(&world, 0, "nic_rx").busy, 1, 0.01);
    assert_int_equal(resource(&world, 0, "nic_rx").served, 100000);
    assert_near(resource(&world, 0, "link_in").busy, 45e6 * (16 + 82) * 80e-12, 0.02);
    assert_near(resource(&world, 0, "link_out").busy, 45e6 * (8 + 4 + 82) * 80e-12, 0.02);
    assert_near(resource(&world, 2, "nic_tx").busy, 45.0 / 4 / 66, 0.02);
    world_close(&world);
}

static void queue_lengths_obey_little_s_law(void **state) {
    (void)state;
    struct world world = {.cns = 4};
    struct load load = {.kind = DM_VERB_READ, .batch = 1, .left = 100000};
    double rate = rate_of_numbers(&world, &load, 256, reads_of_45);
    double latency_us = (double)load.latency_ns / (double)load.waits / 1e3;
    /* Each client always has a verb outstanding. */
    assert_near(rate * latency_us, 256, 0.01);
    /* Verbs outside the saturated NIC are in the rest of the round trip, which takes as long as in an idle fabric. */
    assert_near(resource(&world, 0, "nic_rx").queue_mean, 256 - rate * 2.2, 0.03);
    world_close(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_queue_pairs_than_a_nic_caches_slow_it_down),
        cmocka_unit_test(posted_verbs_beyond_the_cache_of_a_requester_slow_it_down),
        cmocka_unit_test(a_queue_pair_has_at_most_sixteen_reads_outstanding),
        cmocka_unit_test(a_write_or_atomic_behind_a_read_or_atomic_waits_for_it_and_nothing_else_waits),
        cmocka_unit_test(calls_are_served_at_the_rate_of_the_cores_behind_them),
        cmocka_unit_test(the_bottleneck_is_busy_all_the_time_and_the_others_by_their_share),
        cmocka_unit_test(queue_lengths_obey_little_s_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
