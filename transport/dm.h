/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport contract: how an index moves bytes. It is the only transport header that an index includes, and the
 * same index code runs over it in virtual time (sim), in shared memory (local) and on RDMA devices (verbs).
 *
 * A context is one coroutine on one node. Index code is written straight-line: a call returns when its data is there,
 * and other contexts of the same thread run meanwhile. Functions that may wait are marked [waits].
 *
 * What the network guarantees. An index must not assume more; sim breaks those that do:
 *  - A read or write is atomic for each aligned 64-byte line and never beyond. A read samples its lines in any order.
 *  - The lines of a write land in any order, unless the fabric is configured to land them ascending.
 *  - Atomics are atomic against each other on a node and against reads and writes of their word, but not against stores
 *    by the node's CPU.
 *  - Verbs of one batch to one node take effect in posted order, except that reads may be sampled in any order among
 *    themselves.
 *  - Nothing is ordered between nodes or between contexts, unless the first operation was waited for.
 *  - A completed write is visible to later one-sided verbs. The node's own CPU may see it later.
 *  - On-chip memory is small, cannot be accessed by the CPU, and keeps order with the DRAM of its node.
 *  - Bytes read from remote memory may be torn or stale. An implausible header is a reason to retry, within a bound.
 */
#ifndef DM_TRANSPORT_DM_H
#define DM_TRANSPORT_DM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/prng.h"

struct dm_ctx;    /* a coroutine on a node */
struct dm_fabric; /* nodes, their memory, and the network between them */

enum {
    DM_MNS_MAX = 64,          /* memory nodes of a fabric */
    DM_LINE = 64,             /* bytes that are read or written atomically when aligned */
    DM_BATCH_MAX = 512,       /* verbs of a batch */
    DM_CALL_MAX = 16384,      /* bytes of a call's request or response */
    DM_RESERVED_BYTES = 4096, /* bytes [64, 4096) of each memory node's DRAM are the index's: zero at first, never
                                 allocated */
};

/* ---- addresses ------------------------------------------------------------------------------------------------ */

/* An address in the memory of a node: node (8 bits) | space (8 bits) | offset (48 bits). The address of all zero bits
 * is null and is never allocated. Memory nodes have the numbers 0 .. mns - 1; index servers follow, then compute nodes.
 */
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

/* True if all of [addr, addr + len) exists. To be asked before following a pointer that was read from remote memory. */
bool dm_addr_valid(struct dm_ctx *ctx, dm_addr addr, uint32_t len);

/* ---- one-sided verbs -------------------------------------------------------------------------------------------- */

/* The dm_post functions add a verb to the context's current batch, which a commit sends.
 *  - Destinations (`dst`, `old`) must stay valid until the batch has been waited for; sources until the commit returns.
 *  - Atomics need an address aligned to 8 bytes. `old` receives the previous value of the word; it may be NULL.
 *  - A wrong address or a full batch is reported by the commit, which then sends nothing. */

/* Reads len bytes at `src` into `dst`. */
void dm_post_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len);

/* Writes len bytes from `src` to `dst`. */
void dm_post_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len);

/* Compare-and-swap: *addr = desired if *addr == expect. It succeeded if *old == expect. */
void dm_post_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired, uint64_t *old);

/* Fetch-and-add: *addr += add, modulo 2^64. */
void dm_post_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t *old);

/* Masked compare-and-swap: if (*addr & compare_mask) == (compare & compare_mask), then
 * *addr = (*addr & ~swap_mask) | (swap & swap_mask). */
struct dm_mask {
    uint64_t compare, compare_mask, swap, swap_mask;
};
void dm_post_masked_cas(struct dm_ctx *ctx, dm_addr addr, struct dm_mask mask, uint64_t *old);

/* Masked fetch-and-add: adds field by field. Each set bit of `boundary` is the top bit of a field; no carry leaves it.
 */
void dm_post_masked_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t boundary, uint64_t *old);

/* Sends the current batch, with one doorbell for each destination, and waits for all of it: one round trip. An empty
 * batch returns 0 at once and is not counted. [waits]
 * Returns 0; DM_ERR_STOPPED when the run ends; DM_ERR_PEER or DM_ERR_IO when a verb failed, and then it is unknown
 * which verbs took effect; DM_ERR_ADDRESS or DM_ERR_BATCH_FULL, and then nothing was sent. */
