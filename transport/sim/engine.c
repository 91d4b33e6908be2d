/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop: takes the earliest event, lets it act, and when a context became ready and its core is free, goes on
 * with that context. The loop runs on the stack of whoever waits, so that a context that is itself next needs no switch
 * at all.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/sim/sim.h"

#define SIM_SLICE_PS UINT64_C(10000000) /* background work runs in slices of 10 us, then others get the core */

/* ---- operations and payloads ------------------------------------------------------------------------------------ */

static struct sim_op *op_at(const struct sim *sim, uint32_t tag) {
    return &sim->blocks[tag / SIM_POOL_BLOCK][tag % SIM_POOL_BLOCK];
}

static bool pool_grow(struct sim *sim) {
    if (((sim->block_count + 1) * SIM_POOL_BLOCK) >> DM_HEAP_TAG_BITS) {
        return false;
    }
    if (sim->block_count == sim->block_capacity) {
        uint32_t capacity = sim->block_capacity ? sim->block_capacity * 2 : 16;
        struct sim_op **blocks = realloc(sim->blocks, capacity * sizeof(*blocks));
        if (!blocks) {
            return false;
        }
        sim->blocks = blocks;
        sim->block_capacity = capacity;
    }
    struct sim_op *block = aligned_alloc(DM_LINE, SIM_POOL_BLOCK * sizeof(*block));
    if (!block) {
        return false;
    }
    memset(block, 0, SIM_POOL_BLOCK * sizeof(*block));
    uint32_t first = sim->block_count * SIM_POOL_BLOCK;
    sim->blocks[sim->block_count++] = block;
    for (uint32_t i = SIM_POOL_BLOCK; i-- > 0;) {
        /* Tag 0 means "before all others" to the memory and is not given out. */
        if (first + i > 0) {
            block[i].tag = first + i;
            block[i].next = sim->free_ops;
            sim->free_ops = &block[i];
        }
    }
    return true;
}

struct sim_op *sim_op_new(struct sim *sim) {
    if (dm_unlikely(!sim->free_ops) && !pool_grow(sim)) {
        return NULL;
    }
    struct sim_op *op = sim->free_ops;
    sim->free_ops = op->next;
    op->status = 0;
    op->no_effect = op->fence = op->delayed = op->sampled = op->listed = false;
    op->dst = NULL;
    return op;
}

void sim_op_free(struct sim *sim, struct sim_op *op) {
    op->next = sim->free_ops;
    sim->free_ops = op;
}

/* Payload classes are 64, 256, 1024, 4096, 16384 bytes and, never kept, larger ones. */
static unsigned payload_class(uint32_t bytes) {
    unsigned class = 0;
    for (uint32_t room = 64; class < SIM_PAYLOAD_CLASSES - 1 && room < bytes; room *= 4) {
        class ++;
    }
    return class;
}

unsigned char *sim_payload_new(struct sim *sim, uint32_t bytes) {
    unsigned class = payload_class(bytes);
    unsigned char *payload = sim->payloads[class].free;
    if (payload) {
        memcpy(&sim->payloads[class].free, payload, sizeof(void *));
        return payload;
    }
    return malloc(class == SIM_PAYLOAD_CLASSES - 1 ? bytes : (size_t)64 << (2 * class));
}

void sim_payload_free(struct sim *sim, unsigned char *payload, uint32_t bytes) {
    unsigned class = payload_class(bytes);
    if (class == SIM_PAYLOAD_CLASSES - 1) {
        free(payload);
        return;
    }
    memcpy(payload, &sim->payloads[class].free, sizeof(void *));
    sim->payloads[class].free = payload;
}

void sim_schedule(struct sim *sim, struct sim_op *op, enum sim_stage stage, uint64_t at) {
    op->stage = stage;
    if (sim->root_taken) {
        sim->root_taken = false;
        dm_heap_replace(&sim->heap, at, op->tag);
    } else if (dm_unlikely(!dm_heap_push(&sim->heap, at, op->tag))) {
        sim->out_of_memory = true;
    }
}

/* ---- contexts and cores ----------------------------------------------------------------------------------------- */

