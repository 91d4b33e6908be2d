/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of a command: an option table, a few options that may be repeated, and plain words.
 */
#ifndef DM_HARNESS_BASE_ARGS_H
#define DM_HARNESS_BASE_ARGS_H

#include "common/opt.h"

struct hx_args {
    const struct dm_opt *table;
    void *values;
    const char *const
        *repeated;            /* options outside the table that take a value each time; NULL-terminated; NULL: none */
    const char *const *flags; /* those of them that need no value and then mean "1"; NULL: none */
    /* Receives a repeated option, or with name NULL a plain word. 0 or a failure. NULL: any word is one too many. */
    int (*take)(void *arg, const char *name, const char *value, struct dm_err *err);
    void *arg;
};

/* Reads argv[1] and on: "--name value", "--name=value", "--name" alone for a bool; dashes in names are underscores of
 * the table; a repeated option of one letter is "-n value"; "--" ends the options. Returns 0, 1 when --help was asked
 * for, or a failure that names the option. */
int hx_args_parse(const struct hx_args *args, int argc, char **argv, struct dm_err *err);

/* For a `take` that has all the words it takes: refuses this one. DM_ERR_INVALID. */
int hx_args_excess(const char *word, struct dm_err *err);

/* The table as help text, names as they are typed. */
void hx_args_help(const struct dm_opt *table, FILE *out);

#endif
