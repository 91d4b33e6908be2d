/* SPDX-License-Identifier: Apache-2.0
 *
 * Building a configuration from defaults, spec objects and single options. Values that depend on the index or the
 * transport are kept in `pending` until config_resolve.c applies them.
 */
#include "harness/run/config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/opt_json.h"
#include "harness/base/errors.h"
#include "harness/base/option_names.h"
#include "harness/run/config_fields.h"

enum { NAME_BYTES = 64 };

/* Names of all options and of the two objects, for suggestions. */
static int fail_unknown_option(struct dm_err *err, const char *what, const char *name) {
    const char *known[HX_OPTIONS_MAX + 2];
    size_t count = 0;
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        for (const struct dm_opt *row = group->table; row->name; row++) {
            known[count++] = row->name;
        }
    }
    for (const struct dm_opt *row = wl_options; row->name; row++) {
        known[count++] = row->name;
    }
    known[count++] = "set";
    known[count++] = "transport_set";
    return hx_fail_unknown(err, what, name, known, count);
}

struct hx_config *hx_config_new(void) {
    struct hx_config *config = calloc(1, sizeof(*config));
    if (!config) {
        return NULL;
    }
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        dm_opt_defaults(group->table, &config->run);
    }
    dm_opt_defaults(wl_options, &config->workload);
    return config;
}

static void pending_free(struct hx_config *config) {
    for (size_t i = 0; i < config->pending_count; i++) {
        free(config->pending[i].name);
        free(config->pending[i].where);
        json_decref(config->pending[i].value);
    }
    free(config->pending);
}

void hx_config_close(struct hx_config *config) {
    if (!config) {
        return;
    }
    if (config->index_params) {
        dm_opt_free(config->index->params, config->index_params);
        free(config->index_params);
    }
    if (config->transport_options) {
        dm_opt_free(config->transport->options, config->transport_options);
        free(config->transport_options);
    }
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        dm_opt_free(group->table, &config->run);
    }
    dm_opt_free(wl_options, &config->workload);
    wl_close(config->opened);
    for (size_t i = 0; i < HX_OPTIONS_MAX; i++) {
        free(config->origins[i]);
    }
    pending_free(config);
    free(config);
}

/* Keeps a value for later; consumes `value`. */
static int pending_add(struct hx_config *config, bool transport, const char *name, json_t *value, const char *where,
                       struct dm_err *err) {
    struct hx_pending *grown = realloc(config->pending, (config->pending_count + 1) * sizeof(*grown));
    if (grown) {
        config->pending = grown;
        struct hx_pending *entry = &grown[config->pending_count];
        *entry = (struct hx_pending){strdup(name), value, strdup(where), transport};
        config->pending_count++;
        if (entry->name && entry->where && value) {
            return 0;
        }
    } else {
        json_decref(value);
    }
    return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
}

/* Remembers where an option was set, and that it was. */
static int origin_note(struct hx_config *config, const char *name, const char *where, struct dm_err *err) {
    size_t position = hx_option_position(name);
    char *copy = strdup(where);
    if (!copy || position >= HX_OPTIONS_MAX) {
        free(copy);
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    free(config->origins[position]);
    config->origins[position] = copy;
    return 0;
}

static int apply_pending_object(struct hx_config *config, bool transport, const json_t *object, const char *where,
                                struct dm_err *err) {
    if (!json_is_object(object)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: must be an object of names and values", where);
    }
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        DM_TRY(pending_add(config, transport, name, json_incref(value), where, err));
    }
    return 0;
}

/* Sizes of caches are so large that a small number without a unit is a unit that was forgotten. */
static int check_unit(const char *name, const char *text, struct dm_err *err) {
    enum { DIGITS_MAX = 3 };
    size_t digits = strspn(text, "0123456789");
    if (strcmp(name, "cache") != 0 || text[digits] || digits > DIGITS_MAX || strtoul(text, NULL, 10) == 0) {
        return 0;
    }
    return dm_fail(err, DM_ERR_INVALID, "%s has no unit and would be %s bytes: write %sMB, or %sB if bytes are meant",
                   text, text, text, text);
}

/* One option from JSON: through the table's own reader, so that units, ranges and types are checked in one member. */
static int apply_member(struct hx_config *config, const char *name, json_t *value, const char *where,
                        struct dm_err *err) {
    char member[256];
    if (strcmp(name, "set") == 0 || strcmp(name, "transport_set") == 0) {
        snprintf(member, sizeof(member), "%s: %s", where, name);
        return apply_pending_object(config, name[0] == 't', value, member, err);
    }
    void *values = &config->run;
    const struct dm_opt *row = hx_run_option(name);
    if (!row) {
        row = dm_opt_find(wl_options, name);
        values = &config->workload;
    }
    if (!row) {
        return dm_fail_in(err, fail_unknown_option(err, "member", name), "%s", where);
    }
    if (json_is_string(value) && check_unit(name, json_string_value(value), err) < 0) {
        return dm_fail_in(err, DM_ERR_INVALID, "%s: %s", where, name);
    }
    struct dm_opt table[] = {*row, DM_OPT_END};
    json_t *single = json_object();
    if (!single || json_object_set(single, name, value)) {
        json_decref(single);
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    int rc = dm_opt_from_json(table, values, single, where, err);
    json_decref(single);
    snprintf(member, sizeof(member), "%s: %s", where, name);
    return rc < 0 ? rc : origin_note(config, name, member, err);
}

/* A complete result is also accepted as a spec: its `config` member is used. */
static int find_spec(const json_t **spec, const char *where, struct dm_err *err) {
    const json_t *version = json_object_get(*spec, "schema_version");
    if (version && json_integer_value(version) != HX_SCHEMA_VERSION) {
        return dm_fail(err, DM_ERR_INVALID, "%s: schema_version: this program reads version %d only", where,
                       HX_SCHEMA_VERSION);
    }
    const json_t *config = json_object_get(*spec, "config");
    if (version && config) {
        if (!json_is_object(config)) {
            return dm_fail(err, DM_ERR_INVALID, "%s: config: must be an object", where);
        }
        *spec = config;
    }
    return 0;
}

int hx_config_apply_json(struct hx_config *config, const json_t *spec, const char *where, struct dm_err *err) {
    if (!json_is_object(spec)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: a spec must be a JSON object", where);
    }
    DM_TRY(find_spec(&spec, where, err));
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)spec, name, value) {
        if (strcmp(name, "schema_version") != 0) {
            DM_TRY(apply_member(config, name, value, where, err));
        }
    }
    return 0;
}

