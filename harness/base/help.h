/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command says of itself, as data: --help, the manual page and the completion of shells are made of it.
 */
#ifndef DM_HARNESS_BASE_HELP_H
#define DM_HARNESS_BASE_HELP_H

#include <stdio.h>

#include "common/opt.h"

enum { HX_HELP_SECTIONS_MAX = 16, HX_HELP_COLUMNS = 100 };

/* An option that is no row of a table: "--grid NAME=V,V,..." and what it means; `values` is as of struct dm_opt. A list
 * ends with a NULL. */
struct hx_help_option {
    const char *typed, *help, *values;
};

struct hx_help_section {
    const char *title;                    /* "Options" */
    const struct hx_help_option *options; /* before the table's; or NULL */
    const struct dm_opt *table;           /* or NULL */
    const char *as;                       /* "set": the rows are given as "--set NAME=VALUE"; NULL: they are options */
};

struct hx_help {
    const char *usage;    /* the words after "dmbench", one form a line */
    const char *about;    /* paragraphs, one a line */
    const char *examples; /* one a line, "dmbench ..." */
    const char *status;   /* "0 done, 2 usage." */
    const char *words;    /* what plain words name, as `values` of struct dm_opt, or choices: "=bash zsh"; NULL: none */
    struct hx_help_section sections[HX_HELP_SECTIONS_MAX];
    size_t section_count;
};

/* Appends a section, as far as there is space. */
void hx_help_add(struct hx_help *help, struct hx_help_section section);

/* As text of at most HX_HELP_COLUMNS columns. */
void hx_help_print(const struct hx_help *help, FILE *out);

/* Fills a description with `describe` and prints it to standard output. */
void hx_help_show(void (*describe)(struct hx_help *help));

#endif
