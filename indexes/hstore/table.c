/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash table in a server's DRAM; see table.h.
 */
#include "table.h"

#include <string.h>

enum {
    SPARE_BUCKETS = 32,
    CHAIN_MAX = 1 << 16, /* buckets of a chain: the bound of every loop over one */
};

static dm_addr addr_of(const struct hstore_table *table, uint64_t offset) {
    return dm_addr_make(table->node, DM_DRAM, offset);
}

static uint64_t word_get(struct dm_ctx *ctx, const struct hstore_table *table, uint64_t offset) {
    uint64_t word;
    dm_cpu_read(ctx, addr_of(table, offset), &word, sizeof(word));
    return word;
}

static void word_set(struct dm_ctx *ctx, const struct hstore_table *table, uint64_t offset, uint64_t word) {
    dm_cpu_write(ctx, addr_of(table, offset), &word, sizeof(word));
}

static uint64_t bucket_at(const struct hstore_table *table, uint64_t bucket) {
    return table->parts[hstore_part_of(bucket)] + hstore_part_at(bucket);
}

static uint64_t head_of(const struct hstore_table *table, uint64_t hash) {
    return bucket_at(table, hash % table->buckets);
}

static uint64_t slot_at(uint64_t bucket, unsigned i) {
    return bucket + i * sizeof(uint64_t);
}
static uint64_t hash_at(uint64_t bucket, unsigned i) {
    return bucket + DM_LINE + i * sizeof(uint64_t);
}
static uint64_t link_at(uint64_t bucket) {
    return slot_at(bucket, HSTORE_SLOTS);
}

static uint64_t next_of(struct dm_ctx *ctx, const struct hstore_table *table, uint64_t bucket) {
    return hstore_offset_of(word_get(ctx, table, link_at(bucket)));
}

int hstore_table_make(struct dm_ctx *ctx, struct hstore_table *table, uint64_t buckets) {
    for (unsigned i = 0; i < hstore_part_count(buckets); i++) {
        uint64_t left = buckets - (uint64_t)i * HSTORE_PART_BUCKETS;
        uint64_t bytes = (left < HSTORE_PART_BUCKETS ? left : HSTORE_PART_BUCKETS) * HSTORE_BUCKET_STRIDE;
        dm_addr addr;
        DM_TRY(dm_alloc(ctx, table->node, (uint32_t)bytes, HSTORE_BUCKET_STRIDE, DM_MEM_INNER, &addr));
        table->parts[i] = dm_addr_offset(addr);
    }
    table->buckets = buckets;
    table->tag = 0;
    return 0;
}

void hstore_table_clear(struct dm_ctx *ctx, struct hstore_table *table) {
    static const char zero[HSTORE_BUCKET_STRIDE];
    for (uint64_t i = 0; i < table->buckets; i++) {
        dm_cpu_write(ctx, addr_of(table, bucket_at(table, i)), zero, sizeof(zero));
    }
}

struct hstore_found hstore_table_find(struct dm_ctx *ctx, const struct hstore_table *table, uint64_t hash) {
    struct hstore_found found = {0};
    for (uint64_t bucket = head_of(table, hash); bucket && found.buckets < CHAIN_MAX;
         bucket = next_of(ctx, table, bucket)) {
        uint64_t words[(DM_LINE / 8) + HSTORE_SLOTS]; /* the slots with the link, and the hashes */
        dm_cpu_read(ctx, addr_of(table, bucket), words, sizeof(words));
        found.buckets++;
        for (unsigned i = 0; i < HSTORE_SLOTS; i++) {
            if (words[i] && words[DM_LINE / 8 + i] == hash) {
                found.slot_at = slot_at(bucket, i);
                found.item = words[i] & HSTORE_ADDR_MASK;
                return found;
            }
        }
    }
    return found;
}

/* Adds a bucket to the end of a chain. Its link is written before it can be reached. */
static int chain(struct dm_ctx *ctx, struct hstore_table *table, struct hstore_spare *spare, uint64_t last) {
    if (spare->left == 0) {
        dm_addr addr;
        DM_TRY(dm_alloc(ctx, table->node, SPARE_BUCKETS * HSTORE_BUCKET_STRIDE, HSTORE_BUCKET_STRIDE, DM_MEM_INNER,
                        &addr));
        *spare = (struct hstore_spare){dm_addr_offset(addr), SPARE_BUCKETS};
    }
    uint64_t tag = (uint64_t)table->tag << 48;
    word_set(ctx, table, link_at(spare->at), tag);
    word_set(ctx, table, link_at(last), tag | spare->at >> 6);
    spare->at += HSTORE_BUCKET_STRIDE;
    spare->left--;
    return 0;
}

