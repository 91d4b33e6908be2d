/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes: the item goes to the memory pool, then a call to the hash table server changes the indexes (paper, 4.2).
 * After an attempt without an answer the client finds out what happened before it repeats the write, so that it is
 * executed once.
 */
#include <string.h>

#include "hstore.h"

struct attempt {
    struct hstore_client *client;
    struct hstore_write write;
    unsigned hts;
    struct hstore_view *view;
    uint64_t lost_ns; /* when the last call without an answer failed */
    struct hstore_reply reply;
};

static int item_write(struct hstore_client *client, uint64_t key, const void *value, uint64_t *item) {
    const struct hstore_geometry *geometry = &client->cn->geometry;
    bool is_reused;
    DM_TRY(hstore_supply_take(client->ctx, &client->supply, item, &is_reused));
    client->counts[HSTORE_ITEM_REUSED] += is_reused;
    struct hstore_item *head = (struct hstore_item *)(void *)client->item;
    head->client = client->id;
    head->seq = client->seq;
    hstore_item_make(client->item, geometry->key_bytes, geometry->value_bytes, *item, key, value);
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 2); /* the supply of space, and the clock for it */
    hstore_item_charge(client->ctx, 1, geometry->key_bytes, geometry->item_bytes);
    return dm_write(client->ctx, hstore_unpack(*item), client->item, geometry->item_bytes);
}

static int call(struct attempt *attempt) {
    struct hstore_client *client = attempt->client;
    char request[sizeof(struct hstore_write) + HSTORE_KEY_MAX] = {0};
    uint32_t len = sizeof(attempt->reply), key_bytes = client->cn->geometry.key_bytes;
    memcpy(request, &attempt->write, sizeof(attempt->write));
    dm_charge(client->ctx, DM_WORK_LINE_COPY, (uint32_t)sizeof(request) / DM_LINE + 1);
    dm_phase(client->ctx, DM_PHASE_CALL);
    int rc = dm_call(client->ctx, attempt->hts, HSTORE_METHOD_WRITE, request,
                     (uint32_t)sizeof(attempt->write) + key_bytes - 8, &attempt->reply, &len);
    dm_phase(client->ctx, DM_PHASE_OTHER);
    if (rc >= 0 && rc != HSTORE_NOT_READY) {
        hstore_reply_take(client, &attempt->reply);
        if (attempt->reply.gift) {
            client->counts[HSTORE_ORPHAN_RECLAIMED]++;
            DM_TRY(hstore_supply_retire(client->ctx, &client->supply, attempt->reply.gift));
        }
    }
    return rc;
}

/* Finds out what happened to an attempt when the server that may have executed it has failed, and its successor cannot
 * know. The state of the item shows whether the entry was logged, which can no longer change. 0 if the write was
 * executed, DM_NOT_FOUND if it never will be. */
static int outcome_find(struct attempt *attempt) {
    struct hstore_client *client = attempt->client;
    if (attempt->write.kind == HSTORE_REMOVE) {
        return DM_ERR_PEER;
    }
    uint64_t grace_ns = client->cn->geometry.grace_ns, since_ns = dm_now(client->ctx) - attempt->lost_ns;
    if (since_ns < grace_ns) {
        DM_TRY(dm_sleep(client->ctx,
                        grace_ns - since_ns)); /* after that, everything posted before the failure has landed */
    }
    DM_TRY(dm_read(client->ctx, hstore_unpack(attempt->write.item), client->item, DM_LINE));
    const struct hstore_item *head = (const struct hstore_item *)(const void *)client->item;
    bool is_ours = head->client == attempt->write.client && head->seq == attempt->write.seq;
    if (is_ours && head->state == HSTORE_PENDING) {
        client->counts[HSTORE_DOUBT_REDONE]++;
        return DM_NOT_FOUND;
    }
    client->counts[HSTORE_DOUBT_APPLIED]++;
    return 0;
}

/* Calls the server until there is an answer. */
static int write_call(struct attempt *attempt) {
    struct hstore_client *client = attempt->client;
    unsigned part = hstore_part_of_hash(&client->cn->geometry, hstore_hash(attempt->write.key));
    attempt->write.tag = (uint16_t)hstore_tag_of(atomic_load(&attempt->view->parts[part]));
    for (uint32_t attempts = 0;;) {
        int rc = call(attempt);
        if (rc == HSTORE_UNKNOWN) {
            rc = outcome_find(attempt);
            if (rc != DM_NOT_FOUND) {
                attempt->reply.item = 0;
                return rc;
            }
            attempt->write.again = 0;
            DM_TRY(dm_retry(client->ctx, DM_RETRY_STALE, &attempts));
            continue;
        }
        if (rc != HSTORE_NOT_READY && rc != DM_ERR_PEER) {
            return rc;
        }
        if (rc == DM_ERR_PEER) {
            attempt->write.again = 1;
            attempt->lost_ns = dm_now(client->ctx);
        }
        DM_TRY(hstore_failure_wait(client, &attempts));
    }
}

/* True if the write changed nothing, so that its item was never published. */
static bool is_item_free(int rc) {
    return rc == DM_EXISTS || rc == DM_NOT_FOUND || rc == DM_ERR_NO_MEMORY;
}

/* The outcome of a write for whose item there is no memory: out of memory only if the write would have needed the item.
 */
static int without_memory(struct hstore_client *client, enum hstore_kind kind, uint64_t key) {
    int rc = hstore_get(client, key, client->message);
    int refused = kind == HSTORE_INSERT ? 0 : DM_NOT_FOUND, outcome = kind == HSTORE_INSERT ? DM_EXISTS : DM_NOT_FOUND;
    return rc < 0 ? rc : rc == refused ? outcome : DM_ERR_NO_MEMORY;
}

static int write_do(struct hstore_client *client, enum hstore_kind kind, uint64_t key, const void *value) {
    unsigned shard = hstore_shard_of(&client->cn->geometry, hstore_hash(key));
    dm_charge(client->ctx, DM_WORK_HASH, 1);
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1); /* the view of the shard's table */
    struct attempt attempt = {.client = client,
                              .hts = hstore_hts_node(client->cn->shape->topology, shard),
                              .view = &client->cn->views[shard],
                              .write = {.key = key, .client = client->id, .seq = ++client->seq, .kind = (uint8_t)kind}};
    if (kind != HSTORE_REMOVE) {
        dm_phase(client->ctx, DM_PHASE_VALUE);
        int rc = item_write(client, key, value, &attempt.write.item);
        dm_phase(client->ctx, DM_PHASE_OTHER);
        if (rc == DM_ERR_NO_MEMORY) {
            return without_memory(client, kind, key);
        }
        DM_TRY(rc);
    }
    int rc = write_call(&attempt);
    if (is_item_free(rc) && attempt.write.item) {
        client->supply.spare = attempt.write.item;
    } else if (rc == 0 && attempt.reply.item) {
        dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1); /* the ring of replaced items, with the clock */
        DM_TRY(hstore_supply_retire(client->ctx, &client->supply, attempt.reply.item));
    }
    return rc;
}

int hstore_insert(void *client, uint64_t key, const void *value) {
    return write_do(client, HSTORE_INSERT, key, value);
}

int hstore_update(void *client, uint64_t key, const void *value) {
    return write_do(client, HSTORE_UPDATE, key, value);
}

int hstore_remove(void *client, uint64_t key) {
    return write_do(client, HSTORE_REMOVE, key, NULL);
}