static void kick_later(struct sim *sim, struct sim_thread *thread) {
    if (thread->kick_pending || !thread->ready_head) {
        return;
    }
    struct sim_op *op = sim_op_new(sim);
    if (!op) {
        sim->out_of_memory = true;
        return;
    }
    op->thread = thread;
    thread->kick_pending = true;
    sim_schedule(sim, op, SIM_KICK, thread->clock > sim->now ? thread->clock : sim->now);
}

void sim_ready(struct sim *sim, struct sim_ctx *ctx) {
    struct sim_thread *thread = sim_thread_of(ctx);
    if (dm_unlikely(ctx->dead)) {
        return;
    }
    ctx->ready_at = sim->now;
    if (!sim->current && !thread->ready_head && thread->clock <= sim->now) {
        sim->current = ctx;
        return;
    }
    ctx->ready_next = NULL;
    *(thread->ready_head ? &thread->ready_tail->ready_next : &thread->ready_head) = ctx;
    thread->ready_tail = ctx;
    kick_later(sim, thread);
}

static int wake_at(struct sim *sim, struct sim_ctx *ctx, uint64_t at) {
    struct sim_op *op = sim_op_new(sim);
    if (!op) {
        sim->out_of_memory = true;
        return DM_ERR_NO_MEMORY;
    }
    op->ctx = ctx;
    sim_schedule(sim, op, SIM_WAKE, at);
    return 0;
}

static void on_wake(struct sim *sim, struct sim_op *op) {
    struct sim_ctx *ctx = op->ctx;
    sim_op_free(sim, op);
    if (ctx->base.parked) { /* else the stop was first */
        ctx->base.parked = false;
        sim_ready(sim, ctx);
    }
}

static void on_kick(struct sim *sim, struct sim_op *op) {
    struct sim_thread *thread = op->thread;
    sim_op_free(sim, op);
    thread->kick_pending = false;
    struct sim_ctx *ctx = thread->ready_head;
    if (ctx) {
        thread->ready_head = ctx->ready_next;
        ctx->ready_next = NULL;
        sim->current = ctx;
    }
}

static void dispatch(struct sim *sim, struct sim_op *op) {
    switch (op->stage) {
    case SIM_ARRIVE:
        sim_arrive(sim, op);
        break;
    case SIM_EFFECT:
        sim_effect(sim, op);
        break;
    case SIM_COMPLETE:
        sim_complete(sim, op);
        break;
    case SIM_ISSUE:
        sim_issue(sim, op);
        break;
    case SIM_DELIVER:
        sim_deliver(sim, op);
        break;
    case SIM_RESPOND:
        sim_respond(sim, op);
        break;
    case SIM_WAKE:
        on_wake(sim, op);
        break;
    case SIM_KICK:
        on_kick(sim, op);
        break;
    case SIM_FAIL:
        sim_node_fail(sim, op);
        break;
    case SIM_RESTART:
        sim_node_restart(sim, op);
        break;
    }
}

/* Everybody who waits for something other than the network goes on, with DM_ERR_STOPPED. */
static void wake_all_stopped(struct sim *sim) {
    sim->stop_seen = true;
    for (struct dm_ctx *ctx = sim->fabric->contexts; ctx; ctx = ctx->all_next) {
        if (ctx->parked) {
            ctx->parked = false;
            ((struct sim_ctx *)ctx)->status = DM_ERR_STOPPED;
            sim_ready(sim, (struct sim_ctx *)ctx);
        }
    }
}

/* The core takes the context up: from when it is free, after paying for completions and the switch. */
static struct sim_ctx *take_up(struct sim *sim, struct sim_ctx *ctx) {
    struct sim_thread *thread = sim_thread_of(ctx);
    if (sim->fabric->measuring) {
        uint64_t work = sim->costs.resume + ctx->completions * sim->costs.completion;
        uint64_t start = thread->clock > sim->now ? thread->clock : sim->now;
        thread->clock = start + work;
        thread->busy += work;
        thread->waited += start - ctx->ready_at;
        thread->served++;
    }
    ctx->completions = 0;
    return ctx;
}

