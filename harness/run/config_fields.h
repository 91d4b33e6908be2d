/* SPDX-License-Identifier: Apache-2.0
 *
 * What a configuration holds, for the files of the harness that act on it, such as the driver and the result writer.
 * The others include config.h alone.
 */
#ifndef DM_HARNESS_RUN_CONFIG_FIELDS_H
#define DM_HARNESS_RUN_CONFIG_FIELDS_H

#include <jansson.h>

#include "harness/run/options.h"
#include "indexes/index.h"
#include "indexes/rdwc.h"
#include "transport/fabric.h"
#include "workloads/workload.h"

/* One value of "set" or "transport_set" that is applied once the index and the transport are known. */
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
    bool is_memory_implied;         /* mn_memory is the size that follows from the rest, given or not */
    double share[WL_OP_KIND_COUNT]; /* of each kind of operation; 0 if the workload does not know it */
    char profile_hash[17];          /* "" where the transport takes no profile */
    struct wl *opened;              /* the workload, if resolving opened it with all its keys; hx_measure takes it */
    const struct dm_meter *meter;   /* of index code, borrowed; NULL: none */
    bool keeps_partial;             /* an interrupt ends the measurement, and what was measured is kept */
    bool is_quiet;                  /* no lines of progress, no warnings */
    bool is_repeated;               /* the run follows others of the same command, which have warned */
    const struct hx_team *team;     /* the processes of the run, borrowed; NULL: only this one */
};

#endif
