/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's loop. It runs ready contexts, and when it has none it sleeps until another thread has work for it; nothing
 * here spins. A context that waits switches directly to the next ready one; the loop is entered when there is none,
 * when something has come from another thread, and from time to time.
 *
 * Sleeping and waking follow one pattern: the sleeper first announces that it sleeps and then checks once more for
 * work; the waker first leaves the work and then checks whether the other sleeps. Both in sequentially consistent
 * order, so one of them sees the other.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "transport/realtime/realtime.h"

enum {
    THREAD_STACK_BYTES = 1 << 20, /* reserved, not touched: sanitizers keep a lot of a thread's data there */
    NS_PER_S = 1000000000,
};

/* ---- time and condition variables ------------------------------------------------------------------------------- */

uint64_t rt_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void rt_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool rt_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t at) {
    if (at == UINT64_MAX) {
        pthread_cond_wait(cond, lock);
        return true;
    }
    struct timespec until = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)};
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

/* ---- the ready queue and the inbox ------------------------------------------------------------------------------ */

void rt_ready(struct rt_thread *thread, struct rt_ctx *ctx, int status) {
    ctx->wait = RT_RUNNABLE;
    ctx->status = status;
    ctx->next = NULL;
    *(thread->ready_head ? &thread->ready_tail->next : &thread->ready_head) = ctx;
    thread->ready_tail = ctx;
}

static struct rt_ctx *ready_pop(struct rt_thread *thread) {
    struct rt_ctx *ctx = thread->ready_head;
    if (ctx) {
        thread->ready_head = ctx->next;
        ctx->next = NULL;
    }
    return ctx;
}

void rt_deliver(struct rt_thread *thread, struct rt_ctx *ctx) {
    switch (ctx->wait) {
    case RT_NEW:
        ctx->thread_next = thread->contexts;
        thread->contexts = ctx;
        rt_ready(thread, ctx, 0);
        break;
    case RT_PARKED:
        rt_ready(thread, ctx, 0);
        break;
    case RT_AWAY:
        if (ctx->answered && atomic_load(ctx->answered)) {
            rt_ready(thread, ctx, 0);
        }
        break;
    case RT_RUNNABLE:
    case RT_ASLEEP:
    case RT_IDLE:
        /* It came after a stop had ended the wait that it was for. */
        break;
    }
}

void rt_notify(struct rt_ctx *ctx) {
    struct rt_thread *thread = rt_thread_of(ctx);
    if (atomic_exchange(&ctx->in_inbox, true)) {
        return; /* its thread has not looked yet, and will see this */
    }
    ctx->inbox_next = atomic_load_explicit(&thread->inbox, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&thread->inbox, &ctx->inbox_next, ctx)) {
    }
    if (atomic_load(&rt_of(ctx->base.fabric)->open)) { /* otherwise the next run checks all inboxes */
        rt_thread_notify(thread);
    }
}

static void inbox_drain(struct rt_thread *thread) {
    struct rt_ctx *latest = atomic_exchange(&thread->inbox, NULL), *first = NULL;
    for (struct rt_ctx *ctx = latest, *next; ctx; ctx = next) {
        next = ctx->inbox_next;
        ctx->inbox_next = first;
        first = ctx;
    }
    for (struct rt_ctx *ctx = first, *next; ctx; ctx = next) {
        next = ctx->inbox_next;
        atomic_exchange(&ctx->in_inbox, false); /* before looking: a later message is a new one */
        rt_deliver(thread, ctx);
    }
}

/* ---- sleepers and the stop -------------------------------------------------------------------------------------- */

static void sleepers_add(struct rt_thread *thread, struct rt_ctx *ctx) {
    struct rt_ctx **link = &thread->sleepers;
    while (*link && (*link)->wake_at <= ctx->wake_at) {
        link = &(*link)->next;
    }
    ctx->next = *link;
    *link = ctx;
}

static void sleepers_wake(struct rt_thread *thread) {
    uint64_t now = thread->sleepers ? rt_clock_ns() : 0;
    while (thread->sleepers && thread->sleepers->wake_at <= now) {
        struct rt_ctx *ctx = thread->sleepers;
        thread->sleepers = ctx->next;
        rt_ready(thread, ctx, 0);
    }
}

static bool stop_is_news(const struct rt_thread *thread) {
    return atomic_load(&rt_of(thread->base.fabric)->stopping) && !thread->stop_seen;
}

