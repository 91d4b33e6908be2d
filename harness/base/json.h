/* SPDX-License-Identifier: Apache-2.0
 *
 * Small helpers over JSON objects that sweeps and figures share: strict members, deep merge, dotted paths.
 */
#ifndef DM_HARNESS_BASE_JSON_H
#define DM_HARNESS_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"

/* DM_ERR_INVALID, naming the member, `where` and the nearest known name, unless every member of `object` is among the
 * NULL-terminated `known`. A value that is not an object is an error too. */
int hx_json_check(const json_t *object, const char *const *known, const char *where, struct dm_err *err);

/* Sets *value to the member called name (borrowed). An absent one gives NULL, and an error if it is `required`; a
 * member of another type is an error. JSON_TRUE stands for either boolean, JSON_REAL for any number. */
int hx_json_get(const json_t *object, const char *name, json_type type, bool required, const char *where,
                const json_t **value, struct dm_err *err);

/* A new object: `base` with the members of `over` put over it, objects merged member by member. Either may be NULL.
 * NULL when out of memory. */
json_t *hx_json_merge(const json_t *base, const json_t *over);

/* Puts a value at a dotted path ("set.node_bytes"), creating the objects that the path passes through. `value` is not
 * consumed. 0 or DM_ERR_NO_MEMORY. */
int hx_json_put(json_t *object, const char *path, json_t *value);

/* The value at a dotted path ("ops.get.latency_ns.p99"), borrowed, or NULL. A step into an array is a number. */
const json_t *hx_json_find(const json_t *object, const char *path);

#endif
