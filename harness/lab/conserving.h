/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the simulated network conserves work: a random mix of reads and writes of all sizes, atomics on a few words,
 * calls with work before them and handlers that use verbs themselves; and for each kind of resource the time for which
 * one was idle while a request waited for it, which has to be 0.
 */
#ifndef DM_HARNESS_LAB_CONSERVING_H
#define DM_HARNESS_LAB_CONSERVING_H

#include "transport/fabric.h"

struct hx_conserving {
    const char *profile;
    uint64_t seed;
    unsigned mns, cns, coroutines; /* 24 clients on each compute node, so many on each thread */
    const struct dm_setting *settings;
    size_t setting_count;
};

/* All resources of one name. */
struct hx_conserved {
    const char *name; /* static */
    uint64_t served, idle_waited_ns;
    double busy; /* of the busiest one, 0 to 1 */
};

enum { HX_CONSERVED_MAX = 16 };

/* Runs the mix and fills `rows`; *count: how many kinds of resource there are. 0 or a failure. */
int hx_conserving_run(const struct hx_conserving *mix, struct hx_conserved rows[HX_CONSERVED_MAX], size_t *count,
                      struct dm_err *err);

#endif
