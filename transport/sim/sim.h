/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator's own structures. One OS thread; virtual time in ps; events are operations (struct sim_op) moving from
 * stage to stage.
 *
 *   client core --doorbell--> [ISSUE] queue pair, requester NIC, link --> [ARRIVE] responder NIC, PCIe or atomic slot
 *   --> [EFFECT] memory changes or is read, link --> [RETURN], [COMPLETE] at the client: its context becomes ready
 *
 * Every resource is taken at the moment at which its user gets there, so what waits for one resource never holds
 * another one. Times that are the same for all verbs are spent before the queues that they lead to, which changes no
 * sum and lets a verb cross idle resources in one event.
 */
#ifndef DM_TRANSPORT_SIM_SIM_H
#define DM_TRANSPORT_SIM_SIM_H

#include <assert.h>

#include "common/wheel.h"
#include "transport/core/core.h"
#include "transport/sim/bytes.h"
#include "transport/sim/faults.h"
#include "transport/sim/model.h"
#include "transport/sim/server.h"

enum sim_order { SIM_ASCENDING, SIM_RANDOM, SIM_DESCENDING };

/* Reads of one context to one node: as posted, or each when its own fetch comes through, as PCIe allows. */
enum sim_read_order { SIM_READS_POSTED, SIM_READS_ANY };

struct sim_options {
    unsigned read_line_order, write_line_order;      /* enum sim_order */
    uint64_t read_window_ns, write_window_ns;        /* added to the time over which lines are sampled or land */
    unsigned read_order;                             /* enum sim_read_order */
    uint64_t nics;                                   /* of every node */
    bool same_host;                                  /* memory node i and compute node i are one machine */
    uint64_t cn_cores, mn_hw_cores, server_hw_cores; /* of a node; 0: one a thread */
    bool coroutines;                                 /* clients of a thread are coroutines, and switching costs */
    const char *faults;                              /* rules, see faults.h */
    uint64_t peer_timeout_ns;                        /* until a verb to a failed node completes in error */
};

/* A queue of operations. */
struct sim_queue {
    struct sim_op *head, *tail;
};

/* An atomic slot: one atomic at a time works on the words that share it; the others wait in order. */
struct sim_slot {
    struct sim_queue waiting;
    bool is_taken;
    uint64_t freed_at, busy;
};

/* A processing unit: while an atomic of one of its queue pairs waits for a slot, the verbs behind it wait as well. */
struct sim_unit {
    struct sim_queue waiting;
    bool is_blocked;
    uint64_t freed_at;
};

/* A line of host memory that was read lately, and from when it can be read again. */
struct sim_line {
    uint64_t line, free_at;
};

enum { SIM_LINES = 1024 };

struct sim_nic {
    struct sim_server tx, rx, out, in, pcie_in, pcie_out;
    struct sim_server slots; /* sums over all slots; its free_at is not used */
    struct sim_unit *units;
    uint32_t in_progress;         /* atomics on host memory */
    struct sim_queue to_start;    /* those that have their slots and wait until there are fewer in progress */
    struct sim_slot *slots_of[2]; /* by enum dm_space: atomic_slots each; only where there is memory */
    struct sim_line *lines;       /* SIM_LINES; only if the profile separates reads of one line */
    uint32_t queue_pairs;
    uint64_t factor_1024; /* for too many queue pairs */
    uint32_t posted;      /* requests posted and not completed */
};

/* A doorbell register that threads share: a spin lock around one store. */
struct sim_register {
    struct sim_server server;
    uint32_t inside; /* threads that ring or wait for it */
};

enum sim_stage {
    SIM_RING,    /* a thread begins to ring a shared doorbell register */
    SIM_RUNG,    /* and has rung it */
    SIM_ISSUE,   /* the NIC takes up a chain of requests of one doorbell */
    SIM_FETCHED, /* a payload that was not inline is in the NIC */
    SIM_SEND,    /* a message leaves the sending pipeline, behind others */
    SIM_ARRIVE,  /* its last byte is at the responder */
    SIM_ADMIT,   /* it leaves the receiving pipeline, behind others */
    SIM_EFFECT,
    SIM_RETURN, /* the response's last byte is at the requester */
    SIM_DRAIN,  /* it has left the requester's link, behind others */
    SIM_COMPLETE,
    SIM_DELIVER, /* a request reaches the called node's memory */
    SIM_RESPOND, /* the handler's core has posted the response */
    SIM_WAKE,    /* a context becomes ready (started, slept, handed a mutex) */
    SIM_KICK,    /* a core has become free and takes the next ready context */
    SIM_FAIL,    /* a node fails */
    SIM_RESTART, /* and comes back */
};