/* The event after this one is nearly always one of the root's four children. */
static inline void prefetch_next(const struct sim *sim) {
    const struct dm_heap_entry *children = &sim->heap.entries[4 * DM_HEAP_ROOT - 8];
    for (unsigned i = 0; i < 4 && i + 1 < sim->heap.count; i++) {
        dm_prefetch_read(op_at(sim, dm_heap_tag(children[i])));
    }
}

/* Events until a context is to run; NULL when the run is over or nothing will ever happen again. */
static struct sim_ctx *next_context(struct sim *sim) {
    sim->current = NULL;
    for (;;) {
        if (dm_unlikely(sim->fabric->stop && !sim->stop_seen)) {
            wake_all_stopped(sim);
        }
        if (sim->current) {
            struct sim_ctx *next = sim->current;
            if (dm_likely(!next->dead)) {
                return take_up(sim, next);
            }
            sim->current = NULL;
            kick_later(sim, sim_thread_of(next));
            continue;
        }
        if (sim->root_taken) {
            sim->root_taken = false;
            (void)dm_heap_pop(&sim->heap);
        }
        if (dm_heap_empty(&sim->heap) || (sim->foreground == 0 && sim->async == 0)) {
            return NULL;
        }
        struct dm_heap_entry entry = sim->heap.entries[DM_HEAP_ROOT];
        prefetch_next(sim);
        sim->root_taken = true;
        sim->now = entry.time;
        dispatch(sim, op_at(sim, dm_heap_tag(entry)));
    }
}

int sim_suspend(struct sim_ctx *ctx) {
    struct sim *sim = sim_of(ctx->base.fabric);
    kick_later(sim, sim_thread_of(ctx));
    struct sim_ctx *next = next_context(sim);
    if (next != ctx) {
        dm_coro_switch(&ctx->base.coro, next ? &next->base.coro : &sim->main);
    }
    int status = ctx->status;
    ctx->status = 0;
    return ctx->base.gone ? DM_ERR_STOPPED : status;
}

static void context_main(void *arg) {
    struct sim_ctx *ctx = arg;
    struct sim *sim = sim_of(ctx->base.fabric);
    ctx->status = 0; /* a stop before the start shows at the first verb */
    ctx->base.entry(&ctx->base, ctx->base.arg);
    ctx->base.done = true;
    sim->foreground -= !ctx->base.background;
    sim->nodes[ctx->base.node].unwinding -= ctx->base.gone;
    sim_suspend(ctx);
}

static int lanes_make(struct sim_ctx *ctx, unsigned memory_nodes) {
    ctx->lanes = calloc(memory_nodes, sizeof(*ctx->lanes));
    return ctx->lanes ? 0 : DM_ERR_NO_MEMORY;
}

int sim_ctx_prepare(struct sim *sim, struct sim_ctx *ctx) {
    DM_TRY(lanes_make(ctx, sim->memory_nodes));
    return dm_coro_init(&ctx->base.coro, DM_STACK_BYTES, context_main, ctx);
}

void sim_ctx_start(struct sim *sim, struct sim_ctx *ctx) {
    ctx->base.parked = true;
    if (sim_ctx_prepare(sim, ctx) < 0 || wake_at(sim, ctx, sim->now) < 0) {
        sim->out_of_memory = true;
        return;
    }
    sim->foreground += !ctx->base.background;
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

static int sim_run(struct dm_fabric *fabric, struct dm_err *err) {
    struct sim *sim = sim_of(fabric);
    if (sim->out_of_memory) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "sim: no memory for contexts");
    }
    dm_coro_init_thread(&sim->main);
    struct sim_ctx *next = next_context(sim);
    if (next) {
        dm_coro_switch(&sim->main, &next->base.coro);
    }
    if (sim->out_of_memory) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "sim: no memory for events");
    }
    if (sim->foreground > 0) {
        return dm_fail(err, DM_ERR_IO, "sim: %llu contexts wait for one another for ever at %llu ns",
                       (unsigned long long)sim->foreground, (unsigned long long)((sim->now - sim->base) / 1000));
    }
    return fabric->stop ? dm_fail(err, DM_ERR_STOPPED, "stopped") : 0;
}

