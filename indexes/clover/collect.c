/* SPDX-License-Identifier: Apache-2.0
 *
 * Garbage collection by the metadata server. A key's oldest version is collected when it is known to have a successor,
 * which the table then points to. Clients report each replacement; a report that is not about the oldest version (it
 * overtook another one, or that one was lost) has the chain read instead.
 */
#include <string.h>

#include "server.h"

enum { WALK_MAX = 64 /* versions that one walk collects */ };

/* Makes `last` the oldest version of a key whose oldest versions are those in `replaced`, unless that has changed.
 * *is_done: it was not. */
static int advance(struct dm_ctx *ctx, struct clover_server *server, uint64_t key, const uint64_t *replaced,
                   uint32_t count, uint64_t last, bool *is_done) {
    struct clover_entry entry;
    struct dm_mutex *stripe = clover_table_stripe(&server->table, clover_hash(key));
    DM_TRY(dm_mutex_lock(ctx, stripe));
    uint64_t offset = clover_table_find(ctx, &server->table, key, &entry);
    *is_done = offset && entry.pointer == replaced[0];
    if (*is_done) {
        clover_table_set_pointer(ctx, &server->table, offset, last);
    }
    dm_mutex_unlock(ctx, stripe);
    for (uint32_t i = 0; *is_done && i < count; i++) {
        DM_TRY(clover_supply_return(ctx, server, replaced[i]));
    }
    return 0;
}

/* Reads a key's chain from its oldest version on and collects what has been replaced. */
static int walk(struct dm_ctx *ctx, struct clover_server *server, uint64_t key, uint64_t *words) {
    struct clover_entry entry;
    uint64_t replaced[WALK_MAX];
    uint32_t count = 0;
    struct dm_mutex *stripe = clover_table_stripe(&server->table, clover_hash(key));
    DM_TRY(dm_mutex_lock(ctx, stripe));
    uint64_t offset = clover_table_find(ctx, &server->table, key, &entry);
    dm_mutex_unlock(ctx, stripe);
    uint64_t at = offset ? entry.pointer : 0;
    while (at && count < WALK_MAX) {
        DM_TRY(dm_read(ctx, clover_addr_of(at), words, sizeof(*words)));
        uint64_t next = clover_next_of(*words);
        if (clover_header_use(*words) != clover_use_of(at)) {
            return 0; /* another report has collected it meanwhile */
        }
        if (next == 0) {
            break;
        }
        replaced[count++] = at;
        at = next;
    }
    bool is_done = false;
    if (count > 0) {
        DM_TRY(advance(ctx, server, key, replaced, count, at, &is_done));
    }
    clover_event_add(server, CLOVER_EVENT_WALKED, is_done ? count : 0);
    return 0;
}

/* Leaves a key to the walker; false if its list is full. */
static int walk_later(struct dm_ctx *ctx, struct clover_server *server, uint64_t key, bool *is_taken) {
    DM_TRY(dm_mutex_lock(ctx, &server->walks_mutex));
    *is_taken = server->walks_count < CLOVER_WALKS;
    if (*is_taken) {
        server->walks[(server->walks_first + server->walks_count++) % CLOVER_WALKS] = key;
        dm_cond_wake_one(ctx, &server->walks_filled);
    }
    dm_mutex_unlock(ctx, &server->walks_mutex);
    return 0;
}

int clover_collect(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    struct clover_server *server = arg;
    struct clover_reply reply;
    uint64_t words; /* a walk here is rare, so its reads may go through a bounce buffer */
    if (req_len % sizeof(struct clover_replaced) != 0 || *resp_len < sizeof(reply)) {
        return DM_ERR_INVALID;
    }
    *resp_len = 0;
    for (uint32_t at = 0; at < req_len; at += (uint32_t)sizeof(struct clover_replaced)) {
        struct clover_replaced replaced;
        bool is_done, is_taken = true;
        memcpy(&replaced, (const char *)req + at, sizeof(replaced));
        DM_TRY(advance(ctx, server, replaced.key, &replaced.old, 1, replaced.next, &is_done));
        if (!is_done) {
            DM_TRY(walk_later(ctx, server, replaced.key, &is_taken));
        }
        if (!is_taken) {
            DM_TRY(walk(ctx, server, replaced.key, &words));
        }
    }
    clover_reply_make(server, &reply);
    memcpy(resp, &reply, sizeof(reply));
    *resp_len = sizeof(reply);
    return 0;
}

void clover_walker(struct dm_ctx *ctx, void *arg) {
    struct clover_server *server = arg;
    uint64_t *words = dm_local_alloc(ctx, DM_LINE);
    for (;;) {
        if (!words || dm_mutex_lock(ctx, &server->walks_mutex) < 0) {
            return;
        }
        while (server->walks_count == 0) {
            if (dm_cond_wait(ctx, &server->walks_filled, &server->walks_mutex) < 0) {
                return;
            }
        }
        uint64_t key = server->walks[server->walks_first];
        server->walks_first = (server->walks_first + 1) % CLOVER_WALKS;
        server->walks_count--;
        dm_mutex_unlock(ctx, &server->walks_mutex);
        if (walk(ctx, server, key, words) == DM_ERR_STOPPED) {
            return;
        }
    }
}
