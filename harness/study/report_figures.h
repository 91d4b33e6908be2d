/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures in the report.
 */
#ifndef DM_HARNESS_STUDY_REPORT_FIGURES_H
#define DM_HARNESS_STUDY_REPORT_FIGURES_H

#include "harness/study/report.h"

/* Each paper with its figures: pictures, what they show, what is missing, and beside them the claims that read them. 0
 * or a failure of memory. */
int hx_page_papers(struct hx_page *page, struct dm_err *err);

#endif
