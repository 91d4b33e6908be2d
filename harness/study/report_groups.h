/* SPDX-License-Identifier: Apache-2.0
 *
 * Which paper each figure and claim of the report belongs to, beside which figure a claim is, and which systems are in
 * them.
 */
#ifndef DM_HARNESS_STUDY_REPORT_GROUPS_H
#define DM_HARNESS_STUDY_REPORT_GROUPS_H

#include "harness/study/report.h"

/* Fills page->papers and what follows it. A figure belongs to the paper that its id begins with (plots/papers.json),
 * else to that of the first claim that reads it, else to "Other figures". A claim is beside the first figure of its own
 * paper that it reads. 0 or a failure; hx_page_groups_free frees all of it. */
int hx_page_groups(struct hx_page *page, struct dm_err *err);
void hx_page_groups_free(struct hx_page *page);

/* A figure's title without the name of its paper, which the page's headings have: "figure 12: throughput". */
const char *hx_page_figure_title(const struct hx_page *page, size_t at);

/* Whether a check of the claim reads the figure. */
bool hx_claim_reads(const struct hx_claim *claim, const struct hx_figure *figure);

/* The indexes of a figure's points, as the members of a new object; NULL when out of memory. */
json_t *hx_page_figure_systems(const struct hx_page *page, const struct hx_figure *figure);

/* The index of a point's configuration; "" for a training. */
const char *hx_page_point_system(const struct hx_points *points, size_t point);

/* The members of an object as an attribute: " data-systems=\"chime sherman\"". */
void hx_page_put_systems(FILE *out, const json_t *systems);

#endif
