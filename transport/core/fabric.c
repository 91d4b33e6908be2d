/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing a fabric with its nodes and threads; starting contexts on it; and what fabric.h asks of it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/aligned.h"
#include "transport/core/core.h"
#include "transport/core/profile.h"

/* ---- opening ---------------------------------------------------------------------------------------------------- */

enum { NODES_MAX = 250, CLIENTS_MAX = 1 << 20, PEERS_LOOK_NS = 10000000 };

static int check_topology(const struct dm_topology *topology, struct dm_err *err) {
    unsigned nodes = topology->mns + topology->servers + topology->cns;
    if (topology->mns < 1 || topology->mns > DM_MNS_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "%u memory nodes: must be 1 to %d", topology->mns, DM_MNS_MAX);
    }
    if (topology->cns < 1 || nodes > NODES_MAX) {
        return dm_fail(err, DM_ERR_INVALID, "%u nodes with %u compute nodes: 1 compute node at least, %d nodes at most",
                       nodes, topology->cns, NODES_MAX);
    }
    if (topology->mn_cores < 1 || (topology->servers && topology->server_cores < 1)) {
        return dm_fail(err, DM_ERR_INVALID, "memory nodes and index servers need at least 1 core each");
    }
    if (topology->clients < 1 || topology->clients > CLIENTS_MAX || topology->clients_per_thread < 1) {
        return dm_fail(err, DM_ERR_INVALID, "%u clients, %u a thread: must be 1 to %d, and at least 1 a thread",
                       topology->clients, topology->clients_per_thread, CLIENTS_MAX);
    }
    if (topology->mn_bytes < 2 * DM_RESERVED_BYTES || topology->mn_bytes >= UINT64_C(1) << 48) {
        return dm_fail(err, DM_ERR_INVALID, "%llu bytes a memory node: must be %d to 2^48",
                       (unsigned long long)topology->mn_bytes, 2 * DM_RESERVED_BYTES);
    }
    return 0;
}

unsigned dm_threads_of(const struct dm_topology *topology, unsigned node) {
    if (node < topology->mns) {
        return topology->mn_cores;
    }
    if (node < topology->mns + topology->servers) {
        return topology->server_cores;
    }
    unsigned on_cn = (topology->clients + topology->cns - 1) / topology->cns;
    return (on_cn + topology->clients_per_thread - 1) / topology->clients_per_thread;
}

static int make_threads(struct dm_fabric *fabric, unsigned node) {
    struct dm_node_state *state = &fabric->nodes[node];
    unsigned count = dm_threads_of(&fabric->topology, node);
    state->threads = calloc(count, sizeof(struct dm_thread *));
    if (!state->threads) {
        return DM_ERR_NO_MEMORY;
    }
    for (; state->thread_count < count; state->thread_count++) {
        struct dm_thread *thread = dm_aligned_new(1, fabric->ops->thread_bytes);
        if (!thread) {
            return DM_ERR_NO_MEMORY;
        }
        state->threads[state->opened_count++] = thread;
        thread->fabric = fabric;
        thread->node = node;
        thread->index = state->thread_count;
        thread->alloc_node = (node + thread->index) % fabric->topology.mns;
        thread->chunks = calloc((size_t)dm_first_cn(&fabric->topology) + 1, sizeof(*thread->chunks));
        if (!thread->chunks) {
            return DM_ERR_NO_MEMORY;
        }
    }
    return 0;
}

static int make_nodes(struct dm_fabric *fabric) {
    const struct dm_topology *topology = &fabric->topology;
    fabric->node_count = topology->mns + topology->servers + topology->cns;
    fabric->nodes = calloc(fabric->node_count, sizeof(*fabric->nodes));
    if (!fabric->nodes) {
        return DM_ERR_NO_MEMORY;
    }
    for (unsigned node = 0; node < fabric->node_count; node++) {
        struct dm_node_state *state = &fabric->nodes[node];
        if (node < dm_first_cn(topology)) {
            state->bytes = topology->mn_bytes;
            state->methods[DM_METHOD_CHUNK].handler = dm_chunk_handler;
        }
        atomic_init(&state->allocated, DM_RESERVED_BYTES);
        DM_TRY(make_threads(fabric, node));
    }
    return 0;
}

