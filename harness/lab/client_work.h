/* SPDX-License-Identifier: Apache-2.0
 *
 * What the code of indexes takes on this host, beside what it charges by a profile: for each kind of operation of an
 * index, over shared memory and on the simulated network, whichever takes less, by one client whose nodes are all
 * cached.
 */
#ifndef DM_HARNESS_LAB_CLIENT_WORK_H
#define DM_HARNESS_LAB_CLIENT_WORK_H

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"

struct hx_client_work {
    const char *index; /* a name, or "" for every index that keeps data */
    const char *base;  /* the profile of what `costs` does not have */
    json_t *costs;     /* of the work units, as hx_cpu_costs measures them; for the first round */
    uint64_t keys, ops;
    unsigned rounds; /* the whole is repeated, also the costs; of each operation the median ratio counts */
};

/* What an index charges for an operation over what its code takes is to be between these. */
#define HX_CLIENT_WORK_LOW  0.7
#define HX_CLIENT_WORK_HIGH 1.4

/* Measures: a new array of objects with index, op, charged_ns, real_ns and ratio, of the round with the median ratio;
 * ratio_least and ratio_most of all rounds; and within, whether the ratio is. */
int hx_client_work_measure(const struct hx_client_work *wanted, json_t **rows, struct dm_err *err);

#endif
