/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies of an index server, with the events that it has counted.
 */
#include <string.h>

#include "server.h"

void hstore_reply_make(struct hstore_server *server, struct hstore_reply *reply) {
    memset(reply, 0, sizeof(*reply));
    reply->tag = atomic_load(&server->tag);
    for (unsigned i = 0; i < HSTORE_EVENT_COUNT; i++) {
        if (atomic_load_explicit(&server->events[i], memory_order_relaxed) > 0) {
            reply->events[i] = atomic_exchange_explicit(&server->events[i], 0, memory_order_relaxed);
        }
    }
}

void hstore_events_pass(struct hstore_server *server, const struct hstore_reply *reply) {
    for (unsigned i = 0; i < HSTORE_EVENT_COUNT; i++) {
        if (reply->events[i] > 0) {
            hstore_event_add(server, (enum hstore_event)i, reply->events[i]);
        }
    }
}
