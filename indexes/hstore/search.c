/* SPDX-License-Identifier: Apache-2.0
 *
 * Applying the log to a partition of the skip list, and searches, for scans and finds. A handler requests them from
 * the workers of the partitions, which search concurrently, and merges what they found (paper, 4.1 and 4.2).
 */
#include <string.h>

#include "server.h"

/* ---- entries that the hash table has ----------------------------------------------------------------------------- */

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

/* ---- the log ----------------------------------------------------------------------------------------------------- */

uint32_t hstore_sls_apply(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log,
                          uint64_t count) {
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

/* ---- the search of a partition ----------------------------------------------------------------------------------- */

/* Searches a partition after everything that is logged has been applied. The partition's mutex is held. */
static void search_do(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log,
                      struct hstore_request *request) {
    struct hstore_search *search = &request->search;
    uint64_t since_ns = dm_now(ctx);
    search->queue_ns = since_ns - request->asked_ns;
    if (server->params->drain) { /* off is known to be wrong: misses entries that are logged */
        uint32_t done = hstore_sls_apply(ctx, server, log, log->appended - log->applied);
        hstore_event_add(server, HSTORE_EVENT_SCAN_DRAINED, done);
        since_ns = search->is_find ? dm_now(ctx) : since_ns;
    }
    search->steps = (struct hstore_steps){0};
    if (search->is_find) {
        request->pairs[0] = hstore_list_find(ctx, &log->list, search->key, &search->steps);
        search->count = 1;
    } else {
        search->count = hstore_list_copy(ctx, &log->list, search->key, request->pairs, search->wanted, &search->steps);
    }
    hstore_steps_charge(ctx, &log->list, search->steps);
    search->stamp = log->stamp;
    search->index_ns = dm_now(ctx) - since_ns;
    request->is_done = true;
}

void hstore_searches_do(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log) {
    while (log->asked) {
        struct hstore_request *request = log->asked;
        log->asked = request->next;
        dm_charge(ctx, DM_WORK_CACHE_PROBE, 1);
        search_do(ctx, server, log, request);
        dm_cond_wake_one(ctx, &request->done);
    }
}

/* Requests a search from the partition's worker. If there is none, or if it waits for more entries of the log, the
 * handler searches itself. */
static int search_ask(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log,
                      const struct hstore_search *search, struct hstore_request **asked) {
    DM_TRY(dm_mutex_lock(ctx, &log->mutex));
    while (!log->unused) {
        DM_TRY(dm_cond_wait(ctx, &log->returned, &log->mutex));
    }
    struct hstore_request *request = log->unused;
    log->unused = request->next;
    request->search = *search;
    request->next = NULL;
    request->is_done = false;
    request->asked_ns = dm_now(ctx);
    dm_charge(ctx, DM_WORK_CACHE_PROBE, 1);
    if (!log->has_worker || log->is_lingering) {
        search_do(ctx, server, log, request);
    } else {
        *(log->asked ? &log->asked_last->next : &log->asked) = request;
        log->asked_last = request;
        dm_cond_wake_one(ctx, &log->filled);
    }
    dm_mutex_unlock(ctx, &log->mutex);
    *asked = request;
    return 0;
}

/* Waits for the result of a search, and copies it. */
static int search_take(struct dm_ctx *ctx, struct hstore_sls_log *log, struct hstore_request *request,
                       struct hstore_search *search, struct hstore_pair *pairs) {
    DM_TRY(dm_mutex_lock(ctx, &log->mutex));
    while (!request->is_done) {
        DM_TRY(dm_cond_wait(ctx, &request->done, &log->mutex));
    }
    *search = request->search;
    memcpy(pairs, request->pairs, search->count * sizeof(*pairs));
    request->next = log->unused;
    log->unused = request;
    dm_cond_wake_one(ctx, &log->returned);
    dm_mutex_unlock(ctx, &log->mutex);
    return 0;
}

/* ---- finds ------------------------------------------------------------------------------------------------------- */

int hstore_find_take(struct hstore_server *server, const void *req, uint32_t req_len, uint32_t reply_bytes,
                     uint32_t *resp_len, struct hstore_find *find) {
    if (req_len < sizeof(*find) || *resp_len < reply_bytes) {
        return DM_ERR_INVALID;
    }
    memcpy(find, req, sizeof(*find));
    *resp_len = 0;
    return hstore_is_ready(server) ? 0 : HSTORE_NOT_READY;
}

int hstore_sls_find(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    struct hstore_find find;
    struct hstore_reply reply;
    int rc = hstore_find_take(server, req, req_len, sizeof(reply), resp_len, &find);
    if (rc != 0) {
        return rc;
    }
    struct hstore_sls_log *log = &server->sls[hstore_log_of(&server->geometry, hstore_hash(find.key))];
    struct hstore_search search = {.key = find.key, .wanted = 1, .is_find = true};
    struct hstore_request *request;
    struct hstore_pair pair;
    DM_TRY(search_ask(ctx, server, log, &search, &request));
    DM_TRY(search_take(ctx, log, request, &search, &pair));
    DM_TRY(table_await(ctx, server, log, search.stamp));
    hstore_reply_make(server, &reply);
    reply.near = search.steps.near;
    reply.far = search.steps.far;
    reply.item = pair.item;
    reply.writer = pair.writer;
    reply.queue_ns = search.queue_ns;
    reply.index_ns = search.index_ns;
    memcpy(resp, &reply, sizeof(reply));
    *resp_len = sizeof(reply);
    return 0;
}

/* ---- scans ------------------------------------------------------------------------------------------------------- */

/* A partition's contribution to a scan: some of its pairs, and whether there are more. */
struct run {
    struct hstore_pair pairs[HSTORE_SEARCH_PAIRS];
    struct hstore_search found;
    struct hstore_request *request;
    uint64_t next_key;
    uint32_t at;
    bool is_over;
};

static int run_ask(struct dm_ctx *ctx, struct hstore_server *server, struct hstore_sls_log *log, struct run *run,
                   uint32_t wanted) {
    struct hstore_search search = {.key = run->next_key, .wanted = wanted};
    return search_ask(ctx, server, log, &search, &run->request);
}

static int run_take(struct dm_ctx *ctx, struct hstore_sls_log *log, struct run *run) {
    DM_TRY(search_take(ctx, log, run->request, &run->found, run->pairs));
    uint64_t last = run->found.count > 0 ? run->pairs[run->found.count - 1].key : IX_KEY_MAX;
    run->at = 0;
    run->is_over = run->found.count < run->found.wanted || last == IX_KEY_MAX;
    run->next_key = last + 1;
    return 0;
}

static struct run *lowest(struct run *runs, unsigned count) {
    struct run *best = NULL;
    for (unsigned i = 0; i < count; i++) {
        struct run *run = &runs[i];
        if (run->at < run->found.count && (!best || run->pairs[run->at].key < best->pairs[best->at].key)) {
            best = run;
        }
    }
    return best;
}

/* How many pairs to request from a partition: the expected number, and twice its standard deviation at least. */
static uint32_t share_of(uint32_t count, unsigned logs) {
    uint32_t share = count / logs + 1, more = 2;
    while (more * more < 4 * share) {
        more++;
    }
    share += logs > 1 ? more : 0;
    return share < HSTORE_SEARCH_PAIRS ? share : HSTORE_SEARCH_PAIRS;
}

/* Merges the partitions. *index_ns: its duration without the wait for the hash table. */
static int collect(struct dm_ctx *ctx, struct hstore_server *server, const struct hstore_find *find,
                   struct hstore_pair *pairs, uint32_t *count, uint64_t *index_ns) {
    struct run runs[HSTORE_LOGS_MAX];
    unsigned logs = server->geometry.logs;
    uint32_t share = share_of(find->count, logs);
    uint64_t since_ns = dm_now(ctx);
    for (unsigned i = 0; i < logs; i++) {
        runs[i].next_key = find->key;
        DM_TRY(run_ask(ctx, server, &server->sls[i], &runs[i], share));
    }
    for (unsigned i = 0; i < logs; i++) {
        DM_TRY(run_take(ctx, &server->sls[i], &runs[i]));
    }
    *count = 0;
    struct run *run;
    while (*count < find->count && (run = lowest(runs, logs))) {
        pairs[(*count)++] = run->pairs[run->at++];
        dm_charge(ctx, DM_WORK_KEY_COMPARE, 2 * logs);
        if (run->at == run->found.count && !run->is_over && *count < find->count) {
            struct hstore_sls_log *log = &server->sls[run - runs];
            DM_TRY(run_ask(ctx, server, log, run, share));
            DM_TRY(run_take(ctx, log, run));
        }
    }
    *index_ns = dm_now(ctx) - since_ns;
    for (unsigned i = 0; i < logs; i++) {
        DM_TRY(table_await(ctx, server, &server->sls[i], runs[i].found.stamp));
    }
    return 0;
}

int hstore_sls_scan(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    struct hstore_find find;
    int rc = hstore_find_take(server, req, req_len, DM_CALL_MAX, resp_len, &find);
    if (rc != 0) {
        return rc;
    }
    find.count = find.count < HSTORE_PAIRS_MAX ? find.count : HSTORE_PAIRS_MAX;
    struct hstore_pair *pairs = (struct hstore_pair *)(void *)((char *)resp + sizeof(struct hstore_reply));
    uint32_t count;
    uint64_t index_ns;
    DM_TRY(collect(ctx, server, &find, pairs, &count, &index_ns));
    struct hstore_reply reply;
    hstore_reply_make(server, &reply);
    reply.count = count;
    reply.index_ns = index_ns;
    memcpy(resp, &reply, sizeof(reply));
    *resp_len = (uint32_t)(sizeof(reply) + count * sizeof(*pairs));
    return 0;
}
