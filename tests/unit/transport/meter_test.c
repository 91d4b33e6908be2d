/* SPDX-License-Identifier: Apache-2.0
 *
 * The meter of index code: what it counts of an operation, and that it counts nothing where there is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/core/work.h"
#include "transport/fabric.h"

enum { RUNS_MAX = 100 };

static struct dm_account account;

/* Three parts: before the read, between it and the sleep, and after. What is outside of index code is not counted. */
static void client(struct dm_ctx *ctx, void *arg) {
    unsigned char *line = dm_local_alloc(ctx, DM_LINE);
    (void)arg;
    assert_non_null(line);
    dm_account_use(ctx, &account);
    dm_charge(ctx, DM_WORK_TRAIN_KEY, 7);
    assert_int_equal(dm_read(ctx, dm_addr_make(0, DM_DRAM, 4096), line, DM_LINE), 0);
    dm_code_begin(ctx);
    dm_charge(ctx, DM_WORK_NODE_PROBE, 2);
    assert_int_equal(dm_read(ctx, dm_addr_make(0, DM_DRAM, 4096), line, DM_LINE), 0);
    dm_charge(ctx, DM_WORK_LINE_COPY, 1);
    assert_int_equal(dm_sleep(ctx, 1000), 0);
    dm_charge_access(ctx, 3, 32 << 20);
    dm_code_end(ctx);
    dm_charge(ctx, DM_WORK_TRAIN_KEY, 7);
    dm_account_use(ctx, NULL);
}

static void run(const struct dm_meter *meter) {
    struct dm_err err = {0};
    struct dm_fabric *fabric = NULL;
    const struct dm_fabric_config config = {
        .transport = "local",
        .topology = {.mns = 1, .cns = 1, .mn_cores = 1, .clients = 1, .clients_per_thread = 1, .mn_bytes = 1 << 20},
        .seed = 1,
    };
    assert_int_equal(dm_fabric_open(&config, &fabric, &err), 0);
    dm_fabric_measure(fabric);
    dm_fabric_meter(fabric, meter);
    account = (struct dm_account){0};
    assert_int_equal(dm_spawn(fabric, dm_first_cn(&config.topology), 0, client, NULL), 0);
    assert_int_equal(dm_fabric_run(fabric, &err), 0);
    dm_fabric_close(fabric);
}

static void a_meter_adds_what_index_code_charges_and_cuts_it_at_every_wait(void **state) {
    (void)state;
    struct dm_meter *meter = NULL;
    struct dm_profile profile;
    struct dm_work_costs costs;
    struct dm_err err = {0};
    assert_int_equal(dm_profile_load("cx6-100g", &profile, &err), 0);
    dm_work_costs_init(&costs, &profile);
    assert_int_equal(dm_meter_open("cx6-100g", &meter, &err), 0);
    /* A part in which the operating system interrupted the thread is left out, so one run of many has all three. */
    unsigned runs = 0;
    do {
        run(meter);
        assert_int_equal(account.charges, 3);
        assert_int_equal(account.charged_ps, dm_work_ps(&costs, DM_WORK_NODE_PROBE, 2) +
                                                 dm_work_ps(&costs, DM_WORK_LINE_COPY, 1) +
                                                 dm_work_access_ps(&costs, 3, 32 << 20));
        assert_true(account.code_parts <= 3);
    } while (account.code_parts < 3 && ++runs < RUNS_MAX);
    dm_meter_close(meter);
    assert_int_equal(account.code_parts, 3);
    assert_true(account.code_ns > 0);
}

static void without_a_meter_nothing_is_counted(void **state) {
    (void)state;
    run(NULL);
    assert_int_equal(account.charges + account.charged_ps + account.code_ns + account.code_parts, 0);
    assert_int_equal(account.round_trips, 2);
}

static void a_meter_needs_a_profile_that_exists(void **state) {
    (void)state;
    struct dm_meter *meter = NULL;
    struct dm_err err = {0};
    assert_true(dm_meter_open("no-such-profile", &meter, &err) < 0);
    assert_null(meter);
    dm_meter_close(meter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_meter_adds_what_index_code_charges_and_cuts_it_at_every_wait),
        cmocka_unit_test(without_a_meter_nothing_is_counted),
        cmocka_unit_test(a_meter_needs_a_profile_that_exists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
