/* SPDX-License-Identifier: Apache-2.0
 *
 * Complete histories: scans, outcomes and many keys; correct histories, and histories with a single flaw.
 */
#include "check/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/prng.h"

static struct ck_verdict judge(struct ck_op *ops, size_t count, struct ck_pair *initial, size_t initial_count) {
    struct ck_history history = {.ops = ops, .op_count = count, .initial = initial, .initial_count = initial_count};
    struct ck_verdict verdict;
    assert_int_equal(ck_judge(&history, &verdict), 0);
    return verdict;
}

#define OP(...)                                                                                                        \
    { .finished = true, __VA_ARGS__ }

static void a_scan_may_not_miss_a_key_that_was_present_throughout(void **state) {
    (void)state;
    struct ck_pair initial[] = {{1, 11}, {2, 12}, {3, 13}};
    struct ck_pair pairs[] = {{1, 11}, {3, 13}};
    struct ck_op ops[] = {
        OP(.client = 0, .kind = WL_SCAN, .key = 0, .wanted = 2, .found = 2, .pairs = pairs, .invoke = 1,
           .response = 10),
        OP(.client = 1, .kind = WL_DELETE, .key = 2, .invoke = 11, .response = 12),
    };
    struct ck_verdict verdict = judge(ops, 2, initial, 3);
    assert_int_equal(verdict.fault, CK_NOT_LINEARIZABLE);
    assert_int_equal(verdict.key, 2);
    assert_int_equal(verdict.op, 0);
    ops[1].invoke = 9; /* during the scan: the key may have been deleted before the scan read it */
    assert_int_equal(judge(ops, 2, initial, 3).fault, CK_RIGHT);
}

static void a_scan_must_be_complete_up_to_its_last_key_or_to_the_end_if_it_returned_fewer(void **state) {
    (void)state;
    struct ck_pair initial[] = {{1, 11}, {2, 12}, {3, 13}};
    struct ck_pair pairs[] = {{1, 11}, {2, 12}};
    struct ck_op scan =
        OP(.kind = WL_SCAN, .key = 0, .wanted = 2, .found = 2, .pairs = pairs, .invoke = 1, .response = 10);
    assert_int_equal(judge(&scan, 1, initial, 3).fault, CK_RIGHT);
    scan.wanted = 3;
    assert_int_equal(judge(&scan, 1, initial, 3).fault, CK_NOT_LINEARIZABLE);
    scan.key = 2;
    assert_int_equal(judge(&scan, 1, initial, 3).fault, CK_WRONG_SCAN);
}

static void a_scan_must_be_sorted_without_duplicates_and_have_only_written_pairs(void **state) {
    (void)state;
    struct ck_pair initial[] = {{1, 11}, {2, 12}};
    static const struct {
        struct ck_pair pairs[2];
        uint32_t found;
        enum ck_fault fault;
    } cases[] = {
        {{{1, 11}, {2, 12}}, 2, CK_RIGHT},
        {{{2, 12}, {1, 11}}, 2, CK_WRONG_SCAN},
        {{{1, 11}, {1, 11}}, 2, CK_WRONG_SCAN},
        {{{1, 11}, {2, CK_VALUE_STRANGE}}, 2, CK_STRANGE_VALUE},
        {{{1, 11}, {2, 11}}, 2, CK_NOT_LINEARIZABLE}, /* the value of another key */
        {{{1, 11}, {7, 12}}, 2, CK_WRONG_SCAN},       /* a key that no operation inserted */
        {{{1, 11}, {2, 12}}, 5, CK_WRONG_SCAN},       /* more pairs than requested */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ck_pair pairs[2] = {cases[i].pairs[0], cases[i].pairs[1]};
        struct ck_op scan =
            OP(.kind = WL_SCAN, .wanted = 4, .found = cases[i].found, .pairs = pairs, .invoke = 1, .response = 2);
        assert_int_equal(judge(&scan, 1, initial, 2).fault, cases[i].fault);
    }
}

