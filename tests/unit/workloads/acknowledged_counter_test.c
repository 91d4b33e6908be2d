/* SPDX-License-Identifier: Apache-2.0
 *
 * The acknowledged counter: its newest number, with one thread and with several.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/err.h"
#include "workloads/acknowledged_counter.h"

static struct wl_ack *ack_open(uint64_t start) {
    struct wl_ack *ack = aligned_alloc(_Alignof(struct wl_ack), sizeof *ack);
    assert_non_null(ack);
    assert_int_equal(wl_ack_open(ack, start, true), 0);
    return ack;
}

static void ack_close(struct wl_ack *ack) {
    wl_ack_close(ack);
    free(ack);
}

static uint64_t take(struct wl_ack *ack) {
    uint64_t number = 0;
    assert_int_equal(wl_ack_next(ack, &number), 0);
    return number;
}

static void the_newest_is_the_end_of_the_acknowledged_run(void **state) {
    (void)state;
    struct wl_ack *ack = ack_open(10);
    assert_int_equal(wl_ack_newest(ack), 9);
    for (uint64_t i = 10; i < 15; i++) {
        assert_int_equal(take(ack), i);
    }
    assert_int_equal(wl_ack_newest(ack), 9);
    wl_ack_done(ack, 12);
    wl_ack_done(ack, 11);
    assert_int_equal(wl_ack_newest(ack), 9);
    wl_ack_done(ack, 10);
    assert_int_equal(wl_ack_newest(ack), 12);
    wl_ack_done(ack, 14);
    assert_int_equal(wl_ack_newest(ack), 12);
    wl_ack_done(ack, 13);
    assert_int_equal(wl_ack_newest(ack), 14);
    ack_close(ack);
}

static void the_window_is_reused(void **state) {
    (void)state;
    struct wl_ack *ack = ack_open(1);
    for (uint64_t i = 0; i < 3 * (uint64_t)WL_ACK_WINDOW; i += 2) {
        uint64_t first = take(ack), second = take(ack);
        wl_ack_done(ack, second);
        assert_int_equal(wl_ack_newest(ack), first - 1);
        wl_ack_done(ack, first);
        assert_int_equal(wl_ack_newest(ack), second);
    }
    ack_close(ack);
}

static void numbers_are_refused_before_the_window_overflows(void **state) {
    (void)state;
    struct wl_ack *ack = ack_open(1);
    uint64_t oldest = take(ack), number = 0, taken = 1;
    while (wl_ack_next(ack, &number) == 0) {
        wl_ack_done(ack, number);
        taken++;
    }
    assert_int_equal(wl_ack_next(ack, &number), DM_ERR_RETRY_LIMIT);
    assert_in_range(taken, WL_ACK_WINDOW - WL_ACK_SLACK, WL_ACK_WINDOW);
    wl_ack_done(ack, oldest);
    assert_int_equal(wl_ack_newest(ack), taken);
    assert_int_equal(take(ack), taken + 1);
    ack_close(ack);
}

enum { THREADS = 4, NUMBERS = 100000, BATCH = 7 };

/* Takes numbers in batches and acknowledges them backwards. Fails if the newest number reaches a number of the batch
 * that is not acknowledged. */
static void *worker(void *arg) {
    struct wl_ack *ack = arg;
    for (int i = 0; i < NUMBERS / BATCH; i++) {
        uint64_t numbers[BATCH];
        for (int n = 0; n < BATCH; n++) {
            if (wl_ack_next(ack, &numbers[n]) != 0) {
                return arg;
            }
        }
        for (int n = BATCH; n-- > 0;) {
            if (wl_ack_newest(ack) >= numbers[0]) {
                return arg;
            }
            wl_ack_done(ack, numbers[n]);
        }
    }
    return NULL;
}

static void threads_lose_no_acknowledgement(void **state) {
    (void)state;
    struct wl_ack *ack = ack_open(1);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, worker, ack), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    /* the newest number does not lag: no thread acknowledges anything after this */
    assert_int_equal(wl_ack_newest(ack), (uint64_t)THREADS * (NUMBERS / BATCH) * BATCH);
    ack_close(ack);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_is_the_end_of_the_acknowledged_run),
        cmocka_unit_test(the_window_is_reused),
        cmocka_unit_test(numbers_are_refused_before_the_window_overflows),
        cmocka_unit_test(threads_lose_no_acknowledgement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
