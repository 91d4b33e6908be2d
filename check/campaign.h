/* SPDX-License-Identifier: Apache-2.0
 *
 * A campaign runs many seeds of one index, several at a time if asked, adds up their counters, and stops at the first
 * seed that fails. In virtual time the jobs are processes, since a seed may have to be ended from outside. In real time
 * they are threads: each run has a limit of its own, and the result of one that fails is needed.
 */
#ifndef DM_CHECK_CAMPAIGN_H
#define DM_CHECK_CAMPAIGN_H

#include "check/run.h"

struct ck_campaign {
    struct ck_request request;
    uint64_t first_seed;
    uint64_t seeds;        /* at most; 0: until the time is over */
    uint64_t time_ns;      /* at most, in time of the host; 0: until the seeds are done */
    uint64_t seed_time_ns; /* processor time of one seed in virtual time, at most; 0: no limit */
    unsigned jobs;         /* seeds at a time; 1 without a limit of a seed's time: in this process and thread */
    struct ck_team *teams; /* one for each job, with another process that does the same; NULL: there is none */
    void (*on_seed)(void *arg, uint64_t seeds); /* called after each seed with the number of seeds done; may be NULL */
    void *arg;
};

struct ck_summary {
    uint64_t seeds;      /* seeds that were run and judged */
    uint64_t operations; /* in their histories */
    uint64_t counters[CK_COUNTERS_MAX];
    struct ix_rdwc_counts shared;
    double host_s;
    bool has_failed; /* if so, the next two describe the lowest seed that failed */
    uint64_t failed_seed;
    bool is_endless;           /* that seed exceeded its time: running it again would take as long */
    struct ck_verdict verdict; /* names no operation: run the seed again to get its history */
};

/* Runs the campaign. Returns 0 with the summary, whether a seed failed or not; or an error that names the seed if a
 * world could not be run. A seed that exceeds its time is a finding, CK_STUCK; in real time runs end after a time of
 * their own, whatever the limit. In real time, where a seed cannot be run again, the result of the failing run is moved
 * to *kept. The caller always calls ck_result_fini on *kept. With teams each job has every seed that is `jobs` behind
 * its last one, as in the other process. */
int ck_campaign_run(const struct ck_campaign *campaign, struct ck_summary *summary, struct ck_result *kept,
                    struct dm_err *err);

/* The serving side of a campaign with teams: has the memory nodes and index servers of all its worlds, see ck_serve.
 * The other process may begin a team's first world at any time, and each later one within `patience_ns`. 0 or a failure
 * that names the seed. */
int ck_campaign_serve(const struct ck_campaign *campaign, uint64_t patience_ns, struct dm_err *err);

#endif
