/* SPDX-License-Identifier: Apache-2.0
 *
 * The run options, one row each. Command line, JSON specs, help, `dmbench list` and the configuration in results all
 * follow from these rows.
 */
#include "harness/run/options.h"

#include <string.h>

#include "workloads/workload.h"

static const char *const rdwc_names[] = {"off", "on", "published", NULL}; /* as enum ix_rdwc_mode */

#define ROW(member, ...)          DM_OPT_ROW(struct hx_settings, member, __VA_ARGS__)
#define ROW_AS(name, member, ...) DM_OPT_ROW_AS(name, struct hx_settings, member, __VA_ARGS__)

static const struct dm_opt what_options[] = {
    ROW(index, DM_OPT_STRING, .values = "indexes", .initial = "sherman",
        .help = "the index to run; see `dmbench list indexes`"),
    ROW(rdwc, DM_OPT_ENUM, .initial = "off", .choices = rdwc_names,
        .help =
            "read delegation and write combining: gets, and updates, of one key that clients of a compute node want at "
            "the same time are one operation on the index; published: also those that come while it runs, which "
            "is not linearizable"),
    ROW(transport, DM_OPT_STRING, .values = "transports", .initial = "sim",
        .help =
            "what moves the bytes: sim is a modelled RDMA fabric in virtual time, local is shared memory in real time, "
            "verbs is RDMA hardware (or software RoCE) through libibverbs"),
    ROW(profile, DM_OPT_STRING, .values = "profiles", .initial = "cx6-100g",
        .help = "NIC and CPU profile, a name or a path ending in .json; transports that take none ignore it"),
    DM_OPT_END,
};

/* The maxima of the node counts add up to less than 256, because an address has 8 bits for the node. */
static const struct dm_opt cluster_options[] = {
    ROW(cns, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 128, .help = "compute nodes"),
    ROW(mns, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 64, .help = "memory nodes"),
    ROW(servers, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 32, .derived = "2 for indexes that need them, else 0",
        .help = "index servers"),
    ROW(mn_cores, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 256,
        .help = "cores of a memory node, for the calls it serves"),
    ROW(server_cores, DM_OPT_COUNT, .initial = "16", .min = 1, .max = 256, .help = "cores of an index server"),
    ROW(clients, DM_OPT_COUNT, .initial = "16", .min = 1, .max = 16384,
        .help = "clients in all, spread evenly over the compute nodes"),
    ROW(coroutines, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 1024, .help = "clients that share a thread"),
    DM_OPT_END,
};

static const char *const arrival_names[] = {"fixed", "poisson", NULL}; /* as enum hx_arrival */

static const struct dm_opt load_options[] = {
    ROW(rate, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1e10, .unit = "operations a second",
        .help =
            "open loop: all clients together begin so many operations a second, on a schedule that never slips, and "
            "latency counts from the scheduled time; 0: closed loop, each client begins its next operation when its "
            "last one has ended"),
    ROW(arrival, DM_OPT_ENUM, .initial = "fixed", .choices = arrival_names,
        .help = "the schedule of an open loop: fixed distances, or those of a Poisson process"),
    ROW(record, DM_OPT_STRING, .values = "file", .initial = "",
        .help = "write the operations of the run to this file, for --replay"),
    DM_OPT_END,
};

static const struct dm_opt measure_options[] = {
    ROW(ops, DM_OPT_COUNT, .initial = "1M", .min = 1, .max = 1e12,
        .help = "measured operations of all clients together"),
    ROW(warmup, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1e12, .derived = "ops / 10",
        .help = "operations before them that are not counted"),
    ROW(load_reads, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1e12, .added = true,
        .help =
            "gets of loaded keys, drawn evenly, before the warm-up: they leave in the caches what a load by "
            "clients would, while the bulk load leaves them empty; in virtual time they do not meet the model of the "
            "network"),
    ROW(timed_warmup, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1e12, .added = true,
        .help =
            "in virtual time: only so many operations at the end of the warm-up meet the model of the network; those "
            "before them fill the caches at less of the host's time; 0: all of the warm-up"),
    ROW(warmup_samples, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1e6, .added = true,
        .help =
            "with --timed-warmup: so many parts of the warm-up before them, of 64 operations a client, meet the model "
            "too, and between them the clients of each compute node keep the pace of the last part; for clusters "
            "whose clients differ in speed; 0: all keep the same pace"),
    ROW_AS("duration", duration_ns, DM_OPT_DURATION, .initial = "0s",
           .help =
               "end the measurement after this much time of the run even if operations are left; 0: only after ops"),
    ROW_AS("interval", interval_ns, DM_OPT_DURATION, .initial = "0s",
           .help = "keep values over time, of slices of so much time (doubled until a run has at most 512); 0: none"),
    ROW(seed, DM_OPT_COUNT, .initial = "1", .min = 0, .max = 9007199254740991.0,
        .help = "of every random stream; in virtual time the same seed gives the same result"),
    ROW(verify, DM_OPT_BOOL, .initial = "0",
        .help = "walk the whole index after the measurement and fail with status 3 if it is broken"),
    DM_OPT_END,
};

static const struct dm_opt memory_options[] = {
    ROW_AS("cache", cache_bytes, DM_OPT_BYTES, .initial = "100MB", .min = 0, .max = 0x1p43,
           .help = "budget of index cache of a compute node"),
    ROW_AS("key_size", key_bytes, DM_OPT_BYTES, .initial = "8", .min = 8, .max = 256,
           .help = "bytes of a key: its number, which decides the order, and padding"),
    ROW_AS("value_size", value_bytes, DM_OPT_BYTES, .initial = "8", .min = 8, .max = 65536, .help = "bytes of a value"),
    ROW_AS("mn_memory", mn_bytes, DM_OPT_BYTES, .initial = "0", .min = 0, .max = 0x1p46,
           .derived = "what the keys and the expected inserts need", .help = "DRAM of a memory node"),
    ROW_AS("chunk", chunk_bytes, DM_OPT_BYTES, .initial = "256KiB", .min = 65536, .max = 0x1p30,
           .help = "bytes that a memory node hands to a thread at a time"),
    ROW(retry_limit, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 4294967295.0,
        .help = "retries of one operation before it fails with retry_limit; 0: the transport's own bound"),
    DM_OPT_END,
};

const struct hx_group hx_run_groups[] = {
    {"What runs", what_options},          {"The cluster", cluster_options},      {"The load", load_options},
    {"The measurement", measure_options}, {"Memory and limits", memory_options}, {NULL, NULL},
};

const struct dm_opt *hx_run_option(const char *name) {
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        const struct dm_opt *row = dm_opt_find(group->table, name);
        if (row) {
            return row;
        }
    }
    return NULL;
}

size_t hx_option_position(const char *name) {
    size_t position = 0;
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        for (const struct dm_opt *row = group->table; row->name; row++, position++) {
            if (strcmp(row->name, name) == 0) {
                return position;
            }
        }
    }
    for (const struct dm_opt *row = wl_options; row->name; row++, position++) {
        if (strcmp(row->name, name) == 0) {
            return position;
        }
    }
    return SIZE_MAX;
}
