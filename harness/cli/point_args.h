/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of the commands that take part in one point: `dmbench run` and `dmbench serve`.
 */
#ifndef DM_HARNESS_CLI_POINT_ARGS_H
#define DM_HARNESS_CLI_POINT_ARGS_H

#include "harness/run/config.h"
#include "harness/run/options.h"
#include "harness/run/team.h"

enum hx_format { HX_FORMAT_TEXT, HX_FORMAT_JSON, HX_FORMAT_CSV };

/* Options of the command itself; they are no part of the point. */
struct hx_point_options {
    const char *out, *verb_trace, *percentiles;
    uint64_t trace_ops, repeat;
    unsigned format; /* enum hx_format */
    bool json, csv, partial, quiet;
    struct hx_team_options team;
};

/* Names of options beyond the table of the command, and those of them that are switches. */
struct hx_point_names {
    const char *all[HX_OPTIONS_MAX + 6];
    const char *flags[HX_OPTIONS_MAX];
};

/* Sets them to the options of a run and of its workload, --set and --transport-set. Returns how many there are: a
 * command may add up to three. */
size_t hx_point_names_collect(struct hx_point_names *names);

enum { HX_WORDS_MAX = 256 };

/* What the command line asks for. Options of the configuration are kept until all of it is read, because files come
 * before options. */
struct hx_point_request {
    struct hx_point_options options;
    struct hx_point_names names;
    struct {
        const char *name, *value;
    } words[HX_WORDS_MAX];
    size_t count;
};

/* Reads argv and applies it to a new configuration. 0; 1 after --help, which is printed; or a failure. The caller frees
 * the request in any case. */
int hx_point_args_read(struct hx_point_request *request, int argc, char **argv, struct hx_config *config,
                       struct dm_err *err);

/* Applies what was read to another new configuration. */
int hx_point_request_apply(const struct hx_point_request *request, struct hx_config *config, struct dm_err *err);

void hx_point_args_free(struct hx_point_request *request);

#endif
