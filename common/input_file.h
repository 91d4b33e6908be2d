/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that a user names, opened for reading without waiting for another process.
 */
#ifndef DM_COMMON_INPUT_FILE_H
#define DM_COMMON_INPUT_FILE_H

#include <stdio.h>

/* Opens a file for reading. A pipe is read if another process writes to it. A FIFO without a writer, which fopen would
 * wait for, is refused, and so is a pipe without data. NULL with errno (ENODATA for the last two). */
FILE *dm_input_open(const char *path);

#endif
