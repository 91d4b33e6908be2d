/* SPDX-License-Identifier: Apache-2.0
 *
 * The run options, one row each. Command line, JSON specs, help, `dmbench list` and the configuration in results all
 * follow from these rows.
 */
#include <stdio.h>
#include <string.h>

#include "harness/settings.h"

#define AT(member) .offset = offsetof(struct hx_settings, member)

static const char *const rdwc_names[] = {"off", "on", NULL}; /* as enum ix_rdwc_mode; the wrong one is for `check` */

static const struct dm_opt what_options[] = {
    {.name = "index",
     .type = DM_OPT_STRING,
     AT(index),
     .initial = "sherman",
     .help = "the index to run; see `dmbench list indexes`"},
    {.name = "rdwc",
     .type = DM_OPT_ENUM,
     AT(rdwc),
     .initial = "off",
     .choices = rdwc_names,
     .help =
         "read delegation and write combining: gets, and updates, of one key that clients of a compute node want at "
         "the same time are one operation on the index"},
    {.name = "transport",
     .type = DM_OPT_STRING,
     AT(transport),
     .initial = "sim",
     .help =
         "what moves the bytes: sim is a modelled RDMA fabric in virtual time, local is shared memory in real time"},
    {.name = "profile",
     .type = DM_OPT_STRING,
     AT(profile),
     .initial = "cx6-100g",
     .help = "NIC and CPU profile, a name or a path ending in .json; transports that take none ignore it"},
    DM_OPT_END,
};

/* The greatest numbers of nodes add up to less than the 256 that an address can tell apart. */
static const struct dm_opt cluster_options[] = {
    {.name = "cns", .type = DM_OPT_COUNT, AT(cns), .initial = "1", .min = 1, .max = 128, .help = "compute nodes"},
    {.name = "mns", .type = DM_OPT_COUNT, AT(mns), .initial = "1", .min = 1, .max = 64, .help = "memory nodes"},
    {.name = "servers",
     .type = DM_OPT_COUNT,
     AT(servers),
     .initial = "0",
     .min = 0,
     .max = 32,
     .help = "index servers; 2 by default for indexes that need them"},
    {.name = "mn_cores",
     .type = DM_OPT_COUNT,
     AT(mn_cores),
     .initial = "1",
     .min = 1,
     .max = 256,
     .help = "cores of a memory node, for the calls it serves"},
    {.name = "server_cores",
     .type = DM_OPT_COUNT,
     AT(server_cores),
     .initial = "16",
     .min = 1,
     .max = 256,
     .help = "cores of an index server"},
    {.name = "clients",
     .type = DM_OPT_COUNT,
     AT(clients),
     .initial = "16",
     .min = 1,
     .max = 16384,
     .help = "clients in all, spread evenly over the compute nodes"},
    {.name = "coroutines",
     .type = DM_OPT_COUNT,
     AT(coroutines),
     .initial = "1",
     .min = 1,
     .max = 1024,
     .help = "clients that share a thread"},
    DM_OPT_END,
};

static const char *const arrival_names[] = {"fixed", "poisson", NULL}; /* as enum hx_arrival */

static const struct dm_opt load_options[] = {
    {.name = "rate",
     .type = DM_OPT_COUNT,
     AT(rate),
     .initial = "0",
     .min = 0,
     .max = 1e10,
     .unit = "operations a second",
     .help = "open loop: all clients together begin so many operations a second, on a schedule that never slips, and "
             "latency counts from the scheduled time; 0: closed loop, each client begins its next operation when its "
             "last one has ended"},
    {.name = "arrival",
     .type = DM_OPT_ENUM,
     AT(arrival),
     .initial = "fixed",
     .choices = arrival_names,
     .help = "the schedule of an open loop: fixed distances, or those of a Poisson process"},
    {.name = "record",
     .type = DM_OPT_STRING,
     AT(record),
     .initial = "",
     .help = "write the operations of the run to this file, for --replay"},
    DM_OPT_END,
};

