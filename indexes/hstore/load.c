/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load: writes items into slabs, then sends their addresses to both servers of their shard, in the order of keys.
 */
#include <stdlib.h>

#include "hstore.h"

enum { BLOCK = 512, SLAB_BYTES = 16384 };

struct load {
    struct hstore_cn *cn;
    struct dm_ctx *ctx;
    const struct ix_pairs *pairs;
    char *items;     /* device memory: BLOCK items */
    uint64_t *words; /* device memory */
    uint64_t keys[BLOCK];
    struct hstore_pair *shard_pairs; /* BLOCK pairs for each shard */
    uint32_t pair_counts[HSTORE_SHARDS_MAX];
    dm_addr slab;
    uint32_t slab_left, slab_items;
};

static int space_take(struct load *load, dm_addr *addr) {
    uint32_t item_bytes = load->cn->geometry.item_bytes;
    if (load->slab_left == 0) {
        DM_TRY(hstore_slab_new(load->ctx, 0, item_bytes, load->slab_items, load->words, &load->slab));
        load->slab = dm_addr_add(load->slab, DM_LINE);
        load->slab_left = load->slab_items;
    }
    *addr = load->slab;
    load->slab = dm_addr_add(load->slab, item_bytes);
    load->slab_left--;
    return 0;
}

/* Writes the items of a block of `n` keys. */
static int items_load(struct load *load, uint64_t n) {
    const struct hstore_geometry *geometry = &load->cn->geometry;
    char value[HSTORE_VALUE_MAX];
    for (uint64_t i = 0; i < n; i++) {
        char *item = load->items + i * geometry->item_bytes;
        struct hstore_item *head = (struct hstore_item *)(void *)item;
        dm_addr addr;
        DM_TRY(dm_commit(load->ctx)); /* a new slab needs an empty batch, so this sends item by item */
        DM_TRY(space_take(load, &addr));
        uint64_t packed = hstore_pack(addr), key = load->keys[i];
        load->pairs->value(load->pairs, key, value);
        head->client = head->seq = 0;
        hstore_item_make(item, geometry->key_bytes, geometry->value_bytes, packed, key, value);
        head->state = HSTORE_STAMP_LOADED;
        dm_post_write(load->ctx, addr, item, geometry->item_bytes);
        unsigned shard = hstore_shard_of(geometry, hstore_hash(key));
        load->shard_pairs[(size_t)shard * BLOCK + load->pair_counts[shard]++] =
            (struct hstore_pair){.key = key, .item = packed, .writer = hstore_writer(0, 0)};
    }
    return dm_commit(load->ctx);
}

static int pairs_send(struct load *load) {
    const struct dm_topology *topology = load->cn->shape->topology;
    for (unsigned shard = 0; shard < load->cn->geometry.shards; shard++) {
        const struct hstore_pair *pairs = load->shard_pairs + (size_t)shard * BLOCK;
        uint32_t bytes = load->pair_counts[shard] * (uint32_t)sizeof(*pairs);
        if (bytes > 0) {
            DM_TRY(dm_call(load->ctx, hstore_hts_node(topology, shard), HSTORE_METHOD_LOAD, pairs, bytes, NULL, NULL));
            DM_TRY(dm_call(load->ctx, hstore_sls_node(topology, shard), HSTORE_METHOD_LOAD, pairs, bytes, NULL, NULL));
        }
        load->pair_counts[shard] = 0;
    }
    return 0;
}

static int load_all(struct load *load) {
    static_assert(BLOCK * sizeof(struct hstore_pair) <= DM_CALL_MAX, "a call takes a block");
    for (uint64_t first = 0; first < load->pairs->count;) {
        uint64_t left = load->pairs->count - first;
        uint64_t n = load->pairs->keys(load->pairs, first, left < BLOCK ? left : BLOCK, load->keys);
        DM_TRY(items_load(load, n));
        DM_TRY(pairs_send(load));
        first += n;
    }
    return 0;
}

int hstore_load(void *handle, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err) {
    struct hstore_cn *cn = handle;
    (void)err;
    struct load *load = calloc(1, sizeof(*load));
    if (!load) {
        return DM_ERR_NO_MEMORY;
    }
    load->cn = cn;
    load->ctx = ctx;
    load->pairs = pairs;
    /* A few pairs would not fill large slabs on every memory node. */
    uint64_t share = pairs->count / (4 * cn->shape->topology->mns) + 1;
    uint64_t fits = (SLAB_BYTES - DM_LINE) / cn->geometry.item_bytes;
    load->slab_items = (uint32_t)(share < fits ? share : fits);
    load->items = dm_local_alloc(ctx, BLOCK * cn->geometry.item_bytes);
    load->words = dm_local_alloc(ctx, 2 * DM_LINE);
    load->shard_pairs = calloc((size_t)cn->geometry.shards * BLOCK, sizeof(*load->shard_pairs));
    int rc = load->items && load->words && load->shard_pairs ? load_all(load) : DM_ERR_NO_MEMORY;
    free(load->shard_pairs);
    free(load);
    return rc < 0 ? rc : 0;
}