/* One verb, call or other event. Two cache lines; the first has what every stage needs. */
struct sim_op {
    enum sim_stage stage : 8;
    enum dm_verb_kind kind : 8;
    bool wait : 1, fence : 1;
    bool listed : 1;     /* in its memory's reads or writes */
    bool no_effect : 1;  /* it fails before it reaches memory */
    bool sampled : 1;    /* of an atomic: a CPU store came while it held its slot; line_seed is the value read before */
    bool delayed : 1;    /* `delay` holds */
    bool fetching : 1;   /* the NIC reads its payload from host memory */
    bool has_slot : 1;   /* of an atomic */
    bool line_taken : 1; /* of a read: it has waited for its line */
    bool is_response : 1; /* of a call */
    bool received : 1;    /* it has left the responder's link */
    uint8_t nic;          /* which NIC of its nodes it uses */
    int16_t status;       /* what its completion reports: 0 or a failure */
    uint32_t tag;         /* its index in the pool */
    uint32_t len;
    uint16_t unit;             /* processing unit at the responder */
    uint8_t from;              /* the node that sends it */
    uint8_t life;              /* of the target node when it was posted */
    uint32_t list_index;       /* in its memory's reads or writes while listed */
    struct sim_ctx *ctx;       /* of a KICK: unused */
    struct sim_thread *thread; /* whose queue pair it uses; of a KICK: the core */
    dm_addr addr;
    void *dst;
    uint64_t begin; /* lines are sampled or land within [begin, end]; before that see sim_send */
    union {
        uint64_t end;
        struct sim_op *next; /* in a chain, a queue or the free list */
    };
    unsigned char *payload; /* of a write: what it carries; after it has landed: what was there before */
    uint64_t line_seed;
    union {
        struct dm_mask op;
        struct sim_call *call;
    };
    uint64_t delay; /* on the wire, in addition to the model's, from a fault rule */
};

static_assert(sizeof(struct sim_op) == 2 * DM_LINE, "an operation has two cache lines");

struct sim_call {
    struct sim_call *next;
    struct sim_ctx *caller;
    unsigned node;
    const struct dm_method *method;
    const void *req;
    void *resp;
    uint32_t req_len, *resp_len;
    int rc, status; /* the handler's value; what the fabric reports */
    bool is_setup;  /* it costs nothing, and its caller is made ready at once */
    uint64_t queued_at;
};

/* A queue pair. */
struct sim_qp {
    struct sim_queue sending; /* verbs that may not be sent yet */
    uint32_t reads_atomics;   /* outstanding */
    bool has_atomic;          /* the responder works on an atomic of this queue pair */
    bool awaits_line;         /* a read of it waits for its line at the responder */
    struct sim_queue held;    /* at the responder, behind another atomic of this queue pair */
    uint32_t in_unit;         /* its verbs in the queue of its unit at the responder; 0 if any is held */
};

struct sim_thread {
    struct dm_thread base;

    /* What each switch uses, in one cache line. */
    _Alignas(DM_LINE) uint64_t clock; /* up to when this core has worked */
    struct sim_ctx *ready_head, *ready_tail;
    uint64_t busy;              /* not beside `clock`: as one vector they would wait for a store of one of them */
    const struct sim_ctx *last; /* the client that ran last */
    struct sim_qp *qps;         /* one for each node with memory */
    struct sim_register *rings; /* those of its node that are shared; NULL: each queue pair has its own */
    uint32_t work_1024;         /* its work takes this / 1024 of the profile's: it may share its core */
    uint16_t unit;              /* processing unit that its queue pairs use at every responder */
    uint8_t nic;                /* which of its node's NICs its queue pairs use */
    bool kick_pending;

    uint64_t waited, served, idle_waited;
};

/* Operations in flight of a context to one node. */
struct sim_lane {
    uint64_t last_arrival, last_effect; /* of its last verb to the node: verbs of a queue pair keep order */
    uint64_t last_change;               /* of its last verb to the node that is not a read */
    uint32_t reads_atomics;             /* outstanding ones of this context, for fences */
    struct sim_queue chain;             /* verbs of the batch that is being posted */
};

