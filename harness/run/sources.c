/* SPDX-License-Identifier: Apache-2.0
 *
 * Which sources a result depends on, and whether they are today's.
 */
#include "harness/run/sources.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/err.h"

/* A result records this for a component that the build did not hash: an index of another tree. */
static const char not_hashed[] = "unknown";

static const char *component_hash(const char *component) {
    for (const struct hx_source_hash *row = hx_source_hashes; row->component != NULL; row++) {
        if (strcmp(row->component, component) == 0) {
            return row->hash;
        }
    }
    return not_hashed;
}

static bool put(json_t *sources, const char *name, const char *folder) {
    char component[128];
    snprintf(component, sizeof(component), "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name);
    return json_object_set_new(sources, name, json_string(component_hash(component))) == 0;
}

static const char *text_of(const json_t *config, const char *name) {
    const char *text = json_string_value(json_object_get(config, name));
    return text != NULL ? text : "";
}

json_t *hx_sources_new(const json_t *config) {
    json_t *sources = json_object();
    bool is_whole = sources != NULL && put(sources, "common", "") && put(sources, "workloads", "");
    if (strcmp(text_of(config, "source"), "train") == 0) {
        is_whole = is_whole && put(sources, "train", "");
    } else {
        is_whole = is_whole && put(sources, "run", "") && put(sources, "shared", "") && put(sources, "transport", "") &&
                   put(sources, text_of(config, "transport"), "transport") &&
                   put(sources, text_of(config, "index"), "index");
    }
    if (!is_whole) {
        json_decref(sources);
        return NULL;
    }
    return sources;
}

/* Appends a name to a list of names; one that does not fit is left out. */
static void append(char *list, size_t capacity, const char *name) {
    size_t length = strlen(list);
    if (length + strlen(name) + 3 < capacity) {
        snprintf(list + length, capacity - length, "%s%s", length > 0 ? ", " : "", name);
    }
}

static bool differences(json_t *today, const json_t *recorded, char *changed, size_t capacity) {
    const char *name;
    json_t *hash;
    changed[0] = '\0';
    json_object_foreach(today, name, hash) {
        if (!json_equal(hash, json_object_get(recorded, name))) {
            append(changed, capacity, name);
        }
    }
    return changed[0] != '\0';
}

bool hx_sources_fresh(const json_t *result, char *changed, size_t capacity) {
    const json_t *provenance = json_object_get(result, "provenance");
    const json_t *adopted = json_object_get(json_object_get(provenance, "adopted"), "sources");
    const json_t *recorded = adopted != NULL ? adopted : json_object_get(provenance, "sources");
    json_t *today = hx_sources_new(json_object_get(result, "config"));
    bool is_fresh = json_is_object(recorded) && today != NULL && !differences(today, recorded, changed, capacity);
    if (!json_is_object(recorded)) {
        snprintf(changed, capacity, "not recorded");
    }
    json_decref(today);
    return is_fresh;
}

int hx_sources_adopt(json_t *result) {
    char at[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_t *provenance = json_object_get(result, "provenance");
    if (provenance == NULL) {
        return DM_ERR_INVALID;
    }
    json_t *adopted = json_pack("{s:s, s:o}", "at", at, "sources", hx_sources_new(json_object_get(result, "config")));
    return json_object_set_new(provenance, "adopted", adopted) == 0 ? 0 : DM_ERR_NO_MEMORY;
}
