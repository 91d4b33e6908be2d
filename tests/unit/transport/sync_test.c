/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutex and condition over a fake transport: who is woken, in which order, and what a stop leaves behind.
 */
#include "unit/transport/fake_transport.h"

static struct dm_mutex mutex;
static struct dm_cond cond;

/* Waits end with the stop. */
static int park_stopped(struct fake *fake, struct dm_ctx *ctx) {
    (void)fake;
    (void)ctx;
    return DM_ERR_STOPPED;
}

/* The mutex is handed over at the very moment of the stop. */
static int park_handed_over(struct fake *fake, struct dm_ctx *ctx) {
    (void)ctx;
    dm_mutex_unlock(&fake->contexts[0], &mutex);
    return DM_ERR_STOPPED;
}

/* The holder leaves meanwhile, which hands the mutex over. */
static int park_until_handed(struct fake *fake, struct dm_ctx *ctx) {
    (void)ctx;
    dm_mutex_unlock(&fake->contexts[0], &mutex);
    return 0;
}

/* Another context locks the mutex, wakes one waiter and unlocks it. */
static int park_until_woken(struct fake *fake, struct dm_ctx *ctx) {
    (void)ctx;
    assert_int_equal(dm_mutex_lock(&fake->contexts[1], &mutex), 0);
    dm_cond_wake_one(&fake->contexts[1], &cond);
    dm_mutex_unlock(&fake->contexts[1], &mutex);
    return 0;
}

static int reset(void **state) {
    mutex = (struct dm_mutex){0};
    cond = (struct dm_cond){0};
    *state = fake_new(0);
    return 0;
}

static int release(void **state) {
    fake_free(*state);
    return 0;
}

/* Appends a context to the list of waiters, as a lock call does that has not returned. */
static void waiters_add(struct dm_ctx *ctx) {
    *(mutex.waiters.tail ? &mutex.waiters.tail->wait_next : &mutex.waiters.head) = ctx;
    mutex.waiters.tail = ctx;
}

static void a_free_mutex_is_taken_without_waiting(void **state) {
    struct fake *fake = *state;
    assert_int_equal(dm_mutex_lock(&fake->contexts[0], &mutex), 0);
    assert_true(mutex.held);
    assert_false(dm_mutex_trylock(&fake->contexts[1], &mutex));
    dm_mutex_unlock(&fake->contexts[0], &mutex);
    assert_true(dm_mutex_trylock(&fake->contexts[1], &mutex));
    dm_mutex_unlock(&fake->contexts[1], &mutex);
    assert_false(mutex.held);
    assert_int_equal(fake->woken_count, 0);
}

static void an_unlock_hands_over_to_the_first_waiter(void **state) {
    struct fake *fake = *state;
    assert_int_equal(dm_mutex_lock(&fake->contexts[0], &mutex), 0);
    for (unsigned i = 1; i < FAKE_CONTEXTS; i++) {
        waiters_add(&fake->contexts[i]);
    }
    for (unsigned i = 1; i < FAKE_CONTEXTS; i++) {
        dm_mutex_unlock(&fake->contexts[i - 1], &mutex);
        assert_int_equal(fake->woken_count, i);
        assert_ptr_equal(fake->woken[i - 1], &fake->contexts[i]);
        assert_true(mutex.held); /* no other context can lock it in between */
        assert_false(dm_mutex_trylock(&fake->contexts[0], &mutex));
    }
    dm_mutex_unlock(&fake->contexts[FAKE_CONTEXTS - 1], &mutex);
    assert_false(mutex.held);
    assert_null(mutex.waiters.tail);
}

static void a_waiter_that_was_handed_the_mutex_holds_it(void **state) {
    struct fake *fake = *state;
    assert_int_equal(dm_mutex_lock(&fake->contexts[0], &mutex), 0);
    fake->parked = park_until_handed;
    assert_int_equal(dm_mutex_lock(&fake->contexts[1], &mutex), 0);
    assert_true(mutex.held);
    assert_int_equal(fake->woken_count, 1);
    assert_ptr_equal(fake->woken[0], &fake->contexts[1]);
}

