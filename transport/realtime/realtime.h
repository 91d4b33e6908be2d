/* SPDX-License-Identifier: Apache-2.0
 *
 * What the real-time transports share: one pthread for every dm_thread that ever gets work, and the contexts, which
 * never leave it. What only the thread itself touches needs no atomics; everything that comes from other threads
 * (wakes, starts, answers) goes through its inbox. The transport provides how bytes move and how a thread sleeps.
 *
 *   threads.c    the loop of a thread: which context runs, when the thread sleeps and who wakes it
 *   handlers.c   the contexts that serve calls
 *   runs.c       starting, ending and stopping a run; time; the table functions that both transports share
 *   atomic_copy.c  accesses of a node's own processor to its memory
 */
#ifndef DM_TRANSPORT_REALTIME_REALTIME_H
#define DM_TRANSPORT_REALTIME_REALTIME_H

#include <pthread.h>
#include <sched.h>

#include "transport/core/core.h"

enum { RT_HANDLERS_MAX = 256 }; /* handler contexts a thread */

/* What a context waits for; read by its own thread only. */
enum rt_wait {
    RT_NEW,      /* to be started */
    RT_RUNNABLE, /* nothing: it runs or is in the ready queue */
    RT_PARKED,   /* a wake */
    RT_ASLEEP,   /* its wake_at */
    RT_AWAY,     /* what the transport delivers: an answer, a completion */
    RT_IDLE,     /* a handler context without a job */
};

/* One request and where its answer goes; the transport's own part begins with it. */
struct rt_job {
    const struct dm_method *method;
    const void *req;
    void *resp;
    uint32_t req_len, *resp_len;
    void (*answer)(struct rt_job *job, struct dm_ctx *handler, int rc); /* the job may be freed after this */
};

struct rt_ctx {
    struct dm_ctx base;
    enum rt_wait wait;
    int status; /* what the wait returns */
    uint64_t wake_at;
    const _Atomic bool *answered; /* while RT_AWAY for an answer that comes through the inbox: set when it is there */
    struct rt_job *job;           /* of a handler context */
    uint32_t charged;             /* units of work since the last switch, of background contexts */
    struct rt_ctx *next;          /* in the ready queue, among the sleepers, or among the idle handlers */
    struct rt_ctx *thread_next;
    struct rt_ctx *inbox_next;
    _Atomic bool in_inbox;
};

struct rt_thread {
    struct dm_thread base;

    /* The thread's own. */
    struct rt_ctx *ready_head, *ready_tail;
    struct rt_ctx *sleepers; /* soonest first */
    struct rt_ctx *contexts; /* all that ever ran here */
    struct rt_ctx *idle_handlers;
    struct rt_ctx *ended; /* returned from its entry; to be released on another stack */
    uint32_t handler_count;
    uint64_t budget; /* switches between contexts until the loop polls */
    bool stop_seen;
    const _Atomic uint32_t *watched; /* if not 0, the loop has to run; or NULL */
    struct dm_coro loop;

    /* Shared; on other cache lines than the thread's own. */
    char apart[DM_LINE];
    _Atomic(struct rt_ctx *) inbox; /* latest first */
    _Atomic bool sleeping;          /* the thread that clears it has to signal */
    _Atomic bool holding;           /* sleeps although it has contexts that could run or will */
    _Atomic bool started;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    pthread_t pthread;
};

/* What a transport adds to the loop of its threads; called on the thread itself, except wake. */
struct rt_hooks {
    /* Once a round: makes contexts ready, serves requests. Required. */
    void (*look)(struct rt_thread *thread);
    /* True if `look` will find something. Called when the thread is marked as sleeping: later work has to wake it.
     * Required. */
    bool (*has_work)(struct rt_thread *thread);
    /* Nothing is ready: true to look again at once instead of sleeping. NULL: never. */
    bool (*spins)(struct rt_thread *thread);
    /* Sleeps until woken or until until_ns, and may return early; `wake` wakes it. Both NULL: a condition variable is
     * used.
     */
    void (*sleep)(struct rt_thread *thread, uint64_t until_ns);
    void (*wake)(struct rt_thread *thread);
};

/* The transport's fabric begins with it. */
struct rt {
    struct dm_fabric *fabric;
    const struct rt_hooks *hooks;
    const char *name;     /* of the transport, for errors */
    uint64_t yield_every; /* waits of a thread before it lets the operating system run others */
    bool pin;
    uint64_t base_ns; /* of dm_now */
    bool measured;

