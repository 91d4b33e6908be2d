/* SPDX-License-Identifier: Apache-2.0
 *
 * Untimed batches: how long contexts wait for them. Several are waited for together, while the host has the context's
 * data at hand; one that spins on a lock waits there too.
 *
 * All contexts wait alike, unless a sample has shown the pace of each node: clients of a machine that is compute node
 * and memory node are faster than others where a link is the limit. With a pace, contexts wait before their batches
 * act: otherwise each untimed part would begin with as many batches of a slow context as of a fast one.
 */
#include "transport/sim/sim.h"

void sim_timing(struct dm_fabric *fabric, enum dm_timing timing) {
    struct sim *sim = sim_of(fabric);
    sim->is_untimed = timing == DM_UNTIMED && sim->faults.count == 0;
    sim->is_sampled = timing == DM_SAMPLED && sim->faults.count == 0;
    sim->sampled_from = sim->now;
    for (unsigned i = 0; i < fabric->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];
        if (node->sampled_batches > 0) {
            node->batch_ps = node->sampled_ps / node->sampled_batches;
        }
        uint64_t awake = sim->now + SIM_UNTIMED_BATCHES * node->batch_ps;
        sim->sampled_from = awake > sim->sampled_from ? awake : sim->sampled_from;
        node->sampled_ps = 0;
        node->sampled_batches = 0;
    }
}

void sim_sample_batch(struct sim *sim, struct sim_ctx *ctx) {
    struct sim_node *node = &sim->nodes[ctx->base.node];
    if (ctx->batch_at > sim->sampled_from && !ctx->base.background) {
        node->sampled_ps += sim->now - ctx->batch_at;
        node->sampled_batches++;
    }
    ctx->batch_at = sim->now;
    ctx->untimed_batches = 0; /* the next untimed part begins with a wait */
}

/* What a batch takes that meets no other one: about the time of a read. */
static uint64_t alone_ps(struct sim *sim) {
    const struct sim_costs *costs = &sim->costs;
    return costs->mmio + 4 * costs->nic_fixed + 2 * costs->propagation + sim_pcie_read_time(sim) + costs->pcie_write;
}

int sim_untimed_before(struct sim *sim, struct sim_ctx *ctx) {
    uint64_t batch_ps = sim->nodes[ctx->base.node].batch_ps;
    return batch_ps > 0 && ctx->untimed_batches == 0 ? sim_sleep_until(ctx, sim->now + SIM_UNTIMED_BATCHES * batch_ps)
                                                     : 0;
}

int sim_untimed_after(struct sim *sim, struct sim_ctx *ctx) {
    if (++ctx->untimed_batches < SIM_UNTIMED_BATCHES) {
        return 0;
    }
    ctx->untimed_batches = 0;
    return sim->nodes[ctx->base.node].batch_ps > 0
               ? 0
               : sim_sleep_until(ctx, sim->now + SIM_UNTIMED_BATCHES * alone_ps(sim));
}
