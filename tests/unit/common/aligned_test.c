/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory on cache lines: zeroed, aligned, and refused where its size does not fit in 64 bits. (What fits and is more
 * than the machine has is not tried: the address sanitizer ends a program that asks for it.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/aligned.h"
#include "common/compiler.h"

static void memory_is_zeroed_begins_on_a_line_and_can_be_written(void **state) {
    (void)state;
    const size_t sizes[] = {1, 48, 63, 64, 65, 640};
    for (size_t i = 0; i < DM_ARRAY_LEN(sizes); i++) {
        /* Some come from what was written and freed. */
        for (size_t count = 1; count <= 5; count++) {
            unsigned char *memory = dm_aligned_new(count, sizes[i]);
            assert_non_null(memory);
            assert_int_equal((uintptr_t)memory % DM_HOST_LINE, 0);
            for (size_t at = 0; at < count * sizes[i]; at++) {
                assert_int_equal(memory[at], 0);
                memory[at] = 0xff;
            }
            free(memory);
        }
    }
}

static void too_much_is_refused(void **state) {
    (void)state;
    assert_null(dm_aligned_new(2, SIZE_MAX / 2 + 1)); /* the product is 0 in 64 bits */
    assert_null(dm_aligned_new(1, SIZE_MAX));         /* rounded up to lines, it is 0 */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_begins_on_a_line_and_can_be_written),
        cmocka_unit_test(too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
