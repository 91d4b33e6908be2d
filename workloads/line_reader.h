/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of a text file of any size, plain or compressed with zstd (told by its first bytes, not by its name).
 */
#ifndef DM_WORKLOADS_LINE_READER_H
#define DM_WORKLOADS_LINE_READER_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum { WL_LINE_MAX = 1 << 16 }; /* longest line, in bytes */

struct wl_line_reader;

/* The caller closes. */
int wl_line_reader_open(const char *path, struct wl_line_reader **reader, struct dm_err *err);
void wl_line_reader_close(struct wl_line_reader *reader); /* accepts NULL */

/* Back to the first line. */
int wl_line_reader_rewind(struct wl_line_reader *reader, struct dm_err *err);

/* The next line, terminated, without its line end, valid until the next call: 0; DM_NOT_FOUND at the end; a failure
 * (unreadable, damaged compression, a line that is too long). The text may be changed by the caller. */
int wl_line_reader_next(struct wl_line_reader *reader, char **line, size_t *bytes, struct dm_err *err);

/* Number of the line last returned, 1 for the first. */
uint64_t wl_line_reader_line(const struct wl_line_reader *reader);

#endif