/* Wakes every context that waits for anything but an answer; answers come, since their handlers are stopped too. */
static void wake_all_stopped(struct rt_thread *thread) {
    thread->stop_seen = true;
    thread->sleepers = NULL;
    for (struct rt_ctx *ctx = thread->contexts; ctx; ctx = ctx->thread_next) {
        if (ctx->wait == RT_PARKED || ctx->wait == RT_ASLEEP) {
            rt_ready(thread, ctx, DM_ERR_STOPPED);
        }
    }
}

/* ---- switching -------------------------------------------------------------------------------------------------- */

/* True if the loop has work beside the ready queue. */
static bool loop_is_wanted(struct rt_thread *thread) {
    const struct rt *rt = rt_of(thread->base.fabric);
    if (--thread->budget == 0) {
        return true; /* the loop sets it anew */
    }
    return atomic_load_explicit(&thread->inbox, memory_order_relaxed) ||
           (thread->watched && atomic_load_explicit(thread->watched, memory_order_relaxed)) ||
           !atomic_load_explicit(&rt->open, memory_order_relaxed);
}

static int switch_away(struct rt_ctx *ctx, bool to_loop) {
    struct rt_thread *thread = rt_thread_of(ctx);
    struct rt_ctx *next = to_loop ? NULL : ready_pop(thread);
    if (next != ctx) {
        dm_coro_switch(&ctx->base.coro, next ? &next->base.coro : &thread->loop);
    }
    return ctx->status;
}

int rt_suspend(struct rt_ctx *ctx, enum rt_wait wait) {
    ctx->wait = wait;
    return switch_away(ctx, loop_is_wanted(rt_thread_of(ctx)));
}

void rt_yield(struct rt_ctx *ctx, bool hurry) {
    struct rt_thread *thread = rt_thread_of(ctx);
    bool to_loop = loop_is_wanted(thread);
    if (thread->budget == 0 || (hurry && !thread->ready_head)) {
        /* What it waits for may itself wait for this processor: for its only context, or for all of several. */
        sched_yield();
    }
    if (thread->ready_head || to_loop) {
        rt_ready(thread, ctx, 0);
        switch_away(ctx, to_loop);
    }
}

int rt_sleep_until(struct rt_ctx *ctx, uint64_t at) {
    ctx->wake_at = at;
    sleepers_add(rt_thread_of(ctx), ctx);
    return rt_suspend(ctx, RT_ASLEEP);
}

static void context_main(void *arg) {
    struct rt_ctx *ctx = arg;
    struct rt_thread *thread = rt_thread_of(ctx);
    ctx->base.entry(&ctx->base, ctx->base.arg);
    thread->ended = ctx;
    dm_coro_switch(&ctx->base.coro, &thread->loop);
}

int rt_ctx_prepare(struct rt_ctx *ctx) {
    return dm_coro_init(&ctx->base.coro, DM_STACK_BYTES, context_main, ctx);
}

/* The run may be over: rt_run, which waits for its end, checks again. */
static void run_check(struct rt *rt) {
    pthread_mutex_lock(&rt->lock);
    pthread_cond_signal(&rt->cond);
    pthread_mutex_unlock(&rt->lock);
}

