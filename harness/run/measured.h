/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run measures, from the tallies of its clients to the result of the whole run.
 */
#ifndef DM_HARNESS_RUN_MEASURED_H
#define DM_HARNESS_RUN_MEASURED_H

#include "common/hist.h"
#include "harness/run/noise.h"
#include "harness/run/over_time.h"
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

/* The numbers of struct hx_totals: X(name, how two of them are combined). */
#define HX_TOTALS(X)                                                                                                   \
    X(operations, SUM)  /* that ended and are measured; an RMW is one */                                               \
    X(succeeded, SUM)   /* those of them that did not fail: throughput counts these */                                 \
    X(drawn, SUM)       /* with warm-up */                                                                             \
    X(verbs, SUM)       /* of warm-up and measurement */                                                               \
    X(bypassed, SUM)    /* operations that read delegation passed on, because another key had their slot */            \
    X(warmup_ns, MAX)   /* from the first client's beginning to the first measured operation */                        \
    X(start_ns, MIN)    /* when the first measured operation began; all clocks start at a barrier of the processes */  \
    X(end_ns, MAX)      /* when the last measured operation ended */                                                   \
    X(cache_bytes, MAX) /* of the compute node that uses most */                                                       \
    X(cache_entry_bytes, MAX) /* the same, as the index's authors count it; 0: not known */                            \
    X(rdwc_bytes, MAX)        /* of read delegation and write combining, a compute node */                             \
    X(due_first_ns, MIN)      /* open loop: when the first measured operation was due */                               \
    X(due_last_ns, MAX)       /* open loop: when the last one was due */                                               \
    X(begun_last_ns, MAX)     /* open loop: when the last one began */                                                 \
    X(delay_max_ns, MAX)      /* open loop: the longest time by which one began late */                                \
    X(waits, SUM)             /* inserts that waited until an older one was acknowledged, with warm-up */              \
    X(wait_max_ns, MAX)       /* the longest of these waits */

/* What threads and processes add up. It has no pointers, so that its bytes can be sent to another process. */
struct hx_totals {
    struct hx_op_stats ops[WL_OP_KIND_COUNT];
    struct dm_memory_use memory;
    struct hx_pace pace;
#define X(name, how) uint64_t name;
    HX_TOTALS(X)
#undef X
};

/* Totals of nothing: merging others into them gives the others. */
void hx_totals_clear(struct hx_totals *totals);
void hx_totals_merge(struct hx_totals *into, const struct hx_totals *from);

/* Where clients record their measurements: one per thread in real time; in virtual time, where everything runs on one
 * thread, one for all clients. */
struct hx_tally {
    struct hx_totals totals; /* accounts of get and update: without the parts of an RMW */
    struct dm_account rmw_get, rmw_update;
    uint64_t begun; /* measured operations, ended or not */
    uint64_t *counters;
    struct hx_over_time *over_time; /* NULL without --interval */
};

/* An `interval_ns` of 0: no values over time. NULL when out of memory. */
struct hx_tally *hx_tally_new(size_t counter_count, uint64_t interval_ns);
void hx_tally_free(struct hx_tally *tally); /* accepts NULL */

/* Samples retries, round trips and the resources of `sample`, which has the other members set. */
void hx_tally_sample(struct hx_tally *tally, struct hx_sample sample, const struct dm_topology *topology,
                     double *worked_ns);

/* Seconds of host time; they never enter the compared part of a virtual-time result. The last two are processor time,
 * which other programs of the host hardly change: of keys, set-up and load, and of all later work. */
struct hx_host_times {
    double keys_s, setup_s, load_s, run_s, wall_s;
    double load_cpu_s, run_cpu_s;
};

struct hx_measured {
    bool is_virtual;
    bool is_partial; /* an interrupt ended the measurement */
    struct hx_totals totals;
    uint64_t loaded_keys;
    uint64_t *counters; /* of the index, in the order of its names */
    struct dm_resource *resources;
    size_t resource_count;
    struct hx_over_time *over_time; /* NULL without --interval */
    struct hx_note {
        char name[24], value[72];
    } notes[DM_NOTES_MAX]; /* see dm_fabric_notes */
    size_t note_count;
    bool verified;
    struct ix_report report;
    struct hx_host_times host;
    struct hx_noise noise; /* in real time: what disturbed the run when it began */
};

struct hx_measured *hx_measured_new(void);           /* NULL when out of memory */
void hx_measured_free(struct hx_measured *measured); /* accepts NULL */

/* Adds a tally, with the parts of RMWs counted where results have them. */
void hx_measured_add(struct hx_measured *into, const struct hx_tally *from, size_t counter_count);

/* Adds what another process measured of the same run, as if its clients had been here. */
void hx_measured_merge(struct hx_measured *into, const struct hx_totals *from, const uint64_t *counters,
                       size_t counter_count);

/* From the beginning of the first measured operation to the end of the last one. */
uint64_t hx_measured_duration_ns(const struct hx_measured *measured);

/* The busiest resource, or NULL where the transport has none. */
const struct dm_resource *hx_bottleneck(const struct hx_measured *measured);

#endif
