/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults in worlds: every kind is drawn, reaches the fabric, and is judged correctly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "check/run.h"
#include "check/timeline.h"

static struct ck_world world;

static void draw(const char *transport, uint64_t seed) {
    const struct ck_request request = {.index = ix_find("sherman"), .transport = transport};
    struct dm_err err = {0};
    if (ck_world_draw(&request, seed, &world, &err) < 0) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    }
}

static bool has_fault(enum ck_fault_kind kind) {
    for (size_t i = 0; i < world.fault_count; i++) {
        if (world.faults[i].kind == kind) {
            return true;
        }
    }
    return false;
}

static void every_kind_of_fault_is_drawn_if_the_fabric_can_inject_it(void **state) {
    (void)state;
    unsigned sim[CK_FAULT_KINDS] = {0}, local[CK_FAULT_KINDS] = {0};
    for (uint64_t seed = 1; seed <= 400; seed++) {
        draw("sim", seed);
        for (int kind = 0; kind < CK_FAULT_KINDS; kind++) {
            sim[kind] += has_fault((enum ck_fault_kind)kind);
        }
        ck_world_fini(&world);
        draw("local", seed);
        for (int kind = 0; kind < CK_FAULT_KINDS; kind++) {
            local[kind] += has_fault((enum ck_fault_kind)kind);
        }
        ck_world_fini(&world);
    }
    for (int kind = 0; kind < CK_FAULT_KINDS; kind++) {
        assert_true(kind == CK_SERVER_FAILS ? sim[kind] == 0 : sim[kind] > 10);
        assert_int_equal(local[kind] > 0, kind == CK_CLIENT_ENDS);
    }
}

static void a_fault_names_the_client_by_its_number_in_the_fabric(void **state) {
    (void)state;
    char text[80];
    static const struct ck_world three = {.topology = {.mns = 3, .servers = 2}};
    const struct ck_world_fault down = {.kind = CK_SERVER_FAILS, .server = 1, .after = 7000, .ns = 400};
    const struct ck_world_fault stop = {.kind = CK_CLIENT_STOPS, .client = 5, .after = 17};
    const struct ck_world_fault stall = {.kind = CK_CLIENT_STALLS, .client = 5, .after = 3, .ns = 400};
    const struct ck_world_fault late = {.kind = CK_VERBS_LATE, .percent = 5, .ns = 900};
    const struct ck_world_fault end = {.kind = CK_CLIENT_ENDS, .client = 5, .after = 17};
    assert_true(ck_fault_rule(&three, &stop, 2, text, sizeof(text)) > 0);
    assert_string_equal(text, "stop:client=2,verb=17;");
    assert_true(ck_fault_rule(&three, &stall, 2, text, sizeof(text)) > 0);
    assert_string_equal(text, "stop:client=2,verb=3,for=400ns;");
    assert_true(ck_fault_rule(&three, &late, 2, text, sizeof(text)) > 0);
    assert_string_equal(text, "delay:p=0.05,by=900ns;");
    assert_int_equal(ck_fault_rule(&three, &end, 2, text, sizeof(text)), 0);
    assert_true(ck_fault_rule(&three, &down, 2, text, sizeof(text)) > 0);
    assert_string_equal(text, "fail:node=4,at=7000ns,for=400ns;");
    const struct ck_world_fault far = {.kind = CK_NODE_LATE, .server = 2, .percent = 99, .ns = 900};
    const struct ck_world_fault error = {.kind = CK_VERB_FAILS, .client = 5, .after = 8};
    const struct ck_world_fault full = {.kind = CK_MEMORY_ENDS, .after = 8};
    assert_true(ck_fault_rule(&three, &far, 2, text, sizeof(text)) > 0);
    assert_string_equal(text, "delay:node=2,p=0.99,by=900ns;");
    assert_true(ck_fault_rule(&three, &error, 2, text, sizeof(text)) > 0);
    assert_string_equal(text, "error:client=2,verb=8;");
    assert_int_equal(ck_fault_rule(&three, &full, 2, text, sizeof(text)), 0);
}

static void server_failures_are_drawn_only_for_indexes_that_survive_them(void **state) {
    (void)state;
    unsigned failed = 0, again = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        for (const struct ix_ops *const *index = ix_all(); *index; index++) {
            const struct ck_request request = {.index = *index, .transport = "sim"};
            struct ck_world drawn;
            unsigned count = 0;
            assert_int_equal(ck_world_draw(&request, seed, &drawn, NULL), 0);
            for (size_t i = 0; i < drawn.fault_count; i++) {
                count += drawn.faults[i].kind == CK_SERVER_FAILS;
            }
            assert_true(count == 0 || (*index)->caps & IX_CAP_SERVER_FAULT);
            failed += count > 0;
            again += count > 1;
            ck_world_fini(&drawn);
        }
    }
    assert_true(failed > 50);
    assert_true(again > 20);
}

