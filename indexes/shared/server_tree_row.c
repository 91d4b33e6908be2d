/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of the server-side tree, with what keys have beyond 8 bytes: in the slots of leaves, or in rows {key, value,
 * padding} of which a slot has the offset.
 */
#include "indexes/shared/server_tree_node.h"

static uint32_t stored_lines(const struct ix_server_layout *layout) {
    return (layout->value_bytes + layout->padding + DM_LINE - 1) / DM_LINE;
}

static dm_addr row_addr(const struct ix_server_op *op, uint64_t offset) {
    return dm_addr_make(op->server->node, DM_DRAM, offset);
}

static void row_write(struct ix_server_op *op, uint64_t offset, uint64_t key, const void *value) {
    const struct ix_server_layout *layout = &op->server->layout;
    uint64_t words[1 + (IX_SERVER_VALUE_MAX + IX_KEY_BYTES_MAX) / 8];
    words[0] = key;
    memset(words + 1, 0, layout->stored_words * sizeof(*words)); /* padding, and what no whole word fills */
    memcpy(words + 1, value, layout->value_bytes);
    dm_charge(op->ctx, DM_WORK_LINE_COPY, stored_lines(layout));
    dm_cpu_write(op->ctx, row_addr(op, offset), words, layout->row_bytes);
}

int ix_server_row_make(struct ix_server_op *op, uint64_t key, const void *value, uint64_t *stored) {
    const struct ix_server_layout *layout = &op->server->layout;
    dm_addr addr;
    if (!layout->rows) {
        memset(stored, 0, layout->slot_words * sizeof(*stored));
        memcpy(stored, value, layout->value_bytes);
        return 0;
    }
    DM_TRY(dm_alloc(op->ctx, op->server->node, layout->row_bytes, 8, DM_MEM_VALUE, &addr));
    dm_charge(op->ctx, DM_WORK_CACHE_PROBE, 1); /* the allocator's list */
    stored[0] = dm_addr_offset(addr);
    row_write(op, stored[0], key, value);
    return 0;
}

void ix_server_row_free(struct ix_server_op *op, const uint64_t *stored) {
    const struct ix_server_layout *layout = &op->server->layout;
    if (layout->rows) {
        dm_charge(op->ctx, DM_WORK_CACHE_PROBE, 1);
        dm_free(op->ctx, row_addr(op, stored[0]), layout->row_bytes, DM_MEM_VALUE);
    }
}

void ix_server_value_update(struct ix_server_op *op, uint64_t key, const void *value, uint64_t *stored) {
    const struct ix_server_layout *layout = &op->server->layout;
    if (layout->rows) {
        dm_charge(op->ctx, DM_WORK_DRAM_ACCESS, 1);
        row_write(op, stored[0], key, value);
    } else {
        memcpy(stored, value, layout->value_bytes);
    }
}

int ix_server_value_copy(struct ix_server_op *op, const uint64_t *stored, char *out) {
    const struct ix_server_layout *layout = &op->server->layout;
    if (!layout->rows) {
        memcpy(out, stored, layout->value_bytes);
        return 0;
    }
    dm_addr addr = row_addr(op, stored[0]);
    if (!dm_addr_valid(op->ctx, addr, layout->row_bytes)) {
        return DM_ERR_CORRUPT;
    }
    dm_cpu_read(op->ctx, dm_addr_add(addr, 8), out, layout->value_bytes);
    return 0;
}

void ix_server_key_charge(struct ix_server_op *op, bool with_row) {
    const struct ix_server_layout *layout = &op->server->layout;
    if (layout->padding > 0) {
        dm_charge(op->ctx, DM_WORK_DRAM_ACCESS, layout->rows && !with_row);
        dm_charge(op->ctx, DM_WORK_KEY_COMPARE, (layout->padding + 7) / 8);
    }
}

void ix_server_values_charge(struct ix_server_op *op, uint32_t count) {
    const struct ix_server_layout *layout = &op->server->layout;
    if (count > 0) {
        dm_charge(op->ctx, DM_WORK_DRAM_ACCESS, layout->rows);
        dm_charge(op->ctx, DM_WORK_LINE_COPY, count * stored_lines(layout));
    }
}
