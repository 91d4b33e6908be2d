/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs gnuplot on the programs of a figure.
 */
#ifndef DM_HARNESS_STUDY_GNUPLOT_H
#define DM_HARNESS_STUDY_GNUPLOT_H

#include "common/err.h"

/* Runs `gnuplot PROGRAM` in a folder. 0; DM_ERR_UNSUPPORTED when gnuplot is not installed; DM_ERR_IO with gnuplot's
 * last line of output. */
int hx_gnuplot(const char *folder, const char *program, struct dm_err *err);

#endif
