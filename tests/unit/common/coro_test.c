/* SPDX-License-Identifier: Apache-2.0
 *
 * Coroutines: they switch back and forth, and stacks of those that have ended are used again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/coro.h"

enum { STACK_BYTES = 64 << 10, COROS = 100 };

static struct dm_coro thread;

struct counter {
    struct dm_coro coro;
    unsigned count;
};

/* Fills a part of its stack, so that the next user of the stack finds it dirty. */
static void count_up(void *arg) {
    struct counter *counter = arg;
    char frame[4096];
    memset(frame, 0xa5, sizeof(frame));
    for (;;) {
        counter->count += (unsigned char)frame[counter->count] == 0xa5;
        dm_coro_switch(&counter->coro, &thread);
    }
}

static void counter_open(struct counter *counter, size_t bytes) {
    counter->count = 0;
    assert_int_equal(dm_coro_init(&counter->coro, bytes, count_up, counter), 0);
}

static void count_to(struct counter *counter, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        dm_coro_switch(&thread, &counter->coro);
    }
    assert_int_equal(counter->count, count);
}

static void a_coroutine_continues_where_it_left_off(void **state) {
    (void)state;
    struct counter counters[2];
    dm_coro_init_thread(&thread);
    counter_open(&counters[0], STACK_BYTES);
    counter_open(&counters[1], STACK_BYTES);
    count_to(&counters[0], 3);
    count_to(&counters[1], 5);
    assert_int_equal(counters[0].count, 3);
    dm_coro_fini(&counters[0].coro);
    dm_coro_fini(&counters[1].coro);
    dm_coro_fini(&counters[1].coro); /* harmless */
}

static void the_stack_of_one_that_has_ended_is_used_again(void **state) {
    (void)state;
    struct counter counter;
    dm_coro_init_thread(&thread);
    counter_open(&counter, STACK_BYTES);
    const char *stack = counter.coro.stack;
    count_to(&counter, 2);
    dm_coro_fini(&counter.coro);
    counter_open(&counter, STACK_BYTES);
    assert_ptr_equal(counter.coro.stack, stack);
    count_to(&counter, 7);
    dm_coro_fini(&counter.coro);
}

static void a_larger_stack_is_not_a_smaller_one_s(void **state) {
    (void)state;
    struct counter counter;
    dm_coro_init_thread(&thread);
    counter_open(&counter, STACK_BYTES);
    dm_coro_fini(&counter.coro);
    counter_open(&counter, 4 * (size_t)STACK_BYTES);
    assert_int_equal(counter.coro.stack_size, 4 * STACK_BYTES);
    memset(counter.coro.stack, 1, 4096); /* the lowest page is its own */
    count_to(&counter, 1);
    dm_coro_fini(&counter.coro);
}

/* More than are kept: the others are unmapped, and all still work. */
static void many_end_and_begin_in_any_order(void **state) {
    (void)state;
    static struct counter counters[COROS];
    dm_coro_init_thread(&thread);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < COROS; i++) {
            counter_open(&counters[i], STACK_BYTES);
            for (unsigned j = 0; j < i; j++) {
                assert_ptr_not_equal(counters[i].coro.stack, counters[j].coro.stack);
            }
        }
        for (unsigned i = 0; i < COROS; i++) {
            count_to(&counters[i], i % 5);
        }
        for (unsigned i = 0; i < COROS; i++) {
            dm_coro_fini(&counters[(i * 37 + round) % COROS].coro);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_coroutine_continues_where_it_left_off),
        cmocka_unit_test(the_stack_of_one_that_has_ended_is_used_again),
        cmocka_unit_test(a_larger_stack_is_not_a_smaller_one_s),
        cmocka_unit_test(many_end_and_begin_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
