/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges each check, each claim by the worst of its checks, also under the readings of its figures, whether the verdict
 * is the same at the other end of the range of fabric parameters that the sources give, and its reasons.
 */
#include "harness/study/claims_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/claims_figures.h"
#include "indexes/index.h"

/* ---- one check -------------------------------------------------------------------------------------------------- */

/* What a tolerance adds to an end of the expected range; an open end stays open, also without a tolerance. */
static double slack(double end, double tolerance) {
    return isinf(end) ? 0 : fabs(end) * tolerance;
}

/* A ratio that is `times` as far off 1, as what is gained: 1.3 twice is 1.6, and 1 / 1.3 twice is 1 / 1.6. */
static double gain_times(double ratio, double times) {
    return ratio >= 1 ? 1 + times * (ratio - 1) : 1 / (1 + times * (1 / ratio - 1));
}

bool hx_check_accepted(enum hx_claim_kind kind, const struct hx_check *check, double *low, double *high) {
    double least = check->low - slack(check->low, check->tolerance);
    double most = check->high + slack(check->high, check->tolerance);
    *low = least;
    *high = most;
    if (kind == HX_CLAIM_RATIO && check->low > 1) {
        *low = fmax(*low, gain_times(check->low, 0.5));
        *high = fmin(*high, gain_times(check->high, 2));
    } else if (kind == HX_CLAIM_RATIO && check->high < 1) {
        *low = check->low > 0 ? fmax(*low, gain_times(check->low, 2)) : *low;
        *high = check->high > 0 ? fmin(*high, gain_times(check->high, 0.5)) : *high;
    }
    return *low > least || *high < most;
}

static bool is_expected(enum hx_claim_kind kind, const struct hx_check *check, double value) {
    double low, high;
    hx_check_accepted(kind, check, &low, &high);
    return kind == HX_CLAIM_TREND ? value != 0 : value >= low && value <= high;
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
                       const char *profile, const char *overlay, struct hx_judgement *judgement, struct dm_err *err) {
    const struct hx_claim_scope scope = {
        .figure = check->figure, .profile = profile, .overlay = overlay, .metrics = claim->metrics};
    enum hx_claim_kind kind = claim->kind;
    struct dm_err why = {.text = ""};
    bool right = false;
    *judgement = (struct hx_judgement){.verdict = HX_NOT_RUN, .value = NAN, .over = NAN};
    claims->host_time = false;
    int rc = check->not_run != NULL ? dm_fail(&why, DM_ERR_INVALID, "%.200s", check->not_run)
                                    : hx_claims_number(claims, &scope, check->value, &judgement->value, &why);
    if (rc == 0 && check->over != NULL) {
        rc = hx_claims_number(claims, &scope, check->over, &judgement->over, &why);
        judgement->value /= judgement->over;
        if (rc == 0 && !isfinite(judgement->value)) {
            rc = dm_fail(&why, DM_NOT_FOUND, "it is to be divided by %s, which is 0", check->over);
        }
    }
    if (rc == 0) {
        bool expected = is_expected(kind, check, judgement->value);
        rc = right_direction(claims, kind, check, &scope, judgement->value, expected, &right, &why);
        bool needs_right = kind == HX_CLAIM_RATIO && check->direction == NULL;
        judgement->verdict = expected && (right || !needs_right) ? HX_REPRODUCED
                             : right                             ? HX_DIRECTION_ONLY
                                                                 : HX_NOT_REPRODUCED;
    }
    judgement->host_time = claims->host_time;
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
        int rc = judge_check(claims, claim, check, NULL, NULL, &check->base, err);
        if (rc < 0) {
            return dm_fail_in(err, rc, "claim %s", claim->id);
        }
        claim->verdict = worse(claim->verdict, check->base.verdict);
        claim->run_count += check->base.verdict != HX_NOT_RUN;
    }
    claim->base_verdict = claim->verdict;
    return 0;
}

