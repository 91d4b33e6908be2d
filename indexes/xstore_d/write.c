/* SPDX-License-Identifier: Apache-2.0
 *
 * Update, insert and delete: one call each to the memory node of the key's range (XStore, section 5.3). An update
 * carries the leaves that the cached models predict, so that the memory node need not search its tree (position hint).
 */
#include "locate.h"

static uint32_t request_make(struct xstore_client *client, uint64_t key, const void *value) {
    struct xstore_write_request request = {.key = key};
    memcpy(client->request, &request, sizeof(request));
    if (!value) {
        return sizeof(request);
    }
    dm_charge(client->ctx, DM_WORK_LINE_COPY,
              ((uint32_t)sizeof(request) + client->cn->layout.user_bytes) / DM_LINE + 1);
    memcpy(client->request + sizeof(request), value, client->cn->layout.user_bytes);
    return (uint32_t)sizeof(request) + client->cn->layout.user_bytes;
}

static void hints_add(struct xstore_client *client, unsigned node, uint64_t key) {
    struct xstore_write_request request = {.key = key};
    if (!client->cn->params->hint || !xstore_cache_exists(&client->cn->lines) ||
        !xstore_locate_cached(client, node, key) || client->where.count > XSTORE_HINTS) {
        return;
    }
    for (uint32_t i = 0; i < client->where.count; i++) {
        request.hints[request.hint_count++] = xstore_entry_word(client->where.entries[i]);
    }
    memcpy(client->request, &request, sizeof(request));
}

static int call(struct xstore_client *client, unsigned node, unsigned method, uint32_t request_bytes,
                struct xstore_write_reply *reply) {
    uint32_t len = DM_CALL_MAX;
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    *reply = (struct xstore_write_reply){0};
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_CALL);
    int rc = dm_call(client->ctx, node, method, client->request, request_bytes, client->reply, &len);
    dm_phase(client->ctx, before);
    if (rc >= 0 && len >= sizeof(*reply)) {
        memcpy(reply, client->reply, sizeof(*reply));
    }
    return rc;
}

int xstore_insert(void *handle, uint64_t key, const void *value) {
    struct xstore_client *client = handle;
    struct xstore_write_reply reply;
    uint32_t bytes = request_make(client, key, value);
    int rc = call(client, xstore_node_of(client, key), XSTORE_INSERT, bytes, &reply);
    client->counts[XSTORE_LEAF_SPLIT_COUNT] += reply.split;
    return rc;
}

int xstore_update(void *handle, uint64_t key, const void *value) {
    struct xstore_client *client = handle;
    struct xstore_write_reply reply;
    unsigned node = xstore_node_of(client, key);
    uint32_t bytes = request_make(client, key, value);
    hints_add(client, node, key);
    int rc = call(client, node, XSTORE_UPDATE, bytes, &reply);
    xstore_count(client, reply.hinted ? XSTORE_HINT_HIT_COUNT : XSTORE_HINT_MISS_COUNT);
    return rc;
}

int xstore_remove(void *handle, uint64_t key) {
    struct xstore_client *client = handle;
    struct xstore_write_reply reply;
    uint32_t bytes = request_make(client, key, NULL);
    return call(client, xstore_node_of(client, key), XSTORE_REMOVE, bytes, &reply);
}