struct sim_ctx {
    struct dm_ctx base;
    _Alignas(DM_LINE) uint32_t pending; /* signalled verbs not completed */
    uint32_t completions;               /* to be paid for at the next resume */
    int status;                         /* what the wait returns */
    uint32_t untimed_batches;           /* since it waited for such batches last */
    uint64_t batch_at;                  /* of a sample: when it posted its last batch */
    uint64_t ready_at;
    struct sim_ctx *ready_next; /* not wait_next: a stopped waiter is still in its waitlist */
    struct sim_lane *lanes;     /* one for each node with memory */
    struct sim_call *job;       /* of a handler context */
    struct sim_ctx *idle_next;
    int64_t client;       /* number of a foreground context of a compute node, or SIM_ANY */
    uint64_t verbs_begun; /* for faults */
    bool dead;            /* stopped for good: nothing resumes it */
    bool lingers;         /* the same, with verbs in flight, which the run waits for: one more in sim->async */
    bool in_own_call;     /* a call of the transport itself, such as one for a chunk of memory */
    bool stop_due;        /* stops for good with its next verb of another kind */
    uint64_t slice;       /* work since the last switch, of background contexts */
};

/* Memory of one space of one node and the accesses in progress on it. */
struct sim_memory {
    struct sim_bytes bytes;
    struct sim_op **reads, **writes, **atomics;
    uint32_t read_count, write_count, atomic_count, read_capacity, write_capacity, atomic_capacity;
};

/* How long contexts of one kind take for a batch: clients from one to the next, background contexts until it completes,
 * as their work takes its time in untimed parts as well. */
struct sim_pace {
    uint64_t sampled_ps, sampled_batches; /* of all batches in this sample */
    uint64_t batch_ps;                    /* by the last sample that has some; 0: none has */
};

#define SIM_NEVER UINT64_MAX

struct sim_node {
    struct sim_nic *nics; /* options.nics of them */
    uint64_t failed_at;   /* SIM_NEVER, or from when nothing answers */
    uint8_t life;         /* how often it has come back */
    bool owns_nics;
    struct sim_register *registers;
    struct sim_memory dram, chip;
    struct sim_ctx *idle_handlers;
    uint32_t handler_count;
    struct sim_pace clients, background;
    bool starts;        /* it is back, and its first context has not run yet: calls wait */
    uint32_t unwinding; /* contexts from before its failure that have not ended */
    struct {
        struct sim_call *head, *tail;
    } queue; /* requests that wait for a core, or for a handler context */
};

/* SIM_FEW_EVENTS: with no more pending, the loop does not look ahead. SIM_UNTIMED_BATCHES: a context waits for so many
 * untimed batches at a time. */
enum { SIM_POOL_STEP = 1024, SIM_PAYLOAD_CLASSES = 6, SIM_FEW_EVENTS = 64, SIM_UNTIMED_BATCHES = 16 };

struct sim {
    struct dm_fabric *fabric;
    struct sim_options *options;
    struct sim_costs costs;
    struct dm_wheel wheel;
    uint64_t now, base, reset_at;
    struct sim_node *nodes;
    unsigned memory_nodes;
    struct dm_mapping pool; /* of operations; a tag is an index in it */
    uint32_t op_count;      /* made so far */
    struct sim_op *free_ops;
    struct {
        unsigned char *free; /* each begins with the pointer to the next */
    } payloads[SIM_PAYLOAD_CLASSES];
    struct dm_prng lines, spread; /* order of lines; how long PCIe reads take */
    struct sim_faults faults;
    int64_t next_client;
    struct dm_coro main;
    struct sim_ctx *current;
    struct sim_ctx *deferred; /* background contexts that wait for the end of the set-up phase */
    uint64_t foreground;      /* contexts that the run waits for */
    uint64_t async;           /* unsignalled verbs in flight, and clients that linger */
    bool stop_seen, out_of_memory, measured;
    bool is_untimed, is_sampled; /* see dm_fabric_timing */
    uint64_t sampled_from;       /* when all contexts had left the untimed part before the sample */
    uint64_t events;
    uint64_t looked_at;            /* the slot of the wheel from which the loop has looked ahead */
    struct dm_trace_event *traced; /* by the operation's index in the pool; only while tracing */
    uint32_t traced_count;
    struct sim_ctx *(*next)(struct sim *sim); /* sim_next_context, for the files below the event loop */
};

