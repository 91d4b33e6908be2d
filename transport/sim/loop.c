/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop: it takes the earliest event and lets it act; when a context became ready and its core is free, that
 * context runs next. The loop calls every kind of event directly; the files below reach it only through sim->next.
 */
#include "transport/sim/sim.h"

static void on_wake(struct sim *sim, struct sim_op *op) {
    struct sim_ctx *ctx = op->ctx;
    sim_op_free(sim, op);
    if (ctx->base.parked) { /* otherwise a stop has woken it before */
        ctx->base.parked = false;
        sim_ready(sim, ctx);
    }
}

/* The core takes its next ready context, or else a call that no core has taken yet. */
static void on_kick(struct sim *sim, struct sim_op *op) {
    struct sim_thread *thread = op->thread;
    sim_op_free(sim, op);
    thread->kick_pending = false;
    if (dm_unlikely(thread->clock > sim->now)) {
        sim_kick_later(sim, thread); /* it has got work meanwhile */
        return;
    }
    struct sim_ctx *ctx = thread->ready_head;
    struct sim_ctx *handler = !ctx || sim_is_behind_call(sim, thread, ctx) ? sim_next_call(sim, thread) : NULL;
    if (handler || !ctx) {
        ctx = handler;
    } else {
        thread->ready_head = ctx->ready_next;
        ctx->ready_next = NULL;
    }
    sim->current = ctx;
}

static void dispatch(struct sim *sim, struct sim_op *op) {
    switch (op->stage) {
    case SIM_RING:
        sim_ring(sim, op);
        break;
    case SIM_RUNG:
        sim_rung(sim, op);
        break;
    case SIM_ISSUE:
        sim_issue(sim, op);
        break;
    case SIM_FETCHED:
        sim_fetched(sim, op);
        break;
    case SIM_SEND:
        sim_send(sim, op);
        break;
    case SIM_ARRIVE:
        sim_arrive(sim, op);
        break;
    case SIM_ADMIT:
        sim_admit(sim, op);
        break;
    case SIM_EFFECT:
        sim_effect(sim, op);
        break;
    case SIM_RETURN:
        sim_return(sim, op);
        break;
    case SIM_DRAIN:
        sim_drain(sim, op);
        break;
    case SIM_COMPLETE:
        sim_complete(sim, op);
        break;
    case SIM_DELIVER:
        sim_deliver(sim, op);
        break;
    case SIM_RESPOND:
        sim_respond(sim, op);
        break;
    case SIM_FAIL:
        sim_node_fail(sim, op);
        break;
    case SIM_RESTART:
        sim_node_restart(sim, op);
        break;
    case SIM_WAKE:
        on_wake(sim, op);
        break;
    case SIM_KICK:
        on_kick(sim, op);
        break;
    }
}

/* Wakes all contexts that wait for something other than the network, with DM_ERR_STOPPED. */
static void wake_all_stopped(struct sim *sim) {
    sim->stop_seen = true;
    for (struct dm_ctx *ctx = sim->fabric->contexts; ctx; ctx = ctx->all_next) {
        if (ctx->parked) {
            ctx->parked = false;
            ((struct sim_ctx *)ctx)->status = DM_ERR_STOPPED;
            sim_ready(sim, (struct sim_ctx *)ctx);
        }
    }
}

/* Clients pay for a switch where another one ran before; what servers pay for a call has its own costs. */
static uint64_t switch_cost(const struct sim *sim, struct sim_thread *thread, const struct sim_ctx *ctx) {
    bool is_switch = thread->last != ctx && !ctx->job && sim->options->coroutines;
    thread->last = ctx;
    return is_switch ? sim->costs.resume : 0;
}

/* Runs the context on its core once that is free, and charges the completions and the switch. */
static struct sim_ctx *take_up(struct sim *sim, struct sim_ctx *ctx) {
    struct sim_thread *thread = sim_thread_of(ctx);
    uint64_t start = thread->clock > sim->now ? thread->clock : sim->now;
    if (sim->fabric->measuring) {
        uint64_t could = thread->clock > ctx->ready_at ? thread->clock : ctx->ready_at;
        thread->idle_waited += start - could;
        thread->waited += start - ctx->ready_at;
        thread->served++;
    }
    thread->clock = start;
    if (sim->fabric->measuring && !sim->is_untimed) {
        sim_work(thread, switch_cost(sim, thread, ctx) + ctx->completions * sim->costs.completion);
    }
    ctx->completions = 0;
    return ctx;
}

/* ---- data of coming events -------------------------------------------------------------------------------------- */

/* So many slots before its event an operation is fetched, then what it points to, and then what a context will need. */
enum { OPERATIONS_AHEAD = 14, CONTEXTS_AHEAD = 12, STACKS_AHEAD = 10 };

/* Of what is fetched: bytes. */
enum { STACK_BYTES = 768, PAYLOAD_BYTES = 1024, SOME_LANES = 128, SOME_VERBS = 128 };

static void prefetch_range(const void *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += DM_LINE) {
        dm_prefetch_near((const char *)from + at);
    }
}

static bool is_completing(const struct sim_op *op) {
    return op->stage == SIM_RETURN || op->stage == SIM_DRAIN || op->stage == SIM_COMPLETE;
}

static uint32_t payload_bytes(const struct sim_op *op) {
    return op->len < PAYLOAD_BYTES ? op->len : PAYLOAD_BYTES;
}

