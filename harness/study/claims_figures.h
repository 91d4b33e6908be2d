/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluating the expressions of claims over what figures measured.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_FIGURES_H
#define DM_HARNESS_STUDY_CLAIMS_FIGURES_H

#include "harness/study/claim_expr.h"
#include "harness/study/claims.h"

/* Evaluates an expression. As hx_claim_eval; a curve is an error. */
int hx_claims_number(struct hx_claims *claims, const struct hx_claim_scope *scope, const char *expression,
                     double *value, struct dm_err *err);

/* Looks at an expression's first curve, and multiplies it. */
struct hx_claim_probe {
    size_t only; /* the case that is multiplied; SIZE_MAX: all */
    double factor;
    bool found; /* set: the expression has a curve; the rest says which */
    struct hx_select select;
    struct hx_fig_metric metric;
    size_t panel, series, at; /* at: SIZE_MAX for all cases */
};

/* As hx_claims_number, with the first curve multiplied wherever the same one is selected. */
int hx_claims_probe(struct hx_claims *claims, const struct hx_claim_scope *scope, const char *expression,
                    struct hx_claim_probe *probe, double *value, struct dm_err *err);

/* The profiles under which a figure's numbers are judged beside its own, with the parameter that differs. Returns their
 * number, 0 for a figure that does not exist. */
size_t hx_claims_variants(struct hx_claims *claims, const char *figure, struct hx_claim_variant *variants);

/* The readings and experiments of a figure; NULL for a figure that does not exist or cannot be read. */
const struct hx_fig_overlays *hx_claims_overlays(struct hx_claims *claims, const char *figure);

/* Whether the figure exists. */
bool hx_claims_has(const struct hx_claims *claims, const char *figure);

#endif
