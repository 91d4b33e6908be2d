/* SPDX-License-Identifier: Apache-2.0
 *
 * From a world to a judged history. The operations of all clients are allocated before the run; a client records the
 * result of each in it. Invocations and responses get ticks of one counter, so that an operation that ends before
 * another one begins has lower ticks, in virtual and in real time.
 */
#include "check/run.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/aim.h"
#include "check/explain.h"
#include "check/team.h"
#include "common/compiler.h"

#define PATIENCE_VIRTUAL_NS UINT64_C(5000000000)
#define PATIENCE_REAL_NS    UINT64_C(120000000000)

/* How often a run looks whether its clients have ended. In real time each look costs the processor something. */
#define LOOK_VIRTUAL_NS UINT64_C(1000000)
#define LOOK_REAL_NS    UINT64_C(5000000)

enum {
    CHUNK_BYTES = 64 << 10,
    NODES_MAX = 8,
    SCAN_SLACK = 8,
    SCAN_LEAST = 64, /* pairs that a client has space for, at least: a wrong index may return too many */
    VALUE_MAX = 64,
    STARVING_RETRIES = 1000, /* if a client stopped for good: others may give up, and should not take long to do so */
    RULES_BYTES = 1024,
};

/* A client: one of the world, or the one of a compute node that reads everything at the end. */
struct actor {
    struct run *run;
    unsigned cn;
    struct ck_op *ops; /* its operations in the history */
    size_t op_count;
    const uint64_t *pauses_ns; /* before each operation; NULL for final reads */
    uint64_t *scan_keys;
    char *scan_values;
    struct ix_client index;
    uint64_t counters[CK_COUNTERS_MAX];
    struct ix_rdwc_counts shared;
    _Atomic unsigned ctx; /* the id of its context; 0 before it begins */
};

struct run {
    const struct ck_world *world;
    const struct ck_part *part;
    struct ck_world_fault *faults;  /* of the world, as the fabric takes them */
    bool is_rehearsal;              /* only to see which verbs the operations have that faults are aimed at */
    bool interrupted;               /* an operation may fail half-way: verify must accept what it leaves */
    size_t steps_ops[CK_STEPS_MAX]; /* the operation of a step, plus 1; 0: none */
    struct ix_shape shape;
    struct dm_fabric *fabric;
    void *servers[NODES_MAX];
    void *cns[CK_CNS_MAX];
    struct ix_rdwc *rdwcs[CK_CNS_MAX]; /* NULL if the world has none */
    struct ck_result *result;
    struct actor actors[CK_CLIENTS_MAX + CK_CNS_MAX];
    unsigned actor_count; /* clients of the world that have operations */
    uint64_t *pauses_ns;  /* before each operation of the history */
    struct ck_pair *loaded;
    uint64_t to_come[CK_KEYS_MAX]; /* keys of the world that are not loaded */
    _Atomic uint64_t tick;
    _Atomic unsigned running;
    atomic_flag failed;
    unsigned set_up_cn;  /* the compute node that the set-up context works on */
    struct dm_err setup; /* the error of a set-up context, or of the first client that could not attach */
    struct ix_report report;
    char rules[RULES_BYTES]; /* the fabric's faults */
};

/* ---- the operations --------------------------------------------------------------------------------------------- */

/* Whether a client runs the step `at`, which is the nth of its steps: the step must be in the part, and no fault may
 * have ended the client before. */
static bool step_is_run(const struct run *run, size_t at, size_t nth) {
    const struct ck_world *world = run->world;
    for (size_t i = 0; i < world->fault_count; i++) {
        const struct ck_world_fault *fault = &world->faults[i];
        if (run->part->faults[i] && fault->kind == CK_CLIENT_ENDS && fault->client == world->steps[at].client &&
            nth >= fault->after) {
            return false;
        }
    }
    return run->part->steps[at];
}

static void op_prepare(const struct run *run, size_t at, struct ck_op *op) {
    const struct ck_step *step = &run->world->steps[at];
    *op = (struct ck_op){
        .client = step->client, .kind = step->kind, .key = run->world->keys[step->key], .wanted = step->wanted};
    if (step->kind == WL_INSERT || step->kind == WL_UPDATE) {
        op->value = ck_step_value(at);
    }
}

