/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one point: from a resolved configuration to what was measured.
 */
#ifndef DM_HARNESS_RUN_DRIVER_H
#define DM_HARNESS_RUN_DRIVER_H

#include "common/hist.h"
#include "harness/run/config.h"
#include "harness/run/verb_tracer.h"
#include "indexes/index.h"
#include "transport/fabric.h"
#include "workloads/workload.h"

/* Outcome `code` of an operation is counted at index code + HX_OUTCOME_ZERO. */
enum { HX_OUTCOME_ZERO = 12, HX_OUTCOMES = 16 };

/* All operations of one kind. An RMW is counted as such and again as the get and the update that it is made of. */
struct hx_op_stats {
    uint64_t count;
    uint64_t outcomes[HX_OUTCOMES];
    uint64_t entries; /* pairs that scans returned */
    uint64_t shared;  /* answered by another client's operation, see indexes/rdwc.h */
    struct dm_account account;
    struct dm_hist latency_ns; /* of an open loop: from when it was due */
    struct dm_hist service_ns; /* of an open loop: from when it began */
};

/* How an open loop kept to its schedule, over the measured operations. */
struct hx_punctuality {
    uint64_t due_first_ns, due_last_ns; /* when the first and the last of them were to begin */
    uint64_t begun_last_ns;             /* when the last of them began */
    uint64_t delay_max_ns;              /* the longest time by which one began late */
};

/* Seconds of host time; they never enter the compared part of a virtual-time result. */
struct hx_host_times {
    double keys_s, setup_s, load_s, run_s, wall_s;
};

struct hx_measured {
    bool is_virtual;
    struct hx_op_stats ops[WL_OP_KIND_COUNT];
    uint64_t operations; /* drawn and measured; an RMW is one */
    uint64_t succeeded;  /* those of them that did not fail: throughput counts these */
    uint64_t drawn;      /* with warm-up */
    uint64_t loaded_keys;
    uint64_t warmup_ns, duration_ns;
    uint64_t start_ns; /* when the first measured operation began */
    struct hx_punctuality punctuality;
    uint64_t *counters; /* of the index, in the order of its names */
    struct dm_memory_use memory;
    uint64_t cache_bytes; /* of the compute node that uses most */
    uint64_t rdwc_bytes;  /* of read delegation and write combining, a compute node */
    uint64_t bypassed;    /* operations whose place there another key had */
    struct dm_resource *resources;
    size_t resource_count;
    struct hx_note {
        char name[24], value[72];
    } notes[DM_NOTES_MAX]; /* see dm_fabric_notes */
    size_t note_count;
    bool verified;
    struct ix_report report;
    struct hx_host_times host;
    uint64_t verbs; /* of warm-up and measurement */
};

/* Opens, loads, runs, looks and closes. 0; DM_ERR_STOPPED when interrupted; another failure with its reason. A
 * recording is there only on success. The tracer, or NULL, sees the measured operations. The caller frees *measured,
 * which is NULL on failure. Once for a configuration. */
int hx_measure(struct hx_config *config, struct hx_tracer *tracer, struct hx_measured **measured, struct dm_err *err);

/* Takes what was measured for one of several configurations, in the process that measured it. 0 or a failure. */
struct hx_taker {
    int (*take)(void *arg, size_t at, const struct hx_measured *measured, struct dm_err *err);
    void *arg;
};

/* Loads once, for the first configuration, and runs each of them from there in a process of its own, one after the
 * other, so that none sees what another wrote and all give what they would have given alone. They must agree in all
 * that loading depends on and in the number of clients, and run in virtual time. Returns the worst exit status of those
 * processes, each of which has said on stderr why it failed, or a failure of loading. */
int hx_measure_each(struct hx_config *const *configs, size_t count, const struct hx_taker *taker, struct dm_err *err);

/* Adds what another process measured of the same run, with its counters, as if its clients had been here. */
void hx_measured_merge(struct hx_measured *into, const struct hx_measured *from, const uint64_t *counters,
                       size_t counter_count);
void hx_measured_free(struct hx_measured *measured); /* accepts NULL */

/* The busiest resource, or NULL where the transport has none. */
const struct dm_resource *hx_bottleneck(const struct hx_measured *measured);

#endif
