/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's loop. It runs ready contexts, and where it has none it sleeps until somebody has something for it; nothing
 * here spins. A context that waits goes on to the next ready one by itself; the loop is entered when there is none,
 * when something has come from outside, and every so often.
 *
 * Sleeping and waking is one pattern throughout: the sleeper first says that it sleeps and then looks once more for
 * work; the waker first leaves the work and then looks whether the other sleeps. Both in sequentially consistent order,
 * so one of them sees the other.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "transport/local/local.h"

enum {
    THREAD_STACK_BYTES = 1 << 20, /* reserved, not touched: sanitizers keep a lot of a thread's data there */
    NS_PER_S = 1000000000,
};

/* ---- time and condition variables ------------------------------------------------------------------------------- */

uint64_t local_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void local_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool local_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t at) {
    if (at == UINT64_MAX) {
        pthread_cond_wait(cond, lock);
        return true;
    }
    struct timespec until = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)};
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

/* ---- the ready queue and the inbox ------------------------------------------------------------------------------ */

void local_ready(struct local_thread *thread, struct local_ctx *ctx, int status) {
    ctx->wait = LOCAL_RUNNABLE;
    ctx->status = status;
    ctx->next = NULL;
    *(thread->ready_head ? &thread->ready_tail->next : &thread->ready_head) = ctx;
    thread->ready_tail = ctx;
}

static struct local_ctx *ready_pop(struct local_thread *thread) {
    struct local_ctx *ctx = thread->ready_head;
    if (ctx) {
        thread->ready_head = ctx->next;
        ctx->next = NULL;
    }
    return ctx;
}

void local_deliver(struct local_thread *thread, struct local_ctx *ctx) {
    switch (ctx->wait) {
    case LOCAL_NEW:
        ctx->thread_next = thread->contexts;
        thread->contexts = ctx;
        local_ready(thread, ctx, 0);
        break;
    case LOCAL_PARKED:
        local_ready(thread, ctx, 0);
        break;
    case LOCAL_CALLING:
        if (atomic_load(&ctx->request->done)) {
            local_ready(thread, ctx, 0);
        }
        break;
    case LOCAL_RUNNABLE:
    case LOCAL_ASLEEP:
    case LOCAL_IDLE:
        /* Came after the stop had already ended the wait that it was for. */
        break;
    }
}

void local_tell(struct local_ctx *ctx) {
    struct local_thread *thread = local_thread_of(ctx);
    if (atomic_exchange(&ctx->in_inbox, true)) {
        return; /* its thread has yet to look, and will see what led here */
    }
    ctx->inbox_next = atomic_load_explicit(&thread->inbox, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&thread->inbox, &ctx->inbox_next, ctx)) {
    }
    if (atomic_load(&local_of(ctx->base.fabric)->open)) { /* else the next run looks at all inboxes */
        local_thread_notify(thread);
    }
}

static void inbox_drain(struct local_thread *thread) {
    struct local_ctx *latest = atomic_exchange(&thread->inbox, NULL), *first = NULL;
    for (struct local_ctx *ctx = latest, *next; ctx; ctx = next) {
        next = ctx->inbox_next;
        ctx->inbox_next = first;
        first = ctx;
    }
    for (struct local_ctx *ctx = first, *next; ctx; ctx = next) {
        next = ctx->inbox_next;
        atomic_exchange(&ctx->in_inbox, false); /* before looking: a later message is a new one */
        local_deliver(thread, ctx);
    }
}

/* ---- sleepers and the stop -------------------------------------------------------------------------------------- */

static void sleepers_add(struct local_thread *thread, struct local_ctx *ctx) {
    struct local_ctx **place = &thread->sleepers;
    while (*place && (*place)->wake_at <= ctx->wake_at) {
        place = &(*place)->next;
    }
    ctx->next = *place;
    *place = ctx;
}

static void sleepers_wake(struct local_thread *thread) {
    uint64_t now = thread->sleepers ? local_clock_ns() : 0;
    while (thread->sleepers && thread->sleepers->wake_at <= now) {
        struct local_ctx *ctx = thread->sleepers;
        thread->sleepers = ctx->next;
        local_ready(thread, ctx, 0);
    }
}

