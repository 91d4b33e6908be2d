/* SPDX-License-Identifier: Apache-2.0
 *
 * A loaded fabric for fewer clients than it was opened with, so that measurements with several numbers of clients can
 * begin with copies of one load.
 */
#include "transport/core/core.h"

static int check(const struct dm_fabric *fabric, const struct dm_topology *wanted, struct dm_err *err) {
    if (!fabric->ops->resized || fabric->measuring) {
        return dm_fail(err, DM_ERR_UNSUPPORTED, "transport %s has another number of clients only when it is opened",
                       fabric->ops->info.name);
    }
    for (unsigned node = 0; node < fabric->node_count; node++) {
        const struct dm_node_state *state = &fabric->nodes[node];
        unsigned count = dm_threads_of(wanted, node);
        if (count > state->opened_count) {
            return dm_fail(err, DM_ERR_INVALID, "%u threads on node %u, which was opened with %u", count, node,
                           state->opened_count);
        }
        for (unsigned i = count; i < state->opened_count; i++) {
            if (state->threads[i]->verbs > 0) {
                return dm_fail(err, DM_ERR_INVALID, "thread %u of node %u has worked: it cannot be left out", i, node);
            }
        }
        if (node < dm_first_cn(wanted) && state->allocated > wanted->mn_bytes) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "%llu bytes of node %u are in use, more than its new memory of %llu",
                           (unsigned long long)state->allocated, node, (unsigned long long)wanted->mn_bytes);
        }
    }
    return 0;
}

/* The node's background contexts take turns at its threads in the order in which they were made; the list has the last
 * one first. */
static void assign_background(struct dm_fabric *fabric, unsigned node) {
    struct dm_node_state *state = &fabric->nodes[node];
    unsigned turn = state->background_next;
    for (struct dm_ctx *ctx = fabric->contexts; ctx; ctx = ctx->all_next) {
        if (ctx->node == node && ctx->background) {
            turn--;
            ctx->thread = state->threads[state->call_threads + turn % (state->thread_count - state->call_threads)];
        }
    }
}

int dm_fabric_resize(struct dm_fabric *fabric, unsigned clients, unsigned clients_per_thread, uint64_t mn_bytes,
                     struct dm_err *err) {
    struct dm_topology wanted = fabric->topology;
    wanted.clients = clients;
    wanted.clients_per_thread = clients_per_thread;
    wanted.mn_bytes = mn_bytes;
    DM_TRY(check(fabric, &wanted, err));
    fabric->topology = wanted;
    for (unsigned node = 0; node < fabric->node_count; node++) {
        struct dm_node_state *state = &fabric->nodes[node];
        if (node < dm_first_cn(&wanted)) {
            state->bytes = mn_bytes;
        } else {
            state->thread_count = dm_threads_of(&wanted, node);
            assign_background(fabric, node);
        }
    }
    return fabric->ops->resized(fabric, err);
}
