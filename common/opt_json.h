/* SPDX-License-Identifier: Apache-2.0
 *
 * Option tables to and from JSON, and strict reading of JSON files. Only configuration and result code includes this.
 */
#ifndef DM_COMMON_OPT_JSON_H
#define DM_COMMON_OPT_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "common/opt.h"

/* Reads a whole JSON file whose top is an object. A malformed, truncated or unreadable file or a duplicate member gives
 * a one-line error with "file:line:column". The caller owns the result; NULL on failure. */
json_t *dm_json_load(const char *path, struct dm_err *err);

/* Sets options from the members of `object`; a member that the table does not have is an error naming it and `where` (a
 * file or a member path) with the nearest name. Numbers, booleans and strings (with units) are all accepted where they
 * make sense. */
int dm_opt_from_json(const struct dm_opt *table, void *values, const json_t *object, const char *where,
                     struct dm_err *err);

/* All options as a new JSON object (the caller owns it): numbers as numbers, durations in ns, sizes in bytes; whole
 * numbers above 2^63 - 1 as strings. NULL when out of memory. */
json_t *dm_opt_to_json(const struct dm_opt *table, const void *values);

/* Removes the members of `object` that are rows with `added` at their defaults. false: out of memory. */
bool dm_opt_drop_added(const struct dm_opt *table, json_t *object);

/* Writes to "path.tmp.<pid>", syncs and renames: readers see the whole file or none. On failure nothing is left behind.
 * Symbolic links, devices and FIFOs: see common/output_file.h. */
int dm_json_store(const json_t *value, const char *path, struct dm_err *err);

#endif
