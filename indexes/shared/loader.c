/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load; see loader.h.
 */
#include "indexes/shared/loader.h"

#include <stdlib.h>

enum { KEYS = 1024 /* fetched together */ };

bool ix_loader_key(struct ix_loader *loader, uint64_t *key) {
    const struct ix_pairs *pairs = loader->pairs;
    if (loader->done == pairs->count) {
        return false;
    }
    if (loader->done >= loader->first + loader->count) {
        uint64_t left = pairs->count - loader->done;
        loader->first = loader->done;
        loader->count = pairs->keys(pairs, loader->done, left < KEYS ? left : KEYS, loader->keys);
    }
    if (loader->count == 0) {
        return false;
    }
    *key = loader->keys[loader->done - loader->first];
    return true;
}

int ix_loader_value(struct ix_loader *loader, unsigned node, uint64_t key, const void **stored) {
    loader->pairs->value(loader->pairs, key, loader->value);
    return ix_indirect_load(loader->indirect, node, key, loader->value, stored);
}

static int leaf_alloc(struct ix_loader *loader, dm_addr *addr) {
    unsigned mn = (unsigned)((loader->leaves.count + 1) % dm_topology(loader->ctx)->mns);
    return dm_alloc(loader->ctx, mn, loader->leaf->alloc_bytes, DM_LINE, DM_MEM_LEAF, addr);
}

/* Builds one leaf at *addr that begins at *low; they become the next one's. */
static int leaf_build(struct ix_loader *loader, dm_addr *addr, uint64_t *low) {
    const struct ix_loader_leaf *leaf = loader->leaf;
    uint64_t total = loader->pairs->count;
    uint64_t begin = loader->done;
    uint64_t end = leaf->leaves > 0 ? ix_tree_node_begin(total, leaf->leaves, loader->leaves.count + 1) : total;
    dm_addr next = DM_NULL;
    if (leaf->leaves > 0 && end < total) {
        DM_TRY(leaf_alloc(loader, &next));
    }
    DM_TRY(leaf->fill(loader, dm_addr_node(*addr), end));
    if (loader->done == begin) {
        return DM_ERR_INVALID; /* there are fewer pairs than their count says */
    }
    uint64_t high = IX_NODE_INFINITY;
    if (loader->done < total) {
        if (!ix_loader_key(loader, &high)) {
            return DM_ERR_INVALID;
        }
        if (dm_addr_is_null(next)) {
            DM_TRY(leaf_alloc(loader, &next));
        }
    }
    uint64_t word = leaf->finish(loader, *low, high, next, ix_tree_writer_wire(&loader->writer));
    DM_TRY(ix_tree_writer_add(&loader->writer, *addr, word));
    DM_TRY(ix_tree_level_add(&loader->leaves, *low, *addr));
    *addr = next;
    *low = high;
    return 0;
}

static int tree_build(struct ix_loader *loader) {
    dm_addr addr = ix_tree_root_addr(atomic_load_explicit(&loader->cn->root, memory_order_relaxed));
    uint64_t low = 0;
    while (loader->done < loader->pairs->count) {
        DM_TRY(leaf_build(loader, &addr, &low));
    }
    DM_TRY(ix_indirect_flush(loader->indirect));
    DM_TRY(ix_tree_writer_flush(&loader->writer));
    return ix_tree_build(loader->cn, loader->ctx, &loader->leaves);
}

static int buffers_open(struct ix_loader *loader) {
    const struct ix_loader_leaf *leaf = loader->leaf;
    loader->writer.wire_bytes = leaf->wire_bytes;
    loader->writer.used_bytes = leaf->used_bytes;
    loader->writer.word_offset = leaf->word_offset;
    loader->image = calloc(1, (leaf->image_bytes + 7) / 8 * 8);
    loader->keys = calloc(KEYS, sizeof(uint64_t));
    loader->value = calloc(1, leaf->value_bytes + sizeof(uint64_t)); /* an entry takes a word of it in any case */
    if (!loader->image || !loader->keys || !loader->value) {
        return DM_ERR_NO_MEMORY;
    }
    struct ix_indirect_config values = {
        .values = leaf->values, .value_bytes = leaf->value_bytes, .padding = leaf->padding};
    DM_TRY(ix_indirect_open(loader->ctx, &values, &loader->indirect));
    return ix_tree_writer_open(&loader->writer, loader->ctx);
}

int ix_loader_run(struct ix_tree_cn *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs,
                  const struct ix_loader_leaf *leaf, struct dm_err *err) {
    struct ix_loader loader = {.leaf = leaf, .cn = cn, .ctx = ctx, .pairs = pairs};
    if (pairs->count == 0) {
        return 0;
    }
    int rc = buffers_open(&loader);
    rc = rc < 0 ? rc : tree_build(&loader);
    free(loader.image);
    free(loader.keys);
    free(loader.value);
    free(loader.leaves.items);
    ix_indirect_close(loader.indirect);
    return rc < 0 ? dm_fail(err, rc, "loading %llu keys: %s", (unsigned long long)pairs->count,
                            rc == DM_ERR_NO_MEMORY ? "the memory nodes are full" : dm_code_text(rc))
                  : 0;
}