static bool stop_is_news(const struct local_thread *thread) {
    return atomic_load(&local_of(thread->base.fabric)->stopping) && !thread->stop_seen;
}

/* Everybody who waits for anything but an answer goes on; answers come, as their handlers are stopped too. */
static void wake_all_stopped(struct local_thread *thread) {
    thread->stop_seen = true;
    thread->sleepers = NULL;
    for (struct local_ctx *ctx = thread->contexts; ctx; ctx = ctx->thread_next) {
        if (ctx->wait == LOCAL_PARKED || ctx->wait == LOCAL_ASLEEP) {
            local_ready(thread, ctx, DM_ERR_STOPPED);
        }
    }
}

/* ---- switching -------------------------------------------------------------------------------------------------- */

/* Something that the loop has to look at, beside the ready queue. */
static bool loop_is_wanted(struct local_thread *thread) {
    const struct local *local = local_of(thread->base.fabric);
    if (--thread->budget == 0) {
        return true; /* the loop sets it anew */
    }
    return atomic_load_explicit(&thread->inbox, memory_order_relaxed) ||
           atomic_load_explicit(&local_node_of(thread)->queued, memory_order_relaxed) ||
           !atomic_load_explicit(&local->open, memory_order_relaxed);
}

static int switch_away(struct local_ctx *ctx, bool to_loop) {
    struct local_thread *thread = local_thread_of(ctx);
    struct local_ctx *next = to_loop ? NULL : ready_pop(thread);
    if (next != ctx) {
        dm_coro_switch(&ctx->base.coro, next ? &next->base.coro : &thread->loop);
    }
    return ctx->status;
}

int local_suspend(struct local_ctx *ctx, enum local_wait wait) {
    ctx->wait = wait;
    return switch_away(ctx, loop_is_wanted(local_thread_of(ctx)));
}

void local_yield(struct local_ctx *ctx, bool hurry) {
    struct local_thread *thread = local_thread_of(ctx);
    bool to_loop = loop_is_wanted(thread);
    if (!thread->ready_head && (hurry || thread->budget == 0)) {
        /* Whoever it waits for may be a thread that waits for this processor. */
        sched_yield();
    }
    if (thread->ready_head || to_loop) {
        local_ready(thread, ctx, 0);
        switch_away(ctx, to_loop);
    }
}

int local_sleep_until(struct local_ctx *ctx, uint64_t at) {
    ctx->wake_at = at;
    sleepers_add(local_thread_of(ctx), ctx);
    return local_suspend(ctx, LOCAL_ASLEEP);
}

static void context_main(void *arg) {
    struct local_ctx *ctx = arg;
    struct local_thread *thread = local_thread_of(ctx);
    ctx->base.entry(&ctx->base, ctx->base.arg);
    thread->ended = ctx;
    dm_coro_switch(&ctx->base.coro, &thread->loop);
}

int local_ctx_prepare(struct local_ctx *ctx) {
    return dm_coro_init(&ctx->base.coro, DM_STACK_BYTES, context_main, ctx);
}

