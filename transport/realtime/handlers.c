/* SPDX-License-Identifier: Apache-2.0
 *
 * The contexts that serve calls. A handler context lives as long as its thread and serves one job after another; a
 * thread makes a new one when all others are busy, up to a limit.
 */
#include "transport/realtime/realtime.h"

/* The body of a handler context: one job after another. */
static void handler_entry(struct dm_ctx *base, void *arg) {
    (void)arg;
    struct rt_ctx *ctx = (struct rt_ctx *)base;
    struct rt_thread *thread = rt_thread_of(ctx);
    for (;;) {
        struct rt_job *job = ctx->job;
        int rc = job->method->handler(base, job->method->arg, job->req, job->req_len, job->resp, job->resp_len);
        job->answer(job, base, rc);
        ctx->job = NULL;
        ctx->next = thread->idle_handlers;
        thread->idle_handlers = ctx;
        rt_suspend(ctx, RT_IDLE);
    }
}

static struct rt_ctx *handler_new(struct rt_thread *thread) {
    struct rt_ctx *ctx = (struct rt_ctx *)dm_ctx_new(thread->base.fabric, thread->base.node, thread->base.index,
                                                     handler_entry, NULL, true);
    if (!ctx || rt_ctx_prepare(ctx) < 0) {
        return NULL;
    }
    ctx->thread_next = thread->contexts;
    thread->contexts = ctx;
    thread->handler_count++;
    return ctx;
}

void rt_serve(struct rt_thread *thread, struct rt_job *job) {
    if (thread->base.fabric->stop) {
        job->answer(job, NULL, DM_ERR_STOPPED);
        return;
    }
    struct rt_ctx *handler = thread->idle_handlers;
    if (handler) {
        thread->idle_handlers = handler->next;
    } else {
        handler = handler_new(thread);
    }
    if (!handler) {
        job->answer(job, NULL, DM_ERR_NO_MEMORY);
        return;
    }
    handler->job = job;
    rt_ready(thread, handler, 0);
}
