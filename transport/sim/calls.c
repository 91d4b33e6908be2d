/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: a request crosses the fabric, waits for a core of the called node, runs the handler as a context there, and
 * the response crosses back. Handler contexts are kept and reused; requests beyond their number queue.
 */
#include "transport/sim/sim.h"

enum { SIM_HANDLERS_MAX = 256 };

/* The core that is free first, of those that serve calls. */
static struct sim_thread *least_busy(const struct sim *sim, unsigned node) {
    const struct dm_node_state *state = &sim->fabric->nodes[node];
    struct sim_thread *best = (struct sim_thread *)state->threads[0];
    for (unsigned i = 1; i < dm_call_threads(state); i++) {
        struct sim_thread *thread = (struct sim_thread *)state->threads[i];
        best = thread->clock < best->clock ? thread : best;
    }
    return best;
}

void sim_call_lose(struct sim *sim, struct sim_call *call) {
    if (call->is_setup) {
        call->rc = DM_ERR_PEER;
        sim_ready(sim, call->caller);
        return;
    }
    struct sim_op *op = sim_op_new(sim);
    if (!op) {
        sim->out_of_memory = true;
        return;
    }
    op->kind = DM_VERB_CALL;
    op->len = 0;
    op->call = call;
    op->life = sim->nodes[call->node].life;
    sim_respond(sim, op);
}

static void answer(struct sim *sim, struct sim_ctx *ctx, struct sim_call *call) {
    if (dm_unlikely(ctx->base.gone)) {
        sim_call_lose(sim, call);
        return;
    }
    if (call->is_setup) {
        sim_ready(sim, call->caller);
        return;
    }
    sim_work(sim_thread_of(ctx), sim->costs.call_send);
    struct sim_op *op = sim_op_new(sim);
    if (!op) {
        sim->out_of_memory = true;
        return;
    }
    op->call = call;
    op->kind = DM_VERB_CALL;
    op->len = *call->resp_len;
    op->life = sim->nodes[call->node].life;
    op->nic = sim_thread_of(call->caller)->nic;
    sim_schedule(sim, op, SIM_RESPOND, sim_thread_of(ctx)->clock + sim->costs.mmio + sim->costs.nic_fixed);
}

/* The body of a handler context: one job after another. */
static void handler_entry(struct dm_ctx *base, void *arg) {
    struct sim *sim = arg;
    struct sim_ctx *ctx = (struct sim_ctx *)base;
    struct sim_node *node = &sim->nodes[base->node];
    for (;;) {
        struct sim_call *call = ctx->job;
        sim_work(sim_thread_of(ctx), call->is_setup ? 0 : sim->costs.call_receive);
        if (dm_likely(!base->gone)) {
            call->rc =
                call->method->handler(base, call->method->arg, call->req, call->req_len, call->resp, call->resp_len);
        }
        answer(sim, ctx, call);
        ctx->job = NULL;
        if (dm_unlikely(base->gone)) {
            return;
        }
        ctx->idle_next = node->idle_handlers;
        node->idle_handlers = ctx;
        sim_suspend(ctx);
    }
}

static struct sim_ctx *handler_new(struct sim *sim, unsigned node) {
    struct sim_ctx *ctx = (struct sim_ctx *)dm_ctx_new(sim->fabric, node, 0, handler_entry, sim, true);
    if (!ctx || sim_ctx_prepare(sim, ctx) < 0) {
        return NULL;
    }
    ctx->client = SIM_ANY;
    return ctx;
}

/* An idle one or a new one; NULL when there are as many as there may be, or when out of memory. */
static struct sim_ctx *handler_get(struct sim *sim, unsigned which) {
    struct sim_node *node = &sim->nodes[which];
    struct sim_ctx *handler = node->idle_handlers;
    if (handler) {
        node->idle_handlers = handler->idle_next;
        return handler;
    }
    if (node->handler_count == SIM_HANDLERS_MAX) {
        return NULL;
    }
    handler = handler_new(sim, which);
    node->handler_count += handler != NULL;
    sim->out_of_memory = sim->out_of_memory || !handler;
    return handler;
}

static void assign(struct sim_ctx *handler, struct sim_call *call, struct sim_thread *thread) {
    handler->job = call;
    handler->base.thread = &thread->base;
}

struct sim_ctx *sim_next_call(struct sim *sim, struct sim_thread *thread) {
    struct sim_node *node = &sim->nodes[thread->base.node];
    struct sim_ctx *handler = sim_has_call(sim, thread) ? handler_get(sim, thread->base.node) : NULL;
    if (!handler) {
        return NULL;
    }
    struct sim_call *call = node->queue.head;
    node->queue.head = call->next;
    assign(handler, call, thread);
    /* A call that had to wait for a handler context did not wait for a core. */
    handler->ready_at = node->handler_count < SIM_HANDLERS_MAX ? call->queued_at : sim->now;
    return handler;
}

