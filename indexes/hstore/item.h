/* SPDX-License-Identifier: Apache-2.0
 *
 * Key-value items in the memory pool, and a client's supply of space for them.
 *
 * Items are stored in slabs, and slabs are in lists of their memory node, so that the pool can be read without any
 * index. There are enough lists that clients which start at the same time rarely append to the same one, where all but
 * one would have to retry. An item's space is reused only a grace period after it was replaced: a client that got its
 * address less than that ago may read it and finds the old content.
 */
#ifndef DM_INDEXES_HSTORE_ITEM_H
#define DM_INDEXES_HSTORE_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/dm.h"
#include "wire.h"

/* State of an item: the first word. Values from HSTORE_STAMP_FIRST on are the stamp of its log entry: the write is
 * logged.
 */
enum { HSTORE_NEVER_USED = 0, HSTORE_PENDING = 1, HSTORE_DEAD = 2, HSTORE_STAMP_LOADED = 16, HSTORE_STAMP_FIRST = 32 };

/* Followed by the key, padded to a multiple of 8 bytes, and the value. */
struct hstore_item {
    uint64_t state;
    uint64_t check;       /* checksum of everything but the state, and of the address */
    uint32_t client, seq; /* the write that made it */
    uint64_t key;         /* the first 8 bytes of the key */
};

uint32_t hstore_item_bytes(uint32_t key_bytes, uint32_t value_bytes); /* a multiple of 64 */

/* The offset of the value in an item. */
uint32_t hstore_item_value_at(uint32_t key_bytes);

/* Makes an item for its address. `item` has hstore_item_bytes. The state is set to HSTORE_PENDING. */
void hstore_item_make(void *item, uint32_t key_bytes, uint32_t value_bytes, uint64_t packed, uint64_t key,
                      const void *value);

/* True if the bytes are of one write, and to this address. */
bool hstore_item_intact(const void *item, uint32_t key_bytes, uint32_t value_bytes, uint64_t packed);

/* Charges the check of an item, made or verified: its bytes are hashed, and so is each part of a key beyond the first 8
 * bytes, from which it is derived. Setting up the hash of the bytes is the greatest part of it. */
static inline void hstore_item_charge(struct dm_ctx *ctx, uint32_t items, uint32_t key_bytes, uint32_t item_bytes) {
    dm_charge(ctx, DM_WORK_HASH, items * (3 + key_bytes / 16));
    dm_charge(ctx, DM_WORK_LINE_COPY, items * 2 * (item_bytes / DM_LINE));
    dm_charge(ctx, DM_WORK_KEY_COMPARE, items * 2);
}

/* The write that made the item, as hstore_writer. */
uint64_t hstore_item_writer(const void *item);

/* True if all bytes of the item's key are those of this key. */
bool hstore_item_has(const void *item, uint32_t key_bytes, uint64_t key);

/* ---- slabs ------------------------------------------------------------------------------------------------------- */

enum { HSTORE_SLAB_LISTS = 256 }; /* of a memory node */
static_assert(HSTORE_SLABS_OFFSET + HSTORE_SLAB_LISTS * 8 <= DM_RESERVED_BYTES, "the reserved page has their heads");

struct hstore_slab {
    uint64_t next; /* address bits; 0: end of the list */
    uint32_t magic, item_bytes;
    uint32_t items, unused;
};
enum { HSTORE_SLAB_MAGIC = 0x48534c42 };

/* True if the head may be that of a slab. */
bool hstore_slab_plausible(const struct hstore_slab *slab, uint32_t item_bytes);

/* ---- supply ------------------------------------------------------------------------------------------------------ */

enum { HSTORE_RING = 512 };

struct hstore_supply {
    uint32_t item_bytes, slab_items;
    uint32_t list; /* number of the list that its slabs are added to */
    uint64_t grace_ns;
    bool is_swept;      /* items that were in the ring for too long belong to the sweep */
    dm_addr slab;       /* address of its unused part */
    uint32_t slab_left; /* unused items */
    uint64_t spare;     /* packed address of an item that was never published; 0: none */
    struct {
        uint64_t item, since_ns;
    } ring[HSTORE_RING]; /* replaced items, oldest first */
    uint32_t ring_first, ring_count;
    uint64_t *words; /* device memory: a line, and a word after it */
};

/* Takes space for one item. *is_reused: it held an item before. 0 or as dm_alloc. [waits] */
int hstore_supply_take(struct dm_ctx *ctx, struct hstore_supply *supply, uint64_t *item, bool *is_reused);

/* Adds the space of a replaced item. New readers cannot find it, but earlier ones may still read it. [waits] */
int hstore_supply_retire(struct dm_ctx *ctx, struct hstore_supply *supply, uint64_t item);

/* Allocates a slab on any memory node and adds it to a list of that node. `list` is any number, best a different one
 * for each client. [waits] */
int hstore_slab_new(struct dm_ctx *ctx, uint32_t list, uint32_t item_bytes, uint32_t items, uint64_t *words,
                    dm_addr *slab);

#endif
