/* SPDX-License-Identifier: Apache-2.0
 *
 * The phases of a point: keys, fabric, servers, format, compute nodes, load, clients, collecting the measurements,
 * verify, and closing in the opposite order. The measured loop is in worker.c.
 */
#include "harness/run/driver.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/compiler.h"
#include "common/log.h"
#include "common/output_file.h"
#include "harness/base/errors.h"
#include "harness/base/progress.h"
#include "harness/run/config_fields.h"
#include "harness/run/fabric_settings.h"
#include "harness/run/interrupt.h"
#include "harness/run/team.h"
#include "harness/run/worker.h"

enum { BLOCK_MAX = 64 };

/* Everything that is open while a point runs. */
struct point {
    struct hx_config *config;
    struct hx_tracer *tracer; /* or NULL */
    const struct ix_ops *index;
    struct ix_shape shape;
    struct wl *wl;
    const uint64_t *keys;
    struct hx_fabric_settings settings;
    struct dm_fabric *fabric;
    void **servers; /* one per memory node and index server; NULL if the node has none */
    void **cns;
    struct ix_rdwc **rdwcs; /* one per compute node; all NULL without read delegation */
    struct hx_worker *workers;
    struct hx_tally **tallies;
    size_t tally_count;
    size_t *tally_first; /* of each compute node */
    struct hx_run run;
    struct hx_progress progress;
    struct hx_measured *measured;
};

static double seconds_since(uint64_t host_ns) {
    return (double)(hx_host_ns() - host_ns) * 1e-9;
}

static double cpu_seconds_since(uint64_t cpu_ns) {
    return (double)(hx_cpu_ns() - cpu_ns) * 1e-9;
}

static int fail_no_memory(struct dm_err *err) {
    return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
}

/* ---- set-up ----------------------------------------------------------------------------------------------------- */

/* What a context of the set-up phase does: one function on one node. */
struct setup_step {
    struct point *point;
    unsigned cn;
    struct dm_err err;
};

/* Runs a step on a node; a failure is reported as "WHAT: why". */
static int setup_do(struct point *point, unsigned node, int (*entry)(struct dm_ctx *, void *), struct setup_step *step,
                    const char *what, struct dm_err *err) {
    step->point = point;
    int step_rc = 0;
    int rc = dm_fabric_do(point->fabric, node, entry, step, &step_rc, err);
    if (rc < 0) {
        return dm_fail_in(err, rc, "%s", what);
    }
    if (step_rc < 0) {
        return dm_fail(err, step_rc, "%s: %s", what, step->err.text[0] ? step->err.text : dm_code_text(step_rc));
    }
    return 0;
}

/* An error in a file of keys, a trace or a recording is a usage error. */
static int workload_open(struct point *point, struct dm_err *err) {
    struct hx_config *config = point->config;
    const struct hx_settings *run = &config->run;
    point->wl = config->opened;
    config->opened = NULL;
    int rc = 0;
    if (!point->wl) {
        rc = wl_open(&config->workload, run->ops + run->warmup, (unsigned)run->clients, run->seed, &point->wl, err);
        rc = hx_file_error(rc, err);
    }
    return rc < 0 ? rc : wl_partition(point->wl, hx_team_part(config->team), hx_team_parts(config->team), err);
}

static int keys_open(struct point *point, struct dm_err *err) {
    uint64_t begin = hx_host_ns();
    hx_progress_phase(&point->progress, "making keys", 0);
    DM_TRY(workload_open(point, err));
    point->keys = wl_keys(point->wl, &point->measured->loaded_keys);
    if (!point->keys && point->measured->loaded_keys > 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for the array of %llu keys to load",
                       (unsigned long long)point->measured->loaded_keys);
    }
    point->measured->host.keys_s = seconds_since(begin);
    return 0;
}

