/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock tables on all memory nodes; see lock_tables.h.
 */
#include "indexes/shared/lock_tables.h"

static dm_addr bases_addr(uint64_t offset) {
    return dm_addr_make(0, DM_DRAM, offset);
}

static dm_addr *bases_alloc(struct dm_ctx *ctx) {
    return dm_local_alloc(ctx, sizeof(dm_addr) * DM_MNS_MAX);
}

int ix_lock_tables_check(enum ix_lock_memory memory, uint32_t count, const struct dm_topology *topology,
                         const char *instead, struct dm_err *err) {
    uint64_t bytes = (uint64_t)count * sizeof(uint64_t);
    return memory == IX_LOCK_CHIP && (count == 0 || bytes > topology->chip_bytes)
               ? dm_fail(err, DM_ERR_INVALID,
                         "%u locks of 8 bytes do not fit %u bytes of on-chip memory; lower lock_count or set %s", count,
                         topology->chip_bytes, instead)
               : 0;
}

int ix_lock_tables_format(struct dm_ctx *ctx, enum ix_lock_memory memory, uint32_t count, uint64_t offset,
                          struct dm_err *err) {
    dm_addr *bases = bases_alloc(ctx);
    if (!bases) {
        return DM_ERR_NO_MEMORY;
    }
    for (unsigned mn = 0; mn < dm_topology(ctx)->mns; mn++) {
        int rc = ix_locks_format(ctx, mn, memory, count, &bases[mn]);
        if (rc < 0) {
            return dm_fail(err, rc, "no memory for %u locks on memory node %u", count, mn);
        }
    }
    return dm_write(ctx, bases_addr(offset), bases, sizeof(*bases) * DM_MNS_MAX);
}

int ix_lock_tables_open(struct dm_ctx *ctx, const struct ix_lock_config *config, uint64_t offset,
                        struct ix_locks **locks) {
    dm_addr *bases = bases_alloc(ctx);
    if (!bases) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(dm_read(ctx, bases_addr(offset), bases, sizeof(*bases) * DM_MNS_MAX));
    *locks = ix_locks_open(config, bases, dm_topology(ctx)->mns);
    return *locks ? 0 : DM_ERR_NO_MEMORY;
}
