/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator's nodes: their memory, NICs and queue pairs, made and released; and the utilisation of their resources.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/sim/sim.h"

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static void memory_unmap(struct sim_memory *memory) {
    dm_mapping_close(&memory->mapping);
    free(memory->reads);
    free(memory->writes);
    free(memory->atomics);
}

void sim_expect_bulk(struct dm_fabric *fabric, unsigned node, uint64_t offset, uint64_t bytes) {
    dm_mapping_expect_bulk(&sim_of(fabric)->nodes[node].dram.mapping, offset, bytes);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static uint32_t threads_in_all(const struct dm_fabric *fabric, unsigned from, unsigned to) {
    uint32_t sum = 0;
    for (unsigned node = from; node < to; node++) {
        sum += fabric->nodes[node].thread_count;
    }
    return sum;
}

static int nic_init(struct sim *sim, unsigned node) {
    struct dm_fabric *fabric = sim->fabric;
    struct sim_nic *nic = &sim->nodes[node].nic;
    uint32_t first_cn = dm_first_cn(&fabric->topology);
    /* A queue pair for each (thread of a compute node, node with memory). */
    uint32_t pairs = node < sim->memory_nodes ? threads_in_all(fabric, first_cn, fabric->node_count)
                                              : fabric->nodes[node].thread_count * sim->memory_nodes;
    nic->factor_1024 = sim_qp_factor_1024(&sim->costs, pairs);
    nic->unit_free = calloc(sim->costs.processing_units, sizeof(*nic->unit_free));
    nic->slot_dram_free = calloc(sim->costs.atomic_slots, sizeof(*nic->slot_dram_free));
    nic->slot_chip_free = calloc(sim->costs.atomic_slots, sizeof(*nic->slot_chip_free));
    return nic->unit_free && nic->slot_dram_free && nic->slot_chip_free ? 0 : DM_ERR_NO_MEMORY;
}

static int node_init(struct sim *sim, unsigned node, struct dm_err *err) {
    const struct dm_topology *topology = &sim->fabric->topology;
    sim->nodes[node].failed_at = SIM_NEVER;
    DM_TRY(nic_init(sim, node));
    if (node < sim->memory_nodes && dm_mapping_open(&sim->nodes[node].dram.mapping, topology->mn_bytes) < 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY,
                       "sim: cannot reserve %llu bytes for node %u: fewer keys or a smaller mn_memory",
                       (unsigned long long)topology->mn_bytes, node);
    }
    if (node < topology->mns && topology->chip_bytes > 0) {
        DM_TRY(dm_mapping_open(&sim->nodes[node].chip.mapping, topology->chip_bytes));
    }
    struct dm_node_state *state = &sim->fabric->nodes[node];
    for (unsigned i = 0; i < state->thread_count; i++) {
        struct sim_thread *thread = (struct sim_thread *)state->threads[i];
        thread->unit = (uint16_t)(dm_mix64((uint64_t)node << 32 | i) % sim->costs.processing_units);
        thread->qps = calloc(sim->memory_nodes, sizeof(*thread->qps));
        if (!thread->qps) {
            return DM_ERR_NO_MEMORY;
        }
    }
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
    sim_costs_init(&sim->costs, fabric->profile);
    DM_TRY(sim_faults_parse(&sim->faults, sim->options->faults, &fabric->topology, err));
    sim->faults.prng = dm_prng_stream(fabric->config.seed, "faults", 0);
    /* The profile states how much the device has; a topology may use less. */
    uint32_t chip = (uint32_t)fabric->profile->chip_bytes;
    fabric->topology.chip_bytes = fabric->topology.chip_bytes < chip ? fabric->topology.chip_bytes : chip;
    sim->nodes = calloc(fabric->node_count, sizeof(*sim->nodes));
    if (!sim->nodes || !dm_heap_reserve(&sim->heap, 4096)) {
        return DM_ERR_NO_MEMORY;
    }
    for (unsigned node = 0; node < fabric->node_count; node++) {
        DM_TRY(node_init(sim, node, err));
    }
    return 0;
}

