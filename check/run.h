/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a world, or a part of one, on a fabric, and judging what happened.
 */
#ifndef DM_CHECK_RUN_H
#define DM_CHECK_RUN_H

#include "check/judge.h"
#include "check/verb_log.h"
#include "check/world.h"

enum { CK_COUNTERS_MAX = 64 };

struct ck_result {
    struct ck_history history;
    struct ck_verdict verdict;
    bool is_virtual;                    /* the transport's time: the same world gives the same result */
    uint64_t counters[CK_COUNTERS_MAX]; /* the index's own, summed over clients */
    struct ix_rdwc_counts shared;
    struct ck_verb_log verbs;    /* if the world keeps them */
    struct dm_topology topology; /* of the fabric */
};

/* Runs the part: load, clients with their scripts, a final read of every key and a scan from every compute node, the
 * index's own verify; and judges. Behind a client that has stopped for good inside an operation, an index that does not
 * claim to survive that is judged by its history alone. 0 with the verdict in *result; DM_ERR_INVALID and others when
 * the world could not be run at all. The caller calls ck_result_fini, also after a failure. */
int ck_run(const struct ck_world *world, const struct ck_part *part, struct ck_result *result, struct dm_err *err);
void ck_result_fini(struct ck_result *result);

#endif
