/* SPDX-License-Identifier: Apache-2.0
 *
 * Large memory: zeroed, aligned, and refused where there is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/compiler.h"
#include "common/large.h"

#define LARGE_PAGE (UINT64_C(2) << 20)

static void memory_is_zeroed_and_all_of_it_can_be_written(void **state) {
    (void)state;
    const uint64_t sizes[] = {1, 4095, LARGE_PAGE - 1, LARGE_PAGE, LARGE_PAGE + 1, 3 * LARGE_PAGE - 1};
    for (size_t i = 0; i < DM_ARRAY_LEN(sizes); i++) {
        unsigned char *memory = dm_large_alloc(sizes[i]);
        assert_non_null(memory);
        for (uint64_t at = 0; at < sizes[i]; at++) {
            assert_int_equal(memory[at], 0);
            memory[at] = 0xff;
        }
        dm_large_free(memory, sizes[i]);
    }
}

static void large_memory_begins_at_a_large_page(void **state) {
    (void)state;
    void *blocks[8];
    for (size_t i = 0; i < DM_ARRAY_LEN(blocks); i++) {
        blocks[i] = dm_large_alloc(LARGE_PAGE + i);
        assert_int_equal((uintptr_t)blocks[i] % LARGE_PAGE, 0);
    }
    for (size_t i = 0; i < DM_ARRAY_LEN(blocks); i++) {
        dm_large_free(blocks[i], LARGE_PAGE + i);
    }
}

static void nothing_and_too_much_are_handled(void **state) {
    (void)state;
    dm_large_free(dm_large_alloc(0), 0);
    dm_large_free(NULL, 1);
    dm_large_free(NULL, 2 * LARGE_PAGE);
    assert_null(dm_large_alloc(UINT64_MAX));
    assert_null(dm_large_alloc(UINT64_MAX - 2 * LARGE_PAGE));
    assert_null(dm_large_alloc(UINT64_C(1) << 60));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_all_of_it_can_be_written),
        cmocka_unit_test(large_memory_begins_at_a_large_page),
        cmocka_unit_test(nothing_and_too_much_are_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
