/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads readings, experiments and the provenance of settings.
 */
#include "harness/study/figure_overlay.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "harness/base/json.h"

enum { WHERE_BYTES = 512, OPTION_BYTES = 128, KEY_BYTES = 512 };

int hx_fig_label_fits(const char *label, const char *name) {
    for (; *name != '\0'; label++, name++) {
        if (*label != *name && !(*label == '\n' && *name == ' ')) {
            return 0;
        }
    }
    return *label == '\0' ? 2 : isalnum((unsigned char)*label) ? 0 : 1;
}

/* ---- where a setting comes from --------------------------------------------------------------------------------- */

/* "stated: section 5", "code: repository file" or, if allowed, "assumed: reason". */
static bool is_provenance(const char *text, bool assumed) {
    static const char *const kinds[] = {"stated: ", "code: ", "assumed: "};
    for (size_t i = 0; i < DM_ARRAY_LEN(kinds) - !assumed; i++) {
        size_t length = strlen(kinds[i]);
        if (strncmp(text, kinds[i], length) == 0) {
            return text[length + strspn(text + length, " ")] != '\0';
        }
    }
    return false;
}

/* The parts of a spec that have labels. */
static const json_t *labelled(const json_t *spec, size_t i) {
    return i == 0   ? json_object_get(spec, "panels")
           : i == 1 ? json_object_get(spec, "series")
                    : json_object_get(json_object_get(spec, "x"), "cases");
}

static bool is_label(const json_t *spec, const char *name) {
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < json_array_size(labelled(spec, i)); k++) {
            const char *label = json_string_value(json_object_get(json_array_get(labelled(spec, i), k), "label"));
            if (label != NULL && hx_fig_label_fits(label, name) > 0) {
                return true;
            }
        }
    }
    return false;
}

/* A position in the key of an entry, "cns, keys" or "Sherman: set.span, set.fill, CHIME: set.span". */
struct key_reader {
    const char *at;
    char label[KEY_BYTES];     /* "": of the whole figure */
    char option[OPTION_BYTES]; /* what was read last */
};

/* Reads the next option; false at the end, and where there is none. */
static bool key_next(struct key_reader *key) {
    for (;;) {
        size_t length = strspn(key->at, "abcdefghijklmnopqrstuvwxyz0123456789_.");
        const char *end = key->at + length;
        if (length > 0 && length < OPTION_BYTES && (*end == '\0' || strncmp(end, ", ", 2) == 0)) {
            snprintf(key->option, sizeof(key->option), "%.*s", (int)length, key->at);
            key->at = *end == '\0' ? end : end + 2;
            return true;
        }
        const char *colon = strstr(key->at, ": ");
        if (colon == NULL || (size_t)(colon - key->at) >= sizeof(key->label)) {
            return false;
        }
        snprintf(key->label, sizeof(key->label), "%.*s", (int)(colon - key->at), key->at);
        key->at = colon + 2;
    }
}

/* How well an entry's key fits an option: 2 if it names the label, 1 if it is of the whole figure, 0 if not. */
static int key_fits(const char *text, const char *label, const char *option) {
    struct key_reader key = {.at = text};
    while (key_next(&key)) {
        if (strcmp(key.option, option) == 0 && (key.label[0] == '\0' || hx_fig_label_fits(label, key.label) > 0)) {
            return key.label[0] == '\0' ? 1 : 2;
        }
    }
    return 0;
}

static const char *provenance_of(const json_t *from, const char *label, const char *option) {
    const char *key, *found = NULL;
    json_t *text;
    int best = 0;
    json_object_foreach((json_t *)from, key, text) {
        int fit = key_fits(key, label, option);
        if (fit > best) {
            best = fit;
            found = json_string_value(text);
        }
    }
    return found;
}

struct settings {
    const json_t *from;
    hx_fig_setting_fn each;
    void *arg;
};

/* A nested object is walked: its members are named PREFIX.NAME. */
static int walk(const struct settings *settings, const char *label, const char *prefix, const json_t *config) {
    const char *name;
    json_t *value;
    int rc = 0;
    json_object_foreach((json_t *)config, name, value) {
        char option[OPTION_BYTES];
        snprintf(option, sizeof(option), "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", name);
        rc = json_is_object(value)
                 ? walk(settings, label, option, value)
                 : settings->each(settings->arg, label, option, value, provenance_of(settings->from, label, option));
        if (rc != 0) {
            break;
        }
    }
    return rc;
}

