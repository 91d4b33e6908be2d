/* SPDX-License-Identifier: Apache-2.0
 *
 * From a batch to work requests: those to one node are linked, posted with one doorbell, and the last of them is
 * signalled. Bytes outside registered memory go through a copy: the context's bounce buffer if the batch is waited for,
 * the connection's ring if not.
 *
 * While other contexts of the thread are ready to run, a batch that is waited for is held back: theirs may share its
 * doorbell. It is rung when no other context is ready, so that a lone context never waits, or when `gather` batches are
 * held.
 *
 * Order: a reliable connection executes in posted order, except that a send, write or atomic may overtake a read or an
 * atomic before it. Those get a fence if the same batch, or unsignalled work before it, has one.
 *
 * Software RoCE resends all outstanding requests whenever its timer fires, lost or not. A resent fenced verb waits for
 * all outstanding reads and atomics, including those behind it and itself: it never completes. So there (option
 * `order`) a batch is cut where it would take a fence, and each piece is waited for; reads and atomics are always
 * waited for, so that no verb ever needs a fence.
 *
 * Where packets are lost it does worse: what it resends behind a write may get a new sequence number, and is executed
 * twice. A compare-and-swap then finds its own value, and an unlock frees the lock of the next holder. With order=alone
 * a write, atomic or message is the only thing that is outstanding on its connection; only reads, which may be
 * repeated, are outstanding together.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/verbs.h"

enum { STAGE_ALIGN = 8 };

static inline bool is_atomic(const struct dm_verb *verb) {
    return verb->kind != DM_VERB_READ && verb->kind != DM_VERB_WRITE;
}

/* True if the verb needs a fence. *is_loose: an unfenced read or atomic is before it; updated for the next verb. */
static inline bool takes_fence(const struct dm_verb *verb, bool *is_loose) {
    bool fence = verb->kind != DM_VERB_READ && *is_loose;
    *is_loose = verb->kind != DM_VERB_WRITE || (*is_loose && !fence);
    return fence;
}

/* Bytes that have to be copied for the verb; 0: the device reads or writes them where they are. */
static uint32_t staged_bytes(const struct verbs *verbs, const struct verbs_conn *conn, const struct dm_verb *verb,
                             bool wait) {
    uint32_t key, rounded = (verb->len + STAGE_ALIGN - 1) & ~(uint32_t)(STAGE_ALIGN - 1);
    if (is_atomic(verb)) {
        return STAGE_ALIGN;
    }
    if (verb->kind == DM_VERB_WRITE) {
        bool is_inline = verb->len <= conn->inline_bytes;
        return is_inline || (wait && verbs_arena_key(verbs, conn->port, verb->src, verb->len, &key)) ? 0 : rounded;
    }
    return verbs_arena_key(verbs, conn->port, verb->dst, verb->len, &key) ? 0 : rounded;
}

/* ---- planning --------------------------------------------------------------------------------------------------- */

static void plan_clear(struct verbs_thread *thread) {
    for (unsigned i = 0; i < thread->touched_count; i++) {
        thread->chains[thread->touched[i]] = (struct verbs_chain){0};
    }
    thread->touched_count = 0;
}

static int chain_begin(struct verbs_thread *thread, unsigned node, struct verbs_chain *chain) {
    struct verbs_conn *conn = thread->conns ? thread->conns[node] : NULL;
    if (dm_unlikely(!conn)) {
        DM_TRY(verbs_connect(thread, node, &conn));
        chain = &thread->chains[node];
    }
    if (dm_unlikely(!chain || conn->failure < 0)) {
        return chain ? conn->failure : DM_ERR_IO;
    }
    chain->conn = conn;
    chain->is_loose = conn->loose_upto > conn->done;
    thread->touched[thread->touched_count++] = node;
    return 0;
}

