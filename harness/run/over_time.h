/* SPDX-License-Identifier: Apache-2.0
 *
 * Values over time. Time is divided into slices of equal width, multiples of which are the same moments in every thread
 * and process, so that their slices add up. The number of slices is fixed: when a run outgrows them, neighbours are
 * joined and the width doubles, which needs no memory while the run measures.
 *
 * Every run has its pace, from which `settled` is judged. With --interval it also keeps latencies, retries and the use
 * of resources.
 */
#ifndef DM_HARNESS_RUN_OVER_TIME_H
#define DM_HARNESS_RUN_OVER_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/fabric.h"

enum {
    HX_SLICES = 512,
    HX_PACE_WIDTH_NS = 1000, /* at first */
    HX_BUSY_MAX = 24,        /* columns of resources: 8 resources of 3 roles of nodes */
    HX_SLICE_SUB_BITS = 5,   /* a power of two has so many buckets of latency, as a power of two */
    HX_SLICE_BUCKETS = 1152, /* up to 2^40 ns */
    HX_SETTLED_BATCHES = 32,
};

/* Slice i of `used` covers [base + i, base + i + 1) * width. */
struct hx_grid {
    uint64_t width_ns, base;
    size_t used;
};

/* How many operations ended in each slice, and how long they had taken. */
struct hx_pace {
    struct hx_grid grid;
    struct hx_pace_slice {
        uint64_t operations, latency_ns;
    } slices[HX_SLICES];
};

void hx_pace_clear(struct hx_pace *pace);
void hx_pace_note(struct hx_pace *pace, uint64_t now_ns, uint64_t latency_ns);
void hx_pace_merge(struct hx_pace *into, const struct hx_pace *from);

/* The halves of a measurement compared: the medians of the batches of each half, and how likely halves of one and the
 * same behaviour are to differ so much. */
struct hx_settled {
    bool is_known; /* false: too short to say */
    bool is_settled;
    double first, second, p;
};

/* Divides the time between start and end into batches. Throughput of a closed loop, mean latency of an open one, whose
 * throughput is the schedule's. */
struct hx_settled hx_settled_judge(const struct hx_pace *pace, uint64_t start_ns, uint64_t end_ns, bool is_open_loop);

struct hx_slice {
    uint64_t operations, succeeded;
    uint64_t latency_sum_ns, latency_max_ns;
    uint64_t retries, round_trips;
    double worked_ns[HX_BUSY_MAX]; /* by the busiest node of each column */
    uint32_t latencies[HX_SLICE_BUCKETS];
};

#define HX_NOT_SAMPLED UINT64_MAX

/* It has no pointers, so that its bytes can be sent to another process. */
struct hx_over_time {
    struct hx_grid grid;
    uint64_t sampled_ns; /* when retries and resources were last sampled, or HX_NOT_SAMPLED */
    uint64_t retries, round_trips;
    struct hx_slice slices[HX_SLICES];
};

struct hx_over_time *hx_over_time_new(uint64_t width_ns); /* NULL when out of memory; the caller frees it */
void hx_over_time_note(struct hx_over_time *over_time, uint64_t now_ns, uint64_t latency_ns, bool has_succeeded);
void hx_over_time_merge(struct hx_over_time *into, const struct hx_over_time *from);

/* Whether `now` is in a later slice than the last sample, or no sample has been taken. */
bool hx_over_time_is_due(const struct hx_over_time *over_time, uint64_t now_ns);

/* What has been counted and how long each resource has worked up to now, in all. */
struct hx_sample {
    uint64_t now_ns, retries, round_trips;
    const struct dm_resource *resources; /* of the time since `since_ns`; NULL: none */
    size_t resource_count;
    uint64_t since_ns;
};

/* The first sample is what others are compared with. `worked_ns` has a number a resource and is kept between samples.
 */
void hx_over_time_sample(struct hx_over_time *over_time, const struct hx_sample *sample,
                         const struct dm_topology *topology, double *worked_ns);

/* The column of a resource, by the role of its node and its name; the names of columns are "role.resource", and NULL
 * from the first unused one on. The names are those of the resources. */
struct hx_busy_column {
    const char *role, *name;
};
size_t hx_busy_columns(const struct dm_topology *topology, const struct dm_resource *resources, size_t count,
                       struct hx_busy_column columns[HX_BUSY_MAX]);

/* "memory", "server" or "compute". */
const char *hx_node_role(const struct dm_topology *topology, unsigned node);

/* The latency that a share of the operations of a slice did not exceed; at most 1/32 too high. */
uint64_t hx_slice_quantile(const struct hx_slice *slice, double share);

#endif
