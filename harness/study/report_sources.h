/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of the report.
 */
#ifndef DM_HARNESS_STUDY_REPORT_SOURCES_H
#define DM_HARNESS_STUDY_REPORT_SOURCES_H

#include "harness/study/report.h"

/* Takes note of where a point's result comes from. */
void hx_page_sources_add(struct hx_page *page, const char *hash, const json_t *result);

/* The program, profiles and machines of the results that were added. */
void hx_page_sources(const struct hx_page *page);

#endif