/* Counts the verbs to each node and the bytes that have to be copied. */
static int plan(struct verbs_ctx *ctx, bool wait, uint64_t *staged) {
    struct verbs_thread *thread = verbs_thread_of(ctx);
    const struct verbs *verbs = verbs_of_thread(thread);
    const struct dm_ctx *base = &ctx->rt.base;
    *staged = 0;
    for (uint32_t i = ctx->first; i < ctx->end; i++) {
        unsigned node = dm_addr_node(base->batch[i].addr);
        if (!thread->chains || !thread->chains[node].conn) {
            DM_TRY(chain_begin(thread, node, thread->chains ? &thread->chains[node] : NULL));
        }
        struct verbs_chain *chain = &thread->chains[node];
        uint32_t bytes = staged_bytes(verbs, chain->conn, &base->batch[i], wait);
        chain->count++;
        chain->has_change = chain->has_change || base->batch[i].kind != DM_VERB_READ;
        chain->staged += bytes;
        *staged += bytes;
    }
    return 0;
}

/* A piece of the ring is contiguous, so up to one piece may be lost at the ring's end. */
static bool ring_has_space(const struct verbs_conn *conn, uint32_t bytes) {
    return conn->ring_taken - conn->ring_done + 2 * (uint64_t)bytes <= VERBS_RING;
}

/* The first connection of the plan on which it cannot be posted yet: without enough space in its send queue or ring, or
 * with other work. NULL: none. */
static struct verbs_conn *plan_blocked(struct verbs_ctx *ctx, bool wait) {
    const struct verbs_thread *thread = verbs_thread_of(ctx);
    for (unsigned i = 0; i < thread->touched_count; i++) {
        const struct verbs_chain *chain = &thread->chains[thread->touched[i]];
        if (verbs_is_beside(ctx, chain->conn, chain->has_change) || !verbs_has_space(chain->conn, chain->count) ||
            (!wait && !ring_has_space(chain->conn, chain->staged))) {
            return chain->conn;
        }
    }
    return NULL;
}

static int plan_memory(struct verbs_ctx *ctx, bool wait, uint64_t staged) {
    struct verbs_thread *thread = verbs_thread_of(ctx);
    struct verbs *verbs = verbs_of_thread(thread);
    if (wait && staged > ctx->bounce_bytes) {
        uint64_t bytes = ctx->bounce_bytes ? ctx->bounce_bytes : 256;
        while (bytes < staged) {
            bytes *= 2;
        }
        ctx->bounce = verbs_arena_alloc(verbs, bytes);
        ctx->bounce_bytes = ctx->bounce ? bytes : 0;
        return ctx->bounce ? 0 : DM_ERR_NO_MEMORY;
    }
    for (unsigned i = 0; !wait && i < thread->touched_count; i++) {
        struct verbs_conn *conn = thread->chains[thread->touched[i]].conn;
        if (!conn->ring) {
            conn->ring = verbs_arena_alloc(verbs, VERBS_RING);
        }
        if (!conn->ring) {
            return DM_ERR_NO_MEMORY;
        }
    }
    return 0;
}

/* Plans until there is space for the plan. Other contexts may plan while this one waits, so it plans again then. */
static int plan_with_space(struct verbs_ctx *ctx, bool *wait) {
    struct verbs_thread *thread = verbs_thread_of(ctx);
    for (;;) {
        uint64_t staged;
        DM_TRY(plan(ctx, *wait, &staged));
        if (!*wait && staged > VERBS_RING / 4) {
            *wait = true; /* large: it is waited for instead */
            plan_clear(thread);
            continue;
        }
        struct verbs_conn *blocked = plan_blocked(ctx, *wait);
        if (dm_likely(!blocked)) {
            return plan_memory(ctx, *wait, staged);
        }
        plan_clear(thread);
        verbs_wait_in(ctx, &blocked->space);
    }
}

/* ---- building --------------------------------------------------------------------------------------------------- */

