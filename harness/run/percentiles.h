/* SPDX-License-Identifier: Apache-2.0
 *
 * Percentiles of latencies that a user asks for.
 */
#ifndef DM_HARNESS_RUN_PERCENTILES_H
#define DM_HARNESS_RUN_PERCENTILES_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"

enum { HX_PERCENTILES_MAX = 24, HX_PERCENTILE_TEXT_MAX = 16 };

struct hx_percentiles {
    struct {
        char text[HX_PERCENTILE_TEXT_MAX]; /* as it was typed: "99.99" */
        double share;                      /* 0.9999 */
    } at[HX_PERCENTILES_MAX];
    size_t count;
};

/* Reads "50,99,99.99": numbers above 0 and up to 100, each once. DM_ERR_INVALID names the wrong one. */
int hx_percentiles_parse(const char *text, struct hx_percentiles *percentiles, struct dm_err *err);

/* Gives every operation of a result a member `percentiles_ns`, taken from its histogram. 0 or DM_ERR_NO_MEMORY. */
int hx_percentiles_add(json_t *result, const struct hx_percentiles *percentiles, struct dm_err *err);

#endif
