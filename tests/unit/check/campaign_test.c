/* SPDX-License-Identifier: Apache-2.0
 *
 * The complete checker on a toy index. The correct index passes. Each wrong variant is found with the right fault,
 * whatever the number of processes, and its world is shrunk to a few operations.
 */
#include "check/campaign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "check/shrink.h"
#include "tests/unit/check/toy_index.h"

static struct ck_summary run_limited(enum toy_fault fault, uint64_t seeds, unsigned jobs, uint64_t seed_time_ns) {
    const struct dm_setting setting = {"fault", toy_fault_names[fault]};
    const struct ck_campaign campaign = {
        .request = {.index = &toy_index, .transport = "sim", .params = &setting, .param_count = 1},
        .first_seed = 1,
        .seeds = seeds,
        .seed_time_ns = seed_time_ns,
        .jobs = jobs,
    };
    struct ck_summary summary;
    struct ck_result kept;
    struct dm_err err = {0};
    int rc = ck_campaign_run(&campaign, &summary, &kept, &err);
    ck_result_fini(&kept);
    if (rc < 0) {
        fail_msg("%s: %s", toy_fault_names[fault], err.text);
    }
    return summary;
}

static struct ck_summary run(enum toy_fault fault, uint64_t seeds, unsigned jobs) {
    return run_limited(fault, seeds, jobs, 0);
}

static void a_correct_index_passes(void **state) {
    (void)state;
    struct ck_summary summary = run(TOY_NONE, 300, 1);
    if (summary.has_failed) {
        fail_msg("seed %llu: %s", (unsigned long long)summary.failed_seed, summary.verdict.text);
    }
    assert_int_equal(summary.seeds, 300);
    assert_true(summary.operations > 30000);
    assert_true(summary.counters[TOY_COUNT_UPDATES] > 1000);
    assert_int_equal(summary.counters[TOY_COUNT_NEVER], 0);
}

