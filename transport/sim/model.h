/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost model: a profile turned into integers (picoseconds), and pure functions of it. Nothing here knows events or
 * contexts, so every number can be checked by hand in a unit test.
 */
#ifndef DM_TRANSPORT_SIM_MODEL_H
#define DM_TRANSPORT_SIM_MODEL_H

#include "transport/core/profile.h"
#include "transport/core/work.h"
#include "transport/fabric.h"

/* Times in ps; rates as ps of service; bytes cost ps / 1024 each (fixed point, so that no result depends on rounding of
 * doubles). */
enum { SIM_SPREADS = 256 };

struct sim_costs {
    uint64_t post, doorbell, completion, resume;
    uint64_t mmio, propagation, nic_fixed, pcie_read, pcie_write, payload_fetch;
    uint64_t pcie_read_spread, pcie_read_least;
    uint64_t spread[SIM_SPREADS]; /* quantiles of what a PCIe read takes beyond the least */
    uint64_t doorbell_shared, doorbell_waiter;
    uint32_t doorbell_registers;
    uint64_t link_byte_1024, pcie_byte_1024;
    uint32_t mtu, header_bytes, read_overhead_bytes, max_inline, max_rd_atomic;
    uint64_t tx_read, tx_write, tx_atomic, rx_read, rx_write, rx_atomic;
    uint64_t hold_dram, hold_chip;
    uint32_t atomic_slots, atomics_in_progress, processing_units;
    uint32_t wqe_entries;
    uint64_t wqe_read_1024, wqe_write_1024; /* growth of service for another wqe_entries, times 1024 */
    uint64_t same_line_read;
    uint32_t hyper_thread_1024;
    uint32_t qp_entries;
    double qp_miss_factor;
    uint64_t call_receive, call_send;
    struct dm_work_costs work;
};

void sim_costs_init(struct sim_costs *costs, const struct dm_profile *profile);

/* Time on the wire of a message: every packet carries a header; `extra` bytes once beside the payload. */
uint64_t sim_wire_time(const struct sim_costs *costs, uint32_t payload_bytes, uint32_t extra_bytes);

/* Time on PCIe. */
uint64_t sim_pcie_time(const struct sim_costs *costs, uint32_t bytes);

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

uint64_t sim_tx_time(const struct sim_costs *costs, enum dm_verb_kind kind);
uint64_t sim_rx_time(const struct sim_costs *costs, enum dm_verb_kind kind);

/* Time on the wire of a verb's request and of its response. */
uint64_t sim_request_time(const struct sim_costs *costs, enum dm_verb_kind kind, uint32_t len);
uint64_t sim_response_time(const struct sim_costs *costs, enum dm_verb_kind kind, uint32_t len);

#endif
