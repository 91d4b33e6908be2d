/* SPDX-License-Identifier: Apache-2.0
 *
 * What this machine has for points.
 */
#ifndef DM_HARNESS_POINTS_POINTS_HOST_H
#define DM_HARNESS_POINTS_POINTS_HOST_H

#include <stddef.h>
#include <stdint.h>

/* How many points run at once if memory does not limit them: `jobs`, or one per core if that is 0. */
size_t hx_points_jobs(uint64_t jobs);

/* The memory that all of them may take. */
uint64_t hx_points_memory(void);

#endif
