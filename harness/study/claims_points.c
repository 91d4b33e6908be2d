/* SPDX-License-Identifier: Apache-2.0
 *
 * Which points claims read.
 */
#include "harness/study/claims_points.h"

#include <string.h>

#include "harness/study/claims_figures.h"

/* Marks the points that a check reads, if its systems are built. */
static int collect(struct hx_claims *claims, const struct hx_claim *claim, const struct hx_check *check,
                   const char *profile, const char *overlay, struct dm_err *err) {
    const struct hx_claim_scope scope = {
        .figure = check->figure, .profile = profile, .overlay = overlay, .metrics = claim->metrics};
    const char *const expressions[] = {check->value, check->over, check->direction};
    for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
        double unused;
        if (expressions[i] != NULL) {
            DM_TRY(hx_claims_number(claims, &scope, expressions[i], &unused, err));
        }
    }
    return 0;
}

/* A check with the figure's own profile and under each reading; with `variants` also with the other profiles. */
static int collect_check(struct hx_claims *claims, const struct hx_claim *claim, const struct hx_check *check,
                         bool variants, struct dm_err *err) {
    struct hx_claim_variant others[HX_VARIANTS_MAX];
    const struct hx_fig_overlays *overlays = hx_claims_overlays(claims, check->figure);
    size_t count = variants ? hx_claims_variants(claims, check->figure, others) : 0;
    int rc = collect(claims, claim, check, NULL, NULL, err);
    for (size_t k = 0; k < count && rc == 0; k++) {
        rc = collect(claims, claim, check, others[k].profile, NULL, err);
    }
    for (size_t k = 0; overlays != NULL && k < overlays->count && rc == 0; k++) {
        if (overlays->items[k].from != NULL) {
            rc = collect(claims, claim, check, NULL, overlays->items[k].id, err);
        }
    }
    return rc;
}

static int collect_claim(struct hx_claims *claims, const struct hx_claim *claim, bool variants, struct dm_err *err) {
    for (size_t i = 0; i < claim->check_count; i++) {
        const struct hx_check *check = &claim->checks[i];
        int rc = check->not_run == NULL ? collect_check(claims, claim, check, variants, err) : 0;
        if (rc < 0) {
            return dm_fail_in(err, rc, "claim %s", claim->id);
        }
    }
    return 0;
}

static int collect_reasons(struct hx_claims *claims, const struct hx_claim *claim, struct dm_err *err) {
    for (size_t i = 0; i < claim->reason_count; i++) {
        const struct hx_reason *reason = &claim->reasons[i];
        const struct hx_claim_scope scope = {.figure = reason->figure, .metrics = claim->metrics, .reason = true};
        double unused;
        int rc = hx_claims_number(claims, &scope, reason->value, &unused, err);
        rc = rc == DM_NOT_FOUND && !hx_claims_has(claims, reason->figure) ? DM_ERR_INVALID : rc;
        if (rc < 0) {
            return dm_fail_in(err, rc, "claim %s: because[%zu]", claim->id, i);
        }
    }
    return 0;
}

int hx_claims_check_reasons(struct hx_claims *claims, struct dm_err *err) {
    int rc = 0;
    claims->collecting = true;
    for (size_t i = 0; i < claims->count && rc >= 0; i++) {
        rc = collect_reasons(claims, &claims->items[i], err);
    }
    claims->collecting = false;
    return rc;
}

int hx_claims_check(struct hx_claims *claims, struct dm_err *err) {
    int rc = 0;
    claims->collecting = true;
    for (size_t i = 0; i < claims->count && rc >= 0; i++) {
        rc = collect_claim(claims, &claims->items[i], true, err);
    }
    claims->collecting = false;
    return rc < 0 ? rc : hx_claims_check_reasons(claims, err);
}

static int add_used(const struct hx_claims *claims, struct hx_points *points, struct dm_err *err) {
    for (size_t i = 0; i < claims->figure_count; i++) {
        const struct hx_claim_figure *view = claims->figures[i];
        size_t slots = hx_figure_slots(view->figure);
        for (size_t at = 0; at < slots * view->figure->repeat; at++) {
            const struct hx_point *point = &claims->points->items[view->figure->points[at]];
            size_t unused;
            if (view->used[at / view->figure->repeat]) {
                DM_TRY(hx_points_add(points, point->config, point->label, point->label, &unused, err));
            }
        }
    }
    return 0;
}

struct hx_points *hx_claims_points(struct hx_claims *claims, const char *const *ids, size_t id_count, bool variants,
                                   struct dm_err *err) {
    struct hx_points *points = hx_points_new(claims->points->out);
    int rc = points == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for points") : 0;
    claims->collecting = true;
    for (size_t i = 0; i < claims->figure_count; i++) {
        memset(claims->figures[i]->used, 0, hx_figure_slots(claims->figures[i]->figure) * sizeof(bool));
    }
    for (size_t i = 0; rc >= 0 && i < claims->count; i++) {
        if (hx_claim_is_among(&claims->items[i], ids, id_count)) {
            /* A claim whose names do not fit its figure needs no points; judging it reports why. */
            rc = collect_claim(claims, &claims->items[i], variants, err) == DM_ERR_NO_MEMORY ? DM_ERR_NO_MEMORY : 0;
            rc = rc < 0 ? rc : collect_reasons(claims, &claims->items[i], err);
        }
    }
    rc = rc < 0 ? rc : add_used(claims, points, err);
    claims->collecting = false;
    if (rc < 0) {
        hx_points_free(points);
        points = NULL;
    }
    return points;
}