static int apply_settings(struct dm_fabric *fabric, const struct dm_fabric_config *config, struct dm_err *err) {
    const struct dm_opt *table = fabric->ops->info.options;
    fabric->options = calloc(1, fabric->ops->options_bytes ? fabric->ops->options_bytes : 1);
    if (!fabric->options) {
        return DM_ERR_NO_MEMORY;
    }
    if (table) {
        dm_opt_defaults(table, fabric->options);
    }
    for (size_t i = 0; i < config->setting_count; i++) {
        if (!table) {
            return dm_fail(err, DM_ERR_INVALID, "transport %s has no options", config->transport);
        }
        int rc = dm_opt_set(table, fabric->options, config->settings[i].name, config->settings[i].value, err);
        if (rc < 0) {
            return dm_fail_in(err, rc, "transport %s", config->transport);
        }
    }
    return 0;
}

static int load_profile(struct dm_fabric *fabric, const struct dm_fabric_config *config, struct dm_err *err) {
    if (!(fabric->ops->info.caps & DM_CAP_PROFILE)) {
        return 0;
    }
    if (!config->profile) {
        return dm_fail(err, DM_ERR_INVALID, "transport %s needs a profile", config->transport);
    }
    fabric->profile = calloc(1, sizeof(*fabric->profile));
    int rc = fabric->profile ? dm_profile_load(config->profile, fabric->profile, err) : DM_ERR_NO_MEMORY;
    if (rc == 0 && config->emulates_masked) {
        fabric->profile->masked_atomics = 0;
    }
    return rc;
}

static int open_parts(struct dm_fabric *fabric, const struct dm_fabric_config *config, struct dm_err *err) {
    fabric->topology = config->topology;
    fabric->config = *config;
    fabric->processes = config->processes;
    if (config->processes && !(fabric->ops->info.caps & DM_CAP_DEVICE)) {
        return dm_fail(err, DM_ERR_INVALID, "transport %s cannot run in several processes", config->transport);
    }
    fabric->config.retry_limit = config->retry_limit ? config->retry_limit : DM_RETRY_LIMIT_DEFAULT;
    fabric->config.chunk_bytes = config->chunk_bytes ? config->chunk_bytes : 16u << 20;
    atomic_init(&fabric->next_ctx_id, 1);
    DM_TRY(check_topology(&config->topology, err));
    DM_TRY(load_profile(fabric, config, err));
    DM_TRY(apply_settings(fabric, config, err));
    DM_TRY(make_nodes(fabric));
    return fabric->ops->open(fabric, err);
}

int dm_fabric_open(const struct dm_fabric_config *config, struct dm_fabric **fabric, struct dm_err *err) {
    *fabric = NULL;
    const struct dm_transport_ops *ops = dm_transport_ops_find(config->transport);
    if (!ops) {
        return dm_fail(err, DM_ERR_INVALID, "unknown transport '%s'", config->transport);
    }
    struct dm_fabric *made = calloc(1, sizeof(*made));
    if (!made) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a fabric");
    }
    made->ops = ops;
    if (err) {
        err->text[0] = '\0';
    }
    int rc = open_parts(made, config, err);
    if (rc < 0) {
        if (err && err->text[0] == '\0') {
            dm_fail(err, rc, "cannot open the fabric: %s", dm_code_text(rc));
        }
        dm_fabric_close(made);
        return rc;
    }
    *fabric = made;
    return 0;
}

static void free_threads(struct dm_node_state *state) {
    for (unsigned i = 0; i < state->opened_count; i++) {
        struct dm_thread *thread = state->threads[i];
        for (unsigned class = 0; class < DM_FREE_CLASSES; class ++) {
            free(thread->free[class].addrs);
        }
        free(thread->chunks);
        free(thread);
    }
    free(state->threads);
}

