/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the workload contract for its three sources: the core workload, a trace, a recorded run.
 */
#include "workloads/workload.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/log.h"
#include "workloads/core_workload.h"
#include "workloads/record.h"
#include "workloads/trace.h"

enum source { SOURCE_CORE, SOURCE_TRACE, SOURCE_REPLAY };

struct wl {
    struct wl_core core; /* first, because members of it are aligned to cache lines */
    enum source source;
    struct wl_config effective;
    struct wl_spec spec;
    struct wl_keymap map;
    struct wl_trace *trace;
    struct wl_replay *replay;
    uint64_t *trace_keys; /* the keys to load; NULL when there are none or after their release */
    uint64_t trace_key_count;
    bool trace_keys_made;
    struct wl_recorder *recorder;
    uint64_t seed, operations;
    unsigned clients;
    double share[WL_OP_KIND_COUNT];
    uint32_t scan_max;
};

struct wl_stream {
    struct wl_core_stream core;
    struct wl *wl;
    struct wl_replay_cursor replay;
    struct wl_recorder_stream *recorder;
    struct dm_prng loaded; /* of wl_loaded_key */
};

static const char *text_or_empty(const char *text) {
    return text != NULL ? text : "";
}

/* The configuration with "" for NULL. The strings still belong to the caller. */
static struct wl_config config_view(const struct wl_config *config) {
    struct wl_config view = *config;
    view.workload = text_or_empty(config->workload);
    view.properties = text_or_empty(config->properties);
    view.mix = text_or_empty(config->mix);
    view.distribution = text_or_empty(config->distribution);
    view.insert_order = text_or_empty(config->insert_order);
    view.scan_distribution = text_or_empty(config->scan_distribution);
    view.key_set = text_or_empty(config->key_set);
    view.upserts = text_or_empty(config->upserts);
    view.insert_ranges = text_or_empty(config->insert_ranges);
    view.trace = text_or_empty(config->trace);
    view.replay = text_or_empty(config->replay);
    return view;
}

static int spec_make(struct wl_spec *spec, const struct wl_config *config, struct dm_err *err) {
    const char *name = config->workload[0] != '\0' ? config->workload : "a";
    wl_spec_defaults(spec);
    DM_TRY(wl_spec_apply_name(spec, name, err));
    if (config->properties[0] != '\0') {
        DM_TRY(wl_spec_apply_properties(spec, config->properties, err));
    }
    return wl_spec_resolve(spec, config, err);
}

/* Writes the resolved members of a core workload into the effective configuration. */
static int effective_fill(struct wl *wl, struct dm_err *err) {
    const struct wl_spec *spec = &wl->spec;
    struct wl_config *effective = &wl->effective;
    char mix[256];
    wl_spec_format_mix(spec->share, mix, sizeof mix);
    if (effective->workload[0] == '\0') {
        DM_TRY(dm_opt_set(wl_options, effective, "workload", "a", err));
    }
    DM_TRY(dm_opt_set(wl_options, effective, "mix", mix, err));
    DM_TRY(dm_opt_set(wl_options, effective, "distribution", wl_dist_names[spec->dist], err));
    DM_TRY(dm_opt_set(wl_options, effective, "insert_order", spec->ordered ? "ordered" : "hashed", err));
    DM_TRY(dm_opt_set(wl_options, effective, "scan_distribution", spec->scan_zipfian ? "zipfian" : "uniform", err));
    DM_TRY(dm_opt_set(wl_options, effective, "upserts", spec->upserts ? "on" : "off", err));
    DM_TRY(dm_opt_set(wl_options, effective, "insert_ranges", spec->client_ranges ? "client" : "shared", err));
    if (effective->key_set[0] == '\0') {
        DM_TRY(dm_opt_set(wl_options, effective, "key_set", wl_spec_named_key_set(effective->workload), err));
    }
    wl->spec.key_set = effective->key_set; /* the caller's strings do not outlive wl_open */
    effective->loaded = spec->loaded;
    effective->trace_ops_per_client = spec->trace_ops;
    effective->theta = spec->theta;
    effective->scan_min = spec->scan_min;
    effective->scan_max = spec->scan_max;
    effective->keys = spec->record_count;
    return 0;
}

/* A key set numbers its keys from 0. */
static int key_set_check(const struct wl_spec *spec, struct dm_err *err) {
    if (spec->insert_start > 0 || spec->insert_count > 0) {
        return dm_fail(err, DM_ERR_INVALID,
                       "key_set: insertstart and insertcount need hashed or ordered keys, not a key set");
    }
    return 0;
}

