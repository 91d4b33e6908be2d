/* SPDX-License-Identifier: Apache-2.0
 *
 * Shrinks a world that fails to a minimal part that still fails in the same way.
 */
#ifndef DM_CHECK_SHRINK_H
#define DM_CHECK_SHRINK_H

#include "check/run.h"

/* Shrinks `part`, which fails with the verdict in *result: removes clients, keys, faults, loaded keys and steps, until
 * nothing more can be removed, or for `runs_max` runs. *result becomes that of the smallest part. Needs a transport in
 * virtual time. Returns the number of runs, or a failure, after which part and result are still valid. */
int ck_shrink(const struct ck_world *world, struct ck_part *part, struct ck_result *result, unsigned runs_max,
              struct dm_err *err);

#endif
