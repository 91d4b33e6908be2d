/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport's frame: making and releasing nodes and threads, a run from outside, time, and the table. Real time;
 * nothing is modelled, and a verb costs what its copy costs.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/local/local.h"

enum {
    STOP_POLL_NS = 20000000,     /* a signal handler only sets a flag: the run looks at it this often */
    STOP_DRAIN_NS = 500000000,   /* background contexts have this long to end after a stop */
    BACKGROUND_SLICE_UNITS = 512 /* of charged work, then others of the thread run */
};

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

static int find_cpus(struct local *local) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return 0;
    }
    local->cpus = calloc(CPU_SETSIZE, sizeof(*local->cpus));
    if (!local->cpus) {
        return DM_ERR_NO_MEMORY;
    }
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            local->cpus[local->cpu_count++] = cpu;
        }
    }
    return 0;
}

static int node_init(struct local *local, unsigned number, struct dm_err *err) {
    const struct dm_topology *topology = &local->fabric->topology;
    struct local_node *node = &local->nodes[number];
    node->dram.salt = dm_mix64(2 * number + 1);
    node->chip.salt = dm_mix64(2 * number + 2);
    if (number < dm_first_cn(topology) && local_memory_map(&node->dram, topology->mn_bytes) < 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY,
                       "local: cannot reserve %llu bytes for node %u: fewer keys or a smaller mn_memory",
                       (unsigned long long)topology->mn_bytes, number);
    }
    return number < topology->mns && topology->chip_bytes > 0 ? local_memory_map(&node->chip, topology->chip_bytes) : 0;
}

/* Locks and conditions, before anything that can fail, so that closing need not know how far opening came. */
static void init_locks(struct local *local) {
    const struct dm_fabric *fabric = local->fabric;
    pthread_mutex_init(&local->start_lock, NULL);
    pthread_mutex_init(&local->lock, NULL);
    local_cond_init(&local->cond);
    for (unsigned node = 0; node < fabric->node_count; node++) {
        pthread_mutex_init(&local->nodes[node].lock, NULL);
        for (unsigned i = 0; i < fabric->nodes[node].thread_count; i++) {
            struct local_thread *thread = (struct local_thread *)fabric->nodes[node].threads[i];
            thread->budget = local->options->yield_every;
            pthread_mutex_init(&thread->lock, NULL);
            local_cond_init(&thread->cond);
        }
    }
}

static int local_open(struct dm_fabric *fabric, struct dm_err *err) {
    struct local *local = calloc(1, sizeof(*local));
    struct local_node *nodes = calloc(fabric->node_count, sizeof(*nodes));
    if (!local || !nodes) {
        free(local);
        free(nodes);
        return DM_ERR_NO_MEMORY;
    }
    fabric->impl = local;
    local->fabric = fabric;
    local->options = fabric->options;
    local->nodes = nodes;
    local->base_ns = local_clock_ns();
    /* What there is is the option's to say, as it is the device's elsewhere; a topology may take less. */
    if (fabric->topology.chip_bytes > local->options->chip_bytes) {
        fabric->topology.chip_bytes = (uint32_t)local->options->chip_bytes;
    }
    init_locks(local);
    local->stripes = aligned_alloc(DM_LINE, LOCAL_STRIPES * sizeof(*local->stripes));
    if (!local->stripes) {
        return DM_ERR_NO_MEMORY;
    }
    memset(local->stripes, 0, LOCAL_STRIPES * sizeof(*local->stripes));
    DM_TRY(find_cpus(local));
    for (unsigned node = 0; node < fabric->node_count; node++) {
        DM_TRY(node_init(local, node, err));
    }
    return 0;
}

static void thread_close(struct local_thread *thread) {
    if (atomic_load(&thread->started)) {
        pthread_join(thread->pthread, NULL);
    }
}

static void thread_fini(struct local_thread *thread) {
    pthread_mutex_destroy(&thread->lock);
    pthread_cond_destroy(&thread->cond);
}

