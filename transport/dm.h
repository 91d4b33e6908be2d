/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport contract: how an index moves bytes. This is the only transport header an index includes, and the
 * same index code runs over it in virtual time (sim), in shared memory (local) and on RDMA (verbs).
 *
 * A context is one coroutine on one node. Code is written straight-line: a call returns when its data is there, and
 * other contexts of the thread run meanwhile. Any function here that takes a context and may wait is marked [waits].
 *
 * Rules an index must respect (sim breaks programs that assume more):
 *  - a read or write is atomic per aligned 64-byte line and never beyond; the lines of a read are sampled in any order;
 *  - the lines of a write land in any order unless the fabric's knob says ascending; never rely on it;
 *  - atomics are atomic against each other on a node and against reads and writes of the word, not against CPU stores;
 *  - within one batch, verbs to one node take effect in posted order, but reads among themselves may be sampled in any;
 *  - nothing is ordered between nodes or contexts unless the first was waited for;
 *  - a completed write is visible to later one-sided verbs; the node's own CPU may see it later;
 *  - on-chip memory is small, has no CPU access, and keeps order with DRAM of the same node;
 *  - remote bytes are never trusted: an implausible header is a torn or stale read, to be retried within a bound.
 */
#ifndef DM_TRANSPORT_DM_H
#define DM_TRANSPORT_DM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/prng.h"

struct dm_ctx;    /* a coroutine on a node */
struct dm_fabric; /* the nodes, their memory and what connects them */

enum {
    DM_MNS_MAX = 64,     /* memory nodes of a fabric */
    DM_LINE = 64,        /* bytes that are read or written atomically when aligned */
    DM_BATCH_MAX = 512,  /* verbs in one batch */
    DM_CALL_MAX = 16384, /* bytes of a call's request or response */
    DM_RESERVED_BYTES =
        4096, /* [64, 4096) of every memory node's DRAM belong to the index: zero at start, never allocated */
};

/* ---- addresses ------------------------------------------------------------------------------------------------ */

/* node (8 bits) | space (8) | offset (48). Node, DRAM, offset 0 is null and is never allocated. Memory nodes are
 * numbered first (0 .. mns - 1), then index servers, then compute nodes. */
typedef struct dm_addr {
    uint64_t bits;
} dm_addr;

enum dm_space { DM_DRAM, DM_CHIP };

#define DM_NULL ((dm_addr){0})

static inline dm_addr dm_addr_make(unsigned node, enum dm_space space, uint64_t offset) {
    return (dm_addr){(uint64_t)node << 56 | (uint64_t)space << 48 | (offset & UINT64_C(0xffffffffffff))};
}
static inline unsigned dm_addr_node(dm_addr addr) {
    return (unsigned)(addr.bits >> 56);
}
static inline enum dm_space dm_addr_space(dm_addr addr) {
    return (enum dm_space)(addr.bits >> 48 & 0xff);
}
static inline uint64_t dm_addr_offset(dm_addr addr) {
    return addr.bits & UINT64_C(0xffffffffffff);
}
static inline dm_addr dm_addr_add(dm_addr addr, uint64_t bytes) {
    return (dm_addr){addr.bits + bytes};
}
static inline bool dm_addr_is_null(dm_addr addr) {
    return addr.bits == 0;
}
static inline bool dm_addr_equal(dm_addr a, dm_addr b) {
    return a.bits == b.bits;
}

/* True if [addr, addr + len) lies in memory that exists; use it before following a pointer read from remote memory. */
bool dm_addr_valid(struct dm_ctx *ctx, dm_addr addr, uint32_t len);

/* ---- one-sided verbs -------------------------------------------------------------------------------------------- */

/* Posting adds a verb to the context's current batch. Destinations (dst, old) must stay valid until the batch has been
 * waited for; sources are taken when the batch is committed. Atomics need 8-byte aligned addresses. Errors (a bad
 * address, too many verbs) are reported by the commit, and then nothing of the batch was sent. `old` may be NULL. */
void dm_post_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len);
void dm_post_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len);

/* *addr = desired if *addr == expect; *old = what was there. Equal to expect means it was swapped. */
void dm_post_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired, uint64_t *old);

/* *addr += add modulo 2^64. */
void dm_post_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t *old);

