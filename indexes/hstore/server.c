/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of an index server: its memory, handlers and workers; start, end and restart after a failure.
 */
#include "server.h"

#include <stdlib.h>
#include <string.h>

#include "indexes/shared/served.h"

static void requests_reset(struct hstore_sls_log *log) {
    log->unused = NULL;
    for (unsigned i = 0; log->requests && i < HSTORE_REQUESTS; i++) {
        log->requests[i] = (struct hstore_request){.next = log->unused};
        log->unused = &log->requests[i];
    }
}

static void server_reset(struct hstore_server *server) {
    memset(server->rpc, 0, sizeof(server->rpc));
    for (unsigned i = 0; i < HSTORE_REMOVES; i++) {
        atomic_store(&server->removes[i], 0);
    }
    memset(&server->gift_mutex, 0, sizeof(server->gift_mutex));
    server->gift_count = 0;
    server->table = (struct hstore_table){.node = server->node};
    for (unsigned i = 0; i < server->geometry.logs; i++) {
        struct hstore_pending *pending = server->hts[i].ring;
        char *message = server->hts[i].message;
        struct hstore_entry *entries = server->sls[i].ring;
        struct hstore_request *requests = server->sls[i].requests;
        server->hts[i] = (struct hstore_hts_log){
            .ring = pending, .message = message, .stamp = HSTORE_STAMP_FIRST, .settled = HSTORE_STAMP_FIRST};
        server->sls[i] = (struct hstore_sls_log){.ring = entries, .requests = requests, .stamp = HSTORE_STAMP_FIRST};
        requests_reset(&server->sls[i]);
        server->sls[i].list.node = server->node;
        if (pending) {
            memset(pending, 0, server->ring_entries * sizeof(*pending));
        }
    }
}

static int workers_start(struct hstore_server *server) {
    atomic_store(&server->next_worker, 0);
    atomic_store(&server->next_marker, 0);
    /* Contexts go to the threads in turn: all workers first, so that no two share a thread while another has none. */
    for (unsigned i = 0; i < server->geometry.logs; i++) {
        DM_TRY(dm_spawn_background(server->fabric, server->node,
                                   server->is_list ? hstore_sls_worker : hstore_hts_worker, server));
    }
    for (unsigned i = 0; server->is_list && i < server->geometry.logs; i++) {
        DM_TRY(dm_spawn_background(server->fabric, server->node, hstore_sls_marker, server));
    }
    bool sweeps = !server->is_list && server->params->sweep_us > 0;
    return sweeps ? dm_spawn_background(server->fabric, server->node, hstore_sweep, server) : 0;
}

/* Runs when the server has come back with empty memory. If the recovery fails the server is never ready. */
static void restart(struct dm_ctx *ctx, void *arg) {
    struct hstore_server *server = arg;
    atomic_store(&server->state, HSTORE_STARTING);
    atomic_store(&server->tag, 0);
    server_reset(server);
    if (hstore_recover(ctx, server) == 0 && workers_start(server) == 0) {
        atomic_store(&server->state, HSTORE_READY);
    }
}

static int memory_get(struct hstore_server *server) {
    for (unsigned i = 0; i < server->geometry.logs; i++) {
        if (server->is_list) {
            server->sls[i].ring = calloc(server->ring_entries, sizeof(struct hstore_entry));
            server->sls[i].requests = calloc(HSTORE_REQUESTS, sizeof(struct hstore_request));
        } else {
            server->hts[i].ring = calloc(server->ring_entries, sizeof(struct hstore_pending));
            server->hts[i].message = malloc(DM_CALL_MAX);
        }
        bool has_all = server->is_list ? server->sls[i].ring && server->sls[i].requests
                                       : server->hts[i].ring && server->hts[i].message;
        if (!has_all) {
            return DM_ERR_NO_MEMORY;
        }
    }
    return 0;
}

