/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves a workload from the defaults, the named workload or file, the properties and the options; and checks it.
 */
#include "workloads/spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/generators.h"

const char *const wl_dist_names[WL_DIST_COUNT] = {
#define X(name, text) text,
    WL_DISTRIBUTIONS(X)
#undef X
};

const char *const wl_op_names[WL_OP_KIND_COUNT] = {
#define X(name, text) text,
    WL_OPS(X)
#undef X
};

/* The names of the operations in a mix, as in YCSB, in the order of enum wl_op_kind. */
static const char *const mix_names[WL_OP_KIND_COUNT] = {"read", "update", "insert", "scan", "rmw", "delete"};

/* Shares are typed with a few digits; a sum that differs from 1 by more than this is a mistake. */
static const double SHARE_TOLERANCE = 1e-6;

void wl_spec_defaults(struct wl_spec *spec) {
    *spec = (struct wl_spec){
        .share = {[WL_GET] = 0.95, [WL_UPDATE] = 0.05},
        .dist = WL_DIST_UNIFORM,
        .theta = WL_ZIPFIAN_CONSTANT,
        .scan_min = 1,
        .scan_max = 1000,
        .hot_data = 0.2,
        .hot_operations = 0.8,
        .exponential_percentile = 95.0,
        .exponential_share = 0.8571428571,
        .key_set = "",
        .loaded = 1.0,
    };
}

unsigned wl_name_index(const char *text, const char *const *names, unsigned count) {
    unsigned i = 0;
    while (i < count && strcmp(text, names[i]) != 0) {
        i++;
    }
    return i;
}

int wl_fail_name(struct dm_err *err, const char *what, const char *text, const char *const *names, unsigned count) {
    const char *near = dm_suggest(text, names, count);
    if (near != NULL) {
        return dm_fail(err, DM_ERR_INVALID, "%s: there is no '%s'; did you mean '%s'?", what, text, near);
    }
    char list[200] = "";
    for (unsigned i = 0; i < count && strlen(list) + strlen(names[i]) + 3 < sizeof list; i++) {
        strcat(strcat(list, i > 0 ? ", " : ""), names[i]);
    }
    return dm_fail(err, DM_ERR_INVALID, "%s: there is no '%s'; use one of %s", what, text, list);
}

/* One "name=number" of a mix. */
static int mix_item(char *item, double share[WL_OP_KIND_COUNT], bool seen[WL_OP_KIND_COUNT], struct dm_err *err) {
    char *equals = strchr(item, '=');
    if (equals == NULL) {
        return dm_fail(err, DM_ERR_INVALID, "mix: '%s' should be operation=share, as in read=0.5,update=0.5", item);
    }
    *equals = '\0';
    unsigned kind = wl_name_index(item, mix_names, WL_OP_KIND_COUNT);
    if (kind == WL_OP_KIND_COUNT) {
        return wl_fail_name(err, "mix", item, mix_names, WL_OP_KIND_COUNT);
    }
    if (seen[kind]) {
        return dm_fail(err, DM_ERR_INVALID, "mix: %s is given twice", item);
    }
    seen[kind] = true;
    int rc = dm_parse_real(equals + 1, &share[kind], err);
    if (rc < 0) {
        return dm_fail_in(err, rc, "mix: %s", item);
    }
    if (!(share[kind] >= 0.0 && share[kind] <= 1.0)) {
        return dm_fail(err, DM_ERR_INVALID, "mix: %s=%s must be between 0 and 1", item, equals + 1);
    }
    return 0;
}

/* Parses "read=0.5,scan=0.5". Sets every share; those that are not named become 0. */
static int parse_mix(const char *text, double share[WL_OP_KIND_COUNT], struct dm_err *err) {
    char copy[256];
    if (strlen(text) >= sizeof copy) {
        return dm_fail(err, DM_ERR_INVALID, "mix: longer than %zu characters", sizeof copy - 1);
    }
    strcpy(copy, text);
    double parsed[WL_OP_KIND_COUNT] = {0};
    bool seen[WL_OP_KIND_COUNT] = {false};
    char *rest = NULL;
    for (char *item = strtok_r(copy, ", ", &rest); item != NULL; item = strtok_r(NULL, ", ", &rest)) {
        DM_TRY(mix_item(item, parsed, seen, err));
    }
    memcpy(share, parsed, sizeof parsed);
    return 0;
}

int wl_spec_format_mix(const double share[WL_OP_KIND_COUNT], char *text, size_t capacity) {
    size_t used = 0;
    text[0] = '\0';
    for (unsigned kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        if (share[kind] <= 0.0) {
            continue;
        }
        char number[32];
        int digits = 1;
        do {
            snprintf(number, sizeof number, "%.*g", digits++, share[kind]);
        } while (strtod(number, NULL) != share[kind] && digits <= 17);
        int n = snprintf(text + (used < capacity ? used : capacity), used < capacity ? capacity - used : 0, "%s%s=%s",
                         used > 0 ? "," : "", mix_names[kind], number);
        used += (size_t)n;
    }
    return (int)used;
}

