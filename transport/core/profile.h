/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile: the numbers of one NIC, its link and the CPUs, read from a JSON file in which each number has its
 * source. "inherits" names another profile, whose numbers are used where this one has none.
 *
 * File: { "schema_version": 1, "name": ..., "summary": ..., "inherits": ..., "parameters": { NAME: NUMBER or
 *         { "value": NUMBER, "source": TEXT, "confidence": "H" | "m" | "L", "range": [LOW, HIGH], "points": [ID],
 *           "note": TEXT } } }; the points are those of `dmbench validate` that decide the number.
 */
#ifndef DM_TRANSPORT_CORE_PROFILE_H
#define DM_TRANSPORT_CORE_PROFILE_H

#include "transport/dm.h"

/* X(name, unit, smallest, largest, meaning). Booleans are 0 or 1. */
#define DM_PROFILE_NUMBERS(X)                                                                                          \
    X(link_gbps, "Gbit/s", 1, 3200, "link bandwidth, each way")                                                        \
    X(mtu, "bytes", 256, 9000, "payload of one packet at most")                                                        \
    X(header_bytes, "bytes", 20, 200, "on the wire for each packet beside the payload")                                \
    X(mmio_ns, "ns", 0, 5000, "doorbell store until the NIC acts")                                                     \
    X(propagation_ns, "ns", 0, 1e6, "cable and switch, one way")                                                       \
    X(nic_fixed_ns, "ns", 0, 5000, "latency of one pass through a NIC; four a round trip")                             \
    X(pcie_read_ns, "ns", 0, 10000, "NIC reads host memory, idle")                                                     \
    X(pcie_read_spread_ns, "ns", 0, 5000, "standard deviation of it")                                                  \
    X(pcie_write_ns, "ns", 0, 10000, "NIC's posted write reaches host memory")                                         \
    X(payload_fetch_ns, "ns", 0, 10000, "NIC fetches the payload of a write that is not inline")                       \
    X(max_inline, "bytes", 0, 4096, "largest inline write")                                                            \
    X(pcie_gbytes_per_s, "GB/s", 0.1, 1000, "PCIe bandwidth, each way")                                                \
    X(pcie_generation, "", 1, 6, "of the NIC's slot: with the lanes, the most that its bandwidth can be")              \
    X(pcie_lanes, "lanes", 1, 32, "of the NIC's slot")                                                                 \
    X(pcie_read_overhead_bytes, "bytes", 0, 4096, "PCIe bytes of a read beside its payload")                           \
    X(rx_read_mops, "M/s", 0.1, 10000, "reads that a responder NIC serves")                                            \
    X(rx_write_mops, "M/s", 0.1, 10000, "writes and sends that a responder NIC serves")                                \
    X(rx_atomic_mops, "M/s", 0.1, 10000, "atomics on distinct words that a responder NIC serves")                      \
    X(same_line_read_ns, "ns", 0, 5000, "two reads of one line of host memory are this far apart")                     \
    X(tx_read_mops, "M/s", 0.1, 10000, "reads that a requester NIC sends")                                             \
    X(tx_write_mops, "M/s", 0.1, 10000, "writes and sends that a requester NIC sends")                                 \
    X(tx_atomic_mops, "M/s", 0.1, 10000, "atomics that a requester NIC sends")                                         \
    X(atomic_hold_dram_ns, "ns", 1, 1e5, "an atomic unit is held by one atomic on host memory")                        \
    X(atomic_hold_chip_ns, "ns", 1, 1e5, "the same on on-chip memory")                                                 \
    X(chip_bytes, "bytes", 0, 16777216, "on-chip memory that the user may allocate")                                   \
    X(atomic_slots, "slots", 1, 65536, "atomic units; a word's is chosen by its address / 8")                          \
    X(atomics_in_progress, "atomics", 1, 65536, "atomics on host memory that a responder NIC works on at once")        \
    X(processing_units, "units", 1, 1024, "units that a queue pair's atomics are bound to")                            \
    X(masked_atomics, "0/1", 0, 1, "masked atomics are native")                                                        \
    X(max_rd_atomic, "verbs", 1, 1024, "reads and atomics outstanding on one queue pair")                              \
    X(qp_cache_entries, "queue pairs", 1, 1e6, "queue pairs whose state a NIC keeps")                                  \
    X(qp_miss_factor, "", 0, 100, "service time grows by this times the share of misses")                              \
    X(wqe_cache_entries, "verbs", 1, 1e6, "posted verbs of a requester NIC without a penalty")                         \
    X(wqe_miss_factor, "", 0, 100, "reads and atomics: service grows by this for as many more")                        \
    X(wqe_miss_factor_write, "", 0, 100, "the same for writes and calls")                                              \
    X(cpu_post_ns, "ns", 0, 10000, "client CPU for one work request")                                                  \
    X(cpu_doorbell_ns, "ns", 0, 10000, "client CPU for one doorbell")                                                  \
    X(doorbell_registers, "registers", 0, 1024, "that threads of a compute node share; 0: one a thread")               \
    X(doorbell_shared_ns, "ns", 0, 10000, "one ring of a register that threads share")                                 \
    X(doorbell_waiter_ns, "ns", 0, 10000, "added to it for each thread that waits for it")                             \
    X(cpu_completion_ns, "ns", 0, 10000, "client CPU for one completion")                                              \
    X(cpu_switch_ns, "ns", 0, 10000, "client CPU to resume a coroutine")                                               \
    X(hyper_thread_factor, "", 1, 4, "client work takes this times longer beside a busy sibling")                      \
    X(call_receive_ns, "ns", 0, 1e5, "server CPU to take one request")                                                 \
    X(call_send_ns, "ns", 0, 1e5, "server CPU to send one response")                                                   \
    X(work_node_probe_ns, "ns", 0, 1e5, "see dm_work")                                                                 \
    X(work_cache_probe_ns, "ns", 0, 1e5, "see dm_work")                                                                \
    X(work_key_compare_ns, "ns", 0, 1e5, "see dm_work")                                                                \
    X(work_hash_ns, "ns", 0, 1e5, "see dm_work")                                                                       \
    X(work_model_eval_ns, "ns", 0, 1e5, "see dm_work")                                                                 \
    X(work_line_copy_ns, "ns", 0, 1e5, "see dm_work")                                                                  \
    X(work_access_512k_ns, "ns", 0, 1e5, "one dependent access to a local structure of 512 KiB or less")               \
    X(work_access_4m_ns, "ns", 0, 1e5, "one dependent access to a local structure of 4 MiB")                           \
    X(work_access_32m_ns, "ns", 0, 1e5, "one dependent access to a local structure of 32 MiB")                         \
    X(work_access_256m_ns, "ns", 0, 1e5, "one dependent access to a local structure of 256 MiB")                       \
    X(work_access_1g_ns, "ns", 0, 1e5, "one dependent access to a local structure of 1 GiB or more")                   \
    X(work_dram_access_ns, "ns", 0, 1e5, "see dm_work")                                                                \
    X(work_train_key_ns, "ns", 0, 1e5, "see dm_work")

struct dm_profile {
    char name[64];
#define X(name, unit, least, most, help) double name;
    DM_PROFILE_NUMBERS(X)
#undef X
    char hash[17]; /* of all numbers: two profiles with the same hash behave alike */
};

/* Loads a profile by name or path with everything that it inherits. Missing, unknown, out-of-range numbers, cycles,
 * and numbers that cannot be true together, are errors that name the file and the member. */
int dm_profile_load(const char *name, struct dm_profile *profile, struct dm_err *err);

#endif
