/* SPDX-License-Identifier: Apache-2.0
 *
 * The papers' claims, as data (plots/claims/PAPER.json), judged by the results of figures.
 *
 *   claims.c reads the files, claims_reasons.c the reasons in them, claims_open.c checks reasons against figures,
 *   claims_figures.c looks up what figures measured, claims_judge.c judges, claims_points.c lists the points that are
 *   needed, claims_marks.c finds their positions in figures, claims_text.c prints.
 *
 * A claim has checks, each an expression (claim_expr.h) over one figure and its expected value:
 *   value or ratio: `expect`, a number or [from, to], within `tolerance` (a share); a ratio must also lie on the right
 *                   side of 1. Failing that, `direction` (an expression; for ratios "on the right side of 1" by
 * default) makes it "direction only" trend:          the expression is true; `direction` is a weaker one A claim's
 * verdict is the worst of the checks that could be run. It is judged under each reading of its figures, too
 * (figure_overlay.h); one that holds only there is "reproduced under a reading". Its reasons (`because`) are
 * expressions, too: a value that lies in a range, or something that holds; one that does not is refuted.
 */
#ifndef DM_HARNESS_STUDY_CLAIMS_H
#define DM_HARNESS_STUDY_CLAIMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "harness/points/points.h"
#include "harness/study/figure_data.h"

enum hx_verdict {
    HX_REPRODUCED,
    HX_READING,
    HX_DIRECTION_ONLY,
    HX_NOT_REPRODUCED,
    HX_UNRESOLVED,
    HX_NOT_RUN,
    HX_VERDICTS
};
enum hx_claim_kind { HX_CLAIM_VALUE, HX_CLAIM_RATIO, HX_CLAIM_TREND };
enum { HX_WHY_MAX = 240, HX_VARIANTS_MAX = 4 };

/* "reproduced", "direction only", ...; also the members of counts in JSON, with _ for blanks. */
extern const char *const hx_verdict_names[HX_VERDICTS];

struct hx_judgement {
    enum hx_verdict verdict;
    double value;         /* NaN where it was not run */
    double over;          /* value of the check's `over`; NaN without one */
    bool host_time;       /* the value depends on a metric that is measured in this host's real time */
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
    struct hx_judgement base;
};

enum hx_reason_verdict { HX_REASON_NOT_RUN, HX_REASON_HOLDS, HX_REASON_REFUTED };

/* Why a claim is not reproduced. Pointers into a file. */
struct hx_reason {
    const char *text, *figure;
    const char *value; /* expression */
    const char *scale; /* quick or paper, where it is judged at that scale alone; NULL: at every scale */
    bool is_truth;     /* it must be true; otherwise it must lie in [low, high], which may be infinite at one end */
    double low, high;
    enum hx_reason_verdict verdict;
    double found; /* NaN where it was not run */
    char why[HX_WHY_MAX];
};

/* A claim under a reading of its figures, or under one value of a range. */
struct hx_claim_reading {
    char id[HX_OVERLAY_ID_MAX];
    const char *name, *says, *from, *option; /* pointers into the figure's spec */
    enum hx_verdict verdict;                 /* HX_NOT_RUN: not all of its points have results */
    bool differs;                            /* it changes a point that the claim reads */
    bool counts;                             /* it, or another value of its range, does */
    struct hx_judgement *checks;             /* owned; as many as the claim has checks */
};

struct hx_claim_variant {
    const char *profile, *parameter; /* pointers into plots/sensitivity.json */
    enum hx_verdict verdict;         /* HX_NOT_RUN: not all of its points have results */
};

struct hx_claim {
    const char *id, *paper, *figure, *text; /* figure: as the paper numbers it */
    const char *needs;     /* the paper's own index, without which the claim is not judged; NULL: none */
    const json_t *metrics; /* of its file, beside those that all share; NULL: none */
    enum hx_claim_kind kind;
    struct hx_check *checks;
    size_t check_count;
    size_t run_count; /* checks that could be judged */
    enum hx_verdict verdict;
    enum hx_verdict base_verdict; /* before readings and sensitivity were considered */
    size_t seeds[HX_VERDICTS];    /* with several seeds a point: how many of them have that verdict, each alone */
    struct hx_reason *reasons;
    size_t reason_count, refuted_count;
    struct hx_claim_reading *readings; /* those that change a point which the claim reads; values of a range together */
    size_t reading_count;
    struct hx_claim_variant variants[HX_VARIANTS_MAX];
    size_t variant_count;
};

/* What an expression is evaluated over. */
struct hx_claim_scope {
    const char *figure;    /* the figure's id */
    const char *profile;   /* instead of the figure's own; NULL: its own */
    const char *overlay;   /* the id of a reading or experiment; NULL: none */
    bool reason;           /* with() may be used */
    const json_t *metrics; /* of the claim's file; NULL: none */
};

/* A figure as claims read it: with one profile, and one reading or experiment. */
struct hx_claim_figure {
    struct hx_figure *figure;
    char *profile;                      /* NULL: its own */
    const struct hx_claim_figure *base; /* of an overlay: the figure without it; NULL: it is one itself */
    struct hx_fig_data data;
    bool loaded;
    bool *used; /* one per slot: a claim reads it */
};

struct hx_claims {
    json_t *files, *metrics, *sensitivity; /* owned; metrics: plots/metrics.json, names that all claims share */
    struct hx_claim *items;
    size_t count;
    char *plots, *scale;
    unsigned repeat, seed; /* seed: 0, medians over the seeds are judged; from 1 on, the results of that one */
    struct hx_points *points;
    struct hx_claim_figure **figures;
    size_t figure_count;
    bool collecting; /* expressions mark what they use instead of reading it */
    bool differs;    /* an expression used a point that an overlay changes */
    bool host_time;  /* an expression used a metric that is measured in real time */
};

/* Reads <plots>/claims/PAPER.json, <plots>/metrics.json and <plots>/sensitivity.json and checks their form; callers
 * want hx_claims_open (claims_open.h). `out` is the folder of the results. The caller frees it. */
int hx_claims_read(const char *plots, const char *out, const char *scale, unsigned repeat, struct hx_claims **claims,
                   struct dm_err *err);
void hx_claims_close(struct hx_claims *claims); /* accepts NULL */

/* Frees the readings of a claim. */
void hx_claim_readings_free(struct hx_claim *claim);

/* Frees one of claims->figures. */
void hx_claim_figure_free(struct hx_claim_figure *view);

/* Whether one of the ids selects the claim; without ids all are selected. */
bool hx_claim_is_among(const struct hx_claim *claim, const char *const *ids, size_t id_count);

#endif
