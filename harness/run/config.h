/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of one point: everything `dmbench run` needs, from the command line, a JSON spec or both. The
 * `config` member of a result is such a spec.
 *
 * JSON form: one object. Top-level members are the run options and workload options by their option names ("index",
 * "transport", "profile", "workload", "keys", "ops", "warmup", "clients", ...); "set" is an object of index parameters
 * and "transport_set" one of transport options. Members that are absent take their defaults; unknown ones are errors.
 */
#ifndef DM_HARNESS_RUN_CONFIG_H
#define DM_HARNESS_RUN_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* The version of the form of results and specs, which results/schema.json defines, and of the names of points. */
enum { HX_SCHEMA_VERSION = 2 };

struct hx_config;

/* A configuration of defaults. The caller closes it; NULL when out of memory. */
struct hx_config *hx_config_new(void);
void hx_config_close(struct hx_config *config); /* accepts NULL */

/* Applies a spec object over the current values; `where` (a file name) begins every error. Of a complete result its
 * configuration is applied. */
int hx_config_apply_json(struct hx_config *config, const json_t *spec, const char *where, struct dm_err *err);

/* Applies one option by its command-line name without dashes ("clients"), or "set.NAME" / "transport_set.NAME". "ycsb"
 * names a workload file, "p" adds one YCSB property. */
int hx_config_set(struct hx_config *config, const char *name, const char *text, struct dm_err *err);

/* The members that describe what a named workload does. When the workload is named again (on the command line over a
 * result, or by a sweep), its own mix applies and not the one that the file spells out. NULL-terminated. */
extern const char *const hx_workload_details[];

/* Resets them, so that the named workload defines them. */
int hx_config_forget_details(struct hx_config *config, struct dm_err *err);

/* Checks everything that can be checked without running: names, ranges, index parameters against the shape, memory
 * against the keys. Must be called once after the last change; fills in derived defaults (memory node size, threads).
 */
int hx_config_resolve(struct hx_config *config, struct dm_err *err);

/* A resolved configuration, as results have it, without the members whose values follow from the others (mn_memory,
 * warmup): applied to a new configuration it gives the same one, and the same values follow again when others change.
 * A new object; NULL when out of memory. */
json_t *hx_config_given(const json_t *config);

/* The configuration of a complete result, to run it again: without mn_memory where that was the size that followed from
 * the rest. A new object; NULL when out of memory. */
json_t *hx_config_again(const json_t *result);

/* As hx_config_apply_json, but of a complete result only what hx_config_given has is applied, for a user who puts other
 * options over it. */
int hx_config_apply_given(struct hx_config *config, const json_t *spec, const char *where, struct dm_err *err);

/* The words of a command line that gives this resolved configuration, "dmbench", "run", ...: what differs from the
 * defaults and does not follow from it. A new array; NULL when out of memory. */
json_t *hx_config_command(const struct hx_config *config);

/* Forgets the parameters of the index, or the options of the transport, that files gave. Returns how many there were.
 */
size_t hx_config_forget_set(struct hx_config *config, bool transport);

/* The full resolved configuration as a new object: applied to a new config it gives the same one. */
json_t *hx_config_to_json(const struct hx_config *config);

/* 16 hex digits over the resolved configuration, the profile's content and the result schema version: the name of a
 * point. Options that were added later (dm_opt.added) count only where they differ from their defaults, mn_memory only
 * where it is not the size that follows from the rest: a better estimate of an index's memory makes no other points. */
void hx_config_hash(const struct hx_config *config, char hex[17]);

/* Whether `hash` is that of a configuration as hx_config_to_json writes it; `profile_hash` is NULL without a profile.
 * `is_memory_implied`: its mn_memory was the size that followed from the rest when the hash was made. */
bool hx_config_has_hash(const json_t *config, const char *profile_hash, bool is_memory_implied, const char *hash);

/* A hash over the values that all processes of one run must share. Devices and timeouts may differ. */
uint64_t hx_config_fingerprint(const struct hx_config *config);

#endif
