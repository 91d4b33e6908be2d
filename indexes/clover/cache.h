/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's cache of {pointer, shortcut} by key, shared by its clients. Sets of five entries; a full set gives
 * up the entry that was not used for longest, by a second chance. All memory is taken at open.
 */
#ifndef DM_INDEXES_CLOVER_CACHE_H
#define DM_INDEXES_CLOVER_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/dm.h"

enum { CLOVER_CACHE_WAYS = 5, CLOVER_CACHE_ENTRY_BYTES = 24 };

struct clover_cached {
    uint64_t key, pointer, shortcut; /* pointer 0: an empty entry */
};

struct clover_cache_set {
    atomic_flag guard;
    uint8_t hand;   /* the entry that is looked at first when one must go */
    uint8_t recent; /* a bit for each entry */
    struct clover_cached entries[CLOVER_CACHE_WAYS];
};

struct clover_cache {
    struct clover_cache_set *sets; /* NULL: the budget is too small for one */
    uint64_t set_count;
    _Atomic uint64_t used; /* entries */
};

/* Takes at most `bytes`, and no more than `keys` need. 0 or DM_ERR_NO_MEMORY. */
int clover_cache_open(struct clover_cache *cache, uint64_t bytes, uint64_t keys);
void clover_cache_close(struct clover_cache *cache);

static inline uint64_t clover_cache_bytes(const struct clover_cache *cache) {
    return cache->set_count * sizeof(struct clover_cache_set);
}

/* True if the key is there; *cached is a copy then. `hash` is the key's. */
bool clover_cache_find(struct clover_cache *cache, uint64_t hash, uint64_t key, struct clover_cached *cached);

/* Adds an entry or changes the key's. True if the entry of another key had to go. */
bool clover_cache_put(struct clover_cache *cache, uint64_t hash, const struct clover_cached *cached);

/* Charges one find or put. */
void clover_cache_charge(const struct clover_cache *cache, struct dm_ctx *ctx);

#endif
