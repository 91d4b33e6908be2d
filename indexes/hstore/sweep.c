/* SPDX-License-Identifier: Apache-2.0
 *
 * Orphans: replaced items whose client never reused their space, because it stopped or lost the answer that named them.
 * They are dead in the pool and stay so. An item that has been dead, unchanged, for long enough is given to the next
 * client that writes (paper, 3.2).
 */
#include <string.h>

#include "pool.h"
#include "server.h"

enum {
    SEEN_MAX = 4096,
    PATIENCE = 8, /* grace periods; a client drops its own after 2, see item.c */
};

struct seen {
    uint64_t item, check, since_ns;
};

struct sweep {
    struct hstore_server *server;
    struct seen *seen; /* a hash table without chains: an item whose slot is taken waits for a later sweep */
    uint64_t *words;   /* device memory */
};

/* True if the item was seen dead long ago, with the same contents. */
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
    struct hstore_server *server = sweep->server;
    const struct hstore_item *item = bytes;
    uint64_t hash = hstore_hash(item->key);
    if (item->state != HSTORE_DEAD || server->gift_count == HSTORE_REMOVES ||
        hstore_shard_of(&server->geometry, hash) != server->shard ||
        !is_orphan(sweep, packed, item->check, dm_now(ctx))) {
        return 0;
    }
    /* Marked as dead, but while the skip list server is away its successor is not in the table. */
    if (hstore_table_find(ctx, &server->table, hash).item == packed) {
        return 0;
    }
    /* Reclaimed: no later sweep and no client finds it. */
    DM_TRY(dm_cas(ctx, hstore_unpack(packed), HSTORE_DEAD, HSTORE_PENDING, sweep->words));
    if (sweep->words[0] != HSTORE_DEAD) {
        return 0;
    }
    DM_TRY(dm_mutex_lock(ctx, &server->gift_mutex));
    server->gifts[server->gift_count++] = packed;
    dm_mutex_unlock(ctx, &server->gift_mutex);
    return 0;
}

void hstore_sweep(struct dm_ctx *ctx, void *arg) {
    struct hstore_server *server = arg;
    struct sweep sweep = {.server = server};
    struct hstore_pool_walk walk;
    sweep.seen = dm_local_alloc(ctx, SEEN_MAX * sizeof(*sweep.seen));
    sweep.words = dm_local_alloc(ctx, DM_LINE);
    if (!sweep.seen || !sweep.words ||
        hstore_pool_open(ctx, &walk, &server->geometry, server->shape->topology->mns) < 0) {
        return;
    }
    /* A failure in one sweep is met again by the next one. */
    while (dm_sleep(ctx, server->params->sweep_us * 1000) == 0) {
        if (hstore_pool_visit_all(ctx, &walk, visit, &sweep) == DM_ERR_STOPPED) {
            return;
        }
    }
}