static double inserts_expected(const struct wl *wl) {
    return (double)wl->operations * wl->spec.share[WL_INSERT];
}

/* More events than the expected number, beyond which hardly any run gets: by five standard deviations. */
static uint64_t at_most(double expected) {
    return (uint64_t)(expected + 5.0 * sqrt(expected)) + 1;
}

/* Of a mix, kinds are drawn, and half of all runs insert more than expected. */
static uint64_t grown_inserts(const struct wl *wl) {
    double expected = inserts_expected(wl);
    return wl->spec.share[WL_INSERT] > 0.0 && wl->spec.share[WL_INSERT] < 1.0 ? at_most(expected) : (uint64_t)expected;
}

/* Refuses a key set that has too few free keys for the inserts of the run. */
static int check_free_keys(const struct wl *wl, const char *key_set, struct dm_err *err) {
    double inserts = inserts_expected(wl);
    uint64_t free_keys = wl_keymap_free_keys(&wl->map);
    if (inserts <= (double)free_keys) {
        return 0;
    }
    return dm_fail(err, DM_ERR_INVALID, "key_set %s: %.0f inserts are expected, but only %llu keys are free", key_set,
                   inserts, (unsigned long long)free_keys);
}

static int keymap_open(struct wl *wl, const struct wl_config *config, struct dm_err *err) {
    struct wl_spec *spec = &wl->spec;
    bool all_of_file = wl_keyset_is_file(spec->key_set) && config->keys == 0;
    if (spec->key_set[0] != '\0') {
        DM_TRY(key_set_check(spec, err));
    }
    DM_TRY(wl_keymap_open(&wl->map, spec->key_set, all_of_file ? 0 : spec->record_count, grown_inserts(wl),
                          spec->ordered, wl->seed, err));
    if (spec->key_set[0] != '\0') {
        spec->record_count = wl->map.count;
        DM_TRY(check_free_keys(wl, spec->key_set, err));
    } else {
        wl->map.first = spec->insert_start;
        wl->map.count = spec->insert_count > 0 ? spec->insert_count : spec->record_count;
    }
    uint64_t loaded = (uint64_t)((double)wl->map.count * spec->loaded);
    wl_keymap_load_first(&wl->map, loaded > 0 ? loaded : 1);
    return 0;
}

static int core_open(struct wl *wl, const struct wl_config *config, struct dm_err *err) {
    DM_TRY(spec_make(&wl->spec, config, err));
    DM_TRY(keymap_open(wl, config, err));
    if (wl_core_open(&wl->core, &wl->spec, &wl->map, wl->operations, wl->clients) < 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "workload: no memory");
    }
    if (wl->spec.upserts && wl_core_present_make(&wl->core, &wl->map) < 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "workload: no memory for a bit a key");
    }
    memcpy(wl->share, wl->spec.share, sizeof wl->share);
    wl->scan_max = wl->share[WL_SCAN] > 0.0 ? (uint32_t)wl->spec.scan_max : 0;
    return effective_fill(wl, err);
}

static void shares_from_counts(struct wl *wl, const uint64_t by_kind[WL_OP_KIND_COUNT], uint64_t total) {
    for (unsigned kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        wl->share[kind] = total > 0 ? (double)by_kind[kind] / (double)total : 0.0;
    }
}

static int trace_open(struct wl *wl, const struct wl_config *config, struct dm_err *err) {
    DM_TRY(wl_trace_open(config->trace, config->lenient, wl->operations, &wl->trace, err));
    const struct wl_trace_summary *summary = wl_trace_summary_of(wl->trace);
    shares_from_counts(wl, summary->by_kind, summary->requests);
    if (config->keys > 0 && config->keys != summary->keys_loaded) {
        dm_log(DM_LOG_INFO, "keys: the trace determines the %" PRIu64 " keys to load; %" PRIu64 " is ignored",
               summary->keys_loaded, config->keys);
    }
    wl->effective.keys = summary->keys_loaded;
    return 0;
}

static int source_open(struct wl *wl, const struct wl_config *config, struct dm_err *err) {
    if (config->trace[0] != '\0') {
        wl->source = SOURCE_TRACE;
        return trace_open(wl, config, err);
    }
    wl->source = SOURCE_CORE;
    return core_open(wl, config, err);
}