static bool is_set(const char *text) {
    return text != NULL && text[0] != '\0';
}

/* Sets *is_second if `text` is the second of two names, clears it if it is the first, and keeps it if text is empty. */
static int apply_choice(bool *is_second, const char *option, const char *text, const char *first, const char *second,
                        struct dm_err *err) {
    const char *const names[] = {first, second};
    if (!is_set(text)) {
        return 0;
    }
    unsigned choice = wl_name_index(text, names, 2);
    if (choice == 2) {
        return wl_fail_name(err, option, text, names, 2);
    }
    *is_second = choice == 1;
    return 0;
}

static int apply_enums(struct wl_spec *spec, const struct wl_config *config, struct dm_err *err) {
    if (is_set(config->distribution)) {
        unsigned dist = wl_name_index(config->distribution, wl_dist_names, WL_DIST_COUNT);
        if (dist == WL_DIST_COUNT) {
            return wl_fail_name(err, "distribution", config->distribution, wl_dist_names, WL_DIST_COUNT);
        }
        spec->dist = (enum wl_dist)dist;
    }
    DM_TRY(apply_choice(&spec->ordered, "insert_order", config->insert_order, "hashed", "ordered", err));
    DM_TRY(
        apply_choice(&spec->scan_zipfian, "scan_distribution", config->scan_distribution, "uniform", "zipfian", err));
    DM_TRY(apply_choice(&spec->client_ranges, "insert_ranges", config->insert_ranges, "shared", "client", err));
    return apply_choice(&spec->upserts, "upserts", config->upserts, "off", "on", err);
}

static int apply_options(struct wl_spec *spec, const struct wl_config *config, struct dm_err *err) {
    if (is_set(config->mix)) {
        DM_TRY(parse_mix(config->mix, spec->share, err));
    }
    DM_TRY(apply_enums(spec, config, err));
    /* not "> 0": NaN and negative numbers must reach the check */
    if (config->theta != 0.0) {
        spec->theta = config->theta;
    }
    if (config->scan_min > 0) {
        spec->scan_min = config->scan_min;
    }
    if (config->scan_max > 0) {
        spec->scan_max = config->scan_max;
    }
    if (config->keys > 0) {
        spec->record_count = config->keys;
    }
    if (config->loaded != 0.0) {
        spec->loaded = config->loaded;
    }
    if (config->trace_ops_per_client > 0) {
        spec->trace_ops = config->trace_ops_per_client;
    }
    if (is_set(config->key_set)) {
        spec->key_set = config->key_set;
    }
    return 0;
}

/* Prefixes the error with "file: " if the workload is a property file. */
static int fail_in_file(const struct wl_config *config, int code, struct dm_err *err) {
    return is_set(config->workload) && strpbrk(config->workload, "./") != NULL
               ? dm_fail_in(err, code, "%s", config->workload)
               : code;
}

static int check_shares(const struct wl_spec *spec, struct dm_err *err) {
    double sum = 0.0;
    for (unsigned kind = 0; kind < WL_OP_KIND_COUNT; kind++) {
        sum += spec->share[kind];
    }
    if (!(fabs(sum - 1.0) <= SHARE_TOLERANCE)) {
        char mix[256];
        wl_spec_format_mix(spec->share, mix, sizeof mix);
        return dm_fail(err, DM_ERR_INVALID,
                       "mix: the proportions %s sum to %.6g, not to 1 (in a property file readproportion is 0.95 and "
                       "updateproportion 0.05 unless they are set)",
                       mix[0] != '\0' ? mix : "(none)", sum);
    }
    return 0;
}

static int check_records(const struct wl_spec *spec, struct dm_err *err) {
    /* key numbers must be small enough for arithmetic in doubles to reach every key */
    const uint64_t keys_max = UINT64_C(1) << 40;
    if (spec->record_count == 0) {
        return dm_fail(err, DM_ERR_INVALID, "keys: a workload needs at least one loaded key (keys, recordcount)");
    }
    if (spec->record_count > keys_max) {
        return dm_fail(err, DM_ERR_INVALID, "keys: %llu is more than 2^40", (unsigned long long)spec->record_count);
    }
    if (spec->insert_start >= spec->record_count ||
        (spec->insert_count > 0 && spec->insert_count > spec->record_count - spec->insert_start)) {
        return dm_fail(err, DM_ERR_INVALID,
                       "workload: insertstart %llu and insertcount %llu reach beyond the %llu keys (recordcount)",
                       (unsigned long long)spec->insert_start, (unsigned long long)spec->insert_count,
                       (unsigned long long)spec->record_count);
    }
    return 0;
}

