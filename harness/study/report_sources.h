/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of the report.
 */
#ifndef DM_HARNESS_STUDY_REPORT_SOURCES_H
#define DM_HARNESS_STUDY_REPORT_SOURCES_H

#include "harness/study/report.h"

/* The program, profiles and machines of the results. */
void hx_page_sources(const struct hx_page *page);

#endif