    pthread_mutex_t start_lock; /* of starting threads */
    unsigned *cpus, cpu_count;
    unsigned
        cpu_next; /* the index of the processor that the next thread is bound to; the transport may set the first */

    _Atomic bool open;     /* contexts may run */
    _Atomic bool stopping; /* the stop has been seen and is announced to the threads */
    _Atomic bool quit;
    _Atomic bool out_of_memory;
    _Atomic uint32_t foreground; /* contexts that the run waits for */
    _Atomic uint32_t active;     /* threads that are not asleep */
    pthread_mutex_t lock;        /* with cond: the run waits for foreground and active */
    pthread_cond_t cond;
};

static inline struct rt *rt_of(const struct dm_fabric *fabric) {
    return fabric->impl;
}
static inline struct rt_thread *rt_thread_of(const struct rt_ctx *ctx) {
    return (struct rt_thread *)ctx->base.thread;
}

/* ---- threads.c -------------------------------------------------------------------------------------------------- */

uint64_t rt_clock_ns(void);
void rt_cond_init(pthread_cond_t *cond);
/* Waits until signalled or until `at` (of rt_clock_ns); UINT64_MAX: without end. False when the time has come. */
bool rt_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t at);

/* Makes the pthread if there is none yet. 0 or DM_ERR_NO_MEMORY. */
int rt_thread_ensure(struct rt_thread *thread);

/* Wakes the thread if it sleeps; true if it did. */
bool rt_thread_notify(struct rt_thread *thread);

/* Puts a context of the calling thread at the end of its ready queue. */
void rt_ready(struct rt_thread *thread, struct rt_ctx *ctx, int status);

/* Notifies a context, from any thread, that what it waits for may have come. */
void rt_notify(struct rt_ctx *ctx);

/* The same, called on the context's own thread. */
void rt_deliver(struct rt_thread *thread, struct rt_ctx *ctx);

/* Others run until the context is ready again (ctx->wait states for what); returns its status. */
int rt_suspend(struct rt_ctx *ctx, enum rt_wait wait);

/* Lets other contexts run if any are ready, and from time to time other threads; with `hurry` those at once. */
void rt_yield(struct rt_ctx *ctx, bool hurry);

/* Suspends until the time `at`. */
int rt_sleep_until(struct rt_ctx *ctx, uint64_t at);

/* The coroutine of a new context. */
int rt_ctx_prepare(struct rt_ctx *ctx);

/* ---- handlers.c ------------------------------------------------------------------------------------------------- */

/* True if the thread has a free handler context or may make another. */
static inline bool rt_can_serve(const struct rt_thread *thread) {
    return thread->idle_handlers || thread->handler_count < RT_HANDLERS_MAX;
}

/* Makes a handler context of the calling thread ready for the job, if rt_can_serve. After a stop, and where there is no
 * memory, the job is answered at once. */
void rt_serve(struct rt_thread *thread, struct rt_job *job);

/* ---- runs.c ----------------------------------------------------------------------------------------------------- */

/* With fabric->impl set and the members up to `pin` filled. Cannot fail half-way: rt_close undoes it in any case. */
int rt_open(struct rt *rt);

/* Ends and joins all threads; rt_close must follow. Contexts and memory are released by the core and the transport. */
void rt_join(struct rt *rt);
void rt_close(struct rt *rt);

void rt_each_thread(struct rt *rt, void (*act)(struct rt_thread *thread));

/* Functions of the transport's table. */
int rt_run(struct dm_fabric *fabric, struct dm_err *err);
void rt_start(struct dm_ctx *base);
int rt_park(struct dm_ctx *base);
void rt_wake(struct dm_ctx *waker, struct dm_ctx *target);
int rt_sleep(struct dm_ctx *base, uint64_t ns);
uint64_t rt_now(struct dm_ctx *base);
void rt_charge(struct dm_ctx *base, enum dm_work work, uint32_t units);
void rt_charge_access(struct dm_ctx *base, uint32_t units, uint64_t bytes);
int rt_measure(struct dm_fabric *fabric);

/* ---- atomic_copy.c ---------------------------------------------------------------------------------------------- */

/* Copies by atomic words, bytes where the alignment requires it. */
void rt_bytes_load(const unsigned char *at, unsigned char *out, uint32_t len);
void rt_bytes_store(unsigned char *at, const unsigned char *data, uint32_t len);
uint64_t rt_word_cas(unsigned char *at, uint64_t expect, uint64_t desired);

#endif
