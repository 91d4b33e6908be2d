/* SPDX-License-Identifier: Apache-2.0
 *
 * Local memory of contexts: blocks from the heap, and mappings for large ones.
 */
#include <stdlib.h>

#include <sys/mman.h>

#include "transport/core/core.h"

enum { MAPPED_FROM = 32768 }; /* a block of so many bytes is a mapping */

/* Most of a large buffer, such as a scan's, is not used in most runs. A mapping is zero without being touched; what
 * calloc returns often is not. */
static struct dm_local_block *block_map(size_t bytes) {
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return NULL;
    }
    struct dm_local_block *block = map;
    block->mapped = bytes;
    return block;
}

void *dm_local_alloc(struct dm_ctx *ctx, uint32_t bytes) {
    if (ctx->ops->local_alloc) {
        return ctx->ops->local_alloc(ctx->fabric, bytes);
    }
    size_t all = sizeof(struct dm_local_block) + DM_LINE - 1 + (size_t)bytes;
    struct dm_local_block *block = all < MAPPED_FROM ? calloc(1, all) : block_map(all);
    if (!block) {
        return NULL;
    }
    block->next = ctx->locals;
    ctx->locals = block;
    return (void *)(((uintptr_t)(block + 1) + DM_LINE - 1) & ~(uintptr_t)(DM_LINE - 1));
}

void dm_local_free(struct dm_local_block *first) {
    for (struct dm_local_block *block = first, *next; block; block = next) {
        next = block->next;
        if (block->mapped > 0) {
            munmap(block, block->mapped);
        } else {
            free(block);
        }
    }
}
