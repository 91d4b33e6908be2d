/* SPDX-License-Identifier: Apache-2.0
 *
 * The responder's side: receiving pipeline, processing units and atomic slots, PCIe, the effect on memory, and the
 * response's link. READs, WRITEs, atomics and calls share one receiving pipeline.
 */
#include "transport/sim/sim.h"

static struct sim_nic *nic_of(const struct sim *sim, const struct sim_op *op) {
    return sim_nic_at(sim, sim_target(op), op);
}

/* ---- memory accesses -------------------------------------------------------------------------------------------- */

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

static struct sim_qp *qp_of(const struct sim_op *op) {
    return &op->thread->qps[dm_addr_node(op->addr)];
}

/* True if the read has to wait for an earlier one of the same line, and its queue pair with it, because it keeps its
 * order. The read is admitted again when that is over. */
static bool waits_for_line(struct sim *sim, struct sim_nic *nic, struct sim_op *op) {
    if (dm_likely(!nic->lines) || op->line_taken || dm_addr_space(op->addr) != DM_DRAM) {
        return false;
    }
    uint64_t line = dm_addr_offset(op->addr) / DM_LINE;
    struct sim_line *entry = &nic->lines[dm_mix64(line) % SIM_LINES];
    uint64_t enter = entry->line == line && entry->free_at > sim->now ? entry->free_at : sim->now;
    *entry = (struct sim_line){line, enter + sim->costs.same_line_read};
    op->line_taken = true;
    if (enter == sim->now) {
        return false;
    }
    qp_of(op)->awaits_line = true;
    sim_schedule(sim, op, SIM_ADMIT, enter);
    return true;
}

static void access_memory(struct sim *sim, struct sim_nic *nic, struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    uint64_t at;
    if (op->kind == DM_VERB_READ) {
        if (waits_for_line(sim, nic, op)) {
            return;
        }
        uint64_t service = sim_pcie_time(costs, op->len + costs->read_overhead_bytes);
        at = sim_serve(&nic->pcie_out, sim->now, service) + sim_pcie_read_time(sim);
    } else {
        at = into_host(costs, nic, sim->now, op->len) + costs->pcie_write;
    }
    if (op->kind == DM_VERB_CALL) {
        sim_schedule(sim, op, SIM_DELIVER, at);
        return;
    }
    set_window(sim, op, at);
    sim_schedule(sim, op, SIM_EFFECT, op->begin);
}

/* ---- atomics ---------------------------------------------------------------------------------------------------- */

static struct sim_slot *slot_of(const struct sim *sim, struct sim_nic *nic, const struct sim_op *op) {
    return &nic->slots_of[dm_addr_space(op->addr)][(dm_addr_offset(op->addr) >> 3) % sim->costs.atomic_slots];
}

/* The atomic takes effect when it leaves its slot, or later if its context's order demands it. */
static void start_atomic(struct sim *sim, struct sim_nic *nic, struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    struct sim_slot *slot = slot_of(sim, nic, op);
    uint64_t hold = dm_addr_space(op->addr) == DM_CHIP ? costs->hold_chip
                                                       : costs->hold_dram - costs->pcie_read + sim_pcie_read_time(sim);
    slot->busy += hold;
    nic->slots.served++;
    nic->slots.waited += sim->now - op->begin + hold;
    nic->in_progress += dm_addr_space(op->addr) == DM_DRAM;
    op->has_slot = true;
    set_window(sim, op, sim->now + hold);
    op->end = op->begin + hold;
    sim_memory_hold(sim, sim_memory_at(sim, op->addr), op);
    sim_schedule(sim, op, SIM_EFFECT, sim->now + hold);
}

/* The atomic takes its slot; on host memory it begins when the NIC has fewer atomics in progress than it can have. */
static void take_slot(struct sim *sim, struct sim_nic *nic, struct sim_slot *slot, struct sim_op *op) {
    slot->is_taken = true;
    qp_of(op)->has_atomic = true;
    if (dm_addr_space(op->addr) == DM_DRAM && nic->in_progress >= sim->costs.atomics_in_progress) {
        sim_queue_push(&nic->to_start, op);
    } else {
        start_atomic(sim, nic, op);
    }
}

