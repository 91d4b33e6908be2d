/* SPDX-License-Identifier: Apache-2.0
 *
 * What a point will cost in time and memory, by plots/costs.json, which scripts/costs.py fits to measured results.
 */
#ifndef DM_HARNESS_POINTS_POINTS_COST_H
#define DM_HARNESS_POINTS_POINTS_COST_H

#include <jansson.h>

struct hx_cost {
    double load_s, run_s; /* making keys and loading; everything after that */
    double bytes;         /* resident memory at its peak */
};

/* Of a resolved configuration with this hash, on the host that costs.json was measured on. What has been measured of
 * this very configuration is used where costs.json has it; some other uncommon settings cost several times as much. */
void hx_cost_of(const json_t *config, const char *hash, struct hx_cost *cost);

#endif
