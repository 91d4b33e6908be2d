/* SPDX-License-Identifier: Apache-2.0
 *
 * What a configuration holds, for the parts of the harness that act on it: the driver, the result writer and the
 * summary. Others know only config.h.
 */
#ifndef DM_HARNESS_RUN_SETTINGS_H
#define DM_HARNESS_RUN_SETTINGS_H

#include "common/opt.h"
#include "harness/run/config.h"
#include "indexes/index.h"
#include "indexes/rdwc.h"
#include "transport/fabric.h"
#include "workloads/workload.h"

/* How the operations of an open loop follow each other. */
enum hx_arrival { HX_ARRIVAL_FIXED, HX_ARRIVAL_POISSON };

/* The run options: rows of hx_run_groups. */
struct hx_settings {
    const char *index, *transport, *profile;
    unsigned rdwc; /* enum ix_rdwc_mode */
    uint64_t cns, mns, servers, mn_cores, server_cores;
    uint64_t clients, coroutines;
    uint64_t rate;    /* operations a second in all; 0: closed loop */
    unsigned arrival; /* enum hx_arrival */
    uint64_t ops, warmup, duration_ns, seed;
    const char *record;
    uint64_t cache_bytes, value_bytes, mn_bytes, chunk_bytes;
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

/* Place of an option among all of them: run options in the order of their groups, then workload options. SIZE_MAX if
 * there is none of that name. */
size_t hx_option_position(const char *name);

enum { HX_OPTIONS_MAX = 64 }; /* run and workload options together */

/* One value of "set" or "transport_set" that waits until the index and the transport are known. */
struct hx_pending {
    char *name;
    json_t *value;
    char *where; /* what an error begins with */
    bool transport;
};

struct hx_team;

struct hx_config {
    struct hx_settings run;
    struct wl_config workload;
    char *origins[HX_OPTIONS_MAX]; /* where an option was set, as an error names it; NULL: a default */
    struct hx_pending *pending;
    size_t pending_count;

    /* From here on filled by hx_config_resolve. */
    const struct ix_ops *index;
    void *index_params;
    const struct dm_transport_info *transport;
    void *transport_options;
    struct dm_topology topology;
    struct ix_shape shape;
    double share[WL_OP_KIND_COUNT]; /* of each kind of operation, 0 where the workload cannot tell */
    char profile_hash[17];          /* "" where the transport takes no profile */
    struct wl *opened;              /* the workload, where looking at it opened all of it; hx_measure takes it */
    const struct hx_team *team;     /* the processes of the run, borrowed; NULL: only this one */
};

/* Clients of one compute node, and the threads that they share. */
unsigned hx_cn_clients(const struct dm_topology *topology, unsigned cn);
unsigned hx_cn_threads(const struct dm_topology *topology, unsigned cn);

#endif
