/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: a request crosses the fabric, waits for a core of the called node, runs the handler as a context there, and
 * the response crosses back. Handler contexts are kept and used again; requests beyond their number wait in order.
 */
#include "transport/sim/sim.h"

enum { SIM_HANDLERS_MAX = 256 };

/* The core that is free first: what one shared queue in front of all cores does. */
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

static void assign(struct sim *sim, struct sim_ctx *handler, struct sim_call *call) {
    handler->job = call;
    handler->base.thread = least_busy(sim->fabric, call->node);
    sim_ready(sim, handler);
}

/* The caller of a request that no handler will answer. */
static void lose_call(struct sim *sim, struct sim_call *call) {
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
        lose_call(sim, call);
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

/* A handler context's whole life: job after job. */
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
static struct sim_ctx *handler_get(struct sim *sim, unsigned which) {
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
    bool has_room = !node->starts && (node->handler_count < SIM_HANDLERS_MAX || node->idle_handlers);
    struct sim_ctx *handler = has_room ? handler_get(sim, call->node) : NULL;
    if (handler) {
        assign(sim, handler, call);
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

/* ---- failed nodes ------------------------------------------------------------------------------------------------ */

/* The node fails for good: the context never goes on. */
static void context_end(struct sim *sim, struct sim_ctx *ctx) {
    ctx->dead = true;
    if (ctx->job) {
        lose_call(sim, ctx->job);
        ctx->job = NULL;
    }
}

/* The node will be back: the context is woken from whatever it waits for, other than verbs under way, whose memory it
 * holds; all its waits end from now on. */
static void context_unwind(struct sim *sim, struct sim_ctx *ctx) {
    ctx->base.gone = true;
    if (ctx->lanes == NULL) {
        ctx->dead = true; /* made in the set-up phase, for the measured one: it has not begun, and never will */
        return;
    }
    sim->nodes[ctx->base.node].unwinding++;
    if (ctx->base.parked) {
        ctx->base.parked = false;
        sim_ready(sim, ctx);
    }
}

void sim_node_fail(struct sim *sim, struct sim_op *op) {
    unsigned which = dm_addr_node(op->addr);
    struct sim_node *node = &sim->nodes[which];
    bool comes_back = op->delay > 0;
    if (sim->now >= node->failed_at) {
        sim_op_free(sim, op); /* it is away already */
        return;
    }
    node->failed_at = sim->now;
    for (struct sim_ctx *idle = node->idle_handlers; idle; idle = idle->idle_next) {
        idle->dead = true;
    }
    node->idle_handlers = NULL;
    node->handler_count = 0;
    for (struct dm_ctx *base = sim->fabric->contexts; base; base = base->all_next) {
        struct sim_ctx *ctx = (struct sim_ctx *)base;
        /* A foreground context there is not part of the node. */
        if (base->node != which || !base->background || base->done || base->gone || ctx->dead) {
            continue;
        }
        if (comes_back) {
            context_unwind(sim, ctx);
        } else {
            context_end(sim, ctx);
        }
    }
    for (struct sim_call *call = node->queue_head, *next; call; call = next) {
        next = call->next;
        lose_call(sim, call);
    }
    node->queue_head = NULL;
    if (comes_back) {
        sim_schedule(sim, op, SIM_RESTART, sim->now + op->delay);
    } else {
        sim_op_free(sim, op);
    }
}

/* The first context of a node that is back: from its first wait on calls are served. */
static void restart_main(struct dm_ctx *base, void *arg) {
    struct sim *sim = arg;
    struct sim_node *node = &sim->nodes[base->node];
    const struct dm_node_state *state = &sim->fabric->nodes[base->node];
    node->starts = false;
    struct sim_call *call = node->queue_head;
    node->queue_head = NULL;
    while (call) {
        struct sim_call *next = call->next;
        struct sim_ctx *handler = handler_get(sim, base->node);
        if (handler) {
            assign(sim, handler, call);
        } else {
            sim->out_of_memory = true;
        }
        call = next;
    }
    if (state->restart) {
        state->restart(base, state->restart_arg);
    }
}

void sim_node_restart(struct sim *sim, struct sim_op *op) {
    enum { LATER_PS = 1000000 };
    unsigned which = dm_addr_node(op->addr);
    struct sim_node *node = &sim->nodes[which];
    if (node->unwinding > 0) {
        sim_schedule(sim, op, SIM_RESTART, sim->now + LATER_PS);
        return;
    }
    sim_op_free(sim, op);
    sim_memory_clear(&node->dram);
    sim_memory_clear(&node->chip);
    dm_node_forget(sim->fabric, which);
    node->failed_at = SIM_NEVER;
    node->life++;
    struct sim_ctx *first = (struct sim_ctx *)dm_ctx_new(sim->fabric, which, 0, restart_main, sim, true);
    if (!first) {
        sim->out_of_memory = true;
        return;
    }
    node->starts = true;
    first->client = SIM_ANY;
    sim_ctx_start(sim, first);
}

/* The set-up phase: a handler context as ever, but at once and at no cost. */
static int call_now(struct sim *sim, struct sim_call *call) {
    struct sim_ctx *handler = handler_get(sim, call->node);
    if (!handler) {
        return DM_ERR_NO_MEMORY;
    }
    call->is_setup = true;
    assign(sim, handler, call);
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
        fate = sim_meet_fate(sim, ctx, DM_VERB_CALL, node);
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