static unsigned char *ring_take(struct verbs_conn *conn, uint32_t bytes) {
    uint64_t at = conn->ring_taken % VERBS_RING;
    if (at + bytes > VERBS_RING) {
        conn->ring_taken += VERBS_RING - at;
        at = 0;
    }
    conn->ring_taken += bytes;
    return conn->ring + at;
}

/* Where the device reads or writes the verb's bytes. */
static void fill_bytes(const struct verbs *verbs, struct verbs_conn *conn, const struct dm_verb *verb,
                       unsigned char *stage, struct ibv_send_wr *wr, struct ibv_sge *sge) {
    bool is_write = verb->kind == DM_VERB_WRITE;
    sge->length = verb->len;
    wr->sg_list = sge;
    wr->num_sge = 1;
    if (is_write && verb->len <= conn->inline_bytes) {
        wr->send_flags |= IBV_SEND_INLINE;
        sge->addr = (uintptr_t)verb->src;
        sge->lkey = 0;
        return;
    }
    const void *at = is_write ? verb->src : verb->dst;
    if (stage) {
        if (is_write) {
            memcpy(stage, verb->src, verb->len);
        }
        at = stage;
    }
    sge->addr = (uintptr_t)at;
    verbs_arena_key(verbs, conn->port, at, verb->len, &sge->lkey);
}

static void fill_target(const struct verbs *verbs, const struct dm_verb *verb, struct ibv_send_wr *wr) {
    const struct verbs_region *region = &verbs->regions[dm_addr_node(verb->addr)][dm_addr_space(verb->addr)];
    uint64_t at = region->base + dm_addr_offset(verb->addr);
    if (!is_atomic(verb)) {
        wr->opcode = verb->kind == DM_VERB_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        wr->wr.rdma.remote_addr = at;
        wr->wr.rdma.rkey = region->rkey;
        return;
    }
    bool is_cas = verb->kind == DM_VERB_CAS; /* of masked ones verbs_masked_post sees address and key alone */
    wr->opcode = is_cas ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr->wr.atomic.remote_addr = at;
    wr->wr.atomic.rkey = region->rkey;
    wr->wr.atomic.compare_add = is_cas ? verb->op.compare : verb->op.swap;
    wr->wr.atomic.swap = is_cas ? verb->op.swap : 0;
}

static enum verbs_verb verb_number(const struct dm_verb *verb) {
    switch (verb->kind) {
    case DM_VERB_READ:
        return VERBS_READ;
    case DM_VERB_WRITE:
        return VERBS_WRITE;
    case DM_VERB_CAS:
        return VERBS_CAS;
    case DM_VERB_MASKED_CAS:
        return VERBS_MASKED_CAS;
    case DM_VERB_MASKED_FAA:
        return VERBS_MASKED_FAA;
    default:
        return VERBS_FAA;
    }
}

/* The tag at the end of a chain. Unsignalled chains have one too: a failure is reported with it. */
static struct verbs_tag *chain_tag(struct verbs_ctx *ctx, struct verbs_conn *conn, bool wait) {
    struct verbs_tag *tag = wait ? &ctx->tags[conn->node] : &conn->async[conn->async_next % VERBS_ASYNC_TAGS];
    if (wait) {
        *tag = (struct verbs_tag){.kind = VERBS_BATCH, .conn = conn, .ctx = ctx};
    }
    return tag;
}

static void chain_add(struct verbs_chain *chain, struct ibv_send_wr *wr, const struct dm_verb *verb) {
    if (takes_fence(verb, &chain->is_loose)) {
        wr->send_flags |= IBV_SEND_FENCE;
        chain->conn->loose_upto = 0;
        chain->conn->thread->fences++;
    }
    *(chain->last ? &chain->last->next : &chain->first) = wr;
    chain->last = wr;
}

