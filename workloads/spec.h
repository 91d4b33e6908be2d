/* SPDX-License-Identifier: Apache-2.0
 *
 * The specification of a workload: the checked numbers that names, property files and options resolve to. Used inside
 * this folder only.
 */
#ifndef DM_WORKLOADS_SPEC_H
#define DM_WORKLOADS_SPEC_H

#include "workloads/workload.h"

#define WL_DISTRIBUTIONS(X)                                                                                            \
    X(WL_DIST_UNIFORM, "uniform")                                                                                      \
    X(WL_DIST_ZIPFIAN, "zipfian")                                                                                      \
    X(WL_DIST_LATEST, "latest")                                                                                        \
    X(WL_DIST_HOTSPOT, "hotspot")                                                                                      \
    X(WL_DIST_EXPONENTIAL, "exponential")                                                                              \
    X(WL_DIST_SEQUENTIAL, "sequential")                                                                                \
    X(WL_DIST_ZIPFIAN_CLUSTERED, "zipfian_clustered")                                                                  \
    X(WL_DIST_ZIPFIAN_HASHED, "zipfian_hashed")                                                                        \
    X(WL_DIST_PROD1, "prod1")                                                                                          \
    X(WL_DIST_PROD2, "prod2")                                                                                          \
    X(WL_DIST_PROD2_FIXED, "prod2_fixed")
enum wl_dist {
#define X(name, text) name,
    WL_DISTRIBUTIONS(X)
#undef X
        WL_DIST_COUNT,
};
extern const char *const wl_dist_names[WL_DIST_COUNT];

struct wl_spec {
    double share[WL_OP_KIND_COUNT];
    enum wl_dist dist;
    double theta;
    bool ordered; /* insert order */
    uint64_t scan_min, scan_max;
    bool scan_zipfian;
    uint64_t record_count;    /* the first key number that the run inserts */
    uint64_t operation_count; /* operations that a property file asks for; 0: it does not say */
    uint64_t insert_start;    /* the first key number loaded */
    uint64_t insert_count;    /* key numbers loaded; 0: record_count */
    double hot_data, hot_operations;
    double exponential_percentile, exponential_share;
    const char *key_set; /* the workload's own, in effect unless the configuration names one; "": by insert order */
    double loaded;       /* share of the keys that is loaded */
    bool upserts;
    bool client_ranges; /* each client inserts into ranges of its own */
    uint64_t trace_ops; /* operations after which a client begins again with its first; 0: never */
};

/* Sets the defaults of YCSB's core workload. */
void wl_spec_defaults(struct wl_spec *spec);

/* Applies the workload `name`: a row of wl_names or a property file. For an unknown name the error suggests the nearest
 * one. */
int wl_spec_apply_name(struct wl_spec *spec, const char *name, struct dm_err *err);

/* Applies a YCSB property file. Errors begin with "file:line". One warning on the log lists the properties that were
 * ignored because they have no meaning here. */
int wl_spec_apply_file(struct wl_spec *spec, const char *path, struct dm_err *err);

/* Applies "name=value,name=value". */
int wl_spec_apply_properties(struct wl_spec *spec, const char *text, struct dm_err *err);

/* The key set of a named workload, "" if it has none of its own. */
const char *wl_spec_named_key_set(const char *name);

/* Writes the positive shares as the text of a mix, which parses to exactly the same numbers. Returns as snprintf. */
int wl_spec_format_mix(const double share[WL_OP_KIND_COUNT], char *text, size_t capacity);

/* Overrides the specification by the members of the configuration that are set, then checks all of it. */
int wl_spec_resolve(struct wl_spec *spec, const struct wl_config *config, struct dm_err *err);

/* The index of `text` in a list of names, or `count` if it is not there. */
unsigned wl_name_index(const char *text, const char *const *names, unsigned count);

/* Fails with "what: there is no 'text'; did you mean ...?". */
int wl_fail_name(struct dm_err *err, const char *what, const char *text, const char *const *names, unsigned count);

#endif
