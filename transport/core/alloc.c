/* SPDX-License-Identifier: Apache-2.0
 *
 * Two-stage allocation of remote memory: a call fetches a chunk of a memory node, from which the thread allocates; the
 * node's own contexts take one without a call.
 * Freed pieces go to the thread's list for their size and are used again first. In the set-up phase consecutive pieces
 * go round all memory nodes, so that a bulk load is spread evenly; later a thread stays on one node until its chunk is
 * used up.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/core/core.h"

static struct dm_node_state *node_of(struct dm_ctx *ctx, dm_addr addr) {
    return &ctx->fabric->nodes[dm_addr_node(addr)];
}

struct chunk_request {
    uint64_t wanted;  /* a whole chunk */
    uint64_t minimum; /* what the requested piece needs */
};

int dm_chunk_handler(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len) {
    (void)arg;
    struct chunk_request request;
    struct dm_node_state *node = &ctx->fabric->nodes[ctx->node];
    if (req_len != sizeof(request) || *resp_len < sizeof(struct dm_chunk)) {
        return DM_ERR_INVALID;
    }
    memcpy(&request, req, sizeof(request));
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
    uint64_t offset = atomic_load(&node->allocated);
    struct dm_chunk chunk;
    do {
        uint64_t left = node->bytes - offset;
        if (left < request.minimum) {
            return DM_ERR_NO_MEMORY;
        }
        chunk = (struct dm_chunk){offset, left < request.wanted ? left : request.wanted};
    } while (!atomic_compare_exchange_weak(&node->allocated, &offset, chunk.offset + chunk.left));
    atomic_fetch_add(&node->memory_chunks, chunk.left);
    bool is_filled = !ctx->fabric->measuring || node->fills_chunks || request.minimum >= DM_LARGE_PAGE;
    if (ctx->ops->expect_bulk && is_filled) {
        ctx->ops->expect_bulk(ctx->fabric, ctx->node, chunk.offset, chunk.left);
    }
    memcpy(resp, &chunk, sizeof(chunk));
    *resp_len = sizeof(chunk);
    return 0;
}

static struct dm_free_class *free_class(struct dm_thread *thread, uint32_t bytes, bool make) {
    for (unsigned i = 0; i < DM_FREE_CLASSES; i++) {
        struct dm_free_class *class = &thread->free[i];
        if (class->bytes == bytes) {
            return class;
        }
        if (class->bytes == 0) {
            class->bytes = make ? bytes : 0;
            return make ? class : NULL;
        }
    }
    return NULL;
}

static bool reuse_freed(struct dm_thread *thread, unsigned node, uint32_t bytes, uint32_t align, dm_addr *addr) {
    struct dm_free_class *class = free_class(thread, bytes, false);
    for (uint32_t i = class ? class->count : 0; i-- > 0;) {
        dm_addr freed = class->addrs[i];
        if ((node == DM_ANY_NODE || dm_addr_node(freed) == node) && dm_addr_offset(freed) % align == 0) {
            class->addrs[i] = class->addrs[--class->count];
            *addr = freed;
            return true;
        }
    }
    return false;
}

/* Cuts a piece from the thread's chunk of the node; false if it does not fit. */
static bool cut(struct dm_chunk *chunk, unsigned node, uint32_t bytes, uint32_t align, dm_addr *addr) {
    uint64_t start = (chunk->offset + align - 1) & ~(uint64_t)(align - 1);
    uint64_t used = start - chunk->offset + bytes;
    if (used > chunk->left) {
        return false;
    }
    chunk->offset += used;
    chunk->left -= used;
    *addr = dm_addr_make(node, DM_DRAM, start);
    return true;
}

