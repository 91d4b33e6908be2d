/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts and the cores that they run on: which one runs next, how it waits, and what its work costs. A context that
 * waits runs the event loop (loop.c) on its own stack, so that a context which is itself next needs no switch.
 */
#include <stdlib.h>

#include "common/aligned.h"
#include "transport/sim/sim.h"

#define SIM_SLICE_PS UINT64_C(10000000) /* background work runs in slices of 10 us, then others get the core */

/* ---- ready contexts --------------------------------------------------------------------------------------------- */

void sim_kick_later(struct sim *sim, struct sim_thread *thread) {
    if (thread->kick_pending || !(thread->ready_head || sim->nodes[thread->base.node].queue.head)) {
        return;
    }
    struct sim_op *op = sim_op_new(sim);
    if (!op) {
        sim->out_of_memory = true;
        return;
    }
    op->thread = thread;
    thread->kick_pending = true;
    sim_schedule(sim, op, SIM_KICK, thread->clock > sim->now ? thread->clock : sim->now);
}

void sim_ready(struct sim *sim, struct sim_ctx *ctx) {
    struct sim_thread *thread = sim_thread_of(ctx);
    if (dm_unlikely(ctx->dead)) {
        return;
    }
    ctx->ready_at = sim->now;
    if (!sim->current && !thread->ready_head && thread->clock <= sim->now && !sim_is_behind_call(sim, thread, ctx)) {
        sim->current = ctx;
        return;
    }
    ctx->ready_next = NULL;
    *(thread->ready_head ? &thread->ready_tail->ready_next : &thread->ready_head) = ctx;
    thread->ready_tail = ctx;
    sim_kick_later(sim, thread);
}

static int wake_at(struct sim *sim, struct sim_ctx *ctx, uint64_t at) {
    struct sim_op *op = sim_op_new(sim);
    if (!op) {
        sim->out_of_memory = true;
        return DM_ERR_NO_MEMORY;
    }
    op->ctx = ctx;
    sim_schedule(sim, op, SIM_WAKE, at);
    return 0;
}

int sim_suspend(struct sim_ctx *ctx) {
    struct sim *sim = sim_of(ctx->base.fabric);
    sim_kick_later(sim, sim_thread_of(ctx));
    struct sim_ctx *next = sim->next(sim);
    if (next != ctx) {
        dm_coro_switch(&ctx->base.coro, next ? &next->base.coro : &sim->main);
    }
    int status = ctx->status;
    ctx->status = 0;
    return ctx->base.gone ? DM_ERR_STOPPED : status;
}

/* ---- contexts --------------------------------------------------------------------------------------------------- */

static void context_main(void *arg) {
    struct sim_ctx *ctx = arg;
    struct sim *sim = sim_of(ctx->base.fabric);
    ctx->status = 0; /* a stop before the start shows at the first verb */
    ctx->base.entry(&ctx->base, ctx->base.arg);
    ctx->base.done = true;
    sim->foreground -= !ctx->base.background;
    sim->nodes[ctx->base.node].unwinding -= ctx->base.gone;
    sim_suspend(ctx);
}

static int lanes_make(struct sim_ctx *ctx, unsigned memory_nodes) {
    ctx->lanes = dm_aligned_new(memory_nodes, sizeof(*ctx->lanes));
    return ctx->lanes ? 0 : DM_ERR_NO_MEMORY;
}

int sim_ctx_prepare(struct sim *sim, struct sim_ctx *ctx) {
    DM_TRY(lanes_make(ctx, sim->memory_nodes));
    return dm_coro_init(&ctx->base.coro, DM_STACK_BYTES, context_main, ctx);
}

void sim_ctx_start(struct sim *sim, struct sim_ctx *ctx) {
    ctx->base.parked = true;
    if (sim_ctx_prepare(sim, ctx) < 0 || wake_at(sim, ctx, sim->now) < 0) {
        sim->out_of_memory = true;
        return;
    }
    sim->foreground += !ctx->base.background;
}

/* ---- waiting, time and work ------------------------------------------------------------------------------------- */

int sim_park(struct dm_ctx *base) {
    if (base->fabric->stop) {
        return DM_ERR_STOPPED;
    }
    base->parked = true;
    return sim_suspend((struct sim_ctx *)base);
}

static uint64_t context_clock(const struct dm_ctx *base) {
    const struct sim *sim = sim_of(base->fabric);
    uint64_t clock = ((const struct sim_thread *)base->thread)->clock;
    return clock > sim->now ? clock : sim->now;
}

void sim_wake(struct dm_ctx *waker, struct dm_ctx *target) {
    wake_at(sim_of(waker->fabric), (struct sim_ctx *)target, context_clock(waker));
}

int sim_sleep_until(struct sim_ctx *ctx, uint64_t at) {
    ctx->base.parked = true;
    DM_TRY(wake_at(sim_of(ctx->base.fabric), ctx, at));
    return sim_suspend(ctx);
}

int sim_sleep(struct dm_ctx *base, uint64_t ns) {
    return sim_sleep_until((struct sim_ctx *)base, context_clock(base) + ns * 1000);
}

uint64_t sim_now(struct dm_ctx *base) {
    return (context_clock(base) - sim_of(base->fabric)->base) / 1000;
}

/* Of background contexts. */
static DM_NO_INLINE void work_in_slices(struct sim_ctx *ctx, uint64_t cost) {
    struct sim_thread *thread = sim_thread_of(ctx);
    while (cost > 0) {
        uint64_t part = SIM_SLICE_PS - ctx->slice < cost ? SIM_SLICE_PS - ctx->slice : cost;
        sim_work(thread, part);
        ctx->slice += part;
        cost -= part;
        if (ctx->slice == SIM_SLICE_PS) {
            ctx->slice = 0;
            if (sim_sleep(&ctx->base, 0) < 0) {
                return;
            }
        }
    }
}

static inline void charge_ps(struct sim_ctx *ctx, uint64_t cost) {
    bool is_client = !ctx->base.background;
    if (dm_unlikely(is_client && sim_of(ctx->base.fabric)->is_untimed)) {
        return;
    }
    if (dm_likely(is_client || ctx->job)) {
        sim_work(sim_thread_of(ctx), cost);
    } else {
        work_in_slices(ctx, cost);
    }
}

void sim_charge(struct dm_ctx *base, enum dm_work work, uint32_t units) {
    if (base->fabric->measuring) {
        charge_ps((struct sim_ctx *)base, dm_work_ps(&sim_of(base->fabric)->costs.work, work, units));
    }
}

void sim_charge_access(struct dm_ctx *base, uint32_t count, uint64_t bytes) {
    if (base->fabric->measuring) {
        charge_ps((struct sim_ctx *)base, dm_work_access_ps(&sim_of(base->fabric)->costs.work, count, bytes));
    }
}
