/* SPDX-License-Identifier: Apache-2.0
 *
 * The structures behind dm.h and fabric.h, and the table of functions that each transport fills. The core has what is
 * the same for all transports: batches, accounting, chunk allocation, registration of calls and node-local
 * synchronisation. A transport moves bytes, keeps time and decides which context runs.
 */
#ifndef DM_TRANSPORT_CORE_CORE_H
#define DM_TRANSPORT_CORE_CORE_H

#include <stdatomic.h>

#include "common/compiler.h"
#include "common/coro.h"
#include "common/large.h"
#include "transport/core/work.h"
#include "transport/fabric.h"

enum {
    DM_STACK_BYTES = 56 * 1024, /* of a context: with its structure less than 64 KiB for a client */
    DM_RETRY_LIMIT_DEFAULT = 100000,
    DM_METHOD_CHUNK = 0, /* core/alloc.c */
    DM_FREE_CLASSES = 16,
};

struct dm_verb {
    enum dm_verb_kind kind;
    uint32_t len;
    dm_addr addr;
    union {
        void *dst;       /* reads, and where an atomic's old value goes (may be NULL) */
        const void *src; /* writes */
    };
    struct dm_mask op; /* CAS: compare, swap; FAA: swap = the addend, compare_mask = field boundaries */
};

/* In front of what dm_local_alloc returns, at whatever address `calloc` gave, or at the front of a mapping. */
struct dm_local_block {
    struct dm_local_block *next;
    size_t mapped; /* bytes of the mapping; 0: it is from the heap */
};

/* Frees a context's blocks. */
void dm_local_free(struct dm_local_block *first);

/* The common part of a context; a transport's own part begins with it (see ctx_bytes). */
struct dm_ctx {
    /* What each verb uses, in two cache lines. */
    struct dm_fabric *fabric;
    const struct dm_transport_ops *ops;
    struct dm_thread *thread;
    struct dm_account *account; /* never NULL: `nowhere` when the counts are dropped */
    struct dm_verb *batch;
    uint32_t batch_count, batch_capacity;
    struct dm_coro coro;
    uint32_t batch_kinds; /* a bit for each kind of verb that the batch has had since it was empty */
    unsigned node;
    uint32_t id;
    enum dm_phase phase;
    int batch_error;   /* found while posting; reported by the commit */
    int pending_error; /* of an unsignalled verb; reported by the next commit */
    bool background, done, parked;
    bool gone;               /* its node has failed: every wait fails at once, so that it unwinds */
    bool is_metered;         /* it is in index code, and its fabric has a meter */
    uint64_t phase_since_ns; /* unless the phase is `other` */

    struct dm_ctx *wait_next; /* in a waitlist or a ready queue */
    struct dm_ctx *all_next;  /* in fabric->contexts */
    struct dm_verb *cut;      /* the batch that is cut at its masked atomics while they are emulated */
    uint32_t cut_capacity;
    struct dm_prng prng;
    struct dm_local_block *locals;
    void (*entry)(struct dm_ctx *ctx, void *arg);
    void *arg;
    struct dm_account nowhere;
    uint64_t code_since_ns;       /* when it entered or returned to index code */
    struct dm_trace_event traced; /* times of the current batch or call; only while tracing */
};

struct dm_chunk {
    uint64_t offset, left;
};

struct dm_free_class {
    uint32_t bytes;
    uint32_t count, capacity;
    dm_addr *addrs;
};

/* A core that runs contexts. The transport's own part begins with it (see thread_bytes). */
struct dm_thread {
    struct dm_fabric *fabric;
    unsigned node, index;
    uint64_t verbs;              /* sent by contexts of this thread */
    struct dm_mutex alloc_mutex; /* one context of the thread fetches a chunk, the others wait */
    struct dm_chunk *chunks;     /* one for each node with memory */
    unsigned alloc_node;
    struct dm_free_class free[DM_FREE_CLASSES];
};

struct dm_method {
    dm_handler handler;
    void *arg;
};

struct dm_node_state {
    unsigned thread_count; /* fewer than were opened after dm_fabric_resize */
    unsigned opened_count; /* length of `threads` */
    struct dm_thread **threads;
    struct dm_method methods[DM_METHOD_MAX + 1];
    void (*restart)(struct dm_ctx *ctx, void *arg); /* see dm_on_restart; may be NULL */
    void *restart_arg;
    uint64_t bytes;             /* DRAM */
    _Atomic uint64_t allocated; /* bump offset of chunks */
    _Atomic uint32_t chip_allocated;
    unsigned call_threads;            /* the first ones, which alone serve calls; 0: all threads do all work */
    _Atomic uint32_t background_next; /* thread of the next background context, of those that run them */
    _Atomic uint64_t memory_bytes[DM_MEM_KIND_COUNT];
    _Atomic uint64_t memory_freed, memory_chunks;
    bool fills_chunks; /* in the run: it is expected to fill most chunks that are handed out */
};

