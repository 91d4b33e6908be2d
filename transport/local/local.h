/* SPDX-License-Identifier: Apache-2.0
 *
 * The structures of the transport `local`. One pthread for every dm_thread that ever gets work; its contexts never
 * leave it. What only the thread itself touches needs no atomics; everything that comes from outside (wakes, starts,
 * answers) goes through its inbox, and calls through a queue of the node that any of the node's threads serves.
 *
 *   threads.c   the loop of a thread: which context runs, when the thread sleeps and who wakes it
 *   calls.c     requests, and the contexts that run handlers
 *   memory.c    what verbs and CPU accesses do to bytes
 *   engine.c    open, run, close, time, options, the table
 */
#ifndef DM_TRANSPORT_LOCAL_LOCAL_H
#define DM_TRANSPORT_LOCAL_LOCAL_H

#include <pthread.h>
#include <sched.h>

#include "transport/core/core.h"

enum {
    LOCAL_HANDLERS_MAX = 256, /* handler contexts a thread */
    LOCAL_STRIPES = 1 << 16,  /* line locks of a fabric */
};

struct local_options {
    uint64_t yield_every;
    uint64_t chip_bytes;
    bool pin;
};

/* What a context waits for; only its own thread looks. */
enum local_wait {
    LOCAL_NEW,      /* to be started */
    LOCAL_RUNNABLE, /* nothing: it runs or is in the ready queue */
    LOCAL_PARKED,   /* a wake */
    LOCAL_ASLEEP,   /* a moment */
    LOCAL_CALLING,  /* the answer to `request` */
    LOCAL_IDLE,     /* a handler context without a job */
};

struct local_call {
    struct local_call *next;
    struct local_ctx *caller;
    const struct dm_method *method;
    const void *req;
    void *resp;
    uint32_t req_len, *resp_len;
    int rc;
    _Atomic bool done; /* set last: from then on the caller may return and the structure is gone */
};

struct local_ctx {
    struct dm_ctx base;
    enum local_wait wait;
    int status; /* what the wait returns */
    uint64_t wake_at;
    struct local_call *request; /* while LOCAL_CALLING */
    struct local_call *job;     /* of a handler context */
    uint32_t charged;           /* units of work since the last switch, of background contexts */
    struct local_ctx *next;     /* in the ready queue, among the sleepers, or among the idle handlers */
    struct local_ctx *thread_next;
    struct local_ctx *inbox_next;
    _Atomic bool in_inbox;
};

struct local_thread {
    struct dm_thread base;

    /* The thread's own. */
    struct local_ctx *ready_head, *ready_tail;
    struct local_ctx *sleepers; /* soonest first */
    struct local_ctx *contexts; /* all that ever ran here */
    struct local_ctx *idle_handlers;
    struct local_ctx *ended; /* returned from its entry; to be released on another stack */
    uint32_t handler_count;
    uint64_t budget; /* switches between contexts until the loop looks round */
    bool stop_seen;
    struct dm_coro loop;

    /* Shared; on other cache lines than the thread's own. */
    char apart[DM_LINE];
    _Atomic(struct local_ctx *) inbox; /* latest first */
    _Atomic bool sleeping;             /* whoever clears it has to signal */
    _Atomic bool holding;              /* sleeps although it has contexts that could run or will */
    _Atomic bool started;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    pthread_t pthread;
};

struct local_memory {
    unsigned char *base; /* aligned to huge pages within the map */
    void *map;
    size_t map_bytes;
    uint64_t salt; /* spreads equal offsets of different memories over the line locks */
};

struct local_node {
    struct local_memory dram, chip;
    pthread_mutex_t lock; /* of the queue */
    struct local_call *head, *tail;
    _Atomic uint32_t queued;
    _Atomic bool serving; /* its threads have been started */
    char apart[DM_LINE];
};

struct local {
    struct dm_fabric *fabric;
    const struct local_options *options;
    struct local_node *nodes;
    uint64_t base_ns; /* of dm_now */
    bool measured;

    _Atomic uint32_t *stripes; /* sequence numbers of lines; odd while a line changes */

    pthread_mutex_t start_lock; /* of starting threads */
    unsigned *cpus, cpu_count, cpu_next;

    _Atomic bool open;     /* contexts may run */
    _Atomic bool stopping; /* the stop has been seen and is being told */
    _Atomic bool quit;
    _Atomic bool out_of_memory;
    _Atomic uint32_t foreground; /* contexts that the run waits for */
    _Atomic uint32_t active;     /* threads that are not asleep */
    pthread_mutex_t lock;        /* with cond: the run waits for foreground and active */
    pthread_cond_t cond;
};

static inline struct local *local_of(const struct dm_fabric *fabric) {
    return fabric->impl;
}
static inline struct local_thread *local_thread_of(const struct local_ctx *ctx) {
    return (struct local_thread *)ctx->base.thread;
}
static inline struct local_node *local_node_of(const struct local_thread *thread) {
    return &local_of(thread->base.fabric)->nodes[thread->base.node];
}
static inline struct local_memory *local_memory_at(const struct local *local, dm_addr addr) {
    struct local_node *node = &local->nodes[dm_addr_node(addr)];
    return dm_addr_space(addr) == DM_DRAM ? &node->dram : &node->chip;
}

/* memory.c. Executes the context's batch in order; true if a compare-and-swap found something else. */
bool local_memory_execute(struct local *local, const struct dm_ctx *ctx);
int local_memory_map(struct local_memory *memory, uint64_t bytes);
void local_memory_unmap(struct local_memory *memory);
void local_expect_bulk(struct dm_fabric *fabric, unsigned node, uint64_t offset, uint64_t bytes);
void local_cpu_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len);
void local_cpu_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len);
uint64_t local_cpu_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired);

/* threads.c */
uint64_t local_clock_ns(void);
void local_cond_init(pthread_cond_t *cond);
/* Waits until signalled or until `at` (of local_clock_ns); UINT64_MAX: without end. False when the time has come. */
bool local_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t at);

/* Makes the pthread if there is none yet. 0 or DM_ERR_NO_MEMORY. */
int local_thread_ensure(struct local_thread *thread);

/* Wakes the thread if it sleeps; true if it did. */
bool local_thread_notify(struct local_thread *thread);

/* Puts a context of the calling thread at the end of its ready queue. */
void local_ready(struct local_thread *thread, struct local_ctx *ctx, int status);

/* Tells a context, from whatever thread, that what it waits for may have come. */
void local_tell(struct local_ctx *ctx);

/* The same from a context of the same thread. */
void local_deliver(struct local_thread *thread, struct local_ctx *ctx);

/* Others run until the context is ready again (ctx->wait says for what); returns its status. */
int local_suspend(struct local_ctx *ctx, enum local_wait wait);

/* Lets others run if there are any, and every so often other threads; hurry: those at once. */
void local_yield(struct local_ctx *ctx, bool hurry);

/* Suspends until the moment. */
int local_sleep_until(struct local_ctx *ctx, uint64_t at);

/* The coroutine of a new context. */
int local_ctx_prepare(struct local_ctx *ctx);

/* calls.c */
int local_call(struct dm_ctx *ctx, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
               uint32_t *resp_len);

/* Is a request waiting that this thread has a handler context for? */
bool local_can_serve(const struct local_thread *thread);

/* Takes one request of the node and makes a handler context ready for it. */
void local_serve(struct local_thread *thread);

/* engine.c: the run's end may have come. */
void local_run_check(struct local *local);

#endif
