/* SPDX-License-Identifier: Apache-2.0
 *
 * The workload contract: which keys are loaded, and which operations each client runs. It does not depend on indexes or
 * transports.
 *
 * A workload is shared by all clients of a run. A stream belongs to one client and is derived from (seed, client), so
 * the operations of a client do not depend on timing. The exception is YCSB's: keys that other clients insert can be
 * chosen once their inserts are acknowledged.
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
    X(WL_RMW, "rmw") /* get, then update of the same key; measured as one operation and as two */                      \
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
    bool upsert;     /* an update that finds its key absent shall insert, an insert that finds it present update */
    uint64_t ticket; /* for wl_done; only the workload interprets it */
};

struct wl;        /* an open workload */
struct wl_stream; /* one client's operations */

/* The configuration of a workload; wl_options has a row for each member. A member that is "" or 0 stands for the named
 * workload's own value. */
struct wl_config {
    const char *workload;   /* a..f, load, a name of wl_names, or a YCSB property file */
    const char *properties; /* "name=value,name=value": YCSB properties that override the file's (-p) */
    const char *mix;        /* "read=0.5,update=0.5": read, update, insert, scan, rmw, delete; must sum to 1 */
    const char *
        distribution; /* uniform, zipfian (scrambled), latest, hotspot, exponential, sequential, zipfian_clustered... */
    double theta;     /* of the Zipfian; 0.99 */
    const char *insert_order; /* hashed, ordered */
    uint64_t scan_min, scan_max;
    const char *scan_distribution; /* uniform, zipfian */
    uint64_t keys;                 /* that can be chosen from the start */
    double loaded;                 /* share of them that is loaded before the run */
    const char *upserts;           /* on, off */
    const char *insert_ranges;     /* shared, client */
    uint64_t trace_ops_per_client;
    const char *key_set; /* "" (insert_order decides), dense, grown, folded, uniform, normal, lognormal, linear_noise,
                            or sosd:FILE */
    const char *trace;   /* a Twitter cache-trace CSV, .zst allowed; replaces mix and distribution */
    bool lenient;        /* count malformed trace lines instead of failing */
    const char *replay;  /* a file written by wl_record */
};
extern const struct dm_opt wl_options[];

/* The named workloads, each with a summary of one line: a..f, load and the papers' own mixes. NULL-terminated. */
struct wl_name {
    const char *name, *summary;
};
extern const struct wl_name wl_names[];

/* Whether the named workload has this key set of its own, so that another workload would not inherit it. */
bool wl_is_own_key_set(const char *workload, const char *key_set);

/* `operations` is the number that all clients together will draw; YCSB sizes its key range by it. The configuration is
 * copied. The caller closes the workload. */
int wl_open(const struct wl_config *config, uint64_t operations, unsigned clients, uint64_t seed, struct wl **wl,
            struct dm_err *err);
void wl_close(struct wl *wl);

/* Declares that this process runs part `part` of `parts` of the clients. Must be called before a stream is opened, and
 * every part must open the workload with the same arguments. Parts insert disjoint keys, and a part chooses among the
 * loaded keys and those that it inserted itself. DM_ERR_UNSUPPORTED for traces and recordings. */
int wl_partition(struct wl *wl, unsigned part, unsigned parts, struct dm_err *err);

/* The keys to load, ascending and distinct. The array is valid until wl_close or wl_keys_release; the latter frees it
 * once the index is loaded. NULL without keys, and NULL with a count above 0 when there is no memory for them. */
const uint64_t *wl_keys(struct wl *wl, uint64_t *count);
void wl_keys_release(struct wl *wl);

/* The keys that the run may insert, ascending and distinct, without those to load: of as many inserts as are expected
 * of its operations, and some more, as their number is random; with upserts also the keys that are chosen but not
 * loaded. *keys is valid as that of wl_keys, and NULL if there are none. DM_ERR_UNSUPPORTED: a trace or a recording;
 * DM_ERR_NO_MEMORY. */
int wl_keys_to_come(struct wl *wl, const uint64_t **keys, uint64_t *count);

/* The resolved configuration (mix, distribution, theta...), which results record. */
const struct wl_config *wl_effective(const struct wl *wl);

/* The number of operations in a trace or a recording; 0 for a workload without end. */
uint64_t wl_length(const struct wl *wl);

/* The operations that a property file asks for (operationcount); 0: it does not say. */
uint64_t wl_operation_count(const struct wl *wl);

/* The expected share of each kind of operation (0 where unknown), and the longest scan. */
void wl_mix(const struct wl *wl, double share[WL_OP_KIND_COUNT]);
uint32_t wl_scan_max(const struct wl *wl);

struct wl_stream *wl_stream_open(struct wl *wl, unsigned client);
void wl_stream_close(struct wl_stream *stream);

/* Returns the client's next operation: 0, DM_NOT_FOUND at the end of a trace or recording, or a failure.
 * DM_ERR_RETRY_LIMIT: it is an insert, and too many later inserts wait for the acknowledgement of an older one; the
 * next call returns the same insert. Threads may call it at the same time for different streams. */
int wl_next(struct wl_stream *stream, struct wl_op *op);

/* A loaded key, drawn evenly. Does not change which operations follow. Not of a trace, whose keys have no numbers. */
uint64_t wl_loaded_key(struct wl_stream *stream);

/* Must be called when the operation has ended, with its outcome (of an RMW: that of the update). Acknowledges inserts,
 * so that their keys can be chosen, and keeps in mind which keys upserts will find. */
void wl_done(struct wl_stream *stream, const struct wl_op *op, int outcome);

/* The value that is written for (key, version). Its first 8 bytes are dm_mix64(key ^ dm_mix64(version)); the other
 * bytes are derived from them. */
void wl_value(uint64_t key, uint64_t version, void *value, uint32_t bytes);

/* Records the operations of all streams that are opened after this call, in "path.tmp.<pid>". */
int wl_record(struct wl *wl, const char *path, struct dm_err *err);

/* Completes the recording and renames it to its path; its streams must be closed. After a failure the file is removed.
 * Returns 0 if nothing is recorded. wl_close removes a recording that was not finished. */
int wl_record_finish(struct wl *wl, struct dm_err *err);

#endif
