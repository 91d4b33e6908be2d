/* SPDX-License-Identifier: Apache-2.0
 *
 * The requester's side of a verb, call or response: doorbell, queue pair, sending pipeline and link; and from the link
 * back into host memory and to the context that waits. A server sends the responses of calls by the same path.
 */
#include "transport/sim/sim.h"

static bool carries(const struct sim_op *op) {
    return op->kind == DM_VERB_WRITE || op->kind == DM_VERB_CALL;
}

static bool is_read_or_atomic(const struct sim_op *op) {
    return !carries(op);
}

static struct sim_nic *own_nic(const struct sim *sim, const struct sim_op *op) {
    return sim_nic_at(sim, op->from, op);
}

/* ---- doorbells -------------------------------------------------------------------------------------------------- */

static void issue_later(struct sim *sim, struct sim_op *chain, uint64_t at) {
    sim_schedule(sim, chain, SIM_ISSUE, at + sim->costs.mmio + sim->costs.nic_fixed);
}

/* The register of the chain's queue pair; NULL: no other one has it. The driver gives a quarter of the registers to the
 * first queue pairs, one each, and the others to the rest in turn. A node's queue pairs to one destination come before
 * those to the next, in the order of threads. */
static struct sim_register *register_of(const struct sim *sim, const struct sim_op *chain) {
    const struct sim_thread *thread = chain->thread;
    uint32_t registers = sim->costs.doorbell_registers, alone = registers / 4;
    uint32_t threads = sim->fabric->nodes[thread->base.node].thread_count;
    unsigned to = chain->kind == DM_VERB_CALL ? chain->call->node : dm_addr_node(chain->addr);
    uint32_t pair = to * threads + thread->base.index;
    return pair < alone ? NULL : &thread->rings[(pair - alone) % (registers - alone)];
}

void sim_ring_doorbell(struct sim *sim, struct sim_op *chain) {
    struct sim_thread *thread = chain->thread;
    sim_work(thread, sim->costs.doorbell);
    for (const struct sim_op *op = chain; op; op = op->next) {
        own_nic(sim, op)->posted++;
    }
    if (dm_unlikely(thread->rings && register_of(sim, chain))) {
        sim_schedule(sim, chain, SIM_RING, thread->clock);
    } else {
        issue_later(sim, chain, thread->clock);
    }
}

/* The core spins until the register is free; each thread that spins makes the hand-over of the lock longer. */
void sim_ring(struct sim *sim, struct sim_op *chain) {
    struct sim_thread *thread = chain->thread;
    struct sim_register *rings = register_of(sim, chain);
    uint64_t service = sim->costs.doorbell_shared + sim->costs.doorbell_waiter * rings->inside++;
    uint64_t done = sim_serve(&rings->server, sim->now, service);
    if (done > thread->clock) {
        thread->busy += done - thread->clock;
        thread->clock = done;
    }
    sim_schedule(sim, chain, SIM_RUNG, done);
}

