/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport's table and options; starting contexts and the measured phase.
 */
#include "transport/sim/sim.h"

static int sim_open(struct dm_fabric *fabric, struct dm_err *err) {
    DM_TRY(sim_nodes_open(fabric, err));
    sim_of(fabric)->next = sim_next_context;
    return 0;
}

static void sim_start(struct dm_ctx *base) {
    struct sim *sim = sim_of(base->fabric);
    struct sim_ctx *ctx = (struct sim_ctx *)base;
    bool is_client = base->fabric->measuring && !base->background && base->node >= sim->memory_nodes;
    ctx->client = is_client ? sim->next_client++ : SIM_ANY;
    if (base->background && !base->fabric->measuring) {
        ctx->idle_next = sim->deferred;
        sim->deferred = ctx;
    } else {
        sim_ctx_start(sim, ctx);
    }
}

static void sim_cpu_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len) {
    struct sim *sim = sim_of(ctx->fabric);
    sim_memory_cpu_read(sim, sim_memory_at(sim, src), dm_addr_offset(src), dst, len);
}

static void sim_cpu_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len) {
    struct sim *sim = sim_of(ctx->fabric);
    sim_memory_cpu_write(sim, sim_memory_at(sim, dst), dm_addr_offset(dst), src, len);
}

static uint64_t sim_cpu_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired) {
    uint64_t found;
    sim_cpu_read(ctx, addr, &found, sizeof(found));
    if (found == expect) {
        sim_cpu_write(ctx, addr, &desired, sizeof(desired));
    }
    return found;
}

/* The failures of nodes that the rules ask for, from now on. */
static int schedule_failures(struct sim *sim) {
    for (uint32_t i = 0; i < sim->faults.count; i++) {
        const struct sim_fault *rule = &sim->faults.rules[i];
        if (rule->kind == SIM_FAULT_FAIL) {
            struct sim_op *op = sim_op_new(sim);
            if (!op) {
                return DM_ERR_NO_MEMORY;
            }
            op->addr = dm_addr_make((unsigned)rule->node, DM_DRAM, 0);
            op->delay = rule->away_ns * 1000;
            sim_schedule(sim, op, SIM_FAIL, sim->now + rule->ns * 1000);
        }
    }
    return 0;
}

static int sim_measure(struct dm_fabric *fabric) {
    struct sim *sim = sim_of(fabric);
    if (!sim->measured) {
        sim->measured = true;
        sim->base = sim->now;
        DM_TRY(schedule_failures(sim));
    }
    while (sim->deferred) {
        struct sim_ctx *ctx = sim->deferred;
        sim->deferred = ctx->idle_next;
        sim_ctx_start(sim, ctx);
    }
    sim_resources_reset(fabric);
    return sim->out_of_memory ? DM_ERR_NO_MEMORY : 0;
}

static const char *const order_names[] = {"ascending", "random", "descending", NULL};

static const char *const read_order_names[] = {"posted", "any", NULL};

#define ROW(member, ...)          DM_OPT_ROW(struct sim_options, member, __VA_ARGS__)
#define ROW_AS(name, member, ...) DM_OPT_ROW_AS(name, struct sim_options, member, __VA_ARGS__)

static const struct dm_opt options[] = {
    ROW(read_line_order, DM_OPT_ENUM, .initial = "random", .choices = order_names,
        .help = "order in which the 64-byte lines of one read are sampled"),
    ROW(write_line_order, DM_OPT_ENUM, .initial = "random", .choices = order_names,
        .help = "order in which the 64-byte lines of one write land; hardware of today: ascending"),
    ROW_AS("read_window", read_window_ns, DM_OPT_DURATION, .initial = "0", .max = 1e9,
           .help = "time added to that over which a read samples its lines, to make torn reads likely"),
    ROW_AS("write_window", write_window_ns, DM_OPT_DURATION, .initial = "0", .max = 1e9,
           .help = "time added to that over which the lines of a write land"),
    ROW(read_order, DM_OPT_ENUM, .initial = "posted", .choices = read_order_names,
        .help =
            "order in which reads of one batch are sampled: as posted, or any, as PCIe may fetch them (for checks: it "
            "delays reads by up to pcie_read)"),
    ROW(nics, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 8,
        .help = "NICs of every node; the threads of a compute node are spread over them"),
    ROW(same_host, DM_OPT_BOOL, .initial = "off",
        .help = "memory node i and compute node i are one machine with one NIC, through which verbs between them turn "
                "round"),
    ROW(cn_cores, DM_OPT_COUNT, .initial = "0", .max = 4096,
        .help =
            "cores of a compute node; more threads than that share cores in pairs, at most two a core; 0: a core each"),
    ROW(mn_hw_cores, DM_OPT_COUNT, .initial = "0", .max = 4096,
        .help = "likewise cores of a memory node, whose mn_cores are then threads"),
    ROW(server_hw_cores, DM_OPT_COUNT, .initial = "0", .max = 4096,
        .help = "likewise cores of an index server, whose server_cores are then threads"),
    ROW(coroutines, DM_OPT_BOOL, .initial = "on",
        .help = "clients of a thread are coroutines, and switching between them costs cpu_switch_ns; off: they are "
                "requests of one program, which keeps several in flight"),
    ROW(faults, DM_OPT_STRING, .initial = "",
        .help =
            "what goes wrong, as in stop:client=3,verb=120,for=50us; fail:node=0,at=5ms,for=2ms; delay:p=0.01,by=10us; "
            "error:client=1,verb=7"),
    ROW_AS("peer_timeout", peer_timeout_ns, DM_OPT_DURATION, .initial = "1ms", .min = 1, .max = 1e12,
           .help = "time until a verb or call to a node that has failed completes in error"),
    DM_OPT_END,
};

const struct dm_transport_ops dm_transport_sim = {
    .info = {.name = "sim",
             .summary = "deterministic discrete-event model of an RDMA fabric, in virtual time",
             .caps = DM_CAP_VIRTUAL_TIME | DM_CAP_MASKED_ATOMICS | DM_CAP_CHIP_MEMORY | DM_CAP_PROFILE | DM_CAP_FAULTS,
             .options = options},
    .options_bytes = sizeof(struct sim_options),
    .ctx_bytes = sizeof(struct sim_ctx),
    .thread_bytes = sizeof(struct sim_thread),
    .traces_verbs = true,
    .open = sim_open,
    .close = sim_nodes_close,
    .measure = sim_measure,
    .timing = sim_timing,
    .run = sim_run,
    .start = sim_start,
    .commit = sim_commit,
    .call = sim_call,
    .park = sim_park,
    .wake = sim_wake,
    .sleep = sim_sleep,
    .now = sim_now,
    .charge = sim_charge,
    .charge_access = sim_charge_access,
    .cpu_read = sim_cpu_read,
    .cpu_write = sim_cpu_write,
    .cpu_cas = sim_cpu_cas,
    .expect_bulk = sim_expect_bulk,
    .copied = sim_copied,
    .resized = sim_resized,
    .resources_reset = sim_resources_reset,
    .resources = sim_resources,
};
