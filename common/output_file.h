/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that exist completely or not at all: they are written under a temporary name and renamed at the end. Symbolic
 * links are followed. What exists and is no regular file (a device, a FIFO) is never replaced: it is written to.
 */
#ifndef DM_COMMON_OUTPUT_FILE_H
#define DM_COMMON_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "common/err.h"

/* Opens "path.tmp.<pid>" for writing; beside its target if `path` is a symbolic link. Opens `path` itself if it is a
 * character device or a FIFO that another process reads. NULL with a DM_ERR_IO in err, also for folders, block devices,
 * sockets and FIFOs without a reader. */
FILE *dm_output_open(const char *path, struct dm_err *err);

/* Syncs and closes the file and renames it to `path`, or removes it if writing failed. 0 or DM_ERR_IO. */
int dm_output_close(FILE *file, const char *path, struct dm_err *err);

/* Closes the file and removes it. */
void dm_output_abandon(FILE *file, const char *path);

/* The name under which dm_output_open writes, as a new string; NULL when there is none. Does not open anything. */
char *dm_output_temporary(const char *path);

/* Whether a file can be written, as far as that is known before it is opened: 0 or DM_ERR_IO. `is_seekable`: it must
 * be a regular file or not exist. Nothing is opened or changed. */
int dm_output_check(const char *path, bool is_seekable, struct dm_err *err);

#endif
