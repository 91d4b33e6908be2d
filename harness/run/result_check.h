/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a result that was read from a file can be one that a run wrote.
 */
#ifndef DM_HARNESS_RUN_RESULT_CHECK_H
#define DM_HARNESS_RUN_RESULT_CHECK_H

#include <jansson.h>

#include "common/err.h"

/* Checks that the run was not interrupted, that the throughput is a number that the measured operations and their
 * duration allow, and that config_hash is the hash of the configuration and profile beside it. A member that is absent
 * is not checked. `path` begins the error. 0 or DM_ERR_CORRUPT. */
int hx_result_check(const json_t *result, const char *path, struct dm_err *err);

#endif