static unsigned stops_traced(const struct ck_verb_log *verbs, bool for_good) {
    unsigned count = 0;
    for (size_t i = 0; i < verbs->count; i++) {
        const struct dm_trace_event *event = &verbs->items[i].event;
        count += event->kind == DM_TRACE_STOP && (event->outcome == DM_ERR_STOPPED) == for_good;
    }
    return count;
}

static unsigned open_operations(const struct ck_history *history) {
    unsigned count = 0;
    for (size_t i = 0; i < history->op_count; i++) {
        count += !history->ops[i].finished;
    }
    return count;
}

/* A client may end before the verb at which it should stop, so not every fault happens. */
static void clients_that_stop_leave_operations_open_and_no_index_is_blamed_for_it(void **state) {
    (void)state;
    unsigned stopped = 0, open = 0, stalled = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct ck_part part;
        struct ck_result result;
        draw("sim", seed);
        bool stops = has_fault(CK_CLIENT_STOPS);
        if (stops || has_fault(CK_CLIENT_STALLS)) {
            ck_part_all(&world, &part);
            world.logs_verbs = true;
            assert_int_equal(ck_run(&world, &part, &result, NULL), 0);
            if (result.verdict.fault != CK_RIGHT) {
                fail_msg("seed %llu: %s", (unsigned long long)seed, result.verdict.text);
            }
            assert_true(result.history.may_starve || !stops);
            stopped += stops_traced(&result.verbs, true);
            stalled += stops_traced(&result.verbs, false);
            open += stops ? open_operations(&result.history) : 0;
            ck_result_fini(&result);
        }
        ck_world_fini(&world);
    }
    assert_true(stopped > 10 && stalled > 10 && open > 10);
}

/* The operation of a history that writes the value of this step; NULL if there is none. */
static const struct ck_op *op_of_step(const struct ck_history *history, size_t step) {
    for (size_t i = 0; i < history->op_count; i++) {
        if (history->ops[i].value == ck_step_value(step) && history->ops[i].kind != WL_GET) {
            return &history->ops[i];
        }
    }
    return NULL;
}

static const struct ck_world_fault *aimed_fault(enum ck_fault_kind kind) {
    for (size_t i = 0; i < world.fault_count; i++) {
        const struct ck_world_fault *fault = &world.faults[i];
        enum wl_op_kind target = world.steps[fault->step].kind;
        if (fault->is_aimed && fault->kind == kind && (target == WL_INSERT || target == WL_UPDATE)) {
            return fault;
        }
    }
    return NULL;
}

/* How many worlds have such a fault aimed at an insert or update, and in how many it hit. */
static void hits_count(enum ck_fault_kind kind, unsigned *aimed, unsigned *hit) {
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        draw("sim", seed);
        const struct ck_world_fault *fault = aimed_fault(kind);
        if (fault) {
            struct ck_part part;
            struct ck_result result;
            ck_part_all(&world, &part);
            assert_int_equal(ck_run(&world, &part, &result, NULL), 0);
            assert_int_equal(result.verdict.fault, CK_RIGHT);
            const struct ck_op *op = op_of_step(&result.history, fault->step);
            ++*aimed;
            *hit += op && (kind == CK_CLIENT_STOPS ? !op->finished || op->outcome == DM_ERR_STOPPED
                                                   : op->finished && op->outcome == DM_ERR_IO);
            ck_result_fini(&result);
        }
        ck_world_fini(&world);
    }
}

/* A client may end before the step, and an operation that only waits for another's has no verb of its own. */
static void a_fault_that_is_aimed_at_an_operation_hits_that_operation(void **state) {
    (void)state;
    unsigned aimed[2] = {0}, hit[2] = {0};
    hits_count(CK_READ_FAILS, &aimed[0], &hit[0]);
    hits_count(CK_CLIENT_STOPS, &aimed[1], &hit[1]);
    print_message("reads in error: %u of %u; stops: %u of %u\n", hit[0], aimed[0], hit[1], aimed[1]);
    assert_true(aimed[0] > 30 && 2 * hit[0] > aimed[0]);
    assert_true(aimed[1] > 10 && 2 * hit[1] > aimed[1]);
}

static void where_memory_ends_inserts_fail_and_no_index_is_blamed_for_it(void **state) {
    (void)state;
    unsigned failed = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        draw("sim", seed);
        if (has_fault(CK_MEMORY_ENDS)) {
            struct ck_part part;
            struct ck_result result;
            ck_part_all(&world, &part);
            assert_int_equal(ck_run(&world, &part, &result, NULL), 0);
            assert_int_equal(result.verdict.fault, CK_RIGHT);
            for (size_t i = 0; i < result.history.op_count; i++) {
                failed += result.history.ops[i].finished && result.history.ops[i].outcome == DM_ERR_NO_MEMORY;
            }
            ck_result_fini(&result);
        }
        ck_world_fini(&world);
    }
    assert_true(failed > 20);
}

