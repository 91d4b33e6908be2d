/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash table server. Handlers append writes to the log of their bucket. The log's worker takes a batch, decides
 * what each write changes, ships the entries to the skip list server, changes the table, and answers (paper, 4.2).
 */
#include <string.h>

#include "server.h"

/* ---- the worker's batch ------------------------------------------------------------------------------------------ */

struct batch {
    struct hstore_server *server;
    struct hstore_hts_log *log;
    struct hstore_pending *entries[HSTORE_BATCH_MAX];
    uint32_t count, logged;
    bool is_answered;
};

/* The key's item after the entries before this one: the item of the last entry that writes the key, else the table's.
 */
static uint64_t item_before(struct dm_ctx *ctx, struct batch *batch, uint32_t at) {
    const struct hstore_pending *entry = batch->entries[at];
    for (uint32_t i = at; i-- > 0;) {
        if (batch->entries[i]->is_logged && batch->entries[i]->hash == entry->hash) {
            return batch->entries[i]->write.item;
        }
    }
    struct hstore_found found = hstore_table_find(ctx, &batch->server->table, entry->hash);
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, found.buckets);
    dm_charge(ctx, DM_WORK_LINE_COPY, 2 * found.buckets);
    dm_charge(ctx, DM_WORK_KEY_COMPARE, at + HSTORE_SLOTS * found.buckets);
    return found.item;
}

/* Reserves a slot for a new key, in addition to those for earlier new keys of the same bucket in the batch. */
static int slots_reserve(struct dm_ctx *ctx, struct batch *batch, uint32_t at) {
    const struct hstore_geometry *geometry = &batch->server->geometry;
    const struct hstore_pending *entry = batch->entries[at];
    uint32_t wanted = 1;
    struct hstore_reserved reserved;
    for (uint32_t i = 0; i < at; i++) {
        const struct hstore_pending *other = batch->entries[i];
        wanted +=
            other->is_logged && hstore_bucket_of(geometry, other->hash) == hstore_bucket_of(geometry, entry->hash);
    }
    int rc = hstore_table_reserve(ctx, &batch->server->table, &batch->log->spare, entry->hash, wanted, &reserved);
    dm_charge(ctx, DM_WORK_KEY_COMPARE, at + HSTORE_SLOTS * reserved.buckets);
    if (reserved.chained > 0) {
        hstore_event_add(batch->server, HSTORE_EVENT_BUCKET_CHAINED, reserved.chained);
    }
    return rc;
}

static void decide(struct dm_ctx *ctx, struct batch *batch, uint32_t at) {
    struct hstore_pending *entry = batch->entries[at];
    uint64_t since_ns = dm_now(ctx);
    dm_charge(ctx, DM_WORK_HASH, 1);
    entry->queue_ns = since_ns - entry->appended_ns;
    entry->old = item_before(ctx, batch, at);
    entry->rc = 0;
    if (entry->write.kind == HSTORE_INSERT) {
        entry->rc = entry->old ? DM_EXISTS : slots_reserve(ctx, batch, at);
    } else if (!entry->old) {
        entry->rc = DM_NOT_FOUND;
    }
    entry->is_logged = entry->rc == 0;
    if (entry->is_logged) {
        entry->stamp = ++batch->log->stamp;
        batch->logged++;
    }
    entry->index_ns = dm_now(ctx) - since_ns;
}

static uint32_t message_make(struct dm_ctx *ctx, const struct batch *batch) {
    struct hstore_ship head = {.log = (uint32_t)(batch->log - batch->server->hts),
                               .count = batch->logged,
                               .tag = atomic_load(&batch->server->tag)};
    uint32_t key_bytes = batch->server->geometry.key_bytes, at = sizeof(head);
    memcpy(batch->log->message, &head, sizeof(head));
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct hstore_pending *pending = batch->entries[i];
        if (pending->is_logged) {
            struct hstore_entry entry = {.key = pending->write.key,
                                         .item = pending->write.item,
                                         .old = pending->old,
                                         .stamp = pending->stamp,
                                         .client = pending->write.client,
                                         .seq = pending->write.seq};
            memcpy(batch->log->message + at, &entry, sizeof(entry));
            at += (uint32_t)sizeof(entry);
        }
    }
    dm_charge(ctx, DM_WORK_LINE_COPY, batch->count + 1);
    /* The bytes of the keys beyond the first 8. */
    memset(batch->log->message + at, 0, (size_t)batch->logged * (key_bytes - 8));
    return at + batch->logged * (key_bytes - 8);
}

