/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: a request crosses the fabric, waits for a core of the called node, runs the handler as a context there, and
 * the response crosses back. Handler contexts are kept and reused; requests beyond their number queue.
 */
#include "transport/sim/sim.h"

enum { SIM_HANDLERS_MAX = 256 };

/* The core that is free first, as with one shared queue in front of all cores. */
static struct dm_thread *least_busy(struct dm_fabric *fabric, unsigned node) {
    struct dm_node_state *state = &fabric->nodes[node];
    struct dm_thread *best = state->threads[0];
    for (unsigned i = 1; i < state->thread_count; i++) {
        if (((struct sim_thread *)state->threads[i])->clock < ((struct sim_thread *)best)->clock) {
            best = state->threads[i];
        }
    }
    return best;
}

static void charge(struct sim_ctx *ctx, uint64_t work) {
    struct sim_thread *thread = sim_thread_of(ctx);
    thread->clock += work;
    thread->busy += work;
}

void sim_handler_assign(struct sim *sim, struct sim_ctx *handler, struct sim_call *call) {
    handler->job = call;
    handler->base.thread = least_busy(sim->fabric, call->node);
    sim_ready(sim, handler);
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
    charge(ctx, sim->costs.call_send);
    struct sim_op *op = sim_op_new(sim);
    if (!op) {
        sim->out_of_memory = true;
        return;
    }
    op->call = call;
    op->kind = DM_VERB_CALL;
    op->len = *call->resp_len;
    op->life = sim->nodes[call->node].life;
    sim_schedule(sim, op, SIM_RESPOND, sim_thread_of(ctx)->clock);
}

/* The body of a handler context: one job after another. */
static void handler_entry(struct dm_ctx *base, void *arg) {
    struct sim *sim = arg;
    struct sim_ctx *ctx = (struct sim_ctx *)base;
    struct sim_node *node = &sim->nodes[base->node];
    for (;;) {
        struct sim_call *call = ctx->job;
        charge(ctx, call->is_setup ? 0 : sim->costs.call_receive);
        if (dm_likely(!base->gone)) {
            call->rc =
                call->method->handler(base, call->method->arg, call->req, call->req_len, call->resp, call->resp_len);
        }
        answer(sim, ctx, call);
        ctx->job = NULL;
        if (dm_unlikely(base->gone)) {
            return;
        }
        if (node->queue_head) {
            struct sim_call *next = node->queue_head;
            node->queue_head = next->next;
            ctx->job = next;
            continue;
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

/* An idle one or a new one; NULL when out of memory. */
struct sim_ctx *sim_handler_get(struct sim *sim, unsigned which) {
    struct sim_node *node = &sim->nodes[which];
    struct sim_ctx *handler = node->idle_handlers;
    if (handler) {
        node->idle_handlers = handler->idle_next;
        return handler;
    }
    handler = handler_new(sim, which);
    node->handler_count += handler != NULL;
    return handler;
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
    sim->nodes[op->from].nic.outstanding--;
    sim_op_free(sim, op);
    bool can_serve = !node->starts && (node->handler_count < SIM_HANDLERS_MAX || node->idle_handlers);
    struct sim_ctx *handler = can_serve ? sim_handler_get(sim, call->node) : NULL;
    if (handler) {
        sim_handler_assign(sim, handler, call);
        return;
    }
    if (node->handler_count == 0 && !node->starts) {
        sim->out_of_memory = true;
        return;
    }
    call->next = NULL;
    *(node->queue_head ? &node->queue_tail->next : &node->queue_head) = call;
    node->queue_tail = call;
}

void sim_respond(struct sim *sim, struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    struct sim_call *call = op->call;
    struct sim_nic *nic = &sim->nodes[call->node].nic;
    struct sim_nic *requester = &sim->nodes[call->caller->base.node].nic;
    op->ctx = call->caller;
    op->thread = sim_thread_of(call->caller);
    op->from = (uint8_t)call->caller->base.node;
    op->wait = true;
    op->status = (int16_t)call->status;
    if (dm_unlikely(dm_is_traced(sim->fabric))) {
        sim_trace_call(sim, call, true);
    }
    requester->outstanding++; /* taken back by the completion */
    if (dm_unlikely(sim_is_lost(sim, op, call->node))) {
        sim_lose(sim, op);
        return;
    }
    uint64_t wire = sim_response_time(costs, DM_VERB_CALL, op->len), at = sim->now + costs->mmio;
    if (op->len > costs->max_inline) {
        at = sim_serve(&nic->pcie_out, at, sim_pcie_time(costs, op->len)) + costs->payload_fetch;
    }
    at = sim_pipeline(&nic->tx, at, costs->tx_write) + costs->nic_fixed;
    at = sim_serve(&nic->out, at, wire) + costs->propagation;
    at = sim_receive(&requester->in, at, wire);
    sim_schedule(sim, op, SIM_COMPLETE, at + costs->nic_fixed + costs->pcie_write);
}

/* In the set-up phase a handler context serves the call at once and at no cost. */
static int call_now(struct sim *sim, struct sim_call *call) {
    struct sim_ctx *handler = sim_handler_get(sim, call->node);
    if (!handler) {
        return DM_ERR_NO_MEMORY;
    }
    call->is_setup = true;
    sim_handler_assign(sim, handler, call);
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
    charge(ctx, sim->costs.post + sim->costs.doorbell);
    ctx->pending = 1;
    ctx->completions++;
    sim_transmit(sim, op, op->thread->clock + sim->costs.mmio);
    DM_TRY(sim_suspend(ctx));
    return call.rc;
}
