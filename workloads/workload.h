/* SPDX-License-Identifier: Apache-2.0
 *
 * The workload contract: which keys are loaded, and which operations each client does. Knows nothing of indexes or
 * transports.
 *
 * A workload is shared by all clients of a run; a stream belongs to one client and is derived from (seed, client), so
 * what a client asks for does not depend on timing, except where YCSB says so: keys inserted by others count once they
 * were acknowledged.
 */
#ifndef DM_WORKLOADS_WORKLOAD_H
#define DM_WORKLOADS_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/opt.h"

#define WL_OPS(X)                                                                                                      \
    X(WL_GET, "get")                                                                                                   \
    X(WL_UPDATE, "update")                                                                                             \
    X(WL_INSERT, "insert")                                                                                             \
    X(WL_SCAN, "scan")                                                                                                 \
    X(WL_RMW, "rmw") /* get, then update of the same key; measured as a whole and as its parts */                      \
    X(WL_DELETE, "delete")
enum wl_op_kind {
#define X(name, text) name,
    WL_OPS(X)
#undef X
        WL_OP_KIND_COUNT,
};
extern const char *const wl_op_names[WL_OP_KIND_COUNT];

struct wl_op {
    enum wl_op_kind kind;
    uint64_t key;
    uint32_t scan_length;
    uint64_t ticket; /* the workload's own, for wl_done */
};

struct wl;        /* a workload, opened */
struct wl_stream; /* one client's operations */

/* Everything a workload is made of; rows in wl_options. Members that are "" or 0 take the named workload's own value.
 */
struct wl_config {
    const char *workload;   /* a..f, load, a name of wl_names, or a YCSB property file */
    const char *properties; /* "name=value,name=value": YCSB properties over the file's (-p) */
    const char *mix;        /* "read=0.5,update=0.5": read, update, insert, scan, rmw, delete; must sum to 1 */
    const char
        *distribution; /* uniform, zipfian (scrambled), latest, hotspot, exponential, sequential, zipfian_clustered */
    double theta;      /* of the Zipfian; 0.99 */
    const char *insert_order; /* hashed, ordered */
    uint64_t scan_min, scan_max;
    const char *scan_distribution; /* uniform, zipfian */
    uint64_t keys;                 /* loaded before the run */
    const char
        *key_set; /* "" (as insert_order says), dense, grown, uniform, normal, lognormal, linear_noise, or sosd:FILE */
    const char *trace;  /* a Twitter cache-trace CSV, .zst allowed; replaces mix and distribution */
    bool lenient;       /* count malformed trace lines instead of failing */
    const char *replay; /* a file written by wl_record */
};
extern const struct dm_opt wl_options[];

/* Named workloads with one line each, NULL-terminated: a..f, load and the papers' own mixes. */
struct wl_name {
    const char *name, *summary;
};
extern const struct wl_name wl_names[];

/* `operations` is the number all clients will draw in all (YCSB sizes its key range by it). The config is copied. The
 * caller closes. */
int wl_open(const struct wl_config *config, uint64_t operations, unsigned clients, uint64_t seed, struct wl **wl,
            struct dm_err *err);
void wl_close(struct wl *wl);

/* This process has part `part` of `parts` of the clients; before any stream is opened. All parts open the workload
 * alike. Keys that they insert do not meet, and choosers see those of their own part (and all loaded ones).
 * DM_ERR_UNSUPPORTED for traces and recordings. */
int wl_partition(struct wl *wl, unsigned part, unsigned parts, struct dm_err *err);

/* Loaded keys, ascending and distinct; valid until wl_close or wl_keys_release, which frees the array once the index is
 * loaded. */
const uint64_t *wl_keys(struct wl *wl, uint64_t *count);
void wl_keys_release(struct wl *wl);

/* The settings in force, for the result's configuration (mix, distribution, theta...), as rows of wl_options. */
const struct wl_config *wl_effective(const struct wl *wl);

/* Operations that there are in all, where a trace or a recording ends; 0: without end. */
uint64_t wl_length(const struct wl *wl);

/* Share of each operation kind to expect (0 where unknown), and the longest scan. */
void wl_mix(const struct wl *wl, double share[WL_OP_KIND_COUNT]);
uint32_t wl_scan_max(const struct wl *wl);

struct wl_stream *wl_stream_open(struct wl *wl, unsigned client);
void wl_stream_close(struct wl_stream *stream);

/* The client's next operation: 0, DM_NOT_FOUND when a trace or replay has no more, or a failure. Thread-safe between
 * streams. */
int wl_next(struct wl_stream *stream, struct wl_op *op);

/* To be called when the operation has ended, with its outcome (for an RMW the update's): inserts become visible to key
 * choosers. */
void wl_done(struct wl_stream *stream, const struct wl_op *op, int outcome);

/* What is written for (key, version): the first 8 bytes are dm_mix64(key ^ mix(version)), the rest follows from them.
 */
void wl_value(uint64_t key, uint64_t version, void *value, uint32_t bytes);

/* Operations drawn by streams opened from here on are written to "path.tmp.<pid>". */
int wl_record(struct wl *wl, const char *path, struct dm_err *err);

/* Completes the recording, once its streams are closed, and gives it its name; after a failure nothing is left of it. 0
 * where nothing is recorded. wl_close removes a recording that was not finished. */
int wl_record_finish(struct wl *wl, struct dm_err *err);

#endif
