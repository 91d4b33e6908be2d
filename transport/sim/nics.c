/* SPDX-License-Identifier: Apache-2.0
 *
 * The NICs of the simulator's nodes, made and released; and the utilisation of their resources.
 */
#include <stdlib.h>

#include "transport/sim/sim.h"

static uint32_t threads_in_all(const struct dm_fabric *fabric, unsigned from, unsigned to) {
    uint32_t sum = 0;
    for (unsigned node = from; node < to; node++) {
        sum += fabric->nodes[node].thread_count;
    }
    return sum;
}

/* Queue pairs that the NICs of a node hold together: each thread of a compute node has one for every node with memory,
 * and each core of an index server one for every memory node. */
static uint32_t queue_pairs(const struct sim *sim, unsigned node) {
    const struct dm_fabric *fabric = sim->fabric;
    const struct dm_topology *topology = &fabric->topology;
    uint32_t own = fabric->nodes[node].thread_count;
    if (node >= sim->memory_nodes) {
        return own * sim->memory_nodes;
    }
    uint32_t clients = threads_in_all(fabric, dm_first_cn(topology), fabric->node_count);
    bool is_server = node >= topology->mns;
    return clients + (is_server ? own * topology->mns : threads_in_all(fabric, topology->mns, sim->memory_nodes));
}

static int nic_init(struct sim *sim, struct sim_nic *nic, bool has_memory) {
    uint32_t slots = sim->costs.atomic_slots;
    nic->units = calloc(sim->costs.processing_units, sizeof(*nic->units));
    bool is_made = nic->units != NULL;
    for (unsigned space = 0; space < 2 && has_memory; space++) {
        nic->slots_of[space] = calloc(slots, sizeof(*nic->slots_of[space]));
        is_made = is_made && nic->slots_of[space];
    }
    if (sim->costs.same_line_read > 0 && has_memory) {
        nic->lines = calloc(SIM_LINES, sizeof(*nic->lines));
        is_made = is_made && nic->lines;
    }
    return is_made ? 0 : DM_ERR_NO_MEMORY;
}

int sim_nics_open(struct sim *sim, unsigned node) {
    struct sim_node *state = &sim->nodes[node];
    unsigned first_cn = dm_first_cn(&sim->fabric->topology);
    if (sim->options->same_host && node >= first_cn && node - first_cn < sim->fabric->topology.mns) {
        state->nics = sim->nodes[node - first_cn].nics;
    } else {
        state->nics = calloc(sim->options->nics, sizeof(*state->nics));
        state->owns_nics = true;
    }
    if (!state->nics) {
        return DM_ERR_NO_MEMORY;
    }
    for (uint64_t i = 0; i < sim->options->nics && state->owns_nics; i++) {
        DM_TRY(nic_init(sim, &state->nics[i], node < sim->memory_nodes));
    }
    return 0;
}

void sim_count_queue_pairs(struct sim *sim) {
    for (unsigned node = 0; node < sim->fabric->node_count; node++) {
        struct sim_node *state = &sim->nodes[node];
        for (uint64_t i = 0; i < sim->options->nics; i++) {
            struct sim_nic *nic = &state->nics[i];
            /* a compute node that shares its memory node's NICs comes after it */
            uint32_t before = state->owns_nics ? 0 : nic->queue_pairs;
            nic->queue_pairs = before + queue_pairs(sim, node) / (uint32_t)sim->options->nics;
            nic->factor_1024 = sim_qp_factor_1024(&sim->costs, nic->queue_pairs);
        }
    }
}

void sim_nics_close(struct sim *sim, unsigned node) {
    struct sim_node *state = &sim->nodes[node];
    if (!state->owns_nics || !state->nics) {
        return;
    }
    for (uint64_t i = 0; i < sim->options->nics; i++) {
        free(state->nics[i].units);
        free(state->nics[i].slots_of[0]);
        free(state->nics[i].slots_of[1]);
        free(state->nics[i].lines);
    }
    free(state->nics);
}

/* ---- utilisation ------------------------------------------------------------------------------------------------ */

enum { SERVERS = 6 };

static struct sim_server *server_of(struct sim_nic *nic, unsigned which) {
    struct sim_server *const servers[SERVERS] = {&nic->tx, &nic->rx,      &nic->out,
                                                 &nic->in, &nic->pcie_in, &nic->pcie_out};
    return servers[which];
}

static const char *const server_names[SERVERS] = {"nic_tx", "nic_rx", "link_out", "link_in", "pcie_in", "pcie_out"};

static void server_reset(struct sim_server *server) {
    server->busy = server->waited = server->served = server->idle_waited = 0;
}