/* ---- events.c --------------------------------------------------------------------------------------------------- */

/* Opening reserves addresses for all operations: 0 or DM_ERR_NO_MEMORY. Closing also frees the payloads of writes in
 * flight. */
int sim_pool_open(struct sim *sim);
void sim_pool_close(struct sim *sim);

/* An operation of the pool, or NULL when out of memory. dst, payload, status and the bits from `fence` to `delayed` are
 * zero; the caller sets all other members that it uses. */
struct sim_op *sim_op_new(struct sim *sim);
void sim_op_free(struct sim *sim, struct sim_op *op);

/* A buffer for the bytes that a write carries; NULL when out of memory. `bytes` must be the same at both calls. */
unsigned char *sim_payload_new(struct sim *sim, uint32_t bytes);
void sim_payload_free(struct sim *sim, unsigned char *payload, uint32_t bytes);

/* The operation's next event: `stage` at the time `at` (ps). */
void sim_schedule(struct sim *sim, struct sim_op *op, enum sim_stage stage, uint64_t at);

/* ---- untimed.c: what passes where verbs act at once -------------------------------------------------------------- */

void sim_timing(struct dm_fabric *fabric, enum dm_timing timing);

/* The context posts a batch that it will wait for, in a sample; a batch has completed that it posted in a sample. */
void sim_sample_post(struct sim *sim, struct sim_ctx *ctx);
void sim_sample_complete(struct sim *sim, struct sim_ctx *ctx);

/* Waits, before a batch acts and after it, as long as untimed batches take. Return 0 or DM_ERR_STOPPED. */
int sim_untimed_before(struct sim *sim, struct sim_ctx *ctx);
int sim_untimed_after(struct sim *sim, struct sim_ctx *ctx);

/* ---- memory.c: what verbs do to bytes, with the torn reads that overlap allows ----------------------------------- */

/* When an access in progress samples or lands the line at `line` (an offset, a multiple of DM_LINE). All other
 * functions act at sim->now. */
uint64_t sim_line_moment(const struct sim *sim, const struct sim_op *op, uint64_t line);
void sim_memory_read(struct sim *sim, struct sim_memory *memory, struct sim_op *op);
void sim_memory_write(struct sim *sim, struct sim_memory *memory, struct sim_op *op);
void sim_memory_atomic(struct sim *sim, struct sim_memory *memory, struct sim_op *op);

/* The atomic will take effect at op->begin, on the value that its word has op->end - op->begin earlier. A CPU store
 * between the two is not seen and is overwritten. */
void sim_memory_hold(struct sim *sim, struct sim_memory *memory, struct sim_op *op);

/* Removes an access from the list of those in progress. */
void sim_memory_forget(struct sim_memory *memory, struct sim_op *op);

/* Power loss: all bytes are zero and no access is in progress. */
void sim_memory_clear(struct sim_memory *memory);
void sim_memory_cpu_read(struct sim *sim, struct sim_memory *memory, uint64_t offset, void *dst, uint32_t len);
void sim_memory_cpu_write(struct sim *sim, struct sim_memory *memory, uint64_t offset, const void *src, uint32_t len);

/* ---- trace.c: the stages of an operation, for the trace; called only while dm_is_traced -------------------------- */

void sim_trace_post(struct sim *sim, const struct sim_op *op);
void sim_trace_arrive(struct sim *sim, const struct sim_op *op);
void sim_trace_effect(struct sim *sim, const struct sim_op *op);
void sim_trace_found(struct sim *sim, const struct sim_op *op, const struct dm_verb *verb, uint64_t found);
void sim_trace_complete(struct sim *sim, const struct sim_op *op);
void sim_trace_call(struct sim *sim, struct sim_call *call, bool is_answer);

/* ---- scheduler.c ------------------------------------------------------------------------------------------------ */

/* Allocates the lanes and the coroutine of a context, which starts when it becomes ready. 0 or DM_ERR_NO_MEMORY. */
int sim_ctx_prepare(struct sim *sim, struct sim_ctx *ctx);

/* Prepares a context and makes it ready now. */
void sim_ctx_start(struct sim *sim, struct sim_ctx *ctx);

/* The context runs as soon as its core is free. */
void sim_ready(struct sim *sim, struct sim_ctx *ctx);