void dm_fabric_close(struct dm_fabric *fabric) {
    if (!fabric) {
        return;
    }
    if (fabric->impl) {
        fabric->ops->close(fabric);
    }
    for (struct dm_ctx *ctx = fabric->contexts, *next; ctx; ctx = next) {
        next = ctx->all_next;
        dm_ctx_free(ctx);
    }
    for (unsigned node = 0; fabric->nodes && node < fabric->node_count; node++) {
        free_threads(&fabric->nodes[node]);
    }
    if (fabric->options && fabric->ops->info.options) {
        dm_opt_free(fabric->ops->info.options, fabric->options);
    }
    free(fabric->options);
    free(fabric->profile);
    free(fabric->nodes);
    free(fabric);
}

/* ---- contexts --------------------------------------------------------------------------------------------------- */

int dm_spawn(struct dm_fabric *fabric, unsigned node, unsigned thread, void (*entry)(struct dm_ctx *ctx, void *arg),
             void *arg) {
    if (node >= fabric->node_count || thread >= fabric->nodes[node].thread_count || !dm_is_hosted(fabric, node)) {
        return DM_ERR_INVALID;
    }
    struct dm_ctx *ctx = dm_ctx_new(fabric, node, thread, entry, arg, false);
    if (!ctx) {
        return DM_ERR_NO_MEMORY;
    }
    fabric->ops->start(ctx);
    return 0;
}

int dm_separate_calls(struct dm_fabric *fabric, unsigned node, unsigned count) {
    if (node >= fabric->node_count || count < 1 || count >= fabric->nodes[node].thread_count) {
        return DM_ERR_INVALID;
    }
    fabric->nodes[node].call_threads = count;
    return 0;
}

int dm_spawn_background(struct dm_fabric *fabric, unsigned node, void (*entry)(struct dm_ctx *ctx, void *arg),
                        void *arg) {
    if (node >= fabric->node_count || !dm_is_hosted(fabric, node)) {
        return DM_ERR_INVALID;
    }
    struct dm_node_state *state = &fabric->nodes[node];
    unsigned thread = state->call_threads + state->background_next++ % (state->thread_count - state->call_threads);
    struct dm_ctx *ctx = dm_ctx_new(fabric, node, thread, entry, arg, true);
    if (!ctx) {
        return DM_ERR_NO_MEMORY;
    }
    fabric->ops->start(ctx);
    return 0;
}

int dm_fabric_run(struct dm_fabric *fabric, struct dm_err *err) {
    return fabric->ops->run(fabric, err);
}

struct doing {
    int (*entry)(struct dm_ctx *ctx, void *arg);
    void *arg;
    int rc;
};

static void do_entry(struct dm_ctx *ctx, void *arg) {
    struct doing *doing = arg;
    doing->rc = doing->entry(ctx, doing->arg);
}

int dm_fabric_do(struct dm_fabric *fabric, unsigned node, int (*entry)(struct dm_ctx *ctx, void *arg), void *arg,
                 int *rc, struct dm_err *err) {
    struct doing doing = {entry, arg, DM_ERR_STOPPED};
    int spawned = dm_spawn(fabric, node, 0, do_entry, &doing);
    if (spawned < 0) {
        return dm_fail(err, spawned, "cannot start a context on node %u", node);
    }
    int ran = dm_fabric_run(fabric, err);
    *rc = doing.rc;
    return ran;
}

void dm_fabric_stop(struct dm_fabric *fabric) {
    fabric->stop = true;
}

bool dm_fabric_stopping(const struct dm_fabric *fabric) {
    return fabric->stop;
}

int dm_fabric_connect(struct dm_fabric *fabric, struct dm_err *err) {
    return fabric->ops->connect ? fabric->ops->connect(fabric, err) : 0;
}

/* A node that has been given memory for more than half a chunk a client thread, beside the chunk that every thread may
 * hold, will fill most of them. Where clients insert little, most stay nearly empty. */
