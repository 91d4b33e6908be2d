/* SPDX-License-Identifier: Apache-2.0
 *
 * The measured loop. Nothing here allocates, prints or takes a lock once the client is attached.
 */
#include "harness/run/worker.h"

#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"

enum {
    VERSION_SHIFT = 40,         /* bits of a version below the client number: no two clients write the same version */
    PROGRESS_EVERY = 8192,      /* operations between two updates of the progress line */
    UPSERTS_MAX = 64,           /* changes from insert to update or back of one upsert before it fails */
    POLL_NS = 50000,            /* in real time the last part of a wait polls the clock */
    WAIT_NS = 1000,             /* first pause of an insert that waits for an older one; each is twice the last */
    WAIT_STEPS = 14,            /* doublings of it: 16 ms at most */
    OUTCOME_STRANGE = DM_ERR_IO /* how a code outside the table is counted */
};

/* After so long in which none could be acknowledged, a client has stopped for good. */
#define WAIT_MAX_NS UINT64_C(60000000000)

int hx_worker_init(struct hx_worker *worker, struct hx_run *run, unsigned client, void *cn, struct ix_rdwc *rdwc,
                   struct hx_tally *tally) {
    uint32_t value_bytes = run->config->shape.value_bytes;
    uint32_t scan_max = wl_scan_max(run->wl);
    *worker = (struct hx_worker){
        .run = run,
        .cn = cn,
        .rdwc = rdwc,
        .client = client,
        .tally = tally,
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

/* Ends the run; the first failure is reported. */
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

/* Whether the measurement ends before this time. */
static bool is_too_late(struct hx_run *run, uint64_t at_ns) {
    uint64_t start = atomic_load_explicit(&run->start_ns, memory_order_relaxed);
    return start != UINT64_MAX && at_ns >= start && at_ns - start >= run->config->run.duration_ns;
}

/* The number of this client's next operation; false when the budget or the time is used up. */
static bool budget_draw(struct hx_worker *worker, struct dm_ctx *ctx, uint64_t *number) {
    struct hx_run *run = worker->run;
    const struct hx_settings *settings = &run->config->run;
    if (settings->duration_ns > 0 && is_too_late(run, dm_now(ctx))) {
        return false;
    }
    if (worker->drawn_left == 0) {
        worker->drawn_next = atomic_fetch_add_explicit(&run->drawn, run->block, memory_order_relaxed);
        worker->drawn_left = run->block;
    }
    *number = worker->drawn_next++;
    worker->drawn_left--;
    if (dm_unlikely(*number % PROGRESS_EVERY == 0)) {
        hx_progress_at(run->progress, run->load_reads + *number);
    }
    return *number < run->warmup + run->ops;
}

/* Open loop: waits until operation `number` is due. An operation that is late already begins at once. */
static int due_wait(struct hx_worker *worker, struct dm_ctx *ctx, uint64_t number) {
    struct hx_run *run = worker->run;
    bool has_end = run->config->run.duration_ns > 0;
    uint64_t now = dm_now(ctx);
    uint64_t due = hx_schedule_at(&run->schedule, number, now);
    worker->due_ns = due;
    if (has_end && is_too_late(run, due)) {
        return DM_NOT_FOUND;
    }
    for (; now < due; now = dm_now(ctx)) {
        uint64_t left = due - now;
        uint64_t ns = run->is_virtual ? left : left > POLL_NS ? left - POLL_NS : 0;
        DM_TRY(dm_sleep(ctx, ns));
    }
    return has_end && is_too_late(run, due) ? DM_NOT_FOUND : 0;
}

/* Takes a number from the budget, and in an open loop waits for its time. DM_NOT_FOUND when there are no more. */
static int turn_take(struct hx_worker *worker, struct dm_ctx *ctx, uint64_t *number) {
    if (!budget_draw(worker, ctx, number)) {
        return DM_NOT_FOUND;
    }
    return worker->run->schedule.rate > 0 ? due_wait(worker, ctx, *number) : 0;
}

/* Too many inserts wait for the acknowledgement of an older one, whose client starves: waits until it has ended. */
static int insert_wait(struct hx_worker *worker, struct dm_ctx *ctx, struct wl_op *op) {
    struct hx_totals *totals = &worker->tally->totals;
    uint64_t begin_ns = dm_now(ctx);
    int rc = DM_ERR_RETRY_LIMIT;
    for (unsigned step = 0; rc == DM_ERR_RETRY_LIMIT; step += step < WAIT_STEPS) {
        if (dm_now(ctx) - begin_ns > WAIT_MAX_NS) {
            return rc;
        }
        DM_TRY(dm_sleep(ctx, (uint64_t)WAIT_NS << step));
        rc = wl_next(worker->stream, op);
    }
    uint64_t waited_ns = dm_now(ctx) - begin_ns;
    totals->waits++;
    totals->wait_max_ns = waited_ns > totals->wait_max_ns ? waited_ns : totals->wait_max_ns;
    return rc;
}

/* The client's next operation and its number: 0, DM_NOT_FOUND when there is none, or a failure. */
static int operation_draw(struct hx_worker *worker, struct dm_ctx *ctx, uint64_t *number, struct wl_op *op) {
    bool is_replay = worker->run->is_replay;
    int rc = is_replay ? wl_next(worker->stream, op) : 0;
    if (rc == 0) {
        rc = turn_take(worker, ctx, number);
    }
    if (rc != 0 || is_replay) {
        return rc;
    }
    rc = wl_next(worker->stream, op);
    return dm_unlikely(rc == DM_ERR_RETRY_LIMIT) ? insert_wait(worker, ctx, op) : rc;
}

/* Samples the resources when no measured operation is running and no further one is expected. If another one does
 * follow, the next sample replaces this one; work after the last measured operation is not included. */
static void resources_look(struct hx_worker *worker) {
    struct hx_run *run = worker->run;
    uint64_t ended = worker->tally->totals.operations;
    if (run->resource_count > 0 && worker->tally->begun == ended && run->resources_at != ended) {
        run->resources_at = ended;
        dm_resources(run->fabric, run->resources, run->resource_count);
    }
}

/* Operations of this client so far that were answered by another client's operation. */
static uint64_t shared_so_far(const struct hx_worker *worker) {
    const struct ix_rdwc_counts *counts = worker->rdwc ? ix_rdwc_counts(&worker->index) : NULL;
    return counts ? counts->shared_gets + counts->shared_updates : 0;
}

/* Samples what has been counted, and in virtual time the resources, for the slices of time. */
static void slice_sample(struct hx_worker *worker, uint64_t now) {
    struct hx_run *run = worker->run;
    struct hx_sample sample = {.now_ns = now};
    if (run->is_virtual) {
        sample.resources = run->slice_resources;
        sample.resource_count = run->resource_count;
        sample.since_ns = atomic_load_explicit(&run->start_ns, memory_order_relaxed);
        dm_resources(run->fabric, run->slice_resources, run->resource_count);
    }
    hx_tally_sample(worker->tally, sample, &run->config->topology, run->worked_ns);
}

/* This client's first measured operation is about to begin. */
static void measuring_begin(struct hx_worker *worker, struct dm_ctx *ctx, uint64_t number) {
    struct hx_run *run = worker->run;
    worker->is_measuring = true;
    if (number == run->warmup) {
        dm_resources_reset(run->fabric);
    }
    atomic_min(&run->start_ns, dm_now(ctx));
    if (worker->tally->over_time && worker->tally->over_time->sampled_ns == HX_NOT_SAMPLED) {
        slice_sample(worker, dm_now(ctx));
    }
    worker->bypassed_before = worker->rdwc ? ix_rdwc_counts(&worker->index)->bypassed : 0;
    if (run->counter_count > 0) {
        memcpy(worker->counters_before, ix_counts(&worker->index), run->counter_count * sizeof(uint64_t));
    }
}

/* Records the outcome and the latency of an operation that began at `begin_ns` and has just ended; in an open loop it
 * was due at `due_ns`. */
static void outcome_note(const struct hx_worker *worker, struct dm_ctx *ctx, struct hx_op_stats *stats, uint64_t due_ns,
                         uint64_t begin_ns, int outcome) {
    uint64_t now = dm_now(ctx);
    int slot = outcome + HX_OUTCOME_ZERO;
    if (dm_unlikely(slot < 0 || slot >= HX_OUTCOMES)) {
        slot = OUTCOME_STRANGE + HX_OUTCOME_ZERO;
    }
    stats->count++;
    stats->outcomes[slot]++;
    if (worker->run->schedule.rate > 0) {
        dm_hist_record(&stats->latency_ns, now - due_ns);
        dm_hist_record(&stats->service_ns, now - begin_ns);
    } else {
        dm_hist_record(&stats->latency_ns, now - begin_ns);
    }
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

/* One operation of the index, due at worker->due_ns. During warm-up `stats` is NULL and nothing is recorded. */
static int op_run(struct hx_worker *worker, struct dm_ctx *ctx, enum wl_op_kind kind, const struct wl_op *op,
                  struct hx_op_stats *stats, struct dm_account *account) {
    uint32_t entries = 0;
    if (!stats) {
        return index_call(worker, kind, op, &entries);
    }
    dm_account_use(ctx, account);
    uint64_t begin_ns = dm_now(ctx);
    uint64_t shared = shared_so_far(worker);
    dm_code_begin(ctx);
    int rc = index_call(worker, kind, op, &entries);
    dm_code_end(ctx);
    dm_phase(ctx, DM_PHASE_OTHER); /* a failed operation may have left its phase set */
    if (rc != DM_ERR_STOPPED) {
        outcome_note(worker, ctx, stats, worker->due_ns, begin_ns, rc);
        stats->entries += entries;
        stats->shared += shared_so_far(worker) - shared;
    }
    return rc;
}

/* An update that inserts if its key is absent, an insert that updates if its key is present. The workload says which is
 * expected; the other one follows if another client was faster. It counts as what it was in the end, with the costs of
 * all attempts. */
static int upsert_run(struct hx_worker *worker, struct dm_ctx *ctx, const struct wl_op *op, struct hx_tally *tally) {
    enum wl_op_kind kind = op->kind;
    uint64_t begin_ns = dm_now(ctx), shared = shared_so_far(worker);
    worker->upsert = (struct dm_account){0};
    if (tally) {
        dm_account_use(ctx, &worker->upsert);
        dm_code_begin(ctx);
    }
    int rc = index_call(worker, kind, op, NULL);
    for (int i = 0; (rc == DM_EXISTS || rc == DM_NOT_FOUND) && i < UPSERTS_MAX; i++) {
        kind = rc == DM_EXISTS ? WL_UPDATE : WL_INSERT;
        rc = index_call(worker, kind, op, NULL);
    }
    rc = rc > 0 ? DM_ERR_RETRY_LIMIT : rc;
    if (tally) {
        dm_code_end(ctx);
        dm_phase(ctx, DM_PHASE_OTHER);
    }
    if (tally && rc != DM_ERR_STOPPED) {
        struct hx_op_stats *stats = &tally->totals.ops[kind];
        outcome_note(worker, ctx, stats, worker->due_ns, begin_ns, rc);
        dm_account_add(&stats->account, &worker->upsert);
        stats->shared += shared_so_far(worker) - shared;
    }
    return rc;
}

/* The get and the update of a read-modify-write; the update follows unless the get failed, as in YCSB. It is due when
 * the get has ended. */
static int rmw_run(struct hx_worker *worker, struct dm_ctx *ctx, const struct wl_op *op, struct hx_tally *tally) {
    uint64_t begin_ns = dm_now(ctx), due_ns = worker->due_ns;
    int rc = op_run(worker, ctx, WL_GET, op, tally ? &tally->totals.ops[WL_GET] : NULL, tally ? &tally->rmw_get : NULL);
    if (rc >= 0) {
        worker->due_ns = dm_now(ctx);
        rc = op_run(worker, ctx, WL_UPDATE, op, tally ? &tally->totals.ops[WL_UPDATE] : NULL,
                    tally ? &tally->rmw_update : NULL);
    }
    if (tally && rc != DM_ERR_STOPPED) {
        outcome_note(worker, ctx, &tally->totals.ops[WL_RMW], due_ns, begin_ns, rc);
    }
    return rc;
}

/* A measured operation begins. */
static void begin_note(struct hx_worker *worker, struct dm_ctx *ctx, struct hx_tally *tally) {
    tally->begun++;
    if (worker->run->schedule.rate > 0) {
        uint64_t now = dm_now(ctx), due = worker->due_ns;
        struct hx_totals *totals = &tally->totals;
        totals->due_first_ns = due < totals->due_first_ns ? due : totals->due_first_ns;
        totals->due_last_ns = due > totals->due_last_ns ? due : totals->due_last_ns;
        totals->begun_last_ns = now > totals->begun_last_ns ? now : totals->begun_last_ns;
        totals->delay_max_ns = now - due > totals->delay_max_ns ? now - due : totals->delay_max_ns;
    }
}

/* A measured operation has ended; `since_ns` is when its latency began to count. */
static void end_note(struct hx_worker *worker, struct dm_ctx *ctx, uint64_t since_ns, int outcome) {
    struct hx_totals *totals = &worker->tally->totals;
    struct hx_over_time *over_time = worker->tally->over_time;
    uint64_t now = dm_now(ctx);
    totals->operations++;
    totals->succeeded += outcome >= 0 ? 1 : 0;
    totals->end_ns = now > totals->end_ns ? now : totals->end_ns;
    hx_pace_note(&totals->pace, now, now - since_ns);
    if (dm_unlikely(over_time != NULL)) {
        if (hx_over_time_is_due(over_time, now)) {
            slice_sample(worker, now);
        }
        hx_over_time_note(over_time, now, now - since_ns, outcome >= 0);
    }
    if (worker->run->is_drawn) {
        resources_look(worker);
    }
}

/* Runs one operation of the workload, and counts it if it is measured. */
static int operation_run(struct hx_worker *worker, struct dm_ctx *ctx, const struct wl_op *op) {
    struct hx_tally *tally = worker->is_measuring ? worker->tally : NULL;
    struct hx_op_stats *stats = tally ? &tally->totals.ops[op->kind] : NULL;
    struct hx_tracer *tracer = tally ? worker->run->tracer : NULL;
    uint64_t since_ns = worker->run->schedule.rate > 0 ? worker->due_ns : dm_now(ctx);
    if (tally) {
        begin_note(worker, ctx, tally);
    }
    size_t traced = dm_unlikely(tracer != NULL) ? hx_tracer_begin(tracer, ctx, worker->client, op) : HX_NOT_TRACED;
    int rc = op->kind == WL_RMW ? rmw_run(worker, ctx, op, tally)
             : op->upsert       ? upsert_run(worker, ctx, op, tally)
                                : op_run(worker, ctx, op->kind, op, stats, stats ? &stats->account : NULL);
    if (dm_unlikely(tracer != NULL)) {
        hx_tracer_end(tracer, ctx, traced, rc);
    }
    if (tally && rc != DM_ERR_STOPPED) {
        end_note(worker, ctx, since_ns, rc);
    }
    return rc;
}

/* Whether operation `number` meets the model of the network, and until which operation that stays so. Samples are
 * spread evenly over the untimed part, which begins with one. */
static void timing_change(struct hx_run *run, uint64_t number) {
    uint64_t samples = run->config->run.warmup_samples;
    uint64_t next = run->sampled < samples ? run->untimed / samples * run->sampled : run->untimed;
    enum dm_timing timing = DM_UNTIMED;
    run->timing_ends = next;
    if (number >= run->untimed) {
        timing = DM_TIMED;
        run->timing_ends = UINT64_MAX;
    } else if (number >= next) {
        timing = DM_SAMPLED;
        run->timing_ends = number + (uint64_t)HX_SAMPLE_OPS * run->config->topology.clients;
        run->sampled++;
    }
    dm_fabric_timing(run->fabric, timing);
}

/* Ends the run if an operation's outcome says that none can follow. */
static bool ends_run(struct hx_worker *worker, enum wl_op_kind kind, int rc) {
    if (rc != DM_ERR_STOPPED && rc != DM_ERR_IO && rc != DM_ERR_PEER) {
        return false;
    }
    run_fail(worker, rc, wl_op_names[kind], dm_code_text(rc));
    return true;
}

/* This client's part of the gets that fill the caches. false: the run has ended. */
static bool load_reads_run(struct hx_worker *worker, struct dm_ctx *ctx) {
    struct hx_run *run = worker->run;
    for (;;) {
        uint64_t number = atomic_fetch_add_explicit(&run->reads_drawn, 1, memory_order_relaxed);
        if (number >= run->load_reads) {
            return true;
        }
        if (number % PROGRESS_EVERY == 0) {
            hx_progress_at(run->progress, number);
        }
        if (dm_stopping(ctx) ||
            ends_run(worker, WL_GET, ix_get(&worker->index, wl_loaded_key(worker->stream), worker->value))) {
            return false;
        }
    }
}

static void client_loop(struct hx_worker *worker, struct dm_ctx *ctx) {
    uint64_t number = 0;
    if (worker->run->load_reads > 0 && !load_reads_run(worker, ctx)) {
        return;
    }
    while (!dm_stopping(ctx)) {
        struct wl_op op;
        int rc = operation_draw(worker, ctx, &number, &op);
        if (rc == DM_NOT_FOUND) {
            if (worker->run->is_virtual) {
                worker->run->is_drawn = true;
                resources_look(worker);
            }
            return;
        }
        if (rc < 0) {
            run_fail(worker, rc, "the workload's next operation", dm_code_text(rc));
            return;
        }
        if (dm_unlikely(number >= worker->run->timing_ends)) {
            timing_change(worker->run, number);
        }
        if (number >= worker->run->warmup && !worker->is_measuring) {
            measuring_begin(worker, ctx, number);
        }
        rc = operation_run(worker, ctx, &op);
        wl_done(worker->stream, &op, rc);
        if (ends_run(worker, op.kind, rc)) {
            return;
        }
    }
}

/* Attaches to the index, and puts read delegation around it. */
static int attach(struct hx_worker *worker, struct dm_ctx *ctx, struct dm_err *err) {
    struct ix_client *index = &worker->index;
    DM_TRY(ix_attach(worker->run->config->index, worker->cn, ctx, &worker->run->config->shape, index, err));
    return worker->rdwc ? ix_rdwc_wrap(worker->rdwc, ctx, index) : 0;
}

static void detach(struct hx_worker *worker) {
    ix_rdwc_unwrap(&worker->index);
    ix_detach(&worker->index);
}

/* Adds the counters of the index and of read delegation since this client's first measured operation. */
static void counters_take(struct hx_worker *worker) {
    struct hx_run *run = worker->run;
    if (!worker->is_measuring) {
        return;
    }
    const uint64_t *now = run->counter_count > 0 ? ix_counts(&worker->index) : NULL;
    for (size_t i = 0; i < run->counter_count; i++) {
        worker->tally->counters[i] += now[i] - worker->counters_before[i];
    }
    if (worker->rdwc) {
        worker->tally->totals.bypassed += ix_rdwc_counts(&worker->index)->bypassed - worker->bypassed_before;
    }
}

void hx_worker_main(struct dm_ctx *ctx, void *arg) {
    struct hx_worker *worker = arg;
    struct hx_run *run = worker->run;
    struct dm_err err = {0};
    dm_account_use(ctx, NULL);
    if (run->tracer) {
        hx_tracer_client(run->tracer, ctx, worker->client);
    }
    atomic_min(&run->begin_ns, dm_now(ctx));
    int rc = attach(worker, ctx, &err);
    if (rc < 0) {
        run_fail(worker, rc, "cannot attach to the index", err.text[0] ? err.text : dm_code_text(rc));
    } else {
        client_loop(worker, ctx);
    }
    counters_take(worker);
    dm_account_use(ctx, NULL);
    detach(worker);
}
