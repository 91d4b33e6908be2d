/* SPDX-License-Identifier: Apache-2.0
 *
 * The event heap against a sorted list: order by time and then by arrival, for heaps of every size around the one at
 * which replacing changes how it works.
 */
#include "common/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/prng.h"

enum { LARGEST = 400 };

static void entries_leave_in_order_of_time_and_then_of_arrival(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(1, "heap", 0);
    struct dm_heap heap = {.entries = NULL};
    for (uint32_t i = 0; i < LARGEST; i++) {
        assert_true(dm_heap_push(&heap, dm_prng_below(&prng, 40), i));
    }
    struct dm_heap_entry last = dm_heap_pop(&heap);
    while (!dm_heap_empty(&heap)) {
        struct dm_heap_entry next = dm_heap_pop(&heap);
        assert_true(last.time < next.time || (last.time == next.time && dm_heap_tag(last) < dm_heap_tag(next)));
        last = next;
    }
    dm_heap_fini(&heap);
}

static void replacing_is_popping_and_pushing(void **state) {
    (void)state;
    for (uint32_t size = 1; size < LARGEST; size = size * 3 / 2 + 1) {
        struct dm_prng prng = dm_prng_stream(size, "heap", 0);
        struct dm_heap one = {.entries = NULL}, other = {.entries = NULL};
        for (uint32_t i = 0; i < size; i++) {
            uint64_t time = dm_prng_below(&prng, 1000);
            assert_true(dm_heap_push(&one, time, i) && dm_heap_push(&other, time, i));
        }
        for (uint32_t i = 0; i < 3000 && one.entries && other.entries; i++) {
            uint64_t time = dm_heap_next_time(&one) + dm_prng_below(&prng, 500);
            struct dm_heap_entry popped = dm_heap_pop(&one);
            assert_true(dm_heap_push(&one, time, i % 1000));
            assert_int_equal(dm_heap_next_time(&other), popped.time);
            assert_int_equal(other.entries[DM_HEAP_ROOT].order, popped.order);
            dm_heap_replace(&other, time, i % 1000);
        }
        assert_int_equal(one.count, size);
        assert_int_equal(other.count, size);
        dm_heap_fini(&one);
        dm_heap_fini(&other);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_leave_in_order_of_time_and_then_of_arrival),
        cmocka_unit_test(replacing_is_popping_and_pushing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
