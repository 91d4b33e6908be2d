/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of a device to itself, on memory of this process: what a device does is tried there before a run.
 */
#ifndef DM_TRANSPORT_VERBS_LOOPED_H
#define DM_TRANSPORT_VERBS_LOOPED_H

#include "transport/verbs/verbs.h"

enum { VERBS_LOOPED_ENDS = 4 };

struct verbs_looped {
    struct verbs *verbs;
    struct verbs_port *port;
    struct verbs_thread thread;                /* holds the completion queue */
    struct verbs_conn ends[VERBS_LOOPED_ENDS]; /* of each connection the one that sends, and its other end */
    unsigned char *memory;                     /* `bytes` of them, zeroed; every verb may be executed on it */
    size_t bytes;
    struct ibv_mr *mr;
};

/* Opens `connections` (1 or 2) with so many work requests each, and the memory; `posts_masked`: the first one takes
 * masked atomics. Needs verbs and port; all else is zero. False: the device refuses something. Either way
 * verbs_looped_close follows. */
bool verbs_looped_open(struct verbs_looped *looped, unsigned connections, uint32_t depth, size_t bytes,
                       bool posts_masked);
void verbs_looped_close(struct verbs_looped *looped);

#endif
