/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolving a configuration: names become tables, parameters get their values, sizes that follow from others are
 * filled in, and everything that can be refused without running is refused here.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/opt_json.h"
#include "harness/base/errors.h"
#include "harness/base/option_names.h"
#include "harness/run/config.h"
#include "harness/run/config_fields.h"
#include "harness/run/fabric_settings.h"

enum {
    PREVIEW_KEYS = 1000, /* enough keys for a workload to report its mix */
    SETTING_BYTES = 8,   /* the largest C type behind an option */
    PROBE_CHUNK_BYTES = 65536,
    PROBE_MN_BYTES = 4 * 1024 * 1024,
    MEMORY_GRAIN = 1024 * 1024 /* derived sizes are rounded up to this */
};

/* Where an option was set, as an error begins; the option itself if it has its default. */
static const char *origin_of(const struct hx_config *config, const char *name, char *buffer, size_t capacity) {
    size_t position = hx_option_position(name);
    if (position < HX_OPTIONS_MAX && config->origins[position]) {
        return config->origins[position];
    }
    return hx_option_typed(name, buffer, capacity);
}

static bool was_set(const struct hx_config *config, const char *name) {
    return config->origins[hx_option_position(name)] != NULL;
}

/* Puts the origin of an option before the message in err. */
static int fail_at(const struct hx_config *config, const char *option, int code, struct dm_err *err) {
    char buffer[64];
    return dm_fail_in(err, code, "%s", origin_of(config, option, buffer, sizeof(buffer)));
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static int resolve_index(struct hx_config *config, struct dm_err *err) {
    config->index = ix_find(config->run.index);
    if (config->index) {
        return 0;
    }
    const char *names[64];
    size_t count = 0;
    for (const struct ix_ops *const *ops = ix_all(); *ops && count < DM_ARRAY_LEN(names); ops++) {
        names[count++] = (*ops)->name;
    }
    return fail_at(config, "index", hx_fail_unknown(err, "index", config->run.index, names, count), err);
}

static int resolve_transport(struct hx_config *config, struct dm_err *err) {
    config->transport = dm_transport_find(config->run.transport);
    if (config->transport) {
        return 0;
    }
    const char *names[16];
    size_t count = 0;
    for (const struct dm_transport_info *const *info = dm_transports(); *info && count < DM_ARRAY_LEN(names); info++) {
        names[count++] = (*info)->name;
    }
    return fail_at(config, "transport", hx_fail_unknown(err, "transport", config->run.transport, names, count), err);
}

static int resolve_profile(struct hx_config *config, struct dm_err *err) {
    config->profile_hash[0] = '\0';
    if (config->transport->caps & DM_CAP_PROFILE) {
        int rc = hx_file_error(dm_profile_check(config->run.profile, config->profile_hash, err), err);
        return rc < 0 ? fail_at(config, "profile", rc, err) : 0;
    }
    static const struct dm_opt row = {
        .name = "profile", .type = DM_OPT_STRING, .offset = offsetof(struct hx_settings, profile)};
    const struct dm_opt table[] = {row, DM_OPT_END};
    return dm_opt_set(table, &config->run, "profile", "", err);
}

/* ---- parameters of the index and the transport ------------------------------------------------------------------ */

static int apply_pending(const struct dm_opt *table, void *values, const struct hx_pending *entry, struct dm_err *err) {
    const struct dm_opt *row = dm_opt_find(table, entry->name);
    if (!row) {
        const char *names[128];
        size_t count = 0;
        for (const struct dm_opt *known = table; known->name && count < DM_ARRAY_LEN(names); known++) {
            names[count++] = known->name;
        }
        int rc =
            hx_fail_unknown(err, entry->transport ? "transport option" : "index parameter", entry->name, names, count);
        return dm_fail_in(err, rc, "%s", entry->where);
    }
    struct dm_opt named = *row;
    char name[128];
    const struct dm_opt single[] = {named, DM_OPT_END};
    if (entry->where[0] != '-') {
        json_t *object = json_pack("{s:O}", row->name, entry->value);
        int rc = object ? dm_opt_from_json(single, values, object, entry->where, err)
                        : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
        json_decref(object);
        return rc;
    }
    snprintf(name, sizeof(name), "%s %s", entry->where + 2, row->name); /* "--set NAME: ..." in errors */
    named.name = name;
    const struct dm_opt typed[] = {named, DM_OPT_END};
    return dm_opt_set(typed, values, name, json_string_value(entry->value), err);
}

static int resolve_pending(struct hx_config *config, struct dm_err *err) {
    static const struct dm_opt none[] = {DM_OPT_END};
    for (size_t i = 0; i < config->pending_count; i++) {
        const struct hx_pending *entry = &config->pending[i];
        const struct dm_opt *table = entry->transport ? config->transport->options : config->index->params;
        DM_TRY(apply_pending(table ? table : none, entry->transport ? config->transport_options : config->index_params,
                             entry, err));
    }
    return 0;
}

static int resolve_parameters(struct hx_config *config, struct dm_err *err) {
    size_t option_bytes = SETTING_BYTES;
    for (const struct dm_opt *row = config->transport->options; row && row->name; row++) {
        option_bytes = row->offset + SETTING_BYTES > option_bytes ? row->offset + SETTING_BYTES : option_bytes;
    }
    config->index_params = calloc(1, config->index->params_bytes + 1);
    config->transport_options = calloc(1, option_bytes);
    if (!config->index_params || !config->transport_options) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    if (config->index->params) {
        dm_opt_defaults(config->index->params, config->index_params);
    }
    if (config->transport->options) {
        dm_opt_defaults(config->transport->options, config->transport_options);
    }
    return resolve_pending(config, err);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

/* Index servers that an index gets if it needs them and the user gives no number: a pair, which an index that needs one
 * can also use.
 */
enum { DEFAULT_SERVERS = 2 };

static int resolve_topology(struct hx_config *config, struct dm_err *err) {
    struct hx_settings *run = &config->run;
    if ((config->index->caps & IX_CAP_SERVERS) && run->servers == 0) {
        if (was_set(config, "servers")) {
            dm_fail(err, DM_ERR_INVALID, "index %s needs at least 1 index server", config->index->name);
            return fail_at(config, "servers", DM_ERR_INVALID, err);
        }
        run->servers = DEFAULT_SERVERS;
    }
    if (run->clients < run->cns) {
        dm_fail(err, DM_ERR_INVALID, "%" PRIu64 " clients are fewer than the %" PRIu64 " compute nodes (--cns)",
                run->clients, run->cns);
        return fail_at(config, "clients", DM_ERR_INVALID, err);
    }
    if (!was_set(config, "warmup")) {
        run->warmup = run->ops / 10;
    }
    config->topology = (struct dm_topology){
        .mns = (unsigned)run->mns,
        .servers = (unsigned)run->servers,
        .cns = (unsigned)run->cns,
        .mn_cores = (unsigned)run->mn_cores,
        .server_cores = (unsigned)run->server_cores,
        .clients = (unsigned)run->clients,
        .clients_per_thread = (unsigned)run->coroutines,
    };
    return 0;
}

/* The size of on-chip memory depends on the device: a fabric with little memory is opened to ask for it. It has all
 * nodes and clients, because options of the transport may name them. */
static int resolve_chip(struct hx_config *config, struct dm_err *err) {
    if (!(config->transport->caps & DM_CAP_CHIP_MEMORY)) {
        return 0;
    }
    struct hx_fabric_settings settings;
    DM_TRY(hx_fabric_settings_init(&settings, config, err));
    settings.config.topology.mn_bytes = PROBE_MN_BYTES;
    settings.config.topology.chip_bytes = UINT32_MAX;
    settings.config.chunk_bytes = PROBE_CHUNK_BYTES;
    struct dm_fabric *fabric = NULL;
    int rc = dm_fabric_open(&settings.config, &fabric, err);
    if (rc == 0) {
        config->topology.chip_bytes = dm_fabric_topology(fabric)->chip_bytes;
    }
    dm_fabric_close(fabric);
    hx_fabric_settings_fini(&settings);
    return rc;
}

/* Refuses an index that lacks an operation of the workload: all that such a run measures is refused operations. */
static int check_operations(const struct hx_config *config, struct dm_err *err) {
    static const unsigned needs[WL_OP_KIND_COUNT] = {
        [WL_UPDATE] = IX_CAP_INSERT, [WL_INSERT] = IX_CAP_INSERT, [WL_SCAN] = IX_CAP_SCAN,
        [WL_RMW] = IX_CAP_INSERT,    [WL_DELETE] = IX_CAP_DELETE,
    };
    for (int kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        if (config->share[kind] > 0 && (config->index->caps & needs[kind]) != needs[kind]) {
            dm_fail(err, DM_ERR_INVALID, "index %s has no %s, which the workload needs", config->index->name,
                    wl_op_names[kind]);
            return fail_at(config, "workload", DM_ERR_INVALID, err);
        }
    }
    return 0;
}

/* Errors of the workload begin with the option, or have it after the workload's name; it is replaced by where the user
 * set it. Errors about a file, or about the contents of a property file, are left as they are. */
static int fail_workload(const struct hx_config *config, int code, struct dm_err *err) {
    struct dm_err cause = *err;
    for (const char *part = cause.text, *colon; part; part = colon ? colon + strlen(": ") : NULL) {
        char name[64], buffer[64];
        colon = strstr(part, ": ");
        size_t length = strcspn(part, ":");
        snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : 0), part);
        bool is_option = part[length] == ':' && dm_opt_find(wl_options, name);
        if (is_option && (part == cause.text || was_set(config, name))) {
            return dm_fail(err, code, "%s%s", origin_of(config, name, buffer, sizeof(buffer)), part + length);
        }
    }
    return code;
}

