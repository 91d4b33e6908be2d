/* SPDX-License-Identifier: Apache-2.0
 *
 * The skip list server. Handlers append shipped entries to the log of their partition, workers apply them
 * asynchronously, and before a scan or find the rest is applied (paper, 4.2; search.c).
 */
#include <stdlib.h>
#include <string.h>

#include "server.h"

/* ---- the log ----------------------------------------------------------------------------------------------------- */

/* Waits for further entries, to apply more of them together. The partition's mutex is held, and held again on return,
 * except after DM_ERR_STOPPED. */
static int linger(struct dm_ctx *ctx, const struct hstore_server *server, struct hstore_sls_log *log) {
    if (server->params->apply_us == 0) {
        return 0;
    }
    log->is_lingering = true;
    dm_mutex_unlock(ctx, &log->mutex);
    DM_TRY(dm_sleep(ctx, server->params->apply_us * 1000));
    DM_TRY(dm_mutex_lock(ctx, &log->mutex));
    log->is_lingering = false;
    return 0;
}

void hstore_sls_worker(struct dm_ctx *ctx, void *arg) {
    struct hstore_server *server = arg;
    struct hstore_sls_log *log = &server->sls[server->next_worker++ % server->geometry.logs];
    if (dm_mutex_lock(ctx, &log->mutex) < 0) {
        return;
    }
    log->has_worker = true;
    for (;;) {
        while (log->applied == log->appended && !log->asked) {
            if (dm_cond_wait(ctx, &log->filled, &log->mutex) < 0) {
                return;
            }
        }
        hstore_searches_do(ctx, server, log);
        if (log->applied == log->appended) {
            continue;
        }
        if (linger(ctx, server, log) < 0) {
            return;
        }
        while (!log->asked && hstore_sls_apply(ctx, server, log, server->params->batch) > 0) {
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
        hstore_sls_apply(ctx, server, log, 1 + server->ring_entries / 2);
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
        hstore_sls_apply(ctx, server, log, UINT64_MAX);
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
        hstore_sls_apply(ctx, server, log, UINT64_MAX);
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
    int rc = hstore_find_take(server, req, req_len, DM_CALL_MAX, resp_len, &find);
    if (rc != 0) {
        return rc;
    }
    if (find.log >= server->geometry.logs) {
        return DM_ERR_INVALID;
    }
    struct hstore_sls_log *log = &server->sls[find.log];
    struct hstore_pair *pairs = (struct hstore_pair *)(void *)((char *)resp + sizeof(struct hstore_reply));
    struct hstore_steps steps = {0};
    DM_TRY(dm_mutex_lock(ctx, &log->mutex));
    hstore_sls_apply(ctx, server, log, UINT64_MAX);
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
