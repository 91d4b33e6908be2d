/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges each check, each claim by the worst of its checks, and whether the verdict is the same at the other end of the
 * range of fabric parameters that the sources give.
 */
#include "harness/study/claims_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/claims_figures.h"
#include "indexes/index.h"

/* ---- one check -------------------------------------------------------------------------------------------------- */

static bool is_expected(enum hx_claim_kind kind, const struct hx_check *check, double value) {
    if (kind == HX_CLAIM_TREND) {
        return value != 0;
    }
    double low = check->low - fabs(check->low) * check->tolerance;
    double high = check->high + fabs(check->high) * check->tolerance;
    return value >= low && value <= high;
}

/* Whether the right system wins. Without a `direction` only a ratio that should be off 1 has one. */
static int right_direction(struct hx_claims *claims, enum hx_claim_kind kind, const struct hx_check *check,
                           const struct hx_claim_scope *scope, double value, bool otherwise, bool *right,
                           struct dm_err *err) {
    *right = otherwise;
    if (check->direction != NULL) {
        double truth = 0;
        int rc = hx_claims_number(claims, scope, check->direction, &truth, err);
        *right = truth != 0;
        return rc;
    }
    if (kind == HX_CLAIM_RATIO && check->low > 1) {
        *right = value > 1;
    } else if (kind == HX_CLAIM_RATIO && check->high < 1) {
        *right = value < 1;
    }
    return 0;
}

/* Returns 0 or DM_ERR_NO_MEMORY. Missing results and names that the figure does not have give the verdict "not run". */
static int judge_check(struct hx_claims *claims, const struct hx_claim *claim, const struct hx_check *check,
                       const char *profile, struct hx_judgement *judgement, struct dm_err *err) {
    const struct hx_claim_scope scope = {.figure = check->figure, .profile = profile, .metrics = claim->metrics};
    enum hx_claim_kind kind = claim->kind;
    struct dm_err why = {.text = ""};
    bool right = false;
    *judgement = (struct hx_judgement){.verdict = HX_NOT_RUN, .value = NAN, .over = NAN};
    int rc = check->not_run != NULL ? dm_fail(&why, DM_ERR_INVALID, "%.200s", check->not_run)
                                    : hx_claims_number(claims, &scope, check->value, &judgement->value, &why);
    if (rc == 0 && check->over != NULL) {
        rc = hx_claims_number(claims, &scope, check->over, &judgement->over, &why);
        judgement->value /= judgement->over;
    }
    if (rc == 0) {
        bool expected = is_expected(kind, check, judgement->value);
        rc = right_direction(claims, kind, check, &scope, judgement->value, expected, &right, &why);
        bool needs_right = kind == HX_CLAIM_RATIO && check->direction == NULL;
        judgement->verdict = expected && (right || !needs_right) ? HX_REPRODUCED
                             : right                             ? HX_DIRECTION_ONLY
                                                                 : HX_NOT_REPRODUCED;
    }
    if (rc == 0) {
        return 0;
    }
    judgement->verdict = HX_NOT_RUN;
    judgement->value = NAN;
    snprintf(judgement->why, sizeof(judgement->why), "%.200s", why.text);
    if (rc == DM_ERR_NO_MEMORY) {
        *err = why;
        return rc;
    }
    return 0;
}

/* ---- a claim ---------------------------------------------------------------------------------------------------- */

/* The worst of the checks that could be run. */
static enum hx_verdict worse(enum hx_verdict so_far, enum hx_verdict next) {
    if (next == HX_NOT_RUN || so_far == HX_NOT_RUN) {
        return so_far == HX_NOT_RUN ? next : so_far;
    }
    return next > so_far ? next : so_far;
}

/* A claim of a paper whose own system is not built is not judged by its remaining checks. */
static bool lacks_system(struct hx_claim *claim) {
    if (claim->needs == NULL || ix_find(claim->needs) != NULL) {
        return false;
    }
    for (size_t i = 0; i < claim->check_count; i++) {
        struct hx_judgement *judgement = &claim->checks[i].base;
        *judgement = (struct hx_judgement){.verdict = HX_NOT_RUN, .value = NAN, .over = NAN};
        snprintf(judgement->why, sizeof(judgement->why), "the paper's own system, %s, is not built here", claim->needs);
    }
    return true;
}

static int judge_base(struct hx_claims *claims, struct hx_claim *claim, struct dm_err *err) {
    claim->verdict = HX_NOT_RUN;
    claim->base_verdict = HX_NOT_RUN;
    claim->run_count = 0;
    if (lacks_system(claim)) {
        return 0;
    }
    for (size_t i = 0; i < claim->check_count; i++) {
        struct hx_check *check = &claim->checks[i];
        int rc = judge_check(claims, claim, check, NULL, &check->base, err);
        if (rc < 0) {
            return dm_fail_in(err, rc, "claim %s", claim->id);
        }
        claim->verdict = worse(claim->verdict, check->base.verdict);
        claim->run_count += check->base.verdict != HX_NOT_RUN;
    }
    claim->base_verdict = claim->verdict;
    return 0;
}

/* Judges the same checks under another profile; if the results of one are missing, the variant has no verdict. */
static int judge_variant(struct hx_claims *claims, const struct hx_claim *claim, struct hx_claim_variant *variant,
                         struct dm_err *err) {
    enum hx_verdict verdict = HX_NOT_RUN;
    bool whole = true;
    for (size_t i = 0; i < claim->check_count; i++) {
        struct hx_judgement judgement;
        if (claim->checks[i].base.verdict == HX_NOT_RUN) {
            continue;
        }
        DM_TRY(judge_check(claims, claim, &claim->checks[i], variant->profile, &judgement, err));
        whole = whole && judgement.verdict != HX_NOT_RUN;
        verdict = worse(verdict, judgement.verdict);
    }
    variant->verdict = whole ? verdict : HX_NOT_RUN;
    return 0;
}

static int judge_variants(struct hx_claims *claims, struct hx_claim *claim, struct dm_err *err) {
    if (claim->verdict == HX_NOT_RUN) {
        return 0;
    }
    size_t first = 0;
    while (claim->checks[first].base.verdict == HX_NOT_RUN) {
        first++;
    }
    claim->variant_count = hx_claims_variants(claims, claim->checks[first].figure, claim->variants);
    for (size_t i = 0; i < claim->variant_count; i++) {
        DM_TRY(judge_variant(claims, claim, &claim->variants[i], err));
        enum hx_verdict other = claim->variants[i].verdict;
        if (other != HX_NOT_RUN && other != claim->base_verdict) {
            claim->verdict = HX_UNRESOLVED;
        }
    }
    return 0;
}

int hx_claims_judge(struct hx_claims *claims, struct dm_err *err) {
    claims->collecting = false;
    for (size_t i = 0; i < claims->count; i++) {
        DM_TRY(judge_base(claims, &claims->items[i], err));
        DM_TRY(judge_variants(claims, &claims->items[i], err));
    }
    return 0;
}