static void outcomes_are_those_of_the_contract(void **state) {
    (void)state;
    static const struct {
        enum wl_op_kind kind;
        int outcome;
        enum ck_fault fault;
    } cases[] = {
        {WL_INSERT, DM_NOT_FOUND, CK_STRANGE_OUTCOME},    {WL_UPDATE, DM_EXISTS, CK_STRANGE_OUTCOME},
        {WL_GET, DM_EXISTS, CK_STRANGE_OUTCOME},          {WL_DELETE, DM_ERR_CORRUPT, CK_STRANGE_OUTCOME},
        {WL_GET, DM_ERR_UNSUPPORTED, CK_STRANGE_OUTCOME}, {WL_SCAN, DM_NOT_FOUND, CK_STRANGE_OUTCOME},
        {WL_UPDATE, DM_ERR_RETRY_LIMIT, CK_NO_PROGRESS},  {WL_GET, DM_NOT_FOUND, CK_RIGHT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ck_op op =
            OP(.kind = cases[i].kind, .key = 4, .value = 9, .outcome = cases[i].outcome, .invoke = 1, .response = 2);
        assert_int_equal(judge(&op, 1, NULL, 0).fault, cases[i].fault);
    }
}

static enum ck_fault fault_of_one(enum wl_op_kind kind, int outcome, unsigned may_fail) {
    struct ck_op op = OP(.kind = kind, .key = 4, .value = 9, .outcome = outcome, .invoke = 1, .response = 2);
    const struct ck_history history = {.ops = &op, .op_count = 1, .may_fail = may_fail};
    struct ck_verdict verdict;
    assert_int_equal(ck_judge(&history, &verdict), 0);
    return verdict.fault;
}

static void a_failure_is_right_only_if_a_fault_of_the_run_explains_it(void **state) {
    (void)state;
    static const struct {
        int outcome;
        unsigned explained_by;
    } cases[] = {
        {DM_ERR_STOPPED, CK_MAY_BE_STOPPED},
        {DM_ERR_IO, CK_MAY_FAIL_IO},
        {DM_ERR_PEER, CK_MAY_FAIL_PEER},
        {DM_ERR_NO_MEMORY, CK_MAY_RUN_OUT},
    };
    const unsigned all = CK_MAY_BE_STOPPED | CK_MAY_FAIL_IO | CK_MAY_FAIL_PEER | CK_MAY_RUN_OUT;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(fault_of_one(WL_INSERT, cases[i].outcome, 0), CK_UNEXPLAINED);
        assert_int_equal(fault_of_one(WL_INSERT, cases[i].outcome, all & ~cases[i].explained_by), CK_UNEXPLAINED);
        assert_int_equal(fault_of_one(WL_INSERT, cases[i].outcome, cases[i].explained_by), CK_RIGHT);
    }
}

static void reads_need_no_memory_and_can_be_repeated_after_a_node_failed(void **state) {
    (void)state;
    static const enum wl_op_kind reads[] = {WL_GET, WL_SCAN};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fault_of_one(reads[i], DM_ERR_PEER, CK_MAY_FAIL_PEER), CK_UNEXPLAINED);
        assert_int_equal(fault_of_one(reads[i], DM_ERR_NO_MEMORY, CK_MAY_RUN_OUT), CK_UNEXPLAINED);
        assert_int_equal(fault_of_one(reads[i], DM_ERR_IO, CK_MAY_FAIL_IO), CK_RIGHT);
        assert_int_equal(fault_of_one(reads[i], DM_ERR_STOPPED, CK_MAY_BE_STOPPED), CK_RIGHT);
    }
}

/* Thirty operations that all end in one error are no evidence that an index is right. */
static void a_history_in_which_every_operation_fails_is_refused(void **state) {
    (void)state;
    struct ck_op ops[30];
    for (size_t i = 0; i < 30; i++) {
        ops[i] = (struct ck_op)OP(.client = (unsigned)i % 3, .kind = i % 2 ? WL_GET : WL_UPDATE, .key = i % 5,
                                  .value = i + 1, .outcome = DM_ERR_IO, .invoke = 2 * i, .response = 2 * i + 1);
    }
    struct ck_verdict verdict = judge(ops, 30, NULL, 0);
    assert_int_equal(verdict.fault, CK_UNEXPLAINED);
    assert_int_equal(verdict.op, 0);
}

static void out_of_memory_means_no_effect_but_an_unfinished_write_may_have_taken_effect(void **state) {
    (void)state;
    struct ck_op ops[] = {
        OP(.client = 0, .kind = WL_INSERT, .key = 1, .value = 5, .outcome = DM_ERR_NO_MEMORY, .invoke = 1,
           .response = 2),
        OP(.client = 1, .kind = WL_GET, .key = 1, .value = 5, .invoke = 3, .response = 4),
    };
    struct ck_history history = {.ops = ops, .op_count = 2, .may_fail = CK_MAY_RUN_OUT};
    struct ck_verdict verdict;
    assert_int_equal(ck_judge(&history, &verdict), 0);
    assert_int_equal(verdict.fault, CK_NOT_LINEARIZABLE);
    ops[0].outcome = DM_ERR_IO;
    history.may_fail = CK_MAY_FAIL_IO;
    assert_int_equal(ck_judge(&history, &verdict), 0);
    assert_int_equal(verdict.fault, CK_RIGHT);
    ops[0].finished = false;
    history.may_fail = 0;
    assert_int_equal(ck_judge(&history, &verdict), 0);
    assert_int_equal(verdict.fault, CK_RIGHT);
}

