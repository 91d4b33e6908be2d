/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the judge of one key with brute force, on thousands of small random histories: histories of a correct
 * register, the same with one change, and entirely random ones.
 */
#include "check/linearizability.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/prng.h"

enum { ACCESSES_MAX = 9 };

struct history {
    struct ck_access accesses[ACCESSES_MAX];
    size_t count;
    uint64_t initial;
};

/* ---- brute force: all orders ------------------------------------------------------------------------------------ */

static bool step(const struct ck_access *access, uint64_t state, uint64_t *after) {
    *after = state;
    switch (access->kind) {
    case CK_READ_VALUE:
        return state == access->value;
    case CK_READ_ABSENT:
        return state == 0;
    case CK_READ_PRESENT:
        return state != 0;
    case CK_PUT_NEW:
        *after = access->value;
        return state == 0;
    case CK_PUT_OVER:
        *after = access->value;
        return state != 0;
    case CK_REMOVE:
        *after = 0;
        return state != 0;
    }
    return false;
}

static bool orders_exist(const struct history *history, unsigned done, uint64_t state) {
    bool is_over = true;
    uint64_t first_response = CK_NEVER;
    for (size_t i = 0; i < history->count; i++) {
        const struct ck_access *access = &history->accesses[i];
        if (!(done >> i & 1)) {
            is_over = is_over && access->optional;
            first_response = access->response < first_response ? access->response : first_response;
        }
    }
    if (is_over) {
        return true;
    }
    for (size_t i = 0; i < history->count; i++) {
        uint64_t after;
        if (!(done >> i & 1) && history->accesses[i].invoke <= first_response &&
            step(&history->accesses[i], state, &after) && orders_exist(history, done | 1u << i, after)) {
            return true;
        }
    }
    return false;
}

/* ---- histories -------------------------------------------------------------------------------------------------- */

/* An access of a random kind to a register with this state. */
static struct ck_access access_of(struct dm_prng *prng, uint64_t state, uint64_t fresh) {
    struct ck_access access = {.value = fresh};
    switch (dm_prng_below(prng, 5)) {
    case 0:
    case 1:
        access.kind = state ? CK_READ_VALUE : CK_READ_ABSENT;
        access.value = state;
        break;
    case 2:
        access.kind = state ? CK_READ_PRESENT : CK_PUT_NEW;
        break;
    case 3:
        access.kind = state ? CK_PUT_OVER : CK_READ_ABSENT;
        break;
    default:
        access.kind = state ? CK_REMOVE : CK_READ_ABSENT;
    }
    return access;
}

/* A history of a register: linearization points in order, with invocations and responses around them. */
static void history_right(struct dm_prng *prng, struct history *history) {
    uint64_t state = dm_prng_below(prng, 2) ? 100 : 0;
    uint64_t span = 1 + dm_prng_below(prng, 40);
    history->initial = state;
    history->count = 2 + dm_prng_below(prng, ACCESSES_MAX - 1);
    for (size_t i = 0; i < history->count; i++) {
        struct ck_access access = access_of(prng, state, i + 1);
        uint64_t moment = 100 + i * 10;
        access.invoke = moment - dm_prng_below(prng, span);
        access.response = moment + dm_prng_below(prng, span);
        uint64_t after = state;
        bool is_write = access.kind == CK_PUT_NEW || access.kind == CK_PUT_OVER || access.kind == CK_REMOVE;
        if (is_write && dm_prng_below(prng, 4) == 0) {
            access.optional = true;
            access.response = CK_NEVER;
        }
        if (!access.optional || dm_prng_below(prng, 2)) {
            assert_true(step(&access, state, &after));
        }
        state = after;
        access.op = i;
        history->accesses[i] = access;
    }
}

/* Makes one change, which may or may not make the history wrong. */
static void history_spoil(struct dm_prng *prng, struct history *history) {
    struct ck_access *access = &history->accesses[dm_prng_below(prng, history->count)];
    switch (dm_prng_below(prng, 4)) {
    case 0:
        if (access->kind == CK_READ_VALUE) {
            access->value = 1 + dm_prng_below(prng, history->count);
        } else if (!access->optional) {
            access->kind = access->kind == CK_READ_ABSENT ? CK_READ_PRESENT : CK_READ_ABSENT;
        }
        break;
    case 1:
        access->invoke = access->invoke + dm_prng_below(prng, 20);
        access->response = access->response < access->invoke ? access->invoke : access->response;
        break;
    case 2:
        history->initial = history->initial ? 0 : 100;
        break;
    default:
        if (access->kind == CK_PUT_NEW || access->kind == CK_PUT_OVER) {
            access->kind = access->kind == CK_PUT_NEW ? CK_PUT_OVER : CK_PUT_NEW;
        }
    }
}