static void client_prepare(struct run *run, unsigned client) {
    const struct ck_world *world = run->world;
    struct ck_history *history = &run->result->history;
    struct actor *actor = &run->actors[run->actor_count];
    *actor = (struct actor){.run = run,
                            .cn = client % world->topology.cns,
                            .ops = history->ops + history->op_count,
                            .pauses_ns = run->pauses_ns + history->op_count};
    size_t nth = 0;
    uint64_t rest_ns = 0;
    for (size_t at = 0; at < world->step_count; at++) {
        if (world->steps[at].client != client) {
            continue;
        }
        rest_ns += world->steps[at].pause_ns;
        if (!step_is_run(run, at, nth++)) {
            rest_ns = run->part->idle_ns > 0 ? rest_ns + run->part->idle_ns : 0;
        } else {
            run->pauses_ns[history->op_count] = rest_ns;
            rest_ns = 0;
            op_prepare(run, at, &history->ops[history->op_count++]);
            run->steps_ops[at] = history->op_count;
            actor->op_count++;
        }
    }
    run->actor_count += actor->op_count > 0;
}

/* Every compute node reads every key and scans, to find errors due to a stale cache too. */
static void final_prepare(struct run *run, unsigned cn) {
    const struct ck_world *world = run->world;
    struct ck_history *history = &run->result->history;
    struct actor *actor = &run->actors[CK_CLIENTS_MAX + cn];
    *actor = (struct actor){.run = run, .cn = cn, .ops = history->ops + history->op_count};
    for (unsigned key = 0; key < world->key_count; key++) {
        actor->ops[actor->op_count++] =
            (struct ck_op){.client = world->topology.clients + cn, .kind = WL_GET, .key = world->keys[key]};
    }
    if (world->index->caps & IX_CAP_SCAN) {
        actor->ops[actor->op_count++] = (struct ck_op){
            .client = world->topology.clients + cn, .kind = WL_SCAN, .wanted = world->key_count + SCAN_SLACK};
    }
    history->op_count += actor->op_count;
}

static bool actor_open(struct actor *actor) {
    size_t keys = actor->run->world->key_count, capacity = (keys > SCAN_LEAST ? keys : SCAN_LEAST) + 2 * SCAN_SLACK;
    actor->scan_keys = calloc(capacity, sizeof(*actor->scan_keys));
    actor->scan_values = calloc(capacity, actor->run->shape.value_bytes);
    return actor->scan_keys && actor->scan_values;
}

/* Pairs that are kept of a scan: one more than were asked for shows that there were too many. */
static size_t pairs_of(const struct ck_op *op) {
    return op->kind == WL_SCAN ? (size_t)op->wanted + 1 : 0;
}

static bool history_prepare(struct run *run) {
    const struct ck_world *world = run->world;
    struct ck_history *history = &run->result->history;
    size_t ops = world->step_count + (size_t)world->topology.cns * (world->key_count + 1);
    snprintf(history->index, sizeof(history->index), "%s", world->index->name);
    history->seed = world->seed;
    history->first_reader = world->topology.clients;
    history->ops = calloc(ops + 1, sizeof(*history->ops));
    history->initial = calloc(world->key_count, sizeof(*history->initial));
    run->pauses_ns = calloc(ops + 1, sizeof(*run->pauses_ns));
    if (!history->ops || !history->initial || !run->pauses_ns) {
        return false;
    }
    for (unsigned key = 0; key < world->key_count; key++) {
        if (run->part->loaded[key]) {
            history->initial[history->initial_count++] = (struct ck_pair){world->keys[key], ck_loaded_value(key)};
        }
    }
    for (unsigned client = 0; client < world->topology.clients; client++) {
        client_prepare(run, client);
    }
    for (unsigned cn = 0; cn < world->topology.cns; cn++) {
        final_prepare(run, cn);
    }
    size_t pairs = 0;
    for (size_t i = 0; i < history->op_count; i++) {
        pairs += pairs_of(&history->ops[i]);
    }
    history->pool = calloc(pairs + 1, sizeof(*history->pool));
    pairs = 0;
    for (size_t i = 0; history->pool && i < history->op_count; i++) {
        history->ops[i].pairs = history->pool + pairs;
        pairs += pairs_of(&history->ops[i]);
    }
    for (unsigned i = 0; i < DM_ARRAY_LEN(run->actors); i++) {
        bool is_used = i < run->actor_count || i >= CK_CLIENTS_MAX;
        if (is_used && run->actors[i].run && !actor_open(&run->actors[i])) {
            return false;
        }
    }
    return history->pool != NULL;
}

