/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-check: the skip list of each shard is in order and in its partitions, the hash table points to the same items,
 * and each item is intact, has its key, and is in force by its state in the pool.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "hstore.h"
#include "indexes/shared/report.h"

struct walk {
    struct hstore_cn *cn;
    struct dm_ctx *ctx;
    struct ix_report *report;
    unsigned shard;
    char *message;    /* DM_CALL_MAX */
    char *item;       /* device memory */
    uint64_t *listed; /* items in the skip list */
    uint64_t *tabled; /* items in the hash table */
    uint64_t listed_count, listed_capacity, tabled_count, tabled_capacity;
};

static void problem(const struct walk *walk, const char *what, uint64_t key) {
    ix_report_problem(walk->report, "shard %u: %s (key %" PRIu64 ")", walk->shard, what, key);
}

static int keep(uint64_t **items, uint64_t *count, uint64_t *capacity, uint64_t item) {
    uint64_t *grown = dm_array_grow(*items, *count, capacity, sizeof(*grown));
    if (!grown) {
        return DM_ERR_NO_MEMORY;
    }
    *items = grown;
    (*items)[(*count)++] = item;
    return 0;
}

/* Calls a server, and waits while it recovers. */
static int call(struct walk *walk, unsigned node, unsigned method, const void *req, uint32_t req_len,
                struct hstore_reply *reply) {
    for (uint32_t attempts = 0;;) {
        uint32_t len = DM_CALL_MAX;
        int rc = dm_call(walk->ctx, node, method, req, req_len, walk->message, &len);
        if (rc == 0) {
            memcpy(reply, walk->message, sizeof(*reply));
            return 0;
        }
        if (rc != HSTORE_NOT_READY && rc != DM_ERR_PEER) {
            return rc < 0 ? rc : DM_ERR_CORRUPT;
        }
        DM_TRY(dm_retry(walk->ctx, DM_RETRY_STALE, &attempts));
        DM_TRY(dm_sleep(walk->ctx, walk->cn->geometry.probe_ns));
    }
}

static int item_check(struct walk *walk, const struct hstore_pair *pair) {
    const struct hstore_geometry *geometry = &walk->cn->geometry;
    dm_addr addr = hstore_unpack(pair->item);
    if (dm_addr_node(addr) >= walk->cn->shape->topology->mns || !dm_addr_valid(walk->ctx, addr, geometry->item_bytes)) {
        problem(walk, "the address of an item is outside the pool", pair->key);
        return 0;
    }
    DM_TRY(dm_read(walk->ctx, addr, walk->item, geometry->item_bytes));
    const struct hstore_item *item = (const struct hstore_item *)(const void *)walk->item;
    if (!hstore_item_intact(walk->item, geometry->key_bytes, geometry->value_bytes, pair->item)) {
        problem(walk, "an item is torn", pair->key);
    } else if (!hstore_item_has(walk->item, geometry->key_bytes, pair->key)) {
        problem(walk, "an item has another key", pair->key);
    } else if (item->state < HSTORE_STAMP_LOADED) {
        problem(walk, "an item that the indexes have is not in force in the pool", pair->key);
    }
    return 0;
}

static int partition_walk(struct walk *walk, unsigned log) {
    const struct hstore_geometry *geometry = &walk->cn->geometry;
    struct hstore_find find = {.log = log};
    struct hstore_reply reply;
    uint64_t last = 0;
    bool is_first = true;
    do {
        DM_TRY(call(walk, hstore_sls_node(walk->cn->shape->topology, walk->shard), HSTORE_METHOD_LIST, &find,
                    sizeof(find), &reply));
        for (uint32_t i = 0; i < reply.count; i++) {
            struct hstore_pair pair;
            memcpy(&pair, walk->message + sizeof(reply) + i * sizeof(pair), sizeof(pair));
            uint64_t hash = hstore_hash(pair.key);
            if (!is_first && pair.key <= last) {
                problem(walk, "the skip list is out of order", pair.key);
            }
            if (hstore_shard_of(geometry, hash) != walk->shard || hstore_log_of(geometry, hash) != log) {
                problem(walk, "a key is in the wrong partition", pair.key);
            }
            DM_TRY(item_check(walk, &pair));
            DM_TRY(keep(&walk->listed, &walk->listed_count, &walk->listed_capacity, pair.item));
            is_first = false;
            last = pair.key;
        }
        find.key = last + 1;
    } while (reply.count == HSTORE_PAIRS_MAX && last < IX_KEY_MAX);
    return 0;
}

