/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies of an index server, with the events that it has counted.
 */
#include <string.h>

#include "server.h"

void hs_reply_make(struct hs_server *server, struct hs_reply *reply) {
    memset(reply, 0, sizeof(*reply));
    reply->tag = atomic_load(&server->tag);
    for (unsigned i = 0; i < HS_EVENT_COUNT; i++) {
        if (atomic_load_explicit(&server->events[i], memory_order_relaxed) > 0) {
            reply->events[i] = atomic_exchange_explicit(&server->events[i], 0, memory_order_relaxed);
        }
    }
}

void hs_events_pass(struct hs_server *server, const struct hs_reply *reply) {
    for (unsigned i = 0; i < HS_EVENT_COUNT; i++) {
        if (reply->events[i] > 0) {
            hs_event_add(server, (enum hs_event)i, reply->events[i]);
        }
    }
}