static int fetch_chunk(struct dm_ctx *ctx, unsigned node, uint32_t bytes, uint32_t align) {
    struct chunk_request request = {.wanted = ctx->fabric->config.chunk_bytes, .minimum = (uint64_t)bytes + align};
    request.wanted = request.wanted < request.minimum ? request.minimum : request.wanted;
    struct dm_chunk chunk;
    uint32_t len = sizeof(chunk);
    if (ctx->node == node) { /* no call: if all handlers of a node allocated, none would be left to serve it */
        DM_TRY(dm_chunk_handler(ctx, NULL, &request, sizeof(request), &chunk, &len));
    } else {
        DM_TRY(dm_call(ctx, node, DM_METHOD_CHUNK, &request, sizeof(request), &chunk, &len));
    }
    ctx->thread->chunks[node] = chunk;
    const struct dm_processes *processes = ctx->fabric->processes;
    if (processes && !processes->hosted[node]) {
        atomic_fetch_add(&ctx->fabric->nodes[node].memory_chunks,
                         chunk.left); /* the handler counted in its own process */
    }
    return 0;
}

static int alloc_on(struct dm_ctx *ctx, unsigned node, uint32_t bytes, uint32_t align, dm_addr *addr) {
    struct dm_chunk *chunk = &ctx->thread->chunks[node];
    if (cut(chunk, node, bytes, align, addr)) {
        return 0;
    }
    DM_TRY(fetch_chunk(ctx, node, bytes, align));
    return cut(chunk, node, bytes, align, addr) ? 0 : DM_ERR_NO_MEMORY;
}

/* Any node: this thread's current one, then the others in turn. */
static int alloc_anywhere(struct dm_ctx *ctx, uint32_t bytes, uint32_t align, dm_addr *addr) {
    struct dm_fabric *fabric = ctx->fabric;
    unsigned mns = fabric->topology.mns;
    bool setup = !fabric->measuring;
    unsigned node = (setup ? atomic_fetch_add(&fabric->setup_node, 1) : ctx->thread->alloc_node) % mns;
    if (!setup && cut(&ctx->thread->chunks[node], node, bytes, align, addr)) {
        return 0;
    }
    int rc = DM_ERR_NO_MEMORY;
    for (unsigned tries = 0; tries < mns && rc == DM_ERR_NO_MEMORY; tries++) {
        /* In a run the next node in turn, so that threads spread over the nodes as their chunks run out. */
        node = setup && tries == 0 ? node : (node + 1) % mns;
        rc = alloc_on(ctx, node, bytes, align, addr);
    }
    if (!setup) {
        ctx->thread->alloc_node = node;
    }
    return rc;
}

int dm_alloc(struct dm_ctx *ctx, unsigned node, uint32_t bytes, uint32_t align, enum dm_mem kind, dm_addr *addr) {
    *addr = DM_NULL;
    bool any = node == DM_ANY_NODE;
    if (bytes == 0 || align == 0 || align > 4096 || (align & (align - 1)) ||
        (!any && node >= dm_first_cn(&ctx->fabric->topology))) {
        return DM_ERR_INVALID;
    }
    DM_TRY(dm_mutex_lock(ctx, &ctx->thread->alloc_mutex));
    int rc = 0;
    if (reuse_freed(ctx->thread, node, bytes, align, addr)) {
        atomic_fetch_sub(&node_of(ctx, *addr)->memory_freed, bytes);
    } else {
        rc = any ? alloc_anywhere(ctx, bytes, align, addr) : alloc_on(ctx, node, bytes, align, addr);
    }
    if (rc == 0) {
        atomic_fetch_add(&node_of(ctx, *addr)->memory_bytes[kind], bytes);
    }
    dm_mutex_unlock(ctx, &ctx->thread->alloc_mutex);
    return rc;
}

