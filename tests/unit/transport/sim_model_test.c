/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost model against figures worked out by hand, and the simulated fabric as a whole against the calibration
 * anchors of its profiles.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/sim/sim.h"

static struct sim_costs costs_of(const char *name) {
    struct dm_profile profile;
    struct dm_err err;
    assert_int_equal(dm_profile_load(name, &profile, &err), 0);
    struct sim_costs costs;
    sim_costs_init(&costs, &profile);
    return costs;
}

static void wire_time_counts_a_header_for_every_packet(void **state) {
    (void)state;
    struct sim_costs costs = costs_of("cx6-100g"); /* 80 ps a byte, packets of 1024 B with 82 B of headers */
    assert_int_equal(sim_wire_time(&costs, 0, 0), 82 * 80);
    assert_int_equal(sim_wire_time(&costs, 1024, 4), (1024 + 4 + 82) * 80);
    assert_int_equal(sim_wire_time(&costs, 1025, 0), (1025 + 2 * 82) * 80);
    assert_int_equal(sim_request_time(&costs, DM_VERB_READ, 65536), (16 + 82) * 80);
    assert_int_equal(sim_response_time(&costs, DM_VERB_CAS, 8), (12 + 82) * 80);
}

static void too_many_queue_pairs_slow_a_nic_by_the_share_of_misses(void **state) {
    (void)state;
    struct sim_costs costs = costs_of("cib-2x56g"); /* 260 entries, factor 0.56 */
    assert_int_equal(sim_qp_factor_1024(&costs, 260), 1024);
    assert_int_equal(sim_qp_factor_1024(&costs, 520), 1024 + (uint64_t)(0.28 * 1024 + 0.5));
}

struct job {
    enum dm_verb_kind kind;
    uint32_t len, batch;
    uint64_t stride, slots, *left;
    enum dm_space space;
    double *total_ns;
};

static void client(struct dm_ctx *ctx, void *arg) {
    struct job *job = arg;
    unsigned char *buffer = dm_local_alloc(ctx, 1 << 16);
    struct dm_prng *prng = dm_random(ctx);
    while (*job->left > 0) {
        uint64_t start = dm_now(ctx);
        for (uint32_t i = 0; i < job->batch; i++) {
            uint64_t offset = 4096 + dm_prng_below(prng, job->slots) * job->stride;
            dm_addr addr = dm_addr_make(0, job->space, offset);
            if (job->kind == DM_VERB_READ) {
                dm_post_read(ctx, addr, buffer, job->len);
            } else if (job->kind == DM_VERB_WRITE) {
                dm_post_write(ctx, addr, buffer, job->len);
            } else {
                dm_post_faa(ctx, addr, 1, (uint64_t *)(void *)buffer);
            }
        }
        assert_int_equal(dm_commit(ctx), 0);
        *job->total_ns += (double)(dm_now(ctx) - start);
        *job->left -= *job->left < job->batch ? *job->left : job->batch;
    }
}

struct rate {
    double mops, latency_ns;
};

static struct rate measure(const char *profile, unsigned cns, unsigned clients, struct job job, uint64_t verbs) {
    struct dm_fabric_config config = {.transport = "sim",
                                      .profile = profile,
                                      .seed = 7,
                                      .topology = {.mns = 1,
                                                   .cns = cns,
                                                   .mn_cores = 1,
                                                   .clients = clients,
                                                   .clients_per_thread = 1,
                                                   .mn_bytes = 1 << 24,
                                                   .chip_bytes = 1 << 20}};
    struct dm_fabric *fabric;
    struct dm_err err;
    assert_int_equal(dm_fabric_open(&config, &fabric, &err), 0);
    dm_fabric_measure(fabric);
    uint64_t left = verbs;
    double total_ns = 0;
    job.left = &left;
    job.total_ns = &total_ns;
    for (unsigned i = 0; i < clients; i++) {
        assert_int_equal(dm_spawn(fabric, 1 + i % cns, i / cns, client, &job), 0);
    }
    assert_int_equal(dm_fabric_run(fabric, &err), 0);
    struct sim *sim = sim_of(fabric);
    struct rate rate = {(double)verbs * 1e6 / (double)(sim->now - sim->base), total_ns * job.batch / (double)verbs};
    dm_fabric_close(fabric);
    return rate;
}

static void assert_near(double value, double expected, double tolerance) {
    if (value < expected * (1 - tolerance) || value > expected * (1 + tolerance)) {
        fail_msg("%g is not within %g %% of %g", value, tolerance * 100, expected);
    }
}

