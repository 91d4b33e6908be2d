/* SPDX-License-Identifier: Apache-2.0
 *
 * What the work of dm_charge and dm_charge_access costs by a profile, in picoseconds.
 */
#ifndef DM_TRANSPORT_CORE_WORK_H
#define DM_TRANSPORT_CORE_WORK_H

#include "transport/core/profile.h"

/* access_ps[n] is of a structure of 2^n bytes; between two powers the cost is interpolated. */
struct dm_work_costs {
    uint64_t unit_ps[DM_WORK_COUNT];
    uint64_t access_ps[65];
};

void dm_work_costs_init(struct dm_work_costs *costs, const struct dm_profile *profile);

static inline uint64_t dm_work_ps(const struct dm_work_costs *costs, enum dm_work work, uint32_t units) {
    return costs->unit_ps[work] * units;
}

uint64_t dm_work_access_ps(const struct dm_work_costs *costs, uint32_t count, uint64_t bytes);

#endif
