/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings for people: the life of one key, client beside client, from a history.
 */
#ifndef DM_CHECK_TIMELINE_H
#define DM_CHECK_TIMELINE_H

#include <stdio.h>

#include "check/judge.h"
#include "check/verb_log.h"

/* Prints what happened to the verdict's key, one line an invocation or response, one column a client, the operation
 * that cannot be explained marked; between them, where `verbs` is not NULL, the verbs of these operations. Prints
 * nothing if the verdict has no key. */
void ck_timeline_print(const struct ck_history *history, const struct ck_verdict *verdict,
                       const struct ck_verb_log *verbs, FILE *out);

#endif
