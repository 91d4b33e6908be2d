/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a verb if a client posted it within a traced operation, or if a handler or background context posted it between
 * the first and the last traced operation. The traced operations of a client are consecutive, so two times bound them.
 */
#include "harness/run/verb_tracer.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "check/verb_log.h"
#include "harness/run/verb_trace_file.h"

/* Of one client, used on its thread alone. */
struct client {
    uint64_t first_ns, last_ns; /* all its traced operations are between them */
    bool is_begun, is_open;
};

/* The client of a context: a hash table of fixed size, by the context's id. */
struct slot {
    _Atomic unsigned ctx; /* 0: free */
    unsigned client;
};

struct hx_tracer {
    struct hx_trace_op *ops;
    size_t op_max;
    _Atomic size_t begun, ended;
    unsigned slot_count;
    struct client *clients;
    struct slot *slots;
    struct ck_verb_log verbs;
};

struct hx_tracer *hx_tracer_new(uint64_t ops, unsigned clients) {
    struct hx_tracer *tracer = calloc(1, sizeof(*tracer));
    if (!tracer) {
        return NULL;
    }
    tracer->op_max = (size_t)ops;
    tracer->slot_count = 2 * clients + 1;
    tracer->ops = calloc(tracer->op_max, sizeof(*tracer->ops));
    tracer->clients = calloc(clients, sizeof(*tracer->clients));
    tracer->slots = calloc(tracer->slot_count, sizeof(*tracer->slots));
    if (!tracer->ops || !tracer->clients || !tracer->slots) {
        hx_tracer_free(tracer);
        return NULL;
    }
    return tracer;
}

void hx_tracer_free(struct hx_tracer *tracer) {
    if (tracer) {
        free(tracer->ops);
        free(tracer->clients);
        free(tracer->slots);
        ck_verb_log_fini(&tracer->verbs);
        free(tracer);
    }
}

void hx_tracer_client(struct hx_tracer *tracer, struct dm_ctx *ctx, unsigned client) {
    unsigned id = dm_ctx_id(ctx), at = id % tracer->slot_count, is_free = 0;
    while (!atomic_compare_exchange_strong(&tracer->slots[at].ctx, &is_free, id)) {
        at = (at + 1) % tracer->slot_count;
        is_free = 0;
    }
    tracer->slots[at].client = client;
}

static unsigned client_of(struct hx_tracer *tracer, unsigned ctx) {
    for (unsigned at = ctx % tracer->slot_count;; at = (at + 1) % tracer->slot_count) {
        unsigned found = atomic_load(&tracer->slots[at].ctx);
        if (found == ctx) {
            return tracer->slots[at].client;
        }
        if (found == 0) {
            return CK_NO_CLIENT;
        }
    }
}

/* Unsignalled verbs may end after their operation, so the time at which they were posted decides. */
static void verb_see(void *arg, const struct dm_trace_event *event) {
    struct hx_tracer *tracer = arg;
    size_t begun = atomic_load(&tracer->begun), ended = atomic_load(&tracer->ended);
    bool is_over = begun >= tracer->op_max && ended >= tracer->op_max;
    unsigned number = client_of(tracer, event->ctx);
    bool is_kept = begun > 0 && !is_over;
    if (number != CK_NO_CLIENT) {
        const struct client *client = &tracer->clients[number];
        is_kept = client->is_begun && event->posted_ns >= client->first_ns &&
                  (client->is_open || event->posted_ns <= client->last_ns);
    }
    if (is_kept) {
        ck_verb_log_add(&tracer->verbs, event, number);
    }
}

void hx_tracer_watch(struct hx_tracer *tracer, struct dm_fabric *fabric) {
    dm_fabric_trace(fabric, verb_see, tracer);
}

size_t hx_tracer_begin(struct hx_tracer *tracer, struct dm_ctx *ctx, unsigned client, const struct wl_op *op) {
    if (atomic_load(&tracer->begun) >= tracer->op_max) {
        return HX_NOT_TRACED;
    }
    size_t number = atomic_fetch_add(&tracer->begun, 1);
    if (number >= tracer->op_max) {
        return HX_NOT_TRACED;
    }
    struct client *own = &tracer->clients[client];
    uint64_t now = dm_now(ctx);
    tracer->ops[number] = (struct hx_trace_op){
        .client = client, .node = dm_node(ctx), .name = wl_op_names[op->kind], .key = op->key, .begin_ns = now};
    own->first_ns = own->is_begun ? own->first_ns : now;
    own->is_begun = own->is_open = true;
    return number;
}

void hx_tracer_end(struct hx_tracer *tracer, struct dm_ctx *ctx, size_t number, int outcome) {
    if (number == HX_NOT_TRACED) {
        return;
    }
    struct hx_trace_op *op = &tracer->ops[number];
    struct client *own = &tracer->clients[op->client];
    op->end_ns = own->last_ns = dm_now(ctx);
    op->outcome = outcome;
    op->is_ended = true;
    own->is_open = false;
    atomic_fetch_add(&tracer->ended, 1);
}

int hx_tracer_store(struct hx_tracer *tracer, const struct dm_topology *topology, const char *path,
                    struct dm_err *err) {
    size_t begun = atomic_load(&tracer->begun);
    const struct hx_trace trace = {.topology = topology,
                                   .ops = tracer->ops,
                                   .op_count = begun < tracer->op_max ? begun : tracer->op_max,
                                   .verbs = tracer->verbs.items,
                                   .verb_count = tracer->verbs.count};
    if (tracer->verbs.lost > 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the trace's verbs; lower --trace-ops");
    }
    return hx_trace_store(&trace, path, err);
}