/* Ships a batch until the skip list server has logged it. While that server is down or recovers, writes wait. */
static int ship(struct dm_ctx *ctx, const struct batch *batch, uint32_t len) {
    struct hstore_server *server = batch->server;
    uint32_t attempts = 0;
    for (;;) {
        struct hstore_reply reply;
        uint32_t reply_len = sizeof(reply);
        int rc = dm_call(ctx, server->peer, HSTORE_METHOD_SHIP, batch->log->message, len, &reply, &reply_len);
        if (rc == 0) {
            hstore_events_pass(server, &reply);
            return 0;
        }
        if (rc != HSTORE_NOT_READY && rc != DM_ERR_PEER) {
            return rc;
        }
        DM_TRY(dm_retry(ctx, DM_RETRY_STALE, &attempts));
        /* A rebuild waits until no batch may change the table. */
        atomic_store(&batch->log->may_apply, false);
        DM_TRY(dm_sleep(ctx, server->geometry.probe_ns));
        atomic_store(&batch->log->may_apply, true);
    }
}

static void table_apply(struct dm_ctx *ctx, struct batch *batch) {
    struct hstore_server *server = batch->server;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct hstore_pending *entry = batch->entries[i];
        if (!entry->is_logged) {
            continue;
        }
        uint64_t since_ns = dm_now(ctx);
        dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
        dm_charge(ctx, DM_WORK_KEY_COMPARE, 2 * HSTORE_SLOTS);
        if (!hstore_table_set(ctx, &server->table, entry->hash, entry->write.item, server->geometry.item_bytes)) {
            entry->rc = DM_ERR_CORRUPT;
        }
        if (entry->write.kind == HSTORE_REMOVE) {
            server->removes[entry->write.client % HSTORE_REMOVES] =
                (uint64_t)entry->write.client << 32 | entry->write.seq;
        }
        entry->index_ns += dm_now(ctx) - since_ns;
        batch->log->settled = entry->stamp;
    }
}

/* Reports to the skip list server which entries the table has, so that a scan need not wait for them. */
static int settle(struct dm_ctx *ctx, const struct batch *batch) {
    uint64_t offset = HSTORE_SETTLED_OFFSET + 8 * (uint64_t)(batch->log - batch->server->hts);
    uint64_t settled = batch->log->settled;
    dm_post_write(ctx, dm_addr_make(batch->server->peer, DM_DRAM, offset), &settled, sizeof(settled));
    return dm_commit_async(ctx);
}

/* Ends a batch: its handlers continue. The log's mutex is held. */
static void answer(struct dm_ctx *ctx, struct batch *batch) {
    batch->is_answered = true;
    batch->log->applied += batch->count;
    for (uint32_t i = 0; i < batch->count; i++) {
        batch->entries[i]->mark = HSTORE_APPLIED;
        dm_cond_wake_one(ctx, &batch->entries[i]->answered);
    }
}

/* Known to be wrong: acknowledges what only one server has. */
static int answer_early(struct dm_ctx *ctx, struct batch *batch) {
    table_apply(ctx, batch);
    DM_TRY(dm_mutex_lock(ctx, &batch->log->mutex));
    answer(ctx, batch);
    dm_mutex_unlock(ctx, &batch->log->mutex);
    return 0;
}

