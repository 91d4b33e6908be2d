/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: a request goes to the called node's queue; one of its threads takes it, runs the handler as a context and
 * notifies the caller. Requests and responses are in the caller's buffers: it waits for the answer.
 */
#include "transport/local/local.h"

static void answer(struct rt_job *job, struct dm_ctx *handler, int rc) {
    (void)handler;
    struct local_call *call = (struct local_call *)job;
    struct rt_ctx *caller = call->caller;
    call->rc = rc;
    atomic_store(&call->done, true);
    rt_notify(caller);
}

bool local_can_serve(struct rt_thread *thread) {
    return atomic_load(&local_node_of(thread)->queued) > 0 && rt_can_serve(thread);
}

static struct local_call *queue_take(struct local_node *node) {
    pthread_mutex_lock(&node->lock);
    struct local_call *call = node->head;
    if (call) {
        node->head = call->next;
        atomic_fetch_sub(&node->queued, 1);
    }
    pthread_mutex_unlock(&node->lock);
    return call;
}

static void queue_add(struct local_node *node, struct local_call *call) {
    pthread_mutex_lock(&node->lock);
    *(node->head ? &node->tail->next : &node->head) = call;
    node->tail = call;
    atomic_fetch_add(&node->queued, 1);
    pthread_mutex_unlock(&node->lock);
}

void local_serve(struct rt_thread *thread) {
    struct local_call *call = local_can_serve(thread) ? queue_take(local_node_of(thread)) : NULL;
    if (call) { /* otherwise another thread was faster */
        rt_serve(thread, &call->job);
    }
}

static int serving_ensure(struct local *local, unsigned number) {
    struct local_node *node = &local->nodes[number];
    const struct dm_node_state *state = &local->rt.fabric->nodes[number];
    if (atomic_load(&node->serving)) {
        return 0;
    }
    for (unsigned i = 0; i < state->thread_count; i++) {
        DM_TRY(rt_thread_ensure((struct rt_thread *)state->threads[i]));
    }
    atomic_store(&node->serving, true);
    return 0;
}

/* Wakes a sleeping thread of the node; if all are awake, the first one to look takes the request. */
static void notify_one(struct local *local, unsigned number, uint32_t first) {
    const struct dm_node_state *state = &local->rt.fabric->nodes[number];
    for (unsigned i = 0; i < state->thread_count; i++) {
        struct dm_thread *thread = state->threads[(first + i) % state->thread_count];
        if (rt_thread_notify((struct rt_thread *)thread)) {
            return;
        }
    }
}

int local_call(struct dm_ctx *base, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
               uint32_t *resp_len) {
    struct local *local = local_of(base->fabric);
    struct rt_ctx *ctx = (struct rt_ctx *)base;
    DM_TRY(serving_ensure(local, node));
    struct local_call call = {.job = {.method = &base->fabric->nodes[node].methods[method],
                                      .req = req,
                                      .req_len = req_len,
                                      .resp = resp,
                                      .resp_len = resp_len,
                                      .answer = answer},
                              .caller = ctx};
    ctx->answered = &call.done;
    queue_add(&local->nodes[node], &call);
    notify_one(local, node, base->thread->index);
    rt_suspend(ctx, RT_AWAY);
    ctx->answered = NULL;
    return call.rc;
}
