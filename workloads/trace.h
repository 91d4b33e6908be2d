/* SPDX-License-Identifier: Apache-2.0
 *
 * Twitter's cache traces: lines "timestamp,key,key size,value size,client,operation,TTL", plain or zstd.
 *
 * Keys are hashed to 64 bits, so the order of keys means nothing and there are no scans. Operations map as
 *   get, gets                     -> get
 *   delete                        -> delete
 *   all others (they write)       -> update of a present key, insert of an absent key
 * The trace determines whether a key is present. A key whose first operation is set or add is absent at the start;
 * every other key is loaded before the run. Sizes and times are not used: values have the size of the run.
 */
#ifndef DM_WORKLOADS_TRACE_H
#define DM_WORKLOADS_TRACE_H

#include "workloads/workload.h"

#define WL_TRACE_OPS(X)                                                                                                \
    X(WL_TRACE_GET, "get")                                                                                             \
    X(WL_TRACE_GETS, "gets")                                                                                           \
    X(WL_TRACE_SET, "set")                                                                                             \
    X(WL_TRACE_ADD, "add")                                                                                             \
    X(WL_TRACE_REPLACE, "replace")                                                                                     \
    X(WL_TRACE_CAS, "cas")                                                                                             \
    X(WL_TRACE_APPEND, "append")                                                                                       \
    X(WL_TRACE_PREPEND, "prepend")                                                                                     \
    X(WL_TRACE_DELETE, "delete")                                                                                       \
    X(WL_TRACE_INCR, "incr")                                                                                           \
    X(WL_TRACE_DECR, "decr")
enum wl_trace_op {
#define X(name, text) name,
    WL_TRACE_OPS(X)
#undef X
        WL_TRACE_OP_COUNT,
};
extern const char *const wl_trace_op_names[WL_TRACE_OP_COUNT];

struct wl_trace_summary {
    uint64_t requests;             /* well-formed lines */
    uint64_t malformed;            /* skipped ones (lenient) */
    uint64_t malformed_first_line; /* 1 for the first; 0: none */
    uint64_t by_trace_op[WL_TRACE_OP_COUNT];
    uint64_t by_kind[WL_OP_KIND_COUNT];
    uint64_t keys, keys_loaded, keys_once; /* distinct; loaded before the run; requested only once */
    uint64_t key_bytes, value_bytes;       /* sums over the requests of the sizes in the trace */
    uint64_t values;                       /* requests with a value size above 0 */
    uint64_t first_s, last_s;              /* timestamps in seconds */
};

/* Reads a whole trace (or its first `requests_max` requests, 0: all). An empty trace, and without `lenient` a malformed
 * line, is an error that names the line. */
int wl_trace_summarize(const char *path, bool lenient, uint64_t requests_max, struct wl_trace_summary *summary,
                       struct dm_err *err);

struct wl_trace;

/* Reads the first `requests_max` requests (0: all) to collect the keys, and rewinds. The caller closes the trace. */
int wl_trace_open(const char *path, bool lenient, uint64_t requests_max, struct wl_trace **trace, struct dm_err *err);
void wl_trace_close(struct wl_trace *trace); /* accepts NULL */
const struct wl_trace_summary *wl_trace_summary_of(const struct wl_trace *trace);

/* The keys to load, ascending and distinct, in a new array that the caller frees. NULL without keys, and NULL with a
 * count above 0 when there is no memory for them. */
uint64_t *wl_trace_keys(const struct wl_trace *trace, uint64_t *count);

/* Returns the next request of the trace: 0, DM_NOT_FOUND at the end, or a failure. Thread-safe; each request is
 * returned to one caller. */
int wl_trace_next(struct wl_trace *trace, struct wl_op *op);

#endif
