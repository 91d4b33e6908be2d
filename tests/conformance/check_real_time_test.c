/* SPDX-License-Identifier: Apache-2.0
 *
 * Campaigns in real time, where threads share the seeds: every seed is run once, and the result of the lowest one that
 * failed is kept, since no run can be repeated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "check/campaign.h"

enum { FIRST = 11, SEEDS = 24, JOBS = 3 };

static void run(const struct ix_ops *index, unsigned jobs, struct ck_summary *summary, struct ck_result *kept) {
    const struct ck_campaign campaign = {.request = {.index = index, .transport = "local", .rdwc = CK_RDWC_OFF},
                                         .first_seed = FIRST,
                                         .seeds = SEEDS,
                                         .jobs = jobs};
    struct dm_err err = {0};
    if (ck_campaign_run(&campaign, summary, kept, &err) < 0) {
        fail_msg("%s: %s", index->name, err.text);
    }
}

static void threads_share_the_seeds(void **state) {
    (void)state;
    struct ck_summary alone, shared;
    struct ck_result kept;
    run(ix_find("fg"), 1, &alone, &kept);
    ck_result_fini(&kept);
    run(ix_find("fg"), JOBS, &shared, &kept);
    if (shared.has_failed) {
        fail_msg("seed %llu: %s", (unsigned long long)shared.failed_seed, shared.verdict.text);
    }
    assert_int_equal(kept.history.op_count, 0);
    assert_int_equal(shared.seeds, SEEDS);
    assert_int_equal(shared.operations, alone.operations);
    ck_result_fini(&kept);
}

static int verify_that_complains(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    (void)cn;
    (void)ctx;
    (void)err;
    *report = (struct ix_report){.broken = 1, .first_problem = "a complaint"};
    return 0;
}

/* Every world is found wrong, and others run when the first one ends. */
static void the_lowest_seed_that_failed_is_kept(void **state) {
    (void)state;
    struct ix_ops wrong = *ix_find("fg");
    struct ck_summary summary;
    struct ck_result kept;
    wrong.verify = verify_that_complains;
    run(&wrong, JOBS, &summary, &kept);
    assert_true(summary.has_failed);
    assert_int_equal(summary.failed_seed, FIRST);
    assert_in_range(summary.seeds, 1, JOBS);
    assert_int_equal(kept.history.seed, FIRST);
    assert_int_equal(kept.verdict.fault, CK_BROKEN);
    assert_true(kept.verbs.count > 0);
    ck_result_fini(&kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_the_seeds),
        cmocka_unit_test(the_lowest_seed_that_failed_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