static bool is_text(const char *text) {
    return text && text[0];
}

/* Refuses combinations of options that the workload does not check. */
static int check_load(const struct hx_config *config, struct dm_err *err) {
    const struct hx_settings *run = &config->run;
    const struct wl_config *workload = &config->workload;
    bool has_file = is_text(workload->trace) || is_text(workload->replay);
    if (run->arrival == HX_ARRIVAL_POISSON && run->rate == 0) {
        dm_fail(err, DM_ERR_INVALID, "goes with an open loop only; give it a --rate");
        return fail_at(config, "arrival", DM_ERR_INVALID, err);
    }
    if (is_text(run->record) && is_text(workload->replay)) {
        dm_fail(err, DM_ERR_INVALID, "%s is a recording already: copy it, or leave --replay out", workload->replay);
        return fail_at(config, "record", DM_ERR_INVALID, err);
    }
    if (was_set(config, "theta") && workload->theta == 0 && !has_file) {
        dm_fail(err, DM_ERR_INVALID, "0 must be above 0 and below 1; keys without skew are --distribution uniform");
        return fail_at(config, "theta", DM_ERR_INVALID, err);
    }
    if (was_set(config, "keys") && workload->keys == 0 && !has_file) {
        dm_fail(err, DM_ERR_INVALID, "0 records leave nothing to ask for; load at least 1");
        return fail_at(config, "keys", DM_ERR_INVALID, err);
    }
    return 0;
}

