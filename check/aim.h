/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults that are aimed at one operation. Rules of the fabric count the verbs of a client from the start of the run, so
 * the world is first run without its aimed faults, and the verbs of the operation are looked up in what that run
 * logged. Up to the fault both runs are the same.
 */
#ifndef DM_CHECK_AIM_H
#define DM_CHECK_AIM_H

#include "check/history.h"
#include "check/verb_log.h"
#include "check/world.h"

/* True if a fault of the part is aimed. */
bool ck_part_is_aimed(const struct ck_world *world, const struct ck_part *part);

/* The fault as the fabric takes it: by the verb of its client or the time of the run. `op` is the operation that the
 * step became, as the log's run had it. `op` NULL, or an operation without a verb that can fail: the fault never
 * happens, but the fabric has a rule all the same. */
struct ck_world_fault ck_aim(const struct ck_world_fault *fault, const struct ck_op *op,
                             const struct ck_verb_log *verbs);

#endif
