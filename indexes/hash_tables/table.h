/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash tables of fixed size that are filled until a key does not fit: how full they get, for a number of entries that a
 * lookup must read. Only the occupation is stored, no keys. All functions are pure.
 *
 *     hopscotch     a key is among the `reach` entries from its home on, around the end; others are moved if necessary
 *     associative   a key is in its bucket of `reach` entries
 *     race          buckets in groups of main, overflow, main; a key has two main buckets and their groups' overflow
 *                   buckets, each a quarter of `reach`, and goes to the emptier pair (RACE hashing, without resizing)
 *     farm          a key is in its bucket or the next, each half of `reach`; others are moved to the next bucket if
 *                   necessary (FaRM's chained associative hopscotch hashing, without the chains)
 */
#ifndef DM_INDEXES_HASH_TABLES_TABLE_H
#define DM_INDEXES_HASH_TABLES_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum hash_table_scheme { HASH_TABLE_HOPSCOTCH, HASH_TABLE_ASSOCIATIVE, HASH_TABLE_RACE, HASH_TABLE_FARM };

enum { HASH_TABLE_ENTRIES_MAX = 4096 };

struct hash_table_shape {
    enum hash_table_scheme scheme;
    uint32_t entries;
    uint32_t reach; /* entries that a lookup reads */
};

/* The entries of a bucket; 1 for hopscotch, 0 if the scheme does not allow this reach with this number of entries. */
uint32_t hash_table_bucket(const struct hash_table_shape *shape);

/* The number of usable entries: RACE leaves out those after the last complete group. */
uint32_t hash_table_size(const struct hash_table_shape *shape);

struct hash_table {
    struct hash_table_shape shape;
    uint32_t bucket, buckets, used;
    uint16_t home[HASH_TABLE_ENTRIES_MAX];  /* hopscotch and farm: home of the key in each entry, plus 1; 0: empty */
    uint16_t count[HASH_TABLE_ENTRIES_MAX]; /* others: keys in each bucket */
};

/* Initialises an empty table. The shape must be allowed. */
void hash_table_init(struct hash_table *table, const struct hash_table_shape *shape);

/* Inserts a key; false if it does not fit. `key` is any number: it is mixed here. */
bool hash_table_put(struct hash_table *table, uint64_t key);

#endif
