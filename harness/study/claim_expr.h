/* SPDX-License-Identifier: Apache-2.0
 *
 * The expressions of claims: arithmetic over the curves of a figure.
 *
 *   throughput{CHIME, YCSB C}       a curve: a metric of a series in a panel, one value per x
 *   throughput{CHIME, YCSB C, 64}   one of its values, by the x or by the name of the case
 *   + - * / ( )                     value by value; a single number is combined with every value of a curve
 *   < <= > >=, and, or              1 where it holds, 0 where not
 *   max min mean first last         of a curve; max and min of several curves: value by value
 *   all any                         over a curve of 0 and 1
 *   rises(c[, slack]) falls(c[, slack])
 *                                   no step goes in the other direction by more than the slack (0.02), and the last
 *                                   value is beyond the first one by more than it
 *   flat(c, share)                  the greatest value is at most 1 + share times the least
 *   from(c, x) upto(c, x)           the part of a curve with at least, at most that x
 *   power(c)                        the exponent of the power of x that fits the curve best: 1 for a straight line
 *   scale                           what the paper's sizes were divided by: 1 at paper scale
 *   over_x(c)                       every value over the x that it was measured at: the curve's x over ->x_scale
 *   best_x(c)                       the x of the greatest value
 *   with(ID, e)                     e under a reading or an experiment of the figure; in reasons only
 */
#ifndef DM_HARNESS_STUDY_CLAIM_EXPR_H
#define DM_HARNESS_STUDY_CLAIM_EXPR_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

enum { HX_CURVE_MAX = 64, HX_SELECT_MAX = 3, HX_LABEL_MAX = 96 };

/* A number, or a curve of numbers over x. */
struct hx_curve {
    bool single;
    bool constant; /* nothing but numbers went into it */
    size_t count;  /* 1 where single */
    double y[HX_CURVE_MAX], x[HX_CURVE_MAX];
};

/* The names before and between the braces. */
struct hx_select {
    char metric[HX_LABEL_MAX];
    char parts[HX_SELECT_MAX][HX_LABEL_MAX];
    size_t part_count;
};

/* `find` looks up a selection. 0; DM_NOT_FOUND if its numbers are missing, with the reason in err; or a failure: the
 * figure has nothing of that name. `enter` makes it look under a reading or an experiment until `enter` with NULL. */
struct hx_curve_source {
    int (*find)(void *arg, const struct hx_select *select, struct hx_curve *curve, struct dm_err *err);
    int (*enter)(void *arg, const char *id, struct dm_err *err); /* NULL: with() is refused */
    void *arg;
    double scale;
    double x_scale; /* what the curves' x were divided by in the runs; 1 where they are no sizes */
};

/* Evaluates an expression. 0; DM_NOT_FOUND as above; DM_ERR_INVALID for a mistake in the expression, saying where, as a
 * division by nothing but numbers that make 0. A number that is not finite is DM_NOT_FOUND, too. */
int hx_claim_eval(const char *text, const struct hx_curve_source *source, struct hx_curve *value, struct dm_err *err);

#endif
