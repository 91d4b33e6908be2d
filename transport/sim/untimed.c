/* SPDX-License-Identifier: Apache-2.0
 *
 * Untimed batches: how long contexts wait for them. Several are waited for together, while the host has the context's
 * data at hand; one that spins on a lock waits there too.
 *
 * All contexts wait alike, unless a sample has shown the pace of each node: clients of a machine that is compute node
 * and memory node are faster than others where a link is the limit, and background work that posts many verbs at once
 * takes longer than a read. With a pace, contexts wait before their batches act: otherwise each untimed part would
 * begin with as many batches of a slow context as of a fast one.
 */
#include "transport/sim/sim.h"

static void pace_begin(struct sim_pace *pace) {
    if (pace->sampled_batches > 0) {
        pace->batch_ps = pace->sampled_ps / pace->sampled_batches;
    }
    pace->sampled_ps = 0;
    pace->sampled_batches = 0;
}

void sim_timing(struct dm_fabric *fabric, enum dm_timing timing) {
    struct sim *sim = sim_of(fabric);
    sim->is_untimed = timing == DM_UNTIMED && sim->faults.count == 0;
    sim->is_sampled = timing == DM_SAMPLED && sim->faults.count == 0;
    sim->sampled_from = sim->now;
    for (unsigned i = 0; i < fabric->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];
        pace_begin(&node->clients);
        pace_begin(&node->background);
        uint64_t awake = sim->now + SIM_UNTIMED_BATCHES * node->clients.batch_ps;
        sim->sampled_from = awake > sim->sampled_from ? awake : sim->sampled_from;
    }
}

static struct sim_pace *pace_of(struct sim *sim, const struct sim_ctx *ctx) {
    struct sim_node *node = &sim->nodes[ctx->base.node];
    return ctx->base.background ? &node->background : &node->clients;
}

static void sample_add(struct sim *sim, const struct sim_ctx *ctx) {
    if (ctx->batch_at > sim->sampled_from) {
        struct sim_pace *pace = pace_of(sim, ctx);
        pace->sampled_ps += sim->now - ctx->batch_at;
        pace->sampled_batches++;
    }
}

void sim_sample_post(struct sim *sim, struct sim_ctx *ctx) {
    if (!ctx->base.background) {
        sample_add(sim, ctx);
    }
    ctx->batch_at = sim->now;
    ctx->untimed_batches = 0; /* the next untimed part begins with a wait */
}

void sim_sample_complete(struct sim *sim, struct sim_ctx *ctx) {
    if (ctx->base.background && sim->is_sampled) {
        sample_add(sim, ctx);
    }
}

/* What a batch takes that meets no other one: about the time of a read. */
static uint64_t alone_ps(struct sim *sim) {
    const struct sim_costs *costs = &sim->costs;
    return costs->mmio + 4 * costs->nic_fixed + 2 * costs->propagation + sim_pcie_read_time(sim) + costs->pcie_write;
}

/* Background contexts with a pace wait for each batch. They are few, and one that was waiting for many when a sample
 * began would do only the first of them in that time. */
static uint32_t batches_of_a_wait(const struct sim_pace *pace, const struct sim_ctx *ctx) {
    return ctx->base.background && pace->batch_ps > 0 ? 1 : SIM_UNTIMED_BATCHES;
}

int sim_untimed_before(struct sim *sim, struct sim_ctx *ctx) {
    const struct sim_pace *pace = pace_of(sim, ctx);
    return pace->batch_ps > 0 && ctx->untimed_batches == 0
               ? sim_sleep_until(ctx, sim->now + batches_of_a_wait(pace, ctx) * pace->batch_ps)
               : 0;
}

int sim_untimed_after(struct sim *sim, struct sim_ctx *ctx) {
    const struct sim_pace *pace = pace_of(sim, ctx);
    if (++ctx->untimed_batches < batches_of_a_wait(pace, ctx)) {
        return 0;
    }
    ctx->untimed_batches = 0;
    return pace->batch_ps > 0 ? 0 : sim_sleep_until(ctx, sim->now + SIM_UNTIMED_BATCHES * alone_ps(sim));
}
