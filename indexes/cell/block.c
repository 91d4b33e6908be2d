/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of values that are too long for a leaf. A freed block becomes the block of another key and never other memory,
 * so a reader with an old ref finds a block, whose check shows that it is another key's.
 */
#include <stdlib.h>

#include "mn.h"

enum { BLOCKS_AT_ONCE = 16 };

static uint32_t block_lines(const struct cell_server *server) {
    return (server->layout.block_bytes + DM_LINE - 1) / DM_LINE;
}

/* Called with the lock held. */
static int block_push(struct cell_server *server, uint32_t ref) {
    if (server->block_count == server->block_capacity) {
        uint32_t capacity = server->block_capacity > 0 ? 2 * server->block_capacity : 4 * BLOCKS_AT_ONCE;
        uint32_t *grown = realloc(server->blocks, capacity * sizeof(*grown));
        if (!grown) {
            return DM_ERR_NO_MEMORY;
        }
        server->blocks = grown;
        server->block_capacity = capacity;
    }
    server->blocks[server->block_count++] = ref;
    return 0;
}

static int blocks_add(struct cell_server *server, struct dm_ctx *ctx) {
    dm_addr addr;
    uint32_t lines = block_lines(server);
    int rc = 0;
    DM_TRY(dm_alloc(ctx, server->node, BLOCKS_AT_ONCE * lines * DM_LINE, DM_LINE, DM_MEM_VALUE, &addr));
    DM_TRY(dm_mutex_lock(ctx, &server->blocks_lock));
    for (uint32_t i = 0; i < BLOCKS_AT_ONCE && rc == 0; i++) {
        rc = block_push(server, cell_ref_of(addr) + i * lines);
    }
    dm_mutex_unlock(ctx, &server->blocks_lock);
    return rc;
}

int cell_block_take(struct cell_server *server, struct dm_ctx *ctx, uint32_t *ref) {
    for (;;) {
        DM_TRY(dm_mutex_lock(ctx, &server->blocks_lock));
        bool is_there = server->block_count > 0;
        *ref = is_there ? server->blocks[--server->block_count] : 0;
        dm_mutex_unlock(ctx, &server->blocks_lock);
        if (is_there) {
            return 0;
        }
        DM_TRY(blocks_add(server, ctx));
    }
}

void cell_block_free(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref) {
    if (dm_mutex_lock(ctx, &server->blocks_lock) == 0) {
        (void)block_push(server, ref); /* without local memory the block is lost */
        dm_mutex_unlock(ctx, &server->blocks_lock);
    }
}

void cell_block_write(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref, uint64_t key, const void *value) {
    const struct cell_layout *layout = &server->layout;
    uint64_t words[1 + CELL_VALUE_MAX / 8];
    words[layout->value_words] = 0; /* zero the bytes after a value that is not a multiple of 8 bytes */
    memcpy(words + 1, value, layout->value_bytes);
    words[0] = cell_block_check(key, words + 1, layout->value_words);
    dm_charge(ctx, DM_WORK_HASH, ix_check_hashes(layout->value_words));
    dm_charge(ctx, DM_WORK_LINE_COPY, block_lines(server));
    dm_cpu_write(ctx, cell_addr(server->node, ref), words, layout->block_bytes);
}

void cell_block_read(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref, void *value) {
    const struct cell_layout *layout = &server->layout;
    uint64_t words[CELL_VALUE_MAX / 8];
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
    dm_charge(ctx, DM_WORK_LINE_COPY, block_lines(server));
    dm_cpu_read(ctx, dm_addr_add(cell_addr(server->node, ref), 8), words, layout->value_words * 8);
    memcpy(value, words, layout->value_bytes);
}