static const struct dm_opt measure_options[] = {
    {.name = "ops",
     .type = DM_OPT_COUNT,
     AT(ops),
     .initial = "1M",
     .min = 1,
     .max = 1e12,
     .help = "measured operations of all clients together"},
    {.name = "warmup",
     .type = DM_OPT_COUNT,
     AT(warmup),
     .initial = "0",
     .min = 0,
     .max = 1e12,
     .help = "operations before them that are not counted; a tenth of ops unless given"},
    {.name = "duration",
     .type = DM_OPT_DURATION,
     AT(duration_ns),
     .initial = "0s",
     .help = "end the measurement after this much time of the run even if operations are left; 0: only after ops"},
    {.name = "seed",
     .type = DM_OPT_COUNT,
     AT(seed),
     .initial = "1",
     .min = 0,
     .max = 9007199254740991.0,
     .help = "of every random stream; in virtual time the same seed gives the same result"},
    {.name = "verify",
     .type = DM_OPT_BOOL,
     AT(verify),
     .initial = "0",
     .help = "walk the whole index after the measurement and fail with status 3 if it is broken"},
    DM_OPT_END,
};

static const struct dm_opt memory_options[] = {
    {.name = "cache",
     .type = DM_OPT_BYTES,
     AT(cache_bytes),
     .initial = "100MB",
     .min = 0,
     .max = 0x1p43,
     .help = "budget of index cache of a compute node"},
    {.name = "value_size",
     .type = DM_OPT_BYTES,
     AT(value_bytes),
     .initial = "8",
     .min = 8,
     .max = 65536,
     .help = "bytes of a value"},
    {.name = "mn_memory",
     .type = DM_OPT_BYTES,
     AT(mn_bytes),
     .initial = "0",
     .min = 0,
     .max = 0x1p46,
     .help = "DRAM of a memory node; 0: what the keys and the expected inserts need"},
    {.name = "chunk",
     .type = DM_OPT_BYTES,
     AT(chunk_bytes),
     .initial = "256KiB",
     .min = 65536,
     .max = 0x1p30,
     .help = "bytes that a memory node hands to a thread at a time"},
    {.name = "retry_limit",
     .type = DM_OPT_COUNT,
     AT(retry_limit),
     .initial = "0",
     .min = 0,
     .max = 4294967295.0,
     .help = "retries of one operation before it fails with retry_limit; 0: the transport's own bound"},
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

bool hx_option_name(const char *text, char *name, size_t capacity) {
    size_t length = strlen(text);
    if (length == 0 || length >= capacity) {
        return false;
    }
    for (size_t i = 0; i <= length; i++) {
        name[i] = text[i] == '-' ? '_' : text[i];
    }
    return true;
}

const char *hx_option_typed(const char *name, char *text, size_t capacity) {
    snprintf(text, capacity, "--%s", name);
    for (char *dash = text + 2; *dash; dash++) {
        *dash = *dash == '_' ? '-' : *dash;
    }
    return text;
}

void hx_parameters_help(const char *option, const struct dm_opt *table) {
    struct dm_opt rows[HX_OPTIONS_MAX] = {{.name = NULL}};
    char names[HX_OPTIONS_MAX][64];
    for (size_t i = 0; table[i].name && i + 1 < HX_OPTIONS_MAX; i++) {
        rows[i] = table[i];
        snprintf(names[i], sizeof(names[i]), "%s %s", option, table[i].name);
        rows[i].name = names[i];
    }
    dm_opt_help(rows, "  ", stdout);
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

unsigned hx_cn_clients(const struct dm_topology *topology, unsigned cn) {
    return topology->clients / topology->cns + (cn < topology->clients % topology->cns ? 1 : 0);
}

unsigned hx_cn_threads(const struct dm_topology *topology, unsigned cn) {
    unsigned clients = hx_cn_clients(topology, cn);
    return (clients + topology->clients_per_thread - 1) / topology->clients_per_thread;
}
