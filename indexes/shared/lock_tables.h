/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock tables (locks.h) on all memory nodes of an index. Their addresses are published in the reserved page of memory
 * node 0, DM_MNS_MAX of them from an offset that the index chooses.
 */
#ifndef DM_INDEXES_SHARED_LOCK_TABLES_H
#define DM_INDEXES_SHARED_LOCK_TABLES_H

#include "common/err.h"
#include "indexes/shared/locks.h"

/* Refuses tables on chip that do not fit; `instead` is a setting that needs none. */
int ix_lock_tables_check(enum ix_lock_memory memory, uint32_t count, const struct dm_topology *topology,
                         const char *instead, struct dm_err *err);

/* Makes a table of `count` words on each memory node and publishes the addresses. Set-up only. [waits] */
int ix_lock_tables_format(struct dm_ctx *ctx, enum ix_lock_memory memory, uint32_t count, uint64_t offset,
                          struct dm_err *err);

/* Opens a compute node's part with the published addresses. 0, DM_ERR_NO_MEMORY, or a failure of the read. [waits] */
int ix_lock_tables_open(struct dm_ctx *ctx, const struct ix_lock_config *config, uint64_t offset,
                        struct ix_locks **locks);

#endif
