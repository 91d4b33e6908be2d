/* SPDX-License-Identifier: Apache-2.0
 *
 * The papers' claims, as data (plots/claims/PAPER.json), judged by the results of figures.
 *
 *   claims.c reads and checks the files, claims_figures.c looks up what figures measured, claims_judge.c judges,
 *   claims_points.c lists the points that are needed, claims_lines.c draws into figures, claims_text.c prints.
 *
 * A claim has checks, each an expression (claim_expr.h) over one figure and its expected value:
 *   value or ratio: `expect`, a number or [from, to], within `tolerance` (a share); a ratio must also lie on the right
 * side of 1. Failing that, `direction` (an expression; for ratios "on the right side of 1" by default) makes it
 * "direction only". trend:          the expression is true; `direction` is a weaker one. A claim's verdict is the worst
 * of the checks that could be run.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_H
#define DM_HARNESS_STUDY_CLAIMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "harness/points/points.h"
#include "harness/study/figure_data.h"

enum hx_verdict { HX_REPRODUCED, HX_DIRECTION_ONLY, HX_NOT_REPRODUCED, HX_UNRESOLVED, HX_NOT_RUN, HX_VERDICTS };
enum hx_claim_kind { HX_CLAIM_VALUE, HX_CLAIM_RATIO, HX_CLAIM_TREND };
enum { HX_WHY_MAX = 240, HX_VARIANTS_MAX = 4 };

/* "reproduced", "direction only", ...; also the members of counts in JSON, with _ for blanks. */
extern const char *const hx_verdict_names[HX_VERDICTS];

struct hx_judgement {
    enum hx_verdict verdict;
    double value;         /* NaN where it was not run */
    double over;          /* value of the check's `over`; NaN without one */
    char why[HX_WHY_MAX]; /* why it was not run */
};

/* Pointers into a file. */
struct hx_check {
    const char *what;      /* "over Sherman"; "" */
    const char *figure;    /* the id of the figure that it reads */
    const char *not_run;   /* why it cannot be measured here; NULL: it can */
    const char *value;     /* expression */
    const char *over;      /* expression that the value is divided by; NULL: none */
    const char *direction; /* expression; NULL: none or the usual one */
    double low, high;      /* the expected range; infinite at an open end; unused for a trend */
    double tolerance;
    const char *line_plot, *line_panel; /* the plot and panel where it is drawn as a line; NULL: none */
    struct hx_judgement base;
};

struct hx_claim_variant {
    const char *profile, *parameter; /* pointers into plots/sensitivity.json */
    enum hx_verdict verdict;         /* HX_NOT_RUN: not all of its points have results */
};

struct hx_claim {
    const char *id, *paper, *figure, *text, *analysis; /* figure: as the paper numbers it */
    const char *needs;     /* the paper's own index, without which the claim is not judged; NULL: none */
    const json_t *metrics; /* of its file, beside those that all share; NULL: none */
    enum hx_claim_kind kind;
    struct hx_check *checks;
    size_t check_count;
    size_t run_count; /* checks that could be judged */
    enum hx_verdict verdict;
    enum hx_verdict base_verdict; /* before sensitivity was considered */
    struct hx_claim_variant variants[HX_VARIANTS_MAX];
    size_t variant_count;
};

/* What an expression is evaluated over. */
struct hx_claim_scope {
    const char *figure;    /* the figure's id */
    const char *profile;   /* instead of the figure's own; NULL: its own */
    const json_t *metrics; /* of the claim's file; NULL: none */
};

/* A figure as claims read it: with one profile. */
struct hx_claim_figure {
    struct hx_figure *figure;
    char *profile; /* NULL: its own */
    struct hx_fig_data data;
    bool loaded;
    bool *used; /* one per slot: a claim reads it */
};

struct hx_claims {
    json_t *files, *metrics, *sensitivity; /* owned; metrics: plots/metrics.json, names that all claims share */
    struct hx_claim *items;
    size_t count;
    char *plots, *scale;
    unsigned repeat;
    struct hx_points *points;
    struct hx_claim_figure **figures;
    size_t figure_count;
    bool collecting; /* expressions mark what they use instead of reading it */
};

/* Reads <plots>/claims/PAPER.json, <plots>/metrics.json and <plots>/sensitivity.json and checks their form. `out` is
 * the folder of the results. The caller frees it. */
int hx_claims_open(const char *plots, const char *out, const char *scale, unsigned repeat, struct hx_claims **claims,
                   struct dm_err *err);
void hx_claims_close(struct hx_claims *claims); /* accepts NULL */

/* Frees one of claims->figures. */
void hx_claim_figure_free(struct hx_claim_figure *view);

/* Whether one of the ids selects the claim; without ids all are selected. */
bool hx_claim_is_among(const struct hx_claim *claim, const char *const *ids, size_t id_count);

#endif
