/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the timeline of one key from a history, with one column for each client.
 */
#ifndef DM_CHECK_TIMELINE_H
#define DM_CHECK_TIMELINE_H

#include <stdio.h>

#include "check/judge.h"
#include "check/verb_log.h"

/* Prints the timeline of the verdict's key: one line for each invocation and response, one column for each client, and
 * a mark at the operation that cannot be explained. Unless `verbs` is NULL, the verbs of these operations are printed
 * between the lines. Prints nothing if the verdict has no key. */
void ck_timeline_print(const struct ck_history *history, const struct ck_verdict *verdict,
                       const struct ck_verb_log *verbs, FILE *out);

#endif
