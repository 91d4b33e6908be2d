/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as JSON: what a run measured, in the form of results/schema.json.
 */
#ifndef DM_HARNESS_RUN_RESULT_H
#define DM_HARNESS_RUN_RESULT_H

#include <jansson.h>

#include "harness/run/config.h"
#include "harness/run/measured.h"

/* The result as a new object without `provenance`; the caller owns it. NULL when out of memory. */
json_t *hx_result_new(const struct hx_config *config, const struct hx_measured *measured);

#endif
