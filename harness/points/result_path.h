/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a result can have a value at a dotted path.
 */
#ifndef DM_HARNESS_POINTS_RESULT_PATH_H
#define DM_HARNESS_POINTS_RESULT_PATH_H

#include "common/err.h"

/* DM_ERR_INVALID, with the names that are there, unless results/schema.json allows the path. Without the schema every
 * path is allowed. */
int hx_result_path_check(const char *path, struct dm_err *err);

#endif