/* Each key is a register with many clients and linearization points in order. Then one result is falsified. */
static void a_single_wrong_result_among_many_operations_is_found(void **state) {
    (void)state;
    enum { OPS = 20000, KEYS = 200, CLIENTS = 16 };
    struct ck_op *ops = calloc(OPS, sizeof(*ops));
    uint64_t *values = calloc(KEYS, sizeof(*values)), ends[CLIENTS] = {0};
    struct dm_prng prng = dm_prng_stream(1, "judge", 0);
    size_t gets = 0;
    for (size_t i = 0; i < OPS; i++) {
        unsigned client = i % CLIENTS;
        uint64_t key = dm_prng_below(&prng, KEYS), moment = 100 * i + 100;
        struct ck_op op = OP(.client = client, .key = key, .value = i + 1);
        op.invoke = moment - dm_prng_below(&prng, moment - ends[client] > 700 ? 700 : moment - ends[client]);
        op.response = moment + dm_prng_below(&prng, 700);
        ends[client] = op.response;
        static const enum wl_op_kind kinds[] = {WL_GET, WL_GET, WL_INSERT, WL_UPDATE, WL_DELETE};
        op.kind = kinds[dm_prng_below(&prng, 5)];
        bool is_there = values[key] != 0;
        op.outcome = op.kind == WL_INSERT ? (is_there ? DM_EXISTS : 0) : is_there ? 0 : DM_NOT_FOUND;
        if (op.kind == WL_GET) {
            op.value = values[key];
            gets += op.outcome == 0;
        } else if (op.outcome == 0) {
            values[key] = op.kind == WL_DELETE ? 0 : op.value;
        }
        ops[i] = op;
    }
    assert_int_equal(judge(ops, OPS, NULL, 0).fault, CK_RIGHT);
    for (size_t i = OPS / 2; i < OPS; i++) {
        if (ops[i].kind == WL_GET && ops[i].outcome == 0) {
            ops[i].outcome = DM_NOT_FOUND;
            ops[i].invoke = ops[i].response =
                100 * i + 100; /* exactly at its linearization point, so no order can explain it */
            break;
        }
    }
    assert_int_equal(judge(ops, OPS, NULL, 0).fault, CK_NOT_LINEARIZABLE);
    assert_true(gets > 1000);
    free(values);
    free(ops);
}

/* In each round a delete is followed by an insert that finds the key, which one of two unfinished inserts of other
 * values must explain. Both values are read, but later: see linearizability_test.c. */
static void a_key_with_too_many_orders_is_undecided(void **state) {
    (void)state;
    enum { ROUNDS = 24, ROUND_OPS = 6, KEY = 7, GET_END = 1000 };
    struct ck_op ops[ROUNDS * ROUND_OPS], *next = ops;
    struct ck_pair initial[] = {{KEY, 1}};
    for (unsigned round = 1; round <= ROUNDS; round++) {
        uint64_t at = UINT64_C(10) * round;
        for (unsigned i = 0; i < 2; i++) {
            uint64_t value = 2 * round + i;
            *next++ = (struct ck_op){.kind = WL_INSERT, .key = KEY, .value = value, .invoke = at};
            *next++ =
                (struct ck_op)OP(.kind = WL_GET, .key = KEY, .value = value, .invoke = at + 5, .response = GET_END);
        }
        *next++ = (struct ck_op)OP(.kind = WL_DELETE, .key = KEY, .invoke = at + 1, .response = at + 2);
        *next++ = (struct ck_op)OP(.kind = WL_INSERT, .key = KEY, .outcome = DM_EXISTS, .value = UINT64_C(100) + round,
                                   .invoke = at + 3, .response = at + 4);
    }
    for (unsigned i = 0; i < ROUNDS * ROUND_OPS; i++) {
        ops[i].client = i;
    }
    struct ck_verdict verdict = judge(ops, ROUNDS * ROUND_OPS, initial, 1);
    assert_int_equal(verdict.fault, CK_UNDECIDED);
    assert_int_equal(verdict.key, KEY);
    assert_non_null(strstr(verdict.text, "too many possible orders"));
    /* All orders of four rounds are searched: the eight values that are read need more deletes than there were. */
    assert_int_equal(judge(ops, 4 * ROUND_OPS, initial, 1).fault, CK_NOT_LINEARIZABLE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_may_not_miss_a_key_that_was_present_throughout),
        cmocka_unit_test(a_scan_must_be_complete_up_to_its_last_key_or_to_the_end_if_it_returned_fewer),
        cmocka_unit_test(a_scan_must_be_sorted_without_duplicates_and_have_only_written_pairs),
        cmocka_unit_test(outcomes_are_those_of_the_contract),
        cmocka_unit_test(a_failure_is_right_only_if_a_fault_of_the_run_explains_it),
        cmocka_unit_test(reads_need_no_memory_and_can_be_repeated_after_a_node_failed),
        cmocka_unit_test(a_history_in_which_every_operation_fails_is_refused),
        cmocka_unit_test(out_of_memory_means_no_effect_but_an_unfinished_write_may_have_taken_effect),
        cmocka_unit_test(a_single_wrong_result_among_many_operations_is_found),
        cmocka_unit_test(a_key_with_too_many_orders_is_undecided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