/* If (*addr & compare_mask) == (compare & compare_mask): *addr = (*addr & ~swap_mask) | (swap & swap_mask). */
struct dm_mask {
    uint64_t compare, compare_mask, swap, swap_mask;
};
void dm_post_masked_cas(struct dm_ctx *ctx, dm_addr addr, struct dm_mask mask, uint64_t *old);

/* Field-wise add: a set bit in `boundary` is the top bit of a field; carries do not leave fields. */
void dm_post_masked_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t boundary, uint64_t *old);

/* Sends the current batch with one doorbell a destination and waits for all of it: one round trip. [waits]
 * Returns 0; DM_ERR_STOPPED when the run ends; DM_ERR_PEER, DM_ERR_IO when a verb failed (what landed is unknown);
 * DM_ERR_ADDRESS, DM_ERR_BATCH_FULL as above. An empty batch returns 0 at once and counts nothing. */
int dm_commit(struct dm_ctx *ctx);

/* Sends the current batch unsignalled and does not wait; only writes, and atomics whose old value is not wanted. Keeps
 * order with later batches of this context to the same node. A failure surfaces at this context's next commit. May wait
 * for room. [waits] */
int dm_commit_async(struct dm_ctx *ctx);

/* A batch of one, waited for. The current batch must be empty. [waits] */
int dm_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len);
int dm_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len);
int dm_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired, uint64_t *old);
int dm_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t *old);
int dm_masked_cas(struct dm_ctx *ctx, dm_addr addr, struct dm_mask mask, uint64_t *old);
int dm_masked_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t boundary, uint64_t *old);

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* A handler is a context on the called node: it charges that node's cores and may use verbs and calls to other nodes.
 * *resp_len holds the room in resp and is set to what was written. The return value goes to the caller as it is. */
typedef int (*dm_handler)(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                          uint32_t *resp_len);

/* Methods 0 .. 255; 0 .. 15 belong to the transport (chunk allocation). Set-up phase only. DM_EXISTS if taken. */
enum { DM_METHOD_FIRST = 16, DM_METHOD_MAX = 255 };
int dm_register(struct dm_fabric *fabric, unsigned node, unsigned method, dm_handler handler, void *arg);

/* Runs the method on the node and returns the handler's value, or a transport failure (< 0). The current batch must be
 * empty. *resp_len: room in, bytes out; resp may be NULL with resp_len NULL. [waits] */
int dm_call(struct dm_ctx *ctx, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
            uint32_t *resp_len);

/* Starts a context that works in the background on any node (retraining, log application). It ends by itself or when a
 * wait returns DM_ERR_STOPPED; the run does not wait for it. Returns 0 or DM_ERR_NO_MEMORY. */
int dm_spawn_background(struct dm_fabric *fabric, unsigned node, void (*entry)(struct dm_ctx *ctx, void *arg),
                        void *arg);

/* A memory node or index server may fail and come back, with its DRAM zeroed and the contexts that it ran gone: their
 * waits have returned DM_ERR_STOPPED. `entry` then runs there as a background context, each time, before any call is
 * served again. One a node; set-up phase only. DM_EXISTS if there is one. */
int dm_on_restart(struct dm_fabric *fabric, unsigned node, void (*entry)(struct dm_ctx *ctx, void *arg), void *arg);

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* What allocated bytes are for; results report bytes by kind. */
#define DM_MEM_KINDS(X)                                                                                                \
    X(DM_MEM_LEAF, "leaves")                                                                                           \
    X(DM_MEM_INNER, "inner")                                                                                           \
    X(DM_MEM_MODEL, "models")                                                                                          \
    X(DM_MEM_VALUE, "values")                                                                                          \
    X(DM_MEM_LOCK, "locks")                                                                                            \
    X(DM_MEM_META, "meta")
enum dm_mem {
#define X(name, text) name,
    DM_MEM_KINDS(X)
#undef X
        DM_MEM_KIND_COUNT,
};

enum { DM_ANY_NODE = 0xffff };

/* Cuts `bytes` (aligned to `align`, a power of two up to 4096) of DRAM of a memory node or index server from this
 * thread's chunk; a call fetches a new chunk when it is used up. DM_ANY_NODE spreads over all memory nodes. The bytes
 * are zero unless they were freed before. Returns 0 or DM_ERR_NO_MEMORY when the node is full (the caller's structure
 * stays as it was). The current batch must be empty. [waits] */
