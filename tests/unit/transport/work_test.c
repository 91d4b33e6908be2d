/* SPDX-License-Identifier: Apache-2.0
 *
 * What an access to a local structure costs: the points of the profile's curve, what is between them, and what a
 * simulated client's clock shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/transport/sim_world.h"

static struct dm_work_costs curve(void) {
    const struct dm_profile profile = {.work_node_probe_ns = 60,
                                       .work_train_key_ns = 190,
                                       .work_access_512k_ns = 5,
                                       .work_access_4m_ns = 20,
                                       .work_access_32m_ns = 35,
                                       .work_access_256m_ns = 95,
                                       .work_access_1g_ns = 115};
    struct dm_work_costs costs;
    dm_work_costs_init(&costs, &profile);
    return costs;
}

static void the_curve_passes_through_the_points_of_the_profile(void **state) {
    (void)state;
    struct dm_work_costs costs = curve();
    assert_int_equal(dm_work_access_ps(&costs, 1, 512 << 10), 5000);
    assert_int_equal(dm_work_access_ps(&costs, 1, 4 << 20), 20000);
    assert_int_equal(dm_work_access_ps(&costs, 3, 32 << 20), 3 * 35000);
    assert_int_equal(dm_work_access_ps(&costs, 1, 256 << 20), 95000);
    assert_int_equal(dm_work_access_ps(&costs, 2, 1 << 30), 2 * 115000);
    assert_int_equal(dm_work_ps(&costs, DM_WORK_NODE_PROBE, 4), 240000);
    assert_int_equal(dm_work_ps(&costs, DM_WORK_TRAIN_KEY, 1), 190000);
}

static void between_the_points_a_doubling_costs_the_same(void **state) {
    (void)state;
    struct dm_work_costs costs = curve();
    assert_int_equal(dm_work_access_ps(&costs, 1, 1 << 20), 10000);
    assert_int_equal(dm_work_access_ps(&costs, 1, 2 << 20), 15000);
    assert_int_equal(dm_work_access_ps(&costs, 1, 512 << 20), 105000);
    assert_int_equal(dm_work_access_ps(&costs, 1, 3 << 19), 12500); /* half way between 1 and 2 MiB */
}

static void the_curve_is_flat_beyond_its_ends_and_never_falls(void **state) {
    (void)state;
    struct dm_work_costs costs = curve();
    assert_int_equal(dm_work_access_ps(&costs, 1, 0), 5000);
    assert_int_equal(dm_work_access_ps(&costs, 1, 1), 5000);
    assert_int_equal(dm_work_access_ps(&costs, 1, UINT64_MAX), 115000);
    assert_int_equal(dm_work_access_ps(&costs, 0, 1 << 30), 0);
    uint64_t before = 0;
    for (uint64_t bytes = 1; bytes < UINT64_C(1) << 34; bytes += bytes / 37 + 1) {
        uint64_t cost = dm_work_access_ps(&costs, 1, bytes);
        assert_true(cost >= before);
        before = cost;
    }
}

static uint64_t clock_ps;

static void client(struct dm_ctx *ctx, void *arg) {
    const struct dm_work_costs *costs = arg;
    uint64_t begin = dm_now(ctx);
    dm_charge_access(ctx, 1000, 8 << 20);
    clock_ps = (dm_now(ctx) - begin) * 1000;
    uint64_t wanted = dm_work_access_ps(costs, 1000, 8 << 20);
    assert_true(wanted > 0 && clock_ps <= wanted && wanted - clock_ps < 1000);
}

static void a_client_of_sim_is_charged_by_the_bytes_that_it_accesses(void **state) {
    (void)state;
    struct dm_profile profile;
    struct dm_work_costs costs;
    struct dm_err err = {0};
    assert_int_equal(dm_profile_load("cx6-100g", &profile, &err), 0);
    dm_work_costs_init(&costs, &profile);
    struct world world = {.profile = "cx6-100g"};
    world_open(&world);
    world_spawn(&world, 0, client, &costs);
    assert_int_equal(dm_fabric_run(world.fabric, &err), 0);
    assert_true(clock_ps > 0);
    dm_fabric_close(world.fabric);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_curve_passes_through_the_points_of_the_profile),
        cmocka_unit_test(between_the_points_a_doubling_costs_the_same),
        cmocka_unit_test(the_curve_is_flat_beyond_its_ends_and_never_falls),
        cmocka_unit_test(a_client_of_sim_is_charged_by_the_bytes_that_it_accesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
