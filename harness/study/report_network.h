/* SPDX-License-Identifier: Apache-2.0
 *
 * The network of the results, in the report.
 */
#ifndef DM_HARNESS_STUDY_REPORT_NETWORK_H
#define DM_HARNESS_STUDY_REPORT_NETWORK_H

#include "harness/study/report.h"

/* The network's parameters under the profiles of the figures, it against published measurements (validation.json in the
 * folder), and whole indexes against results of others on real NICs (end_to_end.json). */
void hx_page_network(const struct hx_page *page);

#endif
