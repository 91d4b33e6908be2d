/* SPDX-License-Identifier: Apache-2.0
 *
 * The report: one page with every figure, the claims that it decides, the validation of the fabric, and the provenance.
 * The page is self-contained: no network, no script; links go to files in its folder.
 *
 *   report_figures.c writes the figures and the claims, report_sources.c the fabric and the provenance, html.c the
 *   pieces of HTML.
 */
#ifndef DM_HARNESS_STUDY_REPORT_H
#define DM_HARNESS_STUDY_REPORT_H

#include <stdio.h>

#include "harness/study/claims.h"
#include "harness/study/figure.h"

struct hx_page {
    FILE *out;
    const char *folder; /* of the results, where the page is */
    const char *scale;
    struct hx_figure **figures;
    size_t figure_count;
    struct hx_points *points;
    struct hx_claims *claims; /* judged */
    unsigned pictures;        /* inserted so far */
    size_t incomplete;        /* figures with something missing */
};

/* The number of claims of each paper by verdict. */
void hx_page_summary(struct hx_page *page);

/* The claims, a table per paper. */
void hx_page_claims(struct hx_page *page);

/* Every figure: pictures, what they show, what is missing, which claims read it. 0 or a failure of memory. */
int hx_page_figures(struct hx_page *page, struct dm_err *err);

/* The fabric against published measurements (validation.json in the folder), configuration and provenance. */
void hx_page_sources(struct hx_page *page);

#endif
