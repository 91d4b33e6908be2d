/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of keys in a metadata server's DRAM; see server.h.
 */
#include "server.h"

enum { CHAIN_MAX = 1 << 16 /* entries of a bucket: the bound of every loop over one */ };

static dm_addr addr_of(const struct clover_table *table, uint64_t offset) {
    return dm_addr_make(table->node, DM_DRAM, offset);
}

static dm_addr bucket_at(const struct clover_table *table, uint64_t bucket) {
    uint64_t part = bucket / CLOVER_PART_BUCKETS, in_part = bucket % CLOVER_PART_BUCKETS;
    return addr_of(table, table->parts[part] + in_part * sizeof(uint64_t));
}

int clover_table_make(struct dm_ctx *ctx, struct clover_table *table, uint64_t buckets) {
    for (uint64_t first = 0; first < buckets; first += CLOVER_PART_BUCKETS) {
        uint64_t left = buckets - first, count = left < CLOVER_PART_BUCKETS ? left : CLOVER_PART_BUCKETS;
        dm_addr addr;
        DM_TRY(dm_alloc(ctx, table->node, (uint32_t)(count * sizeof(uint64_t)), DM_LINE, DM_MEM_INNER, &addr));
        table->parts[first / CLOVER_PART_BUCKETS] = dm_addr_offset(addr);
    }
    table->buckets = buckets;
    return 0;
}

uint64_t clover_table_find(struct dm_ctx *ctx, const struct clover_table *table, uint64_t key,
                           struct clover_entry *entry) {
    uint64_t offset, found = 0;
    uint32_t visited = 0;
    dm_cpu_read(ctx, bucket_at(table, clover_hash(key) % table->buckets), &offset, sizeof(offset));
    while (offset && visited < CHAIN_MAX) {
        dm_cpu_read(ctx, addr_of(table, offset), entry, sizeof(*entry));
        visited++;
        if (entry->key == key) {
            found = offset;
            break;
        }
        offset = entry->next;
    }
    dm_charge(ctx, DM_WORK_HASH, 1);
    dm_charge(ctx, DM_WORK_DRAM_ACCESS, 1 + visited);
    dm_charge(ctx, DM_WORK_KEY_COMPARE, visited);
    return found;
}

void clover_table_add(struct dm_ctx *ctx, const struct clover_table *table, uint64_t offset,
                      struct clover_entry *entry) {
    dm_addr bucket = bucket_at(table, clover_hash(entry->key) % table->buckets);
    dm_cpu_read(ctx, bucket, &entry->next, sizeof(entry->next));
    dm_cpu_write(ctx, addr_of(table, offset), entry, sizeof(*entry));
    dm_cpu_write(ctx, bucket, &offset, sizeof(offset));
}

void clover_table_set_pointer(struct dm_ctx *ctx, const struct clover_table *table, uint64_t offset, uint64_t pointer) {
    dm_cpu_write(ctx, addr_of(table, offset + offsetof(struct clover_entry, pointer)), &pointer, sizeof(pointer));
}

uint32_t clover_table_list(struct dm_ctx *ctx, const struct clover_table *table, struct clover_range *range,
                           struct clover_entry *entries, uint32_t max) {
    uint32_t count = 0;
    for (; range->first < table->buckets; range->first++, range->skip = 0) {
        uint64_t offset, visited = 0;
        dm_cpu_read(ctx, bucket_at(table, range->first), &offset, sizeof(offset));
        while (offset && count < max) {
            struct clover_entry entry;
            dm_cpu_read(ctx, addr_of(table, offset), &entry, sizeof(entry));
            offset = entry.next;
            if (visited++ >= range->skip) {
                entries[count++] = entry;
            }
        }
        if (offset) {
            range->skip = visited;
            break;
        }
    }
    return count;
}
