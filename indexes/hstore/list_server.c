/* SPDX-License-Identifier: Apache-2.0
 *
 * The skip list server. Handlers append shipped entries to the log of their partition, workers apply them
 * asynchronously, and a scan or find first applies the rest (paper, 4.2).
 */
#include <stdlib.h>
#include <string.h>

#include "server.h"

/* ---- the log ----------------------------------------------------------------------------------------------------- */

/* Applies the oldest entries, up to `count`, and returns their number. The partition's mutex is held. */
static uint32_t apply(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log, uint64_t count) {
    struct hstore_steps steps = {0};
    uint32_t done = 0;
    for (; done < count && log->applied < log->appended; done++) {
        const struct hstore_entry *entry = &log->ring[log->applied % server->ring_entries];
        struct hstore_pair pair = {entry->key, entry->item, hstore_writer(entry->client, entry->seq)};
        hstore_list_set(ctx, &log->list, pair, &steps);
        log->applied++;
    }
    if (done > 0) {
        dm_charge(ctx, DM_WORK_LINE_COPY, done);
        hstore_steps_charge(ctx, &log->list, steps);
    }
    return done;
}

/* Waits for further entries, to apply more of them together. The partition's mutex is held, and held again on return,
 * except after DM_ERR_STOPPED. */
static int linger(struct dm_ctx *ctx, const struct hstore_server *server, struct hstore_sls_log *log) {
    if (server->params->apply_us == 0) {
        return 0;
    }
    dm_mutex_unlock(ctx, &log->mutex);
    DM_TRY(dm_sleep(ctx, server->params->apply_us * 1000));
    return dm_mutex_lock(ctx, &log->mutex);
}

void hstore_sls_worker(struct dm_ctx *ctx, void *arg) {
    struct hstore_server *server = arg;
    struct hstore_sls_log *log = &server->sls[server->next_worker++ % server->geometry.logs];
    if (dm_mutex_lock(ctx, &log->mutex) < 0) {
        return;
    }
    for (;;) {
        while (log->applied == log->appended) {
            if (dm_cond_wait(ctx, &log->filled, &log->mutex) < 0) {
                return;
            }
        }
        if (linger(ctx, server, log) < 0) {
            return;
        }
        while (apply(ctx, server, log, server->params->batch) > 0) {
            /* Contexts that wait for the log get it between batches. */
            dm_mutex_unlock(ctx, &log->mutex);
            if (dm_mutex_lock(ctx, &log->mutex) < 0) {
                return;
            }
        }
    }
}

/* Posts the marks of a batch to the pool: each new item is in force, each old one dead. This must happen before any
 * client can see the entry, because if both servers fail only the pool is left. */
static int items_mark(struct dm_ctx *ctx, const struct hstore_entry *entries, uint32_t count) {
    static const uint64_t dead = HSTORE_DEAD;
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].item) {
            dm_post_write(ctx, hstore_unpack(entries[i].item), &entries[i].stamp, sizeof(uint64_t));
        }
        if (entries[i].old) {
            dm_post_write(ctx, hstore_unpack(entries[i].old), &dead, sizeof(uint64_t));
        }
    }
    return dm_commit_async(ctx);
}

/* One context posts all marks of a log, so those of one item land in the order of its entries without a wait. */
void hstore_sls_marker(struct dm_ctx *ctx, void *arg) {
    struct hstore_server *server = arg;
    struct hstore_sls_log *log = &server->sls[server->next_marker++ % server->geometry.logs];
    if (dm_mutex_lock(ctx, &log->mutex) < 0) {
        return;
    }
    log->has_marker = true;
    for (;;) {
        while (!log->to_mark) {
            if (dm_cond_wait(ctx, &log->mark_wanted, &log->mutex) < 0) {
                return;
            }
        }
        /* A mark that cannot be posted: the next batch meets the same failure. Memory nodes do not fail. */
        if (items_mark(ctx, log->to_mark, log->to_mark_count) == DM_ERR_STOPPED) {
            dm_mutex_unlock(ctx, &log->mutex);
            return;
        }
        log->to_mark = NULL;
        dm_cond_wake_all(ctx, &log->marked);
    }
}

