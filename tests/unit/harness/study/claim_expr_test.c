/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions of claims over curves made up here.
 */
#include "harness/study/claim_expr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Under "doubled" every value is twice as large; "unheard" is no change that is known. */
static double times = 1;

/* up: x = 1 2 4 8 -> 10 20 40 80; down: 4 3 2 1; flat: 5 5.1 5 4.9; holed: 5, none, 1, 2; "gone" has no numbers; all
 * other names are errors. */
static int find(void *arg, const struct hx_select *select, struct hx_curve *curve, struct dm_err *err) {
    static const double up[] = {10, 20, 40, 80}, down[] = {4, 3, 2, 1}, flat[] = {5, 5.1, 5, 4.9},
                        holed[] = {5, NAN, 1, 2};
    const char *series = select->parts[0];
    const double *values = strcmp(series, "up") == 0      ? up
                           : strcmp(series, "down") == 0  ? down
                           : strcmp(series, "flat") == 0  ? flat
                           : strcmp(series, "holed") == 0 ? holed
                                                          : NULL;
    (void)arg;
    assert_string_equal(select->metric, "y");
    if (strcmp(series, "gone, away") == 0) {
        dm_fail(err, DM_ERR_INVALID, "gone is not built here");
        return DM_NOT_FOUND;
    }
    if (values == NULL) {
        return dm_fail(err, DM_ERR_INVALID, "no series '%s'", series);
    }
    *curve = (struct hx_curve){.count = 4};
    for (size_t i = 0; i < 4; i++) {
        curve->x[i] = (double)(1 << i);
        curve->y[i] = values[i] * times;
    }
    if (select->part_count > 1) {
        size_t at = (size_t)(select->parts[1][0] - '0');
        *curve = (struct hx_curve){.single = true, .count = 1, .y = {values[at] * times}};
    }
    return 0;
}

static int enter(void *arg, const char *id, struct dm_err *err) {
    (void)arg;
    if (id != NULL && strcmp(id, "doubled") != 0) {
        return dm_fail(err, DM_ERR_INVALID, "no reading '%s'", id);
    }
    times = id != NULL ? 2 : 1;
    return 0;
}

static const struct hx_curve_source source = {.find = find, .enter = enter, .scale = 60, .x_scale = 1};

static void is(const char *text, double expected) {
    struct hx_curve value;
    struct dm_err err = {.text = ""};
    if (hx_claim_eval(text, &source, &value, &err) != 0) {
        fail_msg("%s: %s", text, err.text);
    }
    if (!value.single || fabs(value.y[0] - expected) > 1e-9) {
        fail_msg("%s gives %g (single: %d), not %g", text, value.y[0], value.single, expected);
    }
}

static void refuses(const char *text, int code, const char *reason) {
    struct hx_curve value;
    struct dm_err err = {.text = ""};
    assert_int_equal(hx_claim_eval(text, &source, &value, &err), code);
    if (strstr(err.text, reason) == NULL) {
        fail_msg("%s: '%s' does not say '%s'", text, err.text, reason);
    }
}

static void arithmetic_has_its_usual_order(void **state) {
    (void)state;
    is("1 + 2 * 3 - 8 / 4", 5);
    is("(1 + 2) * 3", 9);
    is("2 * 3 > 5 and 1 < 2", 1);
    is("1 > 2 or 2 >= 2", 1);
    is(" .5 + 1e1 ", 10.5);
    is("2 * scale", 120);
}

static void curves_are_combined_value_by_value(void **state) {
    (void)state;
    is("max(y{up} / y{down})", 80);
    is("max(y{up}) / max(y{down})", 20);
    is("min(y{ up } - y{down})", 6);
    is("all(y{up} > 2 * y{down})", 1);
    is("all(y{up} > 3 * y{down})", 0);
    is("any(y{up} > 79)", 1);
    is("max(max(y{down}, y{flat}))", 5.1);
    is("mean(y{down}) + first(y{up}) + last(y{up})", 92.5);
    is("y{up, 2} / y{down, 2}", 20);
}

static void trends_are_seen(void **state) {
    (void)state;
    is("rises(y{up})", 1);
    is("rises(y{down})", 0);
    is("rises(y{flat})", 0);
    is("falls(y{down})", 1);
    is("falls(y{flat})", 0);
    is("falls(y{flat}, 0.0)", 0);
    is("flat(y{flat}, 0.05)", 1);
    is("flat(y{flat}, 0.04)", 0);
    is("max(upto(y{up}, 2))", 20);
    is("max(upto(y{up}, 1.999996))", 20); /* 100 MB that were divided by 600 are 100.0002 MB */
    is("max(upto(y{up}, 1.99))", 10);
    is("min(from(y{up}, 4.00001))", 40);
    is("min(from(y{up}, 4))", 40);
    is("power(y{up})", 1);
    is("best_x(y{flat})", 2);
    is("mean(over_x(y{up}))", 10);
}