static void each_thread(struct local *local, void (*act)(struct local_thread *thread)) {
    const struct dm_fabric *fabric = local->fabric;
    for (unsigned node = 0; node < fabric->node_count; node++) {
        for (unsigned i = 0; i < fabric->nodes[node].thread_count; i++) {
            act((struct local_thread *)fabric->nodes[node].threads[i]);
        }
    }
}

static void notify(struct local_thread *thread) {
    local_thread_notify(thread);
}

static void local_close(struct dm_fabric *fabric) {
    struct local *local = local_of(fabric);
    atomic_store(&local->quit, true);
    each_thread(local, notify);
    each_thread(local, thread_close); /* all have ended before any lock goes: a waker may still hold one */
    each_thread(local, thread_fini);
    for (unsigned node = 0; node < fabric->node_count; node++) {
        local_memory_unmap(&local->nodes[node].dram);
        local_memory_unmap(&local->nodes[node].chip);
        pthread_mutex_destroy(&local->nodes[node].lock);
    }
    pthread_mutex_destroy(&local->start_lock);
    pthread_mutex_destroy(&local->lock);
    pthread_cond_destroy(&local->cond);
    free(local->nodes);
    free(local->stripes);
    free(local->cpus);
    free(local);
    fabric->impl = NULL;
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

void local_run_check(struct local *local) {
    pthread_mutex_lock(&local->lock);
    pthread_cond_signal(&local->cond);
    pthread_mutex_unlock(&local->lock);
}

static void notify_holder(struct local_thread *thread) {
    bool has_work = atomic_load(&thread->inbox) || atomic_load(&thread->holding);
    if (has_work || atomic_load(&local_node_of(thread)->queued) > 0) {
        local_thread_notify(thread);
    }
}

/* Waits until *count is 0 or the time has come, telling all threads of a stop as soon as there is one. */
static void wait_for_zero(struct local *local, const _Atomic uint32_t *count, uint64_t until) {
    pthread_mutex_lock(&local->lock);
    while (atomic_load(count) > 0 && local_clock_ns() < until) {
        if (local->fabric->stop && !atomic_load(&local->stopping)) {
            atomic_store(&local->stopping, true);
            pthread_mutex_unlock(&local->lock);
            each_thread(local, notify);
            pthread_mutex_lock(&local->lock);
            continue;
        }
        uint64_t look = local_clock_ns() + STOP_POLL_NS;
        local_cond_wait(&local->cond, &local->lock, look < until ? look : until);
    }
    pthread_mutex_unlock(&local->lock);
}

/* Background contexts get to know of a stop although nobody waits for them; one that does not care is left behind. */
static void drain_stopped(struct local *local) {
    atomic_store(&local->stopping, true);
    each_thread(local, notify);
    wait_for_zero(local, &local->active, local_clock_ns() + STOP_DRAIN_NS);
}

static int local_run(struct dm_fabric *fabric, struct dm_err *err) {
    struct local *local = local_of(fabric);
    if (atomic_load(&local->out_of_memory)) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "local: no memory for contexts or threads: fewer clients");
    }
    if (atomic_load(&local->foreground) > 0) {
        atomic_store(&local->open, true);
        each_thread(local, notify_holder);
        wait_for_zero(local, &local->foreground, UINT64_MAX);
        if (fabric->stop) {
            drain_stopped(local);
        }
        atomic_store(&local->open, false);
        wait_for_zero(local, &local->active, UINT64_MAX);
    }
    return fabric->stop ? dm_fail(err, DM_ERR_STOPPED, "stopped") : 0;
}

static void local_start(struct dm_ctx *base) {
    struct local *local = local_of(base->fabric);
    struct local_ctx *ctx = (struct local_ctx *)base;
    ctx->wait = LOCAL_NEW;
    if (local_ctx_prepare(ctx) < 0 || local_thread_ensure(local_thread_of(ctx)) < 0) {
        atomic_store(&local->out_of_memory, true);
        return;
    }
    if (!base->background) {
        atomic_fetch_add(&local->foreground, 1);
    }
    local_tell(ctx);
}

