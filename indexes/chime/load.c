/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load: fills leaves with sorted pairs, each up to the fill factor or as far as hopscotch hashing goes, then
 * builds the tree over them. Leaves go round the memory nodes. The empty leaf that format made becomes the first one.
 */
#include <stdlib.h>

#include "chime.h"

enum { LOAD_BATCH = 32 /* leaves that one doorbell writes */, LOAD_KEYS = 1024 /* keys fetched together */ };

struct loader {
    struct chime_cn *cn;
    struct dm_ctx *ctx;
    const struct ix_pairs *pairs;
    /* Leaves that wait for their write, and their lock words. They are posted only when all are
     * written: an allocation in between may have to make a call, which needs an empty batch. */
    char *wires;
    uint64_t *words;
    dm_addr addrs[LOAD_BATCH];
    unsigned waiting;
    char *image;
    uint64_t *keys; /* from pair `first` on */
    uint64_t first, count, done;
    struct ix_tree_level leaves;
    char *value;
    struct ix_indirect *indirect; /* NULL: values are inline */
};

static int leaves_flush(struct loader *loader) {
    const struct chime_layout *layout = &loader->cn->layout;
    for (unsigned i = 0; i < loader->waiting; i++) {
        dm_post_write(loader->ctx, loader->addrs[i], loader->wires + (size_t)i * layout->wire_bytes,
                      layout->used_bytes);
        dm_post_write(loader->ctx, chime_leaf_word(loader->cn, loader->addrs[i]), &loader->words[i], sizeof(uint64_t));
    }
    loader->waiting = 0;
    return dm_commit(loader->ctx);
}

static int leaf_write(struct loader *loader, dm_addr addr) {
    const struct chime_layout *layout = &loader->cn->layout;
    ix_lines_encode(loader->image, layout->wire_bytes, 0, loader->wires + (size_t)loader->waiting * layout->wire_bytes);
    loader->words[loader->waiting] = chime_word_of(layout, loader->image);
    loader->addrs[loader->waiting] = addr;
    return ++loader->waiting == LOAD_BATCH ? leaves_flush(loader) : 0;
}

/* The key of pair `done`; false at the end. */
static bool key_next(struct loader *loader, uint64_t *key) {
    if (loader->done == loader->pairs->count) {
        return false;
    }
    if (loader->done >= loader->first + loader->count) {
        uint64_t left = loader->pairs->count - loader->done;
        loader->first = loader->done;
        loader->count =
            loader->pairs->keys(loader->pairs, loader->done, left < LOAD_KEYS ? left : LOAD_KEYS, loader->keys);
    }
    if (loader->count == 0) {
        return false;
    }
    *key = loader->keys[loader->done - loader->first];
    return true;
}

/* Fills the empty leaf in ->image, which will be on memory node `node`. */
static int leaf_fill(struct loader *loader, unsigned node) {
    const struct chime_layout *layout = &loader->cn->layout;
    unsigned most = (unsigned)(loader->cn->params->fill * layout->span);
    most = most < 1 ? 1 : most;
    uint64_t key;
    for (unsigned n = 0; n < most && key_next(loader, &key); n++) {
        struct chime_set unused = {{0}};
        unsigned largest = 0;
        unsigned filled;
        loader->pairs->value(loader->pairs, key, loader->value);
        int at = chime_place(layout, loader->image, key, loader->value, layout->span, &unused, &largest, &filled);
        if (at == CHIME_NONE) {
            return 0;
        }
        const void *stored;
        DM_TRY(ix_indirect_load(loader->indirect, node, key, loader->value, &stored));
        chime_put_value(layout, loader->image, (unsigned)at, stored);
        loader->done++;
    }
    return 0;
}

static int leaves_build(struct loader *loader, dm_addr first) {
    const struct chime_layout *layout = &loader->cn->layout;
    dm_addr addr = first;
    uint64_t low = 0;
    bool last = false;
    while (!last) {
        struct chime_meta meta = {.valid = true, .low = low, .high = UINT64_MAX};
        chime_leaf_init(layout, loader->image, &meta);
        uint64_t before = loader->done;
        DM_TRY(leaf_fill(loader, dm_addr_node(addr)));
        if (loader->done == before) {
            return DM_ERR_INVALID; /* the pairs ended before their count */
        }
        last = loader->done == loader->pairs->count;
        if (!last) {
            if (!key_next(loader, &meta.high)) {
                return DM_ERR_INVALID;
            }
            unsigned mn = (unsigned)((loader->leaves.count + 1) % loader->cn->shape->topology->mns);
            DM_TRY(dm_alloc(loader->ctx, mn, layout->alloc_bytes, DM_LINE, DM_MEM_LEAF, &meta.sibling));
        }
        chime_meta_set(layout, loader->image, &meta);
        DM_TRY(leaf_write(loader, addr));
        DM_TRY(ix_tree_level_add(&loader->leaves, low, addr));
        addr = meta.sibling;
        low = meta.high;
    }
    DM_TRY(ix_indirect_flush(loader->indirect));
    return leaves_flush(loader);
}

int chime_bulk_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    struct chime_cn *cn = handle;
    if (pairs->count == 0) {
        return 0;
    }
    struct loader loader = {.cn = cn, .ctx = ctx, .pairs = pairs};
    loader.wires = dm_local_alloc(ctx, LOAD_BATCH * cn->layout.wire_bytes);
    loader.words = dm_local_alloc(ctx, LOAD_BATCH * (uint32_t)sizeof(uint64_t));
    loader.image = calloc(1, cn->layout.wire_bytes);
    loader.keys = calloc(LOAD_KEYS, sizeof(uint64_t));
    loader.value = calloc(1, cn->shape->value_bytes + sizeof(uint64_t)); /* a leaf takes at least a word from there */
    struct ix_indirect_config values = {.values = cn->params->values, .value_bytes = cn->shape->value_bytes};
    int rc = ix_indirect_open(ctx, &values, &loader.indirect);
    rc = loader.wires && loader.words && loader.image && loader.keys && loader.value ? rc : DM_ERR_NO_MEMORY;
    if (rc == 0) {
        uint64_t root = atomic_load_explicit(&cn->tree.root, memory_order_relaxed);
        rc = leaves_build(&loader, ix_tree_root_addr(root));
        rc = rc < 0 ? rc : ix_tree_build(&cn->tree, ctx, &loader.leaves);
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
