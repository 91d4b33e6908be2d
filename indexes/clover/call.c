/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls to metadata servers, and the events in their replies.
 */
#include <string.h>

#include "clover.h"

int clover_call(struct clover_cn *cn, struct dm_ctx *ctx, unsigned server, unsigned method, const void *req,
                uint32_t req_len, struct clover_reply *reply, void *more, uint32_t more_bytes) {
    char response[sizeof(*reply) + CLOVER_GRANT_MAX * sizeof(uint64_t)];
    uint32_t len = sizeof(response);
    enum dm_phase before = dm_phase(ctx, DM_PHASE_CALL);
    int rc = dm_call(ctx, dm_first_server(cn->shape->topology) + server, method, req, req_len, response, &len);
    dm_phase(ctx, before);
    DM_TRY(rc);
    if (len < sizeof(*reply)) {
        return DM_ERR_CORRUPT;
    }
    memcpy(reply, response, sizeof(*reply));
    len -= (uint32_t)sizeof(*reply);
    if (more) {
        memcpy(more, response + sizeof(*reply), len < more_bytes ? len : more_bytes);
    }
    dm_charge(ctx, DM_WORK_LINE_COPY, len / DM_LINE + 1);
    for (unsigned i = 0; i < CLOVER_EVENT_COUNT; i++) {
        if (reply->events[i] > 0) {
            atomic_fetch_add(&cn->events[i], reply->events[i]);
            atomic_store(&cn->has_events, true);
        }
    }
    return rc;
}

void clover_events_take(struct clover_client *client) {
    struct clover_cn *cn = client->cn;
    if (!atomic_load_explicit(&cn->has_events, memory_order_relaxed)) {
        return;
    }
    atomic_store(&cn->has_events, false);
    for (unsigned i = 0; i < CLOVER_EVENT_COUNT; i++) {
        client->counts[i] += atomic_exchange(&cn->events[i], 0);
    }
}
