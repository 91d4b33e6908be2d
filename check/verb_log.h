/* SPDX-License-Identifier: Apache-2.0
 *
 * A log of the verbs of a run, for the timeline of a finding and for trace files.
 */
#ifndef DM_CHECK_VERB_LOG_H
#define DM_CHECK_VERB_LOG_H

#include <stdatomic.h>
#include <stddef.h>

#include "transport/fabric.h"

enum { CK_NO_CLIENT = 0x7fffffff }; /* the verb belongs to a handler or a background context */

struct ck_verb {
    struct dm_trace_event event;
    unsigned client;
};

/* Zero-initialise. */
struct ck_verb_log {
    struct ck_verb *items; /* in the order in which they ended */
    uint64_t count, capacity;
    size_t lost; /* verbs not logged because memory ran out */
    atomic_flag lock;
};

/* Appends a verb. Several threads may call it at once. */
void ck_verb_log_add(struct ck_verb_log *verbs, const struct dm_trace_event *event, unsigned client);
void ck_verb_log_fini(struct ck_verb_log *verbs); /* accepts a zeroed log */

#endif