static int walk_items(const struct settings *settings, const json_t *items) {
    int rc = 0;
    for (size_t i = 0; i < json_array_size(items) && rc == 0; i++) {
        const json_t *item = json_array_get(items, i);
        const char *label = json_string_value(json_object_get(item, "label"));
        rc = walk(settings, label != NULL ? label : "", "", json_object_get(item, "config"));
    }
    return rc;
}

int hx_fig_settings_each(const json_t *spec, hx_fig_setting_fn each, void *arg) {
    const struct settings settings = {.from = json_object_get(spec, "from"), .each = each, .arg = arg};
    const json_t *paper = json_object_get(json_object_get(spec, "scales"), "paper");
    const char *option = json_string_value(json_object_get(json_object_get(spec, "x"), "option"));
    int rc = walk(&settings, "", "", json_object_get(spec, "config"));
    rc = rc != 0 ? rc : walk(&settings, "", "", json_object_get(paper, "config"));
    if (rc == 0 && option != NULL) {
        rc = each(arg, "", option, json_object_get(paper, "x"), provenance_of(settings.from, "", option));
    }
    for (size_t i = 0; i < 3 && rc == 0; i++) {
        rc = walk_items(&settings, labelled(spec, i));
    }
    return rc;
}

/* What the figure compares, and that it is simulated, need no source. */
static bool needs_source(const char *option) {
    return strcmp(option, "index") != 0 && strcmp(option, "transport") != 0 && strcmp(option, "source") != 0;
}

struct provenance_check {
    const char *where;
    struct dm_err *err;
};

static int check_setting(void *arg, const char *label, const char *option, const json_t *value, const char *from) {
    const struct provenance_check *check = arg;
    (void)value;
    if (from != NULL || !needs_source(option)) {
        return 0;
    }
    return dm_fail(check->err, DM_ERR_INVALID, "%s: from: '%s%s%s' is set without provenance", check->where, label,
                   label[0] != '\0' ? ": " : "", option);
}

struct wanted {
    const char *label, *option;
};

static int is_wanted(void *arg, const char *label, const char *option, const json_t *value, const char *from) {
    const struct wanted *wanted = arg;
    (void)value;
    (void)from;
    return strcmp(option, wanted->option) == 0 &&
           (wanted->label[0] == '\0' || hx_fig_label_fits(label, wanted->label) > 0);
}

static int check_entry(const json_t *spec, const char *key, const json_t *text, const char *where, struct dm_err *err) {
    struct key_reader reader = {.at = key};
    while (key_next(&reader)) {
        struct wanted wanted = {.label = reader.label, .option = reader.option};
        if (reader.label[0] != '\0' && !is_label(spec, reader.label)) {
            return dm_fail(err, DM_ERR_INVALID, "%s: from: '%s': no panel, series or case is called '%.80s'", where,
                           key, reader.label);
        }
        if (hx_fig_settings_each(spec, is_wanted, &wanted) == 0) {
            return dm_fail(err, DM_ERR_INVALID, "%s: from: '%s': the figure does not set '%s' there", where, key,
                           reader.option);
        }
    }
    if (*reader.at != '\0' || key[0] == '\0') {
        return dm_fail(err, DM_ERR_INVALID, "%s: from: '%s' is no list of options", where, key);
    }
    return json_is_string(text) && is_provenance(json_string_value(text), true)
               ? 0
               : dm_fail(err, DM_ERR_INVALID,
                         "%s: from.%s: must begin with 'stated: ', 'code: ' or 'assumed: ' and say more", where, key);
}

int hx_fig_provenance_check(const json_t *spec, const char *where, struct dm_err *err) {
    const json_t *from;
    const char *key;
    json_t *text;
    DM_TRY(hx_json_get(spec, "from", JSON_OBJECT, false, where, &from, err));
    json_object_foreach((json_t *)from, key, text) {
        DM_TRY(check_entry(spec, key, text, where, err));
    }
    struct provenance_check check = {.where = where, .err = err};
    return hx_fig_settings_each(spec, check_setting, &check);
}

/* ---- readings and experiments ----------------------------------------------------------------------------------- */

const json_t *hx_fig_overlay_part(const json_t *parts, const char *label) {
    const char *name;
    json_t *config, *found = NULL;
    json_object_foreach((json_t *)parts, name, config) {
        int fit = hx_fig_label_fits(label, name);
        found = fit == 2 || (fit == 1 && found == NULL) ? config : found;
        if (fit == 2) {
            break;
        }
    }
    return found;
}

