/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a metadata server, and its handlers for look-ups, new keys, space and bulk load.
 */
#include "server.h"

#include <stdlib.h>
#include <string.h>

#include "indexes/shared/served.h"

static int reply_send(const struct clover_reply *reply, const void *more, uint64_t more_bytes, void *resp,
                      uint32_t *resp_len) {
    memcpy(resp, reply, sizeof(*reply));
    if (more_bytes > 0) {
        memcpy((char *)resp + sizeof(*reply), more, more_bytes);
    }
    *resp_len = (uint32_t)(sizeof(*reply) + more_bytes);
    return 0;
}

/* The reply's pointer is 0 if the key is not there. */
static int query(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct clover_server *server = arg;
    struct clover_reply reply;
    struct clover_entry entry;
    uint64_t key;
    if (req_len != sizeof(key) || *resp_len < sizeof(reply)) {
        return DM_ERR_INVALID;
    }
    memcpy(&key, req, sizeof(key));
    *resp_len = 0;
    struct dm_mutex *stripe = clover_table_stripe(&server->table, clover_hash(key));
    DM_TRY(dm_mutex_lock(ctx, stripe));
    bool is_found = clover_table_find(ctx, &server->table, key, &entry) != 0;
    dm_mutex_unlock(ctx, stripe);
    clover_reply_make(server, &reply);
    reply.pointer = is_found ? entry.pointer : 0;
    reply.shortcut = is_found ? entry.shortcut : 0;
    return reply_send(&reply, NULL, 0, resp, resp_len);
}

/* Adds a key. DM_EXISTS: it is there; *entry is what the table has, in either case. The stripe's mutex is held. */
static int key_add(struct dm_ctx *ctx, struct clover_server *server, const struct clover_pair *pair,
                   struct clover_entry *entry) {
    if (clover_table_find(ctx, &server->table, pair->key, entry)) {
        return DM_EXISTS;
    }
    uint64_t offset, shortcut;
    DM_TRY(clover_supply_entry(ctx, server, &offset, &shortcut));
    *entry = (struct clover_entry){.key = pair->key, .pointer = pair->pointer, .shortcut = shortcut};
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
    clover_table_add(ctx, &server->table, offset, entry);
    return 0;
}

/* A new key's shortcut leads to its first version. */
static void shortcut_post(struct dm_ctx *ctx, const struct clover_entry *entry) {
    dm_post_write(ctx, (dm_addr){entry->shortcut}, &entry->pointer, sizeof(entry->pointer));
}

static int create(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct clover_server *server = arg;
    struct clover_reply reply;
    struct clover_entry entry;
    struct clover_pair pair;
    if (req_len != sizeof(pair) || *resp_len < sizeof(reply)) {
        return DM_ERR_INVALID;
    }
    memcpy(&pair, req, sizeof(pair));
    *resp_len = 0;
    struct dm_mutex *stripe = clover_table_stripe(&server->table, clover_hash(pair.key));
    DM_TRY(dm_mutex_lock(ctx, stripe));
    int rc = key_add(ctx, server, &pair, &entry);
    dm_mutex_unlock(ctx, stripe);
    DM_TRY(rc);
    if (rc == 0) {
        shortcut_post(ctx, &entry);
        DM_TRY(dm_commit(ctx));
    }
    clover_reply_make(server, &reply);
    reply.pointer = entry.pointer;
    reply.shortcut = entry.shortcut;
    (void)reply_send(&reply, NULL, 0, resp, resp_len);
    return rc;
}

static int grant(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct clover_server *server = arg;
    struct clover_reply reply;
    struct clover_grant wanted;
    uint64_t pointers[CLOVER_GRANT_MAX];
    uint32_t granted;
    if (req_len != sizeof(wanted) || *resp_len < sizeof(reply) + sizeof(pointers)) {
        return DM_ERR_INVALID;
    }
    memcpy(&wanted, req, sizeof(wanted));
    *resp_len = 0;
    uint32_t count = (uint32_t)(wanted.count < CLOVER_GRANT_MAX ? wanted.count : CLOVER_GRANT_MAX);
    DM_TRY(clover_supply_grant(ctx, server, count, pointers, &granted));
    clover_reply_make(server, &reply);
    reply.count = granted;
    return reply_send(&reply, pointers, granted * sizeof(*pointers), resp, resp_len);
}

static int list(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct clover_server *server = arg;
    struct clover_reply reply = {0};
    struct clover_range range;
    struct clover_entry entries[CLOVER_LIST_MAX];
    if (req_len != sizeof(range) || *resp_len < DM_CALL_MAX) {
        return DM_ERR_INVALID;
    }
    memcpy(&range, req, sizeof(range));
    reply.count = clover_table_list(ctx, &server->table, &range, entries, CLOVER_LIST_MAX);
    reply.next = range.first;
    reply.pointer = range.skip;
    return reply_send(&reply, entries, reply.count * sizeof(*entries), resp, resp_len);
}

/* Adds keys that are new, and replies with their shortcuts. */
static int load(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct clover_server *server = arg;
    struct clover_reply reply = {0};
    uint64_t shortcuts[CLOVER_LOAD_MAX];
    if (req_len > CLOVER_LOAD_MAX * sizeof(struct clover_pair) || *resp_len < sizeof(reply) + sizeof(shortcuts)) {
        return DM_ERR_INVALID;
    }
    *resp_len = 0;
    for (; (reply.count + 1) * sizeof(struct clover_pair) <= req_len; reply.count++) {
        struct clover_pair pair;
        struct clover_entry entry;
        memcpy(&pair, (const char *)req + reply.count * sizeof(pair), sizeof(pair));
        int rc = key_add(ctx, server, &pair, &entry);
        if (rc != 0) {
            return rc < 0 ? rc : DM_ERR_CORRUPT;
        }
        shortcuts[reply.count] = entry.shortcut;
        shortcut_post(ctx, &entry);
        DM_TRY(dm_commit(ctx));
    }
    return reply_send(&reply, shortcuts, reply.count * sizeof(*shortcuts), resp, resp_len);
}

static int format(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct clover_server *server = arg;
    (void)req;
    (void)req_len;
    (void)resp;
    *resp_len = 0;
    return clover_table_make(ctx, &server->table, server->geometry.buckets);
}

int clover_serve(void *handle, struct dm_fabric *fabric, unsigned node, const void *params,
                 const struct ix_shape *shape, struct dm_err *err) {
    static const struct ix_method methods[] = {
        {CLOVER_METHOD_QUERY, query}, {CLOVER_METHOD_CREATE, create},
        {CLOVER_METHOD_GRANT, grant}, {CLOVER_METHOD_COLLECT, clover_collect},
        {CLOVER_METHOD_LIST, list},   {CLOVER_METHOD_FORMAT, format},
        {CLOVER_METHOD_LOAD, load},
    };
    struct clover_server *server = handle;
    (void)err;
    if (node < dm_first_server(shape->topology)) {
        return 0; /* memory nodes run no code of this index */
    }
    server->fabric = fabric;
    server->params = params;
    server->shape = shape;
    server->geometry = clover_geometry_of(params, shape);
    server->node = server->table.node = node;
    DM_TRY(ix_methods_register(fabric, node, methods, sizeof(methods) / sizeof(methods[0]), server));
    return dm_spawn_background(fabric, node, clover_walker, server);
}

void clover_unserve(void *handle) {
    struct clover_server *server = handle;
    free(server->supply.free);
}