/* Removes the operations that were never begun from the history. */
static void history_close(struct ck_history *history) {
    size_t kept = 0;
    for (size_t i = 0; i < history->op_count; i++) {
        if (history->ops[i].invoke > 0) {
            history->ops[kept++] = history->ops[i];
        }
    }
    history->op_count = kept;
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static int scan_do(struct actor *actor, struct ck_op *op) {
    uint32_t value_bytes = actor->run->shape.value_bytes;
    int rc = ix_scan(&actor->index, op->key, op->wanted, actor->scan_keys, actor->scan_values, &op->found);
    op->found = op->found > op->wanted ? op->wanted + 1 : op->found;
    for (uint32_t i = 0; rc == 0 && i < op->found; i++) {
        uint64_t key = actor->scan_keys[i];
        const char *value = actor->scan_values + (size_t)i * value_bytes;
        op->pairs[i] = (struct ck_pair){key, ck_value_read(key, value, value_bytes)};
    }
    return rc;
}

static int op_do(struct actor *actor, struct ck_op *op) {
    char value[VALUE_MAX];
    uint32_t value_bytes = actor->run->shape.value_bytes;
    int rc;
    switch (op->kind) {
    case WL_GET:
        rc = ix_get(&actor->index, op->key, value);
        op->value = rc == 0 ? ck_value_read(op->key, value, value_bytes) : 0;
        return rc;
    case WL_INSERT:
        ck_value_write(op->key, op->value, value, value_bytes);
        return ix_insert(&actor->index, op->key, value);
    case WL_UPDATE:
        ck_value_write(op->key, op->value, value, value_bytes);
        return ix_update(&actor->index, op->key, value);
    case WL_DELETE:
        return ix_remove(&actor->index, op->key);
    case WL_SCAN:
        return scan_do(actor, op);
    case WL_RMW:
    case WL_OP_KIND_COUNT:
        break;
    }
    return DM_ERR_UNSUPPORTED;
}

static int actor_main(struct dm_ctx *ctx, struct actor *actor) {
    struct run *run = actor->run;
    struct dm_err err = {0};
    atomic_store(&actor->ctx, dm_ctx_id(ctx));
    int rc = ix_attach(run->world->index, run->cns[actor->cn], ctx, &run->shape, &actor->index, &err);
    if (rc < 0) {
        /* A client that a fault stops for good while it attaches is not a failure. */
        if (rc != DM_ERR_STOPPED && !atomic_flag_test_and_set(&run->failed)) {
            dm_fail(&run->setup, rc, "a client cannot attach: %s", err.text);
        }
        return rc;
    }
    /* Final reads are not wrapped: a client that stopped may have left a round of the delegation open. */
    bool is_final = actor >= run->actors + CK_CLIENTS_MAX;
    if (run->rdwcs[actor->cn] && !is_final) {
        rc = ix_rdwc_wrap(run->rdwcs[actor->cn], ctx, &actor->index);
    }
    for (size_t i = 0; rc == 0 && i < actor->op_count && !dm_stopping(ctx); i++) {
        struct ck_op *op = &actor->ops[i];
        uint64_t pause_ns = actor->pauses_ns ? actor->pauses_ns[i] : 0;
        if (pause_ns > 0 && dm_sleep(ctx, pause_ns) < 0) {
            break;
        }
        op->invoke_ns = dm_now(ctx);
        op->invoke = atomic_fetch_add(&run->tick, 1) + 1;
        op->outcome = op_do(actor, op);
        op->response = atomic_fetch_add(&run->tick, 1) + 1;
        op->response_ns = dm_now(ctx);
        op->finished = true;
    }
    return rc;
}

static void counters_note(struct actor *actor) {
    const uint64_t *counts = ix_counts(&actor->index);
    size_t count = ix_counter_count(actor->run->world->index);
    for (size_t i = 0; counts && i < count && i < CK_COUNTERS_MAX; i++) {
        actor->counters[i] = counts[i];
    }
    if (actor->run->rdwcs[actor->cn] && actor->index.handle) {
        actor->shared = *ix_rdwc_counts(&actor->index);
    }
}

static void detach(struct actor *actor) {
    ix_rdwc_unwrap(&actor->index);
    ix_detach(&actor->index);
}

static void client_main(struct dm_ctx *ctx, void *arg) {
    struct actor *actor = arg;
    (void)actor_main(ctx, actor); /* the run has its error */
    counters_note(actor);
    detach(actor);
    atomic_fetch_sub(&actor->run->running, 1);
}

/* Stops a run that does not end in time. */
static void watch_main(struct dm_ctx *ctx, void *arg) {
    struct run *run = arg;
    bool is_virtual = run->result->is_virtual;
    uint64_t patience = is_virtual ? PATIENCE_VIRTUAL_NS : PATIENCE_REAL_NS;
    while (atomic_load(&run->running) > 0) {
        if (dm_now(ctx) > patience) {
            dm_fabric_stop(run->fabric);
            return;
        }
        if (dm_sleep(ctx, is_virtual ? LOOK_VIRTUAL_NS : LOOK_REAL_NS) < 0) {
            return;
        }
    }
}

/* ---- set-up ----------------------------------------------------------------------------------------------------- */

static int format_entry(struct dm_ctx *ctx, void *arg) {
    struct run *run = arg;
    return ix_format(run->world->index, ctx, run->world->params, &run->shape, &run->setup);
}

static int open_entry(struct dm_ctx *ctx, void *arg) {
    struct run *run = arg;
    return ix_open(run->world->index, ctx, run->world->params, &run->shape, &run->cns[run->set_up_cn], &run->setup);
}

static uint64_t pairs_keys(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys) {
    const struct run *run = pairs->arg;
    uint64_t i = 0;
    for (; i < n && first + i < pairs->count; i++) {
        keys[i] = run->result->history.initial[first + i].key;
    }
    return i;
}

static void pairs_value(const struct ix_pairs *pairs, uint64_t key, void *value) {
    const struct run *run = pairs->arg;
    const struct ck_history *history = &run->result->history;
    size_t low = 0, high = history->initial_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        low = history->initial[middle].key <= key ? middle : low;
        high = history->initial[middle].key <= key ? high : middle;
    }
    if (low < high && history->initial[low].key == key) {
        ck_value_write(key, history->initial[low].value, value, run->shape.value_bytes);
    }
}

