/* SPDX-License-Identifier: Apache-2.0
 *
 * A run as its caller sees it: starting it, waiting for its end, announcing a stop; time; and the functions of a
 * transport's table that are the same for all real-time transports.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/realtime/realtime.h"

enum {
    STOP_POLL_NS = 20000000,     /* a signal handler only sets a flag: the run looks at it this often */
    STOP_DRAIN_NS = 500000000,   /* background contexts have this long to end after a stop */
    BACKGROUND_SLICE_UNITS = 512 /* of charged work, then others of the thread run */
};

static int find_cpus(struct rt *rt) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return 0;
    }
    rt->cpus = calloc(CPU_SETSIZE, sizeof(*rt->cpus));
    if (!rt->cpus) {
        return DM_ERR_NO_MEMORY;
    }
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            rt->cpus[rt->cpu_count++] = cpu;
        }
    }
    return 0;
}

static void thread_init(struct rt_thread *thread) {
    thread->budget = rt_of(thread->base.fabric)->yield_every;
    pthread_mutex_init(&thread->lock, NULL);
    rt_cond_init(&thread->cond);
}

int rt_open(struct rt *rt) {
    /* Locks and conditions before anything that can fail, so that closing need not know how far opening came. */
    rt->base_ns = rt_clock_ns();
    pthread_mutex_init(&rt->start_lock, NULL);
    pthread_mutex_init(&rt->lock, NULL);
    rt_cond_init(&rt->cond);
    rt_each_thread(rt, thread_init);
    return find_cpus(rt);
}

static void thread_close(struct rt_thread *thread) {
    if (atomic_load(&thread->started)) {
        pthread_join(thread->pthread, NULL);
    }
}

static void thread_fini(struct rt_thread *thread) {
    pthread_mutex_destroy(&thread->lock);
    pthread_cond_destroy(&thread->cond);
}

void rt_each_thread(struct rt *rt, void (*act)(struct rt_thread *thread)) {
    const struct dm_fabric *fabric = rt->fabric;
    for (unsigned node = 0; node < fabric->node_count; node++) {
        for (unsigned i = 0; i < fabric->nodes[node].thread_count; i++) {
            act((struct rt_thread *)fabric->nodes[node].threads[i]);
        }
    }
}

static void notify(struct rt_thread *thread) {
    rt_thread_notify(thread);
}

void rt_join(struct rt *rt) {
    atomic_store(&rt->quit, true);
    rt_each_thread(rt, notify);
    rt_each_thread(rt, thread_close);
}

void rt_close(struct rt *rt) {
    rt_each_thread(rt, thread_fini);
    pthread_mutex_destroy(&rt->start_lock);
    pthread_mutex_destroy(&rt->lock);
    pthread_cond_destroy(&rt->cond);
    free(rt->cpus);
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

static void notify_holder(struct rt_thread *thread) {
    const struct rt_hooks *hooks = rt_of(thread->base.fabric)->hooks;
    bool has_work = atomic_load(&thread->inbox) || atomic_load(&thread->holding);
    /* A thread that sleeps in the transport's `sleep` checks for work on its own. */
    if (has_work || hooks->sleep || (thread->watched && atomic_load(thread->watched) > 0)) {
        rt_thread_notify(thread);
    }
}

/* Waits until *count is 0 or the time has come, and announces a stop to all threads as soon as there is one. */
static void wait_for_zero(struct rt *rt, const _Atomic uint32_t *count, uint64_t until) {
    pthread_mutex_lock(&rt->lock);
    while (atomic_load(count) > 0 && rt_clock_ns() < until) {
        if (rt->fabric->stop && !atomic_load(&rt->stopping)) {
            atomic_store(&rt->stopping, true);
            pthread_mutex_unlock(&rt->lock);
            rt_each_thread(rt, notify);
            pthread_mutex_lock(&rt->lock);
            continue;
        }
        uint64_t look = rt_clock_ns() + STOP_POLL_NS;
        rt_cond_wait(&rt->cond, &rt->lock, look < until ? look : until);
    }
    pthread_mutex_unlock(&rt->lock);
}

/* Background contexts learn of a stop although the run does not wait for them; one that ignores it is left behind. */
static void drain_stopped(struct rt *rt) {
    atomic_store(&rt->stopping, true);
    rt_each_thread(rt, notify);
    wait_for_zero(rt, &rt->active, rt_clock_ns() + STOP_DRAIN_NS);
}

int rt_run(struct dm_fabric *fabric, struct dm_err *err) {
    struct rt *rt = rt_of(fabric);
    if (atomic_load(&rt->out_of_memory)) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory for contexts or threads: fewer clients", rt->name);
    }
    if (atomic_load(&rt->foreground) > 0) {
        atomic_store(&rt->open, true);
        rt_each_thread(rt, notify_holder);
        wait_for_zero(rt, &rt->foreground, UINT64_MAX);
        if (fabric->stop) {
            drain_stopped(rt);
        }
        atomic_store(&rt->open, false);
        wait_for_zero(rt, &rt->active, UINT64_MAX);
    }
    return fabric->stop ? dm_fail(err, DM_ERR_STOPPED, "stopped") : 0;
}

void rt_start(struct dm_ctx *base) {
    struct rt *rt = rt_of(base->fabric);
    struct rt_ctx *ctx = (struct rt_ctx *)base;
    ctx->wait = RT_NEW;
    if (rt_ctx_prepare(ctx) < 0 || rt_thread_ensure(rt_thread_of(ctx)) < 0) {
        atomic_store(&rt->out_of_memory, true);
        return;
    }
    if (!base->background) {
        atomic_fetch_add(&rt->foreground, 1);
    }
    rt_notify(ctx);
}

int rt_park(struct dm_ctx *base) {
    return base->fabric->stop ? DM_ERR_STOPPED : rt_suspend((struct rt_ctx *)base, RT_PARKED);
}

void rt_wake(struct dm_ctx *waker, struct dm_ctx *target) {
    struct rt_ctx *ctx = (struct rt_ctx *)target;
    if (waker->thread == target->thread) {
        rt_deliver(rt_thread_of(ctx), ctx);
    } else {
        rt_notify(ctx);
    }
}

int rt_sleep(struct dm_ctx *base, uint64_t ns) {
    uint64_t now = rt_clock_ns();
    return rt_sleep_until((struct rt_ctx *)base, ns < UINT64_MAX / 2 - now ? now + ns : UINT64_MAX / 2);
}

uint64_t rt_now(struct dm_ctx *base) {
    return rt_clock_ns() - rt_of(base->fabric)->base_ns;
}

/* Costs nothing, but background work lets others have the thread from time to time. */
void rt_charge(struct dm_ctx *base, enum dm_work work, uint32_t units) {
    (void)work;
    rt_charge_access(base, units, 0);
}

void rt_charge_access(struct dm_ctx *base, uint32_t units, uint64_t bytes) {
    (void)bytes;
    struct rt_ctx *ctx = (struct rt_ctx *)base;
    if (!base->background || ctx->job) {
        return;
    }
    ctx->charged += units < BACKGROUND_SLICE_UNITS ? units : BACKGROUND_SLICE_UNITS;
    if (ctx->charged >= BACKGROUND_SLICE_UNITS) {
        ctx->charged = 0;
        rt_yield(ctx, false);
    }
}

int rt_measure(struct dm_fabric *fabric) {
    struct rt *rt = rt_of(fabric);
    if (!rt->measured) {
        rt->measured = true;
        rt->base_ns = rt_clock_ns();
    }
    return 0;
}