static void chunks_expect(struct dm_fabric *fabric) {
    uint64_t held = 0;
    for (unsigned node = dm_first_cn(&fabric->topology); node < fabric->node_count; node++) {
        held += (uint64_t)fabric->nodes[node].thread_count * fabric->config.chunk_bytes;
    }
    for (unsigned node = 0; node < dm_first_cn(&fabric->topology); node++) {
        struct dm_node_state *state = &fabric->nodes[node];
        state->fills_chunks = state->bytes - atomic_load(&state->allocated) > held * 3 / 2;
    }
}

void dm_fabric_measure(struct dm_fabric *fabric) {
    chunks_expect(fabric);
    fabric->measuring = true;
    fabric->ops->measure(fabric);
}

void dm_fabric_timing(struct dm_fabric *fabric, enum dm_timing timing) {
    if (fabric->ops->timing) {
        fabric->ops->timing(fabric, timing);
    }
}

void dm_fabric_setup(struct dm_fabric *fabric) {
    fabric->measuring = false;
}

/* ---- queries -------------------------------------------------------------------------------------------- */

int dm_register(struct dm_fabric *fabric, unsigned node, unsigned method, dm_handler handler, void *arg) {
    if (node >= fabric->node_count || method < DM_METHOD_FIRST || method > DM_METHOD_MAX) {
        return DM_ERR_INVALID;
    }
    struct dm_method *slot = &fabric->nodes[node].methods[method];
    if (slot->handler) {
        return DM_EXISTS;
    }
    *slot = (struct dm_method){handler, arg};
    return 0;
}

int dm_on_restart(struct dm_fabric *fabric, unsigned node, void (*entry)(struct dm_ctx *ctx, void *arg), void *arg) {
    if (node >= fabric->topology.mns + fabric->topology.servers || fabric->measuring) {
        return DM_ERR_INVALID;
    }
    struct dm_node_state *state = &fabric->nodes[node];
    if (state->restart) {
        return DM_EXISTS;
    }
    state->restart = entry;
    state->restart_arg = arg;
    return 0;
}

unsigned dm_thread_count(struct dm_fabric *fabric, unsigned node) {
    return fabric->nodes[node].thread_count;
}

const struct dm_transport_info *dm_fabric_transport(struct dm_fabric *fabric) {
    return &fabric->ops->info;
}

const struct dm_topology *dm_fabric_topology(struct dm_fabric *fabric) {
    return &fabric->topology;
}

uint64_t dm_verb_total(const struct dm_fabric *fabric) {
    uint64_t total = 0;
    for (unsigned node = 0; node < fabric->node_count; node++) {
        for (unsigned i = 0; i < fabric->nodes[node].thread_count; i++) {
            total += fabric->nodes[node].threads[i]->verbs;
        }
    }
    return total;
}

void dm_fabric_copied(struct dm_fabric *fabric) {
    if (fabric->ops->copied) {
        fabric->ops->copied(fabric);
    }
}

void dm_resources_reset(struct dm_fabric *fabric) {
    if (fabric->ops->resources_reset) {
        fabric->ops->resources_reset(fabric);
    }
}

size_t dm_resources(struct dm_fabric *fabric, struct dm_resource *resources, size_t capacity) {
    return fabric->ops->resources ? fabric->ops->resources(fabric, resources, capacity) : 0;
}

int dm_serve_peers(struct dm_ctx *ctx, uint64_t patience_ns) {
    struct dm_fabric *fabric = ctx->fabric;
    bool have_been = false;
    for (uint64_t waited_ns = 0; fabric->ops->peers; waited_ns += PEERS_LOOK_NS) {
        if (fabric->ops->peers(fabric, &have_been) == 0 && have_been) {
            return 0;
        }
        if (!have_been && patience_ns > 0 && waited_ns >= patience_ns) {
            return DM_ERR_PEER;
        }
        DM_TRY(dm_sleep(ctx, PEERS_LOOK_NS));
    }
    return DM_ERR_UNSUPPORTED;
}

size_t dm_fabric_notes(struct dm_fabric *fabric, struct dm_note *notes, size_t capacity) {
    return fabric->ops->notes ? fabric->ops->notes(fabric, notes, capacity) : 0;
}
