/* SPDX-License-Identifier: Apache-2.0
 *
 * Every index passes a fixed set of seeds, in which each of its rare events happens; and every parameter value that is
 * known to be wrong is found within its stated number of seeds. A checker that cannot fail proves nothing.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check/campaign.h"
#include "common/compiler.h"
#include "in_part.h"

/* Seeds are run in blocks until every rare event has happened. The rarest one happens once in several hundred seeds.
 * With a sanitizer, which makes them ten times as slow, there is one block; check_fresh_test runs others each time. */
enum { SEEDS = 200, BLOCK_SEEDS = 500, COVERAGE_SEEDS = 6000 };

static struct ck_summary run_with(const struct ix_ops *index, const struct dm_setting *settings, size_t setting_count,
                                  enum ck_rdwc rdwc, uint64_t first_seed, uint64_t seeds) {
    const struct ck_campaign campaign = {
        .request = {.index = index, .transport = "sim", .params = settings, .param_count = setting_count, .rdwc = rdwc},
        .first_seed = first_seed,
        .seeds = seeds,
        .jobs = 1,
    };
    struct ck_summary summary;
    struct ck_result kept;
    struct dm_err err = {0};
    int rc = ck_campaign_run(&campaign, &summary, &kept, &err);
    ck_result_fini(&kept);
    if (rc < 0) {
        fail_msg("%s: %s", index->name, err.text);
    }
    return summary;
}

static struct ck_summary run_from(const struct ix_ops *index, const struct dm_setting *setting, enum ck_rdwc rdwc,
                                  uint64_t first_seed, uint64_t seeds) {
    return run_with(index, setting, setting != NULL, rdwc, first_seed, seeds);
}

static struct ck_summary run_shared(const struct ix_ops *index, const struct dm_setting *setting, enum ck_rdwc rdwc,
                                    uint64_t seeds) {
    return run_from(index, setting, rdwc, 1, seeds);
}

static struct ck_summary run(const struct ix_ops *index, const struct dm_setting *setting, uint64_t seeds) {
    return run_shared(index, setting, CK_RDWC_DRAWN, seeds);
}

/* The first of the index's rare events that has not happened; NULL if all have. */
static const char *event_unseen(const struct ix_ops *index, const uint64_t *seen) {
    for (size_t i = 0; i < ix_counter_count(index) && i < CK_COUNTERS_MAX; i++) {
        if (index->counters[i].rare && seen[i] == 0) {
            return index->counters[i].name;
        }
    }
    return NULL;
}

static void index_passes_and_its_rare_events_happen(const struct ix_ops *index) {
    uint64_t seen[CK_COUNTERS_MAX] = {0};
    uint64_t first = 1;
    uint64_t block = event_unseen(index, seen) ? BLOCK_SEEDS : SEEDS;
    const uint64_t limit = TEST_SANITIZED ? block : COVERAGE_SEEDS;
    do {
        struct ck_summary summary = run_from(index, NULL, CK_RDWC_DRAWN, first, block);
        if (summary.has_failed) {
            fail_msg("%s: seed %llu: %s; run dmbench check --index %s --replay %llu", index->name,
                     (unsigned long long)summary.failed_seed, summary.verdict.text, index->name,
                     (unsigned long long)summary.failed_seed);
        }
        for (size_t i = 0; i < CK_COUNTERS_MAX; i++) {
            seen[i] += summary.counters[i];
        }
        first += block;
    } while (event_unseen(index, seen) && first <= limit);
    if (!TEST_SANITIZED && event_unseen(index, seen)) {
        fail_msg("%s: %s never happened in %llu seeds", index->name, event_unseen(index, seen),
                 (unsigned long long)first - 1);
    }
}

static void every_index_passes_and_its_rare_events_happen(void **state) {
    (void)state;
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        if (!((*ops)->caps & IX_CAP_NO_DATA)) {
            index_passes_and_its_rare_events_happen(*ops);
        }
    }
}

