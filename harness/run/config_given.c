/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a resolved configuration had to be given, and what follows from that: the size of memory nodes from the keys,
 * warm-up from the operations. A result has all values, and when one option is changed the others must follow.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/opt_json.h"
#include "harness/base/json.h"
#include "harness/base/option_names.h"
#include "harness/run/config.h"
#include "harness/run/config_fields.h"

enum { NAMES_MAX = 48, TEXT_BYTES = 512, ROUNDS_MAX = 4 };

struct names {
    const char *at[NAMES_MAX];
    size_t count;
};

static void names_add(struct names *names, const char *name) {
    if (names->count < NAMES_MAX) {
        names->at[names->count++] = name;
    }
}

static void derived_names(struct names *names) {
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        for (const struct dm_opt *row = group->table; row->name; row++) {
            if (row->derived) {
                names_add(names, row->name);
            }
        }
    }
}

static bool is_text(const json_t *config, const char *name) {
    const char *text = json_string_value(json_object_get(config, name));
    return text && text[0];
}

/* Resolves a configuration anew; NULL if it does not resolve. */
static json_t *resolved(const json_t *config) {
    struct dm_err err = {.text = ""};
    struct hx_config *trial = hx_config_new();
    json_t *full = NULL;
    dm_log_set_level(DM_LOG_ERROR); /* what there is to warn of is said when the configuration itself is resolved */
    if (trial && hx_config_apply_json(trial, config, "config", &err) == 0 && hx_config_resolve(trial, &err) == 0) {
        full = hx_config_to_json(trial);
    }
    dm_log_set_level(DM_LOG_WARN);
    hx_config_close(trial);
    return full;
}

/* The configuration without those of the named members that have the value which they also get when none of them is
 * given. One value may follow from another, so that what must be given is found in a few rounds. */
static json_t *without_implied(const json_t *config, const struct names *names) {
    json_t *given = json_deep_copy(config);
    for (size_t i = 0; given && i < names->count; i++) {
        json_object_del(given, names->at[i]);
    }
    for (int round = 0; given && round < ROUNDS_MAX; round++) {
        json_t *full = resolved(given);
        bool is_same = full != NULL;
        for (size_t i = 0; full && i < names->count; i++) {
            json_t *wanted = json_object_get(config, names->at[i]);
            if (wanted && !json_equal(wanted, json_object_get(full, names->at[i]))) {
                json_object_set(given, names->at[i], wanted);
                is_same = false;
            }
        }
        json_decref(full);
        if (is_same) {
            return given;
        }
        if (!full) {
            break;
        }
    }
    json_decref(given);
    return json_deep_copy(config);
}

json_t *hx_config_given(const json_t *config) {
    struct names names = {.count = 0};
    derived_names(&names);
    if (is_text(config, "trace") || is_text(config, "replay")) {
        return json_deep_copy(config); /* its file would be read once more for every trial */
    }
    json_t *given = without_implied(config, &names);
    if (given && !is_text(given, "profile")) {
        json_object_del(given, "profile"); /* the transport takes none; another one has a default */
    }
    return given;
}

/* Whether the name of a result says that its memory nodes had the size that followed from the rest. */
static bool is_memory_implied(const json_t *result, const json_t *config) {
    const char *hash = json_string_value(json_object_get(result, "config_hash")),
               *profile = json_string_value(hx_json_find(result, "provenance.profile.hash"));
    return hash != NULL && hx_config_has_hash(config, profile, true, hash);
}

json_t *hx_config_again(const json_t *result) {
    json_t *config = json_copy(json_object_get(result, "config"));
    if (config && is_memory_implied(result, config)) {
        json_object_del(config, "mn_memory"); /* what this program reckons may be another size */
    }
    return config;
}