static int fabric_open(struct point *point, struct dm_err *err) {
    DM_TRY(hx_fabric_settings_init(&point->settings, point->config, err));
    point->settings.config.processes = hx_team_processes(point->config->team);
    DM_TRY(dm_fabric_open(&point->settings.config, &point->fabric, err));
    hx_interrupt_watch(point->fabric);
    const struct dm_topology *topology = dm_fabric_topology(point->fabric);
    point->shape = point->config->shape;
    point->shape.topology = topology;
    point->measured->is_virtual = dm_fabric_transport(point->fabric)->caps & DM_CAP_VIRTUAL_TIME;
    point->servers = calloc(topology->mns + topology->servers, sizeof(*point->servers));
    point->cns = calloc(topology->cns, sizeof(*point->cns));
    point->rdwcs = calloc(topology->cns, sizeof(*point->rdwcs));
    return point->servers && point->cns && point->rdwcs ? 0 : fail_no_memory(err);
}

static int servers_open(struct point *point, struct dm_err *err) {
    for (unsigned node = 0; node < dm_first_cn(point->shape.topology); node++) {
        if (!hx_team_has(point->config->team, node)) {
            continue;
        }
        DM_TRY(ix_serve(point->index, point->fabric, node, point->config->index_params, &point->shape,
                        &point->servers[node], err));
    }
    return 0;
}

static int format_entry(struct dm_ctx *ctx, void *arg) {
    struct setup_step *step = arg;
    struct point *point = step->point;
    return ix_format(point->index, ctx, point->config->index_params, &point->shape, &step->err);
}

static int open_entry(struct dm_ctx *ctx, void *arg) {
    struct setup_step *step = arg;
    struct point *point = step->point;
    return ix_open(point->index, ctx, point->config->index_params, &point->shape, &point->cns[step->cn], &step->err);
}

static uint64_t pairs_keys(const struct ix_pairs *pairs, uint64_t first, uint64_t n, uint64_t *keys) {
    struct point *point = pairs->arg;
    uint64_t left = first < pairs->count ? pairs->count - first : 0;
    n = n < left ? n : left;
    memcpy(keys, point->keys + first, n * sizeof(*keys));
    hx_progress_at(&point->progress, first);
    return n;
}

static void pairs_value(const struct ix_pairs *pairs, uint64_t key, void *value) {
    const struct point *point = pairs->arg;
    wl_value(key, 0, value, point->shape.value_bytes);
}

static int pairs_to_come(const struct ix_pairs *pairs, const uint64_t **keys, uint64_t *count) {
    const struct point *point = pairs->arg;
    return wl_keys_to_come(point->wl, keys, count);
}

static int load_entry(struct dm_ctx *ctx, void *arg) {
    struct setup_step *step = arg;
    struct point *point = step->point;
    struct ix_pairs pairs = {.count = point->measured->loaded_keys,
                             .keys = pairs_keys,
                             .value = pairs_value,
                             .to_come = pairs_to_come,
                             .arg = point};
    return ix_load(point->index, point->cns[0], ctx, &pairs, &step->err);
}

static int cns_open(struct point *point, struct dm_err *err) {
    const struct hx_team *team = point->config->team;
    unsigned first_cn = dm_first_cn(point->shape.topology);
    struct setup_step step = {0};
    if (hx_team_is_first(team)) {
        DM_TRY(setup_do(point, first_cn, format_entry, &step, "formatting", err));
    }
    hx_team_barrier(team);
    for (step.cn = 0; step.cn < point->shape.topology->cns; step.cn++) {
        if (hx_team_has(team, first_cn + step.cn)) {
            DM_TRY(setup_do(point, first_cn + step.cn, open_entry, &step, "opening a compute node", err));
        }
    }
    hx_team_barrier(team);
    return 0;
}