/* Whatever is concluded from it: a comparison with no number is neither true nor false. */
static void a_missing_number_decides_nothing(void **state) {
    static const char *const texts[] = {
        "y{holed, 1} < 3",        "y{holed, 1} >= 3", "3 > y{holed, 1}",           "max(y{holed})",
        "min(y{holed})",          "mean(y{holed})",   "all(y{holed} > 0)",         "any(y{holed} > 0)",
        "rises(y{holed})",        "falls(y{holed})",  "best_x(y{holed})",          "flat(y{holed}, 0.5)",
        "max(y{holed}, y{flat})", "power(y{holed})",  "1 < 2 and y{holed, 1} > 1", "y{holed, 1} or 1 < 2"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        refuses(texts[i], DM_NOT_FOUND, "no number");
    }
    is("first(y{holed})", 5);
    is("max(from(y{holed}, 4))", 2);
}

static void missing_numbers_are_distinguished_from_mistakes(void **state) {
    (void)state;
    refuses("1 + y{'gone, away'}", DM_NOT_FOUND, "not built here");
    refuses("max((y{'gone, away'}), 2)", DM_NOT_FOUND, "not built here");
    refuses("1 / (y{up, 0} - 10)", DM_NOT_FOUND, "no number");
    refuses("y{sideways}", DM_ERR_INVALID, "no series 'sideways'");
    refuses("1 +", DM_ERR_INVALID, "missing");
    refuses("1 2", DM_ERR_INVALID, "left over at '2'");
    refuses("(1", DM_ERR_INVALID, "')'");
    refuses("y{up", DM_ERR_INVALID, "label");
    refuses("y{}", DM_ERR_INVALID, "label");
    refuses("largest(1)", DM_ERR_INVALID, "unknown function");
    refuses("flat(y{up})", DM_ERR_INVALID, "arguments");
    refuses("y{up} + from(y{up}, 4)", DM_ERR_INVALID, "different lengths");
    refuses("from(y{up}, 100)", DM_ERR_INVALID, "nothing of the curve");
    char deep[256] = "";
    memset(deep, '(', 200);
    refuses(deep, DM_ERR_INVALID, "too deeply");
}

static void with_evaluates_under_a_change_and_only_there(void **state) {
    (void)state;
    is("with(doubled, max(y{up}))", 160);
    is("with(doubled, max(y{up})) / max(y{up})", 2);
    is("max(y{up}) + with(doubled, y{up, 0}) + y{up, 0}", 80 + 20 + 10);
    is("with(doubled, max(y{up}) > 100) and max(y{up}) < 100", 1);
    refuses("with(unheard, max(y{up}))", DM_ERR_INVALID, "no reading 'unheard'");
    refuses("with(doubled, with(doubled, max(y{up})))", DM_ERR_INVALID, "with() inside with()");
    refuses("with(doubled)", DM_ERR_INVALID, "no label");
    refuses("with(doubled, y{up, 0}", DM_ERR_INVALID, "')' is missing");
    refuses("with(doubled, y{gone})", DM_ERR_INVALID, "no series 'gone'");
    is("y{up, 0}", 10);
    refuses("with(doubled, y{'gone, away'})", DM_NOT_FOUND, "not built");
    is("y{up, 0}", 10);
}

static void a_claim_has_no_with(void **state) {
    (void)state;
    const struct hx_curve_source plain = {.find = find, .scale = 1, .x_scale = 1};
    struct hx_curve value;
    struct dm_err err = {.text = ""};
    assert_int_equal(hx_claim_eval("with(doubled, max(y{up}))", &plain, &value, &err), DM_ERR_INVALID);
    assert_non_null(strstr(err.text, "outside a reason"));
}

/* A figure at a tenth of the paper's sizes: its curves have the paper's x. */
static void over_x_divides_by_what_was_measured(void **state) {
    (void)state;
    const struct hx_curve_source tenth = {.find = find, .scale = 10, .x_scale = 10};
    struct hx_curve value;
    struct dm_err err = {.text = ""};
    assert_int_equal(hx_claim_eval("mean(over_x(y{up}))", &tenth, &value, &err), 0);
    assert_float_equal(value.y[0], 100, 1e-9);
    assert_int_equal(hx_claim_eval("best_x(y{flat})", &tenth, &value, &err), 0);
    assert_float_equal(value.y[0], 2, 1e-9);
}

static void a_division_by_nothing_but_numbers_that_make_zero_is_a_mistake(void **state) {
    (void)state;
    refuses("y{up, 0} / 0", DM_ERR_INVALID, "division by nothing");
    refuses("y{up, 0} / (2 - 2)", DM_ERR_INVALID, "division by nothing");
    refuses("max(y{up} / max(0, 0))", DM_ERR_INVALID, "division by nothing");
    /* What was measured may be 0: there is no number, which is no mistake. */
    refuses("y{up, 0} / (y{up, 0} - y{up, 0})", DM_NOT_FOUND, "no number");
    refuses("y{up, 0} / (scale - 60)", DM_NOT_FOUND, "no number");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_has_its_usual_order),
        cmocka_unit_test(curves_are_combined_value_by_value),
        cmocka_unit_test(trends_are_seen),
        cmocka_unit_test(a_missing_number_decides_nothing),
        cmocka_unit_test(missing_numbers_are_distinguished_from_mistakes),
        cmocka_unit_test(with_evaluates_under_a_change_and_only_there),
        cmocka_unit_test(a_claim_has_no_with),
        cmocka_unit_test(over_x_divides_by_what_was_measured),
        cmocka_unit_test(a_division_by_nothing_but_numbers_that_make_zero_is_a_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