int hx_config_apply_given(struct hx_config *config, const json_t *spec, const char *where, struct dm_err *err) {
    json_t *version = json_object_get(spec, "schema_version"), *inner = json_object_get(spec, "config");
    if (!version || !json_is_object(inner)) {
        return hx_config_apply_json(config, spec, where, err);
    }
    json_t *inner_given = hx_config_again(spec);
    json_t *given = json_pack("{s:O, s:o}", "schema_version", version, "config", hx_config_given(inner_given));
    json_decref(inner_given);
    int rc = given ? hx_config_apply_json(config, given, where, err) : dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    json_decref(given);
    return rc;
}

/* ---- as a command ----------------------------------------------------------------------------------------------- */

/* The value of a row as a user types it, or NULL where it is the default. */
static const char *value_typed(const struct dm_opt *row, const void *values, const void *defaults, char *text) {
    char usual[TEXT_BYTES];
    dm_opt_format(row, values, text, TEXT_BYTES);
    dm_opt_format(row, defaults, usual, sizeof(usual));
    return strcmp(text, usual) == 0 ? NULL : text;
}

static void word_add(json_t *words, const char *word) {
    json_t *text = json_string(word);
    json_array_append_new(words, text ? text : json_string("(not UTF-8)"));
}

/* Options of a table that are in `given` and differ from their defaults. */
static void options_add(json_t *words, const struct dm_opt *table, const void *values, const void *defaults,
                        const json_t *given) {
    char name[TEXT_BYTES], text[TEXT_BYTES + 1];
    for (const struct dm_opt *row = table; row->name; row++) {
        const char *value = value_typed(row, values, defaults, text);
        if (value && json_object_get(given, row->name)) {
            word_add(words, hx_option_typed(row->name, name, sizeof(name)));
            if (row->type == DM_OPT_BYTES) {
                strcat(text, "B"); /* a small number without a unit is refused */
            }
            word_add(words, value);
        }
    }
}

/* Parameters as "--set NAME=VALUE". */
static void parameters_add(json_t *words, const char *option, const struct dm_opt *table, const void *values,
                           size_t bytes) {
    void *defaults = table ? calloc(1, bytes) : NULL;
    if (!defaults) {
        return;
    }
    dm_opt_defaults(table, defaults);
    for (const struct dm_opt *row = table; row->name; row++) {
        char text[TEXT_BYTES], pair[TEXT_BYTES + 96];
        if (value_typed(row, values, defaults, text)) {
            snprintf(pair, sizeof(pair), "%s=%s", row->name, text);
            word_add(words, option);
            word_add(words, pair);
        }
    }
    dm_opt_free(table, defaults);
    free(defaults);
}

static size_t values_bytes(const struct dm_opt *table) {
    size_t bytes = sizeof(uint64_t);
    for (const struct dm_opt *row = table; row && row->name; row++) {
        bytes = row->offset + sizeof(uint64_t) > bytes ? row->offset + sizeof(uint64_t) : bytes;
    }
    return bytes;
}

json_t *hx_config_command(const struct hx_config *config) {
    struct names names = {.count = 0};
    json_t *words = json_array(), *full = hx_config_to_json(config);
    struct hx_config *defaults = hx_config_new();
    if (!words || !full || !defaults) {
        json_decref(words);
        json_decref(full);
        hx_config_close(defaults);
        return NULL;
    }
    derived_names(&names);
    for (const char *const *name = hx_workload_details; *name; name++) {
        names_add(&names, *name);
    }
    names_add(&names, "key_set");
    bool has_file = is_text(full, "trace") || is_text(full, "replay");
    json_t *given = has_file ? json_incref(full) : without_implied(full, &names);
    word_add(words, "dmbench");
    word_add(words, "run");
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        options_add(words, group->table, &config->run, &defaults->run, given);
    }
    options_add(words, wl_options, &config->workload, &defaults->workload, given);
    parameters_add(words, "--set", config->index->params, config->index_params, config->index->params_bytes + 1);
    parameters_add(words, "--transport-set", config->transport->options, config->transport_options,
                   values_bytes(config->transport->options));
    json_decref(given);
    json_decref(full);
    hx_config_close(defaults);
    return words;
}
