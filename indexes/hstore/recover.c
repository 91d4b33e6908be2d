/* SPDX-License-Identifier: Apache-2.0
 *
 * Recovery of an index server that has come back with empty memory (paper, 3.2, "Failure handling"). The hash table is
 * rebuilt from the skip list if that exists, else from the items in the pool. The skip list is rebuilt from the hash
 * table, which has the addresses, and from the items there, whose keys are sorted.
 */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "pool.h"
#include "server.h"

enum { BATCH_BYTES = 128 }; /* most bytes that are read of an item for its key */

struct recovery {
    struct hstore_server *server;
    struct dm_ctx *ctx;
    char *message; /* device memory: DM_CALL_MAX, a reply */
    char *heads;   /* device memory: the first bytes of as many items as one doorbell reads */
    uint64_t *words;
    struct hstore_begun begun;
    uint64_t stamps[HSTORE_LOGS_MAX];
    bool is_from_pool; /* both servers recover: the skip list waits for the hash table */
};

static bool is_unavailable(int rc) {
    return rc == HSTORE_NOT_READY || rc == DM_ERR_PEER;
}

/* Before a turn that follows one in which the peer failed. A server can only wait, however often that happens: the
 * limit of retries is for operations, so each turn has a counter of its own. */
static int turn(struct recovery *recovery) {
    uint32_t attempts = 0;
    return dm_retry(recovery->ctx, DM_RETRY_STALE, &attempts);
}

static int begin(struct recovery *recovery, uint32_t tag) {
    struct hstore_begin request = {.tag = tag};
    uint32_t len = sizeof(recovery->begun);
    return dm_call(recovery->ctx, recovery->server->peer, HSTORE_METHOD_BEGIN, &request, sizeof(request),
                   &recovery->begun, &len);
}

/* A table that was made again since the recovery began has another tag: what this server has read belongs to the old
 * one, and the new one would ship nothing to it. HSTORE_NOT_READY then. */
static int same_table(const struct recovery *recovery) {
    struct hstore_reply reply;
    memcpy(&reply, recovery->message, sizeof(reply));
    return reply.tag == recovery->begun.head.tag ? 0 : HSTORE_NOT_READY;
}

static int removes_copy(struct recovery *recovery) {
    uint32_t len = DM_CALL_MAX;
    int rc = dm_call(recovery->ctx, recovery->server->peer, HSTORE_METHOD_REMOVES, NULL, 0, recovery->message, &len);
    if (rc == 0 && recovery->server->is_list) {
        rc = same_table(recovery);
    }
    if (rc == 0) {
        for (unsigned i = 0; i < HSTORE_REMOVES; i++) {
            uint64_t last;
            memcpy(&last, recovery->message + sizeof(struct hstore_reply) + i * sizeof(last), sizeof(last));
            atomic_store(&recovery->server->removes[i], last);
        }
    }
    return rc;
}

/* ---- the hash table ---------------------------------------------------------------------------------------------- */

static int table_add(struct recovery *recovery, uint64_t hash, uint64_t item) {
    struct hstore_server *server = recovery->server;
    struct hstore_reserved reserved;
    struct hstore_spare *spare = &server->hts[hstore_log_of(&server->geometry, hash)].spare;
    DM_TRY(hstore_table_reserve(recovery->ctx, &server->table, spare, hash, 1, &reserved));
    /* The two lines of a bucket are adjacent: one access has both. */
    dm_charge(recovery->ctx, DM_WORK_HASH, 1);
    dm_charge(recovery->ctx, DM_WORK_DRAM_ACCESS, reserved.buckets);
    dm_charge(recovery->ctx, DM_WORK_KEY_COMPARE, reserved.buckets * HSTORE_SLOTS);
    return hstore_table_set(recovery->ctx, &server->table, hash, item, server->geometry.item_bytes) ? 0
                                                                                                    : DM_ERR_CORRUPT;
}

static int table_from_partition(struct recovery *recovery, unsigned log) {
    struct hstore_find find = {.log = log};
    struct hstore_reply reply;
    for (;;) {
        uint32_t len = DM_CALL_MAX;
        int rc = dm_call(recovery->ctx, recovery->server->peer, HSTORE_METHOD_LIST, &find, sizeof(find),
                         recovery->message, &len);
        if (rc != 0) {
            return rc;
        }
        memcpy(&reply, recovery->message, sizeof(reply));
        hstore_events_pass(recovery->server, &reply);
        struct hstore_pair pair = {0};
        for (uint32_t i = 0; i < reply.count; i++) {
            memcpy(&pair, recovery->message + sizeof(reply) + i * sizeof(pair), sizeof(pair));
            DM_TRY(table_add(recovery, hstore_hash(pair.key), pair.item));
        }
        if (reply.count < HSTORE_PAIRS_MAX || pair.key >= IX_KEY_MAX) {
            return 0;
        }
        find.key = pair.key + 1;
    }
}

