/* SPDX-License-Identifier: Apache-2.0
 *
 * The timing wheel against a heap that holds the same events: order by time and then by arrival, over slots that
 * overflow, later groups, gaps longer than all of these, and slots that become wider and narrower.
 */
#include "common/wheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/heap.h"
#include "common/prng.h"

/* How far ahead events are added: within a slot, within the current group and the next one, within all groups, beyond
 * them. Slots are those of the beginning. */
static uint64_t some_delay(struct dm_prng *prng, unsigned mix) {
    const uint64_t group = (uint64_t)DM_WHEEL_SLOTS_LEAST / 2 << DM_WHEEL_WIDTH_BEGIN;
    switch (dm_prng_below(prng, mix)) {
    case 0:
        return dm_prng_below(prng, 3);
    case 1:
        return dm_prng_below(prng, 1u << DM_WHEEL_WIDTH_BEGIN);
    case 2:
        return dm_prng_below(prng, 2 * group);
    case 3:
        return dm_prng_below(prng, DM_WHEEL_GROUPS * group);
    default:
        return dm_prng_below(prng, 9 * DM_WHEEL_GROUPS * group);
    }
}

static struct dm_event take(struct dm_wheel *wheel) {
    assert_true(!dm_wheel_is_spent(wheel) || dm_wheel_next_slot(wheel));
    return dm_wheel_take(wheel);
}

static void assert_same(struct dm_wheel *wheel, struct dm_heap *heap, uint64_t *now) {
    struct dm_heap_entry expected = dm_heap_pop(heap);
    struct dm_event event = take(wheel);
    assert_int_equal(event.time, expected.time);
    assert_int_equal(event.tag, dm_heap_tag(expected));
    assert_true(event.time >= *now);
    *now = event.time;
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

static void add(struct dm_wheel *wheel, struct dm_heap *heap, uint64_t time, uint32_t tag) {
    dm_wheel_add(wheel, time, tag);
    assert_true(dm_heap_push(heap, time, tag));
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
            add(&wheel, &heap, now + some_delay(&prng, mix), tag);
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
            dm_wheel_add(&wheel, time + (tag > 10000 ? 0 : 1), tag);
        }
        for (uint32_t i = 0; i < 20000; i++) {
            assert_int_equal(take(&wheel).tag, i < 10000 ? 10001 + i : i - 9999);
        }
    }
    dm_wheel_fini(&wheel);
}

/* ---- the width of slots ----------------------------------------------------------------------------------------- */

/* `pending` events with delays up to `span`, every eighth of which has the time of the one before it. */
static void keep_busy(struct dm_wheel *wheel, struct dm_heap *heap, uint64_t *now, uint32_t pending, uint64_t span) {
    struct dm_prng prng = dm_prng_stream(span, "busy", pending);
    uint64_t time = *now;
    for (uint32_t step = 0; step < 300000; step++) {
        uint32_t adds = heap->count < pending ? 2 : heap->count == pending;
        for (uint32_t i = 0; i < adds; i++) {
            bool again = step % 8 == 0 && time >= *now;
            time = again ? time : *now + dm_prng_below(&prng, span);
            add(wheel, heap, time, step + 1);
        }
        assert_same(wheel, heap, now);
    }
}

/* Each change moves events that are pending; the order is that of the heap before, after and between. */
static void slots_become_wider_and_narrower_more_and_fewer(void **state) {
    (void)state;
    const struct {
        uint32_t pending;
        uint64_t span;
        uint32_t width_least, width_most, slots;
    } loads[] = {
        {200, 100000, 10, 11, 1024}, /* two events a ns */
        {30, 10000000, DM_WHEEL_WIDTH_MOST, DM_WHEEL_WIDTH_MOST, 128},
        {3000, 1000000, 9, 10, 1024},
        {100, UINT64_C(20000000000), DM_WHEEL_WIDTH_MOST, DM_WHEEL_WIDTH_MOST, 1024}, /* beyond all groups */
        {2000, 20000, DM_WHEEL_WIDTH_LEAST, DM_WHEEL_WIDTH_LEAST, 1024},
        {50, 600000, 13, 14, 256},
    };
    struct dm_wheel wheel;
    struct dm_heap heap = {.entries = NULL};
    uint64_t now = 0;
    assert_int_equal(dm_wheel_init(&wheel), 0);
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        keep_busy(&wheel, &heap, &now, loads[i].pending, loads[i].span);
        assert_in_range(wheel.width, loads[i].width_least, loads[i].width_most);
        assert_int_equal(wheel.mask + 1, loads[i].slots);
        while (!dm_heap_empty(&heap)) { /* some would be pending for most of the next load */
            assert_same(&wheel, &heap, &now);
        }
    }
    dm_wheel_fini(&wheel);
    dm_heap_fini(&heap);
}

/* ---- looking ahead ---------------------------------------------------------------------------------------------- */

enum { STEPS = 20000, MOST = 300, WINDOW = 40 };

static struct {
    uint64_t time;
    bool is_pending;
} looked[2 * STEPS + 1];

static uint32_t pending_in(const struct dm_wheel *wheel, uint64_t slot, uint32_t tags) {
    uint32_t count = 0;
    for (uint32_t tag = 1; tag < tags; tag++) {
        count += looked[tag].is_pending && looked[tag].time >> wheel->width == slot;
    }
    return count;
}

/* Looks at the slots of the window: all of their events are seen, up to a chunk each. Returns how many there are. */
static uint32_t look(const struct dm_wheel *wheel, uint32_t tags) {
    uint32_t seen = 0;
    for (uint64_t slot = wheel->slot + 1; slot <= wheel->slot + WINDOW; slot++) {
        const uint64_t *events;
        uint32_t count = dm_wheel_look(wheel, slot, &events), pending = pending_in(wheel, slot, tags);
        assert_int_equal(count, pending < DM_WHEEL_CHUNK ? pending : DM_WHEEL_CHUNK);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t tag = dm_wheel_tag(events[i]);
            assert_true(looked[tag].is_pending && looked[tag].time >> wheel->width == slot);
        }
        seen += count;
    }
    return seen;
}

static void events_of_coming_slots_are_seen(void **state) {
    (void)state;
    for (unsigned mix = 1; mix <= 5; mix++) {
        struct dm_prng prng = dm_prng_stream(mix, "look", 0);
        struct dm_wheel wheel;
        uint64_t now = 0;
        uint32_t tag = 1, seen = 0;
        assert_int_equal(dm_wheel_init(&wheel), 0);
        memset(looked, 0, sizeof(looked));
        for (uint32_t step = 0; step < STEPS; step++) {
            for (uint32_t i = wheel.count < MOST ? 2 : 0; i > 0; i--, tag++) {
                looked[tag].time = now + some_delay(&prng, mix);
                looked[tag].is_pending = true;
                dm_wheel_add(&wheel, looked[tag].time, tag);
            }
            seen += step % 200 == 0 ? look(&wheel, tag) : 0;
            struct dm_event event = take(&wheel);
            assert_true(looked[event.tag].is_pending && looked[event.tag].time == event.time);
            looked[event.tag].is_pending = false;
            now = event.time;
        }
        assert_true(seen > 0 || mix == 1); /* all of the first mix are in the current slot */
        dm_wheel_fini(&wheel);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_leave_in_order_of_time_and_then_of_arrival),
        cmocka_unit_test(many_events_of_one_instant_keep_their_order),
        cmocka_unit_test(slots_become_wider_and_narrower_more_and_fewer),
        cmocka_unit_test(events_of_coming_slots_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