/* The keys of the world that are not loaded: any of them may be inserted. */
static int pairs_to_come(const struct ix_pairs *pairs, const uint64_t **keys, uint64_t *count) {
    struct run *run = pairs->arg;
    *keys = run->to_come;
    *count = 0;
    for (unsigned key = 0; key < run->world->key_count; key++) {
        if (!run->part->loaded[key]) {
            run->to_come[(*count)++] = run->world->keys[key];
        }
    }
    return 0;
}

static int load_entry(struct dm_ctx *ctx, void *arg) {
    struct run *run = arg;
    struct ix_pairs pairs = {.count = run->result->history.initial_count,
                             .keys = pairs_keys,
                             .value = pairs_value,
                             .to_come = pairs_to_come,
                             .arg = run};
    return ix_load(run->world->index, run->cns[0], ctx, &pairs, &run->setup);
}

static int verify_entry(struct dm_ctx *ctx, void *arg) {
    struct run *run = arg;
    return ix_verify(run->world->index, run->cns[0], ctx, &run->report, &run->setup);
}

static int final_entry(struct dm_ctx *ctx, void *arg) {
    struct actor *actor = arg;
    int rc = actor_main(ctx, actor);
    detach(actor);
    return rc;
}

/* Runs a function in a context on a compute node; `err` gets its error. */
static int set_up(struct run *run, unsigned cn, int (*entry)(struct dm_ctx *, void *), void *arg, const char *what,
                  struct dm_err *err) {
    int rc = 0;
    run->set_up_cn = cn;
    run->setup = (struct dm_err){.code = 0};
    int ran = dm_fabric_do(run->fabric, dm_first_cn(run->shape.topology) + cn, entry, arg, &rc, err);
    if (ran < 0) {
        return dm_fail_in(err, ran, "%s", what);
    }
    return rc < 0 ? dm_fail(err, rc, "%s: %s", what, run->setup.text[0] ? run->setup.text : dm_code_text(rc)) : 0;
}

