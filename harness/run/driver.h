/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one point: from a resolved configuration to what was measured.
 */
#ifndef DM_HARNESS_RUN_DRIVER_H
#define DM_HARNESS_RUN_DRIVER_H

#include "harness/run/config.h"
#include "harness/run/measured.h"
#include "harness/run/verb_tracer.h"

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

/* Runs the nodes of this process of several until the compute processes have connected and left again. */
int hx_serve(struct hx_config *config, struct dm_err *err);

#endif