static int local_commit(struct dm_ctx *base, bool wait) {
    struct local_ctx *ctx = (struct local_ctx *)base;
    bool missed = local_memory_execute(local_of(base->fabric), base);
    if (wait) {
        /* A swap that missed may wait for the holder of a lock. */
        local_yield(ctx, missed);
    }
    return 0;
}

static int local_park(struct dm_ctx *base) {
    return base->fabric->stop ? DM_ERR_STOPPED : local_suspend((struct local_ctx *)base, LOCAL_PARKED);
}

static void local_wake(struct dm_ctx *waker, struct dm_ctx *target) {
    struct local_ctx *ctx = (struct local_ctx *)target;
    if (waker->thread == target->thread) {
        local_deliver(local_thread_of(ctx), ctx);
    } else {
        local_tell(ctx);
    }
}

static int local_sleep(struct dm_ctx *base, uint64_t ns) {
    uint64_t now = local_clock_ns();
    return local_sleep_until((struct local_ctx *)base, ns < UINT64_MAX / 2 - now ? now + ns : UINT64_MAX / 2);
}

static uint64_t local_now(struct dm_ctx *base) {
    return local_clock_ns() - local_of(base->fabric)->base_ns;
}

/* Costs nothing, but background work lets others have the thread from time to time. */
static void local_charge(struct dm_ctx *base, enum dm_work work, uint32_t units) {
    (void)work;
    struct local_ctx *ctx = (struct local_ctx *)base;
    if (!base->background || ctx->job) {
        return;
    }
    ctx->charged += units < BACKGROUND_SLICE_UNITS ? units : BACKGROUND_SLICE_UNITS;
    if (ctx->charged >= BACKGROUND_SLICE_UNITS) {
        ctx->charged = 0;
        local_yield(ctx, false);
    }
}

static int local_measure(struct dm_fabric *fabric) {
    struct local *local = local_of(fabric);
    if (!local->measured) {
        local->measured = true;
        local->base_ns = local_clock_ns();
    }
    return 0;
}

static const struct dm_opt options[] = {
    {.name = "chip_bytes",
     .type = DM_OPT_BYTES,
     .offset = offsetof(struct local_options, chip_bytes),
     .initial = "256KiB",
     .max = 1 << 24,
     .help = "memory of a node that stands for the on-chip memory of a NIC, at most; 0: none"},
    {.name = "pin",
     .type = DM_OPT_BOOL,
     .offset = offsetof(struct local_options, pin),
     .initial = "off",
     .help = "bind each thread to one of the processors that the program may use, in turn"},
    {.name = "yield_every",
     .type = DM_OPT_COUNT,
     .offset = offsetof(struct local_options, yield_every),
     .initial = "64",
     .min = 1,
     .max = 1e9,
     .unit = "waits",
     .help = "a thread lets the operating system run others after so many waits for verbs"},
    DM_OPT_END,
};

const struct dm_transport_ops dm_transport_local = {
    .info = {.name = "local",
             .summary = "threads and shared memory, in real time, at memory speed",
             .caps = DM_CAP_MASKED_ATOMICS | DM_CAP_CHIP_MEMORY,
             .options = options},
    .options_bytes = sizeof(struct local_options),
    .ctx_bytes = sizeof(struct local_ctx),
    .thread_bytes = sizeof(struct local_thread),
    .open = local_open,
    .close = local_close,
    .measure = local_measure,
    .run = local_run,
    .start = local_start,
    .commit = local_commit,
    .call = local_call,
    .park = local_park,
    .wake = local_wake,
    .sleep = local_sleep,
    .now = local_now,
    .charge = local_charge,
    .cpu_read = local_cpu_read,
    .cpu_write = local_cpu_write,
    .cpu_cas = local_cpu_cas,
    .expect_bulk = local_expect_bulk,
};
