/* SPDX-License-Identifier: Apache-2.0
 *
 * A resolved configuration as JSON, and its name: the hash over that JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/opt_json.h"
#include "harness/run/config.h"
#include "harness/run/config_fields.h"

/* Merges and releases `members`. */
static bool take_members(json_t *into, json_t *members) {
    bool is_done = members && json_object_update(into, members) == 0;
    json_decref(members);
    return is_done;
}

/* An object of parameters, empty where there are none. */
static json_t *parameters(const struct dm_opt *table, const void *values) {
    return table ? dm_opt_to_json(table, values) : json_object();
}

json_t *hx_config_to_json(const struct hx_config *config) {
    json_t *object = json_object();
    bool is_whole = object != NULL;
    for (const struct hx_group *group = hx_run_groups; is_whole && group->title; group++) {
        is_whole = take_members(object, dm_opt_to_json(group->table, &config->run));
    }
    is_whole = is_whole && take_members(object, dm_opt_to_json(wl_options, &config->workload)) &&
               json_object_set_new(object, "set", parameters(config->index->params, config->index_params)) == 0 &&
               json_object_set_new(object, "transport_set",
                                   parameters(config->transport->options, config->transport_options)) == 0;
    if (!is_whole) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* Changes nothing of what is measured. */
static const char *const outside_hash[] = {"record", NULL};

/* Over all members but those named. The object is changed and released. */
static uint64_t hash_without(json_t *object, const char *profile_hash, const char *const *names) {
    for (; *names; names++) {
        json_object_del(object, *names);
    }
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)) : NULL;
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    if (text) {
        XXH3_64bits_update(&state, text, strlen(text));
    }
    XXH3_64bits_update(&state, profile_hash, strlen(profile_hash));
    int version = HX_SCHEMA_VERSION;
    XXH3_64bits_update(&state, &version, sizeof(version));
    free(text);
    json_decref(object);
    return XXH3_64bits_digest(&state);
}

/* Removes options at their defaults that did not exist when the first results were made, which so keep their names. */
static bool drop_added(json_t *object) {
    bool is_done = dm_opt_drop_added(wl_options, object);
    for (const struct hx_group *group = hx_run_groups; is_done && group->title; group++) {
        is_done = dm_opt_drop_added(group->table, object);
    }
    const char *name = json_string_value(json_object_get(object, "index"));
    const struct ix_ops *index = name != NULL ? ix_find(name) : NULL;
    return is_done &&
           (index == NULL || index->params == NULL || dm_opt_drop_added(index->params, json_object_get(object, "set")));
}

/* Releases the object. */
static void hash_format(json_t *object, const char *profile_hash, bool is_memory_implied, char hex[17]) {
    if (is_memory_implied) {
        json_object_del(object, "mn_memory");
    }
    if (object != NULL && !drop_added(object)) {
        json_decref(object);
        object = NULL;
    }
    snprintf(hex, 17, "%016llx", (unsigned long long)hash_without(object, profile_hash, outside_hash));
}

void hx_config_hash(const struct hx_config *config, char hex[17]) {
    hash_format(hx_config_to_json(config), config->profile_hash, config->is_memory_implied, hex);
}

bool hx_config_has_hash(const json_t *config, const char *profile_hash, bool is_memory_implied, const char *hash) {
    char hex[17];
    hash_format(json_deep_copy(config), profile_hash != NULL ? profile_hash : "", is_memory_implied, hex);
    return strcmp(hex, hash) == 0;
}

uint64_t hx_config_fingerprint(const struct hx_config *config) {
    static const char *const names[] = {"record", "verify", "transport_set", NULL};
    return hash_without(hx_config_to_json(config), config->profile_hash, names);
}
