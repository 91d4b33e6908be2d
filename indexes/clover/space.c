/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's supply of space for versions, which metadata servers grant in batches.
 */
#include "clover.h"

static int grant_ask(struct clover_client *client, unsigned server) {
    struct clover_grant request = {.count = client->cn->params->batch};
    struct clover_reply reply;
    client->counts[CLOVER_GRANT]++;
    DM_TRY(clover_call(client->cn, client->ctx, server, CLOVER_METHOD_GRANT, &request, sizeof(request), &reply,
                       client->supply, sizeof(client->supply)));
    client->supply_first = 0;
    client->supply_count = (uint32_t)(reply.count < request.count ? reply.count : request.count);
    return 0;
}

/* Asks the servers in turn until one has space. */
static int supply_fill(struct clover_client *client) {
    unsigned servers = client->cn->geometry.servers;
    for (unsigned i = 0; i < servers && client->supply_count == 0; i++) {
        DM_TRY(grant_ask(client, client->next_server));
        client->next_server = (client->next_server + 1) % servers;
    }
    return 0;
}

int clover_space_take(struct clover_client *client, uint64_t *pointer) {
    if (client->spare) {
        *pointer = client->spare;
        client->spare = 0;
        return 0;
    }
    if (client->supply_count == 0) {
        DM_TRY(supply_fill(client));
    }
    if (client->supply_count == 0) {
        /* What this compute node has not reported yet may be all that is left. */
        DM_TRY(clover_garbage_flush(client));
        DM_TRY(supply_fill(client));
    }
    if (client->supply_count == 0) {
        return DM_ERR_NO_MEMORY;
    }
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    *pointer = client->supply[client->supply_first++];
    client->supply_count--;
    return 0;
}
