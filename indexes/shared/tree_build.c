/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load above the leaves: levels of evenly filled inner nodes, bottom-up; see tree.h.
 */
#include <stdlib.h>

#include "common/array.h"
#include "indexes/shared/fill.h"
#include "indexes/shared/tree.h"

int ix_tree_writer_open(struct ix_tree_writer *writer, struct dm_ctx *ctx) {
    writer->ctx = ctx;
    writer->waiting = 0;
    writer->wires = dm_local_alloc(ctx, IX_TREE_WRITES * writer->wire_bytes);
    writer->words = dm_local_alloc(ctx, IX_TREE_WRITES * (uint32_t)sizeof(*writer->words));
    return writer->wires && writer->words ? 0 : DM_ERR_NO_MEMORY;
}

int ix_tree_writer_add(struct ix_tree_writer *writer, dm_addr addr, uint64_t word) {
    writer->words[writer->waiting] = word;
    writer->addrs[writer->waiting] = addr;
    return ++writer->waiting == IX_TREE_WRITES ? ix_tree_writer_flush(writer) : 0;
}

int ix_tree_writer_flush(struct ix_tree_writer *writer) {
    for (unsigned i = 0; i < writer->waiting; i++) {
        dm_post_write(writer->ctx, writer->addrs[i], writer->wires + (size_t)i * writer->wire_bytes,
                      writer->used_bytes);
        if (writer->word_offset > 0) {
            dm_post_write(writer->ctx, dm_addr_add(writer->addrs[i], writer->word_offset), &writer->words[i],
                          sizeof(*writer->words));
        }
    }
    writer->waiting = 0;
    return dm_commit(writer->ctx);
}

int ix_tree_level_add(struct ix_tree_level *level, uint64_t low, dm_addr addr) {
    struct ix_tree_built *items = dm_array_grow(level->items, level->count, &level->capacity, sizeof(*items));
    if (!items) {
        return DM_ERR_NO_MEMORY;
    }
    level->items = items;
    items[level->count++] = (struct ix_tree_built){low, addr};
    return 0;
}

struct builder {
    struct ix_tree_cn *cn;
    struct ix_tree_writer writer;
    char *image;
    struct ix_tree_level *level;
};

static int node_alloc(struct builder *builder, uint64_t number, dm_addr *addr) {
    unsigned mn = (unsigned)(number % dm_topology(builder->writer.ctx)->mns);
    return dm_alloc(builder->writer.ctx, mn, builder->cn->alloc_bytes, DM_LINE, DM_MEM_INNER, addr);
}

uint64_t ix_tree_node_begin(uint64_t entries, uint64_t nodes, uint64_t i) {
    return (uint64_t)((unsigned __int128)entries * i / nodes);
}

/* Builds a level of inner nodes over the last one and replaces it in builder->level. */
static int level_build(struct builder *builder, unsigned level) {
    const struct ix_inner_layout *inner = &builder->cn->inner;
    struct ix_tree_built *items = builder->level->items;
    uint64_t children = builder->level->count;
    uint64_t nodes = ix_nodes_for(children, builder->cn->fill, inner->cap, 2);
    dm_addr addr;
    DM_TRY(node_alloc(builder, 0, &addr));
    for (uint64_t i = 0; i < nodes; i++) {
        uint64_t begin = ix_tree_node_begin(children, nodes, i);
        uint64_t end = ix_tree_node_begin(children, nodes, i + 1);
        bool last = i + 1 == nodes;
        dm_addr next = DM_NULL;
        if (!last) {
            DM_TRY(node_alloc(builder, i + 1, &next));
        }
        uint64_t low = items[begin].low;
        ix_node_init(builder->image, inner->image_bytes, level, low, last ? IX_NODE_INFINITY : items[end].low, next);
        for (uint64_t c = begin; c < end; c++) {
            ix_inner_keys(builder->image)[c - begin] = items[c].low;
            ix_inner_children(inner, builder->image)[c - begin] = items[c].addr;
        }
        if (inner->beyond && !last) {
            ix_inner_children(inner, builder->image)[end - begin] = items[end].addr;
        }
        ix_node_head_of(builder->image)->count = (uint16_t)(end - begin);
        ix_node_encode_new(inner->format, builder->image, inner->node_bytes, ix_tree_writer_wire(&builder->writer));
        DM_TRY(ix_tree_writer_add(&builder->writer, addr, 0));
        /* Overwrites no item that is still needed: i <= begin. */
        items[i] = (struct ix_tree_built){low, addr};
        addr = next;
    }
    builder->level->count = nodes;
    return 0;
}

static int levels_build(struct builder *builder) {
    unsigned level = 0;
    while (builder->level->count > 1) {
        DM_TRY(level_build(builder, ++level));
    }
    DM_TRY(ix_tree_writer_flush(&builder->writer));
    uint64_t *word = builder->writer.words;
    *word = ix_tree_root_word(builder->level->items[0].addr, level);
    DM_TRY(dm_write(builder->writer.ctx, ix_tree_root_word_addr(), word, sizeof(*word)));
    atomic_store_explicit(&builder->cn->root, *word, memory_order_relaxed);
    return 0;
}

int ix_tree_build(struct ix_tree_cn *cn, struct dm_ctx *ctx, struct ix_tree_level *leaves) {
    struct builder builder = {.cn = cn, .level = leaves};
    builder.writer.wire_bytes = builder.writer.used_bytes = cn->inner.node_bytes;
    builder.image = calloc(1, (cn->inner.image_bytes + 7) / 8 * 8);
    int rc = ix_tree_writer_open(&builder.writer, ctx);
    rc = builder.image ? rc : DM_ERR_NO_MEMORY;
    rc = rc < 0 ? rc : levels_build(&builder);
    free(builder.image);
    return rc;
}