/* A trace or a recording has an end. Unless the user sets ops, the run takes a complete recording, or as much of a
 * trace as the default of ops covers; the usual share of that is warm-up. */
static int resolve_length(struct hx_config *config, uint64_t length, struct dm_err *err) {
    struct hx_settings *run = &config->run;
    if (length == 0) {
        return 0;
    }
    if (!was_set(config, "warmup") && (!was_set(config, "ops") || run->ops + run->warmup > length)) {
        run->warmup = length - (length * 10 + 10) / 11; /* so that it is a tenth of the rest */
    }
    if (run->warmup >= length) {
        dm_fail(err, DM_ERR_INVALID, "there are only %" PRIu64 " operations in %s", length,
                config->workload.replay[0] ? config->workload.replay : config->workload.trace);
        return fail_at(config, "warmup", DM_ERR_INVALID, err);
    }
    if (!was_set(config, "ops")) {
        run->ops = length - run->warmup;
    }
    return 0;
}

/* A property file may say how many operations there are; then it is opened again for so many. */
static int workload_open(struct hx_config *config, const struct wl_config *view, struct wl **wl, struct dm_err *err) {
    struct hx_settings *run = &config->run;
    DM_TRY(wl_open(view, run->ops + run->warmup, config->topology.clients, run->seed, wl, err));
    uint64_t asked = wl_operation_count(*wl);
    if (asked == 0 || asked == run->ops || was_set(config, "ops")) {
        return 0;
    }
    wl_close(*wl);
    run->ops = asked;
    run->warmup = was_set(config, "warmup") ? run->warmup : asked / 10;
    return wl_open(view, run->ops + run->warmup, config->topology.clients, run->seed, wl, err);
}

