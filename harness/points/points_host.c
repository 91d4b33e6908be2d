/* SPDX-License-Identifier: Apache-2.0
 *
 * What this machine has for points: cores and memory.
 */
#include "harness/points/points_host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_SHARE  0.9               /* share of the available memory that points may use */
#define DEFAULT_SPARE UINT64_C(1) << 30 /* assumed if the system does not report the available memory */

static uint64_t available_memory(void) {
    uint64_t kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "MemAvailable:", 13) == 0) {
            kib = strtoull(line + 13, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib == 0 ? DEFAULT_SPARE : kib * 1024;
}

uint64_t hx_points_memory(void) {
    return (uint64_t)((double)available_memory() * MEMORY_SHARE);
}

static size_t core_count(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 ? (size_t)count : 1;
}

size_t hx_points_jobs(uint64_t jobs) {
    return jobs > 0 ? (size_t)jobs : core_count();
}
