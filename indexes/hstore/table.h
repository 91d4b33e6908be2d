/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash table in a server's own DRAM: chained buckets that clients read one-sidedly, and beside each a line for the
 * server alone with the whole hashes of its keys, so that a write needs no look into the memory pool. Used by contexts
 * of that server only; a bucket is changed by one worker at a time, slots by compare-and-swap, as readers may be there.
 */
#ifndef DM_INDEXES_HSTORE_TABLE_H
#define DM_INDEXES_HSTORE_TABLE_H

#include <stdbool.h>

#include "wire.h"

struct hs_table {
    unsigned node;
    uint64_t base, buckets; /* base: an offset in DRAM */
    uint32_t tag;           /* 0 while the table is built: no client reads it then */
};

/* Where chained buckets come from; one a log. */
struct hs_spare {
    uint64_t at;   /* an offset */
    uint32_t left; /* buckets */
};

/* Where a key is: an offset of its slot, or 0; how many buckets were looked at. */
struct hs_found {
    uint64_t slot_at, item;
    uint32_t buckets;
};

/* Memory for the table, all empty. [waits] */
int hs_table_make(struct dm_ctx *ctx, struct hs_table *table, uint64_t buckets);

/* Empties it again; chained buckets stay where they are. */
void hs_table_clear(struct dm_ctx *ctx, struct hs_table *table);

struct hs_found hs_table_find(struct dm_ctx *ctx, const struct hs_table *table, uint64_t hash);

struct hs_room {
    uint32_t buckets, chained; /* gone through; of these: linked for it */
};

/* Makes sure that `wanted` slots of the hash's chain are empty. Returns 0 or as dm_alloc. [waits] */
int hs_table_reserve(struct dm_ctx *ctx, struct hs_table *table, struct hs_spare *spare, uint64_t hash, uint32_t wanted,
                     struct hs_room *room);

/* Points the key's slot, or an empty one, to an item; item 0: empties the slot. Returns false if there is no slot. */
bool hs_table_set(struct dm_ctx *ctx, const struct hs_table *table, uint64_t hash, uint64_t item, uint32_t item_bytes);

/* Lets clients in: every bucket gets the tag, then the descriptor is written. */
void hs_table_publish(struct dm_ctx *ctx, struct hs_table *table, uint32_t tag);

/* Items of the chains from bucket *first on, as many whole chains as fit; *first is set behind them. Returns how many.
 */
uint32_t hs_table_items(struct dm_ctx *ctx, const struct hs_table *table, uint64_t *first, uint64_t *items,
                        uint32_t capacity);

#endif
