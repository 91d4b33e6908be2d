/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies of a metadata server, with the events that it has counted.
 */
#include <string.h>

#include "server.h"

void clover_reply_make(struct clover_server *server, struct clover_reply *reply) {
    memset(reply, 0, sizeof(*reply));
    for (unsigned i = 0; i < CLOVER_EVENT_COUNT; i++) {
        if (atomic_load_explicit(&server->events[i], memory_order_relaxed) > 0) {
            reply->events[i] = atomic_exchange_explicit(&server->events[i], 0, memory_order_relaxed);
        }
    }
}