static void wait_for_unit(struct sim_unit *unit, struct sim_qp *qp, struct sim_op *op) {
    sim_queue_push(&unit->waiting, op);
    qp->in_unit++;
}

/* Holds the verb, and with it those of its queue pair that wait behind it for the unit: the held ones are admitted
 * first, and if they had to wait for the unit again, those behind would overtake them. */
static void hold(struct sim_unit *unit, struct sim_qp *qp, struct sim_op *op) {
    sim_queue_push(&qp->held, op);
    if (dm_likely(qp->in_unit == 0)) {
        return;
    }
    struct sim_queue waiting = unit->waiting;
    unit->waiting.head = NULL;
    while (waiting.head) {
        struct sim_op *next = sim_queue_pop(&waiting);
        bool follows = qp_of(next) == qp;
        qp->in_unit -= follows;
        sim_queue_push(follows ? &qp->held : &unit->waiting, next);
    }
}

/* True if the verb can be served now. Otherwise it waits in a queue, which is drained when what it waits for is free.
 */
static bool passes(struct sim *sim, struct sim_nic *nic, struct sim_op *op) {
    struct sim_unit *unit = &nic->units[op->unit];
    struct sim_qp *qp = qp_of(op);
    /* Verbs of a queue pair keep their order: when one is held, none is in the queue of the unit. */
    op->begin = sim->now; /* since when it waits */
    if (!qp->held.head && unit->is_blocked) {
        wait_for_unit(unit, qp, op);
        return false;
    }
    if (qp->held.head || qp->awaits_line || (sim_is_atomic(op) && qp->has_atomic)) {
        hold(unit, qp, op);
        return false;
    }
    if (!sim_is_atomic(op)) {
        return true;
    }
    struct sim_slot *slot = slot_of(sim, nic, op);
    if (slot->is_taken) {
        unit->is_blocked = true;
        sim_queue_push(&slot->waiting, op);
        return false;
    }
    take_slot(sim, nic, slot, op);
    return false;
}

static void drain_queue_pair(struct sim *sim, struct sim_qp *qp);

void sim_admit(struct sim *sim, struct sim_op *op) {
    struct sim_nic *nic = nic_of(sim, op);
    struct sim_qp *qp = op->line_taken ? qp_of(op) : NULL;
    if (dm_unlikely(sim_is_lost(sim, op, sim_target(op)))) {
        sim_lose(sim, op);
    } else if (op->kind == DM_VERB_CALL || op->line_taken || passes(sim, nic, op)) {
        access_memory(sim, nic, op);
    }
    if (dm_unlikely(qp != NULL)) {
        qp->awaits_line = false;
        drain_queue_pair(sim, qp);
    }
}

/* The time that something was free while `op` waited for it. */
static uint64_t idle_time(const struct sim *sim, const struct sim_op *op, uint64_t freed_at) {
    return sim->now - (op->begin > freed_at ? op->begin : freed_at);
}

/* Serves verbs that waited for the unit, until it is blocked again. */
static void drain_unit(struct sim *sim, struct sim_nic *nic, struct sim_unit *unit) {
    while (!unit->is_blocked && unit->waiting.head) {
        struct sim_op *op = sim_queue_pop(&unit->waiting);
        qp_of(op)->in_unit--;
        nic->slots.idle_waited += idle_time(sim, op, unit->freed_at);
        sim_admit(sim, op);
    }
}

static void drain_queue_pair(struct sim *sim, struct sim_qp *qp) {
    struct sim_queue held = qp->held;
    qp->held.head = NULL;
    while (held.head) {
        sim_admit(sim, sim_queue_pop(&held)); /* waits again, in the same order, behind the next atomic */
    }
}