/* Ships a batch and applies it. 0, or the outcome of all its writes. */
static int log_and_apply(struct dm_ctx *ctx, struct batch *batch) {
    uint32_t len = message_make(ctx, batch);
    if (batch->server->params->ack == HSTORE_ACK_EARLY) {
        DM_TRY(answer_early(ctx, batch));
    }
    uint64_t since_ns = dm_now(ctx);
    int rc = ship(ctx, batch, len);
    uint64_t log_ns = dm_now(ctx) - since_ns;
    for (uint32_t i = 0; i < batch->count && !batch->is_answered; i++) {
        struct hstore_pending *entry = batch->entries[i];
        entry->log_ns = entry->is_logged ? log_ns : 0;
        entry->rc = entry->is_logged ? rc : entry->rc;
        entry->is_logged = entry->is_logged && rc == 0;
    }
    if (rc != 0) {
        return rc;
    }
    if (!batch->is_answered) {
        table_apply(ctx, batch);
    }
    return settle(ctx, batch);
}

/* Takes up to a batch from the log and executes it. The log's mutex is held, and held again on return, except after
 * DM_ERR_STOPPED. */
static int batch_do(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_hts_log *log) {
    struct batch batch = {.server = server, .log = log};
    while (batch.count < server->params->batch && log->applied + batch.count < log->appended) {
        batch.entries[batch.count] = &log->ring[(log->applied + batch.count) % server->ring_entries];
        batch.count++;
    }
    log->in_batch = true;
    atomic_store(&log->may_apply, true);
    dm_mutex_unlock(ctx, &log->mutex);
    for (uint32_t i = 0; i < batch.count; i++) {
        decide(ctx, &batch, i);
    }
    /* Each write has its own outcome; a failure of the fabric matters only when the run ends. */
    int rc = batch.logged > 0 ? log_and_apply(ctx, &batch) : 0;
    atomic_store(&log->may_apply, false);
    if (rc == DM_ERR_STOPPED) {
        return rc;
    }
    DM_TRY(dm_mutex_lock(ctx, &log->mutex));
    log->in_batch = false;
    if (!batch.is_answered) {
        answer(ctx, &batch);
    }
    return 0;
}

void hstore_hts_worker(struct dm_ctx *ctx, void *arg) {
    struct hstore_server *server = arg;
    struct hstore_hts_log *log = &server->hts[server->next_worker++ % server->geometry.logs];
    if (dm_mutex_lock(ctx, &log->mutex) < 0) {
        return;
    }
    log->has_worker = true;
    for (;;) {
        while (log->applied == log->appended || log->in_batch) {
            if (dm_cond_wait(ctx, &log->filled, &log->mutex) < 0) {
                return;
            }
        }
        if (batch_do(ctx, server, log) < 0) {
            return;
        }
    }
}

/* ---- writes ------------------------------------------------------------------------------------------------------ */

static struct hstore_pending *append(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_hts_log *log,
                                     const struct hstore_write *write, uint64_t hash) {
    bool is_counted = false;
    struct hstore_pending *entry;
    while ((entry = &log->ring[log->appended % server->ring_entries])->mark != HSTORE_FREE) {
        if (!is_counted) {
            hstore_event_add(server, HSTORE_EVENT_LOG_FULL, 1);
            is_counted = true;
        }
        if (dm_cond_wait(ctx, &log->drained, &log->mutex) < 0) {
            return NULL;
        }
    }
    *entry =
        (struct hstore_pending){.write = *write, .hash = hash, .mark = HSTORE_APPENDED, .appended_ns = dm_now(ctx)};
    log->appended++;
    dm_cond_wake_one(ctx, &log->filled);
    return entry;
}

/* Appends a write, waits for it, and returns its outcome. In the set-up phase no worker runs, and the handler does its
 * work. */
