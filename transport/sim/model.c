/* SPDX-License-Identifier: Apache-2.0
 *
 * Pure cost functions; docs/fabric-model.md has the source of each term.
 */
#include "transport/sim/model.h"

#include <math.h>

static uint64_t ps(double ns) {
    return (uint64_t)(ns * 1000.0 + 0.5);
}

static uint64_t ps_per_op(double mops) {
    return (uint64_t)(1e6 / mops + 0.5);
}

/* A PCIe read takes its least time and an exponentially distributed one more; their sum has the profile's mean. */
static void spread_init(struct sim_costs *costs, const struct dm_profile *p) {
    double spread = p->pcie_read_spread_ns < p->pcie_read_ns ? p->pcie_read_spread_ns : p->pcie_read_ns;
    double sum = 0;
    for (unsigned i = 0; i < SIM_SPREADS; i++) {
        sum -= log(1 - (i + 0.5) / SIM_SPREADS);
    }
    for (unsigned i = 0; i < SIM_SPREADS; i++) {
        costs->spread[i] = ps(-log(1 - (i + 0.5) / SIM_SPREADS) * spread * SIM_SPREADS / sum);
    }
    costs->pcie_read_spread = ps(spread);
    costs->pcie_read_least = ps(p->pcie_read_ns - spread);
}

/* RETH 16, AtomicETH 28, AETH 4, AtomicAckETH with AETH 12 bytes, beside the packet headers. */
static void verbs_init(struct sim_costs *costs, const struct dm_profile *p) {
    for (unsigned kind = 0; kind < DM_VERB_KIND_COUNT; kind++) {
        costs->verbs[kind] = (struct sim_verb_costs){ps_per_op(p->tx_atomic_mops), ps_per_op(p->rx_atomic_mops),
                                                     .request_extra = 28, .response_extra = 12};
    }
    uint64_t tx_write = ps_per_op(p->tx_write_mops), rx_write = ps_per_op(p->rx_write_mops);
    costs->verbs[DM_VERB_READ] =
        (struct sim_verb_costs){ps_per_op(p->tx_read_mops), ps_per_op(p->rx_read_mops), .request_extra = 16,
                                .response_mask = UINT32_MAX, .response_extra = 4};
    costs->verbs[DM_VERB_WRITE] = (struct sim_verb_costs){tx_write, rx_write, .request_mask = UINT32_MAX,
                                                          .request_extra = 16, .response_extra = 4};
    costs->verbs[DM_VERB_CALL] =
        (struct sim_verb_costs){tx_write, rx_write, .request_mask = UINT32_MAX, .response_mask = UINT32_MAX};
}

void sim_costs_init(struct sim_costs *costs, const struct dm_profile *p) {
    *costs = (struct sim_costs){
        .post = ps(p->cpu_post_ns),
        .doorbell = ps(p->cpu_doorbell_ns),
        .completion = ps(p->cpu_completion_ns),
        .resume = ps(p->cpu_switch_ns),
        .mmio = ps(p->mmio_ns),
        .propagation = ps(p->propagation_ns),
        .nic_fixed = ps(p->nic_fixed_ns),
        .pcie_read = ps(p->pcie_read_ns),
        .pcie_write = ps(p->pcie_write_ns),
        .payload_fetch = ps(p->payload_fetch_ns),
        .link_byte_1024 = (uint64_t)(8000.0 / p->link_gbps * 1024.0 + 0.5),
        .pcie_byte_1024 = (uint64_t)(1000.0 / p->pcie_gbytes_per_s * 1024.0 + 0.5),
        .mtu = (uint32_t)p->mtu,
        .header_bytes = (uint32_t)p->header_bytes,
        .read_overhead_bytes = (uint32_t)p->pcie_read_overhead_bytes,
        .max_inline = (uint32_t)p->max_inline,
        .max_rd_atomic = (uint32_t)p->max_rd_atomic,
        .hold_dram = ps(p->atomic_hold_dram_ns),
        .hold_chip = ps(p->atomic_hold_chip_ns),
        .atomic_slots = (uint32_t)p->atomic_slots,
        .atomics_in_progress = (uint32_t)p->atomics_in_progress,
        .processing_units = (uint32_t)p->processing_units,
        .wqe_entries = (uint32_t)p->wqe_cache_entries,
        .wqe_read_1024 = (uint64_t)(p->wqe_miss_factor * 1024.0 + 0.5),
        .wqe_write_1024 = (uint64_t)(p->wqe_miss_factor_write * 1024.0 + 0.5),
        .same_line_read = ps(p->same_line_read_ns),
        .doorbell_registers = (uint32_t)p->doorbell_registers,
        .doorbell_shared = ps(p->doorbell_shared_ns),
        .doorbell_waiter = ps(p->doorbell_waiter_ns),
        .hyper_thread_1024 = (uint32_t)(p->hyper_thread_factor * 1024.0 + 0.5),
        .qp_entries = (uint32_t)p->qp_cache_entries,
        .qp_miss_factor = p->qp_miss_factor,
        .call_receive = ps(p->call_receive_ns),
        .call_send = ps(p->call_send_ns),
    };
    dm_work_costs_init(&costs->work, p);
    verbs_init(costs, p);
    spread_init(costs, p);
}

uint64_t sim_qp_factor_1024(const struct sim_costs *costs, uint32_t queue_pairs) {
    if (queue_pairs <= costs->qp_entries) {
        return 1024;
    }
    double misses = 1.0 - (double)costs->qp_entries / (double)queue_pairs;
    return (uint64_t)((1.0 + costs->qp_miss_factor * misses) * 1024.0 + 0.5);
}
