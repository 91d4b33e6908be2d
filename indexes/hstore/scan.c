/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans: the skip list server of each shard answers with addresses, the runs are merged, and the items are read one by
 * one as in the paper (4.2, 5.3), or as many as a doorbell takes.
 */
#include <string.h>

#include "hstore.h"

struct scan {
    struct hstore_client *client;
    uint64_t next_key; /* the first key that has not been read */
    uint32_t count, *found;
    uint64_t *keys;
    char *values;
    uint32_t pair_count;
    bool is_end; /* no pairs follow the current ones */
};

/* Calls a shard's server for a run of pairs. */
static int run_call(struct scan *scan, unsigned shard, uint32_t wanted, struct hstore_pair *run, uint32_t *count,
                    uint32_t *attempts) {
    struct hstore_client *client = scan->client;
    struct hstore_find find = {.key = scan->next_key, .count = wanted};
    unsigned node = hstore_sls_node(client->cn->shape->topology, shard);
    for (;;) {
        uint32_t len = DM_CALL_MAX;
        enum dm_phase before = dm_phase(client->ctx, DM_PHASE_CALL);
        int rc = dm_call(client->ctx, node, HSTORE_METHOD_SCAN, &find, sizeof(find), client->message, &len);
        dm_phase(client->ctx, before);
        if (rc == 0) {
            struct hstore_reply reply;
            memcpy(&reply, client->message, sizeof(reply));
            hstore_reply_take(client, &reply);
            *count = reply.count < wanted ? reply.count : wanted;
            memcpy(run, client->message + sizeof(reply), *count * sizeof(*run));
            dm_charge(client->ctx, DM_WORK_LINE_COPY, *count * (uint32_t)sizeof(*run) / DM_LINE + 1);
            return 0;
        }
        if (rc != HSTORE_NOT_READY && rc != DM_ERR_PEER) {
            return rc < 0 ? rc : DM_ERR_CORRUPT;
        }
        DM_TRY(hstore_failure_wait(client, attempts));
    }
}

/* Gets the addresses of the next pairs of all shards, and merges them. */
static int pairs_get(struct scan *scan, uint32_t *attempts) {
    struct hstore_client *client = scan->client;
    uint32_t counts[HSTORE_SHARDS_MAX], at[HSTORE_SHARDS_MAX] = {0};
    unsigned shards = client->cn->geometry.shards;
    uint32_t left = scan->count - *scan->found, wanted = left < HSTORE_PAIRS_MAX ? left : HSTORE_PAIRS_MAX;
    for (unsigned shard = 0; shard < shards; shard++) {
        DM_TRY(
            run_call(scan, shard, wanted, client->runs + (size_t)shard * HSTORE_PAIRS_MAX, &counts[shard], attempts));
    }
    scan->pair_count = 0;
    scan->is_end = true;
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, wanted * (shards + 1));
    while (scan->pair_count < wanted) {
        const struct hstore_pair *best = NULL;
        unsigned from = 0;
        for (unsigned shard = 0; shard < shards; shard++) {
            const struct hstore_pair *run = client->runs + (size_t)shard * HSTORE_PAIRS_MAX + at[shard];
            if (at[shard] < counts[shard] && (!best || run->key < best->key)) {
                best = run;
                from = shard;
            }
        }
        if (!best) {
            return 0; /* every run was shorter than requested */
        }
        client->pairs[scan->pair_count++] = *best;
        at[from]++;
    }
    scan->is_end = false;
    return 0;
}

/* Reads the items of pairs [first, first + n) in one round trip. Their addresses have been checked. */
static int items_read(const struct scan *scan, uint32_t first, uint32_t n) {
    struct hstore_client *client = scan->client;
    uint32_t item_bytes = client->cn->geometry.item_bytes;
    for (uint32_t i = 0; i < n; i++) {
        dm_addr addr = hstore_unpack(client->pairs[first + i].item);
        if (dm_addr_node(addr) >= dm_first_server(client->cn->shape->topology)) {
            return DM_ERR_CORRUPT;
        }
        dm_post_read(client->ctx, addr, client->items + (size_t)i * item_bytes, item_bytes);
    }
    int rc = dm_commit(client->ctx);
    hstore_item_charge(client->ctx, n, client->cn->geometry.key_bytes, item_bytes);
    return rc;
}

/* An item is not the one that the skip list had: requests the rest again. */
static int rest_again(struct scan *scan, enum dm_retry cause, uint32_t *attempts) {
    scan->client->counts[HSTORE_ITEM_REPLACED] += cause == DM_RETRY_STALE;
    scan->is_end = false;
    return dm_retry(scan->client->ctx, cause, attempts);
}

/* Reads the items of the current addresses. This may take any time: an item that is still of the write that the skip
 * list had was in force when the list was read. */
static int items_fetch(struct scan *scan, uint32_t *attempts) {
    struct hstore_client *client = scan->client;
    const struct hstore_geometry *geometry = &client->cn->geometry;
    uint32_t step = client->cn->params->fetch == HSTORE_FETCH_BATCH ? client->fetch_max : 1;
    for (uint32_t at = 0, n = 0; at < scan->pair_count; at += n) {
        n = scan->pair_count - at < step ? scan->pair_count - at : step;
        DM_TRY(items_read(scan, at, n));
        for (uint32_t i = 0; i < n; i++) {
            const struct hstore_pair *pair = &client->pairs[at + i];
            const char *item = client->items + (size_t)i * geometry->item_bytes;
            if (!hstore_item_intact(item, geometry->key_bytes, geometry->value_bytes, pair->item)) {
                return rest_again(scan, DM_RETRY_TORN, attempts);
            }
            if (hstore_item_writer(item) != pair->writer || !hstore_item_has(item, geometry->key_bytes, pair->key)) {
                return rest_again(scan, DM_RETRY_STALE, attempts);
            }
            scan->keys[*scan->found] = pair->key;
            memcpy(scan->values + (size_t)*scan->found * geometry->value_bytes,
                   item + hstore_item_value_at(geometry->key_bytes), geometry->value_bytes);
            ++*scan->found;
            scan->is_end = scan->is_end || pair->key == IX_KEY_MAX;
            scan->next_key = pair->key + 1;
        }
    }
    return 0;
}

int hstore_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct hstore_client *client = handle;
    struct scan scan = {
        .client = client, .next_key = first, .count = count, .found = found, .keys = keys, .values = values};
    *found = 0;
    for (uint32_t attempts = 0; *found < count && !scan.is_end;) {
        dm_phase(client->ctx, DM_PHASE_INDEX);
        DM_TRY(pairs_get(&scan, &attempts));
        dm_phase(client->ctx, DM_PHASE_VALUE);
        DM_TRY(items_fetch(&scan, &attempts));
    }
    dm_phase(client->ctx, DM_PHASE_OTHER);
    return 0;
}