static void release_ended(struct rt_thread *thread) {
    struct rt *rt = rt_of(thread->base.fabric);
    struct rt_ctx *ctx = thread->ended;
    if (!ctx) {
        return;
    }
    thread->ended = NULL;
    dm_coro_fini(&ctx->base.coro);
    ctx->base.done = true;
    if (!ctx->base.background && atomic_fetch_sub(&rt->foreground, 1) == 1) {
        run_check(rt);
    }
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

static bool has_reason_to_stay(struct rt_thread *thread) {
    const struct rt *rt = rt_of(thread->base.fabric);
    if (atomic_load(&rt->quit)) {
        return true;
    }
    return atomic_load(&rt->open) &&
           (thread->ready_head || atomic_load(&thread->inbox) || rt->hooks->has_work(thread) || stop_is_news(thread));
}

bool rt_thread_notify(struct rt_thread *thread) {
    struct rt *rt = rt_of(thread->base.fabric);
    if (!atomic_load(&thread->sleeping) || !atomic_exchange(&thread->sleeping, false)) {
        return false;
    }
    /* Counted for the other, so that the run does not end between the signal and its waking up. */
    atomic_fetch_add(&rt->active, 1);
    if (rt->hooks->wake) {
        rt->hooks->wake(thread);
        return true;
    }
    pthread_mutex_lock(&thread->lock);
    pthread_cond_signal(&thread->cond);
    pthread_mutex_unlock(&thread->lock);
    return true;
}

/* Returns with the lock held, as it was. */
static void sleep_until_woken(struct rt_thread *thread, uint64_t until) {
    const struct rt_hooks *hooks = rt_of(thread->base.fabric)->hooks;
    if (hooks->sleep) {
        pthread_mutex_unlock(&thread->lock);
        hooks->sleep(thread, until);
        pthread_mutex_lock(&thread->lock);
        return;
    }
    while (atomic_load(&thread->sleeping) && rt_cond_wait(&thread->cond, &thread->lock, until)) {
    }
}

static void fall_asleep(struct rt_thread *thread) {
    struct rt *rt = rt_of(thread->base.fabric);
    pthread_mutex_lock(&thread->lock);
    atomic_store(&thread->holding, thread->ready_head || thread->sleepers);
    atomic_store(&thread->sleeping, true);
    if (has_reason_to_stay(thread)) {
        if (!atomic_exchange(&thread->sleeping, false)) {
            atomic_fetch_sub(&rt->active, 1); /* woken meanwhile: counted once too often */
        }
        pthread_mutex_unlock(&thread->lock);
        return;
    }
    /* Between runs no sleeping context is woken. */
    uint64_t until = thread->sleepers && atomic_load(&rt->open) ? thread->sleepers->wake_at : UINT64_MAX;
    if (atomic_fetch_sub(&rt->active, 1) == 1 && atomic_load(&rt->foreground) == 0) {
        run_check(rt);
    }
    sleep_until_woken(thread, until);
    if (atomic_exchange(&thread->sleeping, false)) {
        atomic_fetch_add(&rt->active, 1);
    }
    pthread_mutex_unlock(&thread->lock);
}

static void poll_all(struct rt_thread *thread) {
    const struct rt *rt = rt_of(thread->base.fabric);
    thread->budget = rt->yield_every;
    if (atomic_load_explicit(&thread->inbox, memory_order_relaxed)) {
        inbox_drain(thread);
    }
    if (dm_unlikely(stop_is_news(thread))) {
        wake_all_stopped(thread);
    }
    sleepers_wake(thread);
    rt->hooks->look(thread);
}

static void *thread_main(void *arg) {
    struct rt_thread *thread = arg;
    const struct rt *rt = rt_of(thread->base.fabric);
    dm_coro_init_thread(&thread->loop);
    while (!atomic_load(&rt->quit)) {
        struct rt_ctx *next = NULL;
        if (atomic_load(&rt->open)) {
            poll_all(thread);
            next = ready_pop(thread);
        }
        if (next) {
            dm_coro_switch(&thread->loop, &next->base.coro);
            release_ended(thread);
        } else if (!atomic_load(&rt->open) || !rt->hooks->spins || !rt->hooks->spins(thread)) {
            fall_asleep(thread);
        }
    }
    return NULL;
}

/* ---- starting --------------------------------------------------------------------------------------------------- */

static void pin_next(struct rt *rt, pthread_attr_t *attributes) {
    if (rt->pin && rt->cpu_count > 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(rt->cpus[rt->cpu_next++ % rt->cpu_count], &set);
        pthread_attr_setaffinity_np(attributes, sizeof(set), &set);
    }
}

static int start_pthread(struct rt *rt, struct rt_thread *thread) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return DM_ERR_NO_MEMORY;
    }
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    pin_next(rt, &attributes);
    /* The program's main thread handles signals, except those that report an error of this thread. */
    sigset_t mask, before;
    sigfillset(&mask);
    const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF};
    for (size_t i = 0; i < DM_ARRAY_LEN(kept); i++) {
        sigdelset(&mask, kept[i]);
    }
    pthread_sigmask(SIG_SETMASK, &mask, &before);
    atomic_fetch_add(&rt->active, 1);
    int failed = pthread_create(&thread->pthread, &attributes, thread_main, thread);
    if (failed) {
        atomic_fetch_sub(&rt->active, 1);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed ? DM_ERR_NO_MEMORY : 0;
}

int rt_thread_ensure(struct rt_thread *thread) {
    struct rt *rt = rt_of(thread->base.fabric);
    if (atomic_load(&thread->started)) {
        return 0;
    }
    pthread_mutex_lock(&rt->start_lock);
    int rc = 0;
    if (!atomic_load(&thread->started)) {
        rc = start_pthread(rt, thread);
        atomic_store(&thread->started, rc == 0);
    }
    pthread_mutex_unlock(&rt->start_lock);
    return rc;
}