/* Opens the workload to learn its effective settings and the shares of its operations. If it has many keys, it is
 * opened with a few of them and closed again; otherwise it is kept for the run, so that a trace is read once. */
static int resolve_workload(struct hx_config *config, struct dm_err *err) {
    DM_TRY(check_load(config, err));
    struct wl_config preview = config->workload;
    bool has_file = is_text(preview.trace) || is_text(preview.replay); /* the file defines the keys */
    preview.keys = !has_file && preview.keys > PREVIEW_KEYS ? PREVIEW_KEYS : preview.keys;
    struct wl *wl = NULL;
    int rc = workload_open(config, &preview, &wl, err);
    if (rc == DM_ERR_INVALID && preview.keys != config->workload.keys) {
        preview.keys = config->workload.keys; /* what a few keys cannot have, all of them may */
        rc = workload_open(config, &preview, &wl, err);
    }
    if (rc < 0) {
        rc = hx_file_error(rc, err);
        return err ? fail_workload(config, rc, err) : rc;
    }
    bool is_whole = preview.keys == config->workload.keys;
    struct wl_config effective;
    dm_opt_copy(wl_options, &effective, wl_effective(wl));
    effective.keys = is_whole ? effective.keys : config->workload.keys;
    dm_opt_free(wl_options, &config->workload);
    config->workload = effective;
    wl_mix(wl, config->share);
    rc = resolve_length(config, wl_length(wl), err);
    if (is_whole) {
        config->opened = wl;
    } else {
        wl_close(wl);
    }
    return rc < 0 ? rc : check_operations(config, err);
}

static uint64_t round_up(uint64_t bytes, uint64_t grain) {
    return (bytes + grain - 1) / grain * grain;
}

/* Bytes in the form in which a user types them. */
static const char *bytes_text(uint64_t bytes, char *text, size_t capacity) {
    snprintf(text, capacity, "%" PRIu64 "MiB", round_up(bytes, MEMORY_GRAIN) / MEMORY_GRAIN);
    return text;
}

/* The keys that are loaded. */
static uint64_t keys_loaded(const struct wl_config *workload) {
    return workload->loaded > 0 && workload->loaded < 1 ? (uint64_t)((double)workload->keys * workload->loaded)
                                                        : workload->keys;
}

/* The keys that the run is expected to insert. Upserts insert at most those that can be chosen and are not loaded. */
static uint64_t keys_inserted(const struct hx_config *config) {
    const struct wl_config *workload = &config->workload;
    double operations = (double)(config->run.ops + config->run.warmup);
    double absent = (double)(workload->keys - keys_loaded(workload));
    bool upserts = is_text(workload->upserts) && strcmp(workload->upserts, "on") == 0;
    double upserted = upserts ? fmin(absent, config->share[WL_UPDATE] * operations) : 0;
    return (uint64_t)(ceil(config->share[WL_INSERT] * operations) + ceil(upserted));
}

