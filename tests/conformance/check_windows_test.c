/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows of operations, one by one: in some worlds of every index, each verb of some writes is the one before which
 * the client stops for good, and each read is the one that completes in error. Others must answer correctly, and after
 * a read in error they must proceed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check/run.h"

enum { WORLDS = 2, TARGETS = 4, WINDOWS = 10 };

static struct ck_world world;

static bool is_write(const struct ck_step *step) {
    return step->kind == WL_INSERT || step->kind == WL_UPDATE || step->kind == WL_DELETE;
}

/* Operations that ended as this fault makes them end: in error, or never. */
static unsigned ends_count(const struct ck_history *history, enum ck_fault_kind kind) {
    unsigned count = 0;
    for (size_t i = 0; i < history->op_count; i++) {
        const struct ck_op *op = &history->ops[i];
        bool is_stopped = op->invoke > 0 && (!op->finished || op->outcome == DM_ERR_STOPPED);
        count += kind == CK_CLIENT_STOPS ? is_stopped : op->finished && op->outcome == DM_ERR_IO;
    }
    return count;
}

/* Returns how many operations the fault has ended. */
static unsigned window_run(size_t step, enum ck_fault_kind kind, size_t verb) {
    struct ck_part part;
    struct ck_result result;
    struct dm_err err = {0};
    world.fault_count = 1;
    world.faults[0] = (struct ck_world_fault){
        .kind = kind, .client = world.steps[step].client, .is_aimed = true, .step = step, .after = verb};
    ck_part_all(&world, &part);
    int rc = ck_run(&world, &part, &result, &err);
    if (rc < 0 || result.verdict.fault != CK_RIGHT) {
        char text[120];
        fail_msg("%s: seed %llu without its faults, %s: %s", world.index->name, (unsigned long long)world.seed,
                 ck_fault_text(&world.faults[0], text, sizeof(text)), rc < 0 ? err.text : result.verdict.text);
    }
    unsigned ended = ends_count(&result.history, kind);
    ck_result_fini(&result);
    return ended;
}

struct ended {
    unsigned windows, reads, stops;
};

/* The writes in the middle of the world, one of each of some clients. */
static void world_run(struct ended *ended) {
    unsigned targets = 0;
    size_t each = world.step_count / world.topology.clients;
    for (size_t at = each / 2; at < world.step_count && targets < TARGETS; at += each) {
        size_t step = at;
        while (step + 1 < world.step_count && !is_write(&world.steps[step])) {
            step++;
        }
        for (size_t verb = 1; verb <= WINDOWS; verb++) {
            ended->windows++;
            ended->stops += window_run(step, CK_CLIENT_STOPS, verb);
            ended->reads += window_run(step, CK_READ_FAILS, verb);
        }
        targets++;
    }
}

static void every_index_survives_faults_in_each_window_of_some_writes(void **state) {
    (void)state;
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        const struct ck_request request = {.index = *ops, .transport = "sim"};
        struct ended ended = {0};
        unsigned worlds = 0;
        for (uint64_t seed = 1; worlds < WORLDS && !((*ops)->caps & IX_CAP_NO_DATA); seed++) {
            assert_int_equal(ck_world_draw(&request, seed, &world, NULL), 0);
            if (world.key_count <= 64 && world.step_count < 300) {
                world_run(&ended);
                worlds++;
            }
            ck_world_fini(&world);
        }
        print_message("%s: %u reads in error, %u stops\n", (*ops)->name, ended.reads, ended.stops);
        /* In every window its client has stopped, and sometimes others with it, which wait for each other. */
        assert_true(ended.stops >= ended.windows);
        assert_true(ended.windows > 0 || (*ops)->caps & IX_CAP_NO_DATA);
        /* Some indexes have no reads of their own in writes: everything is a call. */
        assert_true(ended.reads > 0 || (*ops)->caps & (IX_CAP_NO_DATA | IX_CAP_CLIENT_STOP));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_survives_faults_in_each_window_of_some_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