static int write_through(struct dm_ctx *ctx, struct hstore_server *server, const struct hstore_write *write,
                         struct hstore_reply *reply) {
    uint64_t hash = hstore_hash(write->key);
    struct hstore_hts_log *log = &server->hts[hstore_log_of(&server->geometry, hash)];
    DM_TRY(dm_mutex_lock(ctx, &log->mutex));
    struct hstore_pending *entry = append(ctx, server, log, write, hash);
    if (!entry) {
        return DM_ERR_STOPPED;
    }
    while (entry->mark != HSTORE_APPLIED) {
        if (!log->has_worker && !log->in_batch) {
            DM_TRY(batch_do(ctx, server, log));
            dm_cond_wake_one(ctx, &log->filled);
        } else {
            DM_TRY(dm_cond_wait(ctx, &entry->answered, &log->mutex));
        }
    }
    int rc = entry->rc;
    reply->item = entry->old;
    reply->queue_ns = entry->queue_ns;
    reply->log_ns = entry->log_ns;
    reply->index_ns = entry->index_ns;
    entry->mark = HSTORE_FREE;
    dm_cond_wake_one(ctx, &log->drained);
    dm_mutex_unlock(ctx, &log->mutex);
    return rc;
}

/* The outcome of a repeated request, whose earlier attempt had no answer. A delete is known by its number; of other
 * writes the client can read the state of the item. */
static int outcome_of_repeated(const struct hstore_server *server, const struct hstore_write *write) {
    if (write->kind != HSTORE_REMOVE) {
        return HSTORE_UNKNOWN;
    }
    uint64_t last = server->removes[write->client % HSTORE_REMOVES];
    if (last == ((uint64_t)write->client << 32 | write->seq)) {
        return 0;
    }
    /* Another client's delete may have overwritten the number. */
    bool is_other = last != 0 && last >> 32 != write->client;
    return is_other || write->tag < server->forgotten_before ? HSTORE_UNKNOWN : DM_NOT_FOUND;
}

static uint64_t gift_take(struct dm_ctx *ctx, struct hstore_server *server) {
    uint64_t item = 0;
    if (server->gift_count > 0 && dm_mutex_trylock(ctx, &server->gift_mutex)) {
        item = server->gift_count > 0 ? server->gifts[--server->gift_count] : 0;
        dm_mutex_unlock(ctx, &server->gift_mutex);
    }
    return item;
}

int hstore_hts_write(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    struct hstore_write write;
    struct hstore_reply reply;
    if (req_len < sizeof(write) || *resp_len < sizeof(reply)) {
        return DM_ERR_INVALID;
    }
    memcpy(&write, req, sizeof(write));
    *resp_len = 0;
    if (!hstore_is_ready(server)) {
        return HSTORE_NOT_READY;
    }
    if (write.kind >= HSTORE_KINDS || write.key > IX_KEY_MAX || (write.kind == HSTORE_REMOVE) != (write.item == 0)) {
        return DM_ERR_INVALID;
    }
    struct dm_mutex *thread = &server->rpc[write.client % server->params->rpc_threads];
    DM_TRY(dm_mutex_lock(ctx, thread));
    dm_charge(ctx, DM_WORK_HASH, 1);
    dm_charge(ctx, DM_WORK_CACHE_PROBE, 2); /* the log, and its next entry */
    dm_charge(ctx, DM_WORK_LINE_COPY, 2 * (uint32_t)(sizeof(struct hstore_pending) / DM_LINE));
    dm_charge(ctx, DM_WORK_KEY_COMPARE, HSTORE_EVENT_COUNT); /* the answer has these */
    dm_mutex_unlock(ctx, thread);
    struct hstore_reply outcome = {0};
    int rc = write.again ? outcome_of_repeated(server, &write) : DM_NOT_FOUND;
    if (!write.again || (write.kind == HSTORE_REMOVE && rc == DM_NOT_FOUND)) {
        rc = write_through(ctx, server, &write, &outcome);
    }
    DM_TRY(rc);
    hstore_reply_make(server, &reply);
    reply.item = outcome.item;
    reply.queue_ns = outcome.queue_ns;
    reply.log_ns = outcome.log_ns;
    reply.index_ns = outcome.index_ns;
    reply.gift = gift_take(ctx, server);
    memcpy(resp, &reply, sizeof(reply));
    *resp_len = sizeof(reply);
    return rc;
}

/* ---- for the skip list server's recovery, and for loading -------------------------------------------------------- */