static int index_load(struct point *point, struct dm_err *err) {
    const struct hx_team *team = point->config->team;
    uint64_t begin = hx_host_ns();
    DM_TRY(cns_open(point, err));
    point->measured->host.setup_s = seconds_since(begin);
    begin = hx_host_ns();
    hx_progress_phase(&point->progress, "loading", point->measured->loaded_keys);
    struct setup_step step = {0};
    unsigned first_cn = dm_first_cn(point->shape.topology);
    int rc = hx_team_is_first(team) ? setup_do(point, first_cn, load_entry, &step, "loading", err) : 0;
    if (rc == DM_ERR_NO_MEMORY) {
        return dm_fail_in(err, rc, "memory nodes of %.0f MiB are too small; give them more with --mn-memory",
                          (double)point->shape.topology->mn_bytes / (1024 * 1024));
    }
    DM_TRY(rc);
    DM_TRY(dm_fabric_connect(point->fabric, err));
    hx_team_barrier(team);
    wl_keys_release(point->wl);
    point->keys = NULL;
    point->measured->host.load_s = seconds_since(begin);
    return 0;
}

/* ---- measurement ------------------------------------------------------------------------------------------------ */

static int tallies_open(struct point *point, struct dm_err *err) {
    const struct dm_topology *topology = point->shape.topology;
    point->tally_first = calloc(topology->cns, sizeof(*point->tally_first));
    point->tally_count = 1;
    if (!point->measured->is_virtual && point->tally_first) {
        point->tally_count = 0;
        for (unsigned cn = 0; cn < topology->cns; cn++) {
            point->tally_first[cn] = point->tally_count;
            point->tally_count += hx_cn_threads(topology, cn);
        }
    }
    point->tallies = calloc(point->tally_count, sizeof(*point->tallies));
    if (!point->tally_first || !point->tallies) {
        return fail_no_memory(err);
    }
    for (size_t i = 0; i < point->tally_count; i++) {
        point->tallies[i] = hx_tally_new(point->run.counter_count, point->config->run.interval_ns);
        if (!point->tallies[i]) {
            return fail_no_memory(err);
        }
    }
    return 0;
}

static int rdwcs_open(struct point *point, struct dm_err *err) {
    const struct dm_topology *topology = point->shape.topology;
    for (unsigned cn = 0; point->config->run.rdwc != IX_RDWC_OFF && cn < topology->cns; cn++) {
        const struct ix_rdwc_config config = {
            .mode = point->config->run.rdwc,
            .clients = hx_cn_clients(topology, cn),
            .value_bytes = point->shape.value_bytes,
        };
        point->rdwcs[cn] = ix_rdwc_open(point->index, &config);
        if (!point->rdwcs[cn]) {
            return fail_no_memory(err);
        }
    }
    return 0;
}

/* Client i works on compute node i % cns; the clients of a node fill its threads one by one. */
static int workers_open(struct point *point, struct dm_err *err) {
    const struct dm_topology *topology = point->shape.topology;
    point->workers = calloc(topology->clients, sizeof(*point->workers));
    if (!point->workers) {
        return fail_no_memory(err);
    }
    for (unsigned client = 0; client < topology->clients; client++) {
        unsigned cn = client % topology->cns;
        if (!hx_team_has(point->config->team, dm_first_cn(topology) + cn)) {
            continue; /* its worker stays all zero */
        }
        unsigned thread = client / topology->cns / topology->clients_per_thread;
        size_t tally = point->measured->is_virtual ? 0 : point->tally_first[cn] + thread;
        struct hx_worker *worker = &point->workers[client];
        if (hx_worker_init(worker, &point->run, client, point->cns[cn], point->rdwcs[cn], point->tallies[tally]) < 0 ||
            dm_spawn(point->fabric, dm_first_cn(topology) + cn, thread, hx_worker_main, worker) < 0) {
            return fail_no_memory(err);
        }
    }
    return 0;
}

/* How many operations a client draws from the budget at a time. One in virtual time, so that operations are drawn in
 * the order of time; in an open loop, where an operation's number decides its time; and in a replay, where the rest of
 * a block would be lost to other clients. Otherwise a block, small enough that clients end together. */
