/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash tables of fixed size, filled with keys until one finds no place: how full can they get, for how many entries
 * that a lookup must read? Only places are kept, no keys. All functions are pure.
 *
 *     hopscotch     a key lies among the `reach` entries from its home on, around the end; others hop to make room
 *     associative   a key lies in its bucket of `reach` entries
 *     race          buckets in groups of main, overflow, main; a key has two main buckets and their groups' overflow
 *                   buckets, each a quarter of `reach`, and goes to the emptier pair (RACE hashing, without resizing)
 *     farm          a key lies in its bucket or the next, each half of `reach`; others move one bucket on to make room
 *                   (FaRM's chained associative hopscotch hashing, without the chains)
 */
#ifndef DM_INDEXES_HASH_TABLES_TABLE_H
#define DM_INDEXES_HASH_TABLES_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum table_scheme { TABLE_HOPSCOTCH, TABLE_ASSOCIATIVE, TABLE_RACE, TABLE_FARM };

enum { TABLE_ENTRIES_MAX = 4096 };

struct table_shape {
    enum table_scheme scheme;
    uint32_t entries;
    uint32_t reach; /* entries that a lookup reads */
};

/* The entries of a bucket; 1 for hopscotch, 0 if the reach cannot be had with this scheme and number of entries. */
uint32_t table_bucket(const struct table_shape *shape);

/* Entries that there are: RACE leaves out what is left of the last group. */
uint32_t table_size(const struct table_shape *shape);

struct table {
    struct table_shape shape;
    uint32_t bucket, buckets, used;
    uint16_t home[TABLE_ENTRIES_MAX];  /* hopscotch: home of the key in each entry, plus 1; 0: empty. farm: likewise */
    uint16_t count[TABLE_ENTRIES_MAX]; /* others: keys in each bucket */
};

/* An empty one. The shape must be possible. */
void table_init(struct table *table, const struct table_shape *shape);

/* Puts a key in; false if it finds no place. `key` is any number: it is mixed here. */
bool table_put(struct table *table, uint64_t key);

#endif