int dm_commit(struct dm_ctx *ctx);

/* Sends the current batch and does not wait for it. The batch may hold writes, and atomics with `old` NULL. It keeps
 * its order before later batches of this context to the same node. A failure is returned by this context's next commit.
 * It waits only while the send queue is full. [waits] */
int dm_commit_async(struct dm_ctx *ctx);

/* One verb, posted and committed: one round trip. The current batch must be empty. Returns as dm_commit does. [waits]
 */
int dm_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len);
int dm_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len);
int dm_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired, uint64_t *old);
int dm_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t *old);
int dm_masked_cas(struct dm_ctx *ctx, dm_addr addr, struct dm_mask mask, uint64_t *old);
int dm_masked_faa(struct dm_ctx *ctx, dm_addr addr, uint64_t add, uint64_t boundary, uint64_t *old);

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* A handler runs as a context on the called node: it charges that node's cores and may use verbs and call other nodes.
 * *resp_len is the capacity of `resp` at first and the bytes written to it in the end. The caller gets the return value
 * unchanged. `req` and `resp` are valid until the handler returns. */
typedef int (*dm_handler)(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                          uint32_t *resp_len);

/* Registers the handler of a method of a node. An index may use methods DM_METHOD_FIRST .. DM_METHOD_MAX; those below
 * are the transport's. Set-up phase only. Returns 0, DM_EXISTS if the method has a handler, or DM_ERR_INVALID. */
enum { DM_METHOD_FIRST = 16, DM_METHOD_MAX = 255 };
int dm_register(struct dm_fabric *fabric, unsigned node, unsigned method, dm_handler handler, void *arg);

/* Runs the method on the node: one round trip. *resp_len is the capacity of `resp` at first and its bytes in the end;
 * both may be NULL. The current batch must be empty. Returns the handler's value, or a failure (< 0): DM_ERR_ADDRESS if
 * there is no such method, and those of dm_commit. [waits] */
int dm_call(struct dm_ctx *ctx, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
            uint32_t *resp_len);

/* Starts a context that works in the background on any node (retraining, log application). The run does not wait for
 * it; it ends when `entry` returns, which it must do when a wait returns DM_ERR_STOPPED. Returns 0, DM_ERR_NO_MEMORY or
 * DM_ERR_INVALID. */
int dm_spawn_background(struct dm_fabric *fabric, unsigned node, void (*entry)(struct dm_ctx *ctx, void *arg),
                        void *arg);

/* Gives the node's calls threads of their own: the first `count` serve them, and background contexts that are spawned
 * from now on run on the others. Otherwise all threads do both. A transport in real time may let any thread serve
 * calls. Set-up phase only. Returns 0, or DM_ERR_INVALID if no thread would be left for either. */
int dm_separate_calls(struct dm_fabric *fabric, unsigned node, unsigned count);

/* A memory node or index server may fail and come back. Its DRAM is zero then, and all contexts that it ran have ended:
 * their waits returned DM_ERR_STOPPED. Each time it comes back, `entry` runs on it as a background context, before any
 * call is served. One for each node; set-up phase only. Returns 0, DM_EXISTS if the node has one, or DM_ERR_INVALID. */
int dm_on_restart(struct dm_fabric *fabric, unsigned node, void (*entry)(struct dm_ctx *ctx, void *arg), void *arg);

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* What allocated bytes are used for; results report bytes by kind. */
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

/* Allocates `bytes` of DRAM of a memory node or index server, aligned to `align`, a power of two up to 4096. They come
 * from this thread's chunk of the node; when that is used up a call fetches another, or none on the node itself.
 * DM_ANY_NODE spreads allocations over all memory nodes. The bytes are zero unless they were freed before. The current
 * batch must be empty. [waits]
 * Returns 0; DM_ERR_NO_MEMORY when the node is full; or a failure of the call. */
int dm_alloc(struct dm_ctx *ctx, unsigned node, uint32_t bytes, uint32_t align, enum dm_mem kind, dm_addr *addr);

/* Returns bytes to this thread's free list of their size. No client may still be able to reach them. */
void dm_free(struct dm_ctx *ctx, dm_addr addr, uint32_t bytes, enum dm_mem kind);

/* Allocates on-chip memory of a memory node. Set-up phase only. Returns 0, DM_ERR_UNSUPPORTED if the device has none,
 * or DM_ERR_NO_MEMORY if it is used up. */