/* The fabric numbers clients as they are started. */
static unsigned actor_number(const struct run *run, unsigned client) {
    unsigned i = 0;
    while (i < run->actor_count && run->actors[i].ops[0].client != client) {
        i++;
    }
    return i;
}

/* Writes the rules of the fabric for the faults of the part, except those of clients without operations. Rules of the
 * user replace those of the world; memory that ends is no rule of the fabric. */
static void faults_prepare(struct run *run) {
    const struct ck_world *world = run->world;
    const char *given = ck_rules_given(world);
    size_t at = 0;
    for (size_t i = 0; i < world->fault_count; i++) {
        struct ck_world_fault fault = run->faults[i];
        unsigned number = actor_number(run, fault.client);
        bool is_clients = fault.kind != CK_VERBS_LATE && fault.kind != CK_SERVER_FAILS && fault.kind != CK_NODE_LATE &&
                          fault.kind != CK_MEMORY_ENDS;
        bool is_replaced = given && fault.kind != CK_MEMORY_ENDS;
        if (run->part->faults[i] && !is_replaced && (number < run->actor_count || !is_clients)) {
            fault = fault.is_aimed ? ck_aim(&fault, NULL, NULL) : fault;
            at += ck_fault_rule(world, &fault, number, run->rules + at, sizeof(run->rules) - at);
            ck_fault_explain(world, fault.kind, &run->result->history, &run->interrupted);
        }
    }
    if (given) {
        ck_rules_explain(world, given, &run->result->history, &run->interrupted);
    }
}

/* Logs a verb of a client, or of a handler or background context. */
static void verb_log(void *arg, const struct dm_trace_event *event) {
    struct run *run = arg;
    unsigned client = CK_NO_CLIENT;
    for (unsigned i = 0; i < run->actor_count && client == CK_NO_CLIENT; i++) {
        client = atomic_load(&run->actors[i].ctx) == event->ctx ? run->actors[i].ops[0].client : client;
    }
    ck_verb_log_add(&run->result->verbs, event, client);
}

static int fabric_open(struct run *run, struct dm_err *err) {
    const struct ck_world *world = run->world;
    const struct dm_transport_info *transport = dm_transport_find(world->transport);
    struct dm_setting settings[CK_SETTINGS_MAX + 1] = {{"faults", run->rules}};
    size_t own = run->rules[0] ? 1 : 0; /* the settings of the request override it */
    memcpy(settings + own, world->settings, world->setting_count * sizeof(*settings));
    struct dm_fabric_config config = {
        .transport = world->transport,
        .profile = transport->caps & DM_CAP_PROFILE ? world->profile : NULL,
        .emulates_masked = world->emulates_masked,
        .topology = world->topology,
        .seed = dm_mix64(world->seed) + run->part->schedule,
        .chunk_bytes = CHUNK_BYTES,
        .retry_limit = run->result->history.may_starve ? STARVING_RETRIES : world->retry_limit,
        .settings = settings,
        .setting_count = world->setting_count + own,
    };
    if (world->team) {
        DM_TRY(ck_team_begin(world->team, world, err));
        config.processes = &world->team->processes;
    }
    DM_TRY(dm_fabric_open(&config, &run->fabric, err));
    run->result->is_virtual = transport->caps & DM_CAP_VIRTUAL_TIME;
    run->shape = world->shape;
    run->shape.topology = dm_fabric_topology(run->fabric);
    run->result->topology = world->topology;
    if (world->logs_verbs || run->is_rehearsal) {
        dm_fabric_trace(run->fabric, verb_log, run);
    }
    return ix_check(world->index, world->params, &run->shape, err);
}

