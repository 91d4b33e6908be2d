/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps of who wins, in the report.
 */
#ifndef DM_HARNESS_STUDY_REPORT_MAPS_H
#define DM_HARNESS_STUDY_REPORT_MAPS_H

#include "harness/study/report.h"

/* The maps in the folder (maps/ID.json, as `dmbench map` writes them): picture, and a table of the best system at each
 * position with its lead. */
void hx_page_maps(struct hx_page *page);

#endif