/* The number of the node's threads that serve calls. */
static inline unsigned dm_call_threads(const struct dm_node_state *state) {
    return state->call_threads > 0 ? state->call_threads : state->thread_count;
}

struct dm_fabric {
    const struct dm_transport_ops *ops;
    struct dm_fabric_config config; /* its strings may be freed */
    const struct dm_processes *processes;
    struct dm_topology topology;
    void *options; /* the transport's, ops->options_bytes */
    struct dm_profile *profile;
    unsigned node_count;
    struct dm_node_state *nodes;
    struct dm_ctx *contexts;
    _Atomic uint32_t next_ctx_id;
    _Atomic bool guard; /* of the list of contexts */
    _Atomic bool stop;  /* set by a signal handler: lock-free */
    bool measuring;
    bool has_masked;             /* set by the transport's open: its devices have masked atomics, beyond info.caps */
    _Atomic unsigned setup_node; /* round robin of set-up allocations */
    dm_trace_sink trace;         /* NULL: no tracing */
    void *trace_arg;
    const struct dm_meter *meter; /* NULL: none */
    _Atomic uint64_t trace_batches;
    void *impl; /* the transport's */
};

struct dm_transport_ops {
    struct dm_transport_info info;
    size_t options_bytes, ctx_bytes, thread_bytes;
    bool traces_verbs; /* commit itself reports each verb, with the responder's times */

    /* Memory and resources for fabric->topology; threads exist already. close also undoes an open that failed. */
    int (*open)(struct dm_fabric *fabric, struct dm_err *err);
    void (*close)(struct dm_fabric *fabric);
    int (*connect)(struct dm_fabric *fabric, struct dm_err *err); /* NULL: nothing to connect */
    int (*measure)(struct dm_fabric *fabric);
    void (*timing)(struct dm_fabric *fabric, enum dm_timing timing); /* see dm_fabric_timing; may be NULL */
    int (*run)(struct dm_fabric *fabric, struct dm_err *err);

    /* Makes a new context run at the next chance. */
    void (*start)(struct dm_ctx *ctx);

    /* Sends ctx->batch (valid, not empty) and, if wait, returns when all is done. */
    int (*commit)(struct dm_ctx *ctx, bool wait);
    int (*call)(struct dm_ctx *ctx, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
                uint32_t *resp_len);

    /* Suspends until wake(ctx): 0, or DM_ERR_STOPPED. The caller is on a list where a waker finds it. */
    int (*park)(struct dm_ctx *ctx);
    void (*wake)(struct dm_ctx *waker, struct dm_ctx *target);
    int (*sleep)(struct dm_ctx *ctx, uint64_t ns);
    uint64_t (*now)(struct dm_ctx *ctx);
    void (*charge)(struct dm_ctx *ctx, enum dm_work work, uint32_t units);
    void (*charge_access)(struct dm_ctx *ctx, uint32_t count, uint64_t bytes);

    void (*cpu_read)(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len);
    void (*cpu_write)(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len);
    uint64_t (*cpu_cas)(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired);

    /* Memory for dm_local_alloc that lives as long as the fabric, zero, aligned to a line; NULL when out of memory. May
     * be NULL: the heap is used. */
    void *(*local_alloc)(struct dm_fabric *fabric, size_t bytes);

    /* Bulk data will be stored there soon: the transport may ask for huge pages. May be NULL. */
    void (*expect_bulk)(struct dm_fabric *fabric, unsigned node, uint64_t offset, uint64_t bytes);

    void (*copied)(struct dm_fabric *fabric); /* see dm_fabric_copied; may be NULL */

    /* What open derived from fabric->topology is derived again; see dm_fabric_resize, which has checked that it can be.
     * May be NULL: not supported. */
    int (*resized)(struct dm_fabric *fabric, struct dm_err *err);