/* Judges the same checks again, with another profile or the seed that claims->seed says; if the results of one are
 * missing, there is no verdict. */
static int judge_again(struct hx_claims *claims, const struct hx_claim *claim, const char *profile,
                       enum hx_verdict *verdict, struct dm_err *err) {
    bool whole = true;
    *verdict = HX_NOT_RUN;
    for (size_t i = 0; i < claim->check_count; i++) {
        struct hx_judgement judgement;
        if (claim->checks[i].base.verdict == HX_NOT_RUN) {
            continue;
        }
        DM_TRY(judge_check(claims, claim, &claim->checks[i], profile, NULL, &judgement, err));
        whole = whole && judgement.verdict != HX_NOT_RUN;
        *verdict = worse(*verdict, judgement.verdict);
    }
    *verdict = whole ? *verdict : HX_NOT_RUN;
    return 0;
}

/* The verdict of each seed alone. */
static int judge_seeds(struct hx_claims *claims, struct hx_claim *claim, struct dm_err *err) {
    memset(claim->seeds, 0, sizeof(claim->seeds));
    int rc = 0;
    bool several = claims->repeat > 1 && claim->verdict != HX_NOT_RUN;
    for (unsigned seed = 1; rc == 0 && several && seed <= claims->repeat; seed++) {
        enum hx_verdict verdict;
        claims->seed = seed;
        rc = judge_again(claims, claim, NULL, &verdict, err);
        claim->seeds[verdict]++;
    }
    claims->seed = 0;
    return rc;
}

/* ---- readings --------------------------------------------------------------------------------------------------- */

/* Judges the checks under a reading; those whose figure does not have it stay as they are. */
static int judge_reading(struct hx_claims *claims, const struct hx_claim *claim, struct hx_claim_reading *reading,
                         struct dm_err *err) {
    bool whole = true;
    claims->differs = false;
    for (size_t i = 0; i < claim->check_count; i++) {
        const struct hx_check *check = &claim->checks[i];
        const struct hx_fig_overlays *overlays = hx_claims_overlays(claims, check->figure);
        bool has = overlays != NULL && hx_fig_overlay_find(overlays, reading->id) != NULL;
        reading->checks[i] = check->base;
        if (check->base.verdict == HX_NOT_RUN) {
            continue;
        }
        DM_TRY(has ? judge_check(claims, claim, check, NULL, reading->id, &reading->checks[i], err) : 0);
        whole = whole && reading->checks[i].verdict != HX_NOT_RUN;
        reading->verdict = worse(reading->verdict, reading->checks[i].verdict);
    }
    reading->verdict = whole ? reading->verdict : HX_NOT_RUN;
    return 0;
}

