/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator's nodes: their memory, threads and queue pairs, made and released.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/aligned.h"
#include "transport/sim/sim.h"

/* The memory of a node is compressed, if it compresses well, when this much is loaded: accesses then cost some us of
 * the host, which smaller memory needs not pay. */
#define COMPRESSED_FROM (UINT64_C(2) << 30)

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static void memory_unmap(struct sim_memory *memory) {
    sim_bytes_close(&memory->bytes);
    free(memory->reads);
    free(memory->writes);
    free(memory->atomics);
}

void sim_expect_bulk(struct dm_fabric *fabric, unsigned node, uint64_t offset, uint64_t bytes) {
    struct sim_bytes *dram = &sim_of(fabric)->nodes[node].dram.bytes;
    if (!fabric->measuring) {
        sim_bytes_expect(dram, offset, bytes);
    } else if (dram->pages == NULL) { /* whether memory is compressed is decided while it is loaded */
        dm_mapping_expect_bulk(&dram->mapping, offset, bytes);
    }
}

void sim_copied(struct dm_fabric *fabric) {
    for (unsigned node = 0; node < fabric->node_count; node++) {
        sim_bytes_copied(&sim_of(fabric)->nodes[node].dram.bytes);
    }
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

/* Threads beyond the number of cores share a core each with an earlier one: hyper-threads. */
static int share_cores(struct sim *sim, unsigned node, uint64_t cores, const char *what, struct dm_err *err) {
    const struct dm_node_state *state = &sim->fabric->nodes[node];
    uint64_t threads = state->thread_count;
    for (uint64_t i = 0; i < threads; i++) {
        ((struct sim_thread *)state->threads[i])->work_1024 = 1024;
    }
    if (cores == 0 || threads <= cores) {
        return 0;
    }
    if (threads > 2 * cores) {
        return dm_fail(err, DM_ERR_INVALID, "sim: %llu threads on the %llu cores of %s: at most two a core",
                       (unsigned long long)threads, (unsigned long long)cores, what);
    }
    for (uint64_t i = 0; i < threads - cores; i++) {
        ((struct sim_thread *)state->threads[i])->work_1024 = sim->costs.hyper_thread_1024;
        ((struct sim_thread *)state->threads[cores + i])->work_1024 = sim->costs.hyper_thread_1024;
    }
    return 0;
}

/* Queue pairs of several threads share doorbell registers when there are fewer of these; see register_of. */
static int share_registers(struct sim *sim, unsigned node) {
    const struct dm_node_state *state = &sim->fabric->nodes[node];
    uint32_t registers = sim->costs.doorbell_registers;
    bool is_shared = registers > 0 && state->thread_count * dm_first_cn(&sim->fabric->topology) > registers;
    free(sim->nodes[node].registers);
    sim->nodes[node].registers = is_shared ? calloc(registers, sizeof(struct sim_register)) : NULL;
    for (uint32_t i = 0; i < state->thread_count; i++) {
        ((struct sim_thread *)state->threads[i])->rings = sim->nodes[node].registers;
    }
    return is_shared && !sim->nodes[node].registers ? DM_ERR_NO_MEMORY : 0;
}

/* Again after dm_fabric_resize. */
static int compute_node_init(struct sim *sim, unsigned node, struct dm_err *err) {
    DM_TRY(share_cores(sim, node, sim->options->cn_cores, "a compute node", err));
    return share_registers(sim, node);
}

static int server_init(struct sim *sim, unsigned node, struct dm_err *err) {
    bool is_server = node >= sim->fabric->topology.mns;
    return is_server ? share_cores(sim, node, sim->options->server_hw_cores, "an index server", err)
                     : share_cores(sim, node, sim->options->mn_hw_cores, "a memory node", err);
}

static int node_init(struct sim *sim, unsigned node, struct dm_err *err) {
    const struct dm_topology *topology = &sim->fabric->topology;
    sim->nodes[node].failed_at = SIM_NEVER;
    DM_TRY(sim_nics_open(sim, node));
    if (node < sim->memory_nodes &&
        sim_bytes_open(&sim->nodes[node].dram.bytes, topology->mn_bytes, COMPRESSED_FROM) < 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY,
                       "sim: cannot reserve %llu bytes for node %u: fewer keys or a smaller mn_memory",
                       (unsigned long long)topology->mn_bytes, node);
    }
    if (node < topology->mns && topology->chip_bytes > 0) {
        DM_TRY(sim_bytes_open(&sim->nodes[node].chip.bytes, topology->chip_bytes, UINT64_MAX));
    }
    struct dm_node_state *state = &sim->fabric->nodes[node];
    assert(sim->memory_nodes > 0); /* a topology has at least one memory node */
    for (unsigned i = 0; i < state->thread_count; i++) {
        struct sim_thread *thread = (struct sim_thread *)state->threads[i];
        thread->unit = (uint16_t)(dm_mix64((uint64_t)node << 32 | i) % sim->costs.processing_units);
        thread->nic = (uint8_t)(i % sim->options->nics);
        thread->qps = dm_aligned_new(sim->memory_nodes, sizeof(*thread->qps));
        if (!thread->qps) {
            return DM_ERR_NO_MEMORY;
        }
    }
    return node < sim->memory_nodes ? server_init(sim, node, err) : compute_node_init(sim, node, err);
}