static void release_ended(struct local_thread *thread) {
    struct local *local = local_of(thread->base.fabric);
    struct local_ctx *ctx = thread->ended;
    if (!ctx) {
        return;
    }
    thread->ended = NULL;
    dm_coro_fini(&ctx->base.coro);
    ctx->base.done = true;
    if (!ctx->base.background && atomic_fetch_sub(&local->foreground, 1) == 1) {
        local_run_check(local);
    }
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

static bool has_reason_to_stay(const struct local_thread *thread) {
    const struct local *local = local_of(thread->base.fabric);
    if (atomic_load(&local->quit)) {
        return true;
    }
    return atomic_load(&local->open) &&
           (thread->ready_head || atomic_load(&thread->inbox) || local_can_serve(thread) || stop_is_news(thread));
}

bool local_thread_notify(struct local_thread *thread) {
    if (!atomic_load(&thread->sleeping) || !atomic_exchange(&thread->sleeping, false)) {
        return false;
    }
    /* Counted for the other, so that the run does not end between its being woken and its waking up. */
    atomic_fetch_add(&local_of(thread->base.fabric)->active, 1);
    pthread_mutex_lock(&thread->lock);
    pthread_cond_signal(&thread->cond);
    pthread_mutex_unlock(&thread->lock);
    return true;
}

static void fall_asleep(struct local_thread *thread) {
    struct local *local = local_of(thread->base.fabric);
    pthread_mutex_lock(&thread->lock);
    atomic_store(&thread->holding, thread->ready_head || thread->sleepers);
    atomic_store(&thread->sleeping, true);
    if (has_reason_to_stay(thread)) {
        if (!atomic_exchange(&thread->sleeping, false)) {
            atomic_fetch_sub(&local->active, 1); /* woken meanwhile: counted once too often */
        }
        pthread_mutex_unlock(&thread->lock);
        return;
    }
    /* Between runs time does not wake anybody. */
    uint64_t until = thread->sleepers && atomic_load(&local->open) ? thread->sleepers->wake_at : UINT64_MAX;
    if (atomic_fetch_sub(&local->active, 1) == 1 && atomic_load(&local->foreground) == 0) {
        local_run_check(local);
    }
    while (atomic_load(&thread->sleeping) && local_cond_wait(&thread->cond, &thread->lock, until)) {
    }
    if (atomic_exchange(&thread->sleeping, false)) {
        atomic_fetch_add(&local->active, 1);
    }
    pthread_mutex_unlock(&thread->lock);
}

static void look_round(struct local_thread *thread) {
    const struct local *local = local_of(thread->base.fabric);
    thread->budget = local->options->yield_every;
    if (atomic_load_explicit(&thread->inbox, memory_order_relaxed)) {
        inbox_drain(thread);
    }
    if (dm_unlikely(stop_is_news(thread))) {
        wake_all_stopped(thread);
    }
    sleepers_wake(thread);
    if (local_can_serve(thread)) {
        local_serve(thread); /* one, so that the node's other threads have their share */
    }
}

static void *thread_main(void *arg) {
    struct local_thread *thread = arg;
    const struct local *local = local_of(thread->base.fabric);
    dm_coro_init_thread(&thread->loop);
    while (!atomic_load(&local->quit)) {
        struct local_ctx *next = NULL;
        if (atomic_load(&local->open)) {
            look_round(thread);
            next = ready_pop(thread);
        }
        if (next) {
            dm_coro_switch(&thread->loop, &next->base.coro);
            release_ended(thread);
        } else {
            fall_asleep(thread);
        }
    }
    return NULL;
}

/* ---- starting --------------------------------------------------------------------------------------------------- */

static void pin_next(struct local *local, pthread_attr_t *attributes) {
    if (local->options->pin && local->cpu_count > 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(local->cpus[local->cpu_next++ % local->cpu_count], &set);
        pthread_attr_setaffinity_np(attributes, sizeof(set), &set);
    }
}

static int start_pthread(struct local *local, struct local_thread *thread) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return DM_ERR_NO_MEMORY;
    }
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    pin_next(local, &attributes);
    /* Signals are the program's main thread's business, but for those that say that this thread did wrong. */
    sigset_t mask, before;
    sigfillset(&mask);
    const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF};
    for (size_t i = 0; i < DM_ARRAY_LEN(kept); i++) {
        sigdelset(&mask, kept[i]);
    }
    pthread_sigmask(SIG_SETMASK, &mask, &before);
    atomic_fetch_add(&local->active, 1);
    int failed = pthread_create(&thread->pthread, &attributes, thread_main, thread);
    if (failed) {
        atomic_fetch_sub(&local->active, 1);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed ? DM_ERR_NO_MEMORY : 0;
}

int local_thread_ensure(struct local_thread *thread) {
    struct local *local = local_of(thread->base.fabric);
    if (atomic_load(&thread->started)) {
        return 0;
    }
    pthread_mutex_lock(&local->start_lock);
    int rc = 0;
    if (!atomic_load(&thread->started)) {
        rc = start_pthread(local, thread);
        atomic_store(&thread->started, rc == 0);
    }
    pthread_mutex_unlock(&local->start_lock);
    return rc;
}
