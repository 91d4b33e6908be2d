/* SPDX-License-Identifier: Apache-2.0
 *
 * The schedule of an open loop: when each operation of a run is due, however long earlier operations take. Times are a
 * function of rate, seed and the operation's number, so that two indexes get the same arrivals.
 */
#ifndef DM_HARNESS_RUN_SCHEDULE_H
#define DM_HARNESS_RUN_SCHEDULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hx_schedule {
    uint64_t rate; /* operations a second; 0: there is no schedule */
    bool is_poisson;
    uint64_t offset_ns; /* of fixed distances: the first operation is due so long after the begin */
    uint64_t gaps;      /* what the distances of a Poisson process are drawn from */
    _Atomic uint64_t origin_ns;
    _Atomic uint64_t arrived_ps; /* sum of the distances drawn so far */
};

/* `part`: of several processes, whose arrivals are independent in a Poisson process, and else `offset_ns` apart. */
void hx_schedule_init(struct hx_schedule *schedule, uint64_t rate, bool is_poisson, uint64_t seed, unsigned part,
                      uint64_t offset_ns);

/* The time at which operation `number` is due, on the clock of `now_ns`; the schedule starts with the first call.
 * Called once for each number, from 0 on; times of numbers that threads request concurrently may be exchanged. */
uint64_t hx_schedule_at(struct hx_schedule *schedule, uint64_t number, uint64_t now_ns);

#endif
