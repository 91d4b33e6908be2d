/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a world, or a part of one, on a fabric, and judges the history.
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
    bool is_virtual;                    /* the transport has virtual time: the same world gives the same result */
    uint64_t counters[CK_COUNTERS_MAX]; /* those of the index, summed over clients */
    struct ix_rdwc_counts shared;
    struct ck_verb_log verbs;    /* if the world logs them */
    struct dm_topology topology; /* of the fabric */
};

/* Runs the part: loads the index, runs the scripts of the clients, reads every key and scans from every compute node,
 * and calls the index's verify. Then judges. If a client stopped for good inside an operation and the index does not
 * claim to survive that, other clients may give up, final reads too. The structure is judged nevertheless, as verify
 * knows what an interrupted operation may leave behind, unless the run did not end or a reader could not attach.
 * Returns 0 with the verdict in *result, or an error (DM_ERR_INVALID and others) if the world could not be run. The
 * caller calls ck_result_fini, also after a failure. */
int ck_run(const struct ck_world *world, const struct ck_part *part, struct ck_result *result, struct dm_err *err);

/* Serves the memory nodes and index servers of a world whose team has another process for its compute nodes, which
 * calls ck_run: from when that connects, for which it has `patience_ns` (0: any time), until it has left. 0 or a
 * failure. */
int ck_serve(const struct ck_world *world, uint64_t patience_ns, struct dm_err *err);

void ck_result_fini(struct ck_result *result);

#endif