static void an_idle_read_of_64_bytes_takes_what_the_profile_is_anchored_to(void **state) {
    (void)state;
    struct job read = {.kind = DM_VERB_READ, .len = 64, .batch = 1, .stride = 64, .slots = 1000};
    assert_near(measure("cx6-100g", 1, 1, read, 1000).latency_ns, 2210, 0.02);
    assert_near(measure("cx5-100g", 1, 1, read, 1000).latency_ns, 1900, 0.02);
    assert_near(measure("cx4-100g", 1, 1, read, 1000).latency_ns, 2020, 0.02);
}

static void an_idle_atomic_costs_about_as_much_as_a_read(void **state) {
    (void)state;
    struct job read = {.kind = DM_VERB_READ, .len = 8, .batch = 1, .stride = 64, .slots = 1000};
    struct job faa = {.kind = DM_VERB_FAA, .len = 8, .batch = 1, .stride = 64, .slots = 1000};
    assert_near(measure("cx6-100g", 1, 1, faa, 1000).latency_ns, measure("cx6-100g", 1, 1, read, 1000).latency_ns,
                0.05);
}

static void small_reads_saturate_at_the_responder_s_rate(void **state) {
    (void)state;
    struct job read = {.kind = DM_VERB_READ, .len = 8, .batch = 1, .stride = 64, .slots = 100000};
    double service_ps = (double)costs_of("cx6-100g").verbs[DM_VERB_READ].rx;
    assert_near(measure("cx6-100g", 10, 640, read, 200000).mops, 1e6 / service_ps, 0.02);
}

static void large_transfers_saturate_the_link_less_headers(void **state) {
    (void)state;
    struct job write = {.kind = DM_VERB_WRITE, .len = 65536, .batch = 1, .stride = 65536, .slots = 64};
    assert_near(measure("cx6-100g", 1, 8, write, 4000).mops * 65536 * 8 / 1e3, 92.5, 0.02);
    assert_near(measure("cx5-100g", 1, 8, write, 4000).mops * 65536 * 8 / 1e3, 99.3, 0.02);
}

static void atomics_on_one_word_are_serialised_and_on_chip_they_are_four_to_five_times_faster(void **state) {
    (void)state;
    struct job dram = {.kind = DM_VERB_FAA, .batch = 1, .stride = 8, .slots = 1};
    struct job chip = dram;
    chip.space = DM_CHIP;
    double slow = measure("cx6-100g", 4, 128, dram, 20000).mops, fast = measure("cx6-100g", 4, 128, chip, 20000).mops;
    assert_near(slow, 2.04, 0.02);
    assert_true(fast / slow > 4.0 && fast / slow < 5.0);
}

static void atomics_lose_rate_only_when_the_stride_leaves_fewer_than_32_units(void **state) {
    (void)state;
    double rate[10];
    for (unsigned shift = 3; shift <= 12; shift++) {
        struct job faa = {.kind = DM_VERB_FAA, .batch = 1, .stride = 1u << shift, .slots = 2048};
        rate[shift - 3] = measure("cx6-100g", 8, 128, faa, 40000).mops;
    }
    assert_near(rate[0], 42.3, 0.15);
    assert_near(rate[12 - 3], 2.04, 0.15);
    for (unsigned shift = 4; shift <= 7; shift++) {
        assert_true(rate[shift - 3] > 0.9 * rate[0]);
    }
    assert_true(rate[8 - 3] < 0.85 * rate[6 - 3]);
    for (unsigned shift = 9; shift <= 12; shift++) {
        assert_true(rate[shift - 3] < 0.65 * rate[shift - 4]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wire_time_counts_a_header_for_every_packet),
        cmocka_unit_test(too_many_queue_pairs_slow_a_nic_by_the_share_of_misses),
        cmocka_unit_test(an_idle_read_of_64_bytes_takes_what_the_profile_is_anchored_to),
        cmocka_unit_test(an_idle_atomic_costs_about_as_much_as_a_read),
        cmocka_unit_test(small_reads_saturate_at_the_responder_s_rate),
        cmocka_unit_test(large_transfers_saturate_the_link_less_headers),
        cmocka_unit_test(atomics_on_one_word_are_serialised_and_on_chip_they_are_four_to_five_times_faster),
        cmocka_unit_test(atomics_lose_rate_only_when_the_stride_leaves_fewer_than_32_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
