/* SPDX-License-Identifier: Apache-2.0
 *
 * The two files of a curve: its data, and the gnuplot program that draws them. A failure names the file.
 */
#ifndef DM_HARNESS_LAB_CURVE_FILE_H
#define DM_HARNESS_LAB_CURVE_FILE_H

#include <stdio.h>

#include "common/err.h"

struct hx_curve_file {
    FILE *file;
    char path[1024];
};

/* Makes the folder of curves, and those above it, unless they are there. DM_ERR_IO. */
int hx_curve_folder(const char *folder, struct dm_err *err);

/* Begins FOLDER/NAME.SUFFIX. DM_ERR_IO. */
int hx_curve_open(struct hx_curve_file *curve, const char *folder, const char *name, const char *suffix,
                  struct dm_err *err);

/* Ends the file. DM_ERR_IO if it was not written in full. */
int hx_curve_close(struct hx_curve_file *curve, struct dm_err *err);

#endif
