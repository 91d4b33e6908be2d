/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of validation: tables, JSON and curves.
 */
#ifndef DM_HARNESS_LAB_VALIDATE_OUTPUT_H
#define DM_HARNESS_LAB_VALIDATE_OUTPUT_H

#include "harness/lab/validate.h"

/* A point and the value of the simulated fabric: a new object, and a line of a table on stdout. */
json_t *hx_published_object(const struct hx_published *point, double model);
void hx_published_print(const struct hx_published *point, double model);

/* Writes the data of every curve, and the gnuplot program that draws it beside the published values, into a folder,
 * which is made. `models` has a value for each of hx_published_points. */
int hx_published_curves_write(const char *folder, const double *models, struct dm_err *err);

/* Prints a table of hx_micro_table. */
void hx_micro_print(json_t *rows);

#endif