/* The next atomic takes the slot, its unit serves others again, and so may its queue pair. */
static void leave_slot(struct sim *sim, struct sim_nic *nic, struct sim_op *op) {
    struct sim_slot *slot = slot_of(sim, nic, op);
    op->has_slot = false;
    if (dm_addr_space(op->addr) == DM_DRAM) {
        nic->in_progress--;
        while (nic->to_start.head && nic->in_progress < sim->costs.atomics_in_progress) {
            start_atomic(sim, nic, sim_queue_pop(&nic->to_start));
        }
    }
    slot->is_taken = false;
    slot->freed_at = sim->now;
    while (slot->waiting.head && !slot->is_taken) {
        struct sim_op *next = sim_queue_pop(&slot->waiting);
        struct sim_unit *unit = &nic->units[next->unit];
        nic->slots.idle_waited += idle_time(sim, next, slot->freed_at);
        unit->is_blocked = false;
        unit->freed_at = sim->now;
        if (dm_unlikely(sim_is_lost(sim, next, dm_addr_node(next->addr)))) {
            sim_lose(sim, next);
        } else {
            take_slot(sim, nic, slot, next);
        }
        drain_unit(sim, nic, unit);
    }
    struct sim_qp *qp = qp_of(op);
    qp->has_atomic = false;
    drain_queue_pair(sim, qp);
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

void sim_arrive(struct sim *sim, struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    unsigned node = sim_target(op);
    struct sim_nic *nic = sim_nic_at(sim, node, op);
    if (dm_unlikely(sim_is_lost(sim, op, node))) {
        sim_lose(sim, op);
        return;
    }
    if (dm_unlikely(dm_is_traced(sim->fabric)) && op->kind != DM_VERB_CALL) {
        sim_trace_arrive(sim, op);
    }
    uint64_t at = sim->now;
    if (nic != sim_nic_at(sim, op->from, op) && !op->received) {
        at = sim_receive(&nic->in, at, sim_request_time(costs, op->kind, op->len));
    }
    if (at > sim->now) {
        op->received = true;
        sim_schedule(sim, op, SIM_ARRIVE, at);
        return;
    }
    at = sim_pipeline(&nic->rx, at, sim_scaled(costs->verbs[op->kind].rx, nic->factor_1024));
    if (at == sim->now) {
        sim_admit(sim, op);
    } else {
        sim_schedule(sim, op, SIM_ADMIT, at);
    }
}

/* The response of a read takes the link as soon as its first bytes are there, and leaves packet by packet. */
static uint64_t send_data(struct sim *sim, struct sim_nic *nic, const struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    uint32_t packet = sim_packet_bytes(costs, op->len);
    return sim_stream(&nic->out, sim->now, op->end, sim_response_time(costs, DM_VERB_READ, op->len),
                      sim_response_time(costs, DM_VERB_READ, packet)) +
           costs->propagation;
}

void sim_effect(struct sim *sim, struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    unsigned node = dm_addr_node(op->addr);
    struct sim_nic *nic = sim_nic_at(sim, node, op);
    struct sim_memory *memory = sim_memory_at(sim, op->addr);
    bool is_loop = nic == sim_nic_at(sim, op->from, op);
    if (op->has_slot) {
        leave_slot(sim, nic, op);
        if (op->begin > sim->now) {
            sim_schedule(sim, op, SIM_EFFECT, op->begin);
            return;
        }
    }
    if (dm_unlikely(sim_is_lost(sim, op, node))) {
        sim_lose(sim, op);
        return;
    }
    uint64_t at = op->end;
    if (dm_likely(!op->no_effect)) {
        if (op->kind == DM_VERB_READ) {
            sim_memory_read(sim, memory, op);
        } else if (op->kind == DM_VERB_WRITE) {
            sim_memory_write(sim, memory, op);
        } else {
            sim_memory_atomic(sim, memory, op);
        }
    }
    if (op->listed && sim_is_atomic(op)) {
        sim_memory_forget(memory, op);
        at = op->end = op->begin;
    }
    if (dm_unlikely(dm_is_traced(sim->fabric)) && !op->no_effect) {
        sim_trace_effect(sim, op);
    }
    uint64_t behind = 2 * costs->nic_fixed + costs->pcie_write;
    if (op->kind == DM_VERB_READ && !op->no_effect) {
        at = is_loop ? op->end : send_data(sim, nic, op);
        behind += sim_pcie_time(costs, sim_packet_bytes(costs, op->len));
        sim_schedule(sim, op, SIM_RETURN, at + behind);
    } else {
        /* Acknowledgements are small and coalesced: they take time on the wire but no bandwidth. */
        at += is_loop ? 0 : sim_response_time(costs, op->kind, op->len) + costs->propagation;
        sim_schedule(sim, op, SIM_COMPLETE, at + behind);
    }
}