int dm_alloc(struct dm_ctx *ctx, unsigned node, uint32_t bytes, uint32_t align, enum dm_mem kind, dm_addr *addr);

/* Gives bytes back to this thread's free list for their size. The caller knows that nobody can still reach them. */
void dm_free(struct dm_ctx *ctx, dm_addr addr, uint32_t bytes, enum dm_mem kind);

/* On-chip memory of a memory node, in set-up only; DM_ERR_UNSUPPORTED if the device has none, DM_ERR_NO_MEMORY if it is
 * used up. */
int dm_chip_alloc(struct dm_ctx *ctx, unsigned node, uint32_t bytes, dm_addr *addr);

/* Local memory that the device can read and write, zeroed, owned by the context and released with it. Verbs are
 * cheapest from such memory (other memory is copied through a bounce buffer). NULL when out of memory. Not in the
 * measured phase. */
void *dm_local_alloc(struct dm_ctx *ctx, uint32_t bytes);

/* CPU access of a handler or background context to its own node's DRAM: atomic per aligned 8 bytes, no more. Not on
 * compute nodes. */
void dm_cpu_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len);
void dm_cpu_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len);

/* Atomic against other CPU accesses of the node, not against RDMA atomics. Returns the old value. */
uint64_t dm_cpu_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired);

/* ---- node-local synchronisation --------------------------------------------------------------------------------- */

/* For state shared by contexts of one node. Waiting yields to other contexts; nothing here costs a verb. Embed and
 * zero-initialise; no fini. Lock and wait return 0, or DM_ERR_STOPPED when the run ends (then the lock is not held).
 * Waiters are served in order. */
struct dm_waitlist {
    struct dm_ctx *head, *tail;
};
struct dm_mutex {
    _Atomic uint32_t guard; /* short internal spin lock, never held across a switch */
    bool held;
    struct dm_waitlist waiters;
};
int dm_mutex_lock(struct dm_ctx *ctx, struct dm_mutex *mutex); /* [waits] */
bool dm_mutex_trylock(struct dm_ctx *ctx, struct dm_mutex *mutex);
void dm_mutex_unlock(struct dm_ctx *ctx, struct dm_mutex *mutex);

/* Condition: wait releases the mutex, waits for a wake, takes the mutex again. Wakes are made with the mutex held. */
struct dm_cond {
    struct dm_waitlist waiters;
};
int dm_cond_wait(struct dm_ctx *ctx, struct dm_cond *cond, struct dm_mutex *mutex); /* [waits] */
void dm_cond_wake_one(struct dm_ctx *ctx, struct dm_cond *cond);
void dm_cond_wake_all(struct dm_ctx *ctx, struct dm_cond *cond);

/* ---- time, work, randomness ------------------------------------------------------------------------------------- */

/* CPU work in named units; a profile gives their cost. Costs virtual time in sim, nothing elsewhere. */
#define DM_WORKS(X)                                                                                                    \
    X(DM_WORK_NODE_PROBE, "node_probe")   /* find the place in one node of about 1 KB that is in local memory */       \
    X(DM_WORK_CACHE_PROBE, "cache_probe") /* one step in a local index structure: hash, skip list or radix step */     \
    X(DM_WORK_KEY_COMPARE, "key_compare") /* compare one key in a line already fetched */                              \
    X(DM_WORK_HASH, "hash")               /* hash one key */                                                           \
    X(DM_WORK_MODEL_EVAL, "model_eval")   /* evaluate one linear model */                                              \
    X(DM_WORK_LINE_COPY, "line_copy")     /* copy or check 64 bytes */                                                 \
    X(DM_WORK_DRAM_ACCESS, "dram_access") /* one dependent random access of a memory node's CPU */                     \
    X(DM_WORK_TRAIN_KEY, "train_key")     /* one key of a training pass */
enum dm_work {
#define X(name, text) name,
    DM_WORKS(X)
#undef X
        DM_WORK_COUNT,
};
void dm_charge(struct dm_ctx *ctx, enum dm_work work, uint32_t units);