int hstore_table_reserve(struct dm_ctx *ctx, struct hstore_table *table, struct hstore_spare *spare, uint64_t hash,
                         uint32_t wanted, struct hstore_reserved *reserved) {
    uint32_t empty = 0;
    *reserved = (struct hstore_reserved){0};
    for (uint64_t bucket = head_of(table, hash);;) {
        reserved->buckets++;
        for (unsigned i = 0; i < HSTORE_SLOTS; i++) {
            empty += word_get(ctx, table, slot_at(bucket, i)) == 0;
        }
        if (empty >= wanted) {
            return 0;
        }
        uint64_t next = next_of(ctx, table, bucket);
        if (!next) {
            DM_TRY(chain(ctx, table, spare, bucket));
            reserved->chained++;
            next = next_of(ctx, table, bucket);
        }
        bucket = next;
    }
}

static bool slot_swap(struct dm_ctx *ctx, const struct hstore_table *table, uint64_t at, uint64_t slot) {
    uint64_t before = word_get(ctx, table, at);
    return dm_cpu_cas(ctx, addr_of(table, at), before, slot) == before;
}

bool hstore_table_set(struct dm_ctx *ctx, const struct hstore_table *table, uint64_t hash, uint64_t item,
                      uint32_t item_bytes) {
    uint64_t slot = item ? hstore_slot_make(hash, item_bytes, item) : 0;
    struct hstore_found found = hstore_table_find(ctx, table, hash);
    if (found.slot_at || !item) {
        return found.slot_at ? slot_swap(ctx, table, found.slot_at, slot) : true;
    }
    unsigned buckets = 0;
    for (uint64_t bucket = head_of(table, hash); bucket && buckets < CHAIN_MAX; bucket = next_of(ctx, table, bucket)) {
        buckets++;
        for (unsigned i = 0; i < HSTORE_SLOTS; i++) {
            if (word_get(ctx, table, slot_at(bucket, i)) == 0) {
                word_set(ctx, table, hash_at(bucket, i), hash);
                return slot_swap(ctx, table, slot_at(bucket, i), slot);
            }
        }
    }
    return false;
}

void hstore_table_publish(struct dm_ctx *ctx, struct hstore_table *table, uint32_t tag) {
    table->tag = tag;
    for (uint64_t i = 0; i < table->buckets; i++) {
        uint64_t bucket = bucket_at(table, i);
        for (unsigned length = 0; bucket && length < CHAIN_MAX; length++) {
            uint64_t next = next_of(ctx, table, bucket);
            word_set(ctx, table, link_at(bucket), (uint64_t)tag << 48 | next >> 6);
            bucket = next;
        }
    }
    for (unsigned i = 0; i < hstore_part_count(table->buckets); i++) {
        word_set(ctx, table, HSTORE_PARTS_OFFSET + i * sizeof(uint64_t), (uint64_t)tag << 48 | table->parts[i] >> 6);
    }
}

uint32_t hstore_table_items(struct dm_ctx *ctx, const struct hstore_table *table, struct hstore_range *range,
                            uint64_t *items, uint32_t capacity) {
    uint32_t count = 0;
    for (; range->first < table->buckets; range->first++, range->skip = 0) {
        unsigned length = 0;
        for (uint64_t bucket = bucket_at(table, range->first); bucket && length < CHAIN_MAX;
             bucket = next_of(ctx, table, bucket)) {
            for (unsigned i = 0; i < HSTORE_SLOTS; i++) {
                uint64_t position = (uint64_t)length * HSTORE_SLOTS + i;
                uint64_t slot = position < range->skip ? 0 : word_get(ctx, table, slot_at(bucket, i));
                if (slot && count == capacity) {
                    range->skip = position;
                    return count;
                }
                if (slot) {
                    items[count++] = slot & HSTORE_ADDR_MASK;
                }
            }
            length++;
        }
    }
    return count;
}