size_t hx_config_forget_set(struct hx_config *config, bool transport) {
    size_t kept = 0, forgotten = 0;
    for (size_t i = 0; i < config->pending_count; i++) {
        struct hx_pending entry = config->pending[i];
        if (entry.transport == transport && entry.where[0] != '-') {
            free(entry.name);
            free(entry.where);
            json_decref(entry.value);
            forgotten++;
        } else {
            config->pending[kept++] = entry;
        }
    }
    config->pending_count = kept;
    return forgotten;
}

/* "set.NAME" and "transport_set.NAME". */
static int set_pending(struct hx_config *config, const char *name, const char *text, struct dm_err *err) {
    bool transport = name[0] == 't';
    const char *parameter = strchr(name, '.') + 1;
    return pending_add(config, transport, parameter, json_string(text), transport ? "--transport-set" : "--set", err);
}

/* "-p NAME=VALUE": appends one YCSB property. They are stored separated by commas. */
static int add_property(struct hx_config *config, const char *text, struct dm_err *err) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        return dm_fail(err, DM_ERR_INVALID, "-p: '%.60s' is not NAME=VALUE", text);
    }
    if (strchr(text, ',')) {
        return dm_fail(err, DM_ERR_INVALID, "-p: '%.60s' holds a comma; put this property into a file (--ycsb)", text);
    }
    const char *before = config->workload.properties;
    char *joined = NULL;
    if (asprintf(&joined, "%s%s%s", before ? before : "", before && before[0] ? "," : "", text) < 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    int rc = dm_opt_set(wl_options, &config->workload, "properties", joined, err);
    free(joined);
    return rc < 0 ? rc : origin_note(config, "properties", "-p", err);
}

const char *const hx_workload_details[] = {
    "properties",        "mix",    "distribution", "theta",         "insert_order",         "scan_min", "scan_max",
    "scan_distribution", "loaded", "upserts",      "insert_ranges", "trace_ops_per_client", NULL};

static int detail_forget(struct hx_config *config, const char *name, struct dm_err *err) {
    const struct dm_opt *row = dm_opt_find(wl_options, name);
    size_t position = hx_option_position(name);
    free(config->origins[position]);
    config->origins[position] = NULL;
    return dm_opt_set(wl_options, &config->workload, name, row->initial ? row->initial : "", err);
}

int hx_config_forget_details(struct hx_config *config, struct dm_err *err) {
    if (wl_is_own_key_set(config->workload.workload, config->workload.key_set)) {
        DM_TRY(detail_forget(config, "key_set", err));
    }
    for (const char *const *name = hx_workload_details; *name; name++) {
        DM_TRY(detail_forget(config, *name, err));
    }
    return 0;
}

int hx_config_set(struct hx_config *config, const char *name, const char *text, struct dm_err *err) {
    char plain[NAME_BYTES];
    if (strcmp(name, "p") == 0) {
        return add_property(config, text, err);
    }
    if (!hx_option_name(name, plain, sizeof(plain))) {
        return fail_unknown_option(err, "option", name);
    }
    if (strncmp(plain, "set.", 4) == 0 || strncmp(plain, "transport_set.", 14) == 0) {
        return set_pending(config, plain, text, err);
    }
    char origin[NAME_BYTES + 2];
    hx_option_typed(plain, origin, sizeof(origin));
    char file[PATH_MAX];
    if (strcmp(plain, "ycsb") == 0) {
        strcpy(plain, "workload");
        snprintf(file, sizeof(file), "%s%s", strchr(text, '/') ? "" : "./", text); /* a file, whatever its name */
        text = file;
    }
    const struct dm_opt *row = hx_run_option(plain);
    void *values = &config->run;
    if (!row) {
        row = dm_opt_find(wl_options, plain);
        values = &config->workload;
    }
    if (!row) {
        return fail_unknown_option(err, "option", name);
    }
    struct dm_opt named = *row; /* errors name the option with dashes, as it is typed */
    named.name = origin + 2;
    struct dm_opt table[] = {named, DM_OPT_END};
    if (check_unit(plain, text, err) < 0) {
        return dm_fail_in(err, DM_ERR_INVALID, "%s", origin);
    }
    DM_TRY(dm_opt_set(table, values, named.name, text, err));
    return origin_note(config, plain, origin, err);
}
