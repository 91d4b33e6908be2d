/* SPDX-License-Identifier: Apache-2.0
 *
 * A grid of points over one base spec, and one table of what they measured.
 */
#ifndef DM_HARNESS_POINTS_SWEEP_H
#define DM_HARNESS_POINTS_SWEEP_H

#include <jansson.h>
#include <stdio.h>

#include "harness/points/points.h"
#include "harness/points/sweep_grid.h"

/* Zeroed, with the first members set, before the first call. */
struct hx_sweep {
    const char *out;       /* folder for points/ and table.tsv */
    const char *base_path; /* NULL: the defaults of a run */
    uint64_t repeat;       /* seeds of each point */
    json_t *base;
    struct hx_sweep_grid grid;
    char **paths; /* paths in results that are columns of the table */
    size_t path_count;
    struct hx_points *points;
    size_t *rows; /* the point of each combination; two may be the same point */
    size_t row_count;
    bool is_forgotten[2]; /* it was said that parameters of the base do not apply to another index, or transport */
};

void hx_sweep_fini(struct hx_sweep *sweep);

/* Takes what the named workload of a base spec does out of it, so that another one that is named has its own mix. */
void hx_sweep_forget_details(json_t *base);

/* Adds a path in results as a column, unless it is one. */
int hx_sweep_add_column(struct hx_sweep *sweep, const char *path, struct dm_err *err);

/* Reads the base spec and makes a point of every combination of the grid, which is complete. */
int hx_sweep_build(struct hx_sweep *sweep, struct dm_err *err);

/* Writes <out>/table.tsv, and the same as JSON to `json` unless it is NULL. */
int hx_sweep_tabulate(struct hx_sweep *sweep, FILE *json, struct dm_err *err);

#endif
