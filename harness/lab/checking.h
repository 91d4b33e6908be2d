/* SPDX-License-Identifier: Apache-2.0
 *
 * Concurrency checks of indexes: campaigns over seeds, replays of one seed, histories from files, and their report.
 */
#ifndef DM_HARNESS_LAB_CHECKING_H
#define DM_HARNESS_LAB_CHECKING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "check/campaign.h"
#include "check/team.h"

enum { HX_PAIRS_MAX = 12, HX_PAIR_BYTES = 128 };

enum { HX_COVERAGE_AUTO, HX_COVERAGE_ON, HX_COVERAGE_OFF };

struct hx_checking_options {
    const char *index, *transport, *replay, *world, *keep, *part, *history, *out, *trace, *mn, *listen, *token_file;
    uint64_t seeds, first_seed, time_ns, seed_time_ns, jobs, shrink_runs;
    unsigned coverage, rdwc;
    bool json;
};

/* Options of the form NAME=VALUE, split. */
struct hx_pairs {
    struct dm_setting settings[HX_PAIRS_MAX];
    char text[HX_PAIRS_MAX][HX_PAIR_BYTES];
    size_t count;
};

struct hx_checking {
    struct hx_checking_options options;
    struct hx_pairs params, settings;
    struct ck_team *teams; /* one for each job; NULL: all nodes are in this process */
    json_t *findings;      /* one object an index; NULL without --json */
    bool is_wrong;
};

/* The names of enum ck_rdwc, as an option has them; NULL-terminated. */
extern const char *const hx_checking_rdwc_names[];

/* Runs what the options ask for and prints the findings, or collects them in `findings`. Sets is_wrong if an index was
 * found wrong. 0 or a failure. */
int hx_checking_run(struct hx_checking *check, struct dm_err *err);

#endif
