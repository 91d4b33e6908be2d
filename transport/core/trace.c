/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace events of what contexts do. All of it runs only while a trace is taken, so nothing here is on the measured
 * path.
 */
#include <string.h>

#include "transport/core/core.h"

const char *const dm_trace_names[DM_TRACE_KIND_COUNT] = {
#define X(name, text) text,
    DM_VERBS(X)
#undef X
        "wait",
    "stop",
};

void dm_fabric_trace(struct dm_fabric *fabric, dm_trace_sink sink, void *arg) {
    fabric->trace_arg = arg;
    fabric->trace = sink;
}

static struct dm_trace_event event_of(const struct dm_ctx *ctx, unsigned kind) {
    return (struct dm_trace_event){
        .ctx = ctx->id, .node = ctx->node, .thread = ctx->thread->index, .kind = kind, .target = ctx->node};
}

void dm_trace_begin(struct dm_ctx *ctx) {
    ctx->traced = event_of(ctx, 0);
    ctx->traced.batch = atomic_fetch_add(&ctx->fabric->trace_batches, 1) + 1;
    ctx->traced.posted_ns = ctx->ops->now(ctx);
}

void dm_trace_found(struct dm_trace_event *event, const struct dm_verb *verb, uint64_t found) {
    (void)dm_atomic_apply(verb, found, &event->is_swapped);
    event->has_found = true;
    event->found = found;
}

void dm_trace_batch(struct dm_ctx *ctx, bool is_waited, int outcome) {
    struct dm_trace_event event = ctx->traced;
    event.is_waited = is_waited;
    event.outcome = outcome;
    event.done_ns = ctx->ops->now(ctx);
    for (uint32_t i = 0; i < ctx->batch_count; i++) {
        const struct dm_verb *verb = &ctx->batch[i];
        bool is_atomic = verb->kind != DM_VERB_READ && verb->kind != DM_VERB_WRITE;
        event.kind = verb->kind;
        event.addr = verb->addr;
        event.target = dm_addr_node(verb->addr);
        event.len = verb->len;
        event.op = is_atomic ? verb->op : (struct dm_mask){0};
        event.has_found = event.is_swapped = false;
        if (is_atomic && is_waited && outcome == 0 && verb->dst) {
            uint64_t found;
            memcpy(&found, verb->dst, sizeof(found));
            dm_trace_found(&event, verb, found);
        }
        ctx->fabric->trace(ctx->fabric->trace_arg, &event);
    }
}

void dm_trace_call(struct dm_ctx *ctx, unsigned node, unsigned method, uint32_t req_len, int outcome) {
    struct dm_trace_event event = ctx->traced;
    event.kind = DM_VERB_CALL;
    event.target = node;
    event.method = method;
    event.len = req_len;
    event.is_waited = true;
    event.done_ns = ctx->ops->now(ctx);
    event.outcome = outcome;
    ctx->fabric->trace(ctx->fabric->trace_arg, &event);
}

void dm_trace_wait(struct dm_ctx *ctx, enum dm_trace_kind kind, uint64_t posted_ns, int outcome) {
    struct dm_trace_event event = event_of(ctx, kind);
    event.is_waited = true;
    event.posted_ns = posted_ns;
    event.done_ns = ctx->ops->now(ctx);
    event.outcome = outcome;
    ctx->fabric->trace(ctx->fabric->trace_arg, &event);
}
