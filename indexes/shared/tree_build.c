/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load above the leaves: levels of evenly filled inner nodes, bottom-up; see tree.h.
 */
#include <stdlib.h>

#include "indexes/shared/tree.h"

enum { BUILD_BATCH = 32 }; /* nodes that one doorbell writes */

struct builder {
    struct ix_tree_cn *cn;
    struct dm_ctx *ctx;
    double fill;
    /* Nodes that wait for their write. They are posted only when all are written: an allocation in between may have to
     * make a call, which needs an empty batch. */
    char *wires;
    dm_addr addrs[BUILD_BATCH];
    unsigned waiting;
    char *image;
    struct ix_tree_built *level;
    uint64_t level_count;
};

static int nodes_flush(struct builder *builder) {
    uint32_t node_bytes = builder->cn->inner.node_bytes;
    for (unsigned i = 0; i < builder->waiting; i++) {
        dm_post_write(builder->ctx, builder->addrs[i], builder->wires + (size_t)i * node_bytes, node_bytes);
    }
    builder->waiting = 0;
    return dm_commit(builder->ctx);
}

static int node_write(struct builder *builder, dm_addr addr) {
    uint32_t node_bytes = builder->cn->inner.node_bytes;
    ix_lines_encode(builder->image, node_bytes, 0, builder->wires + (size_t)builder->waiting * node_bytes);
    builder->addrs[builder->waiting] = addr;
    return ++builder->waiting == BUILD_BATCH ? nodes_flush(builder) : 0;
}

static int node_alloc(struct builder *builder, uint64_t number, dm_addr *addr) {
    unsigned mn = (unsigned)(number % dm_topology(builder->ctx)->mns);
    return dm_alloc(builder->ctx, mn, builder->cn->alloc_bytes, DM_LINE, DM_MEM_INNER, addr);
}

uint64_t ix_tree_nodes_for(uint64_t entries, double fill, uint32_t cap, uint32_t least) {
    uint64_t each = (uint64_t)(fill * cap);
    each = each < least ? least : each;
    return (entries + each - 1) / each;
}

uint64_t ix_tree_node_begin(uint64_t entries, uint64_t nodes, uint64_t i) {
    return (uint64_t)((unsigned __int128)entries * i / nodes);
}

/* Puts a level of inner nodes over the last one, in place of it in builder->level. */
static int level_build(struct builder *builder, unsigned level) {
    const struct ix_inner_layout *inner = &builder->cn->inner;
    uint64_t children = builder->level_count;
    uint64_t nodes = ix_tree_nodes_for(children, builder->fill, inner->cap, 2);
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
        uint64_t low = builder->level[begin].low;
        ix_node_init(builder->image, inner->image_bytes, level, low, last ? IX_NODE_INFINITY : builder->level[end].low,
                     next);
        for (uint64_t c = begin; c < end; c++) {
            ix_inner_keys(builder->image)[c - begin] = builder->level[c].low;
            ix_inner_children(inner, builder->image)[c - begin] = builder->level[c].addr;
        }
        if (inner->beyond && !last) {
            ix_inner_children(inner, builder->image)[end - begin] = builder->level[end].addr;
        }
        ix_node_head_of(builder->image)->count = (uint16_t)(end - begin);
        DM_TRY(node_write(builder, addr));
        /* Never ahead of what is still to be read: i <= begin. */
        builder->level[i] = (struct ix_tree_built){low, addr};
        addr = next;
    }
    builder->level_count = nodes;
    return 0;
}

static int levels_build(struct builder *builder) {
    unsigned level = 0;
    while (builder->level_count > 1) {
        DM_TRY(level_build(builder, ++level));
    }
    DM_TRY(nodes_flush(builder));
    uint64_t *word = (uint64_t *)(void *)builder->wires;
    *word = ix_tree_root_word(builder->level[0].addr, level);
    DM_TRY(dm_write(builder->ctx, ix_tree_root_place(), word, sizeof(*word)));
    atomic_store_explicit(&builder->cn->root, *word, memory_order_relaxed);
    return 0;
}

int ix_tree_build(struct ix_tree_cn *cn, struct dm_ctx *ctx, double fill, struct ix_tree_built *level, uint64_t count) {
    struct builder builder = {.cn = cn, .ctx = ctx, .fill = fill, .level = level, .level_count = count};
    builder.wires = dm_local_alloc(ctx, BUILD_BATCH * cn->inner.node_bytes);
    builder.image = calloc(1, (cn->inner.image_bytes + 7) / 8 * 8);
    int rc = builder.wires && builder.image ? levels_build(&builder) : DM_ERR_NO_MEMORY;
    free(builder.image);
    return rc;
}