static void every_value_known_to_be_wrong_is_found_within_its_seeds(void **state) {
    (void)state;
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        const char *name = (*ops)->name;
        for (const struct ix_wrong *wrong = (*ops)->wrong; wrong && wrong->param; wrong++) {
            if (wrong->seeds == 0) {
                print_message("%s %s=%s: too rare to assert\n", name, wrong->param, wrong->value);
                continue;
            }
            const struct dm_setting setting = {wrong->param, wrong->value};
            struct ck_summary summary = run(*ops, &setting, wrong->seeds);
            if (!summary.has_failed) {
                fail_msg("%s with %s=%s: not found in %u seeds, although %s", name, wrong->param, wrong->value,
                         wrong->seeds, wrong->why);
            }
            print_message("%s %s=%s: seed %llu: %s\n", name, wrong->param, wrong->value,
                          (unsigned long long)summary.failed_seed, ck_fault_names[summary.verdict.fault]);
        }
    }
}

static void every_index_passes_with_read_delegation_and_write_combining(void **state) {
    (void)state;
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        if ((*ops)->caps & IX_CAP_NO_DATA) {
            continue;
        }
        struct ck_summary summary = run_shared(*ops, NULL, CK_RDWC_ON, SEEDS);
        if (summary.has_failed) {
            fail_msg("%s: seed %llu: %s", (*ops)->name, (unsigned long long)summary.failed_seed, summary.verdict.text);
        }
        assert_true(summary.shared.shared_gets > 0);
        assert_true(summary.shared.shared_updates > 0 || !((*ops)->caps & IX_CAP_INSERT));
        assert_true(summary.shared.bypassed > 0);
    }
}

static void world_passes(const char *path) {
    static struct ck_world world;
    struct ck_part part;
    struct ck_result result = {.is_virtual = false};
    struct dm_err err = {0};
    if (ck_world_load(path, &world, &err) < 0) {
        fail_msg("%s", err.text);
    }
    ck_part_all(&world, &part);
    int rc = ck_run(&world, &part, &result, &err);
    if (rc < 0 || result.verdict.fault != CK_RIGHT) {
        fail_msg("%s: %s; run dmbench check --world %s", path, rc < 0 ? err.text : result.verdict.text, path);
    }
    ck_result_fini(&result);
    ck_world_fini(&world);
}

/* Worlds in which a fault was once found. Each file says which; seeds may draw other worlds since. */
static void kept_worlds_in_which_a_fault_was_once_found_pass(void **state) {
    (void)state;
    glob_t found;
    assert_int_equal(glob(DM_SOURCE_DIR "/tests/worlds/*.json", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        world_passes(found.gl_pathv[i]);
    }
    globfree(&found);
}

/* A get that joins another get that has already begun may return a value that was overwritten before it began; an
 * update that joins another one may end without its value ever having been there. */
static void read_delegation_as_published_is_found_and_its_late_gets_alone_too(void **state) {
    (void)state;
    static const struct {
        const char *index;
        enum ck_rdwc rdwc;
        uint64_t seeds;
    } cases[] = {{"chime", CK_RDWC_STALE, 200},
                 {"sherman", CK_RDWC_STALE, 1000},
                 {"chime", CK_RDWC_PUBLISHED, 200},
                 {"sherman", CK_RDWC_PUBLISHED, 200}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ck_summary summary = run_shared(ix_find(cases[i].index), NULL, cases[i].rdwc, cases[i].seeds);
        assert_true(summary.has_failed);
        assert_int_equal(summary.verdict.fault, CK_NOT_LINEARIZABLE);
        print_message("%s with %s delegation: seed %llu\n", cases[i].index,
                      cases[i].rdwc == CK_RDWC_STALE ? "stale" : "published", (unsigned long long)summary.failed_seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_passes_and_its_rare_events_happen),
        cmocka_unit_test(every_index_passes_with_read_delegation_and_write_combining),
        cmocka_unit_test(kept_worlds_in_which_a_fault_was_once_found_pass),
        /* the next two are of results */
        cmocka_unit_test(read_delegation_as_published_is_found_and_its_late_gets_alone_too),
        cmocka_unit_test(every_value_known_to_be_wrong_is_found_within_its_seeds),
    };
    return test_run_in_part("check", tests, DM_ARRAY_LEN(tests), 2);
}
