/* SPDX-License-Identifier: Apache-2.0
 *
 * A verb's path over the fabric: queue pair, requester NIC, link, responder NIC, memory, and back. Each resource is a
 * FIFO server whose next free moment is known when a verb reaches it, so a verb needs three events: arrival at the
 * responder, its effect on memory, completion.
 */
#include <string.h>

#include "transport/sim/sim.h"

/* A post this far ahead of the clock is treated at once; the order of posts of different cores of a NIC is exact to
 * within it. */
#define SIM_ISSUE_HORIZON_PS UINT64_C(1000000)

static bool is_atomic(enum dm_verb_kind kind) {
    return kind != DM_VERB_READ && kind != DM_VERB_WRITE && kind != DM_VERB_CALL;
}

static bool is_read_or_atomic(const struct sim_op *op) {
    return op->kind != DM_VERB_WRITE && op->kind != DM_VERB_CALL;
}

static uint64_t scaled(uint64_t time, uint64_t factor_1024) {
    return factor_1024 == 1024 ? time : time * factor_1024 >> 10;
}

/* ---- requester -------------------------------------------------------------------------------------------------- */

void sim_transmit(struct sim *sim, struct sim_op *op, uint64_t at) {
    const struct sim_costs *costs = &sim->costs;
    struct sim_nic *nic = &sim->nodes[op->from].nic;
    uint64_t service = scaled(sim_tx_time(costs, op->kind), nic->factor_1024);
    if (++nic->outstanding > costs->wqe_entries) {
        service = scaled(service, costs->wqe_miss_1024);
    }
    bool carries = op->kind == DM_VERB_WRITE || op->kind == DM_VERB_CALL;
    uint64_t behind = 0; /* from the arrival of the first packet to that of the last */
    if (carries && op->len > costs->max_inline) {
        uint64_t fetch = sim_pcie_time(costs, op->len);
        at = sim_serve(&nic->pcie_out, at, fetch) + costs->payload_fetch;
        behind = fetch - sim_pcie_time(costs, sim_packet_bytes(costs, op->len));
    }
    at = sim_pipeline(&nic->tx, at - behind, service) + costs->nic_fixed;
    uint64_t wire = sim_request_time(costs, op->kind, op->len);
    uint64_t packet = carries ? sim_request_time(costs, op->kind, sim_packet_bytes(costs, op->len)) : wire;
    at = sim_stream(&nic->out, at, at + behind, wire, packet) + costs->propagation;
    if (dm_unlikely(op->delayed)) {
        at += op->delay;
    }
    if (dm_unlikely(sim->faults.count > 0) && op->kind != DM_VERB_CALL) {
        /* A delay on a reliable connection delays all that follows it. */
        uint64_t *last = &op->ctx->lanes[dm_addr_node(op->addr)].last_arrival;
        at = at > *last ? at : *last;
        *last = at;
    }
    sim_schedule(sim, op, SIM_ARRIVE, at);
}

static bool must_wait(const struct sim *sim, const struct sim_qp *qp, const struct sim_op *op) {
    if (is_read_or_atomic(op) && qp->reads_atomics >= sim->costs.max_rd_atomic) {
        return true;
    }
    return op->fence && qp->reads_atomics > 0;
}

static void go(struct sim *sim, struct sim_qp *qp, struct sim_op *op, uint64_t at) {
    qp->reads_atomics += is_read_or_atomic(op);
    sim_transmit(sim, op, at);
}

/* Through the queue pair in order: a verb that must wait blocks those behind it. */
static void enqueue(struct sim *sim, struct sim_op *op, uint64_t at) {
    struct sim_qp *qp = &op->thread->qps[dm_addr_node(op->addr)];
    at += sim->costs.mmio;
    if (!qp->head && !must_wait(sim, qp, op)) {
        go(sim, qp, op, at);
        return;
    }
    op->begin = at; /* not before its doorbell */
    op->next = NULL;
    if (qp->head) {
        qp->tail->next = op;
    } else {
        qp->head = op;
    }
    qp->tail = op;
}