static void release_nodes(struct sim *sim) {
    for (unsigned node = 0; sim->nodes && node < sim->fabric->node_count; node++) {
        struct sim_node *state = &sim->nodes[node];
        memory_unmap(&state->dram);
        memory_unmap(&state->chip);
        free(state->nic.unit_free);
        free(state->nic.slot_dram_free);
        free(state->nic.slot_chip_free);
        for (unsigned i = 0; i < sim->fabric->nodes[node].thread_count; i++) {
            free(((struct sim_thread *)sim->fabric->nodes[node].threads[i])->qps);
        }
    }
    free(sim->nodes);
}

static void release_payloads(struct sim *sim) {
    /* Payloads still carried by verbs in flight, then the kept ones. */
    for (uint32_t block = 0; block < sim->block_count; block++) {
        for (unsigned i = 0; i < SIM_POOL_BLOCK; i++) {
            free(sim->blocks[block][i].payload);
        }
        free(sim->blocks[block]);
    }
    free(sim->blocks);
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
    dm_heap_fini(&sim->heap);
    free(sim);
    fabric->impl = NULL;
}

/* ---- utilisation ------------------------------------------------------------------------------------- */

enum { SERVERS = 7 };

static struct sim_server *server_of(struct sim_nic *nic, unsigned which) {
    struct sim_server *const servers[SERVERS] = {&nic->tx,      &nic->rx,       &nic->out,   &nic->in,
                                                 &nic->pcie_in, &nic->pcie_out, &nic->atomic};
    return servers[which];
}

static const char *const server_names[SERVERS] = {"nic_tx",  "nic_rx",   "link_out",  "link_in",
                                                  "pcie_in", "pcie_out", "nic_atomic"};

void sim_resources_reset(struct dm_fabric *fabric) {
    struct sim *sim = sim_of(fabric);
    sim->reset_at = sim->now;
    for (unsigned node = 0; node < fabric->node_count; node++) {
        for (unsigned which = 0; which < SERVERS; which++) {
            struct sim_server *server = server_of(&sim->nodes[node].nic, which);
            server->busy = server->waited = server->served = 0;
        }
        for (unsigned i = 0; i < fabric->nodes[node].thread_count; i++) {
            struct sim_thread *thread = (struct sim_thread *)fabric->nodes[node].threads[i];
            thread->busy = thread->waited = thread->served = 0;
        }
    }
}

static struct dm_resource resource_of(const struct sim *sim, unsigned node, const char *name, uint64_t busy,
                                      uint64_t waited, uint64_t served, unsigned width) {
    double elapsed = (double)(sim->now - sim->reset_at);
    struct dm_resource resource = {.node = node, .name = name, .served = served};
    if (elapsed > 0) {
        double share = (double)busy / (elapsed * width);
        resource.busy = share < 1 ? share : 1;
        resource.queue_mean = (double)waited / elapsed;
    }
    return resource;
}

static struct dm_resource cores_of(const struct sim *sim, unsigned node) {
    const struct dm_node_state *state = &sim->fabric->nodes[node];
    uint64_t busy = 0, waited = 0, served = 0;
    for (unsigned i = 0; i < state->thread_count; i++) {
        const struct sim_thread *thread = (const struct sim_thread *)state->threads[i];
        busy += thread->busy;
        waited += thread->waited + thread->busy;
        served += thread->served;
    }
    return resource_of(sim, node, "cores", busy, waited, served, state->thread_count);
}

size_t sim_resources(struct dm_fabric *fabric, struct dm_resource *resources, size_t capacity) {
    struct sim *sim = sim_of(fabric);
    size_t count = 0;
    for (unsigned node = 0; node < fabric->node_count; node++) {
        for (unsigned which = 0; which < SERVERS; which++, count++) {
            const struct sim_server *server = server_of(&sim->nodes[node].nic, which);
            if (count < capacity) {
                resources[count] =
                    resource_of(sim, node, server_names[which], server->busy, server->waited, server->served, 1);
            }
        }
        if (count < capacity) {
            resources[count] = cores_of(sim, node);
        }
        count++;
    }
    return count;
}