int hstore_hts_begin(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    struct hstore_begin begin;
    struct hstore_begun begun;
    if (req_len != sizeof(begin) || *resp_len < sizeof(begun)) {
        return DM_ERR_INVALID;
    }
    memcpy(&begin, req, sizeof(begin));
    *resp_len = 0;
    if (!hstore_is_ready(server)) {
        return HSTORE_NOT_READY;
    }
    memset(&begun, 0, sizeof(begun));
    for (unsigned i = 0; i < server->geometry.logs; i++) {
        /* A batch that the failed skip list server has logged is applied; no other one can be until its successor is
         * ready. */
        while (atomic_load(&server->hts[i].may_apply) && !begin.only_asks) {
            DM_TRY(dm_sleep(ctx, 1000));
        }
        begun.stamps[i] = server->hts[i].settled;
        begun.doubts |= (uint64_t)server->hts[i].in_batch << i;
    }
    begun.head.tag = atomic_load(&server->tag);
    memcpy(resp, &begun, sizeof(begun));
    *resp_len = sizeof(begun);
    return 0;
}

static int words_reply(struct hstore_server *server, const uint64_t *words, uint32_t count, struct hstore_range next,
                       void *resp, uint32_t *resp_len) {
    struct hstore_reply reply = {
        .tag = atomic_load(&server->tag), .count = count, .item = next.first, .gift = next.skip};
    memcpy(resp, &reply, sizeof(reply));
    memcpy((char *)resp + sizeof(reply), words, count * sizeof(*words));
    *resp_len = (uint32_t)(sizeof(reply) + count * sizeof(*words));
    return 0;
}

int hstore_hts_table(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    struct hstore_range range;
    uint64_t items[HSTORE_WORDS_MAX];
    if (req_len != sizeof(range) || *resp_len < DM_CALL_MAX) {
        return DM_ERR_INVALID;
    }
    memcpy(&range, req, sizeof(range));
    *resp_len = 0;
    if (!hstore_is_ready(server)) {
        return HSTORE_NOT_READY;
    }
    struct hstore_range next = range;
    uint32_t count = hstore_table_items(ctx, &server->table, &next, items, HSTORE_WORDS_MAX);
    dm_charge(ctx, DM_WORK_LINE_COPY, (uint32_t)(next.first - range.first));
    return words_reply(server, items, count, next, resp, resp_len);
}

int hstore_removes(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    (void)ctx;
    (void)req;
    (void)req_len;
    static_assert((int)HSTORE_REMOVES <= (int)HSTORE_WORDS_MAX, "one reply has them all");
    if (*resp_len < DM_CALL_MAX) {
        return DM_ERR_INVALID;
    }
    *resp_len = 0;
    uint64_t removes[HSTORE_REMOVES];
    for (unsigned i = 0; i < HSTORE_REMOVES; i++) {
        removes[i] = atomic_load(&server->removes[i]);
    }
    return hstore_is_ready(server)
               ? words_reply(server, removes, HSTORE_REMOVES, (struct hstore_range){0}, resp, resp_len)
               : HSTORE_NOT_READY;
}

int hstore_hts_load(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    (void)resp;
    *resp_len = 0;
    for (uint32_t at = 0; at + sizeof(struct hstore_pair) <= req_len; at += (uint32_t)sizeof(struct hstore_pair)) {
        struct hstore_pair pair;
        struct hstore_reserved reserved;
        memcpy(&pair, (const char *)req + at, sizeof(pair));
        uint64_t hash = hstore_hash(pair.key);
        struct hstore_spare *spare = &server->hts[hstore_log_of(&server->geometry, hash)].spare;
        DM_TRY(hstore_table_reserve(ctx, &server->table, spare, hash, 1, &reserved));
        hstore_event_add(server, HSTORE_EVENT_BUCKET_CHAINED, reserved.chained);
        if (!hstore_table_set(ctx, &server->table, hash, pair.item, server->geometry.item_bytes)) {
            return DM_ERR_CORRUPT;
        }
    }
    return 0;
}
