/* SPDX-License-Identifier: Apache-2.0
 *
 * What the faults of a run explain: failures of operations, waiting without end, and work that is left half done.
 */
#ifndef DM_CHECK_EXPLAIN_H
#define DM_CHECK_EXPLAIN_H

#include "check/history.h"
#include "check/world.h"

/* Adds what a fault of this kind explains to the history's may_fail and may_starve, and sets *interrupted if an
 * operation may leave its work half done. */
void ck_fault_explain(const struct ck_world *world, enum ck_fault_kind kind, struct ck_history *history,
                      bool *interrupted);

/* The fabric's fault rules that the user gave with a world, which replace those of its faults; NULL: there are none. */
const char *ck_rules_given(const struct ck_world *world);

/* As ck_fault_explain, for the kinds of faults that have such rules. */
void ck_rules_explain(const struct ck_world *world, const char *rules, struct ck_history *history, bool *interrupted);

#endif
