/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers over JSON objects: strict members, deep merge, dotted paths.
 */
#include "harness/base/json.h"

#include <stdlib.h>
#include <string.h>

#include "common/opt.h"

enum { STEP_BYTES = 128 };

int hx_json_check(const json_t *object, const char *const *known, const char *where, struct dm_err *err) {
    if (!json_is_object(object)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: must be an object", where);
    }
    size_t count = 0;
    while (known[count] != NULL) {
        count++;
    }
    void *iter = json_object_iter((json_t *)object);
    for (; iter != NULL; iter = json_object_iter_next((json_t *)object, iter)) {
        const char *name = json_object_iter_key(iter);
        bool found = false;
        for (size_t i = 0; i < count && !found; i++) {
            found = strcmp(name, known[i]) == 0;
        }
        if (!found) {
            const char *near = dm_suggest(name, known, count);
            return dm_fail(err, DM_ERR_INVALID, "%s: unknown member '%s'%s%s%s", where, name,
                           near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
        }
    }
    return 0;
}

static const char *type_text(json_type type) {
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "a whole number";
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}

static bool type_matches(const json_t *value, json_type type) {
    if (type == JSON_TRUE || type == JSON_FALSE) {
        return json_is_boolean(value);
    }
    if (type == JSON_REAL) {
        return json_is_number(value);
    }
    return json_typeof(value) == type;
}

int hx_json_get(const json_t *object, const char *name, json_type type, bool required, const char *where,
                const json_t **value, struct dm_err *err) {
    *value = json_object_get(object, name);
    if (*value == NULL) {
        return required ? dm_fail(err, DM_ERR_INVALID, "%s: member '%s' is missing", where, name) : 0;
    }
    if (!type_matches(*value, type)) {
        *value = NULL;
        return dm_fail(err, DM_ERR_INVALID, "%s.%s: must be %s", where, name, type_text(type));
    }
    return 0;
}

json_t *hx_json_merge(const json_t *base, const json_t *over) {
    json_t *merged = base != NULL ? json_deep_copy(base) : json_object();
    if (merged == NULL || over == NULL) {
        return merged;
    }
    void *iter = json_object_iter((json_t *)over);
    for (; iter != NULL; iter = json_object_iter_next((json_t *)over, iter)) {
        const char *name = json_object_iter_key(iter);
        const json_t *value = json_object_iter_value(iter);
        const json_t *below = json_object_get(merged, name);
        json_t *copy =
            json_is_object(value) && json_is_object(below) ? hx_json_merge(below, value) : json_deep_copy(value);
        if (copy == NULL || json_object_set_new(merged, name, copy) != 0) {
            json_decref(merged);
            return NULL;
        }
    }
    return merged;
}

/* Copies the first step of a dotted path and returns what follows it, or NULL at the last step. A step that is longer
 * than any name becomes "", which no object has as a member. */
static const char *next_step(const char *path, char step[STEP_BYTES]) {
    size_t length = strcspn(path, ".");
    step[0] = '\0';
    if (length < STEP_BYTES) {
        memcpy(step, path, length);
        step[length] = '\0';
    }
    return path[length] == '.' ? path + length + 1 : NULL;
}

int hx_json_put(json_t *object, const char *path, json_t *value) {
    char step[STEP_BYTES];
    const char *rest = next_step(path, step);
    if (rest == NULL) {
        return json_object_set(object, step, value) == 0 ? 0 : DM_ERR_NO_MEMORY;
    }
    json_t *inner = json_object_get(object, step);
    if (!json_is_object(inner)) {
        inner = json_object();
        if (json_object_set_new(object, step, inner) != 0) {
            return DM_ERR_NO_MEMORY;
        }
    }
    return hx_json_put(inner, rest, value);
}

const json_t *hx_json_find(const json_t *object, const char *path) {
    while (path != NULL && object != NULL) {
        char step[STEP_BYTES];
        path = next_step(path, step);
        if (json_is_array(object)) {
            char *end;
            unsigned long index = strtoul(step, &end, 10);
            object = *end == '\0' && end != step ? json_array_get(object, index) : NULL;
        } else {
            object = json_object_get(object, step);
        }
    }
    return object;
}