const struct hx_fig_overlay *hx_fig_overlay_find(const struct hx_fig_overlays *overlays, const char *id) {
    for (size_t i = 0; i < overlays->count; i++) {
        if (strcmp(overlays->items[i].id, id) == 0) {
            return &overlays->items[i];
        }
    }
    return NULL;
}

void hx_fig_overlays_free(struct hx_fig_overlays *overlays) {
    for (size_t i = 0; i < overlays->count; i++) {
        json_decref(overlays->items[i].config);
    }
    free(overlays->items);
    *overlays = (struct hx_fig_overlays){.items = NULL};
}

/* A reading is about what a paper left open, never about the network. */
static int check_config(const json_t *config, bool reading, const char *where, struct dm_err *err) {
    if (!json_is_object(config)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: must be an object", where);
    }
    return reading && json_object_get(config, "profile") != NULL
               ? dm_fail(err, DM_ERR_INVALID, "%s.profile: a reading never changes the network", where)
               : 0;
}

/* {"LABEL": {...}} of the spec's panels, series or cases. */
static int read_parts(const json_t *object, const char *member, const json_t *items, bool reading, const char *where,
                      const json_t **parts, struct dm_err *err) {
    const char *name;
    json_t *config;
    DM_TRY(hx_json_get(object, member, JSON_OBJECT, false, where, parts, err));
    json_object_foreach((json_t *)*parts, name, config) {
        char path[WHERE_BYTES];
        size_t fits = 0;
        bool exact = false;
        for (size_t i = 0; i < json_array_size(items); i++) {
            const char *label = json_string_value(json_object_get(json_array_get(items, i), "label"));
            int fit = label != NULL ? hx_fig_label_fits(label, name) : 0;
            fits += fit > 0;
            exact = exact || fit == 2;
        }
        if (fits == 0 || (fits > 1 && !exact)) {
            return dm_fail(err, DM_ERR_INVALID, "%s.%s: '%s' is no label of the figure's, or of several", where, member,
                           name);
        }
        snprintf(path, sizeof(path), "%.300s.%s.%.100s", where, member, name);
        DM_TRY(check_config(config, reading, path, err));
    }
    return 0;
}

static int read_string(const json_t *object, const char *member, bool required, const char *where, const char **text,
                       struct dm_err *err) {
    const json_t *value;
    DM_TRY(hx_json_get(object, member, JSON_STRING, required, where, &value, err));
    *text = json_string_value(value);
    return 0;
}

/* What an overlay changes: read from itself, and from its member `paper`. */
static int read_changes(const json_t *spec, const json_t *object, bool reading, const char *where,
                        struct hx_fig_overlay *overlay, const json_t **config, struct dm_err *err) {
    DM_TRY(hx_json_get(object, "config", JSON_OBJECT, false, where, config, err));
    DM_TRY(*config != NULL ? check_config(*config, reading, where, err) : 0);
    DM_TRY(read_parts(object, "panels", json_object_get(spec, "panels"), reading, where, &overlay->panels, err));
    DM_TRY(read_parts(object, "series", json_object_get(spec, "series"), reading, where, &overlay->series, err));
    return read_parts(object, "cases", json_object_get(json_object_get(spec, "x"), "cases"), reading, where,
                      &overlay->cases, err);
}

/* Replaces what the overlay changes by what it changes at the paper's scale, if it says that and this is it. */
static int read_paper(const json_t *spec, const json_t *object, bool reading, bool is_paper, const char *where,
                      struct hx_fig_overlay *overlay, const json_t **config, struct dm_err *err) {
    static const char *const known[] = {"config", "series", "panels", "cases", NULL};
    const json_t *paper, *paper_config;
    struct hx_fig_overlay there = *overlay;
    char path[WHERE_BYTES];
    DM_TRY(hx_json_get(object, "paper", JSON_OBJECT, false, where, &paper, err));
    if (paper == NULL) {
        return 0;
    }
    snprintf(path, sizeof(path), "%.450s.paper", where);
    DM_TRY(hx_json_check(paper, known, path, err));
    DM_TRY(read_changes(spec, paper, reading, path, &there, &paper_config, err));
    if (is_paper) {
        *overlay = there;
        *config = paper_config;
    }
    return 0;
}

