/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a tree's parts in remote memory, on compute nodes and of clients; see tree.h.
 */
#include <stdlib.h>

#include "indexes/shared/tree.h"

enum {
    SCAN_BATCH_BYTES = 16384, /* a client's buffer for the leaves of one doorbell */
    COUNTED_NODE_BYTES = 51,
    COUNTED_ENTRY_BYTES = 17, /* version, key, child */
    DENSE = 2,                /* numbers an entry, up to which keys are taken to be consecutive */
};

int ix_tree_format(struct dm_ctx *ctx, const struct ix_tree_leaf *leaf, struct dm_err *err) {
    uint64_t *word = dm_local_alloc(ctx, sizeof(*word));
    if (!word) {
        return DM_ERR_NO_MEMORY;
    }
    dm_addr root;
    int rc = dm_alloc(ctx, 0, leaf->alloc_bytes, DM_LINE, DM_MEM_LEAF, &root);
    if (rc < 0) {
        return dm_fail(err, rc, "no memory for the first leaf on memory node 0");
    }
    *word = ix_tree_root_word(root, 0);
    rc = dm_write(ctx, root, leaf->wire, leaf->wire_bytes);
    return rc < 0 ? rc : dm_write(ctx, ix_tree_root_word_addr(), word, sizeof(*word));
}

int ix_tree_open(struct ix_tree_cn *cn, struct dm_ctx *ctx, uint64_t cache_bytes) {
    uint64_t *root = dm_local_alloc(ctx, sizeof(*root));
    if (!root) {
        return DM_ERR_NO_MEMORY;
    }
    DM_TRY(dm_read(ctx, ix_tree_root_word_addr(), root, sizeof(*root)));
    atomic_init(&cn->root, *root);
    uint32_t batch = SCAN_BATCH_BYTES / cn->leaf_bytes;
    cn->scan_batch = batch < 2 ? 2 : batch > IX_TREE_SCAN_BATCH_MAX ? IX_TREE_SCAN_BATCH_MAX : batch;
    struct ix_cache_config cache = {
        .bytes = cn->cache_levels > 0 ? cache_bytes : 0,
        .copy_bytes = ix_inner_bytes(cn->inner.cap, cn->inner.key_bytes, cn->inner.beyond),
        .threads = dm_thread_count(dm_fabric_of(ctx), dm_node(ctx)),
        .one_thread = dm_is_one_thread(dm_fabric_of(ctx)),
    };
    return ix_cache_open(&cache, &cn->cache);
}

void ix_tree_close(struct ix_tree_cn *cn) {
    ix_cache_close(cn->cache);
    cn->cache = NULL;
}

int ix_tree_attach(struct ix_tree *tree, struct ix_tree_cn *cn, struct dm_ctx *ctx, void *client, uint64_t *counts,
                   uint64_t *cache_counts) {
    uint32_t wire_bytes = cn->inner.node_bytes;
    uint32_t image_bytes = (cn->inner.image_bytes + 7) / 8 * 8;
    uint64_t *words = dm_local_alloc(ctx, (2 + IX_TREE_OWN_WORDS) * (uint32_t)sizeof(*words));
    char *wires = dm_local_alloc(ctx, 2 * wire_bytes + cn->scan_batch * cn->leaf_bytes);
    char *images = calloc(1, 2 * (size_t)image_bytes + cn->leaf_cap * sizeof(*tree->order));
    *tree = (struct ix_tree){
        .cn = cn,
        .ctx = ctx,
        .client = client,
        .counts = counts,
        .cache_counts = cache_counts ? cache_counts : tree->no_counts,
        .thread = dm_thread(ctx),
        .image = images,
    };
    if (!words || !wires || !images) {
        return DM_ERR_NO_MEMORY;
    }
    tree->old = words;
    tree->root = words + 1;
    tree->own = words + 2;
    tree->wire = wires;
    tree->wire_right = wires + wire_bytes;
    tree->batch = wires + 2 * wire_bytes;
    tree->image_right = images + image_bytes;
    tree->order = (uint16_t *)(void *)(images + 2 * (size_t)image_bytes);
    /* The compute node opened its part before bulk load, when the root was an empty leaf: all clients would begin with
     * that leaf, and all inserts wait for its lock. */
    int rc = ix_tree_root_refresh(tree);
    return rc < 0 ? rc : 0;
}

void ix_tree_detach(struct ix_tree *tree) {
    while (tree->spares > 0) {
        tree->spares--;
        dm_free(tree->ctx, tree->spare[tree->spares], tree->cn->alloc_bytes, DM_MEM_INNER);
    }
    free(tree->image);
}

struct counted {
    uint64_t bytes;
    uint32_t padding; /* of a key */
};

static void entries_count(void *arg, const void *node) {
    struct counted *counted = arg;
    uint64_t entry = COUNTED_ENTRY_BYTES + counted->padding;
    counted->bytes += COUNTED_NODE_BYTES + 2 * counted->padding + entry * (ix_node_head_in(node)->count - 1u);
}

uint64_t ix_tree_cache_entry_bytes(const struct ix_tree_cn *cn) {
    struct counted counted = {.padding = cn->inner.key_bytes - (uint32_t)sizeof(uint64_t)};
    ix_cache_each(cn->cache, entries_count, &counted);
    return counted.bytes;
}

unsigned ix_tree_leaves_for(const struct ix_tree_cn *cn, const uint64_t *lows, unsigned have, uint64_t first,
                            uint32_t keys) {
    double each = cn->leaf_cap * cn->fill;
    unsigned expected = (unsigned)(1.5 + (keys - 1) / (each < 1 ? 1 : each));
    unsigned most = have < cn->scan_batch ? have : cn->scan_batch;
    unsigned n = 1;
    for (; n < most; n++) {
        bool dense = lows[n] - lows[n - 1] <= (uint64_t)DENSE * cn->leaf_cap;
        if (dense ? lows[n] - first >= keys : n >= expected) {
            break;
        }
    }
    return n;
}
