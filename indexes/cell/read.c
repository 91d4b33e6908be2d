/* SPDX-License-Identifier: Apache-2.0
 *
 * Get: a walk to the leaf, and a READ of the block of a long value; or one call.
 */
#include "client.h"
#include "indexes/shared/retry.h"

static int get_call(struct cell_client *client, unsigned node, uint64_t key, void *value) {
    struct cell_request request = {.key = key};
    uint32_t len = client->cn->layout.value_bytes;
    uint32_t bytes = cell_request_bytes(&client->cn->layout);
    memcpy(client->request, &request, sizeof(request));
    memset(client->request + sizeof(request), 0, client->cn->layout.padding);
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_CALL);
    int rc = dm_call(client->ctx, node, CELL_GET, client->request, bytes, client->reply, &len);
    dm_phase(client->ctx, before);
    if (rc == 0) {
        memcpy(value, client->reply, client->cn->layout.value_bytes);
    }
    return rc;
}

bool cell_block_is_value(struct cell_client *client, uint64_t key, const uint64_t *block) {
    uint32_t words = client->cn->layout.stored_words;
    dm_charge(client->ctx, DM_WORK_LINE_COPY, words * 8 / DM_LINE + 1);
    if (!client->cn->params->block_check) {
        return true;
    }
    dm_charge(client->ctx, DM_WORK_HASH, ix_check_hashes(words));
    return block[0] == cell_block_check(key, block + 1, words);
}

enum { GET_AGAIN = 1100 };

static int block_get(struct cell_client *client, unsigned node, uint64_t key, uint64_t ref, void *value,
                     uint32_t *attempts) {
    const struct cell_layout *layout = &client->cn->layout;
    dm_addr addr = cell_addr(node, (uint32_t)ref);
    if (ref != 0 && dm_addr_valid(client->ctx, addr, layout->block_bytes)) {
        enum dm_phase before = dm_phase(client->ctx, DM_PHASE_VALUE);
        int rc = dm_read(client->ctx, addr, client->blocks, layout->block_bytes);
        dm_phase(client->ctx, before);
        DM_TRY(rc);
        if (cell_block_is_value(client, key, client->blocks)) {
            memcpy(value, client->blocks + 1, layout->value_bytes);
            return 0;
        }
        cell_count_event(client, CELL_TORN_BLOCK_COUNT);
    }
    DM_TRY(ix_retry(client->ctx, DM_RETRY_TORN, attempts, 0));
    return GET_AGAIN;
}

static int get_once(struct cell_client *client, unsigned node, uint64_t key, void *value, uint32_t *attempts) {
    const struct cell_layout *layout = &client->cn->layout;
    struct cell_walked walked;
    int rc = cell_walk(client, node, key, 0, client->cn->params->stale == CELL_STALE_CALL, &walked, attempts);
    if (rc == CELL_BY_CALL) {
        cell_count_event(client, CELL_FALLBACK_COUNT);
        return get_call(client, node, key, value);
    }
    DM_TRY(rc);
    int position = cell_find(client->node, key);
    if (position < 0) {
        return DM_NOT_FOUND;
    }
    const uint64_t *entry = cell_entry(&layout->leaf, client->node, (unsigned)position);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, cell_padding_compares(layout));
    if (layout->block_bytes > 0) {
        return block_get(client, node, key, *entry, value, attempts);
    }
    memcpy(value, entry, layout->value_bytes);
    return 0;
}

int cell_get(void *handle, uint64_t key, void *value) {
    struct cell_client *client = handle;
    unsigned node = cell_node_of(client, key);
    uint32_t attempts = 0;
    int rc = GET_AGAIN;
    if (client->cn->params->reads == CELL_READS_SERVER) {
        return get_call(client, node, key, value);
    }
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_INDEX);
    while (rc == GET_AGAIN) {
        rc = get_once(client, node, key, value, &attempts);
    }
    dm_phase(client->ctx, before);
    return rc;
}
