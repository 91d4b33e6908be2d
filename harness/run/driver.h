/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one point: from a resolved configuration to what was measured.
 */
#ifndef DM_HARNESS_RUN_DRIVER_H
#define DM_HARNESS_RUN_DRIVER_H

#include "harness/run/config.h"
#include "harness/run/measured.h"
#include "harness/run/verb_tracer.h"

/* Opens, loads, runs, collects and closes. Returns 0, also when a run that keeps partial measurements was
 * interrupted; DM_ERR_STOPPED when interrupted otherwise; or another failure with its reason. A recording exists only
 * after success. The tracer, unless it is NULL, records the measured operations. The caller frees *measured, which is
 * NULL on failure. May be called once for a configuration. */
int hx_measure(struct hx_config *config, struct hx_tracer *tracer, struct hx_measured **measured, struct dm_err *err);

/* Receives the measurement of configuration number `at`, in the process that measured it. Returns 0 or a failure. */
struct hx_taker {
    int (*take)(void *arg, size_t at, const struct hx_measured *measured, struct dm_err *err);
    void *arg;
};

/* Loads once, for the first configuration, and runs the configurations one by one, each in a process that is forked
 * after loading: none sees what another wrote, and each gives the same results as alone. They must agree in all that
 * loading depends on and in the number of clients, and run in virtual time. Returns the worst exit status of those
 * processes, each of which prints why it failed on stderr, or a failure of loading. */
int hx_measure_each(struct hx_config *const *configs, size_t count, const struct hx_taker *taker, struct dm_err *err);

/* Runs the nodes of this process of several until the compute processes have connected and left again. */
int hx_serve(struct hx_config *config, struct dm_err *err);

#endif