int dm_chip_alloc(struct dm_ctx *ctx, unsigned node, uint32_t bytes, dm_addr *addr);

/* Allocates local memory that the device can read and write: zeroed, and released with the context. Verbs are cheapest
 * from and to such memory; other memory is copied through a bounce buffer. Not in the measured phase. Returns NULL when
 * out of memory. */
void *dm_local_alloc(struct dm_ctx *ctx, uint32_t bytes);

/* Access of a handler or background context to the DRAM of its own node by the CPU: atomic for each aligned 8 bytes and
 * not beyond. Not on compute nodes. */
void dm_cpu_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len);
void dm_cpu_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len);

/* Compare-and-swap by the CPU: atomic against other CPU accesses of the node, not against RDMA atomics. Returns the
 * previous value. */
uint64_t dm_cpu_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired);

/* ---- node-local synchronisation --------------------------------------------------------------------------------- */

/* A mutex and a condition for state that contexts of one node share. A waiting context yields to others; nothing here
 * costs a verb. Zero-initialise; nothing is to be released. Waiters are served in order. Lock and wait return 0, or
 * DM_ERR_STOPPED when the run ends, and then the mutex is not held. */
struct dm_waitlist {
    struct dm_ctx *head, *tail;
};
struct dm_mutex {
    _Atomic uint32_t guard; /* internal spin lock, never held across a switch of contexts */
    bool held;
    struct dm_waitlist waiters;
};
int dm_mutex_lock(struct dm_ctx *ctx, struct dm_mutex *mutex); /* [waits] */
bool dm_mutex_trylock(struct dm_ctx *ctx, struct dm_mutex *mutex);
void dm_mutex_unlock(struct dm_ctx *ctx, struct dm_mutex *mutex);

/* Waiting releases the mutex, waits for a wake, and locks the mutex again. A waker must hold the mutex. */
struct dm_cond {
    struct dm_waitlist waiters;
};
int dm_cond_wait(struct dm_ctx *ctx, struct dm_cond *cond, struct dm_mutex *mutex); /* [waits] */
void dm_cond_wake_one(struct dm_ctx *ctx, struct dm_cond *cond);
void dm_cond_wake_all(struct dm_ctx *ctx, struct dm_cond *cond);

/* ---- time, work, randomness ------------------------------------------------------------------------------------- */

/* CPU work in named units, whose cost the profile states. */
#define DM_WORKS(X)                                                                                                    \
    X(DM_WORK_NODE_PROBE, "node_probe") /* search one node of about 1 KB that the processor has at hand */             \
    X(DM_WORK_CACHE_PROBE,                                                                                             \
      "cache_probe") /* one step in a local structure, without its accesses: hash, compare, copy */                    \
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

/* Charges work to the context's core: virtual time in sim, nothing on other transports. In sim a background context may
 * yield to others here, as a core's time is shared. */
void dm_charge(struct dm_ctx *ctx, enum dm_work work, uint32_t units);

/* Charges `count` dependent accesses, each to a random line of a structure of `bytes` in local memory, beside the work
 * that dm_charge counts. The cost follows a curve of the profile, from the second-level cache to DRAM: so `bytes` is
 * what the compute node really holds of that structure and the accesses really reach.
 *  - Lines that are requested together (a node that is prefetched) are one access.
 *  - Accesses that reach only a part, such as one level of a tree, have the bytes of that part, and of whatever else is
 *    accessed between two accesses to the same line of it: a bucket of a hash table is evicted by the copies to which
 *    the buckets lead.
 *  - Of a binary search in an array, each step halves the bytes; below 32 KiB a step is a DM_WORK_KEY_COMPARE.
 *  - A step in memory that was just written or received is work of dm_charge alone. */
void dm_charge_access(struct dm_ctx *ctx, uint32_t count, uint64_t bytes);

/* Nanoseconds since the measured phase began: virtual time in sim, the monotonic clock elsewhere. */
uint64_t dm_now(struct dm_ctx *ctx);

/* Lets other contexts run for at least `ns` nanoseconds. Returns 0 or DM_ERR_STOPPED. [waits] */
int dm_sleep(struct dm_ctx *ctx, uint64_t ns);

/* The context's own random stream, derived from the run's seed. */
struct dm_prng *dm_random(struct dm_ctx *ctx);