static uint32_t draw_block(const struct point *point) {
    const struct hx_settings *run = &point->config->run;
    uint64_t fair = (run->ops + run->warmup) / (run->clients * 8); /* the same in every process */
    if (point->measured->is_virtual || run->rate > 0 || point->config->workload.replay[0] || fair <= 1) {
        return 1;
    }
    return fair < BLOCK_MAX ? (uint32_t)fair : BLOCK_MAX;
}

/* This process's part of `all`, by its number of clients. The parts of all processes add up to `all`. */
static uint64_t share_of(const struct point *point, uint64_t all) {
    const struct dm_topology *topology = &point->config->topology;
    unsigned before = 0, own = 0, parts = hx_team_parts(point->config->team), part = hx_team_part(point->config->team);
    for (unsigned cn = 0; cn < topology->cns; cn++) {
        before += cn % parts < part ? hx_cn_clients(topology, cn) : 0;
        own += cn % parts == part ? hx_cn_clients(topology, cn) : 0;
    }
    double clients = topology->clients;
    return (uint64_t)((double)all * (before + own) / clients) - (uint64_t)((double)all * before / clients);
}

/* Each process has its part of the rate, and its own arrivals. */
static void schedule_init(struct point *point) {
    const struct hx_settings *settings = &point->config->run;
    unsigned part = hx_team_part(point->config->team);
    uint64_t offset_ns = settings->rate > 0 ? part * UINT64_C(1000000000) / settings->rate : 0;
    hx_schedule_init(&point->run.schedule, share_of(point, settings->rate), settings->arrival == HX_ARRIVAL_POISSON,
                     settings->seed, part, offset_ns);
}

static bool begins_untimed(const struct point *point) {
    const struct hx_settings *settings = &point->config->run;
    return point->measured->is_virtual && settings->load_reads + settings->timed_warmup > 0;
}

static int run_init(struct point *point, struct dm_err *err) {
    const struct hx_settings *settings = &point->config->run;
    size_t resource_count = point->measured->is_virtual ? dm_resources(point->fabric, NULL, 0) : 0;
    point->run = (struct hx_run){
        .config = point->config,
        .fabric = point->fabric,
        .wl = point->wl,
        .progress = &point->progress,
        .tracer = point->tracer,
        .counter_count = ix_counter_count(point->index),
        .is_virtual = point->measured->is_virtual,
        .is_replay = point->config->workload.replay[0] != '\0',
        .block = draw_block(point),
        .ops = share_of(point, settings->ops),
        .warmup = share_of(point, settings->warmup),
        .load_reads = share_of(point, settings->load_reads),
        .untimed = settings->timed_warmup > 0 ? settings->warmup - settings->timed_warmup : 0,
        .timing_ends = begins_untimed(point) ? 0 : UINT64_MAX,
        .resources = calloc(resource_count + 1, sizeof(*point->run.resources)),
        .resource_count = resource_count,
        .slice_resources = calloc(resource_count + 1, sizeof(*point->run.slice_resources)),
        .worked_ns = calloc(resource_count + 1, sizeof(*point->run.worked_ns)),
        .begin_ns = UINT64_MAX,
        .start_ns = UINT64_MAX,
        .failed = ATOMIC_FLAG_INIT,
    };
    schedule_init(point);
    bool is_whole = point->run.resources && point->run.slice_resources && point->run.worked_ns;
    return is_whole ? tallies_open(point, err) : fail_no_memory(err);
}

/* However the run ends, the file is complete or does not exist. */
static int record_begin(struct point *point, struct dm_err *err) {
    const char *path = point->config->run.record;
    if (!path[0]) {
        return 0;
    }
    char *temporary = dm_output_temporary(path);
    hx_interrupt_remove(temporary);
    free(temporary);
    return wl_record(point->wl, path, err);
}

