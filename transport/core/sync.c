/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutex and condition for contexts of one node. Waiters queue in order and are handed the mutex directly; the guard is
 * a spin lock held for a few instructions and never across a switch. On a stop a waiter takes itself off the list.
 */
#include <sched.h>
#include <stddef.h>

#include "transport/core/core.h"

bool dm_is_one_thread(const struct dm_fabric *fabric) {
    return fabric->ops->info.caps & DM_CAP_VIRTUAL_TIME;
}

static DM_NO_INLINE void guard_spin(struct dm_mutex *mutex) {
    while (atomic_exchange_explicit(&mutex->guard, 1, memory_order_acquire)) {
        sched_yield();
    }
}

/* With one thread no other context can be at the list, and a locked instruction would wait for all stores before it. */
static void guard_take(const struct dm_ctx *ctx, struct dm_mutex *mutex) {
    if (!dm_is_one_thread(ctx->fabric)) {
        guard_spin(mutex);
    }
}

static void guard_drop(struct dm_mutex *mutex) {
    atomic_store_explicit(&mutex->guard, 0, memory_order_release);
}

static void waitlist_append(struct dm_waitlist *list, struct dm_ctx *ctx) {
    ctx->wait_next = NULL;
    if (list->tail) {
        list->tail->wait_next = ctx;
    } else {
        list->head = ctx;
    }
    list->tail = ctx;
}

static struct dm_ctx *waitlist_pop(struct dm_waitlist *list) {
    struct dm_ctx *ctx = list->head;
    if (ctx) {
        list->head = ctx->wait_next;
        list->tail = list->head ? list->tail : NULL;
        ctx->wait_next = NULL;
    }
    return ctx;
}

/* True if ctx was on the list. */
static bool waitlist_remove(struct dm_waitlist *list, struct dm_ctx *ctx) {
    struct dm_ctx *previous = NULL;
    for (struct dm_ctx *at = list->head; at; previous = at, at = at->wait_next) {
        if (at == ctx) {
            *(previous ? &previous->wait_next : &list->head) = at->wait_next;
            list->tail = list->tail == at ? previous : list->tail;
            at->wait_next = NULL;
            return true;
        }
    }
    return false;
}

/* Parks, and traces the wait. */
static int wait_here(struct dm_ctx *ctx) {
    bool is_traced = dm_is_traced(ctx->fabric);
    uint64_t posted_ns = dm_unlikely(is_traced) ? ctx->ops->now(ctx) : 0;
    dm_code_leave(ctx);
    int rc = ctx->gone ? DM_ERR_STOPPED : ctx->ops->park(ctx);
    dm_code_return(ctx);
    if (dm_unlikely(is_traced)) {
        dm_trace_wait(ctx, DM_TRACE_WAIT, posted_ns, rc);
    }
    return rc;
}

/* The guard is held, and so is the mutex. */
static DM_NO_INLINE int wait_for_mutex(struct dm_ctx *ctx, struct dm_mutex *mutex) {
    waitlist_append(&mutex->waiters, ctx);
    guard_drop(mutex);
    int rc = wait_here(ctx);
    if (rc < 0) {
        guard_take(ctx, mutex);
        bool waiting = waitlist_remove(&mutex->waiters, ctx);
        guard_drop(mutex);
        if (!waiting) {
            /* Handed over at the very moment of the stop: hand it on. */
            dm_mutex_unlock(ctx, mutex);
        }
    }
    return rc;
}

int dm_mutex_lock(struct dm_ctx *ctx, struct dm_mutex *mutex) {
    guard_take(ctx, mutex);
    if (dm_unlikely(mutex->held)) {
        return wait_for_mutex(ctx, mutex);
    }
    mutex->held = true;
    guard_drop(mutex);
    return 0;
}

bool dm_mutex_trylock(struct dm_ctx *ctx, struct dm_mutex *mutex) {
    guard_take(ctx, mutex);
    bool free = !mutex->held;
    mutex->held = true;
    guard_drop(mutex);
    return free;
}

void dm_mutex_unlock(struct dm_ctx *ctx, struct dm_mutex *mutex) {
    guard_take(ctx, mutex);
    struct dm_ctx *next = waitlist_pop(&mutex->waiters);
    mutex->held = next != NULL;
    guard_drop(mutex);
    if (next) {
        next->ops->wake(ctx, next);
    }
}

int dm_cond_wait(struct dm_ctx *ctx, struct dm_cond *cond, struct dm_mutex *mutex) {
    /* The condition's list is protected by the mutex that the caller holds. */
    waitlist_append(&cond->waiters, ctx);
    dm_mutex_unlock(ctx, mutex);
    int rc = wait_here(ctx);
    if (rc < 0) {
        /* The run ends: nothing wakes the waiters any more, and the list is freed with its owner. Where only the node
         * has failed (in virtual time, on one thread) other contexts still unwind and may wake those on the list. */
        if (ctx->gone) {
            waitlist_remove(&cond->waiters, ctx);
        }
        return rc;
    }
    return dm_mutex_lock(ctx, mutex);
}

void dm_cond_wake_one(struct dm_ctx *ctx, struct dm_cond *cond) {
    struct dm_ctx *next = waitlist_pop(&cond->waiters);
    if (next) {
        next->ops->wake(ctx, next);
    }
}

void dm_cond_wake_all(struct dm_ctx *ctx, struct dm_cond *cond) {
    while (cond->waiters.head) {
        dm_cond_wake_one(ctx, cond);
    }
}
