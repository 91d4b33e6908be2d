/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows a write in the background: the key's shortcut is set to the new version, and the replaced version is
 * reported to the metadata server. A key belongs to one queue of a compute node, so that its reports stay in order.
 */
#include "clover.h"

static uint32_t queue_take(struct clover_queue *queue, struct clover_garbage *garbage) {
    const struct clover_params *params = queue->cn->params;
    uint32_t count = 0;
    while (count < params->collect_batch && queue->count > 0) {
        garbage[count++] = queue->garbage[queue->first];
        queue->first = (queue->first + 1) % params->queue;
        queue->count--;
    }
    return count;
}

/* Of several versions of a key only the last is written to its shortcut. */
static int shortcuts_write(struct dm_ctx *ctx, const struct clover_garbage *garbage, uint32_t count, uint64_t *words) {
    for (uint32_t i = 0; i < count; i++) {
        bool is_last = true;
        for (uint32_t later = i + 1; later < count && is_last; later++) {
            is_last = garbage[later].shortcut != garbage[i].shortcut;
        }
        dm_addr addr = {garbage[i].shortcut};
        words[i] = garbage[i].replaced.next;
        if (is_last && dm_addr_valid(ctx, addr, sizeof(*words))) {
            dm_post_write(ctx, addr, &words[i], sizeof(*words));
        }
    }
    dm_charge(ctx, DM_WORK_KEY_COMPARE, count * count / 2 + 1);
    return dm_commit(ctx);
}

static int garbage_send(struct clover_cn *cn, struct dm_ctx *ctx, const struct clover_garbage *garbage, uint32_t count,
                        uint64_t *words) {
    DM_TRY(shortcuts_write(ctx, garbage, count, words));
    for (unsigned server = 0; server < cn->geometry.servers; server++) {
        struct clover_replaced message[CLOVER_BATCH_MAX];
        struct clover_reply reply;
        uint32_t of_server = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (clover_server_of(&cn->geometry, clover_hash(garbage[i].replaced.key)) == server) {
                message[of_server++] = garbage[i].replaced;
            }
        }
        if (of_server > 0) {
            dm_charge(ctx, DM_WORK_LINE_COPY, of_server * (uint32_t)sizeof(message[0]) / DM_LINE + 1);
            DM_TRY(clover_call(cn, ctx, server, CLOVER_METHOD_COLLECT, message,
                               of_server * (uint32_t)sizeof(message[0]), &reply, NULL, 0));
        }
    }
    return 0;
}

/* Sends the oldest of a queue. The queue's mutex is held, and is not on return. */
static int queue_send(struct clover_client *client, struct clover_queue *queue) {
    uint32_t count = queue_take(queue, client->sent);
    dm_mutex_unlock(client->ctx, &queue->mutex);
    return garbage_send(client->cn, client->ctx, client->sent, count, client->shortcuts);
}

int clover_garbage_put(struct clover_client *client, const struct clover_garbage *garbage) {
    struct clover_cn *cn = client->cn;
    struct clover_queue *queue = &cn->queues[clover_hash(garbage->replaced.key) % cn->params->collectors];
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    DM_TRY(dm_mutex_lock(client->ctx, &queue->mutex));
    while (queue->count == cn->params->queue) {
        client->counts[CLOVER_COLLECTED_INLINE]++;
        DM_TRY(queue_send(client, queue));
        DM_TRY(dm_mutex_lock(client->ctx, &queue->mutex));
    }
    queue->garbage[(queue->first + queue->count++) % cn->params->queue] = *garbage;
    dm_cond_wake_one(client->ctx, &queue->filled);
    dm_mutex_unlock(client->ctx, &queue->mutex);
    return 0;
}

int clover_garbage_flush(struct clover_client *client) {
    struct clover_cn *cn = client->cn;
    for (unsigned i = 0; i < cn->params->collectors; i++) {
        struct clover_queue *queue = &cn->queues[i];
        DM_TRY(dm_mutex_lock(client->ctx, &queue->mutex));
        uint64_t left = queue->count;
        while (left > 0 && queue->count > 0) {
            uint64_t before = queue->count;
            DM_TRY(queue_send(client, queue));
            left -= before < left ? before : left;
            DM_TRY(dm_mutex_lock(client->ctx, &queue->mutex));
        }
        dm_mutex_unlock(client->ctx, &queue->mutex);
    }
    return 0;
}

void clover_collector(struct dm_ctx *ctx, void *arg) {
    struct clover_queue *queue = arg;
    struct clover_garbage garbage[CLOVER_BATCH_MAX];
    uint64_t *words = dm_local_alloc(ctx, CLOVER_BATCH_MAX * sizeof(*words));
    if (!words) {
        return; /* clients send everything themselves */
    }
    for (;;) {
        if (dm_mutex_lock(ctx, &queue->mutex) < 0) {
            return;
        }
        while (queue->count == 0) {
            if (dm_cond_wait(ctx, &queue->filled, &queue->mutex) < 0) {
                return;
            }
        }
        uint32_t count = queue_take(queue, garbage);
        dm_mutex_unlock(ctx, &queue->mutex);
        /* A message that is lost costs no more than a walk along the chain when the key is next written. */
        if (garbage_send(queue->cn, ctx, garbage, count, words) == DM_ERR_STOPPED) {
            return;
        }
    }
}