static struct ck_verdict judge_one_that_gave_up(bool may_starve) {
    struct ck_op op = {.kind = WL_UPDATE,
                       .finished = true,
                       .outcome = DM_ERR_RETRY_LIMIT,
                       .key = 1,
                       .value = 2,
                       .invoke = 1,
                       .response = 2};
    const struct ck_history history = {.may_starve = may_starve, .ops = &op, .op_count = 1};
    struct ck_verdict verdict;
    assert_int_equal(ck_judge(&history, &verdict), 0);
    return verdict;
}

static void giving_up_is_right_only_if_a_client_stopped_for_good(void **state) {
    (void)state;
    assert_int_equal(judge_one_that_gave_up(false).fault, CK_NO_PROGRESS);
    assert_int_equal(judge_one_that_gave_up(true).fault, CK_RIGHT);
}

static void a_history_file_keeps_that_clients_may_starve_and_which_failures_are_explained(void **state) {
    (void)state;
    char path[] = "/tmp/dmbench_history.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct ck_op ops[2] = {
        {.client = 1, .kind = WL_DELETE, .finished = true, .outcome = DM_ERR_IO, .invoke = 1, .response = 2},
        {.client = 2, .kind = WL_DELETE, .finished = true, .outcome = DM_ERR_NO_MEMORY, .invoke = 1, .response = 2},
    };
    const struct ck_history history = {
        .index = "toy", .may_starve = true, .may_fail = CK_MAY_FAIL_IO | CK_MAY_RUN_OUT, .ops = ops, .op_count = 2};
    struct ck_history again;
    assert_int_equal(ck_history_store(&history, path, NULL), 0);
    assert_int_equal(ck_history_load(path, &again, NULL), 0);
    assert_true(again.may_starve);
    assert_int_equal(again.may_fail, CK_MAY_FAIL_IO | CK_MAY_RUN_OUT);
    ck_history_fini(&again);
    unlink(path);
}

static void the_timeline_shows_the_verbs_of_the_operations_of_its_key(void **state) {
    (void)state;
    struct ck_op ops[] = {
        {.client = 3,
         .kind = WL_GET,
         .finished = true,
         .key = 1,
         .value = 9,
         .invoke = 1,
         .response = 2,
         .invoke_ns = 1000,
         .response_ns = 5000},
        {.client = 4,
         .kind = WL_GET,
         .finished = true,
         .key = 2,
         .value = 9,
         .invoke = 3,
         .response = 4,
         .invoke_ns = 1000,
         .response_ns = 5000},
    };
    struct ck_verb items[] = {
        {.client = 3,
         .event = {.kind = DM_VERB_CAS,
                   .target = 1,
                   .len = 8,
                   .addr = dm_addr_make(1, DM_DRAM, 0xab40),
                   .posted_ns = 1500,
                   .effect_ns = 2100,
                   .landed_ns = 2100,
                   .done_ns = 3000,
                   .has_found = true,
                   .found = 0x77}},
        {.client = 3, .event = {.kind = DM_VERB_READ, .len = 16, .posted_ns = 9000, .done_ns = 9900}},
        {.client = 4, .event = {.kind = DM_VERB_READ, .len = 32, .posted_ns = 1600, .done_ns = 2000}},
    };
    const struct ck_history history = {.ops = ops, .op_count = 2};
    const struct ck_verb_log verbs = {.items = items, .count = 3};
    const struct ck_verdict verdict = {.fault = CK_NOT_LINEARIZABLE, .has_key = true, .key = 1, .op = 0};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    ck_timeline_print(&history, &verdict, &verbs, out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "cas 8 at 1:00ab40: not swapped, found 77, acts 2.100, done 3.000"));
    assert_null(strstr(text, "read"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_fault_is_drawn_if_the_fabric_can_inject_it),
        cmocka_unit_test(a_fault_names_the_client_by_its_number_in_the_fabric),
        cmocka_unit_test(server_failures_are_drawn_only_for_indexes_that_survive_them),
        cmocka_unit_test(clients_that_stop_leave_operations_open_and_no_index_is_blamed_for_it),
        cmocka_unit_test(a_fault_that_is_aimed_at_an_operation_hits_that_operation),
        cmocka_unit_test(where_memory_ends_inserts_fail_and_no_index_is_blamed_for_it),
        cmocka_unit_test(giving_up_is_right_only_if_a_client_stopped_for_good),
        cmocka_unit_test(a_history_file_keeps_that_clients_may_starve_and_which_failures_are_explained),
        cmocka_unit_test(the_timeline_shows_the_verbs_of_the_operations_of_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
