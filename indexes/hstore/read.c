/* SPDX-License-Identifier: Apache-2.0
 *
 * Gets: a bucket, then the item, both by one-sided reads (paper, 4.2). While there is no hash table they call the skip
 * list server for the item's address instead.
 */
#include <string.h>

#include "hstore.h"

/* ---- one key ----------------------------------------------------------------------------------------------------- */

struct lookup {
    struct hstore_client *client;
    uint64_t key, hash;
    void *value;
    unsigned shard, hts, sls;
    struct hstore_view *view;
    _Atomic uint64_t *part; /* of the view: where the key's bucket is */
    uint64_t since_ns;      /* if the address came from the table: when it was requested */
    bool has_writer;        /* the address came from the skip list, with the write that made the item */
    uint64_t writer;
};

/* The result of reading an item. */
enum seen { SEEN_ITEM, SEEN_OTHER_KEY, SEEN_TOO_LATE, SEEN_REPLACED, SEEN_TORN };

/* Judges an item that has been read. A slot of the table does not identify the write that made the item, so its address
 * may only be followed for the time of a lease. */
static enum seen item_judge(const struct lookup *lookup, uint64_t packed) {
    const struct hstore_client *client = lookup->client;
    const struct hstore_geometry *geometry = &client->cn->geometry;
    if (!lookup->has_writer && dm_now(client->ctx) - lookup->since_ns > geometry->lease_ns) {
        return SEEN_TOO_LATE;
    }
    if (!hstore_item_intact(client->item, geometry->key_bytes, geometry->value_bytes, packed)) {
        return SEEN_TORN;
    }
    if (lookup->has_writer && hstore_item_writer(client->item) != lookup->writer) {
        return SEEN_REPLACED;
    }
    return hstore_item_has(client->item, geometry->key_bytes, lookup->key) ? SEEN_ITEM : SEEN_OTHER_KEY;
}

/* Reads an item, and copies the value if *seen is SEEN_ITEM. */
static int item_see(const struct lookup *lookup, uint64_t packed, enum seen *seen) {
    struct hstore_client *client = lookup->client;
    const struct hstore_geometry *geometry = &client->cn->geometry;
    dm_addr addr = hstore_unpack(packed);
    *seen = SEEN_TORN;
    if (dm_addr_node(addr) >= dm_first_server(client->cn->shape->topology) ||
        !dm_addr_valid(client->ctx, addr, geometry->item_bytes)) {
        return 0;
    }
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_VALUE);
    int rc = dm_read(client->ctx, addr, client->item, geometry->item_bytes);
    dm_phase(client->ctx, before);
    DM_TRY(rc);
    hstore_item_charge(client->ctx, 1, geometry->key_bytes, geometry->item_bytes);
    *seen = item_judge(lookup, packed);
    if (*seen == SEEN_ITEM) {
        memcpy(lookup->value, client->item + hstore_item_value_at(geometry->key_bytes), geometry->value_bytes);
    }
    return 0;
}

/* Outcomes of an attempt beside 0 and DM_NOT_FOUND: retry, because something was stale or torn. */
enum { AGAIN = 200, AGAIN_TORN };

static int seen_again(struct hstore_client *client, enum seen seen) {
    client->counts[HSTORE_LEASE_EXPIRED] += seen == SEEN_TOO_LATE;
    client->counts[HSTORE_ITEM_REPLACED] += seen == SEEN_REPLACED;
    return seen == SEEN_TORN ? AGAIN_TORN : AGAIN;
}

/* ---- by the hash table ------------------------------------------------------------------------------------------- */

static int hts_lost(const struct lookup *lookup) {
    struct hstore_client *client = lookup->client;
    atomic_store(&lookup->view->down_until_ns, dm_now(client->ctx) + client->cn->geometry.probe_ns);
    return AGAIN;
}

/* Reads the table's addresses again. */
static int view_refresh(const struct lookup *lookup) {
    struct hstore_client *client = lookup->client;
    bool is_usable;
    client->counts[HSTORE_TABLE_REFRESHED]++;
    int rc = hstore_view_read(client->cn, client->ctx, lookup->shard, client->parts, &is_usable);
    if (rc == DM_ERR_PEER) {
        return hts_lost(lookup);
    }
    DM_TRY(rc);
    return is_usable ? 0 : hts_lost(lookup);
}

static int bucket_read(const struct lookup *lookup, uint64_t part, uint64_t offset) {
    struct hstore_client *client = lookup->client;
    dm_addr addr = dm_addr_make(lookup->hts, DM_DRAM, offset);
    if (!dm_addr_valid(client->ctx, addr, DM_LINE)) {
        return AGAIN_TORN;
    }
    client->counts[HSTORE_BUCKET_READ]++;
    client->counts[HSTORE_INDEX_ACCESS]++;
    client->counts[HSTORE_INDEX_FAR]++;
    int rc = dm_read(client->ctx, addr, client->bucket, DM_LINE);
    if (rc == DM_ERR_PEER) {
        atomic_store(lookup->part, 0);
        return hts_lost(lookup);
    }
    DM_TRY(rc);
    if (hstore_tag_of(client->bucket->link) != hstore_tag_of(part)) {
        /* The server has been away since: there is another table, or none yet. */
        atomic_store(lookup->part, 0);
        return AGAIN;
    }
    return 0;
}

