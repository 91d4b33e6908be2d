/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid of a sweep: how values are read, and the combinations and their order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "harness/points/sweep_grid.h"

static void must_add(struct hx_sweep_grid *grid, const char *text, bool listed) {
    struct dm_err err = {.text = ""};
    if (hx_grid_add(grid, text, listed, &err) != 0) {
        fail_msg("%s: %s", text, err.text);
    }
}

static void must_refuse(struct hx_sweep_grid *grid, const char *text, bool listed, const char *reason) {
    struct dm_err err = {.text = ""};
    size_t before = grid->count;
    assert_int_equal(hx_grid_add(grid, text, listed, &err), DM_ERR_INVALID);
    if (strstr(err.text, reason) == NULL) {
        fail_msg("%s: '%s' does not say '%s'", text, err.text, reason);
    }
    assert_int_equal(grid->count, before);
}

static void grids_are_crossed_and_the_first_changes_slowest(void **state) {
    (void)state;
    struct hx_sweep_grid grid = {.columns = NULL};
    must_add(&grid, "clients=16,64,256", false);
    must_add(&grid, "set.node-bytes=512,1024", false);
    assert_int_equal(hx_grid_size(&grid), 6);
    assert_string_equal(grid.columns[1].name, "set.node_bytes");
    for (size_t at = 0; at < 6; at++) {
        size_t choice[2];
        hx_grid_choose(&grid, at, choice);
        assert_int_equal(choice[0], at / 2);
        assert_int_equal(choice[1], at % 2);
    }
    hx_grid_fini(&grid);
}

static void lists_advance_together_and_are_crossed_with_grids_as_one(void **state) {
    (void)state;
    struct hx_sweep_grid grid = {.columns = NULL};
    must_add(&grid, "keys=1M,10M", true);
    must_add(&grid, "workload=a,b,c", false);
    must_add(&grid, "cache=1MB,10MB", true);
    assert_int_equal(hx_grid_size(&grid), 6);
    unsigned seen = 0;
    for (size_t at = 0; at < 6; at++) {
        size_t choice[3];
        hx_grid_choose(&grid, at, choice);
        assert_int_equal(choice[0], choice[2]);
        seen |= 1U << (choice[0] * 3 + choice[1]);
    }
    assert_int_equal(seen, 0x3f);
    hx_grid_fini(&grid);
}

static void values_with_commas_are_separated_by_semicolons(void **state) {
    (void)state;
    struct hx_sweep_grid grid = {.columns = NULL};
    must_add(&grid, "mix=read=1;read=0.5,update=0.5", false);
    must_add(&grid, "clients=16", false);
    must_add(&grid, "distribution=uniform;", false);
    assert_int_equal(grid.columns[0].count, 2);
    assert_string_equal(grid.columns[0].values[1], "read=0.5,update=0.5");
    assert_int_equal(grid.columns[2].count, 1);
    assert_int_equal(hx_grid_size(&grid), 2);
    hx_grid_fini(&grid);
}

static void an_empty_grid_is_one_combination(void **state) {
    (void)state;
    struct hx_sweep_grid grid = {.columns = NULL};
    assert_int_equal(hx_grid_size(&grid), 1);
    hx_grid_fini(&grid);
}

static void mistakes_are_refused_and_change_nothing(void **state) {
    (void)state;
    struct hx_sweep_grid grid = {.columns = NULL};
    must_add(&grid, "clients=1,2", true);
    must_refuse(&grid, "keys", false, "NAME=VALUE");
    must_refuse(&grid, "=5", false, "NAME=VALUE");
    must_refuse(&grid, "keys=", false, "no values");
    must_refuse(&grid, "keys=1,,2", false, "empty");
    must_refuse(&grid, "clients=3", false, "given twice");
    must_refuse(&grid, "keys=1,2,3", true, "need as many");
    hx_grid_fini(&grid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids_are_crossed_and_the_first_changes_slowest),
        cmocka_unit_test(lists_advance_together_and_are_crossed_with_grids_as_one),
        cmocka_unit_test(values_with_commas_are_separated_by_semicolons),
        cmocka_unit_test(an_empty_grid_is_one_combination),
        cmocka_unit_test(mistakes_are_refused_and_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
