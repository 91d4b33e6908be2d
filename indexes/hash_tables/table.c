/* SPDX-License-Identifier: Apache-2.0
 *
 * Filling hash tables; see table.h.
 */
#include "table.h"

#include <string.h>

#include "common/prng.h"

uint32_t hash_table_bucket(const struct hash_table_shape *shape) {
    static const uint32_t parts[] = {
        [HASH_TABLE_HOPSCOTCH] = 1, [HASH_TABLE_ASSOCIATIVE] = 1, [HASH_TABLE_RACE] = 4, [HASH_TABLE_FARM] = 2};
    uint32_t bucket = shape->scheme == HASH_TABLE_HOPSCOTCH ? 1 : shape->reach / parts[shape->scheme];
    bool divides = shape->reach % parts[shape->scheme] == 0;
    uint32_t least = shape->scheme == HASH_TABLE_RACE   ? 3 * bucket
                     : shape->scheme == HASH_TABLE_FARM ? 2 * bucket
                                                        : bucket;
    return divides && bucket > 0 && shape->reach <= shape->entries && least <= shape->entries ? bucket : 0;
}

uint32_t hash_table_size(const struct hash_table_shape *shape) {
    uint32_t bucket = hash_table_bucket(shape);
    uint32_t unit = shape->scheme == HASH_TABLE_RACE ? 3 * bucket : bucket;
    return unit > 0 ? shape->entries / unit * unit : 0;
}

void hash_table_init(struct hash_table *table, const struct hash_table_shape *shape) {
    memset(table, 0, sizeof(*table));
    table->shape = *shape;
    table->bucket = hash_table_bucket(shape);
    table->buckets = table->bucket > 0 ? hash_table_size(shape) / table->bucket : 0;
}

static uint32_t below(uint64_t hash, uint32_t bound) {
    return (uint32_t)((hash >> 32) * bound >> 32);
}

/* The distance from `from` to `to`, around the end. */
static uint32_t distance(const struct hash_table *table, uint32_t from, uint32_t to) {
    return to >= from ? to - from : to + table->buckets - from;
}

static uint32_t at(const struct hash_table *table, uint32_t from, uint32_t steps) {
    return (from + steps) % table->buckets;
}

/* ---- hopscotch --------------------------------------------------------------------------------------------------- */

/* The entry farthest before `empty` whose key may move there; the number of entries if there is none. */
static uint32_t hop_source(const struct hash_table *table, uint32_t empty) {
    for (uint32_t back = table->shape.reach - 1; back >= 1; back--) {
        uint32_t from = at(table, empty, table->buckets - back);
        if (distance(table, table->home[from] - 1u, empty) < table->shape.reach) {
            return from;
        }
    }
    return table->buckets;
}

static bool hopscotch_put(struct hash_table *table, uint32_t home) {
    uint32_t away = 0;
    while (away < table->buckets && table->home[at(table, home, away)] > 0) {
        away++;
    }
    if (away == table->buckets) {
        return false;
    }
    uint32_t empty = at(table, home, away);
    while (distance(table, home, empty) >= table->shape.reach) {
        uint32_t from = hop_source(table, empty);
        if (from == table->buckets) {
            return false;
        }
        table->home[empty] = table->home[from];
        table->home[from] = 0;
        empty = from;
    }
    table->home[empty] = (uint16_t)(home + 1);
    return true;
}

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

static bool bucket_put(struct hash_table *table, uint32_t bucket) {
    bool has_space = table->count[bucket] < table->bucket;
    table->count[bucket] = (uint16_t)(table->count[bucket] + has_space);
    return has_space;
}

/* Of each group of three, buckets 0 and 2 are main buckets, and the overflow bucket is between them. A key has two
 * different main buckets, as in the index race (race_buckets). */
static bool race_put(struct hash_table *table, uint64_t hash) {
    uint32_t mains = table->buckets / 3 * 2;
    uint32_t main[2] = {below(hash, mains), below(dm_mix64(hash + 1), mains - 1)};
    main[1] += main[1] >= main[0];
    uint32_t overflow[2];
    uint32_t load[2];
    for (int i = 0; i < 2; i++) {
        uint32_t group = main[i] / 2 * 3;
        overflow[i] = group + 1;
        main[i] = group + main[i] % 2 * 2;
        load[i] = (uint32_t)table->count[main[i]] + table->count[overflow[i]];
    }
    int first = load[1] < load[0];
    return bucket_put(table, main[first]) || bucket_put(table, overflow[first]) || bucket_put(table, main[!first]) ||
           bucket_put(table, overflow[!first]);
}

/* The index in `bucket` of a key that is at home there, or of an empty entry; the end of the table if there is none. */
static uint32_t farm_find(const struct hash_table *table, uint32_t bucket, uint16_t home) {
    uint32_t first = bucket * table->bucket;
    for (uint32_t i = first; i < first + table->bucket; i++) {
        if (table->home[i] == home) {
            return i;
        }
    }
    return table->buckets * table->bucket;
}

static bool farm_put(struct hash_table *table, uint32_t home) {
    uint32_t end = table->buckets * table->bucket;
    uint32_t away = 0;
    uint32_t empty = end;
    for (; away < table->buckets; away++) {
        empty = farm_find(table, at(table, home, away), 0);
        if (empty < end) {
            break;
        }
    }
    /* Moves a key whose home is the bucket before into this one, so that an entry becomes free there. */
    for (; empty < end && away > 1; away--) {
        uint32_t before = at(table, home, away - 1);
        uint32_t from = farm_find(table, before, (uint16_t)(before + 1));
        if (from == end) {
            return false;
        }
        table->home[empty] = table->home[from];
        table->home[from] = 0;
        empty = from;
    }
    if (empty == end) {
        return false;
    }
    table->home[empty] = (uint16_t)(home + 1);
    return true;
}

bool hash_table_put(struct hash_table *table, uint64_t key) {
    uint64_t hash = dm_mix64(key);
    uint32_t home = below(hash, table->buckets);
    bool is_in = false;
    switch (table->shape.scheme) {
    case HASH_TABLE_HOPSCOTCH:
        is_in = hopscotch_put(table, home);
        break;
    case HASH_TABLE_ASSOCIATIVE:
        is_in = bucket_put(table, home);
        break;
    case HASH_TABLE_RACE:
        is_in = race_put(table, hash);
        break;
    case HASH_TABLE_FARM:
        is_in = farm_put(table, home);
        break;
    }
    table->used += is_in;
    return is_in;
}
