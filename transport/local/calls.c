/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: a request goes into the called node's queue, one of its threads takes it and runs the handler as a context,
 * and the caller is told. Requests and responses stay where the caller has them: it does not go on before the answer.
 */
#include "transport/local/local.h"

/* After this the call's structure is gone. */
static void answer(struct local_call *call, int rc) {
    struct local_ctx *caller = call->caller;
    call->rc = rc;
    atomic_store(&call->done, true);
    local_tell(caller);
}

/* A handler context's whole life: job after job. */
static void handler_entry(struct dm_ctx *base, void *arg) {
    (void)arg;
    struct local_ctx *ctx = (struct local_ctx *)base;
    struct local_thread *thread = local_thread_of(ctx);
    for (;;) {
        struct local_call *call = ctx->job;
        answer(call,
               call->method->handler(base, call->method->arg, call->req, call->req_len, call->resp, call->resp_len));
        ctx->job = NULL;
        ctx->next = thread->idle_handlers;
        thread->idle_handlers = ctx;
        local_suspend(ctx, LOCAL_IDLE);
    }
}

static struct local_ctx *handler_new(struct local_thread *thread) {
    struct local_ctx *ctx = (struct local_ctx *)dm_ctx_new(thread->base.fabric, thread->base.node, thread->base.index,
                                                           handler_entry, NULL, true);
    if (!ctx || local_ctx_prepare(ctx) < 0) {
        return NULL;
    }
    ctx->thread_next = thread->contexts;
    thread->contexts = ctx;
    thread->handler_count++;
    return ctx;
}

bool local_can_serve(const struct local_thread *thread) {
    return atomic_load(&local_node_of(thread)->queued) > 0 &&
           (thread->idle_handlers || thread->handler_count < LOCAL_HANDLERS_MAX);
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

void local_serve(struct local_thread *thread) {
    struct local_call *call = queue_take(local_node_of(thread));
    if (!call) {
        return; /* another thread was faster */
    }
    if (thread->base.fabric->stop) {
        answer(call, DM_ERR_STOPPED);
        return;
    }
    struct local_ctx *handler = thread->idle_handlers;
    if (handler) {
        thread->idle_handlers = handler->next;
    } else {
        handler = handler_new(thread);
    }
    if (!handler) {
        answer(call, DM_ERR_NO_MEMORY);
        return;
    }
    handler->job = call;
    local_ready(thread, handler, 0);
}

static int serving_ensure(struct local *local, unsigned number) {
    struct local_node *node = &local->nodes[number];
    const struct dm_node_state *state = &local->fabric->nodes[number];
    if (atomic_load(&node->serving)) {
        return 0;
    }
    for (unsigned i = 0; i < state->thread_count; i++) {
        DM_TRY(local_thread_ensure((struct local_thread *)state->threads[i]));
    }
    atomic_store(&node->serving, true);
    return 0;
}

/* Wakes a thread of the node that sleeps; where all are awake the first to look takes the request. */
static void notify_one(struct local *local, unsigned number, uint32_t first) {
    const struct dm_node_state *state = &local->fabric->nodes[number];
    for (unsigned i = 0; i < state->thread_count; i++) {
        struct dm_thread *thread = state->threads[(first + i) % state->thread_count];
        if (local_thread_notify((struct local_thread *)thread)) {
            return;
        }
    }
}

int local_call(struct dm_ctx *base, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
               uint32_t *resp_len) {
    struct local *local = local_of(base->fabric);
    struct local_ctx *ctx = (struct local_ctx *)base;
    DM_TRY(serving_ensure(local, node));
    struct local_call call = {.caller = ctx,
                              .method = &base->fabric->nodes[node].methods[method],
                              .req = req,
                              .req_len = req_len,
                              .resp = resp,
                              .resp_len = resp_len};
    ctx->request = &call;
    queue_add(&local->nodes[node], &call);
    notify_one(local, node, base->thread->index);
    local_suspend(ctx, LOCAL_CALLING);
    ctx->request = NULL;
    return call.rc;
}
