/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting entries of leaves: every length, against an order made by counting.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/prng.h"
#include "indexes/shared/sort.h"

enum { MOST = 1024 };

static void check(struct dm_prng *prng, unsigned count, uint64_t range) {
    uint64_t keys[MOST], before[MOST];
    uint16_t positions[MOST];
    bool seen[MOST] = {false};
    for (unsigned i = 0; i < count; i++) {
        before[i] = keys[i] = range > 0 ? dm_prng_below(prng, range) : UINT64_MAX - i;
        positions[i] = (uint16_t)i;
    }
    ix_sort(keys, positions, count);
    for (unsigned i = 0; i < count; i++) {
        assert_true(i == 0 || keys[i - 1] <= keys[i]);
        assert_true(positions[i] < count && !seen[positions[i]]);
        seen[positions[i]] = true;
        assert_int_equal(keys[i], before[positions[i]]);
    }
}

static void keys_are_in_order_and_positions_follow_them(void **state) {
    (void)state;
    struct dm_prng prng = dm_prng_stream(1, "sort", 0);
    for (unsigned count = 0; count <= 130; count++) {
        check(&prng, count, UINT64_MAX);
        check(&prng, count, 5);
        check(&prng, count, 0);
    }
    check(&prng, MOST - 1, UINT64_MAX);
    check(&prng, MOST, UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_are_in_order_and_positions_follow_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