/* Runs the event loop, and with it other contexts, until this context runs again; returns its status. */
int sim_suspend(struct sim_ctx *ctx);

/* Suspends the context until the time `at` (ps), or until a stop. */
int sim_sleep_until(struct sim_ctx *ctx, uint64_t at);

/* Schedules the moment at which the core takes its next ready context, if there is one. */
void sim_kick_later(struct sim *sim, struct sim_thread *thread);

/* Functions of the transport's table. */
int sim_park(struct dm_ctx *ctx);
void sim_wake(struct dm_ctx *waker, struct dm_ctx *target);
int sim_sleep(struct dm_ctx *ctx, uint64_t ns);
uint64_t sim_now(struct dm_ctx *ctx);
void sim_charge(struct dm_ctx *ctx, enum dm_work work, uint32_t units);
void sim_charge_access(struct dm_ctx *ctx, uint32_t count, uint64_t bytes);

/* ---- events.c: queues of operations ----------------------------------------------------------------------------- */

static inline void sim_queue_push(struct sim_queue *queue, struct sim_op *op) {
    op->next = NULL;
    *(queue->head ? &queue->tail->next : &queue->head) = op;
    queue->tail = op;
}

static inline struct sim_op *sim_queue_pop(struct sim_queue *queue) {
    struct sim_op *op = queue->head;
    queue->head = op->next;
    return op;
}

/* The operation meets a failed node: nothing answers, and it completes in error after the peer timeout. */
void sim_lose(struct sim *sim, struct sim_op *op);

/* ---- post.c: a batch becomes requests of queue pairs --------------------------------------------------------------
 */

/* The transport's `commit`. */
int sim_commit(struct dm_ctx *ctx, bool wait);

/* Draws what the fault rules do to the context's next verb. */
struct sim_fate sim_draw_fate(struct sim *sim, struct sim_ctx *ctx, enum dm_verb_kind kind, unsigned node);

/* Stops the context, for a time or for good, if a rule asks for it; all that it posted before has been sent. */
void sim_obey_stop(struct sim *sim, struct sim_ctx *ctx, struct sim_fate *fate);

/* ---- requester.c: from the doorbell to the link, and from the link to the completion ------------------------------
 */

/* Charges the core for a doorbell that makes the chain visible to the NIC, and sends it. */
void sim_ring_doorbell(struct sim *sim, struct sim_op *chain);

/* What the events of the same names do. */
void sim_ring(struct sim *sim, struct sim_op *op);
void sim_rung(struct sim *sim, struct sim_op *op);
void sim_issue(struct sim *sim, struct sim_op *chain);
void sim_fetched(struct sim *sim, struct sim_op *op);
void sim_send(struct sim *sim, struct sim_op *op); /* op->begin: from its first packet's arrival to the last one's */
void sim_return(struct sim *sim, struct sim_op *op);
void sim_drain(struct sim *sim, struct sim_op *op);
void sim_complete(struct sim *sim, struct sim_op *op);

/* ---- responder.c: from the link to memory, and the response -------------------------------------------------------
 */

void sim_arrive(struct sim *sim, struct sim_op *op);
void sim_admit(struct sim *sim, struct sim_op *op);
void sim_effect(struct sim *sim, struct sim_op *op);

/* ---- calls.c ---------------------------------------------------------------------------------------------------- */

int sim_call(struct dm_ctx *ctx, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
             uint32_t *resp_len);
void sim_deliver(struct sim *sim, struct sim_op *op);
void sim_respond(struct sim *sim, struct sim_op *op);

/* Fails a call that no handler will answer. */
void sim_call_lose(struct sim *sim, struct sim_call *call);

/* Whether a call waits that this core may serve. */
static inline bool sim_has_call(const struct sim *sim, const struct sim_thread *thread) {
    const struct sim_node *node = &sim->nodes[thread->base.node];
    return node->queue.head && !node->starts &&
           thread->base.index < dm_call_threads(&sim->fabric->nodes[thread->base.node]);
}

/* Whether the context, which is ready, is background work that continues after a slice, and a call came before: the
 * call has the core first. */
static inline bool sim_is_behind_call(const struct sim *sim, const struct sim_thread *thread,
                                      const struct sim_ctx *ctx) {
    return ctx->base.background && !ctx->job && sim_has_call(sim, thread) &&
           sim->nodes[thread->base.node].queue.head->queued_at <= ctx->ready_at;
}

