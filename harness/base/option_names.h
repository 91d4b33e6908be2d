/* SPDX-License-Identifier: Apache-2.0
 *
 * How the names of options are written: "mn_cores" in tables and JSON, "--mn-cores" on the command line.
 */
#ifndef DM_HARNESS_BASE_OPTION_NAMES_H
#define DM_HARNESS_BASE_OPTION_NAMES_H

#include "common/opt.h"

/* The JSON form of an option name: dashes become underscores, so that --mn-cores and --mn_cores are the same option.
 * Returns false if the name is empty or longer than the buffer. */
bool hx_option_name(const char *text, char *name, size_t capacity);

/* The command-line form, "--mn-cores", as errors and help texts print it. Returns text. */
const char *hx_option_typed(const char *name, char *text, size_t capacity);

/* Prints a table of parameters that are given as "--OPTION NAME=VALUE". */
void hx_parameters_help(const char *option, const struct dm_opt *table, FILE *out);

#endif