static int servers_open(struct run *run, struct dm_err *err) {
    const struct ck_world *world = run->world;
    for (unsigned node = 0; node < dm_first_cn(run->shape.topology); node++) {
        if (ck_team_has(world->team, node)) {
            DM_TRY(ix_serve(world->index, run->fabric, node, world->params, &run->shape, &run->servers[node], err));
        }
    }
    return 0;
}

static int index_open(struct run *run, struct dm_err *err) {
    const struct ck_world *world = run->world;
    DM_TRY(servers_open(run, err));
    DM_TRY(set_up(run, 0, format_entry, run, "formatting", err));
    for (unsigned cn = 0; cn < world->topology.cns; cn++) {
        DM_TRY(set_up(run, cn, open_entry, run, "opening a compute node", err));
    }
    for (unsigned cn = 0; world->rdwc != IX_RDWC_OFF && cn < world->topology.cns; cn++) {
        const struct ix_rdwc_config config = {.mode = world->rdwc,
                                              .clients = world->topology.clients,
                                              .slots = world->rdwc_slots,
                                              .value_bytes = run->shape.value_bytes};
        run->rdwcs[cn] = ix_rdwc_open(world->index, &config);
        if (!run->rdwcs[cn]) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
        }
    }
    return run->result->history.initial_count > 0 ? set_up(run, 0, load_entry, run, "loading", err) : 0;
}

static void run_close(struct run *run) {
    const struct ix_ops *index = run->world->index;
    for (unsigned cn = 0; cn < CK_CNS_MAX; cn++) {
        ix_close(index, run->cns[cn]);
        ix_rdwc_close(run->rdwcs[cn]);
    }
    for (unsigned node = 0; node < NODES_MAX; node++) {
        ix_unserve(index, run->servers[node]);
    }
    dm_fabric_close(run->fabric);
    for (unsigned i = 0; i < DM_ARRAY_LEN(run->actors); i++) {
        free(run->actors[i].scan_keys);
        free(run->actors[i].scan_values);
    }
    free(run->pauses_ns);
}

/* ---- the run ---------------------------------------------------------------------------------------------------- */

static int clients_start(struct run *run, struct dm_err *err) {
    const struct dm_topology *topology = &run->world->topology;
    atomic_store(&run->running, run->actor_count);
    for (unsigned i = 0; i < run->actor_count; i++) {
        struct actor *actor = &run->actors[i];
        unsigned thread = actor->ops[0].client / topology->cns / topology->clients_per_thread;
        int rc = dm_spawn(run->fabric, dm_first_cn(topology) + actor->cn, thread, client_main, actor);
        if (rc < 0) {
            return dm_fail(err, rc, "cannot start a client");
        }
    }
    /* A client that stops for good never ends. Then the run must not wait for watch_main, which waits for all clients,
     * so it runs in the background. */
    bool may_stop = dm_fabric_transport(run->fabric)->caps & DM_CAP_FAULTS;
    unsigned node = ck_team_has(run->world->team, 0) ? 0 : dm_first_cn(topology);
    return may_stop ? dm_spawn_background(run->fabric, node, watch_main, run)
                    : dm_spawn(run->fabric, node, 0, watch_main, run);
}

static void stuck(struct run *run, const char *why) {
    struct ck_verdict *verdict = &run->result->verdict;
    const struct ck_history *history = &run->result->history;
    *verdict = (struct ck_verdict){.fault = CK_STUCK, .op = CK_NO_OP};
    size_t open = 0;
    for (size_t i = 0; i < history->op_count; i++) {
        bool is_open =
            history->ops[i].invoke > 0 && (!history->ops[i].finished || history->ops[i].outcome == DM_ERR_STOPPED);
        if (is_open && open++ == 0) {
            verdict->has_key = true;
            verdict->key = history->ops[i].key;
        }
    }
    snprintf(verdict->text, sizeof(verdict->text), "the run did not end: %zu operations have not returned (%.160s)",
             open, why);
}

/* Counts the keys that the final reads of the first compute node found. Returns false if a read failed: if a client has
 * stopped for good, a read may have reached the limit of retries. */
static bool keys_found(const struct run *run, uint64_t *found) {
    const struct actor *actor = &run->actors[CK_CLIENTS_MAX];
    bool is_answered = true;
    *found = 0;
    for (size_t i = 0; i < actor->op_count; i++) {
        if (actor->ops[i].kind == WL_GET) {
            is_answered = is_answered && actor->ops[i].finished && actor->ops[i].outcome >= 0;
            *found += actor->ops[i].finished && actor->ops[i].outcome == 0;
        }
    }
    return is_answered;
}

