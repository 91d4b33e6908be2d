/* SPDX-License-Identifier: Apache-2.0
 *
 * The structures of the transport `local`: threads and their contexts are those of transport/realtime. Calls go through
 * a queue of the node that any of the node's threads serves.
 *
 *   calls.c     requests
 *   memory.c    what verbs and CPU accesses do to bytes
 *   transport.c open, close, options, the table
 */
#ifndef DM_TRANSPORT_LOCAL_LOCAL_H
#define DM_TRANSPORT_LOCAL_LOCAL_H

#include "transport/realtime/realtime.h"

enum { LOCAL_STRIPES = 1 << 16 }; /* line locks of a fabric */

struct local_options {
    uint64_t yield_every;
    uint64_t chip_bytes;
    bool pin;
};

struct local_call {
    struct rt_job job;
    struct local_call *next;
    struct rt_ctx *caller;
    int rc;
    _Atomic bool done; /* set last: from then on the caller may return and free this structure */
};

struct local_memory {
    struct dm_mapping bytes;
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
    struct rt rt;
    const struct local_options *options;
    struct local_node *nodes;
    _Atomic uint32_t *stripes; /* sequence numbers of lines; odd while a line changes */
};

static inline struct local *local_of(const struct dm_fabric *fabric) {
    return fabric->impl;
}
static inline struct local_node *local_node_of(const struct rt_thread *thread) {
    return &local_of(thread->base.fabric)->nodes[thread->base.node];
}
static inline struct local_memory *local_memory_at(const struct local *local, dm_addr addr) {
    struct local_node *node = &local->nodes[dm_addr_node(addr)];
    return dm_addr_space(addr) == DM_DRAM ? &node->dram : &node->chip;
}

/* memory.c. Executes the context's batch in order; true if a compare-and-swap found something else. */
bool local_memory_execute(struct local *local, const struct dm_ctx *ctx);
void local_cpu_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len);
void local_cpu_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len);
uint64_t local_cpu_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired);

/* calls.c */
int local_call(struct dm_ctx *ctx, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
               uint32_t *resp_len);

/* Is a request waiting that this thread has a handler context for? */
bool local_can_serve(struct rt_thread *thread);

/* Takes one request of the node, so that its other threads get theirs, and makes a handler context ready for it.
 */
void local_serve(struct rt_thread *thread);

#endif
