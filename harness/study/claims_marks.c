/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds where a claim's number is in a figure. An expression is evaluated with its first curve multiplied by a factor;
 * the factor that gives the paper's number is the height of the mark.
 */
#include "harness/study/claims_marks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/claims_figures.h"
#include "harness/study/figure_text.h"

/* The check's value with its first curve times a factor: in all cases, or in one. */
static int evaluate(struct hx_claims *claims, const struct hx_claim *claim, const struct hx_check *check,
                    struct hx_claim_probe *probe, size_t only, double factor, double *value) {
    const struct hx_claim_scope scope = {.figure = check->figure, .metrics = claim->metrics};
    struct dm_err err = {.text = ""};
    *probe = (struct hx_claim_probe){.only = only, .factor = factor};
    int rc = hx_claims_probe(claims, &scope, check->value, probe, value, &err);
    *value /= check->over != NULL ? check->base.over : 1;
    return rc;
}

/* The case in which the curve decides the value: the last one of those that change it most. */
static size_t deciding_case(struct hx_claims *claims, const struct hx_claim *claim, const struct hx_check *check,
                            size_t case_count) {
    struct hx_claim_probe probe;
    double most = 0, value;
    size_t found = SIZE_MAX;
    for (size_t at = 0; at < case_count; at++) {
        int rc = evaluate(claims, claim, check, &probe, at, 1 + 1e-6, &value);
        double change = fabs(value - check->base.value);
        if (rc == 0 && change > 0 && change >= most * 0.99) {
            most = change > most ? change : most;
            found = at;
        }
    }
    return found;
}

/* The factor at which the value is what is expected; NaN if there is none. */
static double factor_for(struct hx_claims *claims, const struct hx_claim *claim, const struct hx_check *check,
                         double expected) {
    struct hx_claim_probe probe;
    double twice, found;
    if (isinf(expected)) {
        return expected;
    }
    if (evaluate(claims, claim, check, &probe, SIZE_MAX, 2, &twice) != 0 || twice == check->base.value) {
        return NAN;
    }
    double factor = 1 + (expected - check->base.value) / (twice - check->base.value);
    if (!(factor > 0) || evaluate(claims, claim, check, &probe, SIZE_MAX, factor, &found) != 0) {
        return NAN;
    }
    return fabs(found - expected) <= 1e-3 * fabs(expected) ? factor : NAN;
}

/* "4.3 × Sherman", "1 to 1.2 × Sherman", "at least 5 %: hits", "64: Sherman, span 64" */
static void make_label(const struct hx_check *check, char *label, size_t capacity) {
    char number[96], low[32], high[32];
    const char *what = check->what;
    bool over = check->over != NULL && strncmp(what, "over ", 5) == 0;
    hx_text_number(check->low, low, sizeof(low));
    hx_text_number(check->high, high, sizeof(high));
    if (isfinite(check->low) && isfinite(check->high) && check->low < check->high) {
        snprintf(number, sizeof(number), "%s to %s", low, high);
    } else {
        snprintf(number, sizeof(number), "%s%s",
                 isinf(check->high)  ? "at least "
                 : isinf(check->low) ? "at most "
                                     : "",
                 isinf(check->low) ? high : low);
    }
    snprintf(label, capacity, "%s%s%.80s", number,
             over                  ? " × "
             : check->over != NULL ? what[0] != '\0' ? " ×, " : " ×"
             : what[0] != '\0'     ? ": "
                                   : "",
             over ? what + 5 : what);
}

/* False where the check has no mark. */
static bool make_mark(struct hx_claims *claims, const struct hx_claim *claim, const struct hx_check *check,
                      const struct hx_figure *figure, struct hx_fig_mark *mark) {
    struct hx_claim_probe probe;
    double value;
    if (claim->kind == HX_CLAIM_TREND || check->base.verdict == HX_NOT_RUN || strcmp(check->figure, figure->id) != 0 ||
        evaluate(claims, claim, check, &probe, SIZE_MAX, 1, &value) != 0 || !probe.found) {
        return false;
    }
    *mark = (struct hx_fig_mark){.panel = probe.panel, .series = probe.series, .at = probe.at, .metric = probe.metric};
    mark->at = mark->at != SIZE_MAX ? mark->at : deciding_case(claims, claim, check, figure->case_count);
    mark->low = factor_for(claims, claim, check, check->low);
    mark->high = check->high == check->low ? mark->low : factor_for(claims, claim, check, check->high);
    make_label(check, mark->label, sizeof(mark->label));
    return mark->at != SIZE_MAX && !isnan(mark->low) && !isnan(mark->high);
}

static int add_mark(struct hx_fig_marks *marks, const struct hx_fig_mark *mark, struct dm_err *err) {
    struct hx_fig_mark *items = realloc(marks->items, (marks->count + 1) * sizeof(*items));
    if (items == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for marks");
    }
    marks->items = items;
    items[marks->count++] = *mark;
    return 0;
}

int hx_claims_marks(struct hx_claims *claims, const struct hx_figure *figure, struct hx_fig_marks *marks,
                    struct dm_err *err) {
    *marks = (struct hx_fig_marks){.count = 0};
    for (size_t i = 0; i < claims->count; i++) {
        for (size_t k = 0; k < claims->items[i].check_count; k++) {
            struct hx_fig_mark mark;
            if (make_mark(claims, &claims->items[i], &claims->items[i].checks[k], figure, &mark)) {
                DM_TRY(add_mark(marks, &mark, err));
            }
        }
    }
    return 0;
}
