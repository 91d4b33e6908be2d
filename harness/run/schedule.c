/* SPDX-License-Identifier: Apache-2.0
 *
 * Fixed distances follow from the number alone. A Poisson process is a running sum of exponential distances, each drawn
 * from the operation's number, so that the times do not depend on which client draws.
 */
#include "harness/run/schedule.h"

#include "common/prng.h"
#include "workloads/fixmath.h"

static const uint64_t ns_of_s = 1000000000, ps_of_ns = 1000;

void hx_schedule_init(struct hx_schedule *schedule, uint64_t rate, bool is_poisson, uint64_t seed, unsigned part,
                      uint64_t offset_ns) {
    *schedule = (struct hx_schedule){.rate = rate, .is_poisson = is_poisson, .offset_ns = is_poisson ? 0 : offset_ns};
    schedule->gaps = dm_prng_stream(seed, "arrival", part).state;
    atomic_init(&schedule->origin_ns, UINT64_MAX);
    atomic_init(&schedule->arrived_ps, 0);
}

static uint64_t origin_of(struct hx_schedule *schedule, uint64_t now_ns) {
    uint64_t origin = UINT64_MAX;
    if (atomic_load_explicit(&schedule->origin_ns, memory_order_relaxed) != UINT64_MAX ||
        !atomic_compare_exchange_strong(&schedule->origin_ns, &origin, now_ns)) {
        return atomic_load_explicit(&schedule->origin_ns, memory_order_relaxed);
    }
    return now_ns;
}

static uint64_t gap_ps(const struct hx_schedule *schedule, uint64_t number) {
    struct dm_prng prng = {.state = schedule->gaps ^ dm_mix64(number)};
    double mean = (double)(ns_of_s * ps_of_ns) / (double)schedule->rate;
    return (uint64_t)(-wl_log(wl_math_get(), 1.0 - dm_prng_double(&prng)) * mean + 0.5);
}

uint64_t hx_schedule_at(struct hx_schedule *schedule, uint64_t number, uint64_t now_ns) {
    uint64_t origin = origin_of(schedule, now_ns);
    if (schedule->is_poisson) {
        uint64_t gap = gap_ps(schedule, number);
        return origin + (atomic_fetch_add_explicit(&schedule->arrived_ps, gap, memory_order_relaxed) + gap) / ps_of_ns;
    }
    return origin + schedule->offset_ns + (uint64_t)((unsigned __int128)number * ns_of_s / schedule->rate);
}