/* ---- retries and accounting ------------------------------------------------------------------------------------- */

#define DM_RETRIES(X)                                                                                                  \
    X(DM_RETRY_TORN, "torn_read")     /* versions or checksums did not match */                                        \
    X(DM_RETRY_LOCK, "lock_conflict") /* another client holds the lock */                                              \
    X(DM_RETRY_STALE, "stale_cache")  /* a cached pointer or model was out of date */                                  \
    X(DM_RETRY_MOVED, "moved_right")  /* the key moved to a sibling */                                                 \
    X(DM_RETRY_CAS, "cas_conflict")   /* lost a race on a word that is not a lock */
enum dm_retry {
#define X(name, text) name,
    DM_RETRIES(X)
#undef X
        DM_RETRY_COUNT,
};

/* Counts one retry by its cause. Every loop on remote state calls it, with a counter that starts at 0 for the
 * operation; the loop of a server that may wait without a limit, with a new counter in each turn. It does not wait: the
 * verb that follows takes a round trip. Returns 0; DM_ERR_RETRY_LIMIT when the operation has used up the fabric's limit
 * of retries; or DM_ERR_STOPPED. */
int dm_retry(struct dm_ctx *ctx, enum dm_retry cause, uint32_t *attempts);

/* The transport counts round trips, verbs, bytes, doorbells and calls; an index does not. */

/* What an operation spends its time on. An operation begins and ends in `other`. */
#define DM_PHASES(X)                                                                                                   \
    X(DM_PHASE_OTHER, "other")                                                                                         \
    X(DM_PHASE_INDEX, "index") /* finding the key's entry, and changing the structure */                               \
    X(DM_PHASE_VALUE, "value") /* reading or writing values kept apart from the index */                               \
    X(DM_PHASE_LOCK, "lock")   /* taking a remote lock */                                                              \
    X(DM_PHASE_CALL, "call")   /* a call, except what counts as another phase */                                       \
    X(DM_PHASE_QUEUE, "queue") /* waiting for a worker of a server */                                                  \
    X(DM_PHASE_LOG, "log")     /* writing and shipping a log */
enum dm_phase {
#define X(name, text) name,
    DM_PHASES(X)
#undef X
        DM_PHASE_COUNT,
};

/* From now on this context's time counts as `phase`. Returns the phase before, for the caller to restore. */
enum dm_phase dm_phase(struct dm_ctx *ctx, enum dm_phase phase);

/* Moves `ns` of the time that counted as `from` to `to`: for times that a server reports in its response. */
void dm_phase_move(struct dm_ctx *ctx, enum dm_phase from, enum dm_phase to, uint64_t ns);

/* ---- topology --------------------------------------------------------------------------------------------------- */

struct dm_topology {
    unsigned mns, servers, cns;      /* memory nodes, index servers, compute nodes */
    unsigned mn_cores, server_cores; /* of each memory node, of each index server */
    unsigned clients;                /* in all; spread evenly over the compute nodes */
    unsigned clients_per_thread;
    uint64_t mn_bytes;   /* DRAM of each memory node and index server */
    uint32_t chip_bytes; /* on-chip memory of each memory node: at most as configured, less if the device has less */
};

/* The topology of the context's fabric, with chip_bytes as the device has it. Valid as long as the fabric. */
const struct dm_topology *dm_topology(struct dm_ctx *ctx);
struct dm_fabric *dm_fabric_of(struct dm_ctx *ctx);

/* The context's node, and its thread: threads of each node are numbered from 0. */
unsigned dm_node(struct dm_ctx *ctx);
unsigned dm_thread(struct dm_ctx *ctx);
unsigned dm_thread_count(struct dm_fabric *fabric, unsigned node);

/* True if all contexts of the fabric are coroutines of one thread of the host, as in virtual time: between two waits a
 * context need not order its memory accesses for others. */
bool dm_is_one_thread(const struct dm_fabric *fabric);

/* A number that no other context of the fabric has; never 0. It fits into lock words. */
unsigned dm_ctx_id(struct dm_ctx *ctx);
static inline unsigned dm_first_server(const struct dm_topology *topology) {
    return topology->mns;
}
static inline unsigned dm_first_cn(const struct dm_topology *topology) {
    return topology->mns + topology->servers;
}

#endif
