/* SPDX-License-Identifier: Apache-2.0
 *
 * Update, insert and delete: one call each to the memory node of the key's range.
 */
#include "client.h"

static int write_call(struct cell_client *client, unsigned method, uint64_t key, const void *value,
                      struct cell_write_reply *reply) {
    struct cell_request request = {.key = key};
    uint32_t value_bytes = value ? client->cn->layout.value_bytes : 0;
    uint32_t key_bytes = cell_request_bytes(&client->cn->layout);
    uint32_t bytes = key_bytes + value_bytes, len = sizeof(*reply);
    unsigned node = cell_node_of(client, key);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, bytes / DM_LINE + 1);
    memcpy(client->request, &request, sizeof(request));
    memset(client->request + sizeof(request), 0, client->cn->layout.padding);
    if (value) {
        memcpy(client->request + key_bytes, value, value_bytes);
    }
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_CALL);
    int rc = dm_call(client->ctx, node, method, client->request, bytes, client->reply, &len);
    dm_phase(client->ctx, before);
    *reply = (struct cell_write_reply){0};
    if (rc >= 0 && len == sizeof(*reply)) {
        memcpy(reply, client->reply, sizeof(*reply));
    }
    return rc;
}

int cell_insert(void *handle, uint64_t key, const void *value) {
    struct cell_client *client = handle;
    struct cell_write_reply reply;
    int rc = write_call(client, CELL_INSERT, key, value, &reply);
    client->counts[CELL_LEAF_SPLIT_COUNT] += reply.split;
    return rc;
}

int cell_update(void *handle, uint64_t key, const void *value) {
    struct cell_write_reply reply;
    return write_call(handle, CELL_UPDATE, key, value, &reply);
}

int cell_remove(void *handle, uint64_t key) {
    struct cell_write_reply reply;
    return write_call(handle, CELL_REMOVE, key, NULL, &reply);
}