/* Checks the options that would change what the recorded operations find. */
static int replay_check(const struct wl *wl, const struct wl_config *asked, const struct wl_config *recorded,
                        struct dm_err *err) {
    unsigned clients = wl_replay_info(wl->replay)->clients;
    if (asked->key_set[0] != '\0' && strcmp(asked->key_set, recorded->key_set) != 0) {
        return dm_fail(err, DM_ERR_INVALID, "key_set: %s was recorded with '%s', not '%s'; leave key_set out",
                       asked->replay, recorded->key_set, asked->key_set);
    }
    if (asked->keys > 0 && asked->keys != recorded->keys) {
        dm_log(DM_LOG_INFO, "keys: %s was recorded with %" PRIu64 " keys, which are loaded", asked->replay,
               recorded->keys);
    }
    if (wl->clients > clients) {
        dm_log(DM_LOG_WARN, "%s was recorded by %u clients: the other %u of this run have nothing to do", asked->replay,
               clients, wl->clients - clients);
    }
    return 0;
}

/* The keys of a replay come from the recorded configuration, its operations from the file. */
static int replay_open(struct wl *wl, const struct wl_config *config, struct dm_err *err) {
    struct wl_config recorded;
    dm_opt_defaults(wl_options, &recorded);
    int rc = wl_replay_open(config->replay, &recorded, &wl->replay, err);
    if (rc == 0) {
        rc = replay_check(wl, config, &recorded, err);
    }
    if (rc == 0) {
        const struct wl_record_info *info = wl_replay_info(wl->replay);
        wl->seed = info->seed;
        wl->operations = info->operations;
        dm_opt_free(wl_options, &wl->effective);
        dm_opt_copy(wl_options, &wl->effective, &recorded);
        rc = dm_opt_set(wl_options, &wl->effective, "replay", config->replay, err);
    }
    if (rc == 0) {
        rc = source_open(wl, &recorded, err);
    }
    if (rc == 0) {
        const struct wl_record_info *info = wl_replay_info(wl->replay);
        wl->source = SOURCE_REPLAY;
        shares_from_counts(wl, info->by_kind, info->recorded);
        wl->scan_max = info->scan_max;
    }
    dm_opt_free(wl_options, &recorded);
    return rc;
}

int wl_open(const struct wl_config *config, uint64_t operations, unsigned clients, uint64_t seed, struct wl **wl,
            struct dm_err *err) {
    struct wl_config view = config_view(config);
    *wl = NULL;
    struct wl *opened = aligned_alloc(_Alignof(struct wl), sizeof *opened);
    if (opened == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "workload: no memory");
    }
    memset(opened, 0, sizeof *opened);
    opened->seed = seed;
    opened->operations = operations;
    opened->clients = clients;
    dm_opt_copy(wl_options, &opened->effective, &view);
    int rc = view.replay[0] != '\0' ? replay_open(opened, &view, err) : source_open(opened, &view, err);
    if (rc < 0) {
        wl_close(opened);
        return rc;
    }
    *wl = opened;
    return 0;
}

int wl_partition(struct wl *wl, unsigned part, unsigned parts, struct dm_err *err) {
    if (parts == 1) {
        return 0;
    }
    if (wl->source != SOURCE_CORE) {
        return dm_fail(err, DM_ERR_UNSUPPORTED, "traces and recordings cannot be split over several processes");
    }
    wl->core.part = part;
    wl->core.parts = parts;
    return 0;
}

void wl_close(struct wl *wl) {
    if (wl == NULL) {
        return;
    }
    wl_recorder_abandon(wl->recorder);
    wl_trace_close(wl->trace);
    wl_replay_close(wl->replay);
    wl_keymap_close(&wl->map);
    free(wl->trace_keys);
    wl_core_close(&wl->core);
    dm_opt_free(wl_options, &wl->effective);
    free(wl);
}

const uint64_t *wl_keys(struct wl *wl, uint64_t *count) {
    if (wl->trace == NULL) {
        return wl_keymap_load(&wl->map, count);
    }
    if (!wl->trace_keys_made) {
        wl->trace_keys = wl_trace_keys(wl->trace, &wl->trace_key_count);
        wl->trace_keys_made = true;
    }
    *count = wl->trace_key_count;
    return wl->trace_keys;
}

int wl_keys_to_come(struct wl *wl, const uint64_t **keys, uint64_t *count) {
    uint64_t inserts = 0;
    *keys = NULL;
    *count = 0;
    if (wl->source != SOURCE_CORE) {
        return DM_ERR_UNSUPPORTED;
    }
    if (wl->core.range > 0) {
        uint64_t ranges = (at_most((double)wl->core.range) + wl->core.range - 1) / wl->core.range; /* of a client */
        inserts = ranges * wl->core.range * wl->clients;
    } else if (wl->spec.share[WL_INSERT] > 0.0) {
        inserts = at_most(inserts_expected(wl));
    }
    return wl_keymap_to_come(&wl->map, wl->spec.upserts, inserts, keys, count);
}