static int record_end(struct point *point, struct dm_err *err) {
    for (unsigned client = 0; client < point->config->topology.clients; client++) {
        if (point->workers[client].stream) {
            wl_stream_close(point->workers[client].stream);
        }
        point->workers[client].stream = NULL;
    }
    hx_interrupt_hold(true);
    int rc = wl_record_finish(point->wl, err);
    hx_interrupt_remove(NULL);
    hx_interrupt_hold(false);
    return rc;
}

/* Whether an interrupted run has something to keep. */
static bool has_measured(const struct point *point) {
    uint64_t operations = 0;
    for (size_t i = 0; i < point->tally_count; i++) {
        operations += point->tallies[i]->totals.operations;
    }
    return point->config->keeps_partial && operations > 0;
}

/* After a measured operation that never ended there was no moment without one to sample the resources in. */
static void resources_complete(struct hx_run *run, const struct hx_tally *tally) {
    uint64_t ended = tally->totals.operations;
    if (run->is_virtual && run->resource_count > 0 && ended > 0 && run->resources_at != ended) {
        run->resources_at = ended;
        dm_resources(run->fabric, run->resources, run->resource_count);
    }
}

static int clients_run(struct point *point, struct dm_err *err) {
    DM_TRY(run_init(point, err));
    if (point->config->run.rate > 0 && point->run.schedule.rate == 0) {
        return dm_fail(err, DM_ERR_INVALID, "--rate: a process has no operation a second to begin");
    }
    DM_TRY(record_begin(point, err));
    dm_fabric_measure(point->fabric);
    dm_fabric_meter(point->fabric, point->config->meter);
    if (point->tracer) {
        hx_tracer_watch(point->tracer, point->fabric);
    }
    DM_TRY(rdwcs_open(point, err));
    DM_TRY(workers_open(point, err));
    dm_fabric_timing(point->fabric, begins_untimed(point) ? DM_UNTIMED : DM_TIMED);
    uint64_t begin = hx_host_ns();
    uint64_t verbs_before = dm_verb_total(point->fabric);
    hx_progress_phase(&point->progress, "running", point->run.load_reads + point->run.ops + point->run.warmup);
    int rc = dm_fabric_run(point->fabric, err);
    point->measured->host.run_s = seconds_since(begin);
    point->measured->totals.verbs = dm_verb_total(point->fabric) - verbs_before;
    resources_complete(&point->run, point->tallies[0]);
    if (point->run.err.code < 0 && (rc == 0 || rc == DM_ERR_STOPPED)) {
        if (err) {
            *err = point->run.err;
        }
        return point->run.err.code;
    }
    if (point->run.err.code < 0) {
        return dm_fail_in(err, rc, "%s", point->run.err.text); /* the error of the fabric has the reason */
    }
    if (rc == DM_ERR_STOPPED && has_measured(point)) {
        point->measured->is_partial = true;
        hx_interrupt_stopped();
        return 0;
    }
    return rc < 0 ? dm_fail_in(err, rc, "running") : 0;
}

/* ---- what is there afterwards ----------------------------------------------------------------------------------- */

/* Moves the state of the resources, as the clients recorded it, to the measurement. */
static int resources_take(struct point *point) {
    struct hx_measured *measured = point->measured;
    size_t count = point->run.resources_at > 0 ? point->run.resource_count : 0;
    measured->resources = point->run.resources;
    point->run.resources = NULL;
    for (; measured->resource_count < count; measured->resource_count++) {
        struct dm_resource *resource = &measured->resources[measured->resource_count];
        resource->name = strdup(resource->name); /* the fabric's own string is freed with it */
        if (!resource->name) {
            return DM_ERR_NO_MEMORY;
        }
    }
    return 0;
}

