/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that exist completely or not at all: they are written under a temporary name and renamed at the end.
 */
#ifndef DM_HARNESS_BASE_OUTPUT_FILE_H
#define DM_HARNESS_BASE_OUTPUT_FILE_H

#include <stdio.h>

#include "common/err.h"

/* Opens "path.tmp.<pid>" for writing. NULL with a DM_ERR_IO in err. */
FILE *hx_output_open(const char *path, struct dm_err *err);

/* Closes the file and renames it to `path`, or removes it if writing failed. 0 or DM_ERR_IO. */
int hx_output_close(FILE *file, const char *path, struct dm_err *err);

#endif