/* Sizes memory nodes: what the index needs for all keys at the end of the run, and a chunk for every thread that
 * allocates. */
static int resolve_memory(struct hx_config *config, struct dm_err *err) {
    struct hx_settings *run = &config->run;
    uint64_t keys = keys_loaded(&config->workload);
    config->shape = (struct ix_shape){
        .key_bytes = (uint32_t)run->key_bytes,
        .value_bytes = (uint32_t)run->value_bytes,
        .cache_bytes = run->cache_bytes,
        .expected_keys = keys + keys_inserted(config),
        .chunk_bytes = run->chunk_bytes,
        .topology = &config->topology,
    };
    uint64_t threads = run->servers * run->server_cores + run->mn_cores + 1;
    for (unsigned cn = 0; cn < config->topology.cns; cn++) {
        threads += hx_cn_threads(&config->topology, cn);
    }
    const struct ix_ops *index = config->index;
    uint64_t least = ix_memory_needed(index, config->index_params, &config->shape, keys) + DM_RESERVED_BYTES;
    uint64_t wanted = ix_memory_needed(index, config->index_params, &config->shape, config->shape.expected_keys);
    uint64_t implied = round_up(wanted + DM_RESERVED_BYTES + threads * run->chunk_bytes, MEMORY_GRAIN);
    if (run->mn_bytes == 0) {
        run->mn_bytes = implied;
    } else if (run->mn_bytes < least) {
        char need[32];
        dm_fail(err, DM_ERR_INVALID, "too small for %" PRIu64 " keys in index %s: a memory node needs at least %s",
                keys, index->name, bytes_text(least, need, sizeof(need)));
        return fail_at(config, "mn_memory", DM_ERR_INVALID, err);
    }
    if ((double)run->mn_bytes > hx_run_option("mn_memory")->max) {
        char need[32];
        dm_fail(err, DM_ERR_INVALID, "a memory node would need %s, which is more than --mn-memory can be",
                bytes_text(run->mn_bytes, need, sizeof(need)));
        return fail_at(config, "keys", DM_ERR_INVALID, err);
    }
    config->topology.mn_bytes = run->mn_bytes;
    config->is_memory_implied = run->mn_bytes == implied;
    return 0;
}

/* An untimed part is left out where the warm-up is not longer, or where time is real. */
static void resolve_timed_warmup(struct hx_config *config) {
    struct hx_settings *run = &config->run;
    if (run->timed_warmup >= run->warmup || !(config->transport->caps & DM_CAP_VIRTUAL_TIME)) {
        run->timed_warmup = 0;
    }
    run->warmup_samples = run->timed_warmup > 0 ? run->warmup_samples : 0;
}

/* The keys of a trace have no numbers to draw from. */
static int check_load_reads(const struct hx_config *config, struct dm_err *err) {
    if (config->run.load_reads > 0 && is_text(config->workload.trace)) {
        dm_fail(err, DM_ERR_INVALID, "only of a workload whose keys are generated, not of a trace's");
        return fail_at(config, "load_reads", DM_ERR_INVALID, err);
    }
    return 0;
}

int hx_config_resolve(struct hx_config *config, struct dm_err *err) {
    DM_TRY(resolve_index(config, err));
    DM_TRY(resolve_transport(config, err));
    DM_TRY(resolve_profile(config, err));
    DM_TRY(resolve_parameters(config, err));
    DM_TRY(resolve_topology(config, err));
    DM_TRY(resolve_chip(config, err));
    DM_TRY(resolve_workload(config, err));
    DM_TRY(check_load_reads(config, err));
    resolve_timed_warmup(config);
    DM_TRY(resolve_memory(config, err));
    return ix_check(config->index, config->index_params, &config->shape, err);
}
