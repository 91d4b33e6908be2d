/* SPDX-License-Identifier: Apache-2.0
 *
 * The measured loop. Nothing here allocates, prints or takes a lock once the client is attached.
 */
#include "harness/worker.h"

#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"

enum {
    VERSION_SHIFT = 40,         /* versions of different clients never meet */
    PROGRESS_EVERY = 8192,      /* operations between two looks at the progress line */
    OUTCOME_STRANGE = DM_ERR_IO /* what a code outside the table counts as */
};

struct hx_tally *hx_tally_new(size_t counter_count) {
    struct hx_tally *tally = calloc(1, sizeof(*tally));
    if (!tally) {
        return NULL;
    }
    tally->counters = calloc(counter_count + 1, sizeof(*tally->counters));
    for (int kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        dm_hist_clear(&tally->ops[kind].latency_ns);
    }
    if (!tally->counters) {
        free(tally);
        return NULL;
    }
    return tally;
}

void hx_tally_free(struct hx_tally *tally) {
    if (tally) {
        free(tally->counters);
        free(tally);
    }
}

static void op_stats_add(struct hx_op_stats *into, const struct hx_op_stats *from) {
    into->count += from->count;
    into->entries += from->entries;
    for (int i = 0; i < HX_OUTCOMES; i++) {
        into->outcomes[i] += from->outcomes[i];
    }
    dm_account_add(&into->account, &from->account);
    dm_hist_merge(&into->latency_ns, &from->latency_ns);
}

void hx_tally_merge(struct hx_measured *into, const struct hx_tally *from, size_t counter_count) {
    for (int kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        op_stats_add(&into->ops[kind], &from->ops[kind]);
    }
    dm_account_add(&into->ops[WL_GET].account, &from->rmw_get);
    dm_account_add(&into->ops[WL_UPDATE].account, &from->rmw_update);
    dm_account_add(&into->ops[WL_RMW].account, &from->rmw_get);
    dm_account_add(&into->ops[WL_RMW].account, &from->rmw_update);
    into->operations += from->operations;
    into->succeeded += from->succeeded;
    for (size_t i = 0; i < counter_count; i++) {
        into->counters[i] += from->counters[i];
    }
}

int hx_worker_init(struct hx_worker *worker, struct hx_run *run, unsigned client, void *cn, struct hx_tally *tally) {
    uint32_t value_bytes = run->config->shape.value_bytes;
    uint32_t scan_max = wl_scan_max(run->wl);
    *worker = (struct hx_worker){
        .run = run,
        .cn = cn,
        .client = client,
        .tally = tally,
        .index = {.ops = run->config->index, .value_bytes = value_bytes},
        .version = ((uint64_t)client + 1) << VERSION_SHIFT,
        .scan_capacity = scan_max,
        .stream = wl_stream_open(run->wl, client),
        .counters_before = calloc(run->counter_count + 1, sizeof(uint64_t)),
        .value = calloc(1, value_bytes),
        .scan_keys = calloc((size_t)scan_max + 1, sizeof(uint64_t)),
        .scan_values = calloc((size_t)scan_max + 1, value_bytes),
    };
    bool is_whole =
        worker->stream && worker->counters_before && worker->value && worker->scan_keys && worker->scan_values;
    return is_whole ? 0 : DM_ERR_NO_MEMORY;
}

void hx_worker_fini(struct hx_worker *worker) {
    if (worker->stream) {
        wl_stream_close(worker->stream);
    }
    free(worker->counters_before);
    free(worker->value);
    free(worker->scan_keys);
    free(worker->scan_values);
    *worker = (struct hx_worker){0};
}

/* Ends the run: the first failure is the one that is told. */
static void run_fail(struct hx_worker *worker, int code, const char *what, const char *why) {
    struct hx_run *run = worker->run;
    if (code == DM_ERR_STOPPED) {
        return;
    }
    if (!atomic_flag_test_and_set(&run->failed)) {
        dm_fail(&run->err, code, "client %u: %s: %s", worker->client, what, why);
    }
    dm_fabric_stop(run->fabric);
}

