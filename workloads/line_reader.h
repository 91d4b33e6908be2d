/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the lines of a text file of any size, plain or compressed with zstd. The first bytes of the file decide which,
 * not its name.
 */
#ifndef DM_WORKLOADS_LINE_READER_H
#define DM_WORKLOADS_LINE_READER_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum { WL_LINE_MAX = 1 << 16 }; /* longest line, in bytes */

struct wl_line_reader;

/* The caller closes the reader. */
int wl_line_reader_open(const char *path, struct wl_line_reader **reader, struct dm_err *err);
void wl_line_reader_close(struct wl_line_reader *reader); /* accepts NULL */

/* Continues at the first line. */
int wl_line_reader_rewind(struct wl_line_reader *reader, struct dm_err *err);

/* Returns the next line, without its line end and terminated by a zero byte. It is valid until the next call, and the
 * caller may change it. 0; DM_NOT_FOUND at the end; or a failure: the file cannot be read, its compression is damaged,
 * or a line is too long. */
int wl_line_reader_next(struct wl_line_reader *reader, char **line, size_t *bytes, struct dm_err *err);

/* The number of the line that was returned last; the first line has number 1. */
uint64_t wl_line_reader_line(const struct wl_line_reader *reader);

#endif
