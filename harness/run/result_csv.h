/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as comma-separated values: a line an operation of a run.
 */
#ifndef DM_HARNESS_RUN_RESULT_CSV_H
#define DM_HARNESS_RUN_RESULT_CSV_H

#include <jansson.h>
#include <stdio.h>

#include "harness/run/percentiles.h"

/* The line of names. Columns depend on the percentiles alone. */
void hx_csv_header(const struct hx_percentiles *percentiles, FILE *out);

/* The lines of one result, which has those percentiles. */
void hx_csv_print(const json_t *result, const struct hx_percentiles *percentiles, FILE *out);

#endif
