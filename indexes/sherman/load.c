/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load: builds the leaves from sorted pairs, then the tree over them. Keys are spread evenly over the leaves that
 * the fill factor asks for, and nodes go round the memory nodes. The empty leaf that format made becomes the first
 * leaf.
 */
#include "sherman.h"

#include <stdlib.h>

struct loader {
    struct sherman_cn *cn;
    struct dm_ctx *ctx;
    const struct ix_pairs *pairs;
    struct ix_tree_writer writer;
    char *image;
    uint64_t *keys; /* of one leaf, and the first of the next */
    struct ix_tree_level leaves;
    char *value;                  /* room for one */
    struct ix_indirect *indirect; /* NULL: values are inline */
};

static int leaf_alloc(struct loader *loader, uint64_t number, dm_addr *addr) {
    unsigned mn = (unsigned)(number % loader->cn->shape->topology->mns);
    return dm_alloc(loader->ctx, mn, loader->cn->layout.node_bytes, DM_LINE, DM_MEM_LEAF, addr);
}

/* Fills the leaf in ->image, which will be on memory node `node`. */
static int leaf_fill(struct loader *loader, unsigned n, unsigned node) {
    const struct node_layout *layout = &loader->cn->layout;
    for (unsigned i = 0; i < n; i++) {
        const void *stored;
        loader->pairs->value(loader->pairs, loader->keys[i], loader->value);
        DM_TRY(ix_indirect_load(loader->indirect, node, loader->keys[i], loader->value, &stored));
        leaf_set(layout, loader->image, i, loader->keys[i], stored);
    }
    return 0;
}

static int leaves_build(struct loader *loader, dm_addr first) {
    const struct node_layout *layout = &loader->cn->layout;
    const struct ix_pairs *pairs = loader->pairs;
    uint64_t leaves = ix_tree_nodes_for(pairs->count, loader->cn->params->fill, layout->leaf_cap, 1);
    dm_addr addr = first;
    uint64_t low = 0;
    for (uint64_t i = 0; i < leaves; i++) {
        uint64_t begin = ix_tree_node_begin(pairs->count, leaves, i);
        uint64_t n = ix_tree_node_begin(pairs->count, leaves, i + 1) - begin;
        bool last = i + 1 == leaves;
        if (pairs->keys(pairs, begin, n + !last, loader->keys) != n + !last) {
            return DM_ERR_INVALID;
        }
        uint64_t high = last ? IX_NODE_INFINITY : loader->keys[n];
        dm_addr next = DM_NULL;
        if (!last) {
            DM_TRY(leaf_alloc(loader, i + 1, &next));
        }
        leaf_init(layout, loader->image, low, high, next);
        DM_TRY(leaf_fill(loader, (unsigned)n, dm_addr_node(addr)));
        leaf_refresh(layout, loader->image, 0);
        ix_format_lines.encode(loader->image, layout->node_bytes, 0, ix_tree_writer_wire(&loader->writer));
        DM_TRY(ix_tree_writer_add(&loader->writer, addr, 0));
        DM_TRY(ix_tree_level_add(&loader->leaves, low, addr));
        addr = next;
        low = high;
    }
    return 0;
}

static int tree_build(struct loader *loader) {
    struct sherman_cn *cn = loader->cn;
    uint64_t root = atomic_load_explicit(&cn->tree.root, memory_order_relaxed);
    DM_TRY(leaves_build(loader, ix_tree_root_addr(root)));
    DM_TRY(ix_indirect_flush(loader->indirect));
    DM_TRY(ix_tree_writer_flush(&loader->writer));
    return ix_tree_build(&cn->tree, loader->ctx, &loader->leaves);
}

int sherman_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    struct sherman_cn *cn = handle;
    if (pairs->count == 0) {
        return 0;
    }
    struct loader loader = {.cn = cn, .ctx = ctx, .pairs = pairs};
    loader.image = calloc(1, (cn->layout.image_bytes + 7) / 8 * 8);
    loader.keys = calloc(cn->layout.leaf_cap + 1, sizeof(uint64_t));
    loader.value = calloc(1, cn->shape->value_bytes);
    struct ix_indirect_config values = {.values = cn->params->values, .value_bytes = cn->shape->value_bytes};
    int rc = ix_indirect_open(ctx, &values, &loader.indirect);
    loader.writer.wire_bytes = loader.writer.used_bytes = cn->layout.node_bytes;
    rc = rc < 0 ? rc : ix_tree_writer_open(&loader.writer, ctx);
    rc = loader.image && loader.keys && loader.value ? rc : DM_ERR_NO_MEMORY;
    if (rc == 0) {
        rc = tree_build(&loader);
    }
    free(loader.image);
    free(loader.keys);
    free(loader.leaves.items);
    free(loader.value);
    ix_indirect_close(loader.indirect);
    return rc < 0 ? dm_fail(err, rc, "loading %llu keys: %s", (unsigned long long)pairs->count,
                            rc == DM_ERR_NO_MEMORY ? "the memory nodes are full" : dm_code_text(rc))
                  : 0;
}
