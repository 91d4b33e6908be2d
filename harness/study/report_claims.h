/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims in the report.
 */
#ifndef DM_HARNESS_STUDY_REPORT_CLAIMS_H
#define DM_HARNESS_STUDY_REPORT_CLAIMS_H

#include "harness/study/report.h"

/* The name of a verdict as a class of the style sheet and a value of attributes: "not-reproduced". */
const char *hx_page_verdict_class(enum hx_verdict verdict);

/* The verdict as a coloured name. */
void hx_page_badge(FILE *out, enum hx_verdict verdict);

/* Claim number `at`: what the paper says, its numbers beside ours, its readings, and why it is not reproduced. */
void hx_page_claim(const struct hx_page *page, size_t at);

/* A table of all claims, with links to them. */
void hx_page_claims(const struct hx_page *page);

#endif
