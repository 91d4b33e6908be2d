/* SPDX-License-Identifier: Apache-2.0
 *
 * No resource of the simulated network is idle while something that could use it waits.
 */
#include "harness/lab/conserving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_conserving(const struct hx_conserving *mix) {
    struct hx_conserved rows[HX_CONSERVED_MAX];
    struct dm_err err;
    size_t count = 0;
    if (hx_conserving_run(mix, rows, &count, &err) < 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(count, 8);
    for (size_t i = 0; i < count; i++) {
        assert_true(rows[i].served > 0);
        if (rows[i].idle_waited_ns > 0) {
            fail_msg("%s: idle for %llu ns while something waited", rows[i].name,
                     (unsigned long long)rows[i].idle_waited_ns);
        }
    }
}

static void nothing_is_idle_while_something_waits_for_it(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 12; seed++) {
        struct hx_conserving mix = {.profile = seed % 2 ? "cx6-100g" : "cx5-100g",
                                    .seed = seed,
                                    .mns = 1 + seed % 3,
                                    .cns = 1 + seed % 2,
                                    .coroutines = seed % 4 ? 8 : 1};
        assert_conserving(&mix);
    }
}

static void nor_with_several_nics_or_one_nic_for_both_roles(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 8; seed++) {
        const struct dm_setting settings[] = {{"nics", seed % 3 ? "2" : "1"}, {"same_host", seed % 2 ? "on" : "off"}};
        struct hx_conserving mix = {.profile = "cx6-100g",
                                    .seed = seed,
                                    .mns = 2,
                                    .cns = 2,
                                    .coroutines = 4,
                                    .settings = settings,
                                    .setting_count = 2};
        assert_conserving(&mix);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_idle_while_something_waits_for_it),
        cmocka_unit_test(nor_with_several_nics_or_one_nic_for_both_roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