/* Searches the slots of the current bucket that match. DM_NOT_FOUND: the key is not in this bucket. */
static int bucket_search(const struct lookup *lookup) {
    struct hstore_client *client = lookup->client;
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, HSTORE_SLOTS);
    for (unsigned i = 0; i < HSTORE_SLOTS; i++) {
        uint64_t slot = client->bucket->slots[i];
        if (slot == 0 || slot >> 56 != hstore_fragment(lookup->hash)) {
            continue;
        }
        enum seen seen;
        DM_TRY(item_see(lookup, slot & HSTORE_ADDR_MASK, &seen));
        if (seen == SEEN_ITEM) {
            return 0;
        }
        if (seen != SEEN_OTHER_KEY) {
            return seen_again(client, seen);
        }
        client->counts[HSTORE_ITEM_MISS]++;
    }
    return DM_NOT_FOUND;
}

static int get_by_table(struct lookup *lookup) {
    enum { CHAIN_MAX = 4096 };
    struct hstore_client *client = lookup->client;
    uint64_t part = atomic_load(lookup->part);
    if (part == 0) {
        int rc = view_refresh(lookup);
        return rc == 0 ? AGAIN : rc;
    }
    uint64_t offset = hstore_offset_of(part) + hstore_part_at(hstore_bucket_of(&client->cn->geometry, lookup->hash));
    for (unsigned length = 0; length < CHAIN_MAX; length++) {
        client->counts[HSTORE_CHAIN_READ] += length > 0;
        lookup->since_ns = dm_now(client->ctx);
        lookup->has_writer = false;
        int rc = bucket_read(lookup, part, offset);
        rc = rc == 0 ? bucket_search(lookup) : rc;
        offset = hstore_offset_of(client->bucket->link);
        if (rc != DM_NOT_FOUND || offset == 0) {
            return rc;
        }
    }
    return AGAIN_TORN;
}

/* ---- by the skip list -------------------------------------------------------------------------------------------- */

static int get_by_list(struct lookup *lookup, uint32_t *attempts) {
    struct hstore_client *client = lookup->client;
    struct hstore_find find = {.key = lookup->key};
    struct hstore_reply reply;
    uint32_t len = sizeof(reply);
    dm_phase(client->ctx, DM_PHASE_CALL);
    int rc = dm_call(client->ctx, lookup->sls, HSTORE_METHOD_FIND, &find, sizeof(find), &reply, &len);
    if (rc == HSTORE_NOT_READY || rc == DM_ERR_PEER) {
        /* Both servers are away; the hash table server may be back first. */
        atomic_store(&lookup->view->down_until_ns, 0);
        DM_TRY(hstore_failure_wait(client, attempts));
        return AGAIN;
    }
    if (rc != 0) {
        return rc < 0 ? rc : DM_ERR_CORRUPT;
    }
    hstore_reply_take(client, &reply);
    client->counts[HSTORE_LIST_LOOKUP]++;
    client->counts[HSTORE_INDEX_ACCESS] += reply.near + reply.far;
    client->counts[HSTORE_INDEX_FAR] += reply.far;
    if (reply.item == 0) {
        return DM_NOT_FOUND;
    }
    enum seen seen;
    lookup->has_writer = true;
    lookup->writer = reply.writer;
    DM_TRY(item_see(lookup, reply.item, &seen));
    return seen == SEEN_ITEM ? 0 : seen_again(client, seen);
}

int hstore_get(void *handle, uint64_t key, void *value) {
    struct hstore_client *client = handle;
    const struct dm_topology *topology = client->cn->shape->topology;
    struct lookup lookup = {.client = client, .key = key, .hash = hstore_hash(key), .value = value};
    unsigned shard = hstore_shard_of(&client->cn->geometry, lookup.hash);
    lookup.shard = shard;
    lookup.view = &client->cn->views[shard];
    lookup.part = &lookup.view->parts[hstore_part_of_hash(&client->cn->geometry, lookup.hash)];
    lookup.hts = hstore_hts_node(topology, shard);
    lookup.sls = hstore_sls_node(topology, shard);
    bool by_list = client->cn->params->lookup == HSTORE_LOOKUP_LIST;
    for (uint32_t attempts = 0;;) {
        dm_phase(client->ctx, DM_PHASE_INDEX);
        dm_charge(client->ctx, DM_WORK_HASH, 1);
        /* The view of the shard's table, and the clock, twice for a lease. */
        dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 3);
        uint64_t down_until_ns = atomic_load(&lookup.view->down_until_ns);
        bool is_down = down_until_ns > 0 && down_until_ns > dm_now(client->ctx);
        client->counts[HSTORE_DEGRADED_GET] += is_down && !by_list;
        int rc = is_down || by_list ? get_by_list(&lookup, &attempts) : get_by_table(&lookup);
        if (rc < AGAIN) {
            dm_phase(client->ctx, DM_PHASE_OTHER);
            return rc;
        }
        DM_TRY(dm_retry(client->ctx, rc == AGAIN ? DM_RETRY_STALE : DM_RETRY_TORN, &attempts));
    }
}
