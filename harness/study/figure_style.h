/* SPDX-License-Identifier: Apache-2.0
 *
 * Colours and markers: a system has the same in every figure, and plots/systems.json is the only file that has them:
 *
 *     "systems": {"chime": {"name": "CHIME", "color": "#D55E00", "marker": "square"}, ...},
 *     "others": [{"color": "#33BBEE", "marker": "pentagon"}, ...]
 *
 * `others` are for series that are no system: variants of one, data sets, parts of a whole. Their styles are called
 * other-1, other-2, ...
 */
#ifndef DM_HARNESS_STUDY_FIGURE_STYLE_H
#define DM_HARNESS_STUDY_FIGURE_STYLE_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "common/err.h"

enum { HX_OTHERS_MAX = 8 };

/* Reads and checks <plots>/systems.json. The caller frees it. */
int hx_fig_styles_load(const char *plots, json_t **styles, struct dm_err *err);

/* {"color": ..., "marker": ...} of a system, or of other-N; NULL: there is no such style. */
const json_t *hx_fig_style_find(const json_t *styles, const char *name);

/* The name of the n-th of the others, from 0. After the last one they begin again. */
const char *hx_fig_style_other(const json_t *styles, size_t n);

/* {NAME: {"name", "color", "marker"}} of all styles, as a new object; others have no name. NULL: no memory. */
json_t *hx_fig_styles_flat(const json_t *styles);

/* Writes the definitions that plots/style.gp makes lines and points of. */
void hx_fig_styles_write(const json_t *styles, FILE *out);

#endif
