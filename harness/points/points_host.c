/* SPDX-License-Identifier: Apache-2.0
 *
 * What this machine has for points: cores and memory.
 */
#include "harness/points/points_host.h"

#include <sched.h>

#include "common/large.h"

#define MEMORY_SHARE  0.9               /* share of the available memory that points may use */
#define DEFAULT_SPARE UINT64_C(1) << 30 /* assumed if the system does not report the available memory */

uint64_t hx_points_memory(void) {
    uint64_t available = dm_memory_available();
    return (uint64_t)((double)(available > 0 ? available : DEFAULT_SPARE) * MEMORY_SHARE);
}

static size_t core_count(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 ? (size_t)count : 1;
}

size_t hx_points_jobs(uint64_t jobs) {
    return jobs > 0 ? (size_t)jobs : core_count();
}
