/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid of a sweep: options and the values they take. Grid columns are crossed with each other; list columns go
 * together, value by value, and are crossed with the rest as one.
 */
#ifndef DM_HARNESS_POINTS_SWEEP_GRID_H
#define DM_HARNESS_POINTS_SWEEP_GRID_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct hx_column {
    char *name; /* as in JSON: "clients", "set.node_bytes" */
    char **values;
    size_t count;
    bool listed;
};

struct hx_sweep_grid {
    struct hx_column *columns;
    size_t count;
};

void hx_grid_fini(struct hx_sweep_grid *grid);

/* Adds "name=v1,v2,v3"; values that contain commas are separated by semicolons ("mix=read=1;read=0.5,update=0.5"). A
 * column that exists already, or a list of another length than the lists before it, is an error. */
int hx_grid_add(struct hx_sweep_grid *grid, const char *text, bool listed, struct dm_err *err);

/* The number of combinations; 1 for an empty grid. */
size_t hx_grid_size(const struct hx_sweep_grid *grid);

/* Writes into `choice`, one a column, which value each column has in combination number `at`. The first column changes
 * slowest. */
void hx_grid_choose(const struct hx_sweep_grid *grid, size_t at, size_t *choice);

#endif