void wl_keys_release(struct wl *wl) {
    wl_keymap_load_release(&wl->map);
    free(wl->trace_keys);
    wl->trace_keys = NULL;
    wl->trace_keys_made = false;
}

const struct wl_config *wl_effective(const struct wl *wl) {
    return &wl->effective;
}

bool wl_is_own_key_set(const char *workload, const char *key_set) {
    const char *own = wl_spec_named_key_set(text_or_empty(workload));
    return own[0] != '\0' && strcmp(own, text_or_empty(key_set)) == 0;
}

uint64_t wl_length(const struct wl *wl) {
    switch (wl->source) {
    case SOURCE_TRACE:
        return wl_trace_summary_of(wl->trace)->requests;
    case SOURCE_REPLAY:
        return wl_replay_info(wl->replay)->recorded;
    case SOURCE_CORE:
        break;
    }
    return 0;
}

uint64_t wl_operation_count(const struct wl *wl) {
    return wl->source == SOURCE_CORE ? wl->spec.operation_count : 0;
}

void wl_mix(const struct wl *wl, double share[WL_OP_KIND_COUNT]) {
    memcpy(share, wl->share, sizeof wl->share);
}

uint32_t wl_scan_max(const struct wl *wl) {
    return wl->scan_max;
}

struct wl_stream *wl_stream_open(struct wl *wl, unsigned client) {
    struct wl_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        return NULL;
    }
    stream->wl = wl;
    stream->loaded = dm_prng_stream(wl->seed, "loaded keys", client);
    switch (wl->source) {
    case SOURCE_CORE:
        stream->core = wl_core_stream_make(&wl->core, dm_prng_stream(wl->seed, "workload", client), client);
        break;
    case SOURCE_REPLAY:
        stream->replay = wl_replay_cursor_make(wl->replay, client, wl->clients);
        break;
    case SOURCE_TRACE:
        break;
    }
    if (wl->recorder != NULL) {
        stream->recorder = wl_recorder_stream_open(wl->recorder, client);
        if (stream->recorder == NULL) {
            free(stream);
            return NULL;
        }
    }
    return stream;
}

void wl_stream_close(struct wl_stream *stream) {
    if (stream != NULL) {
        wl_recorder_stream_close(stream->recorder);
        free(stream);
    }
}

int wl_next(struct wl_stream *stream, struct wl_op *op) {
    int rc;
    if (dm_likely(stream->wl->source == SOURCE_CORE)) {
        rc = wl_core_next(&stream->core, op);
    } else if (stream->wl->source == SOURCE_TRACE) {
        rc = wl_trace_next(stream->wl->trace, op);
    } else {
        rc = wl_replay_next(&stream->replay, op);
        op->upsert = rc == 0 && stream->wl->spec.upserts && (op->kind == WL_INSERT || op->kind == WL_UPDATE);
    }
    if (dm_unlikely(stream->recorder != NULL) && rc == 0) {
        wl_recorder_add(stream->recorder, op);
    }
    return rc;
}

uint64_t wl_loaded_key(struct wl_stream *stream) {
    const struct wl_keymap *map = &stream->wl->map;
    return wl_keymap_key(map, map->first + dm_prng_below(&stream->loaded, map->load_numbers));
}

void wl_done(struct wl_stream *stream, const struct wl_op *op, int outcome) {
    if (stream->wl->source == SOURCE_CORE) {
        wl_core_done(&stream->wl->core, op, outcome);
    }
}

void wl_value(uint64_t key, uint64_t version, void *value, uint32_t bytes) {
    uint64_t word = dm_mix64(key ^ dm_mix64(version));
    struct dm_prng prng = {.state = word};
    unsigned char *to = value;
    while (bytes > 0) {
        uint32_t part = bytes < sizeof word ? bytes : (uint32_t)sizeof word;
        memcpy(to, &word, part);
        to += part;
        bytes -= part;
        word = dm_prng_u64(&prng);
    }
}

int wl_record(struct wl *wl, const char *path, struct dm_err *err) {
    struct wl_record_info info = {.seed = wl->seed, .operations = wl->operations, .clients = wl->clients};
    if (wl->recorder != NULL) {
        return dm_fail(err, DM_ERR_INVALID, "record %s: this run is already recorded", path);
    }
    return wl_recorder_open(path, &wl->effective, &info, &wl->recorder, err);
}

int wl_record_finish(struct wl *wl, struct dm_err *err) {
    struct wl_recorder *recorder = wl->recorder;
    wl->recorder = NULL;
    return wl_recorder_close(recorder, err);
}
