/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of an access is a curve of the profile, linear in the logarithm of the bytes between its points. It becomes
 * a table by powers of two, so that a charge takes no logarithm.
 */
#include "transport/core/work.h"

#include "common/compiler.h"

static uint64_t ps(double ns) {
    return (uint64_t)(ns * 1000.0 + 0.5);
}

static void access_fill(struct dm_work_costs *costs, const struct dm_profile *p) {
    const struct {
        unsigned power; /* of the bytes */
        double ns;
    } points[] = {{19, p->work_access_512k_ns},
                  {22, p->work_access_4m_ns},
                  {25, p->work_access_32m_ns},
                  {28, p->work_access_256m_ns},
                  {30, p->work_access_1g_ns}};
    unsigned last = DM_ARRAY_LEN(points) - 1, at = 0;
    for (unsigned power = 0; power < DM_ARRAY_LEN(costs->access_ps); power++) {
        if (power <= points[0].power || power >= points[last].power) {
            costs->access_ps[power] = ps(power <= points[0].power ? points[0].ns : points[last].ns);
            continue;
        }
        while (power > points[at + 1].power) {
            at++;
        }
        double share = (double)(power - points[at].power) / (points[at + 1].power - points[at].power);
        costs->access_ps[power] = ps(points[at].ns + (points[at + 1].ns - points[at].ns) * share);
    }
}

void dm_work_costs_init(struct dm_work_costs *costs, const struct dm_profile *p) {
    const double work[] = {p->work_node_probe_ns, p->work_cache_probe_ns, p->work_key_compare_ns, p->work_hash_ns,
                           p->work_model_eval_ns, p->work_line_copy_ns,   p->work_dram_access_ns, p->work_train_key_ns};
    for (unsigned i = 0; i < DM_WORK_COUNT; i++) {
        costs->unit_ps[i] = ps(work[i]);
    }
    access_fill(costs, p);
}

uint64_t dm_work_access_ps(const struct dm_work_costs *costs, uint32_t count, uint64_t bytes) {
    enum { FRACTION_BITS = 10, ONE = 1 << FRACTION_BITS };
    bytes = bytes < ONE ? ONE : bytes;
    unsigned power = 63 - dm_clz64(bytes);
    uint64_t fraction = bytes >> (power - FRACTION_BITS) & (ONE - 1);
    int64_t low = (int64_t)costs->access_ps[power], high = (int64_t)costs->access_ps[power + 1];
    return (uint64_t)(low + (high - low) * (int64_t)fraction / ONE) * count;
}