/* Reads what all values of a range have in common; `config` is what it sets in every point. */
static int read_overlay(const json_t *spec, const json_t *object, bool reading, bool is_paper, const char *where,
                        struct hx_fig_overlay *overlay, const json_t **config, struct dm_err *err) {
    static const char *const of_reading[] = {"id",    "says",   "from",   "config", "series", "panels",
                                             "cases", "option", "values", "paper",  NULL};
    static const char *const of_experiment[] = {"id", "says", "config", "series", "panels", "cases", "paper", NULL};
    DM_TRY(hx_json_check(object, reading ? of_reading : of_experiment, where, err));
    DM_TRY(read_string(object, "id", true, where, &overlay->name, err));
    DM_TRY(read_string(object, "says", true, where, &overlay->says, err));
    DM_TRY(read_string(object, "from", reading, where, &overlay->from, err));
    DM_TRY(read_string(object, "option", false, where, &overlay->option, err));
    if (overlay->name[0] == '\0' ||
        overlay->name[strspn(overlay->name, "abcdefghijklmnopqrstuvwxyz0123456789-")] != '\0') {
        return dm_fail(err, DM_ERR_INVALID, "%s.id: '%s' is not made of small letters, digits and -", where,
                       overlay->name);
    }
    if (reading && !is_provenance(overlay->from, overlay->option != NULL)) {
        return dm_fail(err, DM_ERR_INVALID, "%s (%s): a reading needs evidence: 'stated: ' or 'code: ' and more", where,
                       overlay->name);
    }
    DM_TRY(read_changes(spec, object, reading, where, overlay, config, err));
    return read_paper(spec, object, reading, is_paper, where, overlay, config, err);
}

/* Appends a change; a value of a range is set in its config and its id. */
static int append(struct hx_fig_overlays *overlays, const struct hx_fig_overlay *common, const json_t *config,
                  json_t *value, const char *where, struct dm_err *err) {
    struct hx_fig_overlay *items = realloc(overlays->items, (overlays->count + 1) * sizeof(*items));
    overlays->items = items != NULL ? items : overlays->items;
    json_t *merged = hx_json_merge(config, NULL);
    bool whole = items != NULL && merged != NULL && (value == NULL || hx_json_put(merged, common->option, value) == 0);
    if (!whole || overlays->count == HX_OVERLAYS_MAX) {
        json_decref(merged);
        return whole ? dm_fail(err, DM_ERR_INVALID, "%s: more than %d readings and experiments", where, HX_OVERLAYS_MAX)
                     : dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", where);
    }
    struct hx_fig_overlay *overlay = &items[overlays->count];
    *overlay = *common;
    overlay->config = merged;
    char *text = value != NULL && !json_is_string(value) ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    const char *shown = text != NULL ? text : json_string_value(value);
    snprintf(overlay->id, sizeof(overlay->id), "%.60s%s%.30s", common->name, shown != NULL ? "=" : "",
             shown != NULL ? shown : "");
    free(text);
    bool again = hx_fig_overlay_find(overlays, overlay->id) != NULL;
    overlays->count++;
    return again ? dm_fail(err, DM_ERR_INVALID, "%s: there are two of '%s'", where, overlay->id) : 0;
}

static int read_list(const json_t *spec, const char *member, bool is_paper, const char *where,
                     struct hx_fig_overlays *overlays, struct dm_err *err) {
    bool reading = strcmp(member, "readings") == 0;
    const json_t *array, *values;
    DM_TRY(hx_json_get(spec, member, JSON_ARRAY, false, where, &array, err));
    for (size_t i = 0; i < json_array_size(array); i++) {
        char path[WHERE_BYTES];
        struct hx_fig_overlay common = {.config = NULL};
        const json_t *object = json_array_get(array, i), *config;
        snprintf(path, sizeof(path), "%.400s: %s[%zu]", where, member, i);
        DM_TRY(read_overlay(spec, object, reading, is_paper, path, &common, &config, err));
        DM_TRY(hx_json_get(object, "values", JSON_ARRAY, common.option != NULL, path, &values, err));
        if ((values != NULL) != (common.option != NULL) || (values != NULL && json_array_size(values) == 0)) {
            return dm_fail(err, DM_ERR_INVALID, "%s: a range needs 'option' and 'values'", path);
        }
        size_t count = values != NULL ? json_array_size(values) : 1;
        for (size_t k = 0; k < count; k++) {
            DM_TRY(append(overlays, &common, config, json_array_get(values, k), path, err));
        }
    }
    return 0;
}

int hx_fig_overlays_read(const json_t *spec, bool is_paper, const char *where, struct hx_fig_overlays *overlays,
                         struct dm_err *err) {
    *overlays = (struct hx_fig_overlays){.items = NULL};
    DM_TRY(read_list(spec, "readings", is_paper, where, overlays, err));
    return read_list(spec, "experiments", is_paper, where, overlays, err);
}