static bool has_reading(const struct hx_claim *claim, const char *id) {
    for (size_t i = 0; i < claim->reading_count; i++) {
        if (strcmp(claim->readings[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

/* Judges a claim under one more reading. */
static int add_reading(struct hx_claims *claims, struct hx_claim *claim, const struct hx_fig_overlay *overlay,
                       struct dm_err *err) {
    struct hx_claim_reading *items = realloc(claim->readings, (claim->reading_count + 1) * sizeof(*items));
    struct hx_judgement *checks = calloc(claim->check_count, sizeof(*checks));
    claim->readings = items != NULL ? items : claim->readings;
    if (items == NULL || checks == NULL) {
        free(checks);
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for claims");
    }
    struct hx_claim_reading *reading = &items[claim->reading_count];
    *reading = (struct hx_claim_reading){.name = overlay->name,
                                         .says = overlay->says,
                                         .from = overlay->from,
                                         .option = overlay->option,
                                         .verdict = HX_NOT_RUN,
                                         .checks = checks};
    memcpy(reading->id, overlay->id, sizeof(reading->id));
    int rc = judge_reading(claims, claim, reading, err);
    if (rc < 0) {
        free(checks);
        return rc;
    }
    /* One that cannot be read is kept, so that it is seen. */
    reading->differs = claims->differs || reading->verdict == HX_NOT_RUN;
    claim->reading_count++;
    return 0;
}

/* Whether a reading, or another value of its range, changes what the claim reads. */
static bool changes(const struct hx_claim *claim, const struct hx_claim_reading *reading) {
    bool differs = reading->differs;
    for (size_t i = 0; i < claim->reading_count && reading->option != NULL; i++) {
        differs = differs || (claim->readings[i].differs && strcmp(claim->readings[i].name, reading->name) == 0);
    }
    return differs;
}

static void drop_unchanged(struct hx_claim *claim) {
    size_t kept = 0;
    for (size_t i = 0; i < claim->reading_count; i++) {
        struct hx_claim_reading *reading = &claim->readings[i];
        reading->counts = changes(claim, reading);
    }
    for (size_t i = 0; i < claim->reading_count; i++) {
        if (claim->readings[i].counts) {
            claim->readings[kept++] = claim->readings[i];
        } else {
            free(claim->readings[i].checks);
        }
    }
    claim->reading_count = kept;
}

static int judge_readings(struct hx_claims *claims, struct hx_claim *claim, struct dm_err *err) {
    hx_claim_readings_free(claim);
    for (size_t i = 0; i < claim->check_count; i++) {
        bool runs = claim->checks[i].base.verdict != HX_NOT_RUN;
        const struct hx_fig_overlays *overlays = runs ? hx_claims_overlays(claims, claim->checks[i].figure) : NULL;
        for (size_t k = 0; overlays != NULL && k < overlays->count; k++) {
            const struct hx_fig_overlay *overlay = &overlays->items[k];
            if (overlay->from != NULL && !has_reading(claim, overlay->id)) {
                DM_TRY(add_reading(claims, claim, overlay, err));
            }
        }
    }
    drop_unchanged(claim);
    return 0;
}

/* A claim that is not reproduced by the figure as it is, but under a reading. */
static void settle_readings(struct hx_claim *claim) {
    for (size_t i = 0; i < claim->reading_count; i++) {
        if (claim->readings[i].verdict == HX_REPRODUCED && claim->base_verdict != HX_REPRODUCED) {
            claim->verdict = HX_READING;
        }
    }
}

/* ---- reasons ---------------------------------------------------------------------------------------------------- */

static int judge_reasons(struct hx_claims *claims, struct hx_claim *claim, struct dm_err *err) {
    claim->refuted_count = 0;
    for (size_t i = 0; i < claim->reason_count; i++) {
        struct hx_reason *reason = &claim->reasons[i];
        const struct hx_claim_scope scope = {.figure = reason->figure, .metrics = claim->metrics, .reason = true};
        struct dm_err why = {.text = ""};
        int rc = hx_claims_number(claims, &scope, reason->value, &reason->found, &why);
        if (rc < 0) {
            *err = why;
            return dm_fail_in(err, rc, "claim %s: because[%zu]", claim->id, i);
        }
        bool holds =
            reason->is_truth ? reason->found != 0 : reason->found >= reason->low && reason->found <= reason->high;
        reason->verdict = rc != 0 ? HX_REASON_NOT_RUN : holds ? HX_REASON_HOLDS : HX_REASON_REFUTED;
        reason->found = rc != 0 ? NAN : reason->found;
        claim->refuted_count += reason->verdict == HX_REASON_REFUTED;
        snprintf(reason->why, sizeof(reason->why), "%.200s", rc != 0 ? why.text : "");
    }
    return 0;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

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
        DM_TRY(judge_again(claims, claim, claim->variants[i].profile, &claim->variants[i].verdict, err));
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
        DM_TRY(judge_seeds(claims, &claims->items[i], err));
        DM_TRY(judge_variants(claims, &claims->items[i], err));
        DM_TRY(judge_readings(claims, &claims->items[i], err));
        settle_readings(&claims->items[i]);
        DM_TRY(judge_reasons(claims, &claims->items[i], err));
    }
    return 0;
}