/* Corrects the mark of an item by the indexes. They are right: an entry that a failed skip list server marked in the
 * pool, and that was then lost with the hash table server, was not executed. */
static int item_correct(struct dm_ctx *ctx, void *arg, uint64_t packed, const void *bytes) {
    struct recovery *recovery = arg;
    struct hstore_server *server = recovery->server;
    const struct hstore_geometry *geometry = &server->geometry;
    const struct hstore_item *item = bytes;
    uint64_t hash = hstore_hash(item->key), state = item->state;
    if (hstore_shard_of(geometry, hash) != server->shard ||
        !hstore_item_intact(bytes, geometry->key_bytes, geometry->value_bytes, packed)) {
        return 0;
    }
    unsigned log = hstore_log_of(geometry, hash);
    bool is_marked = state >= HSTORE_STAMP_LOADED;
    recovery->stamps[log] = is_marked && state > recovery->stamps[log] ? state : recovery->stamps[log];
    bool is_current = hstore_table_find(ctx, &server->table, hash).item == packed;
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
    if (is_current == is_marked) {
        return 0;
    }
    recovery->words[0] = is_current ? recovery->begun.stamps[log] : HSTORE_PENDING;
    return dm_write(ctx, hstore_unpack(packed), recovery->words, sizeof(uint64_t));
}

static int pool_correct(struct recovery *recovery) {
    struct hstore_server *server = recovery->server;
    struct hstore_pool_walk walk;
    DM_TRY(dm_sleep(recovery->ctx, server->geometry.grace_ns));
    DM_TRY(hstore_pool_open(recovery->ctx, &walk, &server->geometry, server->shape->topology->mns));
    return hstore_pool_visit_all(recovery->ctx, &walk, item_correct, recovery);
}

static int table_from_list(struct recovery *recovery) {
    for (unsigned log = 0; log < recovery->server->geometry.logs; log++) {
        int rc = table_from_partition(recovery, log);
        if (rc != 0) {
            return rc;
        }
        recovery->stamps[log] = recovery->begun.stamps[log];
    }
    int rc = removes_copy(recovery);
    if (rc == 0 && recovery->begun.doubts) {
        hstore_event_add(recovery->server, HSTORE_EVENT_POOL_CORRECTED, 1);
        rc = pool_correct(recovery);
    }
    return rc;
}

/* Adds an item of the pool, if it is in force and has the highest stamp of its key. */
static int table_from_item(struct dm_ctx *ctx, void *arg, uint64_t packed, const void *bytes) {
    struct recovery *recovery = arg;
    struct hstore_server *server = recovery->server;
    const struct hstore_geometry *geometry = &server->geometry;
    const struct hstore_item *item = bytes;
    uint64_t hash = hstore_hash(item->key), state = item->state;
    if (state < HSTORE_STAMP_LOADED || hstore_shard_of(geometry, hash) != server->shard ||
        !hstore_item_intact(bytes, geometry->key_bytes, geometry->value_bytes, packed)) {
        return 0;
    }
    unsigned log = hstore_log_of(geometry, hash);
    recovery->stamps[log] = state > recovery->stamps[log] ? state : recovery->stamps[log];
    struct hstore_found found = hstore_table_find(ctx, &server->table, hash);
    if (found.item) {
        DM_TRY(dm_read(ctx, hstore_unpack(found.item), recovery->words, sizeof(uint64_t)));
        if (recovery->words[0] >= state) {
            return 0;
        }
    }
    return table_add(recovery, hash, packed);
}

static int table_from_pool(struct recovery *recovery) {
    struct hstore_server *server = recovery->server;
    struct hstore_pool_walk walk;
    /* After that, everything that the servers posted before they failed has landed. */
    DM_TRY(dm_sleep(recovery->ctx, server->geometry.grace_ns));
    for (unsigned log = 0; log < HSTORE_LOGS_MAX; log++) {
        recovery->stamps[log] = HSTORE_STAMP_FIRST;
    }
    DM_TRY(hstore_pool_open(recovery->ctx, &walk, &server->geometry, server->shape->topology->mns));
    return hstore_pool_visit_all(recovery->ctx, &walk, table_from_item, recovery);
}

/* Makes a tag that no table of this shard has had, from a counter in the pool. */
static int tag_new(struct recovery *recovery, uint32_t *tag) {
    dm_addr counter = dm_addr_make(0, DM_DRAM, HSTORE_TAGS_OFFSET + 8 * (uint64_t)recovery->server->shard);
    DM_TRY(dm_faa(recovery->ctx, counter, 1, recovery->words));
    *tag = (uint32_t)(recovery->words[0] % UINT16_MAX) + 1;
    return 0;
}