static void build(struct verbs_ctx *ctx, bool wait) {
    struct verbs_thread *thread = verbs_thread_of(ctx);
    const struct verbs *verbs = verbs_of_thread(thread);
    const struct dm_ctx *base = &ctx->rt.base;
    uint64_t at = 0;
    for (uint32_t i = ctx->first; i < ctx->end; i++) {
        const struct dm_verb *verb = &base->batch[i];
        struct verbs_chain *chain = &thread->chains[dm_addr_node(verb->addr)];
        struct ibv_send_wr *wr = &thread->wrs[thread->wrs_used + i - ctx->first];
        uint32_t bytes = staged_bytes(verbs, chain->conn, verb, wait);
        unsigned char *stage = bytes == 0 ? NULL : wait ? ctx->bounce + at : ring_take(chain->conn, bytes);
        if (!chain->tag) {
            chain->tag = chain_tag(ctx, chain->conn, wait);
        }
        at += bytes;
        *wr = (struct ibv_send_wr){.wr_id = (uintptr_t)chain->tag | verb_number(verb)};
        fill_bytes(verbs, chain->conn, verb, stage, wr, &thread->sges[thread->wrs_used + i - ctx->first]);
        fill_target(verbs, verb, wr);
        if (dm_unlikely(verb->kind == DM_VERB_MASKED_CAS || verb->kind == DM_VERB_MASKED_FAA)) {
            thread->masks[wr - thread->wrs] = verb->op;
        }
        chain_add(chain, wr, verb);
    }
    thread->wrs_used += ctx->end - ctx->first;
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

/* Unsignalled work is signalled from time to time, so that it stays bounded. */
static bool wants_signal(const struct verbs_conn *conn, uint32_t count) {
    return conn->unsignalled + count >= conn->depth / 4 || conn->ring_taken - conn->ring_signalled >= VERBS_RING / 4;
}

static void chain_hold(struct verbs_thread *thread, struct verbs_conn *conn, const struct verbs_chain *chain) {
    *(conn->held ? &conn->held_last->next : &conn->held) = chain->first;
    conn->held_last = chain->last;
    if (!conn->is_held) {
        conn->is_held = true;
        conn->held_next = thread->held;
        thread->held = conn;
    }
}

/* True if another context is about to run and may post too. Background contexts may take long, so they do not count. */
static bool may_hold(const struct verbs_thread *thread) {
    const struct rt_ctx *next = thread->rt.ready_head;
    return next && !next->base.background && thread->batches_held < verbs_of_thread(thread)->gather;
}

static void chain_send(struct verbs_ctx *ctx, struct verbs_chain *chain, bool wait) {
    struct verbs_conn *conn = chain->conn;
    if (wait || wants_signal(conn, chain->count)) {
        chain->last->send_flags |= IBV_SEND_SIGNALED;
        conn->async_next += !wait;
        ctx->waiting += wait;
        chain->tag->verb = (uint8_t)(chain->last->wr_id & VERBS_VERB_MASK);
        verbs_tag_push(conn, chain->tag, chain->count);
    } else {
        conn->posted += chain->count;
        conn->unsignalled += chain->count;
    }
    if (chain->has_change) {
        conn->alone_upto = conn->posted;
    }
    if (!wait) {
        ctx->async_nodes[conn->node / 64] |= UINT64_C(1) << conn->node % 64;
        conn->loose_upto = chain->is_loose ? conn->posted : conn->loose_upto;
    }
    chain_hold(conn->thread, conn, chain);
}

/* Copies what was read into the bounce buffer to its destinations. */
static void take_results(struct verbs_ctx *ctx) {
    const struct verbs_thread *thread = verbs_thread_of(ctx);
    const struct verbs *verbs = verbs_of_thread(thread);
    const struct dm_ctx *base = &ctx->rt.base;
    uint64_t at = 0;
    for (uint32_t i = ctx->first; i < ctx->end; i++) {
        const struct dm_verb *verb = &base->batch[i];
        uint32_t bytes = staged_bytes(verbs, thread->conns[dm_addr_node(verb->addr)], verb, true);
        if (bytes > 0 && verb->kind != DM_VERB_WRITE && verb->dst) {
            memcpy(verb->dst, ctx->bounce + at, verb->len);
        }
        at += bytes;
    }
}

/* Plans until the thread has work requests for the plan, too. When it rings for what it holds a connection may break,
 * so it plans again then. */
static int plan_with_requests(struct verbs_ctx *ctx, bool *wait) {
    struct verbs_thread *thread = verbs_thread_of(ctx);
    for (;;) {
        DM_TRY(plan_with_space(ctx, wait));
        if (dm_likely(thread->wrs_used + ctx->end - ctx->first <= VERBS_WRS)) {
            return 0;
        }
        plan_clear(thread);
        verbs_ring_doorbells(thread);
    }
}

/* Posts the verbs from `first` to `end`. */
static int piece_commit(struct verbs_ctx *ctx, bool wait) {
    struct verbs_thread *thread = verbs_thread_of(ctx);
    int rc = plan_with_requests(ctx, &wait);
    if (rc < 0) {
        plan_clear(thread);
        return rc;
    }
    build(ctx, wait);
    ctx->failure = 0;
    for (unsigned i = 0; i < thread->touched_count; i++) {
        chain_send(ctx, &thread->chains[thread->touched[i]], wait);
    }
    plan_clear(thread);
    thread->batches_held++;
    if (!wait || !may_hold(thread)) { /* what is not waited for may be written over as soon as this returns */
        verbs_ring_doorbells(thread);
    }
    while (ctx->waiting > 0) {
        rt_suspend(&ctx->rt, RT_AWAY);
    }
    if (wait && ctx->failure == 0) {
        take_results(ctx);
    }
    return wait ? ctx->failure : 0;
}

/* True if verb `at` cannot be in the piece that has begun: it would take a fence; with order=alone, it is not another
 * read of the same node. */
static bool begins_piece(const struct verbs_ctx *ctx, uint32_t at, bool *loose) {
    const struct dm_verb *first = &ctx->rt.base.batch[ctx->first], *verb = &ctx->rt.base.batch[at];
    if (verbs_of_thread(verbs_thread_of(ctx))->posts_alone) {
        bool is_alike = first->kind == DM_VERB_READ && verb->kind == DM_VERB_READ &&
                        dm_addr_node(first->addr) == dm_addr_node(verb->addr);
        return at > ctx->first && !is_alike;
    }
    return takes_fence(verb, &loose[dm_addr_node(verb->addr)]);
}

/* A piece at a time, each as long as it may be. */
static int commit_unfenced(struct verbs_ctx *ctx, bool wait) {
    const struct dm_ctx *base = &ctx->rt.base;
    wait = wait || verbs_of_thread(verbs_thread_of(ctx))->posts_alone;
    for (ctx->end = 0; ctx->end < base->batch_count;) {
        bool loose[VERBS_NODES] = {false};
        ctx->first = ctx->end;
        while (ctx->end < base->batch_count && !begins_piece(ctx, ctx->end, loose)) {
            wait = wait || base->batch[ctx->end].kind != DM_VERB_WRITE;
            ctx->end++;
        }
        DM_TRY(piece_commit(ctx, wait || ctx->end < base->batch_count));
    }
    return 0;
}

int verbs_commit(struct dm_ctx *base, bool wait) {
    struct verbs_ctx *ctx = (struct verbs_ctx *)base;
    struct verbs_thread *thread = verbs_thread_of(ctx);
    if (dm_unlikely(!ctx->tags)) {
        ctx->tags = calloc(base->fabric->node_count, sizeof(*ctx->tags));
        if (!ctx->tags) {
            return DM_ERR_NO_MEMORY;
        }
    }
    if (dm_unlikely(verbs_of_thread(thread)->waits_for_order)) {
        return commit_unfenced(ctx, wait);
    }
    ctx->first = 0;
    ctx->end = base->batch_count;
    return piece_commit(ctx, wait);
}
