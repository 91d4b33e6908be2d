/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths in results, by the schema of results.
 */
#include "harness/points/result_path.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/data_folder.h"
#include "common/opt_json.h"
#include "harness/base/errors.h"

enum { PATH_BYTES = 4200, STEP_BYTES = 128, NAMES_MAX = 64 };

/* The definition that "#/definitions/NAME" refers to, or the node itself. */
static const json_t *dereference(const json_t *schema, const json_t *node) {
    static const char prefix[] = "#/definitions/";
    const char *reference = json_string_value(json_object_get(node, "$ref"));
    if (reference == NULL || strncmp(reference, prefix, sizeof(prefix) - 1) != 0) {
        return node;
    }
    return json_object_get(json_object_get(schema, "definitions"), reference + sizeof(prefix) - 1);
}

/* What the schema says of one member of a value, or NULL if the value has no such member. */
static const json_t *member(const json_t *schema, const json_t *node, const char *step) {
    node = dereference(schema, node);
    const json_t *choice;
    size_t at;
    json_array_foreach(json_object_get(node, "oneOf"), at, choice) {
        const json_t *found = member(schema, choice, step);
        if (found != NULL) {
            return found;
        }
    }
    const json_t *named = json_object_get(json_object_get(node, "properties"), step);
    if (named != NULL) {
        return named;
    }
    const json_t *items = json_object_get(node, "items");
    if (items != NULL && step[strspn(step, "0123456789")] == '\0') {
        return json_is_array(items) ? json_array_get(items, 0) : items;
    }
    const json_t *others = json_object_get(node, "additionalProperties");
    bool is_open = json_is_object(node) && json_object_get(node, "properties") == NULL && others == NULL &&
                   json_object_get(node, "oneOf") == NULL && items == NULL;
    const char *type = json_string_value(json_object_get(node, "type"));
    if (is_open && type != NULL && strcmp(type, "object") == 0) {
        return node;
    }
    return json_is_object(others) || json_is_true(others) ? others : NULL;
}

static int fail_step(const json_t *schema, const json_t *node, const char *path, const char *step, struct dm_err *err) {
    const char *names[NAMES_MAX], *name;
    size_t count = 0;
    json_t *value;
    char what[STEP_BYTES + 64];
    json_object_foreach(json_object_get(dereference(schema, node), "properties"), name, value) {
        if (count < NAMES_MAX) {
            names[count++] = name;
        }
    }
    snprintf(what, sizeof(what), "member of results in '%.80s':", path);
    return count > 0 ? hx_fail_unknown(err, what, step, names, count)
                     : dm_fail(err, DM_ERR_INVALID, "'%.80s': results have nothing there", path);
}

int hx_result_path_check(const char *path, struct dm_err *err) {
    char file[PATH_BYTES];
    struct dm_err unread = {.code = 0};
    dm_data_path("results/schema.json", file, sizeof(file));
    json_t *schema = dm_json_load(file, &unread);
    const json_t *node = schema;
    int rc = 0;
    for (const char *at = path; schema != NULL && rc == 0 && at != NULL;) {
        char step[STEP_BYTES];
        size_t length = strcspn(at, ".");
        snprintf(step, sizeof(step), "%.*s", (int)length, at);
        const json_t *next = member(schema, node, step);
        rc = next == NULL ? fail_step(schema, node, path, step, err) : 0;
        node = next;
        at = at[length] == '.' ? at + length + 1 : NULL;
    }
    json_decref(schema);
    return rc;
}