static void history_random(struct dm_prng *prng, struct history *history) {
    history->initial = dm_prng_below(prng, 2) ? 100 : 0;
    history->count = 2 + dm_prng_below(prng, 6);
    for (size_t i = 0; i < history->count; i++) {
        struct ck_access *access = &history->accesses[i];
        *access = (struct ck_access){.kind = (enum ck_access_kind)dm_prng_below(prng, 6), .op = i};
        access->value = access->kind == CK_READ_VALUE ? 1 + dm_prng_below(prng, history->count) : i + 1;
        access->invoke = dm_prng_below(prng, 20);
        access->response = access->invoke + dm_prng_below(prng, 12);
    }
}

static void compare(struct ck_linear *linear, const struct history *history, unsigned found[2]) {
    size_t culprit;
    int rc = ck_linear_judge(linear, history->accesses, history->count, history->initial, &culprit);
    bool is_right = orders_exist(history, 0, history->initial);
    if (rc != !is_right) {
        for (size_t i = 0; i < history->count; i++) {
            const struct ck_access *a = &history->accesses[i];
            printf("%zu: kind %d optional %d value %llu [%llu, %lld]\n", i, (int)a->kind, a->optional,
                   (unsigned long long)a->value, (unsigned long long)a->invoke, (long long)a->response);
        }
        fail_msg("brute force returns %d, the judge %d (initial %llu)", !is_right, rc,
                 (unsigned long long)history->initial);
    }
    assert_true(rc == 0 || culprit < history->count);
    found[is_right]++;
}

static void the_judge_agrees_with_brute_force_on_small_histories(void **state) {
    (void)state;
    struct ck_linear *linear = ck_linear_new();
    unsigned found[3][2] = {{0}};
    for (uint64_t seed = 1; seed <= 40000; seed++) {
        struct dm_prng prng = dm_prng_stream(seed, "linear", 0);
        struct history history = {.count = 0};
        history_right(&prng, &history);
        compare(linear, &history, found[0]);
        history_spoil(&prng, &history);
        compare(linear, &history, found[1]);
        history_random(&prng, &history);
        compare(linear, &history, found[2]);
    }
    ck_linear_free(linear);
    assert_int_equal(found[0][0], 0);
    for (int i = 1; i < 3; i++) {
        assert_true(found[i][0] > 2000);
        assert_true(found[i][1] > 2000);
    }
}

/* ---- single cases ----------------------------------------------------------------------------------------------- */

static int judge(const struct ck_access *accesses, size_t count, uint64_t initial, size_t *culprit) {
    struct ck_linear *linear = ck_linear_new();
    int rc = ck_linear_judge(linear, accesses, count, initial, culprit);
    ck_linear_free(linear);
    return rc;
}

static void a_lost_update_is_found_at_the_read_that_misses_it(void **state) {
    (void)state;
    const struct ck_access accesses[] = {
        {.kind = CK_PUT_OVER, .value = 1, .invoke = 1, .response = 2},
        {.kind = CK_READ_VALUE, .value = 9, .invoke = 3, .response = 4},
        {.kind = CK_READ_ABSENT, .invoke = 5, .response = 6},
    };
    size_t culprit;
    assert_int_equal(judge(accesses, 3, 9, &culprit), 1);
    /* The value 9 is read after the update, so the update cannot have taken effect. */
    assert_int_equal(culprit, 0);
    assert_int_equal(judge(accesses + 1, 1, 9, &culprit), 0);
}

