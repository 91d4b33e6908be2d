/* SPDX-License-Identifier: Apache-2.0
 *
 * Posting: a batch of a context becomes a chain of requests for each destination, and the core rings one doorbell for
 * each chain. In the set-up phase a batch acts on memory at once.
 */
#include <string.h>

#include "transport/sim/sim.h"

/* While the loop does not look ahead, because the verb will act soon. */
static void prefetch_target(struct sim *sim, const struct dm_verb *verb) {
    const struct sim_bytes *bytes = &sim_memory_at(sim, verb->addr)->bytes;
    if (!bytes->pages) {
        dm_prefetch_lines(bytes->mapping.base + dm_addr_offset(verb->addr), verb->len < 1024 ? verb->len : 1024);
    }
}

static struct sim_op *op_of_verb(struct sim *sim, struct sim_ctx *ctx, const struct dm_verb *verb, bool wait) {
    struct sim_op *op = sim_op_new(sim);
    if (!op) {
        return NULL;
    }
    op->kind = verb->kind;
    op->len = verb->len;
    op->addr = verb->addr;
    op->ctx = ctx;
    op->thread = sim_thread_of(ctx);
    op->wait = wait;
    op->from = (uint8_t)ctx->base.node;
    op->life = sim->nodes[dm_addr_node(verb->addr)].life;
    op->unit = op->thread->unit;
    op->nic = op->thread->nic;
    if (verb->kind == DM_VERB_WRITE) {
        op->payload = sim_payload_new(sim, verb->len);
        if (!op->payload) {
            sim_op_free(sim, op);
            return NULL;
        }
        memcpy(op->payload, verb->src, verb->len);
    } else {
        op->dst = verb->dst;
        if (verb->kind != DM_VERB_READ) {
            op->op = verb->op;
        }
    }
    /* Behind a read or atomic of its context that has not completed, a write or atomic needs the fence; a read does
     * not. */
    struct sim_lane *lane = &ctx->lanes[dm_addr_node(verb->addr)];
    op->fence = verb->kind != DM_VERB_READ && lane->reads_atomics > 0;
    lane->reads_atomics += op->kind != DM_VERB_WRITE;
    if (sim->wheel.count <= SIM_FEW_EVENTS) {
        prefetch_target(sim, verb);
    }
    return op;
}

/* In the set-up phase and while untimed: at once, in order, at no cost. */
static int commit_now(struct sim *sim, struct dm_ctx *ctx) {
    for (uint32_t i = 0; i < ctx->batch_count; i++) {
        const struct dm_verb *verb = &ctx->batch[i];
        if (sim->now >= sim->nodes[dm_addr_node(verb->addr)].failed_at) {
            return DM_ERR_PEER;
        }
        struct sim_memory *memory = sim_memory_at(sim, verb->addr);
        uint64_t offset = dm_addr_offset(verb->addr);
        if (verb->kind == DM_VERB_READ) {
            sim_bytes_read(&memory->bytes, offset, verb->dst, verb->len);
        } else if (verb->kind == DM_VERB_WRITE) {
            sim_bytes_write(&memory->bytes, offset, verb->src, verb->len);
        } else {
            struct sim_op op = {.kind = verb->kind, .addr = verb->addr, .dst = verb->dst, .op = verb->op, .len = 8};
            sim_memory_atomic(sim, memory, &op);
        }
    }
    return 0;
}

/* A verb that fails also fails those behind it on its queue pair. `broken` has a bit for each node of the batch for
 * which that happened. */
static void apply_fate(struct sim_op *op, struct sim_fate fate, uint64_t *broken) {
    unsigned node = dm_addr_node(op->addr);
    uint64_t bit = UINT64_C(1) << node % 64;
    bool flushed = broken[node / 64] & bit;
    if (flushed || fate.fails) {
        op->status = DM_ERR_IO;
        op->no_effect = flushed || !fate.lands;
        broken[node / 64] |= bit;
    }
    op->delayed = fate.delay_ns > 0;
    op->delay = fate.delay_ns * 1000;
}

struct sim_fate sim_draw_fate(struct sim *sim, struct sim_ctx *ctx, enum dm_verb_kind kind, unsigned node) {
    return sim_faults_draw(&sim->faults, ctx->client, ++ctx->verbs_begun, kind, node);
}