/* What no specification promises and a device was seen to break. A result says so too. */
static void notes_warn(const struct point *point) {
    static const char *const relied_on[] = {"line_atomic", "write_order", "cpu_atomics"};
    const struct hx_measured *measured = point->measured;
    if (point->config->is_quiet || point->config->is_repeated || !hx_team_is_first(point->config->team)) {
        return;
    }
    for (size_t i = 0; i < measured->note_count; i++) {
        for (size_t k = 0; k < DM_ARRAY_LEN(relied_on); k++) {
            if (strcmp(measured->notes[i].name, relied_on[k]) == 0 && strcmp(measured->notes[i].value, "no") == 0) {
                dm_log(DM_LOG_WARN, "the device fails a probe: %s is no. Indexes rely on it: the result may be wrong",
                       relied_on[k]);
            }
        }
    }
}

static void notes_take(struct point *point) {
    struct dm_note notes[DM_NOTES_MAX];
    struct hx_measured *measured = point->measured;
    measured->note_count = dm_fabric_notes(point->fabric, notes, DM_NOTES_MAX);
    for (size_t i = 0; i < measured->note_count; i++) {
        snprintf(measured->notes[i].name, sizeof(measured->notes[i].name), "%s", notes[i].name);
        snprintf(measured->notes[i].value, sizeof(measured->notes[i].value), "%s", notes[i].value);
    }
    notes_warn(point);
}

/* The last slices end with the last operation. The resources were sampled then, and are still the fabric's. */
static int over_time_end(struct point *point) {
    struct hx_run *run = &point->run;
    if (point->config->run.interval_ns == 0) {
        return 0;
    }
    for (size_t i = 0; i < point->tally_count; i++) {
        struct hx_sample sample = {.now_ns = point->tallies[i]->totals.end_ns};
        if (run->resources_at > 0) {
            sample.resources = run->resources;
            sample.resource_count = run->resource_count;
            sample.since_ns = run->start_ns;
        }
        if (point->tallies[i]->totals.operations > 0) {
            hx_tally_sample(point->tallies[i], sample, &point->config->topology, run->worked_ns);
        }
    }
    point->measured->over_time = hx_over_time_new(point->config->run.interval_ns);
    return point->measured->over_time ? 0 : DM_ERR_NO_MEMORY;
}

static int collect(struct point *point, struct dm_err *err) {
    struct hx_measured *measured = point->measured;
    struct hx_run *run = &point->run;
    measured->counters = calloc(run->counter_count + 1, sizeof(*measured->counters));
    if (!measured->counters || over_time_end(point) < 0 || resources_take(point) < 0) {
        return fail_no_memory(err);
    }
    struct hx_totals *totals = &measured->totals;
    for (size_t i = 0; i < point->tally_count; i++) {
        hx_measured_add(measured, point->tallies[i], run->counter_count);
    }
    if (totals->operations == 0) {
        return dm_fail(err, DM_ERR_INVALID,
                       "no operation was measured: the workload ended within the warm-up; lower --warmup");
    }
    totals->start_ns = run->start_ns;
    totals->warmup_ns = run->start_ns - run->begin_ns;
    totals->drawn = totals->operations + run->warmup;
    for (unsigned cn = 0; cn < point->shape.topology->cns; cn++) {
        if (!point->cns[cn]) {
            continue; /* it belongs to another process */
        }
        uint64_t bytes = ix_cache_bytes(point->index, point->cns[cn]);
        totals->cache_bytes = bytes > totals->cache_bytes ? bytes : totals->cache_bytes;
        bytes = ix_cache_entry_bytes(point->index, point->cns[cn]);
        totals->cache_entry_bytes = bytes > totals->cache_entry_bytes ? bytes : totals->cache_entry_bytes;
        bytes = ix_rdwc_bytes(point->rdwcs[cn]);
        totals->rdwc_bytes = bytes > totals->rdwc_bytes ? bytes : totals->rdwc_bytes;
    }
    dm_memory_use(point->fabric, &totals->memory);
    notes_take(point);
    return hx_team_gather(point->config->team, measured, run->counter_count, err);
}