static void nic_reset(const struct sim *sim, struct sim_nic *nic) {
    for (unsigned which = 0; which < SERVERS; which++) {
        server_reset(server_of(nic, which));
    }
    server_reset(&nic->slots);
    for (unsigned space = 0; space < 2; space++) {
        for (uint32_t i = 0; nic->slots_of[space] && i < sim->costs.atomic_slots; i++) {
            nic->slots_of[space][i].busy = 0;
        }
    }
}

void sim_resources_reset(struct dm_fabric *fabric) {
    struct sim *sim = sim_of(fabric);
    sim->reset_at = sim->now;
    for (unsigned node = 0; node < fabric->node_count; node++) {
        for (uint64_t i = 0; i < sim->options->nics; i++) {
            nic_reset(sim, &sim->nodes[node].nics[i]);
        }
        for (unsigned i = 0; i < fabric->nodes[node].thread_count; i++) {
            struct sim_thread *thread = (struct sim_thread *)fabric->nodes[node].threads[i];
            thread->busy = thread->waited = thread->served = thread->idle_waited = 0;
        }
    }
}

/* `sums` of so many equal resources as one. */
static struct dm_resource resource_of(const struct sim *sim, unsigned node, const char *name,
                                      const struct sim_server *sums, uint64_t width) {
    double elapsed = (double)(sim->now - sim->reset_at);
    struct dm_resource resource = {
        .node = node, .name = name, .served = sums->served, .idle_waited_ns = sums->idle_waited / 1000};
    if (elapsed > 0) {
        double share = (double)sums->busy / (elapsed * (double)width);
        resource.busy = share < 1 ? share : 1;
        resource.queue_mean = (double)sums->waited / elapsed;
    }
    return resource;
}

static void add(struct sim_server *sums, uint64_t busy, uint64_t waited, uint64_t served, uint64_t idle_waited) {
    sums->busy += busy;
    sums->waited += waited;
    sums->served += served;
    sums->idle_waited += idle_waited;
}

static struct dm_resource cores_of(const struct sim *sim, unsigned node) {
    const struct dm_node_state *state = &sim->fabric->nodes[node];
    struct sim_server sums = {0};
    for (unsigned i = 0; i < state->thread_count; i++) {
        const struct sim_thread *thread = (const struct sim_thread *)state->threads[i];
        add(&sums, thread->busy, thread->waited + thread->busy, thread->served, thread->idle_waited);
    }
    return resource_of(sim, node, "cores", &sums, state->thread_count);
}

/* One kind of server of all NICs of a node. */
static struct dm_resource servers_of(const struct sim *sim, unsigned node, unsigned which) {
    struct sim_server sums = {0};
    for (uint64_t i = 0; i < sim->options->nics; i++) {
        const struct sim_server *server = server_of(&sim->nodes[node].nics[i], which);
        add(&sums, server->busy, server->waited, server->served, server->idle_waited);
    }
    return resource_of(sim, node, server_names[which], &sums, sim->options->nics);
}

/* The atomic slot that works most; what was served, and the queue, are those of all slots. */
static struct dm_resource slots_of(const struct sim *sim, unsigned node) {
    struct sim_server sums = {0};
    uint64_t most = 0;
    for (uint64_t i = 0; i < sim->options->nics; i++) {
        const struct sim_nic *nic = &sim->nodes[node].nics[i];
        add(&sums, 0, nic->slots.waited, nic->slots.served, nic->slots.idle_waited);
        for (unsigned space = 0; space < 2; space++) {
            for (uint32_t slot = 0; nic->slots_of[space] && slot < sim->costs.atomic_slots; slot++) {
                uint64_t busy = nic->slots_of[space][slot].busy;
                most = busy > most ? busy : most;
            }
        }
    }
    sums.busy = most;
    return resource_of(sim, node, "atomic_slot", &sums, 1);
}

size_t sim_resources(struct dm_fabric *fabric, struct dm_resource *resources, size_t capacity) {
    struct sim *sim = sim_of(fabric);
    size_t count = 0;
    for (unsigned node = 0; node < fabric->node_count; node++) {
        for (unsigned which = 0; which < SERVERS + 2; which++) {
            bool is_counted = sim->nodes[node].owns_nics || which > SERVERS;
            if (is_counted && count < capacity) {
                resources[count] = which < SERVERS    ? servers_of(sim, node, which)
                                   : which == SERVERS ? slots_of(sim, node)
                                                      : cores_of(sim, node);
            }
            count += is_counted;
        }
    }
    return count;
}
