/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of values that are too long for a leaf. A freed block becomes the block of another key and never other memory,
 * so a reader with an old ref finds a block, whose check shows that it is another key's.
 */
#include "mn.h"

void cell_block_write(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref, uint64_t key, const void *value,
                      uint64_t *check) {
    const struct cell_layout *layout = &server->layout;
    uint64_t words[1 + CELL_STORED_MAX / 8];
    uint64_t stored[CELL_STORED_MAX / 8];
    memset(stored, 0, layout->stored_words * sizeof(*stored)); /* the rest of the key, and what no whole word fills */
    memcpy(stored, value, layout->value_bytes);
    ix_check_value(ctx, cell_block_seed(key), stored, layout->stored_words * (uint32_t)sizeof(*stored), words);
    if (check) {
        *check = words[0];
        words[0] = 0;
    }
    dm_charge(ctx, DM_WORK_LINE_COPY, server->blocks.lines);
    dm_cpu_write(ctx, cell_addr(server->node, ref), words, layout->block_bytes);
}

void cell_block_reveal(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref, uint64_t check) {
    dm_cpu_write(ctx, cell_addr(server->node, ref), &check, sizeof(check));
}

void cell_block_read(struct cell_server *server, struct dm_ctx *ctx, uint32_t ref, void *value) {
    const struct cell_layout *layout = &server->layout;
    uint64_t words[CELL_STORED_MAX / 8];
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1);
    dm_charge(ctx, DM_WORK_LINE_COPY, server->blocks.lines);
    dm_cpu_read(ctx, dm_addr_add(cell_addr(server->node, ref), 8), words, layout->stored_words * 8);
    memcpy(value, words, layout->value_bytes);
}