/* Has a batch marked. The partition's mutex is held, and held again on return, except after a failure. In the set-up
 * phase there is no marker yet, and the order does not matter. */
static int mark(struct dm_ctx *ctx, struct hstore_sls_log *log, const struct hstore_entry *entries, uint32_t count) {
    if (!log->has_marker) {
        int rc = items_mark(ctx, entries, count);
        if (rc < 0) {
            dm_mutex_unlock(ctx, &log->mutex);
        }
        return rc;
    }
    log->to_mark = entries;
    log->to_mark_count = count;
    dm_cond_wake_one(ctx, &log->mark_wanted);
    while (log->to_mark) {
        DM_TRY(dm_cond_wait(ctx, &log->marked, &log->mutex));
    }
    return 0;
}

/* Appends an entry. The partition's mutex is held. */
static void append(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log,
                   const struct hstore_entry *entry) {
    if (entry->stamp <= log->stamp) {
        return; /* a repeated batch, whose answer was lost */
    }
    if (log->appended - log->applied == server->ring_entries) {
        hstore_event_add(server, HSTORE_EVENT_LOG_FULL, 1);
        apply(ctx, server, log, 1 + server->ring_entries / 2);
    }
    log->ring[log->appended++ % server->ring_entries] = *entry;
    log->stamp = entry->stamp;
    if (entry->item == 0) {
        server->removes[entry->client % HSTORE_REMOVES] = (uint64_t)entry->client << 32 | entry->seq;
    }
}

/* Logs a batch. The partition's mutex is held, and held again on return, except after a failure. Batches of a hash
 * table server that failed are refused; its successor reads the log only when no batch is half done. */
static int ship_log(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log,
                    const struct hstore_ship *head, const struct hstore_entry *entries) {
    while (log->in_ship) {
        DM_TRY(dm_cond_wait(ctx, &log->shipped, &log->mutex));
    }
    int rc = head->tag == atomic_load(&server->tag) ? 0 : HSTORE_NOT_READY;
    rc = rc != 0 ? rc : hstore_list_reserve(ctx, &log->list, (uint32_t)(log->appended - log->applied) + head->count);
    if (rc != 0) {
        dm_mutex_unlock(ctx, &log->mutex);
        return rc;
    }
    log->in_ship = true;
    DM_TRY(mark(ctx, log, entries, head->count));
    log->in_ship = false;
    log->is_doubtful = false;
    for (uint32_t i = 0; i < head->count; i++) {
        append(ctx, server, log, &entries[i]);
    }
    dm_cond_wake_all(ctx, &log->shipped);
    return 0;
}

static int ship_take(struct dm_ctx *ctx, struct hstore_server *server, const struct hstore_ship *head,
                     const struct hstore_entry *entries) {
    struct hstore_sls_log *log = &server->sls[head->log];
    struct dm_mutex *thread = &server->rpc[head->log % server->params->rpc_threads];
    DM_TRY(dm_mutex_lock(ctx, thread));
    dm_charge(ctx, DM_WORK_CACHE_PROBE, 2); /* the log, and its next entry */
    dm_charge(ctx, DM_WORK_LINE_COPY, 2 * head->count);
    dm_charge(ctx, DM_WORK_KEY_COMPARE, HSTORE_EVENT_COUNT); /* the answer has these */
    dm_mutex_unlock(ctx, thread);
    DM_TRY(dm_mutex_lock(ctx, &log->mutex));
    int rc = ship_log(ctx, server, log, head, entries);
    if (rc != 0) {
        return rc;
    }
    if (server->params->sync) {
        apply(ctx, server, log, UINT64_MAX);
    } else {
        dm_cond_wake_one(ctx, &log->filled);
    }
    dm_mutex_unlock(ctx, &log->mutex);
    return 0;
}

