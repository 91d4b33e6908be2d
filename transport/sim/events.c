/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool of operations, the payloads of writes, and the queue of events.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/sim/sim.h"

int sim_pool_open(struct sim *sim) {
    return dm_mapping_open(&sim->pool, sizeof(struct sim_op) << DM_WHEEL_TAG_BITS);
}

void sim_pool_close(struct sim *sim) {
    for (uint32_t tag = 0; tag < sim->op_count; tag++) {
        free(sim_op_at(sim, tag)->payload); /* of a verb in flight */
    }
    dm_mapping_close(&sim->pool);
}

/* Address space for all operations is reserved, and pages of it are used as the pool grows. */
static bool pool_grow(struct sim *sim) {
    if ((sim->op_count + SIM_POOL_STEP) >> DM_WHEEL_TAG_BITS) {
        return false;
    }
    uint32_t first = sim->op_count;
    dm_pages_populate(sim_op_at(sim, first), SIM_POOL_STEP * sizeof(struct sim_op));
    sim->op_count += SIM_POOL_STEP;
    for (uint32_t tag = sim->op_count; tag-- > first;) {
        /* Tag 0 means "before all others" to the memory and is not given out. */
        if (tag > 0) {
            struct sim_op *op = sim_op_at(sim, tag);
            op->tag = tag;
            op->next = sim->free_ops;
            sim->free_ops = op;
        }
    }
    return true;
}

struct sim_op *sim_op_new(struct sim *sim) {
    if (dm_unlikely(!sim->free_ops) && !pool_grow(sim)) {
        return NULL;
    }
    struct sim_op *op = sim->free_ops;
    sim->free_ops = op->next;
    op->status = 0;
    op->no_effect = op->fence = op->delayed = op->sampled = op->listed = op->fetching = false;
    op->has_slot = op->line_taken = op->is_response = op->received = false;
    op->nic = 0;
    op->dst = NULL;
    return op;
}

void sim_op_free(struct sim *sim, struct sim_op *op) {
    op->next = sim->free_ops;
    sim->free_ops = op;
}

/* Payload classes are 64, 256, 1024, 4096, 16384 bytes and, never kept, larger ones. */
static unsigned payload_class(uint32_t bytes) {
    unsigned class = 0;
    for (uint32_t capacity = 64; class < SIM_PAYLOAD_CLASSES - 1 && capacity < bytes; capacity *= 4) {
        class ++;
    }
    return class;
}

unsigned char *sim_payload_new(struct sim *sim, uint32_t bytes) {
    unsigned class = payload_class(bytes);
    unsigned char *payload = sim->payloads[class].free;
    if (payload) {
        memcpy(&sim->payloads[class].free, payload, sizeof(void *));
        return payload;
    }
    return malloc(class == SIM_PAYLOAD_CLASSES - 1 ? bytes : (size_t)64 << (2 * class));
}

void sim_payload_free(struct sim *sim, unsigned char *payload, uint32_t bytes) {
    unsigned class = payload_class(bytes);
    if (class == SIM_PAYLOAD_CLASSES - 1) {
        free(payload);
        return;
    }
    memcpy(payload, &sim->payloads[class].free, sizeof(void *));
    sim->payloads[class].free = payload;
}

void sim_schedule(struct sim *sim, struct sim_op *op, enum sim_stage stage, uint64_t at) {
    op->stage = stage;
    dm_wheel_add(&sim->wheel, at, op->tag);
}

void sim_lose(struct sim *sim, struct sim_op *op) {
    op->status = DM_ERR_PEER;
    sim_schedule(sim, op, SIM_COMPLETE, sim->now + sim->options->peer_timeout_ns * 1000);
}
