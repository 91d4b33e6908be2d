/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a result that speak of time: values over time, and whether the run had settled.
 */
#ifndef DM_HARNESS_RUN_RESULT_TIME_H
#define DM_HARNESS_RUN_RESULT_TIME_H

#include <jansson.h>

#include "harness/run/config.h"
#include "harness/run/measured.h"

/* The columns of `over_time`; measured->over_time is there. NULL when out of memory. */
json_t *hx_over_time_json(const struct hx_config *config, const struct hx_measured *measured);

/* `settled`: null if the run was too short to say. */
json_t *hx_settled_json(const struct hx_config *config, const struct hx_measured *measured);

#endif