static int sim_park(struct dm_ctx *base) {
    if (base->fabric->stop) {
        return DM_ERR_STOPPED;
    }
    base->parked = true;
    return sim_suspend((struct sim_ctx *)base);
}

static uint64_t context_clock(const struct dm_ctx *base) {
    const struct sim *sim = sim_of(base->fabric);
    uint64_t clock = ((const struct sim_thread *)base->thread)->clock;
    return clock > sim->now ? clock : sim->now;
}

static void sim_wake(struct dm_ctx *waker, struct dm_ctx *target) {
    wake_at(sim_of(waker->fabric), (struct sim_ctx *)target, context_clock(waker));
}

static int sim_sleep(struct dm_ctx *base, uint64_t ns) {
    struct sim *sim = sim_of(base->fabric);
    base->parked = true;
    DM_TRY(wake_at(sim, (struct sim_ctx *)base, context_clock(base) + ns * 1000));
    return sim_suspend((struct sim_ctx *)base);
}

static uint64_t sim_now(struct dm_ctx *base) {
    return (context_clock(base) - sim_of(base->fabric)->base) / 1000;
}

static void sim_charge(struct dm_ctx *base, enum dm_work work, uint32_t units) {
    struct sim *sim = sim_of(base->fabric);
    if (!base->fabric->measuring) {
        return;
    }
    struct sim_ctx *ctx = (struct sim_ctx *)base;
    struct sim_thread *thread = sim_thread_of(ctx);
    uint64_t cost = sim->costs.work[work] * units;
    if (dm_likely(!base->background || ctx->job)) {
        thread->clock += cost;
        thread->busy += cost;
        return;
    }
    while (cost > 0) {
        uint64_t part = SIM_SLICE_PS - ctx->slice < cost ? SIM_SLICE_PS - ctx->slice : cost;
        thread->clock += part;
        thread->busy += part;
        ctx->slice += part;
        cost -= part;
        if (ctx->slice == SIM_SLICE_PS) {
            ctx->slice = 0;
            if (sim_sleep(base, 0) < 0) {
                return;
            }
        }
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

struct sim_fate sim_meet_fate(struct sim *sim, struct sim_ctx *ctx, enum dm_verb_kind kind, unsigned node) {
    struct sim_fate fate = sim_faults_draw(&sim->faults, ctx->client, ++ctx->verbs_begun, kind, node);
    bool is_due = ctx->stop_due || (fate.stops && fate.stop_ns == 0);
    if (is_due && ctx->in_own_call) {
        /* The others of its thread wait for what a call of the transport brings. */
        ctx->stop_due = true;
        fate.stops = false;
    } else if (is_due) {
        ctx->dead = true;
        sim->foreground -= !ctx->base.background;
        if (dm_is_traced(sim->fabric)) {
            dm_trace_wait(&ctx->base, DM_TRACE_STOP, sim_now(&ctx->base), DM_ERR_STOPPED);
        }
        sim_suspend(ctx);
    } else if (fate.stops) {
        /* Verbs already sent may complete meanwhile: they must not wake it, and their status is kept. */
        ctx->pending++;
        uint64_t since_ns = sim_now(&ctx->base);
        int rc = sim_sleep(&ctx->base, fate.stop_ns);
        if (dm_is_traced(sim->fabric)) {
            dm_trace_wait(&ctx->base, DM_TRACE_STOP, since_ns, rc);
        }
        ctx->pending--;
        ctx->status = ctx->status ? ctx->status : rc;
    }
    return fate;
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
    .close = sim_close,
    .measure = sim_measure,
    .run = sim_run,
    .start = sim_start,
    .commit = sim_commit,
    .call = sim_call,
    .park = sim_park,
    .wake = sim_wake,
    .sleep = sim_sleep,
    .now = sim_now,
    .charge = sim_charge,
    .cpu_read = sim_cpu_read,
    .cpu_write = sim_cpu_write,
    .cpu_cas = sim_cpu_cas,
    .expect_bulk = sim_expect_bulk,
    .resources_reset = sim_resources_reset,
    .resources = sim_resources,
};