int sim_resized(struct dm_fabric *fabric, struct dm_err *err) {
    struct sim *sim = sim_of(fabric);
    for (unsigned node = dm_first_cn(&fabric->topology); node < fabric->node_count; node++) {
        DM_TRY(compute_node_init(sim, node, err));
    }
    sim_count_queue_pairs(sim);
    return 0;
}

int sim_nodes_open(struct dm_fabric *fabric, struct dm_err *err) {
    struct sim *sim = calloc(1, sizeof(*sim));
    if (!sim) {
        return DM_ERR_NO_MEMORY;
    }
    fabric->impl = sim;
    sim->fabric = fabric;
    sim->options = fabric->options;
    sim->memory_nodes = fabric->topology.mns + fabric->topology.servers;
    sim->lines = dm_prng_stream(fabric->config.seed, "line order", 0);
    sim->spread = dm_prng_stream(fabric->config.seed, "PCIe reads", 0);
    sim_costs_init(&sim->costs, fabric->profile);
    DM_TRY(sim_faults_parse(&sim->faults, sim->options->faults, &fabric->topology, err));
    sim->faults.prng = dm_prng_stream(fabric->config.seed, "faults", 0);
    /* The profile states how much the device has; a topology may use less. */
    uint32_t chip = (uint32_t)fabric->profile->chip_bytes;
    fabric->topology.chip_bytes = fabric->topology.chip_bytes < chip ? fabric->topology.chip_bytes : chip;
    sim->nodes = calloc(fabric->node_count, sizeof(*sim->nodes));
    if (!sim->nodes || dm_wheel_init(&sim->wheel) < 0 || sim_pool_open(sim) < 0) {
        return DM_ERR_NO_MEMORY;
    }
    for (unsigned node = 0; node < fabric->node_count; node++) {
        DM_TRY(node_init(sim, node, err));
    }
    sim_count_queue_pairs(sim);
    return 0;
}

static void release_nodes(struct sim *sim) {
    for (unsigned node = 0; sim->nodes && node < sim->fabric->node_count; node++) {
        struct sim_node *state = &sim->nodes[node];
        memory_unmap(&state->dram);
        memory_unmap(&state->chip);
        sim_nics_close(sim, node);
        free(state->registers);
        for (unsigned i = 0; i < sim->fabric->nodes[node].opened_count; i++) {
            free(((struct sim_thread *)sim->fabric->nodes[node].threads[i])->qps);
        }
    }
    free(sim->nodes);
}

static void release_payloads(struct sim *sim) {
    sim_pool_close(sim);
    free(sim->traced);
    for (unsigned class = 0; class < SIM_PAYLOAD_CLASSES; class ++) {
        for (unsigned char *payload = sim->payloads[class].free, *next; payload; payload = next) {
            memcpy(&next, payload, sizeof(next));
            free(payload);
        }
    }
}

void sim_nodes_close(struct dm_fabric *fabric) {
    struct sim *sim = sim_of(fabric);
    for (struct dm_ctx *ctx = fabric->contexts; ctx; ctx = ctx->all_next) {
        free(((struct sim_ctx *)ctx)->lanes);
    }
    release_nodes(sim);
    release_payloads(sim);
    dm_wheel_fini(&sim->wheel);
    free(sim);
    fabric->impl = NULL;
}
