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

/* Of a picture, FOLDER/NAME.KIND. */
enum { HX_PICTURE_KINDS = 3 };
extern const char *const hx_picture_kinds[HX_PICTURE_KINDS];

/* Removes the picture of all kinds, as an older one would not show newer numbers. */
void hx_pictures_remove(const char *folder, const char *name);

#endif
