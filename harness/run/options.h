/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a run: their values, and the tables from which command line, JSON and help are made.
 */
#ifndef DM_HARNESS_RUN_OPTIONS_H
#define DM_HARNESS_RUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/opt.h"

/* How the operations of an open loop follow each other. */
enum hx_arrival { HX_ARRIVAL_FIXED, HX_ARRIVAL_POISSON };

/* Operations of a client in a sample of the warm-up (warmup_samples): for its first ones some contexts still wait as
 * the untimed ones before had to, and the others last for some tens of batches. */
enum { HX_SAMPLE_OPS = 64 };

/* The run options: rows of hx_run_groups. */
struct hx_settings {
    const char *index, *transport, *profile;
    unsigned rdwc; /* enum ix_rdwc_mode */
    uint64_t cns, mns, servers, mn_cores, server_cores;
    uint64_t clients, coroutines;
    uint64_t rate;    /* operations a second in all; 0: closed loop */
    unsigned arrival; /* enum hx_arrival */
    uint64_t ops, warmup, load_reads, timed_warmup, warmup_samples, duration_ns, interval_ns, seed;
    const char *record;
    uint64_t cache_bytes, key_bytes, value_bytes, mn_bytes, chunk_bytes;
    uint64_t retry_limit;
    bool verify;
};

/* The option tables over struct hx_settings, one a group of the help text; ends with a NULL title. */
struct hx_group {
    const char *title;
    const struct dm_opt *table;
};
extern const struct hx_group hx_run_groups[];

/* The row of a run option, or NULL. Names use underscores; see hx_option_name. */
const struct dm_opt *hx_run_option(const char *name);

/* The index of an option among all of them: run options in the order of their groups, then workload options. SIZE_MAX
 * if no option has that name. */
size_t hx_option_position(const char *name);

enum { HX_OPTIONS_MAX = 64 }; /* run and workload options together */

#endif