static int table_walk(struct walk *walk) {
    struct hstore_range range = {0};
    while (range.first < walk->cn->geometry.buckets) {
        struct hstore_reply reply;
        DM_TRY(call(walk, hstore_hts_node(walk->cn->shape->topology, walk->shard), HSTORE_METHOD_TABLE, &range,
                    sizeof(range), &reply));
        for (uint32_t i = 0; i < reply.count; i++) {
            uint64_t item;
            memcpy(&item, walk->message + sizeof(reply) + i * sizeof(item), sizeof(item));
            DM_TRY(keep(&walk->tabled, &walk->tabled_count, &walk->tabled_capacity, item));
        }
        if (reply.count == 0 && reply.item == range.first) {
            problem(walk, "a chain of the hash table does not end", reply.item);
            return 0;
        }
        range = (struct hstore_range){.first = reply.item, .skip = reply.gift};
    }
    return 0;
}

static int by_number(const void *a, const void *b) {
    uint64_t left, right;
    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    return left < right ? -1 : left > right;
}

static void compare(struct walk *walk) {
    if (walk->listed_count > 0) {
        qsort(walk->listed, walk->listed_count, sizeof(*walk->listed), by_number);
    }
    if (walk->tabled_count > 0) {
        qsort(walk->tabled, walk->tabled_count, sizeof(*walk->tabled), by_number);
    }
    uint64_t in_table = 0;
    for (uint64_t i = 0; i < walk->listed_count; i++) {
        while (in_table < walk->tabled_count && walk->tabled[in_table] < walk->listed[i]) {
            problem(walk, "the hash table has an item that the skip list lacks", walk->tabled[in_table++]);
        }
        if (in_table < walk->tabled_count && walk->tabled[in_table] == walk->listed[i]) {
            in_table++;
        } else {
            problem(walk, "the skip list has an item that the hash table lacks", walk->listed[i]);
        }
    }
    for (; in_table < walk->tabled_count; in_table++) {
        problem(walk, "the hash table has an item that the skip list lacks", walk->tabled[in_table]);
    }
}

static int shard_walk(struct walk *walk) {
    walk->listed_count = walk->tabled_count = 0;
    for (unsigned log = 0; log < walk->cn->geometry.logs; log++) {
        DM_TRY(partition_walk(walk, log));
    }
    DM_TRY(table_walk(walk));
    /* A client that stopped for good may have left an unfinished batch: in the skip list, and soon in the hash table.
     */
    if (!walk->report->interrupted) {
        compare(walk);
    }
    walk->report->keys += walk->tabled_count;
    return 0;
}

int hstore_verify(void *handle, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err) {
    struct hstore_cn *cn = handle;
    (void)err;
    struct walk walk = {.cn = cn, .ctx = ctx, .report = report};
    bool interrupted = report->interrupted;
    *report = (struct ix_report){.interrupted = interrupted};
    walk.message = malloc(DM_CALL_MAX);
    walk.item = dm_local_alloc(ctx, cn->geometry.item_bytes);
    int rc = walk.message && walk.item ? 0 : DM_ERR_NO_MEMORY;
    for (; walk.shard < cn->geometry.shards && rc == 0; walk.shard++) {
        rc = shard_walk(&walk);
    }
    report->leaves = cn->geometry.buckets * cn->geometry.shards;
    report->leaf_fill = (double)report->keys / (double)(report->leaves * HSTORE_SLOTS);
    free(walk.message);
    free(walk.listed);
    free(walk.tabled);
    return rc < 0 ? rc : 0;
}