    void (*resources_reset)(struct dm_fabric *fabric);                                             /* may be NULL */
    size_t (*resources)(struct dm_fabric *fabric, struct dm_resource *resources, size_t capacity); /* may be NULL */
    int (*listen)(const char *address, int *listener, char *text, size_t capacity, struct dm_err *err); /* likewise */
    unsigned (*peers)(struct dm_fabric *fabric, bool *have_been);                      /* may be NULL */
    size_t (*notes)(struct dm_fabric *fabric, struct dm_note *notes, size_t capacity); /* may be NULL */
};

/* transports.c: NULL if there is none of that name. */
const struct dm_transport_ops *dm_transport_ops_find(const char *name);

/* context.c: makes a context and adds it to the fabric's list; the transport's `start` makes it run. NULL when out of
 * memory. A context lives as long as its fabric. */
struct dm_ctx *dm_ctx_new(struct dm_fabric *fabric, unsigned node, unsigned thread,
                          void (*entry)(struct dm_ctx *ctx, void *arg), void *arg, bool background);
void dm_ctx_free(struct dm_ctx *ctx);

/* fabric.c: the threads that a node of this topology has. */
unsigned dm_threads_of(const struct dm_topology *topology, unsigned node);
bool dm_range_valid(const struct dm_fabric *fabric, dm_addr addr, uint32_t len);

/* True if the node belongs to this process. */
static inline bool dm_is_hosted(const struct dm_fabric *fabric, unsigned node) {
    return !fabric->processes || fabric->processes->hosted[node];
}

/* True if the context may not wait any more. */
static inline bool dm_is_over(const struct dm_ctx *ctx) {
    return ctx->fabric->stop || ctx->gone;
}

/* alloc.c: forgets all allocations on the node, in every thread. No context of another node may run meanwhile. */
void dm_node_forget(struct dm_fabric *fabric, unsigned node);

/* alloc.c: the handler behind DM_METHOD_CHUNK. */
int dm_chunk_handler(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);

/* trace.c, called only while dm_is_traced: a batch or call begins; a batch was sent, which is reported verb by verb; a
 * call has ended; a wait that began at posted_ns has ended. */
static inline bool dm_is_traced(const struct dm_fabric *fabric) {
    return dm_unlikely(fabric->trace != NULL) && fabric->measuring;
}
void dm_trace_begin(struct dm_ctx *ctx);
void dm_trace_batch(struct dm_ctx *ctx, bool is_waited, int outcome);
void dm_trace_call(struct dm_ctx *ctx, unsigned node, unsigned method, uint32_t req_len, int outcome);
void dm_trace_wait(struct dm_ctx *ctx, enum dm_trace_kind kind, uint64_t posted_ns, int outcome);

/* Records in an atomic verb's event the value that it found. */
void dm_trace_found(struct dm_trace_event *event, const struct dm_verb *verb, uint64_t found);

/* meter.c, called only while there is a meter: index code is left for a wait; it continues; it charges work. */
void dm_meter_stop(struct dm_ctx *ctx);
void dm_meter_go(struct dm_ctx *ctx);
void dm_meter_charge(struct dm_ctx *ctx, enum dm_work work, uint32_t units);
void dm_meter_charge_access(struct dm_ctx *ctx, uint32_t accesses, uint64_t bytes);

static inline void dm_code_leave(struct dm_ctx *ctx) {
    if (dm_unlikely(ctx->fabric->meter != NULL)) {
        dm_meter_stop(ctx);
    }
}
static inline void dm_code_return(struct dm_ctx *ctx) {
    if (dm_unlikely(ctx->fabric->meter != NULL)) {
        dm_meter_go(ctx);
    }
}

/* atomics.c: the new value that an atomic verb stores for what it found; *swapped: whether it stores. */
uint64_t dm_atomic_apply(const struct dm_verb *verb, uint64_t found, bool *swapped);

/* ---- mapping.c ------------------------------------------------------------------------------------------------- */

struct dm_mapping {
    unsigned char *base; /* aligned to huge pages within the map, so that bulk data can be stored on them */
    void *map;
    size_t map_bytes;
};

/* Reserves address space that is zero; memory is taken only where it is touched. 0 or DM_ERR_NO_MEMORY. */
int dm_mapping_open(struct dm_mapping *mapping, uint64_t bytes);
void dm_mapping_close(struct dm_mapping *mapping); /* accepts one that is all zero */

/* Asks the system for huge pages. */
void dm_mapping_expect_bulk(const struct dm_mapping *mapping, uint64_t offset, uint64_t bytes);

/* dm_large_own of the mapping's large page `number`; true as well where the mapping ends within it. */
bool dm_mapping_own(const struct dm_mapping *mapping, uint64_t number);

#endif