void sim_kick_cores(struct sim *sim, unsigned node) {
    const struct dm_node_state *state = &sim->fabric->nodes[node];
    for (unsigned i = 0; i < dm_call_threads(state); i++) {
        sim_kick_later(sim, (struct sim_thread *)state->threads[i]);
    }
}

void sim_deliver(struct sim *sim, struct sim_op *op) {
    struct sim_call *call = op->call;
    struct sim_node *node = &sim->nodes[call->node];
    if (dm_unlikely(sim_is_lost(sim, op, call->node))) {
        sim_lose(sim, op);
        return;
    }
    if (dm_unlikely(op->no_effect)) {
        sim_schedule(sim, op, SIM_COMPLETE, sim->now + sim->costs.propagation);
        return;
    }
    call->status = op->status;
    if (dm_unlikely(dm_is_traced(sim->fabric))) {
        sim_trace_call(sim, call, false);
    }
    sim_nic_at(sim, op->from, op)->posted--;
    sim_op_free(sim, op);
    call->queued_at = sim->now;
    call->next = NULL;
    *(node->queue.head ? &node->queue.tail->next : &node->queue.head) = call;
    node->queue.tail = call;
    /* One queue in front of all cores: an idle one takes its first call, otherwise the one that is free first. */
    struct sim_thread *thread = least_busy(sim, call->node);
    bool is_idle = thread->clock <= sim->now && !thread->ready_head && !thread->kick_pending && !sim->current;
    if (is_idle) {
        sim->current = sim_next_call(sim, thread);
    } else {
        sim_kick_cores(sim, call->node);
    }
}

void sim_respond(struct sim *sim, struct sim_op *op) {
    struct sim_call *call = op->call;
    op->ctx = call->caller;
    op->thread = sim_thread_of(call->caller);
    op->from = (uint8_t)call->node;
    op->is_response = true;
    op->wait = true;
    op->next = NULL;
    op->status = (int16_t)call->status;
    if (dm_unlikely(dm_is_traced(sim->fabric))) {
        sim_trace_call(sim, call, true);
    }
    sim_nic_at(sim, op->from, op)->posted++; /* taken back by the completion */
    if (dm_unlikely(sim_is_lost(sim, op, call->node))) {
        sim_lose(sim, op);
        return;
    }
    sim_issue(sim, op);
}

/* In the set-up phase a handler context serves the call at once and at no cost. */
static int call_now(struct sim *sim, struct sim_call *call) {
    struct sim_ctx *handler = handler_get(sim, call->node);
    if (!handler) {
        return DM_ERR_NO_MEMORY;
    }
    call->is_setup = true;
    assign(handler, call, least_busy(sim, call->node));
    sim_ready(sim, handler);
    DM_TRY(sim_suspend(call->caller));
    return call->rc;
}

int sim_call(struct dm_ctx *base, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
             uint32_t *resp_len) {
    struct sim_ctx *ctx = (struct sim_ctx *)base;
    struct sim *sim = sim_of(base->fabric);
    struct sim_call call = {.caller = ctx,
                            .node = node,
                            .method = &base->fabric->nodes[node].methods[method],
                            .req = req,
                            .req_len = req_len,
                            .resp = resp,
                            .resp_len = resp_len};
    if (!base->fabric->measuring) {
        return sim->now >= sim->nodes[node].failed_at ? DM_ERR_PEER : call_now(sim, &call);
    }
    struct sim_fate fate = {0};
    if (dm_unlikely(sim->faults.count > 0)) {
        ctx->in_own_call = method < DM_METHOD_FIRST;
        fate = sim_draw_fate(sim, ctx, DM_VERB_CALL, node);
        sim_obey_stop(sim, ctx, &fate);
        ctx->in_own_call = false;
    }
    struct sim_op *op = sim_op_new(sim);
    if (!op) {
        return DM_ERR_NO_MEMORY;
    }
    op->call = &call;
    op->kind = DM_VERB_CALL;
    op->len = req_len;
    op->ctx = ctx;
    op->thread = sim_thread_of(ctx);
    op->from = (uint8_t)base->node;
    op->life = sim->nodes[node].life;
    op->wait = true;
    op->status = fate.fails ? DM_ERR_IO : 0;
    op->no_effect = fate.fails && !fate.lands;
    op->delayed = fate.delay_ns > 0;
    op->delay = fate.delay_ns * 1000;
    op->next = NULL;
    op->nic = op->thread->nic;
    sim_work(sim_thread_of(ctx), sim->costs.post);
    ctx->pending = 1;
    ctx->completions++;
    sim_ring_doorbell(sim, op);
    DM_TRY(sim_suspend(ctx));
    return call.rc;
}