static int reply_head(struct hstore_server *server, uint32_t count, void *resp, uint32_t *resp_len) {
    struct hstore_reply reply;
    hstore_reply_make(server, &reply);
    reply.count = count;
    memcpy(resp, &reply, sizeof(reply));
    *resp_len = (uint32_t)(sizeof(reply) + count * sizeof(struct hstore_pair));
    return 0;
}

int hstore_sls_ship(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    struct hstore_ship head;
    struct hstore_entry entries[HSTORE_BATCH_MAX];
    if (req_len < sizeof(head) || *resp_len < sizeof(struct hstore_reply)) {
        return DM_ERR_INVALID;
    }
    memcpy(&head, req, sizeof(head));
    *resp_len = 0;
    if (!hstore_is_ready(server)) {
        return HSTORE_NOT_READY;
    }
    if (head.log >= server->geometry.logs || head.count > HSTORE_BATCH_MAX || head.count > server->ring_entries ||
        req_len < sizeof(head) + head.count * sizeof(struct hstore_entry)) {
        return DM_ERR_INVALID;
    }
    memcpy(entries, (const char *)req + sizeof(head), head.count * sizeof(struct hstore_entry));
    int rc = ship_take(ctx, server, &head, entries);
    return rc != 0 ? rc : reply_head(server, 0, resp, resp_len);
}

/* ---- around a scan or find --------------------------------------------------------------------------------------- */

/* Asks the hash table server which stamps its table has. If that server is down no client can read an older table
 * there. */
static int table_ask(struct dm_ctx *ctx, const struct hstore_server *server, const struct hstore_sls_log *log,
                     uint64_t wanted, uint64_t *settled) {
    struct hstore_begun begun = {0};
    struct hstore_begin begin = {.only_asks = 1};
    uint32_t len = sizeof(begun);
    int rc = dm_call(ctx, server->peer, HSTORE_METHOD_BEGIN, &begin, sizeof(begin), &begun, &len);
    bool is_down = rc == DM_ERR_PEER || rc == HSTORE_NOT_READY;
    *settled = is_down ? wanted : rc == 0 ? begun.stamps[log - server->sls] : 0;
    return rc == DM_ERR_STOPPED ? rc : 0;
}

static void trust(struct hstore_sls_log *log, uint64_t stamp) {
    uint64_t before = atomic_load(&log->trusted_stamp);
    while (before < stamp && !atomic_compare_exchange_weak(&log->trusted_stamp, &before, stamp)) {
    }
}

/* Waits until the hash table has the entries up to `stamp`. An entry that is logged here may not be in the table yet,
 * and a reader that sees it here first and then reads the table would find the older value. So what was read while the
 * log's last entry had this stamp is returned only after the wait. */
static int table_await(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log, uint64_t stamp) {
    enum { POLL_NS = 500, POLLS_A_QUESTION = 32 };
    if (!server->params->strict) {
        return 0;
    }
    dm_addr word = dm_addr_make(server->node, DM_DRAM, HSTORE_SETTLED_OFFSET + 8 * (uint64_t)(log - server->sls));
    for (uint32_t attempts = 0;;) {
        uint64_t settled;
        dm_cpu_read(ctx, word, &settled, sizeof(settled));
        trust(log, settled);
        if (log->trusted_stamp >= stamp) {
            return 0;
        }
        if (attempts == 0) {
            hstore_event_add(server, HSTORE_EVENT_SCAN_WAITED, 1);
        }
        DM_TRY(dm_retry(ctx, DM_RETRY_STALE, &attempts));
        DM_TRY(dm_sleep(ctx, POLL_NS));
        if (attempts % POLLS_A_QUESTION == 0) {
            DM_TRY(table_ask(ctx, server, log, stamp, &settled));
            trust(log, settled);
        }
    }
}

/* Takes the partition's mutex and applies everything that is logged. */
static int drain(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log) {
    DM_TRY(dm_mutex_lock(ctx, &log->mutex));
    if (server->params->drain) { /* off is known to be wrong: misses entries that are logged */
        uint32_t done = apply(ctx, server, log, log->appended - log->applied);
        hstore_event_add(server, HSTORE_EVENT_SCAN_DRAINED, done);
    }
    return 0;
}