/* ns since the run began: virtual in sim, monotonic clock elsewhere. */
uint64_t dm_now(struct dm_ctx *ctx);

/* Lets other contexts run for at least ns. 0, or DM_ERR_STOPPED. [waits] */
int dm_sleep(struct dm_ctx *ctx, uint64_t ns);

/* This context's own seeded stream. */
struct dm_prng *dm_random(struct dm_ctx *ctx);

/* ---- retries and accounting ------------------------------------------------------------------------------------- */

#define DM_RETRIES(X)                                                                                                  \
    X(DM_RETRY_TORN, "torn_read")     /* versions or checks did not match */                                           \
    X(DM_RETRY_LOCK, "lock_conflict") /* somebody else holds the lock */                                               \
    X(DM_RETRY_STALE, "stale_cache")  /* a cached pointer or model was out of date */                                  \
    X(DM_RETRY_MOVED, "moved_right")  /* the key moved to a sibling */                                                 \
    X(DM_RETRY_CAS, "cas_conflict")   /* lost a race on a word that is not a lock */
enum dm_retry {
#define X(name, text) name,
    DM_RETRIES(X)
#undef X
        DM_RETRY_COUNT,
};

/* To be called once a retry, with a counter that starts at 0 for the operation: counts it by cause and returns 0,
 * DM_ERR_RETRY_LIMIT when the fabric's bound on retries of one operation is reached, or DM_ERR_STOPPED. Every loop on
 * remote state ends by it. Does not wait: the verb that follows is the back-off. */
int dm_retry(struct dm_ctx *ctx, enum dm_retry cause, uint32_t *attempts);

/* Round trips, verbs, bytes, doorbells and calls are counted below the contract; no index counts them. */

/* What an operation spends its time on. An operation begins and ends in `other`. */
#define DM_PHASES(X)                                                                                                   \
    X(DM_PHASE_OTHER, "other")                                                                                         \
    X(DM_PHASE_INDEX, "index") /* finding the place, and changing the structure */                                     \
    X(DM_PHASE_VALUE, "value") /* reading or writing values kept apart from the index */                               \
    X(DM_PHASE_LOCK, "lock")   /* taking a remote lock */                                                              \
    X(DM_PHASE_CALL, "call")   /* a call, without what of it is told apart */                                          \
    X(DM_PHASE_QUEUE, "queue") /* waiting for a server's worker */                                                     \
    X(DM_PHASE_LOG, "log")     /* writing and shipping a log */
enum dm_phase {
#define X(name, text) name,
    DM_PHASES(X)
#undef X
        DM_PHASE_COUNT,
};

/* The time of this context counts to `phase` from now on. Returns the phase before, to go back to. */
enum dm_phase dm_phase(struct dm_ctx *ctx, enum dm_phase phase);

/* ns of what counted to `from` were spent on `to`: for times that a server tells in its response. */
void dm_phase_move(struct dm_ctx *ctx, enum dm_phase from, enum dm_phase to, uint64_t ns);

/* ---- where am I ------------------------------------------------------------------------------------------------- */

struct dm_topology {
    unsigned mns, servers, cns; /* memory nodes, index servers, compute nodes */
    unsigned mn_cores, server_cores;
    unsigned clients; /* in all, spread evenly over CNs */
    unsigned clients_per_thread;
    uint64_t mn_bytes;   /* DRAM a memory node, and an index server */
    uint32_t chip_bytes; /* on-chip memory to use a memory node, at most; the device may have less, see dm_topology */
};
const struct dm_topology *dm_topology(struct dm_ctx *ctx);
struct dm_fabric *dm_fabric_of(struct dm_ctx *ctx);
unsigned dm_node(struct dm_ctx *ctx);   /* this context's node */
unsigned dm_thread(struct dm_ctx *ctx); /* its thread, numbered from 0 on each node */
unsigned dm_thread_count(struct dm_fabric *fabric, unsigned node);
unsigned dm_ctx_id(struct dm_ctx *ctx); /* unique in the fabric, never 0: fits lock words */
static inline unsigned dm_first_server(const struct dm_topology *topology) {
    return topology->mns;
}
static inline unsigned dm_first_cn(const struct dm_topology *topology) {
    return topology->mns + topology->servers;
}

#endif