/* What a verb reads or writes, or the entry that says where that is, and where what it reads goes. */
static void prefetch_payload(struct sim *sim, const struct sim_op *op) {
    const struct sim_bytes *bytes = &sim_memory_at(sim, op->addr)->bytes;
    if (bytes->pages) {
        sim_pages_prefetch(bytes, dm_addr_offset(op->addr));
    } else {
        prefetch_range(bytes->mapping.base + dm_addr_offset(op->addr), payload_bytes(op));
    }
    for (uint32_t at = 0; op->kind == DM_VERB_READ && at < payload_bytes(op); at += DM_LINE) {
        dm_prefetch_write((const char *)op->dst + at);
    }
}

static void prefetch_compressed(struct sim *sim, const struct sim_op *op) {
    const struct sim_bytes *bytes = &sim_memory_at(sim, op->addr)->bytes;
    if (bytes->pages) {
        sim_pages_prefetch_data(bytes, dm_addr_offset(op->addr), payload_bytes(op));
    }
}

/* The top of the stack of a context that is about to continue, and what it uses first. */
static void prefetch_stack(const struct sim_op *op) {
    const struct sim_ctx *ctx = op->ctx;
    prefetch_range(ctx->base.coro.context, STACK_BYTES);
    prefetch_range(ctx->lanes, SOME_LANES);
    dm_prefetch_near(op->thread->qps);
    if (op->kind != DM_VERB_CALL) {
        prefetch_range(ctx->base.batch, SOME_VERBS);
    }
    if (op->kind == DM_VERB_READ) {
        prefetch_range(op->dst, payload_bytes(op));
    }
}

static void prefetch_operation(struct sim *sim, const struct sim_op *op) {
    (void)sim;
    prefetch_range(op, sizeof(*op));
}

static void prefetch_pointed_to(struct sim *sim, const struct sim_op *op) {
    if (is_completing(op)) {
        prefetch_range(op->ctx, offsetof(struct sim_ctx, base.wait_next));
        prefetch_range(&op->ctx->pending, sizeof(*op->ctx) - offsetof(struct sim_ctx, pending));
        dm_prefetch_near(&op->thread->clock);
        dm_prefetch_near(&op->thread->waited);
    } else if (op->stage == SIM_EFFECT) {
        prefetch_payload(sim, op);
    }
}

static void prefetch_needed(struct sim *sim, const struct sim_op *op) {
    if (is_completing(op)) {
        prefetch_stack(op);
    } else if (op->stage == SIM_EFFECT) {
        prefetch_compressed(sim, op);
    }
}

/* One step for each operation of the slot. */
static DM_ALWAYS_INLINE void prefetch_slot(struct sim *sim, uint64_t slot,
                                           void (*step)(struct sim *sim, const struct sim_op *op)) {
    const uint64_t *events;
    uint32_t count = dm_wheel_look(&sim->wheel, slot, &events);
    for (uint32_t i = 0; i < count; i++) {
        step(sim, sim_op_at(sim, dm_wheel_tag(events[i])));
    }
}

/* With many clients the host waits for its memory most of the time, and the wheel knows whose turn comes: each slot
 * that becomes the current one lets those behind it be looked at. */
static void prefetch_ahead(struct sim *sim) {
    uint64_t slot = sim->wheel.slot;
    if (slot - sim->looked_at > OPERATIONS_AHEAD) { /* a long step, or another width of slots */
        sim->looked_at = slot - OPERATIONS_AHEAD;
    }
    while (sim->looked_at < slot) {
        sim->looked_at++;
        prefetch_slot(sim, sim->looked_at + OPERATIONS_AHEAD, prefetch_operation);
        prefetch_slot(sim, sim->looked_at + CONTEXTS_AHEAD, prefetch_pointed_to);
        prefetch_slot(sim, sim->looked_at + STACKS_AHEAD, prefetch_needed);
    }
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

/* False: there are no more events, or no memory. */
static DM_NO_INLINE bool next_slot(struct sim *sim) {
    if (dm_wheel_empty(&sim->wheel)) {
        return false;
    }
    if (dm_unlikely(!dm_wheel_next_slot(&sim->wheel))) {
        sim->out_of_memory = true;
        return false;
    }
    if (sim->wheel.count > SIM_FEW_EVENTS) {
        prefetch_ahead(sim);
    }
    return true;
}

struct sim_ctx *sim_next_context(struct sim *sim) {
    sim->current = NULL;
    for (;;) {
        if (dm_unlikely(sim->fabric->stop && !sim->stop_seen)) {
            wake_all_stopped(sim);
        }
        if (sim->current) {
            struct sim_ctx *next = sim->current;
            if (dm_likely(!next->dead)) {
                return take_up(sim, next);
            }
            sim->current = NULL;
            sim_kick_later(sim, sim_thread_of(next));
            continue;
        }
        if (dm_unlikely(sim->foreground == 0 && sim->async == 0)) {
            return NULL;
        }
        if (dm_wheel_is_spent(&sim->wheel) && dm_unlikely(!next_slot(sim))) {
            return NULL;
        }
        struct dm_event event = dm_wheel_take(&sim->wheel);
        sim->now = event.time;
        dispatch(sim, sim_op_at(sim, event.tag));
    }
}

int sim_run(struct dm_fabric *fabric, struct dm_err *err) {
    struct sim *sim = sim_of(fabric);
    if (sim->out_of_memory) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "sim: no memory for contexts");
    }
    dm_coro_init_thread(&sim->main);
    struct sim_ctx *next = sim_next_context(sim);
    if (next) {
        dm_coro_switch(&sim->main, &next->base.coro);
    }
    if (sim->out_of_memory) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "sim: no memory for events");
    }
    if (sim->foreground > 0) {
        return dm_fail(err, DM_ERR_IO, "sim: %llu contexts wait for one another for ever at %llu ns",
                       (unsigned long long)sim->foreground, (unsigned long long)((sim->now - sim->base) / 1000));
    }
    return fabric->stop ? dm_fail(err, DM_ERR_STOPPED, "stopped") : 0;
}