/* The verdict on the structure, from verify. */
static struct ck_verdict structure_judge(struct run *run) {
    struct ck_verdict verdict = {.fault = CK_RIGHT, .op = CK_NO_OP};
    struct dm_err walk = {0};
    run->report = (struct ix_report){.interrupted = run->interrupted};
    int rc = set_up(run, 0, verify_entry, run, "verify", &walk);
    uint64_t found;
    bool is_answered = keys_found(run, &found);
    if (rc < 0) {
        verdict.fault = CK_BROKEN;
        snprintf(verdict.text, sizeof(verdict.text), "%.280s", walk.text);
    } else if (run->report.broken > 0) {
        verdict.fault = CK_BROKEN;
        snprintf(verdict.text, sizeof(verdict.text), "verify found %llu problems; the first: %.200s",
                 (unsigned long long)run->report.broken, run->report.first_problem);
    } else if (is_answered && run->report.keys != found) {
        verdict.fault = CK_BROKEN;
        snprintf(verdict.text, sizeof(verdict.text), "verify counts %llu keys, but the final reads find %llu",
                 (unsigned long long)run->report.keys, (unsigned long long)found);
    }
    return verdict;
}

/* The history is judged first, because a wrong result is a better finding than a broken structure. */
static int judge(struct run *run, const struct ck_verdict *structure, struct dm_err *err) {
    history_close(&run->result->history);
    int rc = ck_judge(&run->result->history, &run->result->verdict);
    if (rc < 0) {
        return dm_fail(err, rc, "out of memory");
    }
    if (run->result->verdict.fault == CK_RIGHT) {
        run->result->verdict = *structure;
    }
    return 0;
}

/* Judges a run in which a client stopped for good inside an operation: the history with as many final reads as succeed
 * and, if the run ended and every reader could attach, the structure. */
static int judge_starving(struct run *run, bool is_readable, struct dm_err *err) {
    struct ck_verdict structure = {.fault = CK_RIGHT, .op = CK_NO_OP};
    dm_fabric_setup(run->fabric);
    for (unsigned cn = 0; is_readable && cn < run->world->topology.cns; cn++) {
        is_readable = set_up(run, cn, final_entry, &run->actors[CK_CLIENTS_MAX + cn], "reading", NULL) == 0;
    }
    if (is_readable) {
        structure = structure_judge(run);
    }
    return judge(run, &structure, err);
}

static int judge_all(struct run *run, struct dm_err *err) {
    dm_fabric_setup(run->fabric);
    for (unsigned cn = 0; cn < run->world->topology.cns; cn++) {
        DM_TRY(set_up(run, cn, final_entry, &run->actors[CK_CLIENTS_MAX + cn], "reading everything", err));
    }
    struct ck_verdict structure = structure_judge(run);
    return judge(run, &structure, err);
}

/* True if so much memory is in use that a node may be full. Worlds have far more than their few keys need. */
static bool memory_may_run_out(const struct run *run) {
    struct dm_memory_use use;
    dm_memory_use(run->fabric, &use);
    return use.chunk_bytes >= run->world->topology.mn_bytes / 2;
}

static void memory_leave(struct run *run) {
    for (size_t i = 0; i < run->world->fault_count; i++) {
        if (run->part->faults[i] && run->faults[i].kind == CK_MEMORY_ENDS) {
            dm_memory_leave(run->fabric, run->faults[i].after);
        }
    }
}

static void faults_aim(struct run *run) {
    for (size_t i = 0; i < run->world->fault_count; i++) {
        const struct ck_world_fault *fault = &run->world->faults[i];
        size_t op = fault->is_aimed ? run->steps_ops[fault->step] : 0;
        if (fault->is_aimed) {
            run->faults[i] = ck_aim(fault, op > 0 ? &run->result->history.ops[op - 1] : NULL, &run->result->verbs);
        }
    }
}

