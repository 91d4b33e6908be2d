/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of a run, kept for people: the timeline of a finding and trace files.
 */
#ifndef DM_CHECK_VERB_LOG_H
#define DM_CHECK_VERB_LOG_H

#include <stdatomic.h>
#include <stddef.h>

#include "transport/fabric.h"

enum { CK_NO_CLIENT = 0x7fffffff }; /* of a handler or background context */

struct ck_verb {
    struct dm_trace_event event;
    unsigned client;
};

/* Zero-initialise. */
struct ck_verb_log {
    struct ck_verb *items; /* in the order in which they ended */
    uint64_t count, room;
    size_t lost; /* for want of memory */
    atomic_flag guard;
};

/* Keeps one more; several threads may. */
void ck_verb_log_add(struct ck_verb_log *verbs, const struct dm_trace_event *event, unsigned client);
void ck_verb_log_fini(struct ck_verb_log *verbs); /* harmless on a zeroed one */

#endif