static void reading_a_value_and_then_the_older_one_is_wrong(void **state) {
    (void)state;
    const struct ck_access accesses[] = {
        {.kind = CK_PUT_OVER, .value = 1, .invoke = 1, .response = 20},
        {.kind = CK_READ_VALUE, .value = 1, .invoke = 3, .response = 4},
        {.kind = CK_READ_VALUE, .value = 9, .invoke = 5, .response = 6},
    };
    size_t culprit;
    assert_int_equal(judge(accesses, 3, 9, &culprit), 1);
    const struct ck_access swapped[] = {accesses[0],
                                        {.kind = CK_READ_VALUE, .value = 9, .invoke = 3, .response = 4},
                                        {.kind = CK_READ_VALUE, .value = 1, .invoke = 5, .response = 6}};
    assert_int_equal(judge(swapped, 3, 9, &culprit), 0);
}

static void an_unfinished_write_may_take_effect_at_any_later_moment_or_never(void **state) {
    (void)state;
    struct ck_access accesses[] = {
        {.kind = CK_REMOVE, .optional = true, .invoke = 1, .response = CK_NEVER},
        {.kind = CK_READ_VALUE, .value = 9, .invoke = 10, .response = 11},
        {.kind = CK_READ_ABSENT, .invoke = 20, .response = 21},
    };
    size_t culprit;
    assert_int_equal(judge(accesses, 3, 9, &culprit), 0);
    assert_int_equal(judge(accesses, 2, 9, &culprit), 0);
    accesses[2] = (struct ck_access){.kind = CK_PUT_NEW, .value = 3, .invoke = 5, .response = 6};
    assert_int_equal(judge(accesses, 3, 9, &culprit), 1);
}

/* More accesses are open at once than one word of a configuration has bits. */
static void many_open_accesses_of_one_key_are_judged(void **state) {
    (void)state;
    enum { COUNT = 400 };
    struct ck_access *accesses = calloc(COUNT, sizeof(*accesses));
    for (unsigned i = 0; i < COUNT; i++) {
        accesses[i] = (struct ck_access){
            .kind = i % 2 ? CK_READ_VALUE : CK_PUT_OVER, .value = 1 + i / 2, .invoke = i, .response = 1000 + i};
    }
    size_t culprit;
    assert_int_equal(judge(accesses, COUNT, 9999, &culprit), 0);
    accesses[COUNT - 1] = (struct ck_access){.kind = CK_READ_ABSENT, .invoke = COUNT, .response = 3000};
    assert_int_equal(judge(accesses, COUNT, 9999, &culprit), 1);
    assert_int_equal(culprit, COUNT - 1);
    free(accesses);
}

/* Rounds in which a key is removed and then found again, which either of two inserts may explain. Both are read only
 * later, so that after each round twice as many sets of inserts may have taken effect. */
static int rounds_judge(unsigned rounds) {
    enum { ROUND_ACCESSES = 6 };
    struct ck_access *accesses = calloc((size_t)rounds * ROUND_ACCESSES, sizeof(*accesses)), *next = accesses;
    assert_non_null(accesses);
    for (unsigned round = 1; round <= rounds; round++) {
        uint64_t at = UINT64_C(10) * round;
        for (unsigned i = 0; i < 2; i++) {
            uint64_t value = 2 * round + i;
            *next++ = (struct ck_access){
                .kind = CK_PUT_NEW, .optional = true, .value = value, .invoke = at, .response = CK_NEVER};
            *next++ = (struct ck_access){.kind = CK_READ_VALUE, .value = value, .invoke = at + 5, .response = CK_NEVER};
        }
        *next++ = (struct ck_access){.kind = CK_REMOVE, .invoke = at + 1, .response = at + 2};
        *next++ = (struct ck_access){.kind = CK_READ_PRESENT, .invoke = at + 3, .response = at + 4};
    }
    size_t culprit;
    int rc = judge(accesses, (size_t)(next - accesses), 1, &culprit);
    free(accesses);
    return rc;
}

static void what_has_too_many_orders_is_undecided(void **state) {
    (void)state;
    assert_int_equal(rounds_judge(8), 0);
    assert_int_equal(rounds_judge(24), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_judge_agrees_with_brute_force_on_small_histories),
        cmocka_unit_test(a_lost_update_is_found_at_the_read_that_misses_it),
        cmocka_unit_test(reading_a_value_and_then_the_older_one_is_wrong),
        cmocka_unit_test(an_unfinished_write_may_take_effect_at_any_later_moment_or_never),
        cmocka_unit_test(many_open_accesses_of_one_key_are_judged),
        cmocka_unit_test(what_has_too_many_orders_is_undecided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
