/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace records of verbs: one for each operation, apart from the pool of operations so that these stay small. Nothing
 * here changes an event or a time.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/sim/sim.h"

static uint64_t to_ns(const struct sim *sim, uint64_t at) {
    return at > sim->base ? (at - sim->base) / 1000 : 0;
}

static struct dm_trace_event *record_of(struct sim *sim, const struct sim_op *op) {
    return op->tag < sim->traced_count ? &sim->traced[op->tag] : NULL;
}

/* Makes a record for every operation of the pool. */
static bool records_grow(struct sim *sim) {
    uint32_t count = sim->op_count;
    struct dm_trace_event *traced = realloc(sim->traced, count * sizeof(*traced));
    if (!traced) {
        return false;
    }
    memset(traced + sim->traced_count, 0, (count - sim->traced_count) * sizeof(*traced));
    sim->traced = traced;
    sim->traced_count = count;
    return true;
}

void sim_trace_post(struct sim *sim, const struct sim_op *op) {
    if (op->tag >= sim->traced_count && !records_grow(sim)) {
        return; /* this verb is missing from the trace */
    }
    struct dm_trace_event *event = &sim->traced[op->tag];
    *event = op->ctx->base.traced;
    event->kind = op->kind;
    event->addr = op->addr;
    event->target = dm_addr_node(op->addr);
    event->len = op->len;
    event->is_waited = op->wait;
    if (op->kind != DM_VERB_READ && op->kind != DM_VERB_WRITE) {
        event->op = op->op;
    }
}

void sim_trace_arrive(struct sim *sim, const struct sim_op *op) {
    struct dm_trace_event *event = record_of(sim, op);
    if (event) {
        event->arrived_ns = to_ns(sim, sim->now);
    }
}

void sim_trace_effect(struct sim *sim, const struct sim_op *op) {
    struct dm_trace_event *event = record_of(sim, op);
    if (event) {
        event->effect_ns = to_ns(sim, op->begin);
        event->landed_ns = to_ns(sim, op->end);
    }
}

void sim_trace_found(struct sim *sim, const struct sim_op *op, const struct dm_verb *verb, uint64_t found) {
    struct dm_trace_event *event = record_of(sim, op);
    if (event && op->tag > 0) { /* tag 0: in the set-up phase */
        dm_trace_found(event, verb, found);
    }
}

void sim_trace_complete(struct sim *sim, const struct sim_op *op) {
    struct dm_trace_event *event = record_of(sim, op);
    if (event && event->ctx != 0) {
        event->done_ns = to_ns(sim, sim->now);
        event->outcome = op->status;
        sim->fabric->trace(sim->fabric->trace_arg, event);
        event->ctx = 0;
    }
}

void sim_trace_call(struct sim *sim, struct sim_call *call, bool is_answer) {
    struct dm_trace_event *event = &call->caller->base.traced;
    uint64_t now = to_ns(sim, sim->now);
    if (is_answer) {
        event->effect_ns = event->landed_ns = now;
    } else {
        event->arrived_ns = now;
    }
}
