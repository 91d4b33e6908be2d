/* SPDX-License-Identifier: Apache-2.0
 *
 * One client of the measurement: draws operations from the shared budget, runs them on the index, and records what they
 * cost. Everything it needs is allocated before the measurement begins.
 */
#ifndef DM_HARNESS_RUN_WORKER_H
#define DM_HARNESS_RUN_WORKER_H

#include <stdatomic.h>

#include "harness/base/progress.h"
#include "harness/run/config_fields.h"
#include "harness/run/measured.h"
#include "harness/run/schedule.h"
#include "harness/run/verb_tracer.h"

/* What the clients of a run share. */
struct hx_run {
    const struct hx_config *config;
    struct dm_fabric *fabric;
    struct wl *wl;
    struct hx_progress *progress;
    struct hx_tracer *tracer; /* or NULL */
    size_t counter_count;
    struct hx_schedule schedule;
    bool is_virtual;
    bool is_replay;       /* clients own their operations, so one without any must not use up the budget */
    uint32_t block;       /* operations drawn from the budget at a time */
    uint64_t ops, warmup; /* the budget of this process's clients */
    uint64_t load_reads;  /* gets of these clients before it */
    uint64_t untimed;     /* its first operations, which do not meet the network's model but in samples */
    uint64_t sampled;     /* samples that have begun */
    uint64_t timing_ends; /* number of the operation at which it may change whether they meet it */
    /* In virtual time: the resources, sampled when the last measured operation had ended. */
    struct dm_resource *resources;
    size_t resource_count;
    uint64_t resources_at; /* operations that had ended at that sample; 0: no sample yet */
    /* With --interval: the resources at the end of a slice, and how long each had worked. */
    struct dm_resource *slice_resources;
    double *worked_ns;
    bool is_drawn;                /* the budget is used up: only clients that have drawn already begin operations */
    _Atomic uint64_t reads_drawn; /* of load_reads */
    _Atomic uint64_t drawn;
    _Atomic uint64_t begin_ns; /* when the first client began */
    _Atomic uint64_t start_ns; /* when the first measured operation began; UINT64_MAX before */
    atomic_flag failed;        /* set by the first client that fails for good; it alone writes err */
    struct dm_err err;
};

struct hx_worker {
    struct hx_run *run;
    void *cn;
    struct ix_rdwc *rdwc; /* of its compute node; NULL without */
    unsigned client;
    struct hx_tally *tally;
    struct wl_stream *stream;
    struct ix_client index;
    uint64_t drawn_next, drawn_left; /* what is left of the block drawn last */
    uint64_t due_ns;                 /* of an open loop: when its operation is due */
    uint64_t version;                /* of the next value it writes */
    bool is_measuring;
    uint64_t *counters_before;
    uint64_t bypassed_before;
    struct dm_account upsert; /* of the upsert that runs */
    void *value;
    uint32_t scan_capacity;
    uint64_t *scan_keys;
    void *scan_values;
};

/* Allocates what client number `client` needs. `rdwc` is NULL without read delegation. */
int hx_worker_init(struct hx_worker *worker, struct hx_run *run, unsigned client, void *cn, struct ix_rdwc *rdwc,
                   struct hx_tally *tally);
void hx_worker_fini(struct hx_worker *worker); /* accepts a zeroed one */

/* The client's context; `arg` is its worker. */
void hx_worker_main(struct dm_ctx *ctx, void *arg);

#endif
