/* SPDX-License-Identifier: Apache-2.0
 *
 * The report: one page with every figure beside the claims that read it, the model of the network with its validation,
 * and the provenance. The page is one file that needs no network and no server; links go to files in its folder.
 *
 *   report.c writes the page, report_groups.c sorts figures and claims by paper, report_head.c writes navigation and
 *   summaries, report_figures.c figures, report_tables.c their numbers, report_maps.c maps, report_claims.c claims,
 * report_network.c the network, report_sources.c the provenance, report_data.c what the script reads, html.c pieces of
 * HTML.
 *
 * All of it is readable without script. With script there are charts that show the numbers of a point, filters, and
 * readings that are switched on and off. The page's own script and style are plots/report/report.js and report.css, its
 * libraries are in plots/report/third_party.
 */
#ifndef DM_HARNESS_STUDY_REPORT_H
#define DM_HARNESS_STUDY_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "harness/study/claims.h"
#include "harness/study/figure.h"

/* A paper with its figures and claims; the last one may be "Other figures". */
struct hx_page_paper {
    const char *key;     /* what ids of its figures begin with; NULL: of claims alone */
    const char *name;    /* as claims have it */
    const json_t *about; /* from plots/papers.json; NULL: nothing is known */
    char id[80];         /* in the page */
    size_t counts[HX_VERDICTS], claim_count, figure_count;
};

struct hx_page {
    FILE *out;
    const char *folder; /* of the results, where the page is */
    const char *scale;
    struct hx_figure **figures;
    size_t figure_count;
    struct hx_points *points;
    struct hx_claims *claims; /* judged */
    json_t *names;            /* plots/papers.json; NULL: there is none */
    json_t *systems;          /* styles by name, from plots/systems.json; NULL: there is none */
    struct hx_page_paper *papers;
    size_t paper_count;
    size_t *figure_paper;   /* of each figure, the number of its paper */
    size_t *claim_paper;    /* the same of each claim */
    size_t *claim_figure;   /* of each claim, the figure beside which it is; SIZE_MAX: none */
    json_t **claim_systems; /* of each claim, the names of the indexes that it reads, as the members of an object */
    json_t *data, *rows;    /* what the script reads (report_data.c), and the row of each point in it by its hash */
    json_t *seen, *facts;   /* the hashes of results, and where they come from (report_sources.c) */
    unsigned pictures;      /* inserted so far */
    size_t incomplete;      /* figures with something missing */
};

/* Writes <folder>/report.html from the members above `papers`, which the caller has set, and frees the others. 0 or a
 * failure with err. */
int hx_page_write(struct hx_page *page, struct dm_err *err);

#endif
