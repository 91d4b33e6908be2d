/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of a compute node; see cache.h.
 */
#include "cache.h"

#include "common/err.h"
#include "common/large.h"

int clover_cache_open(struct clover_cache *cache, uint64_t bytes, uint64_t keys) {
    uint64_t wanted = 4 * keys / CLOVER_CACHE_WAYS + 1, fits = bytes / sizeof(struct clover_cache_set);
    cache->set_count = wanted < fits ? wanted : fits;
    if (cache->set_count == 0) {
        return 0;
    }
    cache->sets = dm_large_alloc(cache->set_count * sizeof(*cache->sets));
    if (!cache->sets) {
        cache->set_count = 0;
        return DM_ERR_NO_MEMORY;
    }
    for (uint64_t i = 0; i < cache->set_count; i++) {
        atomic_flag_clear(&cache->sets[i].guard);
    }
    return 0;
}

void clover_cache_close(struct clover_cache *cache) {
    dm_large_free(cache->sets, cache->set_count * sizeof(*cache->sets));
}

static struct clover_cache_set *set_lock(struct clover_cache *cache, uint64_t hash) {
    struct clover_cache_set *set = &cache->sets[hash % cache->set_count];
    while (atomic_flag_test_and_set_explicit(&set->guard, memory_order_acquire)) {
    }
    return set;
}

static void set_unlock(struct clover_cache_set *set) {
    atomic_flag_clear_explicit(&set->guard, memory_order_release);
}

bool clover_cache_find(struct clover_cache *cache, uint64_t hash, uint64_t key, struct clover_cached *cached) {
    if (cache->set_count == 0) {
        return false;
    }
    bool is_found = false;
    struct clover_cache_set *set = set_lock(cache, hash);
    for (unsigned i = 0; i < CLOVER_CACHE_WAYS && !is_found; i++) {
        if (set->entries[i].pointer && set->entries[i].key == key) {
            *cached = set->entries[i];
            set->recent |= (uint8_t)(1U << i);
            is_found = true;
        }
    }
    set_unlock(set);
    return is_found;
}

/* The entry for a key: its own, an empty one, or the first that was not used since the hand last passed it. */
static unsigned entry_choose(struct clover_cache_set *set, uint64_t key) {
    unsigned empty = CLOVER_CACHE_WAYS;
    for (unsigned i = 0; i < CLOVER_CACHE_WAYS; i++) {
        if (set->entries[i].pointer && set->entries[i].key == key) {
            return i;
        }
        empty = set->entries[i].pointer ? empty : i;
    }
    if (empty < CLOVER_CACHE_WAYS) {
        return empty;
    }
    while (set->recent & 1U << set->hand) {
        set->recent &= (uint8_t) ~(1U << set->hand);
        set->hand = (uint8_t)((set->hand + 1) % CLOVER_CACHE_WAYS);
    }
    unsigned chosen = set->hand;
    set->hand = (uint8_t)((set->hand + 1) % CLOVER_CACHE_WAYS);
    return chosen;
}

bool clover_cache_put(struct clover_cache *cache, uint64_t hash, const struct clover_cached *cached) {
    if (cache->set_count == 0) {
        return false;
    }
    struct clover_cache_set *set = set_lock(cache, hash);
    unsigned at = entry_choose(set, cached->key);
    bool was_empty = set->entries[at].pointer == 0;
    bool is_replaced = !was_empty && set->entries[at].key != cached->key;
    set->entries[at] = *cached;
    set->recent |= (uint8_t)(1U << at);
    set_unlock(set);
    if (was_empty) {
        atomic_fetch_add_explicit(&cache->used, 1, memory_order_relaxed);
    }
    return is_replaced;
}

void clover_cache_charge(const struct clover_cache *cache, struct dm_ctx *ctx) {
    uint64_t used = atomic_load_explicit(&cache->used, memory_order_relaxed);
    uint64_t lines = used < cache->set_count ? used : cache->set_count; /* few sets have two entries */
    dm_charge(ctx, DM_WORK_CACHE_PROBE, 1);
    dm_charge_access(ctx, 1, lines * DM_LINE);
}
