/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash table in a server's own DRAM: chained buckets that clients read one-sidedly. Beside each is a line for the
 * server alone, with the complete hashes of its keys, so that a write need not read the memory pool. Only contexts of
 * that server call these functions. One worker at a time changes a bucket; slots are changed by compare-and-swap,
 * because clients may read them meanwhile.
 */
#ifndef DM_INDEXES_HSTORE_TABLE_H
#define DM_INDEXES_HSTORE_TABLE_H

#include <stdbool.h>

#include "wire.h"

struct hstore_table {
    unsigned node;
    uint64_t buckets;
    uint32_t tag;                     /* 0 while the table is built, when no client reads it */
    uint64_t parts[HSTORE_PARTS_MAX]; /* offsets in DRAM, see wire.h */
};

/* Memory for chained buckets, for one log. */
struct hstore_spare {
    uint64_t at;   /* offset */
    uint32_t left; /* buckets */
};

/* The result of a search: the offset of the key's slot, 0 if it is absent, and the number of buckets visited. */
struct hstore_found {
    uint64_t slot_at, item;
    uint32_t buckets;
};

/* Allocates an empty table. [waits] */
int hstore_table_make(struct dm_ctx *ctx, struct hstore_table *table, uint64_t buckets);

/* Empties the table; chained buckets remain. */
void hstore_table_clear(struct dm_ctx *ctx, struct hstore_table *table);

struct hstore_found hstore_table_find(struct dm_ctx *ctx, const struct hstore_table *table, uint64_t hash);

struct hstore_reserved {
    uint32_t buckets, chained; /* visited; of these: added to the chain */
};

/* Extends the hash's chain until `wanted` slots are empty. 0 or as dm_alloc. [waits] */
int hstore_table_reserve(struct dm_ctx *ctx, struct hstore_table *table, struct hstore_spare *spare, uint64_t hash,
                         uint32_t wanted, struct hstore_reserved *reserved);

/* Stores an item's address in the key's slot, or in an empty one; item 0 empties the slot. False: there is no slot. */
bool hstore_table_set(struct dm_ctx *ctx, const struct hstore_table *table, uint64_t hash, uint64_t item,
                      uint32_t item_bytes);

/* Makes the table readable by clients: writes the tag to every bucket, then the addresses of the parts. */
void hstore_table_publish(struct dm_ctx *ctx, struct hstore_table *table, uint32_t tag);

/* Copies the items of the slots from *range on, as many as fit. Moves *range behind them and returns their number. */
uint32_t hstore_table_items(struct dm_ctx *ctx, const struct hstore_table *table, struct hstore_range *range,
                            uint64_t *items, uint32_t capacity);

#endif
