/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of indexes whose data processors change; see served.h.
 */
#include "indexes/shared/served.h"

#include <stdlib.h>

#include "common/array.h"

/* ---- methods ----------------------------------------------------------------------------------------------------- */

int ix_methods_register(struct dm_fabric *fabric, unsigned node, const struct ix_method *methods, size_t count,
                        void *server) {
    for (size_t i = 0; i < count; i++) {
        if (methods[i].handler) {
            int rc = dm_register(fabric, node, methods[i].method, methods[i].handler, server);
            if (rc != 0) {
                return rc < 0 ? rc : DM_ERR_INVALID;
            }
        }
    }
    return 0;
}

int ix_served_check(const struct ix_shape *shape, unsigned link_bits, struct dm_err *err) {
    uint64_t most = (uint64_t)DM_LINE << link_bits;
    if (shape->topology->mn_cores < 1) {
        return dm_fail(err, DM_ERR_INVALID, "memory nodes need at least 1 core");
    }
    if (shape->topology->mn_bytes >= most) {
        return dm_fail(err, DM_ERR_INVALID, "memory nodes of more than %u GiB exceed the %u bits of a link",
                       (unsigned)(most >> 30), link_bits);
    }
    return 0;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static uint32_t lines_of(uint32_t bytes) {
    return (bytes + DM_LINE - 1) / DM_LINE;
}

void ix_blocks_init(struct ix_blocks *blocks, unsigned node, uint32_t block_bytes, uint32_t at_once) {
    uint32_t lines = lines_of(block_bytes), most = IX_BLOCKS_BYTES / DM_LINE / (lines > 0 ? lines : 1);
    most = most > 0 ? most : 1;
    *blocks = (struct ix_blocks){.node = node, .lines = lines, .at_once = at_once < most ? at_once : most};
}

double ix_blocks_memory(double count, uint32_t block_bytes) {
    double bytes = (double)lines_of(block_bytes) * DM_LINE, chunk = 256 * 1024;
    return count * bytes * (1 + IX_BLOCKS_BYTES / (chunk - IX_BLOCKS_BYTES)) + IX_BLOCKS_BYTES;
}

void ix_blocks_fini(struct ix_blocks *blocks) {
    free(blocks->free);
}

/* Called with the lock held. */
static int push(struct ix_blocks *blocks, uint32_t ref) {
    uint32_t *grown = dm_array_grow(blocks->free, blocks->count, &blocks->capacity, sizeof(*grown));
    if (!grown) {
        return DM_ERR_NO_MEMORY;
    }
    blocks->free = grown;
    grown[blocks->count++] = ref;
    return 0;
}

static int add(struct ix_blocks *blocks, struct dm_ctx *ctx) {
    dm_addr addr;
    int rc = 0;
    DM_TRY(dm_alloc(ctx, blocks->node, blocks->at_once * blocks->lines * DM_LINE, DM_LINE, DM_MEM_VALUE, &addr));
    uint32_t first = (uint32_t)(dm_addr_offset(addr) / DM_LINE);
    DM_TRY(dm_mutex_lock(ctx, &blocks->lock));
    for (uint32_t i = 0; i < blocks->at_once && rc == 0; i++) {
        rc = push(blocks, first + i * blocks->lines);
    }
    dm_mutex_unlock(ctx, &blocks->lock);
    return rc;
}

int ix_blocks_take(struct ix_blocks *blocks, struct dm_ctx *ctx, uint32_t *ref) {
    for (;;) {
        DM_TRY(dm_mutex_lock(ctx, &blocks->lock));
        bool is_there = blocks->count > 0;
        *ref = is_there ? blocks->free[--blocks->count] : 0;
        dm_mutex_unlock(ctx, &blocks->lock);
        if (is_there) {
            return 0;
        }
        DM_TRY(add(blocks, ctx));
    }
}

void ix_blocks_free(struct ix_blocks *blocks, struct dm_ctx *ctx, uint32_t ref) {
    if (dm_mutex_lock(ctx, &blocks->lock) == 0) {
        (void)push(blocks, ref);
        dm_mutex_unlock(ctx, &blocks->lock);
    }
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

void ix_word_increment(struct dm_ctx *ctx, dm_addr addr) {
    uint64_t seen = 0, found;
    while ((found = dm_cpu_cas(ctx, addr, seen, seen + 1)) != seen) {
        seen = found;
    }
}
