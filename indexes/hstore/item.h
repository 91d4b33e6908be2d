/* SPDX-License-Identifier: Apache-2.0
 *
 * Key-value items in the memory pool, and a client's supply of space for them.
 *
 * Items lie in slabs, slabs in lists of their memory node, so that the pool can be walked without any index. There are
 * as many lists as keep clients that begin at the same time from meeting: all of them in one list would try that often.
 * An item's space
 * is used again only a grace period after it was replaced; whoever has got its address less than that ago may read it
 * and finds what was there.
 */
#ifndef DM_INDEXES_HSTORE_ITEM_H
#define DM_INDEXES_HSTORE_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/dm.h"
#include "wire.h"

/* State of an item: the first word. From HS_STAMP_FIRST on it is the stamp of its log entry: the write is logged. */
enum { HS_NEVER_USED = 0, HS_PENDING = 1, HS_DEAD = 2, HS_STAMP_LOADED = 16, HS_STAMP_FIRST = 32 };

/* Followed by the key, padded to a multiple of 8 bytes, and the value. */
struct hs_item {
    uint64_t state;
    uint64_t check;       /* over all but the state, and the address */
    uint32_t client, seq; /* whose write */
    uint64_t key;         /* the first 8 bytes of the key */
};

uint32_t hs_item_bytes(uint32_t key_bytes, uint32_t value_bytes); /* a multiple of 64 */

/* Where the value is within an item. */
uint32_t hs_item_value_at(uint32_t key_bytes);

/* Lays an item out for its address. `item` has hs_item_bytes; its first word is set to HS_PENDING. */
void hs_item_make(void *item, uint32_t key_bytes, uint32_t value_bytes, uint64_t packed, uint64_t key,
                  const void *value);

/* True if the bytes are those of one write to this address. */
bool hs_item_whole(const void *item, uint32_t key_bytes, uint32_t value_bytes, uint64_t packed);

/* Whose write it is, as hs_writer says. */
uint64_t hs_item_writer(const void *item);

/* The key's bytes as they are stored: key_bytes of them, the number first, then what follows from it. */
void hs_key_bytes(uint64_t key, uint32_t key_bytes, void *bytes);

/* True if the item has this key, all bytes of it. */
bool hs_item_has(const void *item, uint32_t key_bytes, uint64_t key);

/* ---- slabs ------------------------------------------------------------------------------------------------------- */

enum { HS_SLAB_LISTS = 256 }; /* a memory node */
static_assert(HS_SLABS_OFFSET + HS_SLAB_LISTS * 8 <= DM_RESERVED_BYTES, "the reserved page has their heads");

struct hs_slab {
    uint64_t next; /* address bits; 0: the last */
    uint32_t magic, item_bytes;
    uint32_t items, unused;
};
enum { HS_SLAB_MAGIC = 0x48534c42 };

/* A slab's head, plausible or not. */
bool hs_slab_plausible(const struct hs_slab *slab, uint32_t item_bytes);

/* ---- supply ------------------------------------------------------------------------------------------------------ */

enum { HS_RING = 512 };

struct hs_supply {
    uint32_t item_bytes, slab_items;
    uint32_t list; /* that its slabs go to: any number */
    uint64_t grace_ns;
    bool is_swept;      /* what lies in the ring for too long belongs to the sweep */
    dm_addr slab;       /* of what is left of it */
    uint32_t slab_left; /* items */
    uint64_t spare;     /* packed: an item that was never published; 0: none */
    struct {
        uint64_t item, since_ns;
    } ring[HS_RING]; /* replaced items, oldest first */
    uint32_t ring_first, ring_count;
    uint64_t *words; /* device memory: a line and a word */
};

/* Space for one item. *is_reused: it had an item before. Returns 0 or as dm_alloc. [waits] */
int hs_supply_take(struct dm_ctx *ctx, struct hs_supply *supply, uint64_t *item, bool *is_reused);

/* A replaced item: nobody finds it any more, but readers may still be on their way to it. [waits] */
int hs_supply_retire(struct dm_ctx *ctx, struct hs_supply *supply, uint64_t item);

/* A new slab on any memory node, linked into a list of that node; `list` is any number, best another one for each
 * client. [waits] */
int hs_slab_new(struct dm_ctx *ctx, uint32_t list, uint32_t item_bytes, uint32_t items, uint64_t *words, dm_addr *slab);

#endif