static int verify_entry(struct dm_ctx *ctx, void *arg) {
    struct setup_step *step = arg;
    struct point *point = step->point;
    return ix_verify(point->index, point->cns[0], ctx, &point->measured->report, &step->err);
}

static int index_verify(struct point *point, struct dm_err *err) {
    struct setup_step step = {0};
    hx_progress_phase(&point->progress, "verifying", 0);
    dm_fabric_setup(point->fabric); /* it costs no time, and neither faults nor a trace concern it */
    DM_TRY(setup_do(point, dm_first_cn(point->shape.topology), verify_entry, &step, "verifying", err));
    point->measured->verified = true;
    return 0;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static void point_close(struct point *point) {
    const struct dm_topology *topology = &point->config->topology;
    hx_progress_end(&point->progress);
    for (unsigned client = 0; point->workers && client < topology->clients; client++) {
        hx_worker_fini(&point->workers[client]);
    }
    for (unsigned cn = 0; point->cns && cn < topology->cns; cn++) {
        ix_close(point->index, point->cns[cn]);
    }
    for (unsigned cn = 0; point->rdwcs && cn < topology->cns; cn++) {
        ix_rdwc_close(point->rdwcs[cn]);
    }
    for (unsigned node = 0; point->servers && node < dm_first_cn(topology); node++) {
        ix_unserve(point->index, point->servers[node]);
    }
    hx_interrupt_watch(NULL);
    free(point->run.resources);
    free(point->run.slice_resources);
    free(point->run.worked_ns);
    dm_fabric_close(point->fabric);
    hx_fabric_settings_fini(&point->settings);
    wl_close(point->wl); /* removes an unfinished recording */
    hx_interrupt_remove(NULL);
    for (size_t i = 0; point->tallies && i < point->tally_count; i++) {
        hx_tally_free(point->tallies[i]);
    }
    free(point->tallies);
    free(point->tally_first);
    free(point->workers);
    free(point->cns);
    free(point->rdwcs);
    free(point->servers);
}

/* In real time: what else the host does. */
static void noise_look(struct point *point) {
    const struct hx_config *config = point->config;
    if (point->measured->is_virtual) {
        return;
    }
    hx_noise_look(&point->measured->noise, hx_noise_threads(config));
    if (!config->is_quiet && !config->is_repeated && hx_team_is_first(config->team)) {
        hx_noise_warn(&point->measured->noise);
    }
}

static int point_load(struct point *point, struct dm_err *err) {
    uint64_t begin = hx_cpu_ns();
    DM_TRY(keys_open(point, err));
    DM_TRY(fabric_open(point, err));
    noise_look(point);
    DM_TRY(servers_open(point, err));
    DM_TRY(index_load(point, err));
    point->measured->host.load_cpu_s = cpu_seconds_since(begin);
    return 0;
}

static int point_ask(struct point *point, struct dm_err *err) {
    DM_TRY(clients_run(point, err));
    DM_TRY(collect(point, err));
    if (point->measured->is_partial) {
        return 0; /* an index in the middle of operations is not verified, and its recording is not complete */
    }
    if (point->config->run.verify && hx_team_is_first(point->config->team)) {
        DM_TRY(index_verify(point, err));
    }
    return record_end(point, err);
}

static int serve_entry(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    return dm_serve_peers(ctx, 0);
}

static int point_serve(struct point *point, struct dm_err *err) {
    DM_TRY(fabric_open(point, err));
    DM_TRY(servers_open(point, err));
    unsigned node = 0;
    while (!hx_team_has(point->config->team, node)) {
        node++;
    }
    struct setup_step step = {0};
    return setup_do(point, node, serve_entry, &step, "serving", err);
}

int hx_serve(struct hx_config *config, struct dm_err *err) {
    struct point point = {.config = config, .index = config->index, .measured = hx_measured_new()};
    hx_progress_init(&point.progress, config->is_quiet);
    int rc = point.measured ? point_serve(&point, err) : fail_no_memory(err);
    point_close(&point);
    hx_measured_free(point.measured);
    return rc;
}

/* Opens a point and loads it. The caller closes it and frees the measurement, also after a failure. */
static int point_open(struct point *point, struct hx_config *config, struct hx_tracer *tracer, struct dm_err *err) {
    *point = (struct point){.config = config, .tracer = tracer, .index = config->index, .measured = hx_measured_new()};
    hx_progress_init(&point->progress, config->is_quiet);
    if (!point->measured) {
        return fail_no_memory(err);
    }
    return point_load(point, err);
}

int hx_measure(struct hx_config *config, struct hx_tracer *tracer, struct hx_measured **measured, struct dm_err *err) {
    uint64_t begin = hx_host_ns();
    struct point point;
    *measured = NULL;
    int rc = point_open(&point, config, tracer, err);
    uint64_t cpu_begin = hx_cpu_ns();
    rc = rc < 0 ? rc : point_ask(&point, err);
    double cpu_s = cpu_seconds_since(cpu_begin);
    point_close(&point);
    if (rc < 0) {
        hx_measured_free(point.measured);
        return rc;
    }
    point.measured->host.wall_s = seconds_since(begin);
    point.measured->host.run_cpu_s = cpu_s;
    *measured = point.measured;
    return 0;
}

/* The main function of a forked process: runs the operations of one configuration on the loaded index. Returns its exit
 * status. */
static int member_main(struct point *point, struct hx_config *config, size_t at, const struct hx_taker *taker) {
    struct dm_err err = {.text = ""};
    uint64_t begin = hx_host_ns(), cpu_begin = hx_cpu_ns();
    int rc = 0;
    hx_interrupt_install("run");
    dm_fabric_copied(point->fabric);
    if (config != point->config) {
        wl_close(point->wl);
        point->wl = NULL;
        rc = dm_fabric_resize(point->fabric, config->topology.clients, config->topology.clients_per_thread,
                              config->topology.mn_bytes, &err);
        point->config = config;
        rc = rc < 0 ? rc : workload_open(point, &err);
    }
    rc = rc < 0 ? rc : point_ask(point, &err);
    if (rc == 0) {
        point->measured->host.wall_s = seconds_since(begin);
        point->measured->host.run_cpu_s = cpu_seconds_since(cpu_begin);
        rc = taker->take(taker->arg, at, point->measured, &err);
    }
    return rc < 0 ? hx_report("run", &err) : HX_DONE;
}

static int member_run(struct point *point, struct hx_config *config, size_t at, const struct hx_taker *taker,
                      int *status) {
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGINT);
        _exit(getppid() == parent ? member_main(point, config, at, taker) : HX_INTERRUPTED);
    }
    int ended = 0;
    while (pid > 0 && waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
    }
    *status = WEXITSTATUS(ended);
    if (pid > 0 && WIFSIGNALED(ended)) {
        struct dm_err err;
        hx_fail_signal(&err, WTERMSIG(ended));
        *status = hx_report("run", &err);
    }
    return pid > 0 ? 0 : DM_ERR_IO;
}

int hx_measure_each(struct hx_config *const *configs, size_t count, const struct hx_taker *taker, struct dm_err *err) {
    struct point point;
    int rc = point_open(&point, configs[0], NULL, err), worst = HX_DONE;
    for (size_t i = 0; i < count && rc == 0; i++) {
        int status = HX_DONE;
        rc = member_run(&point, configs[i], i, taker, &status);
        rc = rc < 0 ? dm_fail(err, rc, "cannot start a process: %s", strerror(errno)) : 0;
        worst = status > worst ? status : worst;
    }
    point_close(&point);
    hx_measured_free(point.measured);
    return rc < 0 ? rc : worst;
}
