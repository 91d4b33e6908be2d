/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading all items of the memory pool; see pool.h.
 */
#include "pool.h"

#include <string.h>

enum { PIECE_BYTES = 16384 };

int hstore_pool_open(struct dm_ctx *ctx, struct hstore_pool_walk *walk, const struct hstore_geometry *geometry,
                     unsigned mns) {
    uint32_t fits = PIECE_BYTES / geometry->item_bytes;
    *walk = (struct hstore_pool_walk){.geometry = geometry, .mns = mns, .piece_items = fits > 0 ? fits : 1};
    walk->piece = dm_local_alloc(ctx, DM_LINE + walk->piece_items * geometry->item_bytes);
    return walk->piece ? 0 : DM_ERR_NO_MEMORY;
}

static int slab_visit(struct dm_ctx *ctx, const struct hstore_pool_walk *walk, dm_addr first, uint32_t items,
                      hstore_pool_visit visit, void *arg) {
    uint32_t item_bytes = walk->geometry->item_bytes;
    for (uint32_t at = 0; at < items; at += walk->piece_items) {
        uint32_t n = items - at < walk->piece_items ? items - at : walk->piece_items;
        dm_addr addr = dm_addr_add(first, (uint64_t)at * item_bytes);
        DM_TRY(dm_read(ctx, addr, walk->piece, n * item_bytes));
        dm_charge(ctx, DM_WORK_LINE_COPY, n * (item_bytes / DM_LINE));
        for (uint32_t i = 0; i < n; i++) {
            const struct hstore_item *item =
                (const struct hstore_item *)(const void *)(walk->piece + (size_t)i * item_bytes);
            if (item->state != HSTORE_NEVER_USED) {
                DM_TRY(visit(ctx, arg, hstore_pack(dm_addr_add(addr, (uint64_t)i * item_bytes)), item));
            }
        }
    }
    return 0;
}

/* Visits one list of a node's slabs. New slabs are added at its head, so the existing ones stay reachable. */
static int list_visit(struct dm_ctx *ctx, const struct hstore_pool_walk *walk, unsigned node, uint64_t next,
                      hstore_pool_visit visit, void *arg) {
    struct hstore_slab slab;
    while (next) {
        dm_addr addr = {next};
        if (!dm_addr_valid(ctx, addr, DM_LINE) || dm_addr_node(addr) != node) {
            return DM_ERR_CORRUPT;
        }
        DM_TRY(dm_read(ctx, addr, walk->piece, DM_LINE));
        memcpy(&slab, walk->piece, sizeof(slab));
        uint32_t bytes = slab.items * walk->geometry->item_bytes;
        if (!hstore_slab_plausible(&slab, walk->geometry->item_bytes) ||
            !dm_addr_valid(ctx, dm_addr_add(addr, DM_LINE), bytes)) {
            return DM_ERR_CORRUPT;
        }
        DM_TRY(slab_visit(ctx, walk, dm_addr_add(addr, DM_LINE), slab.items, visit, arg));
        next = slab.next;
    }
    return 0;
}

static int node_visit(struct dm_ctx *ctx, const struct hstore_pool_walk *walk, unsigned node, hstore_pool_visit visit,
                      void *arg) {
    uint64_t heads[HSTORE_SLAB_LISTS];
    static_assert(sizeof(heads) <= PIECE_BYTES, "the heads fit in a piece");
    DM_TRY(dm_read(ctx, dm_addr_make(node, DM_DRAM, HSTORE_SLABS_OFFSET), walk->piece, sizeof(heads)));
    memcpy(heads, walk->piece, sizeof(heads));
    for (unsigned i = 0; i < HSTORE_SLAB_LISTS; i++) {
        DM_TRY(list_visit(ctx, walk, node, heads[i], visit, arg));
    }
    return 0;
}

int hstore_pool_visit_all(struct dm_ctx *ctx, const struct hstore_pool_walk *walk, hstore_pool_visit visit, void *arg) {
    for (unsigned node = 0; node < walk->mns; node++) {
        DM_TRY(node_visit(ctx, walk, node, visit, arg));
    }
    return 0;
}