/* ---- finds and scans --------------------------------------------------------------------------------------------- */

int hstore_sls_find(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    struct hstore_find find;
    struct hstore_reply reply;
    if (req_len < sizeof(find) || *resp_len < sizeof(reply)) {
        return DM_ERR_INVALID;
    }
    memcpy(&find, req, sizeof(find));
    *resp_len = 0;
    if (!hstore_is_ready(server)) {
        return HSTORE_NOT_READY;
    }
    struct hstore_sls_log *log = &server->sls[hstore_log_of(&server->geometry, hstore_hash(find.key))];
    struct hstore_steps steps = {0};
    DM_TRY(drain(ctx, server, log));
    uint64_t since_ns = dm_now(ctx);
    struct hstore_pair pair = hstore_list_find(ctx, &log->list, find.key, &steps);
    hstore_steps_charge(ctx, &log->list, steps);
    uint64_t stamp = log->stamp, index_ns = dm_now(ctx) - since_ns;
    dm_mutex_unlock(ctx, &log->mutex);
    DM_TRY(table_await(ctx, server, log, stamp));
    hstore_reply_make(server, &reply);
    reply.near = steps.near;
    reply.far = steps.far;
    reply.item = pair.item;
    reply.writer = pair.writer;
    reply.index_ns = index_ns;
    memcpy(resp, &reply, sizeof(reply));
    *resp_len = sizeof(reply);
    return 0;
}

/* A partition's contribution to a scan: some of its pairs, and whether there are more. */
struct run {
    struct hstore_pair pairs[16];
    uint32_t at, count, wanted;
    uint64_t next_key;
    uint64_t stamp; /* of the last entry that may be in the pairs */
    bool is_over;
};

static int run_fill(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log, struct run *run) {
    struct hstore_steps steps = {0};
    DM_TRY(drain(ctx, server, log));
    run->at = 0;
    run->stamp = log->stamp;
    run->count = hstore_list_copy(ctx, &log->list, run->next_key, run->pairs, run->wanted, &steps);
    hstore_steps_charge(ctx, &log->list, steps);
    dm_mutex_unlock(ctx, &log->mutex);
    uint64_t last = run->count > 0 ? run->pairs[run->count - 1].key : IX_KEY_MAX;
    run->is_over = run->count < run->wanted || last == IX_KEY_MAX;
    run->next_key = last + 1;
    return 0;
}

static struct run *lowest(struct run *runs, unsigned count) {
    struct run *best = NULL;
    for (unsigned i = 0; i < count; i++) {
        struct run *run = &runs[i];
        if (run->at < run->count && (!best || run->pairs[run->at].key < best->pairs[best->at].key)) {
            best = run;
        }
    }
    return best;
}

/* Merges the partitions. *index_ns: its duration without the wait for the hash table. */
static int collect(struct dm_ctx *ctx, struct hstore_server *server, const struct hstore_find *find,
                   struct hstore_pair *pairs, uint32_t *count, uint64_t *index_ns) {
    struct run runs[HSTORE_LOGS_MAX];
    unsigned logs = server->geometry.logs;
    uint64_t since_ns = dm_now(ctx);
    /* The expected number of pairs in a partition, and a little more. */
    uint32_t share = find->count / logs + 2, capacity = (uint32_t)(sizeof(runs[0].pairs) / sizeof(runs[0].pairs[0]));
    for (unsigned i = 0; i < logs; i++) {
        runs[i] = (struct run){.next_key = find->key, .wanted = share < capacity ? share : capacity};
        DM_TRY(run_fill(ctx, server, &server->sls[i], &runs[i]));
    }
    *count = 0;
    struct run *run;
    while (*count < find->count && (run = lowest(runs, logs))) {
        pairs[(*count)++] = run->pairs[run->at++];
        dm_charge(ctx, DM_WORK_KEY_COMPARE, 2 * logs);
        if (run->at == run->count && !run->is_over && *count < find->count) {
            DM_TRY(run_fill(ctx, server, &server->sls[run - runs], run));
        }
    }
    *index_ns = dm_now(ctx) - since_ns;
    for (unsigned i = 0; i < logs; i++) {
        DM_TRY(table_await(ctx, server, &server->sls[i], runs[i].stamp));
    }
    return 0;
}