void sim_obey_stop(struct sim *sim, struct sim_ctx *ctx, struct sim_fate *fate) {
    bool is_due = ctx->stop_due || (fate->stops && fate->stop_ns == 0);
    if (is_due && ctx->in_own_call) {
        /* Other contexts of its thread wait for the result of a call of the transport. */
        ctx->stop_due = true;
        fate->stops = false;
    } else if (is_due) {
        ctx->dead = true;
        ctx->lingers = ctx->pending > 0;
        sim->async += ctx->lingers;
        sim->foreground -= !ctx->base.background;
        if (dm_is_traced(sim->fabric)) {
            dm_trace_wait(&ctx->base, DM_TRACE_STOP, sim_now(&ctx->base), DM_ERR_STOPPED);
        }
        sim_suspend(ctx);
    } else if (fate->stops) {
        /* Verbs already sent may complete meanwhile: they must not wake it, and their status is kept. */
        ctx->pending++;
        uint64_t since_ns = sim_now(&ctx->base);
        int rc = sim_sleep(&ctx->base, fate->stop_ns);
        if (dm_is_traced(sim->fabric)) {
            dm_trace_wait(&ctx->base, DM_TRACE_STOP, since_ns, rc);
        }
        ctx->pending--;
        ctx->status = ctx->status ? ctx->status : rc;
    }
}

/* Rings the doorbells of the chains that the first `count` verbs of the batch are in. */
static void ring_all(struct sim *sim, struct sim_ctx *ctx, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct sim_queue *chain = &ctx->lanes[dm_addr_node(ctx->base.batch[i].addr)].chain;
        if (chain->head) {
            struct sim_op *head = chain->head;
            chain->head = NULL;
            sim_ring_doorbell(sim, head);
        }
    }
}

/* What the fault rules do to verb i of the batch; the context may stop here. */
static struct sim_fate meet_fate(struct sim *sim, struct sim_ctx *ctx, uint32_t i) {
    const struct dm_verb *verb = &ctx->base.batch[i];
    struct sim_fate fate = sim_draw_fate(sim, ctx, verb->kind, dm_addr_node(verb->addr));
    if (fate.stops || ctx->stop_due) {
        ring_all(sim, ctx, i);
        sim_obey_stop(sim, ctx, &fate);
    }
    return fate;
}

static int commit_untimed(struct sim *sim, struct sim_ctx *ctx, bool wait) {
    DM_TRY(wait ? sim_untimed_before(sim, ctx) : 0);
    DM_TRY(commit_now(sim, &ctx->base));
    return wait ? sim_untimed_after(sim, ctx) : 0;
}

int sim_commit(struct dm_ctx *base, bool wait) {
    struct sim_ctx *ctx = (struct sim_ctx *)base;
    struct sim *sim = sim_of(base->fabric);
    if (!base->fabric->measuring) {
        return commit_now(sim, base);
    }
    if (dm_unlikely(sim->is_untimed)) {
        return commit_untimed(sim, ctx, wait);
    }
    bool is_sampled = sim->is_sampled && wait;
    if (dm_unlikely(is_sampled)) {
        sim_sample_post(sim, ctx);
    }
    uint64_t broken[4] = {0};
    for (uint32_t i = 0; i < base->batch_count; i++) {
        struct sim_fate fate = {0};
        if (dm_unlikely(sim->faults.count > 0)) {
            fate = meet_fate(sim, ctx, i);
        }
        struct sim_op *op = op_of_verb(sim, ctx, &base->batch[i], wait);
        if (!op) {
            sim->out_of_memory = true;
            return DM_ERR_NO_MEMORY;
        }
        if (dm_unlikely(sim->faults.count > 0)) {
            apply_fate(op, fate, broken);
        }
        if (dm_unlikely(dm_is_traced(base->fabric))) {
            sim_trace_post(sim, op);
        }
        struct sim_queue *chain = &ctx->lanes[dm_addr_node(op->addr)].chain;
        ctx->completions += wait && !chain->head;
        sim_queue_push(chain, op);
        sim_work(op->thread, sim->costs.post);
        ctx->pending += wait;
        sim->async += !wait;
    }
    ring_all(sim, ctx, base->batch_count);
    if (dm_unlikely(wait && ctx->pending == 0)) {
        /* All completed while a fault stopped the client in the middle of the batch. */
        int status = ctx->status;
        ctx->status = 0;
        return status;
    }
    int rc = wait ? sim_suspend(ctx) : 0;
    if (dm_unlikely(is_sampled)) {
        sim_sample_complete(sim, ctx);
    }
    return rc;
}