void dm_free(struct dm_ctx *ctx, dm_addr addr, uint32_t bytes, enum dm_mem kind) {
    atomic_fetch_sub(&node_of(ctx, addr)->memory_bytes[kind], bytes);
    atomic_fetch_add(&node_of(ctx, addr)->memory_freed, bytes);
    struct dm_free_class *class = free_class(ctx->thread, bytes, true);
    if (class && class->count == class->capacity) {
        uint32_t capacity = class->capacity ? class->capacity * 2 : 64;
        dm_addr *addrs = realloc(class->addrs, capacity * sizeof(*addrs));
        if (addrs) {
            class->addrs = addrs;
            class->capacity = capacity;
        }
    }
    /* Out of local memory or of classes: the bytes stay counted as freed and are not reused. */
    if (class && class->count < class->capacity) {
        class->addrs[class->count++] = addr;
    }
}

int dm_chip_alloc(struct dm_ctx *ctx, unsigned node, uint32_t bytes, dm_addr *addr) {
    struct dm_fabric *fabric = ctx->fabric;
    *addr = DM_NULL;
    if (node >= fabric->topology.mns || bytes == 0) {
        return DM_ERR_INVALID;
    }
    if (!(ctx->ops->info.caps & DM_CAP_CHIP_MEMORY) || fabric->topology.chip_bytes == 0) {
        return DM_ERR_UNSUPPORTED;
    }
    struct dm_node_state *state = &fabric->nodes[node];
    uint32_t taken = atomic_load(&state->chip_allocated), start;
    do {
        start = (taken + DM_LINE - 1) & ~(uint32_t)(DM_LINE - 1);
        if (bytes > fabric->topology.chip_bytes || start > fabric->topology.chip_bytes - bytes) {
            return DM_ERR_NO_MEMORY;
        }
    } while (!atomic_compare_exchange_weak(&state->chip_allocated, &taken, start + bytes));
    *addr = dm_addr_make(node, DM_CHIP, start);
    return 0;
}

void dm_memory_use(struct dm_fabric *fabric, struct dm_memory_use *use) {
    *use = (struct dm_memory_use){0};
    for (unsigned node = 0; node < fabric->node_count; node++) {
        struct dm_node_state *state = &fabric->nodes[node];
        for (unsigned kind = 0; kind < DM_MEM_KIND_COUNT; kind++) {
            use->bytes[kind] += atomic_load(&state->memory_bytes[kind]);
        }
        use->freed += atomic_load(&state->memory_freed);
        use->chunk_bytes += atomic_load(&state->memory_chunks);
        use->chip_bytes += state->chip_allocated;
    }
}

void dm_memory_leave(struct dm_fabric *fabric, uint64_t bytes) {
    for (unsigned node = 0; node < fabric->topology.mns; node++) {
        struct dm_node_state *state = &fabric->nodes[node];
        if (state->bytes - atomic_load(&state->allocated) > bytes) {
            atomic_store(&state->allocated, (state->bytes - bytes) / DM_LINE * DM_LINE);
        }
    }
}

static void thread_forget(struct dm_thread *thread, unsigned node) {
    thread->chunks[node] = (struct dm_chunk){0};
    for (unsigned i = 0; i < DM_FREE_CLASSES; i++) {
        struct dm_free_class *class = &thread->free[i];
        uint32_t kept = 0;
        for (uint32_t at = 0; at < class->count; at++) {
            if (dm_addr_node(class->addrs[at]) != node) {
                class->addrs[kept++] = class->addrs[at];
            }
        }
        class->count = kept;
    }
}

void dm_node_forget(struct dm_fabric *fabric, unsigned node) {
    struct dm_node_state *state = &fabric->nodes[node];
    atomic_store(&state->allocated, DM_RESERVED_BYTES);
    atomic_store(&state->memory_freed, 0);
    atomic_store(&state->memory_chunks, 0);
    for (unsigned kind = 0; kind < DM_MEM_KIND_COUNT; kind++) {
        atomic_store(&state->memory_bytes[kind], 0);
    }
    for (unsigned other = 0; other < fabric->node_count; other++) {
        for (unsigned i = 0; i < fabric->nodes[other].thread_count; i++) {
            thread_forget(fabric->nodes[other].threads[i], node);
        }
    }
}