int hstore_sls_scan(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    struct hstore_find find;
    if (req_len < sizeof(find) || *resp_len < DM_CALL_MAX) {
        return DM_ERR_INVALID;
    }
    memcpy(&find, req, sizeof(find));
    *resp_len = 0;
    if (!hstore_is_ready(server)) {
        return HSTORE_NOT_READY;
    }
    find.count = find.count < HSTORE_PAIRS_MAX ? find.count : HSTORE_PAIRS_MAX;
    struct hstore_pair *pairs = (struct hstore_pair *)(void *)((char *)resp + sizeof(struct hstore_reply));
    uint32_t count;
    uint64_t index_ns;
    DM_TRY(collect(ctx, server, &find, pairs, &count, &index_ns));
    reply_head(server, count, resp, resp_len);
    memcpy((char *)resp + offsetof(struct hstore_reply, index_ns), &index_ns, sizeof(index_ns));
    return 0;
}

/* ---- for the hash table server's recovery, and for loading ------------------------------------------------------- */

int hstore_sls_begin(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
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
    /* From here on entries of the failed server's table are refused; what is logged now is complete. */
    atomic_store(&server->tag, begin.tag);
    memset(&begun, 0, sizeof(begun));
    for (unsigned i = 0; i < server->geometry.logs; i++) {
        struct hstore_sls_log *log = &server->sls[i];
        DM_TRY(dm_mutex_lock(ctx, &log->mutex));
        while (log->in_ship) {
            DM_TRY(dm_cond_wait(ctx, &log->shipped, &log->mutex));
        }
        apply(ctx, server, log, UINT64_MAX);
        begun.stamps[i] = log->stamp;
        begun.doubts |= (uint64_t)log->is_doubtful << i;
        dm_mutex_unlock(ctx, &log->mutex);
    }
    memcpy(resp, &begun, sizeof(begun));
    *resp_len = sizeof(begun);
    return 0;
}

int hstore_sls_list(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    struct hstore_find find;
    if (req_len < sizeof(find) || *resp_len < DM_CALL_MAX) {
        return DM_ERR_INVALID;
    }
    memcpy(&find, req, sizeof(find));
    *resp_len = 0;
    if (!hstore_is_ready(server)) {
        return HSTORE_NOT_READY;
    }
    if (find.log >= server->geometry.logs) {
        return DM_ERR_INVALID;
    }
    struct hstore_sls_log *log = &server->sls[find.log];
    struct hstore_pair *pairs = (struct hstore_pair *)(void *)((char *)resp + sizeof(struct hstore_reply));
    struct hstore_steps steps = {0};
    DM_TRY(dm_mutex_lock(ctx, &log->mutex));
    apply(ctx, server, log, UINT64_MAX);
    uint32_t count = hstore_list_copy(ctx, &log->list, find.key, pairs, HSTORE_PAIRS_MAX, &steps);
    hstore_steps_charge(ctx, &log->list, steps);
    dm_mutex_unlock(ctx, &log->mutex);
    return reply_head(server, count, resp, resp_len);
}

int hstore_sls_load(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    (void)resp;
    *resp_len = 0;
    for (uint32_t at = 0; at + sizeof(struct hstore_pair) <= req_len; at += (uint32_t)sizeof(struct hstore_pair)) {
        struct hstore_pair pair;
        memcpy(&pair, (const char *)req + at, sizeof(pair));
        struct hstore_list *list = &server->sls[hstore_log_of(&server->geometry, hstore_hash(pair.key))].list;
        DM_TRY(hstore_list_reserve(ctx, list, 1));
        hstore_list_append(ctx, list, pair);
    }
    return 0;
}
