/* SPDX-License-Identifier: Apache-2.0
 *
 * Exit statuses and one-line errors of all commands.
 */
#ifndef DM_HARNESS_BASE_ERRORS_H
#define DM_HARNESS_BASE_ERRORS_H

#include <stddef.h>

#include "common/err.h"

enum hx_exit {
    HX_DONE = 0,
    HX_FAILED = 1,
    HX_USAGE = 2,
    HX_WRONG = 3,         /* a check found something wrong */
    HX_INTERRUPTED = 130, /* SIGINT or SIGTERM */
};

/* Prints "dmbench COMMAND: MESSAGE" on stderr and returns the exit status that belongs to the error's code: HX_USAGE
 * for DM_ERR_INVALID, HX_INTERRUPTED for DM_ERR_STOPPED, otherwise HX_FAILED. */
int hx_report(const char *command, const struct dm_err *err);

/* For a damaged file (DM_ERR_CORRUPT) that the user named: a usage error, as a damaged spec is. Changes the code in
 * err, which may be NULL; returns DM_ERR_INVALID. */
int hx_fail_file(struct dm_err *err);

/* For opening and reading a file that the user named: one that is damaged, absent or unreadable is a usage error,
 * another error stays what it is. */
int hx_file_error(int rc, struct dm_err *err);

/* For a process that signal `number` ended, which has said nothing. Returns DM_ERR_IO. */
int hx_fail_signal(struct dm_err *err, int number);

/* Writes "unknown WHAT 'NAME' (did you mean 'NEAREST'? available: A, B, C)" into err, which may be NULL; returns
 * DM_ERR_INVALID. */
int hx_fail_unknown(struct dm_err *err, const char *what, const char *name, const char *const *known, size_t count);

#endif