static void table_open(struct recovery *recovery, uint32_t tag) {
    struct hstore_server *server = recovery->server;
    for (unsigned log = 0; log < server->geometry.logs; log++) {
        server->hts[log].stamp = recovery->stamps[log];
        atomic_store(&server->hts[log].settled, recovery->stamps[log]);
    }
    hstore_table_publish(recovery->ctx, &server->table, tag);
    dm_charge(recovery->ctx, DM_WORK_LINE_COPY, (uint32_t)server->table.buckets);
    atomic_store(&server->tag, tag);
}

static int table_recover(struct recovery *recovery) {
    struct hstore_server *server = recovery->server;
    uint32_t tag;
    DM_TRY(tag_new(recovery, &tag));
    DM_TRY(hstore_table_make(recovery->ctx, &server->table, server->geometry.buckets));
    for (;;) {
        int rc = begin(recovery, tag);
        bool has_list = rc == 0;
        rc = has_list ? table_from_list(recovery) : is_unavailable(rc) ? table_from_pool(recovery) : rc;
        if (rc == 0 && !has_list && begin(recovery, tag) == 0) {
            rc = HSTORE_NOT_READY; /* a list of the table before has become ready meanwhile: it knows more */
        }
        if (rc == 0) {
            hstore_event_add(server, has_list ? HSTORE_EVENT_HTS_FROM_LIST : HSTORE_EVENT_HTS_FROM_POOL, 1);
            recovery->is_from_pool = !has_list;
            server->forgotten_before = has_list ? server->forgotten_before : tag;
            table_open(recovery, tag);
            return 0;
        }
        if (!is_unavailable(rc)) {
            return rc;
        }
        hstore_table_clear(recovery->ctx, &server->table);
        DM_TRY(turn(recovery));
    }
}

/* ---- the skip list ----------------------------------------------------------------------------------------------- */

void hstore_gathered_free(struct hstore_server *server) {
    for (unsigned i = 0; i < HSTORE_LOGS_MAX; i++) {
        free(server->gathered[i].pairs);
        server->gathered[i] = (struct hstore_gathered){.pairs = NULL};
    }
}

static int gather(struct hstore_gathered *gathered, struct hstore_pair pair) {
    struct hstore_pair *pairs = dm_array_grow(gathered->pairs, gathered->count, &gathered->capacity, sizeof(*pairs));
    if (!pairs) {
        return DM_ERR_NO_MEMORY;
    }
    gathered->pairs = pairs;
    pairs[gathered->count++] = pair;
    return 0;
}

/* Reads the keys of `count` items of the table's reply. */
static int items_gather(struct recovery *recovery, const uint64_t *items, uint32_t count) {
    struct hstore_server *server = recovery->server;
    struct dm_ctx *ctx = recovery->ctx;
    uint32_t bytes = hstore_item_value_at(server->geometry.key_bytes);
    for (uint32_t i = 0; i < count; i++) {
        dm_post_read(ctx, hstore_unpack(items[i]), recovery->heads + (size_t)i * BATCH_BYTES, bytes);
    }
    DM_TRY(dm_commit(ctx));
    for (uint32_t i = 0; i < count; i++) {
        const void *head = recovery->heads + (size_t)i * BATCH_BYTES;
        const struct hstore_item *item = head;
        uint64_t hash = hstore_hash(item->key);
        if (hstore_shard_of(&server->geometry, hash) != server->shard ||
            !hstore_item_has(head, server->geometry.key_bytes, item->key)) {
            return DM_ERR_CORRUPT;
        }
        struct hstore_pair pair = {item->key, items[i], hstore_writer(item->client, item->seq)};
        DM_TRY(gather(&server->gathered[hstore_log_of(&server->geometry, hash)], pair));
    }
    dm_charge(ctx, DM_WORK_HASH, count);
    dm_charge(ctx, DM_WORK_LINE_COPY, count);
    return 0;
}

static int by_key(const void *a, const void *b) {
    const struct hstore_pair *left = a, *right = b;
    return left->key < right->key ? -1 : left->key > right->key;
}

/* How often an element is compared, and moved, while that many are sorted. */
static uint32_t sort_passes(uint64_t count) {
    uint32_t passes = 1;
    while (count >> passes) {
        passes++;
    }
    return passes;
}

