/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that fail, and nodes that come back.
 */
#include "transport/sim/sim.h"

/* The node fails for good: the context never runs again. */
static void context_end(struct sim *sim, struct sim_ctx *ctx) {
    ctx->dead = true;
    if (ctx->job) {
        sim_call_lose(sim, ctx->job);
        ctx->job = NULL;
    }
}

/* The node will come back: the context is woken, unless it waits for verbs in flight, which use its buffers. From now
 * on all its waits fail. */
static void context_unwind(struct sim *sim, struct sim_ctx *ctx) {
    ctx->base.gone = true;
    if (ctx->lanes == NULL) {
        ctx->dead = true; /* made in the set-up phase for the measured phase: it never started */
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
        sim_op_free(sim, op); /* it has failed already */
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
    for (struct sim_call *call = node->queue.head, *next; call; call = next) {
        next = call->next;
        sim_call_lose(sim, call);
    }
    node->queue.head = NULL;
    if (comes_back) {
        sim_schedule(sim, op, SIM_RESTART, sim->now + op->delay);
    } else {
        sim_op_free(sim, op);
    }
}

/* The first context of a node that came back. Calls are served as soon as it waits for the first time. */
static void restart_main(struct dm_ctx *base, void *arg) {
    struct sim *sim = arg;
    struct sim_node *node = &sim->nodes[base->node];
    const struct dm_node_state *state = &sim->fabric->nodes[base->node];
    node->starts = false;
    sim_kick_cores(sim, base->node); /* calls that came meanwhile */
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
