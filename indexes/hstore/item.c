/* SPDX-License-Identifier: Apache-2.0
 *
 * Items and their slabs; a client's supply of space for items. See item.h.
 */
#include "item.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint32_t key_padded_bytes(uint32_t key_bytes) {
    return (key_bytes + 7) / 8 * 8;
}

uint32_t hstore_item_value_at(uint32_t key_bytes) {
    return (uint32_t)sizeof(struct hstore_item) - 8 + key_padded_bytes(key_bytes);
}

uint32_t hstore_item_bytes(uint32_t key_bytes, uint32_t value_bytes) {
    return (hstore_item_value_at(key_bytes) + value_bytes + DM_LINE - 1) / DM_LINE * DM_LINE;
}

/* The stored form of a key: key_bytes bytes, first the number, then bytes derived from it. */
static void key_store(uint64_t key, uint32_t key_bytes, void *bytes) {
    unsigned char *out = bytes;
    for (uint32_t at = 0; at < key_bytes; at += 8) {
        uint64_t word = at == 0 ? key : dm_mix64(key + at);
        memcpy(out + at, &word, key_bytes - at < 8 ? key_bytes - at : 8);
    }
}

bool hstore_item_has(const void *item, uint32_t key_bytes, uint64_t key) {
    unsigned char bytes[64];
    key_store(key, key_bytes, bytes);
    return memcmp((const char *)item + offsetof(struct hstore_item, key), bytes, key_bytes) == 0;
}

static uint64_t check_of(const void *item, uint32_t bytes, uint64_t packed) {
    uint32_t from = offsetof(struct hstore_item, client);
    return XXH3_64bits_withSeed((const char *)item + from, bytes - from, packed);
}

void hstore_item_make(void *item, uint32_t key_bytes, uint32_t value_bytes, uint64_t packed, uint64_t key,
                      const void *value) {
    struct hstore_item *head = item;
    uint32_t value_at = hstore_item_value_at(key_bytes), from = offsetof(struct hstore_item, key);
    head->state = HSTORE_PENDING;
    memset((char *)item + from, 0, value_at - from);
    key_store(key, key_bytes, (char *)item + from);
    memcpy((char *)item + value_at, value, value_bytes);
    head->check = check_of(item, value_at + value_bytes, packed);
}

bool hstore_item_intact(const void *item, uint32_t key_bytes, uint32_t value_bytes, uint64_t packed) {
    const struct hstore_item *head = item;
    return head->check == check_of(item, hstore_item_value_at(key_bytes) + value_bytes, packed);
}

uint64_t hstore_item_writer(const void *item) {
    const struct hstore_item *head = item;
    return hstore_writer(head->client, head->seq);
}

/* ---- slabs ------------------------------------------------------------------------------------------------------- */

bool hstore_slab_plausible(const struct hstore_slab *slab, uint32_t item_bytes) {
    return slab->magic == HSTORE_SLAB_MAGIC && slab->item_bytes == item_bytes && slab->items > 0;
}

int hstore_slab_new(struct dm_ctx *ctx, uint32_t list, uint32_t item_bytes, uint32_t items, uint64_t *words,
                    dm_addr *slab) {
    DM_TRY(dm_alloc(ctx, DM_ANY_NODE, DM_LINE + items * item_bytes, DM_LINE, DM_MEM_VALUE, slab));
    uint64_t offset = HSTORE_SLABS_OFFSET + list % HSTORE_SLAB_LISTS * sizeof(uint64_t);
    dm_addr head = dm_addr_make(dm_addr_node(*slab), DM_DRAM, offset);
    struct hstore_slab *made = (struct hstore_slab *)(void *)words;
    uint64_t *found = words + DM_LINE / sizeof(*words);
    DM_TRY(dm_read(ctx, head, found, sizeof(*found)));
    for (uint32_t attempts = 0;;) {
        uint64_t next = *found;
        *made =
            (struct hstore_slab){.next = next, .magic = HSTORE_SLAB_MAGIC, .item_bytes = item_bytes, .items = items};
        dm_post_write(ctx, *slab, made, sizeof(*made));
        dm_post_cas(ctx, head, next, slab->bits, found);
        DM_TRY(dm_commit(ctx));
        if (*found == next) {
            return 0;
        }
        DM_TRY(dm_retry(ctx, DM_RETRY_CAS, &attempts));
    }
}

/* ---- supply ------------------------------------------------------------------------------------------------------ */

/* Space that was in the ring for this long may have been reclaimed by a sweep, which waits four times as long. */
static bool is_lost(const struct hstore_supply *supply, uint64_t age_ns) {
    return supply->is_swept && age_ns > 2 * supply->grace_ns;
}

int hstore_supply_take(struct dm_ctx *ctx, struct hstore_supply *supply, uint64_t *item, bool *is_reused) {
    *is_reused = false;
    if (supply->spare) {
        *item = supply->spare;
        supply->spare = 0;
        return 0;
    }
    uint64_t now = dm_now(ctx);
    while (supply->ring_count > 0 && now - supply->ring[supply->ring_first].since_ns > supply->grace_ns) {
        bool lost = is_lost(supply, now - supply->ring[supply->ring_first].since_ns);
        *item = supply->ring[supply->ring_first].item;
        supply->ring_first = (supply->ring_first + 1) % HSTORE_RING;
        supply->ring_count--;
        if (!lost) {
            *is_reused = true;
            return 0;
        }
    }
    if (supply->slab_left == 0) {
        DM_TRY(
            hstore_slab_new(ctx, supply->list, supply->item_bytes, supply->slab_items, supply->words, &supply->slab));
        supply->slab = dm_addr_add(supply->slab, DM_LINE);
        supply->slab_left = supply->slab_items;
    }
    *item = hstore_pack(supply->slab);
    supply->slab = dm_addr_add(supply->slab, supply->item_bytes);
    supply->slab_left--;
    return 0;
}

int hstore_supply_retire(struct dm_ctx *ctx, struct hstore_supply *supply, uint64_t item) {
    if (supply->ring_count == HSTORE_RING) {
        /* The ring is full of items replaced within one grace period: waits until the oldest may be reused. */
        uint64_t age_ns = dm_now(ctx) - supply->ring[supply->ring_first].since_ns;
        if (age_ns <= supply->grace_ns) {
            DM_TRY(dm_sleep(ctx, supply->grace_ns - age_ns + 1));
        }
        if (!supply->is_swept) { /* else a sweep finds it: nothing says when the spare one will be used */
            supply->spare = supply->spare ? supply->spare : supply->ring[supply->ring_first].item;
        }
        supply->ring_first = (supply->ring_first + 1) % HSTORE_RING;
        supply->ring_count--;
    }
    uint32_t at = (supply->ring_first + supply->ring_count++) % HSTORE_RING;
    supply->ring[at].item = item;
    supply->ring[at].since_ns = dm_now(ctx);
    return 0;
}
