/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of one run. Memory nodes and index servers have a process each (`dmbench serve`, or ranks of MPI); the
 * compute nodes are spread over the others. All are started with the same options. MPI, or the command line, defines
 * which process has which node and its address; no measured verb uses them.
 */
#ifndef DM_HARNESS_RUN_TEAM_H
#define DM_HARNESS_RUN_TEAM_H

#include "harness/run/config.h"
#include "harness/run/measured.h"

struct hx_team;

/* The options of the command line about processes. */
struct hx_team_options {
    const char *mn;         /* addresses of the memory nodes' processes, with commas; "": none */
    const char *listen;     /* address of the control port of this process */
    const char *token_file; /* holds the token */
    uint64_t node;          /* of `serve`: which node this process is */
};

/* Reads the token that the processes of a run share: a line of the file, up to 32 bytes. 0, or DM_ERR_INVALID with the
 * option named. */
enum { HX_TOKEN_BYTES = 32 };
int hx_token_read(const char *path, char token[HX_TOKEN_BYTES + 1], struct dm_err *err);

/* Joins the ranks of MPI. Called before the configuration is resolved, because the number of compute nodes depends on
 * the number of ranks. *team is NULL if there is only one process. */
int hx_team_join(struct hx_config *config, bool is_server, const struct hx_team_options *options, struct hx_team **team,
                 struct dm_err *err);

/* With the configuration resolved, assigns nodes and addresses to processes. */
int hx_team_assign(struct hx_team *team, const struct hx_config *config, const struct hx_team_options *options,
                   struct dm_err *err);

/* After a failure the other processes of MPI are ended too. Accepts NULL. */
void hx_team_leave(struct hx_team *team, bool has_failed);

/* With NULL they return the values of a single process. */
const struct dm_processes *hx_team_processes(const struct hx_team *team);
bool hx_team_has(const struct hx_team *team, unsigned node); /* the node is this process's */
bool hx_team_is_first(const struct hx_team *team);           /* this process loads, verifies and reports the result */
bool hx_team_is_compute(const struct hx_team *team);
unsigned hx_team_part(const struct hx_team *team); /* which of the compute processes this is */
unsigned hx_team_parts(const struct hx_team *team);

/* Returns once all compute processes have called it. */
void hx_team_barrier(const struct hx_team *team);

/* Adds what the other compute processes measured to the first one's. */
int hx_team_gather(const struct hx_team *team, struct hx_measured *measured, size_t counter_count, struct dm_err *err);

#endif