/* Makes an empty table that clients may read, or empty partitions. */
static int format(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct hstore_server *server = arg;
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    for (unsigned i = 0; server->is_list && i < server->geometry.logs; i++) {
        DM_TRY(hstore_list_make(ctx, &server->sls[i].list, server->geometry.logs));
        server->sls[i].trusted_stamp = HSTORE_STAMP_FIRST;
    }
    if (!server->is_list) {
        DM_TRY(hstore_table_make(ctx, &server->table, server->geometry.buckets));
        hstore_table_publish(ctx, &server->table, 1);
    }
    return 0;
}

static int handlers_register(struct hstore_server *server) {
    static const struct ix_method of_hts[] = {
        {HSTORE_METHOD_WRITE, hstore_hts_write}, {HSTORE_METHOD_BEGIN, hstore_hts_begin},
        {HSTORE_METHOD_REMOVES, hstore_removes}, {HSTORE_METHOD_TABLE, hstore_hts_table},
        {HSTORE_METHOD_FORMAT, format},          {HSTORE_METHOD_LOAD, hstore_hts_load},
    };
    static const struct ix_method of_sls[] = {
        {HSTORE_METHOD_SHIP, hstore_sls_ship},   {HSTORE_METHOD_FIND, hstore_sls_find},
        {HSTORE_METHOD_SCAN, hstore_sls_scan},   {HSTORE_METHOD_BEGIN, hstore_sls_begin},
        {HSTORE_METHOD_REMOVES, hstore_removes}, {HSTORE_METHOD_LIST, hstore_sls_list},
        {HSTORE_METHOD_FORMAT, format},          {HSTORE_METHOD_LOAD, hstore_sls_load},
    };
    const struct ix_method *methods = server->is_list ? of_sls : of_hts;
    size_t count = server->is_list ? sizeof(of_sls) / sizeof(of_sls[0]) : sizeof(of_hts) / sizeof(of_hts[0]);
    return ix_methods_register(server->fabric, server->node, methods, count, server);
}

void hstore_unserve(void *handle) {
    struct hstore_server *server = handle;
    for (unsigned i = 0; i < HSTORE_LOGS_MAX; i++) {
        free(server->hts[i].ring);
        free(server->hts[i].message);
        free(server->sls[i].ring);
        free(server->sls[i].requests);
    }
    hstore_gathered_free(server);
}

/* With a thread for each, call threads and workers do not share any, as in the paper. */
static int threads_separate(const struct hstore_server *server) {
    uint64_t calls = server->params->rpc_threads, wanted = calls + server->params->workers;
    bool has_all = dm_thread_count(server->fabric, server->node) >= wanted;
    return has_all ? dm_separate_calls(server->fabric, server->node, (unsigned)calls) : 0;
}

int hstore_serve(void *handle, struct dm_fabric *fabric, unsigned node, const void *params,
                 const struct ix_shape *shape, struct dm_err *err) {
    struct hstore_server *server = handle;
    const struct hstore_params *values = params;
    unsigned first = dm_first_server(shape->topology);
    (void)err;
    if (node < first) {
        return 0; /* memory nodes run no code of this index */
    }
    server->fabric = fabric;
    server->params = values;
    server->shape = shape;
    server->geometry = hstore_geometry_of(values, shape);
    server->node = node;
    server->shard = (node - first) / 2;
    server->is_list = (node - first) % 2 == 1;
    server->peer = server->is_list ? node - 1 : node + 1;
    server->ring_entries = values->log_entries;
    int rc = memory_get(server);
    server_reset(server);
    atomic_init(&server->tag, 1);
    atomic_init(&server->state, HSTORE_READY);
    rc = rc < 0 ? rc : handlers_register(server);
    rc = rc < 0 ? rc : threads_separate(server);
    rc = rc < 0 ? rc : workers_start(server);
    rc = rc < 0 ? rc : dm_on_restart(fabric, node, restart, server);
    return rc > 0 ? DM_ERR_INVALID : rc;
}