/* A handler context that runs the node's first waiting call on this core; NULL if none can be served now. */
struct sim_ctx *sim_next_call(struct sim *sim, struct sim_thread *thread);

/* Calls wait: each core of the node looks for one as soon as it is free. */
void sim_kick_cores(struct sim *sim, unsigned node);

/* ---- failures.c ------------------------------------------------------------------------------------------------- */

/* The node op->addr names fails now; calls to it get no answer. If op->delay is 0 it fails for good and its handler and
 * background contexts never run again; otherwise they unwind, and the node comes back after op->delay. */
void sim_node_fail(struct sim *sim, struct sim_op *op);
void sim_node_restart(struct sim *sim, struct sim_op *op);

/* ---- loop.c ----------------------------------------------------------------------------------------------------- */

/* Lets events act until a context is to run, and returns it; NULL when the run is over or no event is left. */
struct sim_ctx *sim_next_context(struct sim *sim);

/* The transport's `run`. */
int sim_run(struct dm_fabric *fabric, struct dm_err *err);

/* ---- nodes.c ---------------------------------------------------------------------------------------------------- */

int sim_nodes_open(struct dm_fabric *fabric, struct dm_err *err);
void sim_nodes_close(struct dm_fabric *fabric);
void sim_expect_bulk(struct dm_fabric *fabric, unsigned node, uint64_t offset, uint64_t bytes);
void sim_copied(struct dm_fabric *fabric);
int sim_resized(struct dm_fabric *fabric, struct dm_err *err);

/* ---- nics.c ------------------------------------------------------------------------------------------------------ */

/* The node's NICs; with `same_host` a compute node uses those of its memory node, which must be open. */
int sim_nics_open(struct sim *sim, unsigned node);

/* Counts the queue pairs of every NIC, once all are open, and what their number makes them slower by. */
void sim_count_queue_pairs(struct sim *sim);
void sim_nics_close(struct sim *sim, unsigned node);
void sim_resources_reset(struct dm_fabric *fabric);
size_t sim_resources(struct dm_fabric *fabric, struct dm_resource *resources, size_t capacity);

/* ---- small helpers ---------------------------------------------------------------------------------------------- */

/* True if the node has failed since the operation was posted. */
static inline bool sim_is_lost(const struct sim *sim, const struct sim_op *op, unsigned node) {
    return sim->now >= sim->nodes[node].failed_at || op->life != sim->nodes[node].life;
}

/* How long a PCIe read takes: a little less than its mean most of the time, and sometimes much more. */
static inline uint64_t sim_pcie_read_time(struct sim *sim) {
    const struct sim_costs *costs = &sim->costs;
    if (costs->pcie_read_spread == 0) {
        return costs->pcie_read;
    }
    return costs->pcie_read_least + sim_spread(costs, dm_prng_u64(&sim->spread));
}

static inline bool sim_is_atomic(const struct sim_op *op) {
    return op->kind != DM_VERB_READ && op->kind != DM_VERB_WRITE && op->kind != DM_VERB_CALL;
}

/* The node that the message goes to: of a request the target, of a response the caller's. */
static inline unsigned sim_target(const struct sim_op *op) {
    return op->is_response            ? op->call->caller->base.node
           : op->kind == DM_VERB_CALL ? op->call->node
                                      : dm_addr_node(op->addr);
}

static inline struct sim_nic *sim_nic_at(const struct sim *sim, unsigned node, const struct sim_op *op) {
    return &sim->nodes[node].nics[op->nic];
}

/* Work of a core, in ps. */
static inline void sim_work(struct sim_thread *thread, uint64_t work) {
    work = work * thread->work_1024 >> 10;
    thread->clock += work;
    thread->busy += work;
}

static inline struct sim_op *sim_op_at(const struct sim *sim, uint32_t tag) {
    return (struct sim_op *)(void *)sim->pool.base + tag;
}

static inline struct sim *sim_of(const struct dm_fabric *fabric) {
    return fabric->impl;
}
static inline struct sim_thread *sim_thread_of(const struct sim_ctx *ctx) {
    return (struct sim_thread *)ctx->base.thread;
}
static inline struct sim_memory *sim_memory_at(struct sim *sim, dm_addr addr) {
    struct sim_node *node = &sim->nodes[dm_addr_node(addr)];
    return dm_addr_space(addr) == DM_DRAM ? &node->dram : &node->chip;
}

#endif