/* Builds a partition from its sorted keys. Each is appended, without a search. */
static int list_build(struct recovery *recovery, unsigned log) {
    enum { SLICE = 256 }; /* pairs between two charges, so that other contexts get the core */
    struct dm_ctx *ctx = recovery->ctx;
    struct hstore_list *list = &recovery->server->sls[log].list;
    struct hstore_gathered *gathered = &recovery->server->gathered[log];
    uint32_t passes = sort_passes(gathered->count);
    if (gathered->count > 0) {
        qsort(gathered->pairs, gathered->count, sizeof(*gathered->pairs), by_key);
    }
    for (uint64_t i = 0; i < gathered->count; i++) {
        if (i > 0 && gathered->pairs[i - 1].key == gathered->pairs[i].key) {
            return DM_ERR_CORRUPT;
        }
        DM_TRY(hstore_list_reserve(ctx, list, 1));
        hstore_list_append(ctx, list, gathered->pairs[i]);
        if (i % SLICE == 0) {
            uint64_t left = gathered->count - i;
            uint32_t slice = left < SLICE ? (uint32_t)left : SLICE;
            dm_charge(ctx, DM_WORK_KEY_COMPARE, passes * slice);
            dm_charge(ctx, DM_WORK_LINE_COPY, (passes + 1) * slice);
        }
    }
    return 0;
}

static int list_from_table(struct recovery *recovery) {
    struct hstore_server *server = recovery->server;
    struct hstore_range range = {0};
    while (range.first < server->geometry.buckets) {
        struct hstore_reply reply;
        uint32_t len = DM_CALL_MAX;
        int rc =
            dm_call(recovery->ctx, server->peer, HSTORE_METHOD_TABLE, &range, sizeof(range), recovery->message, &len);
        if (rc != 0) {
            return rc;
        }
        DM_TRY(same_table(recovery));
        memcpy(&reply, recovery->message, sizeof(reply));
        const uint64_t *items = (const uint64_t *)(const void *)(recovery->message + sizeof(reply));
        uint32_t batch = (uint32_t)server->params->recover_batch;
        for (uint32_t at = 0; at < reply.count; at += batch) {
            DM_TRY(items_gather(recovery, items + at, reply.count - at < batch ? reply.count - at : batch));
        }
        if (reply.count == 0 && reply.item == range.first) {
            return DM_ERR_CORRUPT;
        }
        range = (struct hstore_range){.first = reply.item, .skip = reply.gift};
    }
    for (unsigned log = 0; log < server->geometry.logs; log++) {
        DM_TRY(list_build(recovery, log));
    }
    return removes_copy(recovery);
}

static void list_open(struct recovery *recovery) {
    struct hstore_server *server = recovery->server;
    for (unsigned i = 0; i < server->geometry.logs; i++) {
        server->sls[i].stamp = recovery->begun.stamps[i];
        atomic_store(&server->sls[i].trusted_stamp, recovery->begun.stamps[i]);
        server->sls[i].is_doubtful = recovery->begun.doubts >> i & 1;
    }
    atomic_store(&server->tag, recovery->begun.head.tag);
    hstore_event_add(server, HSTORE_EVENT_SLS_FROM_TABLE, 1);
}

/* The hash table must exist first. */
static int list_recover(struct recovery *recovery) {
    struct hstore_server *server = recovery->server;
    for (;;) {
        int rc = begin(recovery, 0);
        for (unsigned i = 0; i < server->geometry.logs && rc == 0; i++) {
            server->gathered[i].count = 0;
            rc = hstore_list_make(recovery->ctx, &server->sls[i].list, server->geometry.logs);
        }
        rc = rc == 0 ? list_from_table(recovery) : rc;
        if (rc == 0) {
            list_open(recovery);
            return 0;
        }
        if (!is_unavailable(rc)) {
            return rc;
        }
        DM_TRY(turn(recovery));
        DM_TRY(dm_sleep(recovery->ctx, server->geometry.probe_ns));
    }
}

int hstore_recover(struct dm_ctx *ctx, struct hstore_server *server) {
    struct recovery recovery = {.server = server, .ctx = ctx};
    uint64_t since_ns = dm_now(ctx);
    recovery.message = dm_local_alloc(ctx, DM_CALL_MAX);
    recovery.heads = dm_local_alloc(ctx, (uint32_t)server->params->recover_batch * BATCH_BYTES);
    recovery.words = dm_local_alloc(ctx, DM_LINE);
    if (!recovery.message || !recovery.heads || !recovery.words) {
        return DM_ERR_NO_MEMORY;
    }
    int rc = server->is_list ? list_recover(&recovery) : table_recover(&recovery);
    hstore_gathered_free(server);
    if (rc == 0) {
        uint64_t took_ns = dm_now(ctx) - since_ns;
        hstore_event_add(server, server->is_list ? HSTORE_EVENT_SLS_RECOVERY_NS : HSTORE_EVENT_HTS_RECOVERY_NS,
                         took_ns);
        hstore_event_add(server, HSTORE_EVENT_RECOVERY_NS, recovery.is_from_pool ? 0 : took_ns);
    }
    return rc;
}
