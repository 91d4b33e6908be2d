/* SPDX-License-Identifier: Apache-2.0
 *
 * Orphans: items that were replaced and whose client never came to use their space again, because it stopped or lost
 * the answer that told it. They are dead in the pool and stay so; what has been seen dead for long enough, unchanged,
 * is given to whoever writes next (paper, 3.2).
 */
#include <string.h>

#include "pool.h"
#include "server.h"

enum {
    SEEN_MAX = 4096,
    PATIENCE = 8, /* grace periods; a client gives up its own after 2, see item.c */
};

struct seen {
    uint64_t item, check, since_ns;
};

struct sweep {
    struct hs_server *server;
    struct seen *seen; /* a hash table without chains: what finds its place taken waits for a later sweep */
    uint64_t *words;   /* device memory */
};

/* True if it has been seen dead long ago, and with the same contents. */
static bool is_orphan(struct sweep *sweep, uint64_t packed, uint64_t check, uint64_t now_ns) {
    struct seen *seen = &sweep->seen[dm_mix64(packed) % SEEN_MAX];
    uint64_t patience_ns = PATIENCE * sweep->server->geometry.grace_ns;
    bool is_same = seen->item == packed && seen->check == check;
    if (is_same && now_ns - seen->since_ns > patience_ns) {
        seen->item = 0;
        return true;
    }
    if (!is_same && (seen->item == 0 || seen->item == packed || now_ns - seen->since_ns > 2 * patience_ns)) {
        *seen = (struct seen){packed, check, now_ns};
    }
    return false;
}

static int visit(struct dm_ctx *ctx, void *arg, uint64_t packed, const void *bytes) {
    struct sweep *sweep = arg;
    struct hs_server *server = sweep->server;
    const struct hs_item *item = bytes;
    uint64_t hash = hs_hash(item->key);
    if (item->state != HS_DEAD || server->gift_count == HS_REMOVES ||
        hs_shard_of(&server->geometry, hash) != server->shard || !is_orphan(sweep, packed, item->check, dm_now(ctx))) {
        return 0;
    }
    /* Marked, but its successor is not in the table while the skip list server is away. */
    if (hs_table_find(ctx, &server->table, hash).item == packed) {
        return 0;
    }
    /* Taken: no later sweep finds it, and nobody else can. */
    DM_TRY(dm_cas(ctx, hs_unpack(packed), HS_DEAD, HS_PENDING, sweep->words));
    if (sweep->words[0] != HS_DEAD) {
        return 0;
    }
    DM_TRY(dm_mutex_lock(ctx, &server->gift_mutex));
    server->gifts[server->gift_count++] = packed;
    dm_mutex_unlock(ctx, &server->gift_mutex);
    return 0;
}

void hs_sweep(struct dm_ctx *ctx, void *arg) {
    struct hs_server *server = arg;
    struct sweep sweep = {.server = server};
    struct hs_pool_walk walk;
    sweep.seen = dm_local_alloc(ctx, SEEN_MAX * sizeof(*sweep.seen));
    sweep.words = dm_local_alloc(ctx, DM_LINE);
    if (!sweep.seen || !sweep.words || hs_pool_open(ctx, &walk, &server->geometry, server->shape->topology->mns) < 0) {
        return;
    }
    /* What a walk fails with is met again by the next one. */
    while (dm_sleep(ctx, server->params->sweep_us * 1000) == 0) {
        if (hs_pool_visit_all(ctx, &walk, visit, &sweep) == DM_ERR_STOPPED) {
            return;
        }
    }
}
