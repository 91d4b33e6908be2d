/* SPDX-License-Identifier: Apache-2.0
 *
 * Many seeds of one index: runs them, in several processes if asked, sums up what happened, and stops at the first seed
 * that fails.
 */
#ifndef DM_CHECK_CAMPAIGN_H
#define DM_CHECK_CAMPAIGN_H

#include "check/run.h"

struct ck_campaign {
    struct ck_request request;
    uint64_t first_seed;
    uint64_t seeds;                             /* at most; 0: until the time is up */
    uint64_t time_ns;                           /* of the host, at most; 0: until the seeds are done */
    unsigned jobs;                              /* processes; 1: this one alone */
    void (*on_seed)(void *arg, uint64_t seeds); /* after each seed, with how many are done; may be NULL */
    void *arg;
};

struct ck_summary {
    uint64_t seeds;      /* that were run and judged */
    uint64_t operations; /* in their histories */
    uint64_t counters[CK_COUNTERS_MAX];
    struct ix_rdwc_counts shared;
    double host_s;
    bool has_failed; /* then the next three are of the lowest seed that failed */
    uint64_t failed_seed;
    struct ck_verdict verdict; /* without an operation: run the seed again for the history */
};

/* Runs the campaign. 0 with the summary, whether or not a seed failed; a failure when a world could not be run at all,
 * naming its seed. In real time, where a seed cannot be run again, the failing run's result is moved to *kept (the
 * caller calls ck_result_fini on it in any case) and jobs must be 1. */
int ck_campaign_run(const struct ck_campaign *campaign, struct ck_summary *summary, struct ck_result *kept,
                    struct dm_err *err);

#endif