static void release_waiting(struct sim *sim, struct sim_qp *qp) {
    while (qp->head && !must_wait(sim, qp, qp->head)) {
        struct sim_op *op = qp->head;
        qp->head = op->next;
        go(sim, qp, op, op->begin > sim->now ? op->begin : sim->now);
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
    lane->reads_atomics += is_read_or_atomic(op);
    const unsigned char *target = sim_memory_at(sim, verb->addr)->mapping.base + dm_addr_offset(verb->addr);
    for (uint32_t line = 0; line < verb->len && line < 1024; line += DM_LINE) {
        dm_prefetch_read(target + line);
    }
    return op;
}

/* In the set-up phase: at once, in order, at no cost. */
static int commit_now(struct sim *sim, struct dm_ctx *ctx) {
    for (uint32_t i = 0; i < ctx->batch_count; i++) {
        const struct dm_verb *verb = &ctx->batch[i];
        if (sim->now >= sim->nodes[dm_addr_node(verb->addr)].failed_at) {
            return DM_ERR_PEER;
        }
        struct sim_memory *memory = sim_memory_at(sim, verb->addr);
        uint64_t offset = dm_addr_offset(verb->addr);
        if (verb->kind == DM_VERB_READ) {
            memcpy(verb->dst, memory->mapping.base + offset, verb->len);
        } else if (verb->kind == DM_VERB_WRITE) {
            memcpy(memory->mapping.base + offset, verb->src, verb->len);
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
    struct sim_fate fate = sim_faults_draw(&sim->faults, ctx->client, ++ctx->verbs_begun, kind, node);
    bool is_due = ctx->stop_due || (fate.stops && fate.stop_ns == 0);
    if (is_due && ctx->in_own_call) {
        /* Other contexts of its thread wait for the result of a call of the transport. */
        ctx->stop_due = true;
        fate.stops = false;
    } else if (is_due) {
        ctx->dead = true;
        sim->foreground -= !ctx->base.background;
        if (dm_is_traced(sim->fabric)) {
            dm_trace_wait(&ctx->base, DM_TRACE_STOP, sim_now(&ctx->base), DM_ERR_STOPPED);
        }
        sim_suspend(ctx);
    } else if (fate.stops) {
        /* Verbs already sent may complete meanwhile: they must not wake it, and their status is kept. */
        ctx->pending++;
        uint64_t since_ns = sim_now(&ctx->base);
        int rc = sim_sleep(&ctx->base, fate.stop_ns);
        if (dm_is_traced(sim->fabric)) {
            dm_trace_wait(&ctx->base, DM_TRACE_STOP, since_ns, rc);
        }
        ctx->pending--;
        ctx->status = ctx->status ? ctx->status : rc;
    }
    return fate;
}

int sim_commit(struct dm_ctx *base, bool wait) {
    struct sim_ctx *ctx = (struct sim_ctx *)base;
    struct sim *sim = sim_of(base->fabric);
    struct sim_thread *thread = sim_thread_of(ctx);
    if (!base->fabric->measuring) {
        return commit_now(sim, base);
    }
    uint64_t nodes_seen = 0, broken[4] = {0};
    for (uint32_t i = 0; i < base->batch_count; i++) {
        struct sim_fate fate = {0};
        if (dm_unlikely(sim->faults.count > 0)) {
            fate = sim_draw_fate(sim, ctx, base->batch[i].kind, dm_addr_node(base->batch[i].addr));
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
        uint64_t bit = UINT64_C(1) << (dm_addr_node(op->addr) % 64);
        uint64_t work = sim->costs.post + (nodes_seen & bit ? 0 : sim->costs.doorbell);
        ctx->completions += wait && !(nodes_seen & bit);
        nodes_seen |= bit;
        thread->clock += work;
        thread->busy += work;
        if (wait) {
            ctx->pending++;
        } else {
            sim->async++;
        }
        if (thread->clock > sim->now + SIM_ISSUE_HORIZON_PS) {
            sim_schedule(sim, op, SIM_ISSUE, thread->clock);
        } else {
            enqueue(sim, op, thread->clock);
        }
    }
    if (dm_unlikely(wait && ctx->pending == 0)) {
        /* All completed while a fault stopped the client in the middle of the batch. */
        int status = ctx->status;
        ctx->status = 0;
        return status;
    }
    return wait ? sim_suspend(ctx) : 0;
}

void sim_issue(struct sim *sim, struct sim_op *op) {
    enqueue(sim, op, sim->now);
}

/* ---- responder -------------------------------------------------------------------------------------------------- */

/* An atomic takes its atomic unit; while it waits for that, its processing unit serves no other verb. Returns when it
 * releases the unit. */
static uint64_t take_unit(struct sim *sim, struct sim_nic *nic, const struct sim_op *op, uint64_t at,
                          uint64_t *unit_free) {
    const struct sim_costs *costs = &sim->costs;
    bool chip = dm_addr_space(op->addr) == DM_CHIP;
    uint64_t *slots = chip ? nic->slot_chip_free : nic->slot_dram_free;
    uint64_t *slot = &slots[(dm_addr_offset(op->addr) >> 3) % costs->atomic_slots];
    uint64_t start = *slot > at ? *slot : at;
    *unit_free = start;
    *slot = start + (chip ? costs->hold_chip : costs->hold_dram);
    return *slot;
}

static uint64_t lines_touched(const struct sim_op *op) {
    uint64_t offset = dm_addr_offset(op->addr);
    return (offset + op->len - 1) / DM_LINE - offset / DM_LINE + 1;
}

/* Sets when the lines of a read or write are sampled or land: [begin, end], where the last one is due at `at`. */
static void set_window(struct sim *sim, struct sim_op *op, uint64_t at) {
    struct sim_lane *lane = &op->ctx->lanes[dm_addr_node(op->addr)];
    uint64_t lines = lines_touched(op);
    op->begin = op->end = at;
    if (lines > 1) {
        uint64_t window = sim_pcie_time(&sim->costs, (uint32_t)lines * DM_LINE);
        uint64_t extra = op->kind == DM_VERB_READ ? sim->options->read_window_ns : sim->options->write_window_ns;
        op->begin = at > sim->now + window ? at - window : sim->now;
        op->end += extra * 1000;
        op->line_seed = dm_prng_u64(&sim->lines);
    }
    bool any_order = op->kind == DM_VERB_READ && sim->options->read_order == SIM_READS_ANY;
    if (dm_unlikely(any_order)) {
        /* Anywhere within the time that a fetch takes; but after earlier verbs that change memory. */
        uint64_t late = dm_prng_below(&sim->lines, sim->costs.pcie_read + 1);
        op->begin += late;
        op->end += late;
    }
    uint64_t after = any_order ? lane->last_change : lane->last_effect;
    if (after >= op->begin) {
        uint64_t later = after + 1 - op->begin;
        op->begin += later;
        op->end += later;
    }
    lane->last_effect = op->end > lane->last_effect ? op->end : lane->last_effect;
    if (op->kind != DM_VERB_READ) {
        lane->last_change = op->end;
    }
}

/* A payload is written to host memory. Its last packet is there at `at`, the first one earlier by the time that the
 * others took on the wire. */
static uint64_t into_host(const struct sim_costs *costs, struct sim_nic *nic, uint64_t at, uint32_t len) {
    uint32_t packet = sim_packet_bytes(costs, len);
    uint64_t behind = len > packet ? sim_wire_time(costs, len, 0) - sim_wire_time(costs, packet, 0) : 0;
    return sim_stream(&nic->pcie_in, at > behind ? at - behind : 0, at, sim_pcie_time(costs, len),
                      sim_pcie_time(costs, packet));
}

void sim_arrive(struct sim *sim, struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    unsigned node = op->kind == DM_VERB_CALL ? op->call->node : dm_addr_node(op->addr);
    struct sim_nic *nic = &sim->nodes[node].nic;
    if (dm_unlikely(sim_is_lost(sim, op, node))) {
        sim_lose(sim, op);
        return;
    }
    if (dm_unlikely(dm_is_traced(sim->fabric)) && op->kind != DM_VERB_CALL) {
        sim_trace_arrive(sim, op);
    }
    uint64_t at = sim_receive(&nic->in, sim->now, sim_request_time(costs, op->kind, op->len));
    enum dm_verb_kind kind = op->kind;
    struct sim_server *pipeline = is_atomic(kind) ? &nic->atomic : &nic->rx;
    at = sim_pipeline(pipeline, at, scaled(sim_rx_time(costs, kind), nic->factor_1024)) + costs->nic_fixed;
    if (kind == DM_VERB_CALL) {
        at = into_host(costs, nic, at, op->len) + costs->pcie_write;
        sim_schedule(sim, op, SIM_DELIVER, at);
        return;
    }
    uint64_t *unit = &nic->unit_free[op->unit];
    at = *unit > at ? *unit : at;
    if (kind == DM_VERB_READ) {
        uint64_t service = sim_pcie_time(costs, op->len + costs->read_overhead_bytes);
        at = sim_serve(&nic->pcie_out, at, service) + costs->pcie_read;
    } else if (kind == DM_VERB_WRITE) {
        at = into_host(costs, nic, at, op->len) + costs->pcie_write;
    } else {
        at = take_unit(sim, nic, op, at, unit);
    }
    set_window(sim, op, at);
    if (is_atomic(kind)) {
        op->end = op->begin + (dm_addr_space(op->addr) == DM_CHIP ? costs->hold_chip : costs->hold_dram);
        sim_memory_hold(sim, sim_memory_at(sim, op->addr), op);
    }
    sim_schedule(sim, op, SIM_EFFECT, op->begin);
}

void sim_effect(struct sim *sim, struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    unsigned node = dm_addr_node(op->addr);
    struct sim_memory *memory = sim_memory_at(sim, op->addr);
    uint64_t wire = sim_response_time(costs, op->kind, op->len);
    uint64_t sent;
    if (dm_unlikely(sim_is_lost(sim, op, node))) {
        sim_lose(sim, op);
        return;
    }
    if (dm_unlikely(op->no_effect)) {
        sent = op->end;
    } else if (op->kind == DM_VERB_READ) {
        sim_memory_read(sim, memory, op);
        uint32_t packet = sim_packet_bytes(costs, op->len);
        uint64_t fetched = op->begin + sim_pcie_time(costs, packet);
        sent = sim_stream(&sim->nodes[node].nic.out, fetched < op->end ? fetched : op->end, op->end, wire,
                          sim_response_time(costs, DM_VERB_READ, packet));
    } else {
        if (op->kind == DM_VERB_WRITE) {
            sim_memory_write(sim, memory, op);
        } else {
            sim_memory_atomic(sim, memory, op);
            sim_memory_forget(memory, op);
            op->end = op->begin;
        }
        /* Acknowledgements are small and coalesced: they take time on the wire but no bandwidth. */
        sent = op->end + wire;
    }
    if (dm_unlikely(dm_is_traced(sim->fabric)) && !op->no_effect) {
        sim_trace_effect(sim, op);
    }
    struct sim_nic *requester = &sim->nodes[op->from].nic;
    uint64_t at = sent + costs->nic_fixed + costs->propagation;
    if (op->kind == DM_VERB_READ) {
        at = into_host(costs, requester, sim_receive(&requester->in, at, wire), op->len);
    }
    sim_schedule(sim, op, SIM_COMPLETE, at + costs->nic_fixed + costs->pcie_write);
}

void sim_lose(struct sim *sim, struct sim_op *op) {
    op->status = DM_ERR_PEER;
    sim_schedule(sim, op, SIM_COMPLETE, sim->now + sim->options->peer_timeout_ns * 1000);
}

/* A wait returns the first failure of what it waited for; a failure of other verbs is returned by the next commit. */
static void report_failure(struct sim_ctx *ctx, const struct sim_op *op) {
    int *report = op->wait ? &ctx->status : &ctx->base.pending_error;
    *report = *report ? *report : op->status;
}

void sim_complete(struct sim *sim, struct sim_op *op) {
    struct sim_ctx *ctx = op->ctx;
    sim->nodes[op->from].nic.outstanding--;
    if (op->kind != DM_VERB_CALL) {
        unsigned node = dm_addr_node(op->addr);
        if (op->listed) {
            sim_memory_forget(sim_memory_at(sim, op->addr), op);
        }
        if (is_read_or_atomic(op)) {
            struct sim_qp *qp = &op->thread->qps[node];
            qp->reads_atomics--;
            ctx->lanes[node].reads_atomics--;
            release_waiting(sim, qp);
        }
    }
    if (op->kind == DM_VERB_WRITE) {
        sim_payload_free(sim, op->payload, op->len);
        op->payload = NULL;
    }
    if (dm_unlikely(op->status)) {
        report_failure(ctx, op);
    }
    bool wait = op->wait;
    if (dm_unlikely(dm_is_traced(sim->fabric)) && op->kind != DM_VERB_CALL) {
        sim_trace_complete(sim, op);
    }
    sim_op_free(sim, op);
    if (!wait) {
        sim->async--;
    } else if (--ctx->pending == 0) {
        sim_ready(sim, ctx);
    }
}
