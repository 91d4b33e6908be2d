/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace file: operations and their verbs as the JSON array of events that Perfetto and chrome://tracing open. A node
 * is a process and a client a thread of its compute node; docs/results-format.md describes the format.
 */
#ifndef DM_HARNESS_RUN_VERB_TRACE_FILE_H
#define DM_HARNESS_RUN_VERB_TRACE_FILE_H

#include "check/run.h"

struct hx_trace_op {
    unsigned client, node;
    const char *name;
    uint64_t key;
    uint64_t begin_ns, end_ns;
    bool is_ended;
    int outcome; /* if it has ended */
};

struct hx_trace {
    const struct dm_topology *topology;
    const struct hx_trace_op *ops;
    size_t op_count;
    struct ck_verb *verbs; /* reordered by the writer */
    size_t verb_count;
};

/* Writes the file atomically. 0, DM_ERR_IO or DM_ERR_NO_MEMORY. */
int hx_trace_store(const struct hx_trace *trace, const char *path, struct dm_err *err);

/* The same from a checked run that kept its verbs. */
int hx_trace_store_run(const struct ck_result *result, const char *path, struct dm_err *err);

#endif
