/* SPDX-License-Identifier: Apache-2.0
 *
 * A transport that does everything at once on an array of bytes, for tests of the core alone. A hook lets a test act
 * as another client between two commits, and the test decides how waits end.
 */
#ifndef DM_TESTS_FAKE_TRANSPORT_H
#define DM_TESTS_FAKE_TRANSPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/core/core.h"

enum { FAKE_MNS = 2, FAKE_NODES = 3, FAKE_BYTES = 64 * 1024, FAKE_CONTEXTS = 4 };

struct fake {
    struct dm_fabric fabric;
    struct dm_transport_ops ops;
    struct dm_node_state nodes[FAKE_NODES];
    struct dm_thread threads[FAKE_NODES], *thread_lists[FAKE_NODES];
    struct dm_chunk chunks[FAKE_NODES][FAKE_MNS];
    struct dm_ctx contexts[FAKE_CONTEXTS]; /* all on the compute node */
    unsigned char memory[FAKE_MNS][FAKE_BYTES];
    unsigned commits, calls;
    int commit_result;                 /* < 0: the next commit fails with it */
    void (*before)(struct fake *fake); /* called before a commit takes effect */
    int (*parked)(struct fake *fake, struct dm_ctx *ctx);
    struct dm_ctx *woken[FAKE_CONTEXTS];
    unsigned woken_count;
    uint64_t accessed_bytes; /* of the last access that was charged */
};

static inline struct fake *fake_of(const struct dm_ctx *ctx) {
    return ctx->fabric->impl;
}

static inline int fake_commit(struct dm_ctx *ctx, bool wait) {
    (void)wait;
    struct fake *fake = fake_of(ctx);
    fake->commits++;
    if (fake->before) {
        fake->before(fake);
    }
    if (fake->commit_result < 0) {
        return fake->commit_result;
    }
    for (uint32_t i = 0; i < ctx->batch_count; i++) {
        const struct dm_verb *verb = &ctx->batch[i];
        unsigned char *at = &fake->memory[dm_addr_node(verb->addr)][dm_addr_offset(verb->addr)];
        if (verb->kind == DM_VERB_READ) {
            memcpy(verb->dst, at, verb->len);
        } else if (verb->kind == DM_VERB_WRITE) {
            memcpy(at, verb->src, verb->len);
        } else {
            uint64_t found, stored;
            bool swapped;
            memcpy(&found, at, sizeof(found));
            stored = dm_atomic_apply(verb, found, &swapped);
            memcpy(at, &stored, sizeof(stored));
            if (verb->dst) {
                memcpy(verb->dst, &found, sizeof(found));
            }
        }
    }
    return 0;
}

static inline int fake_call(struct dm_ctx *ctx, unsigned node, unsigned method, const void *req, uint32_t req_len,
                            void *resp, uint32_t *resp_len) {
    struct fake *fake = fake_of(ctx);
    struct dm_ctx handler = {.fabric = ctx->fabric, .ops = ctx->ops, .node = node, .thread = &fake->threads[node]};
    const struct dm_method *called = &fake->nodes[node].methods[method];
    fake->calls++;
    return called->handler(&handler, called->arg, req, req_len, resp, resp_len);
}

static inline void fake_charge(struct dm_ctx *ctx, enum dm_work work, uint32_t units) {
    (void)ctx;
    (void)work;
    (void)units;
}

static inline void fake_charge_access(struct dm_ctx *ctx, uint32_t count, uint64_t bytes) {
    (void)count;
    fake_of(ctx)->accessed_bytes = bytes;
}

static inline int fake_park(struct dm_ctx *ctx) {
    struct fake *fake = fake_of(ctx);
    assert_non_null(fake->parked);
    return fake->parked(fake, ctx);
}

static inline void fake_wake(struct dm_ctx *waker, struct dm_ctx *target) {
    struct fake *fake = fake_of(waker);
    assert_true(fake->woken_count < FAKE_CONTEXTS);
    fake->woken[fake->woken_count++] = target;
}

/* Two memory nodes and a compute node with one thread each. */
static inline struct fake *fake_new(unsigned caps) {
    struct fake *fake = calloc(1, sizeof(*fake));
    assert_non_null(fake);
    fake->ops = (struct dm_transport_ops){.info = {.name = "fake", .caps = caps},
                                          .commit = fake_commit,
                                          .call = fake_call,
                                          .charge = fake_charge,
                                          .charge_access = fake_charge_access,
                                          .park = fake_park,
                                          .wake = fake_wake};
    struct dm_fabric *fabric = &fake->fabric;
    fabric->ops = &fake->ops;
    fabric->impl = fake;
    fabric->nodes = fake->nodes;
    fabric->node_count = FAKE_NODES;
    fabric->config.chunk_bytes = 4096;
    fabric->config.retry_limit = 10;
    fabric->topology = (struct dm_topology){.mns = FAKE_MNS, .cns = 1, .mn_bytes = FAKE_BYTES};
    for (unsigned node = 0; node < FAKE_NODES; node++) {
        fake->threads[node] = (struct dm_thread){.fabric = fabric, .node = node, .chunks = fake->chunks[node]};
        fake->thread_lists[node] = &fake->threads[node];
        fake->nodes[node].threads = &fake->thread_lists[node];
        fake->nodes[node].thread_count = 1;
        fake->nodes[node].bytes = node < FAKE_MNS ? FAKE_BYTES : 0;
        fake->nodes[node].allocated = DM_RESERVED_BYTES;
        fake->nodes[node].methods[DM_METHOD_CHUNK].handler = dm_chunk_handler;
    }
    for (unsigned i = 0; i < FAKE_CONTEXTS; i++) {
        struct dm_ctx *ctx = &fake->contexts[i];
        *ctx = (struct dm_ctx){
            .fabric = fabric, .ops = &fake->ops, .node = FAKE_MNS, .id = i + 1, .thread = &fake->threads[FAKE_MNS]};
        ctx->account = &ctx->nowhere;
    }
    return fake;
}

static inline void fake_free(struct fake *fake) {
    for (unsigned i = 0; i < FAKE_CONTEXTS; i++) {
        free(fake->contexts[i].batch);
        free(fake->contexts[i].cut);
    }
    for (unsigned node = 0; node < FAKE_NODES; node++) {
        for (unsigned class = 0; class < DM_FREE_CLASSES; class ++) {
            free(fake->threads[node].free[class].addrs);
        }
    }
    free(fake);
}

#endif