static void each_wrong_variant_is_found_with_the_right_fault(void **state) {
    (void)state;
    static const struct {
        enum toy_fault fault;
        enum ck_fault found[2];
    } cases[] = {
        {TOY_LOST_UPDATE, {CK_NOT_LINEARIZABLE, CK_NOT_LINEARIZABLE}},
        {TOY_STALE_READ, {CK_NOT_LINEARIZABLE, CK_NOT_LINEARIZABLE}},
        {TOY_TORN_VALUE, {CK_STRANGE_VALUE, CK_STRANGE_VALUE}},
        {TOY_LYING_INSERT, {CK_NOT_LINEARIZABLE, CK_NOT_LINEARIZABLE}},
        {TOY_SCAN_GAP, {CK_NOT_LINEARIZABLE, CK_NOT_LINEARIZABLE}},
        {TOY_SCAN_ORDER, {CK_WRONG_SCAN, CK_STRANGE_VALUE}},
        {TOY_SCAN_MORE, {CK_WRONG_SCAN, CK_WRONG_SCAN}},
        {TOY_GIVES_UP, {CK_NO_PROGRESS, CK_NO_PROGRESS}},
        {TOY_FAILS, {CK_UNEXPLAINED, CK_UNEXPLAINED}},
        {TOY_RUNS_OUT, {CK_UNEXPLAINED, CK_UNEXPLAINED}},
        {TOY_HANGS, {CK_STUCK, CK_STUCK}},
        {TOY_MISCOUNTS, {CK_BROKEN, CK_BROKEN}},
        {TOY_BROKEN, {CK_BROKEN, CK_BROKEN}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ck_summary summary = run(cases[i].fault, 20, 1);
        if (!summary.has_failed) {
            fail_msg("%s is not found in 20 seeds", toy_fault_names[cases[i].fault]);
        }
        if (summary.verdict.fault != cases[i].found[0] && summary.verdict.fault != cases[i].found[1]) {
            fail_msg("%s is reported as %s: %s", toy_fault_names[cases[i].fault], ck_fault_names[summary.verdict.fault],
                     summary.verdict.text);
        }
    }
}

static void the_reported_seed_does_not_depend_on_the_number_of_processes(void **state) {
    (void)state;
    struct ck_summary alone = run(TOY_LOST_UPDATE, 100, 1), shared = run(TOY_LOST_UPDATE, 100, 3);
    assert_true(alone.has_failed && shared.has_failed);
    assert_int_equal(alone.failed_seed, shared.failed_seed);
    assert_string_equal(alone.verdict.text, shared.verdict.text);
    alone = run(TOY_NONE, 60, 1);
    shared = run(TOY_NONE, 60, 3);
    assert_int_equal(alone.operations, shared.operations);
    assert_memory_equal(alone.counters, shared.counters, sizeof(alone.counters));
}

/* The update never ends, whatever the limit; correct seeds take some milliseconds. */
static void a_seed_that_computes_for_ever_is_a_finding_with_its_seed(void **state) {
    (void)state;
    enum { LIMIT_NS = 1000000000 };
    struct ck_summary alone = run_limited(TOY_SPINS, 20, 1, LIMIT_NS), shared = run_limited(TOY_SPINS, 20, 3, LIMIT_NS);
    assert_true(alone.has_failed && alone.is_endless);
    assert_int_equal(alone.verdict.fault, CK_STUCK);
    assert_string_equal(alone.verdict.text, "the run did not end within 1 s of processor time");
    assert_true(shared.has_failed && shared.is_endless);
    assert_int_equal(alone.failed_seed, shared.failed_seed);
}

static void a_limit_of_time_does_not_change_what_seeds_do(void **state) {
    (void)state;
    struct ck_summary plain = run(TOY_NONE, 60, 1), limited = run_limited(TOY_NONE, 60, 1, UINT64_C(300000000000));
    assert_false(limited.has_failed);
    assert_int_equal(plain.operations, limited.operations);
    assert_memory_equal(plain.counters, limited.counters, sizeof(plain.counters));
    plain = run(TOY_LOST_UPDATE, 100, 1);
    limited = run_limited(TOY_LOST_UPDATE, 100, 1, UINT64_C(300000000000));
    assert_int_equal(plain.failed_seed, limited.failed_seed);
    assert_false(limited.is_endless);
}

static void a_lost_update_is_shrunk_to_a_few_operations_that_replay(void **state) {
    (void)state;
    const struct dm_setting setting = {"fault", "lost_update"};
    const struct ck_request request = {.index = &toy_index, .transport = "sim", .params = &setting, .param_count = 1};
    uint64_t seed = run(TOY_LOST_UPDATE, 100, 1).failed_seed;
    static struct ck_world world;
    struct ck_part part, again;
    struct ck_result result, replayed;
    assert_int_equal(ck_world_draw(&request, seed, &world, NULL), 0);
    ck_part_all(&world, &part);
    assert_int_equal(ck_run(&world, &part, &result, NULL), 0);
    assert_int_equal(result.verdict.fault, CK_NOT_LINEARIZABLE);
    assert_true(ck_shrink(&world, &part, &result, 10000, NULL) > 0);
    size_t steps = 0;
    for (size_t i = 0; i < CK_STEPS_MAX; i++) {
        steps += part.steps[i];
    }
    assert_in_range(steps, 1, 4);
    char text[CK_PART_TEXT_BYTES];
    assert_int_equal(ck_part_parse(ck_part_text(&part, text, sizeof(text)), &again, NULL), 0);
    assert_memory_equal(&part, &again, sizeof(part));
    assert_int_equal(ck_run(&world, &again, &replayed, NULL), 0);
    assert_int_equal(replayed.verdict.fault, CK_NOT_LINEARIZABLE);
    assert_string_equal(replayed.verdict.text, result.verdict.text);
    ck_result_fini(&replayed);
    ck_result_fini(&result);
    ck_world_fini(&world);
}

static bool has_stop(const struct ck_world *world) {
    for (size_t i = 0; i < world->fault_count; i++) {
        if (world->faults[i].kind == CK_CLIENT_STOPS) {
            return true;
        }
    }
    return false;
}

/* Draws the first world, from `seed` on, in which a client stops for good; its index has the fault. */
static void stopped_world_draw(enum toy_fault fault, uint64_t seed, struct ck_world *world) {
    const struct dm_setting setting = {"fault", toy_fault_names[fault]};
    const struct ck_request request = {.index = &toy_index, .transport = "sim", .params = &setting, .param_count = 1};
    assert_int_equal(ck_world_draw(&request, seed, world, NULL), 0);
    while (!has_stop(world)) {
        ck_world_fini(world);
        assert_int_equal(ck_world_draw(&request, ++seed, world, NULL), 0);
    }
}

static void the_structure_is_judged_after_a_client_stopped_for_good_too(void **state) {
    (void)state;
    static const enum toy_fault faults[] = {TOY_NONE, TOY_BROKEN, TOY_MISCOUNTS};
    static struct ck_world world;
    for (size_t i = 0; i < 3; i++) {
        struct ck_part part;
        struct ck_result result;
        stopped_world_draw(faults[i], 1, &world);
        ck_part_all(&world, &part);
        assert_int_equal(ck_run(&world, &part, &result, NULL), 0);
        assert_true(result.history.may_starve);
        assert_int_equal(result.verdict.fault, faults[i] == TOY_NONE ? CK_RIGHT : CK_BROKEN);
        ck_result_fini(&result);
        ck_world_fini(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correct_index_passes),
        cmocka_unit_test(each_wrong_variant_is_found_with_the_right_fault),
        cmocka_unit_test(the_reported_seed_does_not_depend_on_the_number_of_processes),
        cmocka_unit_test(a_seed_that_computes_for_ever_is_a_finding_with_its_seed),
        cmocka_unit_test(a_limit_of_time_does_not_change_what_seeds_do),
        cmocka_unit_test(a_lost_update_is_shrunk_to_a_few_operations_that_replay),
        cmocka_unit_test(the_structure_is_judged_after_a_client_stopped_for_good_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
