/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables. A parameter is declared once, as a row here; the command line, JSON spec files, --help, `dmbench
 * list`, validation, sweeps and the echoed configuration all follow from the row.
 */
#ifndef DM_COMMON_OPT_H
#define DM_COMMON_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"

/* Behind each type: the C type of the member at `offset`, and examples. */
enum dm_opt_type {
    DM_OPT_BOOL,     /* bool: 0/1, true/false, on/off, yes/no */
    DM_OPT_COUNT,    /* uint64_t: 10, 1K = 1000, 10M, 2G */
    DM_OPT_BYTES,    /* uint64_t: 64, 100MB = 10^8, 64KiB = 65536 */
    DM_OPT_DURATION, /* uint64_t in ns: 5s, 10ms, 20us, 300ns */
    DM_OPT_REAL,     /* double */
    DM_OPT_ENUM,     /* unsigned: index into `choices` */
    DM_OPT_STRING,   /* const char *: owned by the option set, see dm_opt_free */
};

struct dm_opt {
    const char *name;
    enum dm_opt_type type;
    size_t offset;
    const char *initial;        /* the default, as a user would type it */
    double min, max;            /* both inclusive; both 0: no bounds beyond the type's */
    const char *const *choices; /* DM_OPT_ENUM: NULL-terminated */
    const char *unit;           /* for people: "bytes", "entries"; NULL where the type implies it */
    const char *symbol;         /* the paper's symbol, or NULL */
    const char *help;           /* one sentence */
    const char *derived;        /* how the value follows from other options unless it is given; NULL: it does not */
    const char *values;         /* what the text names: "file", "folder", or a kind of `dmbench list`; NULL: free */
    bool added;                 /* results were made before it existed: at its default it is not part of their names */
};

/* The row of a member of `struct values`, under its own name or another; then further members of the row. */
#define DM_OPT_ROW(values, member, opt_type, ...) DM_OPT_ROW_AS(#member, values, member, opt_type, __VA_ARGS__)
#define DM_OPT_ROW_AS(opt_name, values, member, opt_type, ...)                                                         \
    { .name = opt_name, .type = opt_type, .offset = offsetof(values, member), __VA_ARGS__ }

/* A table ends with a row whose name is NULL. */
#define DM_OPT_END                                                                                                     \
    { .name = NULL }

/* Sets every member of `values` to its default. The defaults of a table are valid or the program is wrong (asserted).
 */
void dm_opt_defaults(const struct dm_opt *table, void *values);

/* Parses text into the member of the option called name. Unknown name: DM_ERR_INVALID, with the nearest name suggested;
 * a bad value: DM_ERR_INVALID with the option, the value and the accepted range, choices or units. `values` is
 * unchanged on failure. */
int dm_opt_set(const struct dm_opt *table, void *values, const char *name, const char *text, struct dm_err *err);

/* The row, or NULL. */
const struct dm_opt *dm_opt_find(const struct dm_opt *table, const char *name);

/* Writes a value as text that dm_opt_set reads back to the same value (plain numbers, no rounding). Returns as
 * snprintf. */
int dm_opt_format(const struct dm_opt *row, const void *values, char *text, size_t capacity);

/* Copies all members that the table describes; strings are duplicated, those in `into` are not released. */
void dm_opt_copy(const struct dm_opt *table, void *into, const void *from);

/* Releases the strings of a value set. */
void dm_opt_free(const struct dm_opt *table, void *values);

/* Prints one aligned entry a row (option, help, default, range), each line behind `indent` and of at most 100 columns.
 */
void dm_opt_help(const struct dm_opt *table, const char *indent, FILE *out);

/* What is known of a row beside its help, "default 8; 1 to 64 entries; paper: S", or nothing. */
void dm_opt_notes(const struct dm_opt *row, char *notes, size_t capacity);

/* What stands for a value of the row in a help text: "COUNT". */
const char *dm_opt_type_word(const struct dm_opt *row);

/* The name among count candidates nearest to `name` by edit distance, or NULL if none is near. */
const char *dm_suggest(const char *name, const char *const *candidates, size_t count);

/* Numbers with units, as above: 0 or DM_ERR_INVALID (with a message that lists the units). */
int dm_parse_count(const char *text, uint64_t *value, struct dm_err *err);
int dm_parse_bytes(const char *text, uint64_t *value, struct dm_err *err);
int dm_parse_duration(const char *text, uint64_t *ns, struct dm_err *err);
int dm_parse_real(const char *text, double *value, struct dm_err *err);

#endif