void sim_rung(struct sim *sim, struct sim_op *chain) {
    register_of(sim, chain)->inside--;
    issue_later(sim, chain, sim->now);
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

/* Service of the sending pipeline. A NIC keeps so many posted requests in its cache, and fetches others again. */
static uint64_t tx_service(const struct sim *sim, const struct sim_nic *nic, const struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    uint64_t service = sim_scaled(costs->verbs[op->kind].tx, nic->factor_1024);
    if (dm_unlikely(nic->posted > costs->wqe_entries)) {
        uint64_t factor_1024 = carries(op) ? costs->wqe_write_1024 : costs->wqe_read_1024;
        service += service * factor_1024 * (nic->posted - costs->wqe_entries) / costs->wqe_entries >> 10;
    }
    return service;
}

/* Onto the link; op->begin is the time from the arrival of its first packet to that of its last one. */
void sim_send(struct sim *sim, struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    struct sim_nic *nic = own_nic(sim, op);
    uint64_t at = sim->now;
    if (nic != sim_nic_at(sim, sim_target(op), op)) {
        uint32_t packet = sim_packet_bytes(costs, op->len);
        at = sim_stream(&nic->out, at, at + op->begin, sim_request_time(costs, op->kind, op->len),
                        sim_request_time(costs, op->kind, packet)) +
             costs->propagation;
    } else {
        at += op->begin; /* it turns round within the NIC */
    }
    at += costs->nic_fixed;
    if (dm_unlikely(op->delayed)) {
        at += op->delay;
    }
    if (dm_unlikely(sim->faults.count > 0) && op->kind != DM_VERB_CALL) {
        /* A delay on a reliable connection delays all that follows it. */
        uint64_t *last = &op->ctx->lanes[dm_addr_node(op->addr)].last_arrival;
        at = at > *last ? at : *last;
        *last = at;
    }
    if (op->is_response) {
        at += costs->nic_fixed + costs->pcie_write + sim_pcie_time(costs, sim_packet_bytes(costs, op->len));
    }
    sim_schedule(sim, op, op->is_response ? SIM_RETURN : SIM_ARRIVE, at);
}

static void transmit(struct sim *sim, struct sim_op *op) {
    struct sim_nic *nic = own_nic(sim, op);
    uint64_t enter = sim_pipeline(&nic->tx, sim->now, tx_service(sim, nic, op));
    if (enter == sim->now) {
        sim_send(sim, op);
    } else {
        sim_schedule(sim, op, SIM_SEND, enter);
    }
}

static bool must_wait(const struct sim *sim, const struct sim_qp *qp, const struct sim_op *op) {
    return op->fetching || (is_read_or_atomic(op) && qp->reads_atomics >= sim->costs.max_rd_atomic) ||
           (op->fence && qp->reads_atomics > 0);
}

/* Sends what may be sent: a queue pair keeps its order, so a verb that must wait blocks those behind it. */
static void advance(struct sim *sim, struct sim_qp *qp) {
    while (qp->sending.head && !must_wait(sim, qp, qp->sending.head)) {
        struct sim_op *op = sim_queue_pop(&qp->sending);
        qp->reads_atomics += is_read_or_atomic(op);
        transmit(sim, op);
    }
}

/* Begins to fetch the payload if it did not come with the doorbell, and sets op->begin as sim_send wants it. */
static void fetch(struct sim *sim, struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    op->begin = 0;
    op->fetching = carries(op) && op->len > costs->max_inline;
    if (op->fetching) {
        uint64_t last = sim_serve(&own_nic(sim, op)->pcie_out, sim->now, sim_pcie_time(costs, op->len));
        op->begin = sim_pcie_time(costs, op->len - sim_packet_bytes(costs, op->len));
        sim_schedule(sim, op, SIM_FETCHED, last - op->begin + costs->payload_fetch);
    }
}

void sim_issue(struct sim *sim, struct sim_op *chain) {
    while (chain) {
        struct sim_op *op = chain;
        chain = op->next;
        fetch(sim, op);
        if (op->kind != DM_VERB_CALL) {
            struct sim_qp *qp = &op->thread->qps[dm_addr_node(op->addr)];
            sim_queue_push(&qp->sending, op);
            advance(sim, qp);
        } else if (!op->fetching) {
            transmit(sim, op); /* calls have queue pairs of their own */
        }
    }
}

void sim_fetched(struct sim *sim, struct sim_op *op) {
    op->fetching = false;
    if (op->kind == DM_VERB_CALL) {
        transmit(sim, op);
    } else {
        advance(sim, &op->thread->qps[dm_addr_node(op->addr)]);
    }
}

/* ---- completion ------------------------------------------------------------------------------------------------- */

static unsigned destination(const struct sim_op *op) {
    return op->is_response ? sim_target(op) : op->from;
}

/* A response that carries data shares the link and the PCIe of the node that it returns to. */
void sim_return(struct sim *sim, struct sim_op *op) {
    const struct sim_costs *costs = &sim->costs;
    struct sim_nic *nic = sim_nic_at(sim, destination(op), op);
    uint64_t left = sim->now;
    if (nic != sim_nic_at(sim, op->is_response ? op->from : sim_target(op), op)) {
        left = sim_receive(&nic->in, sim->now, sim_response_time(costs, op->kind, op->len));
    }
    if (left == sim->now) {
        sim_drain(sim, op);
    } else {
        sim_schedule(sim, op, SIM_DRAIN, left);
    }
}

void sim_drain(struct sim *sim, struct sim_op *op) {
    struct sim_nic *nic = sim_nic_at(sim, destination(op), op);
    uint64_t done = sim_receive(&nic->pcie_in, sim->now, sim_pcie_time(&sim->costs, op->len));
    if (done == sim->now) {
        sim_complete(sim, op);
    } else {
        sim_schedule(sim, op, SIM_COMPLETE, done);
    }
}

/* A wait returns the first failure of what it waited for; a failure of other verbs is returned by the next commit. */
static void report_failure(struct sim_ctx *ctx, const struct sim_op *op) {
    int *report = op->wait ? &ctx->status : &ctx->base.pending_error;
    *report = *report ? *report : op->status;
}

void sim_complete(struct sim *sim, struct sim_op *op) {
    struct sim_ctx *ctx = op->ctx;
    own_nic(sim, op)->posted--;
    if (op->kind != DM_VERB_CALL) {
        unsigned node = dm_addr_node(op->addr);
        if (op->listed) {
            sim_memory_forget(sim_memory_at(sim, op->addr), op);
        }
        if (is_read_or_atomic(op)) {
            struct sim_qp *qp = &op->thread->qps[node];
            qp->reads_atomics--;
            ctx->lanes[node].reads_atomics--;
            advance(sim, qp);
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
        sim->async -= ctx->lingers;
        sim_ready(sim, ctx);
    }
}