static void a_stopped_waiter_leaves_the_queue_from_any_position(void **state) {
    struct fake *fake = *state;
    for (unsigned before = 0; before < 3; before++) {
        mutex = (struct dm_mutex){0};
        fake->woken_count = 0;
        assert_int_equal(dm_mutex_lock(&fake->contexts[0], &mutex), 0);
        for (unsigned i = 0; i < before; i++) {
            fake->contexts[1 + i].wait_next = NULL;
            waiters_add(&fake->contexts[1 + i]);
        }
        fake->parked = park_stopped;
        assert_int_equal(dm_mutex_lock(&fake->contexts[3], &mutex), DM_ERR_STOPPED);
        assert_true(mutex.held); /* by the first still */
        assert_int_equal(fake->woken_count, 0);
        assert_ptr_equal(mutex.waiters.tail, before ? &fake->contexts[before] : NULL);
        for (unsigned i = 0; i <= before; i++) {
            dm_mutex_unlock(&fake->contexts[i], &mutex);
        }
        assert_int_equal(fake->woken_count, before);
        assert_false(mutex.held);
    }
}

static void a_mutex_handed_over_at_the_stop_is_handed_on(void **state) {
    struct fake *fake = *state;
    assert_int_equal(dm_mutex_lock(&fake->contexts[0], &mutex), 0);
    fake->parked = park_handed_over;
    assert_int_equal(dm_mutex_lock(&fake->contexts[1], &mutex), DM_ERR_STOPPED);
    assert_false(mutex.held);
}

static void a_condition_releases_the_mutex_while_it_waits_and_takes_it_again(void **state) {
    struct fake *fake = *state;
    assert_int_equal(dm_mutex_lock(&fake->contexts[0], &mutex), 0);
    fake->parked = park_until_woken;
    assert_int_equal(dm_cond_wait(&fake->contexts[0], &cond, &mutex), 0);
    assert_int_equal(fake->woken_count, 1);
    assert_ptr_equal(fake->woken[0], &fake->contexts[0]);
    assert_true(mutex.held);
}

static void a_stopped_condition_wait_does_not_hold_the_mutex(void **state) {
    struct fake *fake = *state;
    assert_int_equal(dm_mutex_lock(&fake->contexts[0], &mutex), 0);
    fake->parked = park_stopped;
    assert_int_equal(dm_cond_wait(&fake->contexts[0], &cond, &mutex), DM_ERR_STOPPED);
    assert_false(mutex.held);
}

static void wakes_go_to_waiters_in_order_and_to_no_other_context(void **state) {
    struct fake *fake = *state;
    dm_cond_wake_one(&fake->contexts[0], &cond);
    dm_cond_wake_all(&fake->contexts[0], &cond);
    assert_int_equal(fake->woken_count, 0);
    for (unsigned i = 1; i < FAKE_CONTEXTS; i++) {
        *(cond.waiters.tail ? &cond.waiters.tail->wait_next : &cond.waiters.head) = &fake->contexts[i];
        cond.waiters.tail = &fake->contexts[i];
    }
    dm_cond_wake_one(&fake->contexts[0], &cond);
    assert_int_equal(fake->woken_count, 1);
    dm_cond_wake_all(&fake->contexts[0], &cond);
    assert_int_equal(fake->woken_count, FAKE_CONTEXTS - 1);
    for (unsigned i = 1; i < FAKE_CONTEXTS; i++) {
        assert_ptr_equal(fake->woken[i - 1], &fake->contexts[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_free_mutex_is_taken_without_waiting, reset, release),
        cmocka_unit_test_setup_teardown(an_unlock_hands_over_to_the_first_waiter, reset, release),
        cmocka_unit_test_setup_teardown(a_waiter_that_was_handed_the_mutex_holds_it, reset, release),
        cmocka_unit_test_setup_teardown(a_stopped_waiter_leaves_the_queue_from_any_position, reset, release),
        cmocka_unit_test_setup_teardown(a_mutex_handed_over_at_the_stop_is_handed_on, reset, release),
        cmocka_unit_test_setup_teardown(a_condition_releases_the_mutex_while_it_waits_and_takes_it_again, reset,
                                        release),
        cmocka_unit_test_setup_teardown(a_stopped_condition_wait_does_not_hold_the_mutex, reset, release),
        cmocka_unit_test_setup_teardown(wakes_go_to_waiters_in_order_and_to_no_other_context, reset, release),
    };
    return cmocka_run_group_tests_name("transport: sync", tests, NULL, NULL);
}