static int check_distribution(const struct wl_spec *spec, struct dm_err *err) {
    if (!(spec->theta > 0.0 && spec->theta < 1.0)) {
        return dm_fail(err, DM_ERR_INVALID, "theta: %g must be above 0 and below 1", spec->theta);
    }
    if (spec->scan_min < 1 || spec->scan_min > spec->scan_max || spec->scan_max > UINT32_MAX) {
        return dm_fail(err, DM_ERR_INVALID,
                       "scan_max: lengths from %llu to %llu must be 1 <= scan_min <= scan_max < 2^32",
                       (unsigned long long)spec->scan_min, (unsigned long long)spec->scan_max);
    }
    if (spec->dist == WL_DIST_HOTSPOT) {
        uint64_t count = spec->insert_count > 0 ? spec->insert_count : spec->record_count - spec->insert_start;
        uint64_t hot = spec->hot_data > 0.0 && spec->hot_data < 1.0 ? wl_hotspot_hot_count(count, spec->hot_data) : 0;
        if (hot == 0 || hot == count || !(spec->hot_operations >= 0.0 && spec->hot_operations <= 1.0)) {
            return dm_fail(err, DM_ERR_INVALID,
                           "distribution: hotspotdatafraction %g of %llu keys must leave a hot and a cold key, and "
                           "hotspotopnfraction %g must be between 0 and 1",
                           spec->hot_data, (unsigned long long)count, spec->hot_operations);
        }
    }
    if (spec->dist == WL_DIST_EXPONENTIAL && !(spec->exponential_percentile > 0.0 &&
                                               spec->exponential_percentile < 100.0 && spec->exponential_share > 0.0)) {
        return dm_fail(err, DM_ERR_INVALID,
                       "distribution: exponential.percentile %g must be between 0 and 100, exponential.frac %g above 0",
                       spec->exponential_percentile, spec->exponential_share);
    }
    return 0;
}

/* A part of the keys is loaded: the first numbers of a range that begins at 0 and does not grow into itself. */
static int check_loaded(const struct wl_spec *spec, struct dm_err *err) {
    if (!(spec->loaded > 0.0 && spec->loaded <= 1.0)) {
        return dm_fail(err, DM_ERR_INVALID, "loaded: %g must be above 0 and at most 1", spec->loaded);
    }
    if (spec->loaded < 1.0 && (spec->insert_start > 0 || spec->insert_count > 0)) {
        return dm_fail(err, DM_ERR_INVALID, "loaded: insertstart and insertcount say already what is loaded");
    }
    if (spec->loaded < 1.0 && strcmp(spec->key_set, "grown") == 0) {
        return dm_fail(err, DM_ERR_INVALID, "loaded: key_set grown leaves out the keys that the run inserts already");
    }
    return 0;
}

static int check_ranges(const struct wl_spec *spec, struct dm_err *err) {
    bool is_folded = strcmp(spec->key_set, "folded") == 0;
    if (spec->trace_ops > 0 && spec->share[WL_INSERT] > 0.0 && !spec->client_ranges) {
        return dm_fail(err, DM_ERR_INVALID,
                       "trace_ops_per_client: a trace that is repeated cannot depend on what other clients insert; "
                       "give each client its own keys (insert_ranges client)");
    }
    if (spec->trace_ops > 0 && spec->dist == WL_DIST_SEQUENTIAL) {
        return dm_fail(err, DM_ERR_INVALID,
                       "trace_ops_per_client: clients share the sequence of the distribution sequential");
    }
    if (is_folded && spec->share[WL_INSERT] > 0.0 && !spec->upserts) {
        return dm_fail(err, DM_ERR_INVALID,
                       "key_set: with folded two numbers may have the same key, so inserts must be able to find theirs "
                       "present (upserts on)");
    }
    if (spec->dist == WL_DIST_ZIPFIAN_HASHED && spec->ordered && !is_folded) {
        return dm_fail(err, DM_ERR_INVALID,
                       "distribution: zipfian_hashed needs keys in hashed order (insert_order hashed, or key_set "
                       "folded); in order it is zipfian_clustered");
    }
    return 0;
}

int wl_spec_resolve(struct wl_spec *spec, const struct wl_config *config, struct dm_err *err) {
    DM_TRY(apply_options(spec, config, err));
    int rc = check_shares(spec, err);
    if (rc < 0) {
        return is_set(config->mix) ? rc : fail_in_file(config, rc, err);
    }
    rc = check_records(spec, err);
    if (rc < 0) {
        return config->keys > 0 ? rc : fail_in_file(config, rc, err);
    }
    DM_TRY(check_distribution(spec, err));
    DM_TRY(check_loaded(spec, err));
    return check_ranges(spec, err);
}
