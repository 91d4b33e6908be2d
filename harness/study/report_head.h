/* SPDX-License-Identifier: Apache-2.0
 *
 * The beginning of the report, and of each paper in it.
 */
#ifndef DM_HARNESS_STUDY_REPORT_HEAD_H
#define DM_HARNESS_STUDY_REPORT_HEAD_H

#include "harness/study/report.h"

/* Everything before <main>: the style, the title, and the navigation by paper and figure. 0 or DM_ERR_IO. */
int hx_page_head(const struct hx_page *page, struct dm_err *err);

/* What the page is, the verdicts explained, and the number of claims of each paper by verdict. */
void hx_page_overview(const struct hx_page *page);

/* Opens the section of a paper: its title, what it proposes, and what became of its claims. */
void hx_page_paper_begin(const struct hx_page *page, size_t paper);

#endif
