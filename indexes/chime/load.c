/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load: fills leaves with sorted pairs, each up to the fill factor or to the fill that hashing permits; the rest
 * is shared/loader.c.
 */
#include "chime.h"
#include "indexes/shared/loader.h"

static int leaf_fill(struct ix_loader *loader, unsigned node, uint64_t end) {
    const struct chime_cn *cn = loader->leaf->owner;
    const struct chime_layout *layout = &cn->layout;
    unsigned most = (unsigned)(cn->params->fill * layout->span);
    most = most < 1 ? 1 : most;
    uint64_t key;
    chime_leaf_init(layout, loader->image, &(struct chime_meta){.valid = true});
    for (unsigned n = 0; n < most && loader->done < end && ix_loader_key(loader, &key); n++) {
        struct chime_set unused = {{0}};
        unsigned largest = 0;
        unsigned filled;
        int at = chime_leaf_insert(layout, loader->image, key, NULL, layout->span, &unused, &largest, &filled);
        if (at == CHIME_NONE) {
            return 0;
        }
        const void *stored;
        DM_TRY(ix_loader_value(loader, node, key, &stored));
        chime_leaf_update(layout, loader->image, (unsigned)at, stored);
        loader->done++;
    }
    return 0;
}

static uint64_t leaf_finish(struct ix_loader *loader, uint64_t low, uint64_t high, dm_addr sibling, char *wire) {
    const struct chime_cn *cn = loader->leaf->owner;
    struct chime_meta meta = {.valid = true, .sibling = sibling, .low = low, .high = high};
    chime_meta_set(&cn->layout, loader->image, &meta);
    ix_lines_encode(loader->image, cn->layout.wire_bytes, 0, wire);
    return chime_word_of(&cn->layout, loader->image);
}

int chime_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    struct chime_cn *cn = handle;
    struct ix_loader_leaf leaf = {
        .wire_bytes = cn->layout.wire_bytes,
        .used_bytes = cn->layout.used_bytes,
        .word_offset = cn->layout.lock_offset,
        .alloc_bytes = cn->layout.alloc_bytes,
        .image_bytes = cn->layout.wire_bytes,
        .values = (enum ix_values)cn->params->values,
        .value_bytes = cn->shape->value_bytes,
        .padding = ix_key_padding(cn->shape),
        .owner = cn,
        .fill = leaf_fill,
        .finish = leaf_finish,
    };
    return ix_loader_run(&cn->tree, ctx, pairs, &leaf, err);
}