static void atomic_min(_Atomic uint64_t *into, uint64_t value) {
    uint64_t now = atomic_load_explicit(into, memory_order_relaxed);
    while (value < now &&
           !atomic_compare_exchange_weak_explicit(into, &now, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* The number of this client's next operation; false when the budget or the time is used up. */
static bool budget_draw(struct hx_worker *worker, struct dm_ctx *ctx, uint64_t *number) {
    struct hx_run *run = worker->run;
    const struct hx_settings *settings = &run->config->run;
    if (settings->duration_ns > 0 && worker->is_measuring) {
        uint64_t start = atomic_load_explicit(&run->start_ns, memory_order_relaxed);
        if (dm_now(ctx) - start >= settings->duration_ns) {
            return false;
        }
    }
    if (worker->drawn_left == 0) {
        worker->drawn_next = atomic_fetch_add_explicit(&run->drawn, run->block, memory_order_relaxed);
        worker->drawn_left = run->block;
    }
    *number = worker->drawn_next++;
    worker->drawn_left--;
    if (dm_unlikely(*number % PROGRESS_EVERY == 0)) {
        hx_progress_at(run->progress, *number);
    }
    return *number < settings->warmup + settings->ops;
}

/* This client's first measured operation is about to begin. */
static void measuring_begin(struct hx_worker *worker, struct dm_ctx *ctx, uint64_t number) {
    struct hx_run *run = worker->run;
    worker->is_measuring = true;
    if (number == run->config->run.warmup) {
        dm_resources_reset(run->fabric);
    }
    atomic_min(&run->start_ns, dm_now(ctx));
    if (run->counter_count > 0) {
        memcpy(worker->counters_before, worker->index.ops->count(worker->index.handle),
               run->counter_count * sizeof(uint64_t));
    }
}

static void outcome_note(struct hx_op_stats *stats, uint64_t latency_ns, int outcome) {
    int place = outcome + HX_OUTCOME_ZERO;
    if (dm_unlikely(place < 0 || place >= HX_OUTCOMES)) {
        place = OUTCOME_STRANGE + HX_OUTCOME_ZERO;
    }
    stats->count++;
    stats->outcomes[place]++;
    dm_hist_record(&stats->latency_ns, latency_ns);
}

static int index_call(struct hx_worker *worker, enum wl_op_kind kind, const struct wl_op *op, uint32_t *entries) {
    struct ix_client *index = &worker->index;
    switch (kind) {
    case WL_GET:
        return ix_get(index, op->key, worker->value);
    case WL_UPDATE:
        wl_value(op->key, worker->version++, worker->value, index->value_bytes);
        return ix_update(index, op->key, worker->value);
    case WL_INSERT:
        wl_value(op->key, worker->version++, worker->value, index->value_bytes);
        return ix_insert(index, op->key, worker->value);
    case WL_SCAN: {
        uint32_t count = op->scan_length < worker->scan_capacity ? op->scan_length : worker->scan_capacity;
        return ix_scan(index, op->key, count, worker->scan_keys, worker->scan_values, entries);
    }
    case WL_DELETE:
        return ix_remove(index, op->key);
    case WL_RMW:
    case WL_OP_KIND_COUNT:
        break;
    }
    return DM_ERR_UNSUPPORTED;
}

/* One operation of the index. During warm-up `stats` is NULL and nothing is put down. */
static int op_run(struct hx_worker *worker, struct dm_ctx *ctx, enum wl_op_kind kind, const struct wl_op *op,
                  struct hx_op_stats *stats, struct dm_account *account) {
    uint32_t entries = 0;
    if (!stats) {
        return index_call(worker, kind, op, &entries);
    }
    dm_account_use(ctx, account);
    uint64_t begin_ns = dm_now(ctx);
    int rc = index_call(worker, kind, op, &entries);
    if (rc != DM_ERR_STOPPED) {
        outcome_note(stats, dm_now(ctx) - begin_ns, rc);
        stats->entries += entries;
    }
    return rc;
}

/* The get and the update of a read-modify-write; the update follows unless the get failed, as in YCSB. */
static int rmw_run(struct hx_worker *worker, struct dm_ctx *ctx, const struct wl_op *op, struct hx_tally *tally) {
    uint64_t begin_ns = dm_now(ctx);
    int rc = op_run(worker, ctx, WL_GET, op, tally ? &tally->ops[WL_GET] : NULL, tally ? &tally->rmw_get : NULL);
    if (rc >= 0) {
        rc = op_run(worker, ctx, WL_UPDATE, op, tally ? &tally->ops[WL_UPDATE] : NULL,
                    tally ? &tally->rmw_update : NULL);
    }
    if (tally && rc != DM_ERR_STOPPED) {
        outcome_note(&tally->ops[WL_RMW], dm_now(ctx) - begin_ns, rc);
    }
    return rc;
}

/* Runs what the workload asked for, and counts it if it is measured. */
static int operation_run(struct hx_worker *worker, struct dm_ctx *ctx, const struct wl_op *op) {
    struct hx_tally *tally = worker->is_measuring ? worker->tally : NULL;
    struct hx_op_stats *stats = tally ? &tally->ops[op->kind] : NULL;
    int rc = op->kind == WL_RMW ? rmw_run(worker, ctx, op, tally)
                                : op_run(worker, ctx, op->kind, op, stats, stats ? &stats->account : NULL);
    if (tally && rc != DM_ERR_STOPPED) {
        uint64_t now = dm_now(ctx);
        tally->operations++;
        tally->succeeded += rc >= 0 ? 1 : 0;
        tally->end_ns = now > tally->end_ns ? now : tally->end_ns;
    }
    return rc;
}

static void client_loop(struct hx_worker *worker, struct dm_ctx *ctx) {
    uint64_t number;
    while (!dm_stopping(ctx) && budget_draw(worker, ctx, &number)) {
        struct wl_op op;
        int rc = wl_next(worker->stream, &op);
        if (rc == DM_NOT_FOUND) {
            return; /* a trace has ended */
        }
        if (rc < 0) {
            run_fail(worker, rc, "the workload's next operation", dm_code_text(rc));
            return;
        }
        if (number >= worker->run->config->run.warmup && !worker->is_measuring) {
            measuring_begin(worker, ctx, number);
        }
        rc = operation_run(worker, ctx, &op);
        wl_done(worker->stream, &op, rc);
        if (rc == DM_ERR_STOPPED || rc == DM_ERR_IO || rc == DM_ERR_PEER) {
            run_fail(worker, rc, wl_op_names[op.kind], dm_code_text(rc));
            return;
        }
    }
}

void hx_worker_main(struct dm_ctx *ctx, void *arg) {
    struct hx_worker *worker = arg;
    struct hx_run *run = worker->run;
    struct dm_err err = {0};
    dm_account_use(ctx, NULL);
    atomic_min(&run->begin_ns, dm_now(ctx));
    int rc = worker->index.ops->attach(worker->cn, ctx, &worker->index.handle, &err);
    if (rc < 0) {
        run_fail(worker, rc, "cannot attach to the index", err.text[0] ? err.text : dm_code_text(rc));
    } else {
        client_loop(worker, ctx);
    }
    if (worker->is_measuring && run->counter_count > 0) {
        const uint64_t *now = worker->index.ops->count(worker->index.handle);
        for (size_t i = 0; i < run->counter_count; i++) {
            worker->tally->counters[i] += now[i] - worker->counters_before[i];
        }
    }
    dm_account_use(ctx, NULL);
    worker->index.ops->detach(worker->index.handle);
    worker->index.handle = NULL;
}
