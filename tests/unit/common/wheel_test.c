/* SPDX-License-Identifier: Apache-2.0
 *
 * The timing wheel against a heap that holds the same events: order by time and then by arrival, over slots that
 * overflow, events far ahead, and gaps longer than the wheel.
 */
#include "common/wheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* ---- looking ahead ---------------------------------------------------------------------------------------------- */

enum { STEPS = 20000, MOST = 300, WINDOW = 40 };

static struct {
    uint64_t time;
    bool is_pending, is_seen;
    bool may_be_missed; /* its slot was behind the cursor when it was added */
} looked[2 * STEPS + MOST];

static bool is_in_window(const struct dm_wheel *wheel, uint32_t tag) {
    uint64_t slot = looked[tag].time >> DM_WHEEL_SLOT_BITS;
    return slot > wheel->slot && slot <= wheel->slot + WINDOW;
}

/* All in the window have been seen but those that could not be. */
static void assert_seen(const struct dm_wheel *wheel, uint32_t tags) {
    for (uint32_t tag = 1; tag < tags; tag++) {
        assert_true(!looked[tag].is_pending || looked[tag].is_seen || looked[tag].may_be_missed ||
                    !is_in_window(wheel, tag));
    }
}

/* Looks at up to `count` events: each is pending, in the window, and was not seen before. Returns how many there are.
 */
static uint32_t look(const struct dm_wheel *wheel, struct dm_wheel_cursor *cursor, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t tag = dm_wheel_look(wheel, cursor, WINDOW);
        if (tag == 0) {
            return i;
        }
        assert_true(looked[tag].is_pending && !looked[tag].is_seen && is_in_window(wheel, tag));
        looked[tag].is_seen = true;
    }
    return count;
}

static void take(struct dm_wheel *wheel, struct dm_event *event) {
    assert_true(dm_wheel_take(wheel, event));
    assert_true(looked[event->tag].is_pending);
    looked[event->tag].is_pending = false;
}

static void events_are_seen_ahead_once(void **state) {
    (void)state;
    for (unsigned mix = 1; mix <= 5; mix++) {
        struct dm_prng prng = dm_prng_stream(mix, "look", 0);
        struct dm_wheel wheel;
        struct dm_wheel_cursor cursor = {0};
        struct dm_event event = {0, 0};
        uint32_t tag = 1, seen = 0;
        assert_int_equal(dm_wheel_init(&wheel), 0);
        memset(looked, 0, sizeof(looked));
        for (uint32_t step = 0; step < STEPS; step++) {
            for (uint32_t i = wheel.count < MOST ? 2 : 0; i > 0; i--, tag++) {
                looked[tag].time = event.time + some_delay(&prng, mix);
                looked[tag].is_pending = true;
                looked[tag].may_be_missed = looked[tag].time >> DM_WHEEL_SLOT_BITS <= cursor.slot || !wheel.is_turning;
                assert_true(dm_wheel_add(&wheel, looked[tag].time, tag));
            }
            if (wheel.is_turning) {
                seen += look(&wheel, &cursor, step % 50 < 25 ? step % 4 : 0);
            }
            if (wheel.is_turning && step % 500 == 0) {
                seen += look(&wheel, &cursor, MOST);
                assert_seen(&wheel, tag);
            }
            take(&wheel, &event);
        }
        assert_true(seen > 0 || mix == 1); /* all of the first mix are in the current slot */
        while (!dm_wheel_empty(&wheel)) {
            take(&wheel, &event);
        }
        dm_wheel_fini(&wheel);
    }
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

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
        cmocka_unit_test(events_are_seen_ahead_once),
        cmocka_unit_test(many_events_of_one_instant_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
