/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost model: a profile turned into integers (picoseconds), and pure functions of it. Nothing here knows events or
 * contexts, so every number can be checked by hand in a unit test.
 */
#ifndef DM_TRANSPORT_SIM_MODEL_H
#define DM_TRANSPORT_SIM_MODEL_H

#include "common/compiler.h"
#include "transport/core/profile.h"
#include "transport/core/work.h"
#include "transport/fabric.h"

/* Times in ps; rates as ps of service; bytes cost ps / 1024 each (fixed point, so that no result depends on rounding of
 * doubles). */
enum { SIM_SPREADS = 256 };

/* What a kind of verb takes of NICs and links. A request or response carries either the verb's bytes or none of them,
 * and a few others. */
struct sim_verb_costs {
    uint64_t tx, rx;
    uint32_t request_mask, request_extra; /* it carries len & mask bytes, and `extra` */
    uint32_t response_mask, response_extra;
};

struct sim_costs {
    uint64_t post, doorbell, completion, resume;
    uint64_t mmio, propagation, nic_fixed, pcie_read, pcie_write, payload_fetch;
    uint64_t link_byte_1024, pcie_byte_1024;
    uint64_t pcie_read_spread, pcie_read_least;
    uint32_t mtu, header_bytes, read_overhead_bytes, max_inline, max_rd_atomic;
    uint32_t wqe_entries;
    struct sim_verb_costs verbs[DM_VERB_KIND_COUNT];
    uint64_t hold_dram, hold_chip;
    uint32_t atomic_slots, atomics_in_progress, processing_units;
    uint64_t wqe_read_1024, wqe_write_1024; /* growth of service for another wqe_entries, times 1024 */
    uint64_t same_line_read;
    uint64_t doorbell_shared, doorbell_waiter;
    uint32_t doorbell_registers;
    uint32_t hyper_thread_1024;
    uint32_t qp_entries;
    double qp_miss_factor;
    uint64_t call_receive, call_send;
    struct dm_work_costs work;
    uint64_t spread[SIM_SPREADS]; /* quantiles of what a PCIe read takes beyond the least */
};

void sim_costs_init(struct sim_costs *costs, const struct dm_profile *profile);

/* Time on the wire of a message: every packet carries a header; `extra` bytes once beside the payload. */
static inline uint64_t sim_wire_time(const struct sim_costs *costs, uint32_t payload_bytes, uint32_t extra_bytes) {
    uint64_t packets = dm_likely(payload_bytes <= costs->mtu) ? 1 : (payload_bytes + costs->mtu - 1) / costs->mtu;
    return (payload_bytes + extra_bytes + packets * costs->header_bytes) * costs->link_byte_1024 >> 10;
}

/* Time on PCIe. */
static inline uint64_t sim_pcie_time(const struct sim_costs *costs, uint32_t bytes) {
    return (uint64_t)bytes * costs->pcie_byte_1024 >> 10;
}

/* The most payload bytes that the last packet on the wire carries. */
static inline uint32_t sim_packet_bytes(const struct sim_costs *costs, uint32_t payload_bytes) {
    return payload_bytes < costs->mtu ? payload_bytes : costs->mtu;
}

/* Service times for all verbs of a NIC grow by this factor (times 1024) when it holds more queue pairs than it caches.
 */
uint64_t sim_qp_factor_1024(const struct sim_costs *costs, uint32_t queue_pairs);

/* A time scaled by factor / 1024. */
static inline uint64_t sim_scaled(uint64_t time, uint64_t factor_1024) {
    return factor_1024 == 1024 ? time : time * factor_1024 >> 10;
}

/* What a PCIe read takes beyond pcie_read_least, for 64 random bits. */
static inline uint64_t sim_spread(const struct sim_costs *costs, uint64_t random) {
    return costs->spread[random >> 56];
}

/* Time on the wire of a verb's request and of its response. */
static inline uint64_t sim_request_time(const struct sim_costs *costs, enum dm_verb_kind kind, uint32_t len) {
    const struct sim_verb_costs *verb = &costs->verbs[kind];
    return sim_wire_time(costs, len & verb->request_mask, verb->request_extra);
}

static inline uint64_t sim_response_time(const struct sim_costs *costs, enum dm_verb_kind kind, uint32_t len) {
    const struct sim_verb_costs *verb = &costs->verbs[kind];
    return sim_wire_time(costs, len & verb->response_mask, verb->response_extra);
}

#endif
