/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts: making and releasing them, and those functions of dm.h that check their arguments, count, and hand the rest
 * to the context's transport.
 */
#include <sched.h>
#include <stdlib.h>

#include "common/aligned.h"
#include "transport/core/core.h"

/* ---- making and releasing --------------------------------------------------------------------------------------- */

static void contexts_lock(struct dm_fabric *fabric) {
    while (atomic_exchange_explicit(&fabric->guard, true, memory_order_acquire)) {
        sched_yield();
    }
}

static void contexts_unlock(struct dm_fabric *fabric) {
    atomic_store_explicit(&fabric->guard, false, memory_order_release);
}

/* Small numbers that no other process gives. */
static uint32_t context_number(struct dm_fabric *fabric) {
    uint32_t number = atomic_fetch_add(&fabric->next_ctx_id, 1);
    const struct dm_processes *processes = fabric->processes;
    return processes ? (number - 1) * processes->count + processes->process + 1 : number;
}

struct dm_ctx *dm_ctx_new(struct dm_fabric *fabric, unsigned node, unsigned thread,
                          void (*entry)(struct dm_ctx *ctx, void *arg), void *arg, bool background) {
    struct dm_ctx *ctx = dm_aligned_new(1, fabric->ops->ctx_bytes);
    if (!ctx) {
        return NULL;
    }
    ctx->fabric = fabric;
    ctx->ops = fabric->ops;
    ctx->thread = fabric->nodes[node].threads[thread];
    ctx->node = node;
    ctx->id = context_number(fabric);
    ctx->account = &ctx->nowhere;
    ctx->prng = dm_prng_stream(fabric->config.seed, "context", ctx->id);
    ctx->entry = entry;
    ctx->arg = arg;
    ctx->background = background;
    contexts_lock(fabric);
    ctx->all_next = fabric->contexts;
    fabric->contexts = ctx;
    contexts_unlock(fabric);
    return ctx;
}

void dm_ctx_free(struct dm_ctx *ctx) {
    dm_coro_fini(&ctx->coro);
    dm_local_free(ctx->locals);
    free(ctx->batch);
    free(ctx->cut);
    free(ctx);
}

/* ---- what a context asks of its transport -------------------------------------------------------------------------
 */

int dm_call(struct dm_ctx *ctx, unsigned node, unsigned method, const void *req, uint32_t req_len, void *resp,
            uint32_t *resp_len) {
    uint32_t none = 0;
    uint32_t *len = resp_len ? resp_len : &none;
    if (node >= ctx->fabric->node_count || method > DM_METHOD_MAX ||
        (dm_is_hosted(ctx->fabric, node) && !ctx->fabric->nodes[node].methods[method].handler)) {
        return DM_ERR_ADDRESS;
    }
    if (req_len > DM_CALL_MAX || *len > DM_CALL_MAX || ctx->batch_count != 0) {
        return DM_ERR_INVALID;
    }
    if (dm_is_over(ctx)) {
        return DM_ERR_STOPPED;
    }
    ctx->account->round_trips++;
    ctx->account->doorbells++;
    ctx->account->verbs[DM_VERB_CALL]++;
    ctx->thread->verbs++;
    ctx->account->bytes_written += req_len;
    bool is_traced = dm_is_traced(ctx->fabric);
    if (dm_unlikely(is_traced)) {
        dm_trace_begin(ctx);
    }
    dm_code_leave(ctx);
    int rc = ctx->ops->call(ctx, node, method, req, req_len, resp, len);
    dm_code_return(ctx);
    if (dm_unlikely(is_traced)) {
        dm_trace_call(ctx, node, method, req_len, rc);
    }
    ctx->account->bytes_read += rc >= 0 ? *len : 0;
    return rc;
}

bool dm_range_valid(const struct dm_fabric *fabric, dm_addr addr, uint32_t len) {
    unsigned node = dm_addr_node(addr);
    if (node >= dm_first_cn(&fabric->topology) || len == 0) {
        return false;
    }
    uint64_t space = addr.bits >> 48 & 0xff;
    uint64_t chip = node < fabric->topology.mns ? fabric->topology.chip_bytes : 0;
    uint64_t bytes = space == DM_DRAM ? fabric->nodes[node].bytes : space == DM_CHIP ? chip : 0;
    uint64_t offset = dm_addr_offset(addr);
    return offset < bytes && len <= bytes - offset && addr.bits != 0;
}

bool dm_addr_valid(struct dm_ctx *ctx, dm_addr addr, uint32_t len) {
    return dm_range_valid(ctx->fabric, addr, len);
}

bool dm_stopping(struct dm_ctx *ctx) {
    return dm_is_over(ctx);
}

void dm_charge(struct dm_ctx *ctx, enum dm_work work, uint32_t units) {
    if (dm_unlikely(ctx->fabric->meter != NULL)) {
        dm_meter_charge(ctx, work, units);
    }
    ctx->ops->charge(ctx, work, units);
}

void dm_charge_access(struct dm_ctx *ctx, uint32_t count, uint64_t bytes) {
    if (dm_unlikely(ctx->fabric->meter != NULL)) {
        dm_meter_charge_access(ctx, count, bytes);
    }
    ctx->ops->charge_access(ctx, count, bytes);
}

uint64_t dm_now(struct dm_ctx *ctx) {
    return ctx->ops->now(ctx);
}

int dm_sleep(struct dm_ctx *ctx, uint64_t ns) {
    dm_code_leave(ctx);
    int rc = dm_is_over(ctx) ? DM_ERR_STOPPED : ctx->ops->sleep(ctx, ns);
    dm_code_return(ctx);
    return rc;
}

void dm_cpu_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len) {
    ctx->ops->cpu_read(ctx, src, dst, len);
}

void dm_cpu_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len) {
    ctx->ops->cpu_write(ctx, dst, src, len);
}

uint64_t dm_cpu_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired) {
    return ctx->ops->cpu_cas(ctx, addr, expect, desired);
}

struct dm_prng *dm_random(struct dm_ctx *ctx) {
    return &ctx->prng;
}

const struct dm_topology *dm_topology(struct dm_ctx *ctx) {
    return &ctx->fabric->topology;
}

struct dm_fabric *dm_fabric_of(struct dm_ctx *ctx) {
    return ctx->fabric;
}

unsigned dm_node(struct dm_ctx *ctx) {
    return ctx->node;
}

unsigned dm_thread(struct dm_ctx *ctx) {
    return ctx->thread->index;
}

unsigned dm_ctx_id(struct dm_ctx *ctx) {
    return ctx->id;
}
