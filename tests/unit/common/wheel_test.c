/* SPDX-License-Identifier: Apache-2.0
 *
 * The timing wheel against a heap that holds the same events: order by time and then by arrival, over slots that
 * overflow, events far ahead, and gaps longer than the wheel.
 */
#include "common/wheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/prng.h"

/* How far ahead events are added: within a slot, within the wheel, beyond it. */
static uint64_t some_delay(struct dm_prng *prng, unsigned mix) {
    switch (dm_prng_below(prng, mix)) {
    case 0:
        return dm_prng_below(prng, 3);
    case 1:
        return dm_prng_below(prng, 1u << DM_WHEEL_SLOT_BITS);
    case 2:
        return dm_prng_below(prng, 100u << DM_WHEEL_SLOT_BITS);
    case 3:
        return dm_prng_below(prng, (uint64_t)DM_WHEEL_SLOTS << DM_WHEEL_SLOT_BITS);
    default:
        return dm_prng_below(prng, UINT64_C(9) * DM_WHEEL_SLOTS << DM_WHEEL_SLOT_BITS);
    }
}

static void assert_same(struct dm_wheel *wheel, struct dm_heap *heap, uint64_t *now) {
    struct dm_event event = {0, 0};
    struct dm_heap_entry expected = dm_heap_pop(heap);
    assert_true(dm_wheel_take(wheel, &event));
    assert_int_equal(event.time, expected.time);
    assert_int_equal(event.tag, dm_heap_tag(expected));
    assert_true(event.time >= *now);
    *now = event.time;
}

/* What can be seen ahead is pending, and in the current slot it is what leaves next. */
static void assert_peeks(struct dm_wheel *wheel, const unsigned char *pending) {
    for (uint32_t ahead = 0; ahead < 12; ahead++) {
        uint32_t tag = dm_wheel_peek(wheel, ahead);
        assert_true(tag == 0 || pending[tag]);
    }
}

/* Takes an event, in the current slot the one that was seen ahead, and returns its time. */
static uint64_t take_peeked(struct dm_wheel *wheel, unsigned char *pending) {
    bool is_current = wheel->at < wheel->current_count;
    uint32_t seen = dm_wheel_peek(wheel, 0);
    struct dm_event event = {0, 0};
    assert_true(dm_wheel_take(wheel, &event));
    assert_true(!is_current || event.tag == seen);
    assert_true(pending[event.tag]);
    pending[event.tag] = 0;
    return event.time;
}

static void only_pending_events_are_seen_ahead(void **state) {
    (void)state;
    enum { STEPS = 20000, MOST = 300 };
    static unsigned char pending[2 * STEPS + MOST];
    for (unsigned mix = 1; mix <= 5; mix++) {
        struct dm_prng prng = dm_prng_stream(mix, "peek", 0);
        struct dm_wheel wheel;
        uint32_t tag = 1, seen = 0;
        uint64_t now = 0;
        assert_int_equal(dm_wheel_init(&wheel), 0);
        for (uint32_t step = 0; step < STEPS; step++) {
            for (uint32_t i = wheel.count < MOST ? 2 : 0; i > 0; i--, tag++) {
                pending[tag] = 1;
                assert_true(dm_wheel_add(&wheel, now + some_delay(&prng, mix), tag));
            }
            assert_peeks(&wheel, pending);
            seen += dm_wheel_peek(&wheel, 3) != 0;
            now = take_peeked(&wheel, pending);
        }
        assert_true(seen > 0);
        while (!dm_wheel_empty(&wheel)) {
            take_peeked(&wheel, pending);
        }
        dm_wheel_fini(&wheel);
    }
}

static void run(uint64_t seed, uint32_t size, uint32_t steps, unsigned mix) {
    struct dm_prng prng = dm_prng_stream(seed, "wheel", size);
    struct dm_wheel wheel;
    struct dm_heap heap = {.entries = NULL};
    uint64_t now = 0;
    uint32_t tag = 1;
    assert_int_equal(dm_wheel_init(&wheel), 0);
    for (uint32_t step = 0; step < steps; step++) {
        uint32_t adds = heap.count < size ? (uint32_t)dm_prng_below(&prng, 4) : 0;
        for (uint32_t i = 0; i < adds; i++, tag = tag % 1000000 + 1) {
            uint64_t time = now + some_delay(&prng, mix);
            assert_true(dm_wheel_add(&wheel, time, tag) && dm_heap_push(&heap, time, tag));
        }
        if (!dm_heap_empty(&heap)) {
            assert_same(&wheel, &heap, &now);
        }
    }
    while (!dm_heap_empty(&heap)) {
        assert_same(&wheel, &heap, &now);
    }
    assert_true(dm_wheel_empty(&wheel));
    dm_wheel_fini(&wheel);
    dm_heap_fini(&heap);
}

static void events_leave_in_order_of_time_and_then_of_arrival(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        run(seed, seed % 3 == 0 ? 3000 : seed % 3 == 1 ? 10 : 60, 20000, 1 + (unsigned)seed % 5);
    }
}

/* All clients of a run begin at one instant. */
static void many_events_of_one_instant_keep_their_order(void **state) {
    (void)state;
    struct dm_wheel wheel;
    assert_int_equal(dm_wheel_init(&wheel), 0);
    for (uint32_t round = 0; round < 3; round++) {
        uint64_t time = UINT64_C(1000000) * (round + 1);
        for (uint32_t tag = 1; tag <= 20000; tag++) {
            assert_true(dm_wheel_add(&wheel, time + (tag > 10000 ? 0 : 1), tag));
        }
        for (uint32_t i = 0; i < 20000; i++) {
            struct dm_event event = {0, 0};
            assert_true(dm_wheel_take(&wheel, &event));
            assert_int_equal(event.tag, i < 10000 ? 10001 + i : i - 9999);
        }
    }
    dm_wheel_fini(&wheel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_leave_in_order_of_time_and_then_of_arrival),
        cmocka_unit_test(only_pending_events_are_seen_ahead),
        cmocka_unit_test(many_events_of_one_instant_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