static int clients_run(struct run *run, struct dm_err *err) {
    memory_leave(run);
    dm_fabric_measure(run->fabric);
    DM_TRY(clients_start(run, err));
    struct dm_err why = {0};
    int rc = dm_fabric_run(run->fabric, &why);
    if (run->is_rehearsal) {
        faults_aim(run);
    }
    for (unsigned i = 0; i < run->actor_count; i++) {
        struct actor *actor = &run->actors[i];
        for (size_t c = 0; c < CK_COUNTERS_MAX; c++) {
            run->result->counters[c] += actor->counters[c];
        }
        run->result->shared.shared_gets += actor->shared.shared_gets;
        run->result->shared.shared_updates += actor->shared.shared_updates;
        run->result->shared.bypassed += actor->shared.bypassed;
        if (actor->index.handle) {
            detach(actor); /* its client stopped for good */
        }
    }
    if (run->setup.code < 0) {
        return dm_fail(err, run->setup.code, "%s", run->setup.text);
    }
    if (run->is_rehearsal) {
        return 0;
    }
    run->result->history.may_fail |= memory_may_run_out(run) ? CK_MAY_RUN_OUT : 0;
    if (run->result->history.may_starve) {
        return judge_starving(run, rc == 0, err);
    }
    if (rc < 0 && !run->result->is_virtual && rc != DM_ERR_STOPPED) {
        return dm_fail(err, rc, "%s", why.text); /* of the network: it says nothing of the index */
    }
    if (rc < 0) {
        stuck(run, why.text);
        history_close(&run->result->history);
        return 0;
    }
    return 1;
}

static int run_once(const struct ck_world *world, const struct ck_part *part, struct ck_world_fault *faults,
                    bool is_rehearsal, struct ck_result *result, struct dm_err *err) {
    memset(result, 0, sizeof(*result));
    result->verdict = (struct ck_verdict){.fault = CK_RIGHT, .op = CK_NO_OP};
    struct run *run = calloc(1, sizeof(*run));
    if (!run) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    run->world = world;
    run->part = part;
    run->faults = faults;
    run->is_rehearsal = is_rehearsal;
    run->result = result;
    run->shape = world->shape;
    atomic_flag_clear(&run->failed);
    int rc = history_prepare(run) ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    faults_prepare(run);
    rc = rc < 0 ? rc : fabric_open(run, err);
    rc = rc < 0 ? rc : index_open(run, err);
    rc = rc < 0 ? rc : clients_run(run, err);
    rc = rc == 1 ? judge_all(run, err) : rc;
    run_close(run);
    free(run);
    return rc;
}

int ck_run(const struct ck_world *world, const struct ck_part *part, struct ck_result *result, struct dm_err *err) {
    struct ck_world_fault faults[CK_FAULTS_MAX];
    memcpy(faults, world->faults, sizeof(faults));
    if (ck_part_is_aimed(world, part)) {
        int rc = run_once(world, part, faults, true, result, err);
        if (rc < 0) {
            return rc;
        }
        ck_result_fini(result);
    }
    return run_once(world, part, faults, false, result, err);
}

/* ---- the other process ------------------------------------------------------------------------------------------ */

static int serve_entry(struct dm_ctx *ctx, void *arg) {
    return dm_serve_peers(ctx, *(const uint64_t *)arg);
}

int ck_serve(const struct ck_world *world, uint64_t patience_ns, struct dm_err *err) {
    struct ck_result result = {.is_virtual = false};
    struct ck_part part;
    struct run *run = calloc(1, sizeof(*run));
    int rc = 0, served = 0;
    if (!run) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    ck_part_all(world, &part);
    run->world = world;
    run->part = &part;
    run->result = &result;
    run->shape = world->shape;
    rc = fabric_open(run, err);
    rc = rc < 0 ? rc : servers_open(run, err);
    rc = rc < 0 ? rc : dm_fabric_do(run->fabric, 0, serve_entry, &patience_ns, &served, err);
    if (rc == 0 && served < 0) {
        rc = dm_fail(err, served, "no compute side connected within %.0f s", (double)patience_ns * 1e-9);
    }
    run_close(run);
    free(run);
    return rc;
}

void ck_result_fini(struct ck_result *result) {
    ck_history_fini(&result->history);
    ck_verb_log_fini(&result->verbs);
}
