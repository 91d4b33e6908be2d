/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's copies of sub-models and table lines, with the same bytes and check words as in remote memory. A
 * slot that is read while it is filled, or that holds another object, fails its check like a torn remote read, so
 * neither a lock nor a tag is needed. Slots are in one block of memory that is touched on demand; the used ones are
 * counted.
 */
#include "cache.h"

#include <stddef.h>

#include "common/err.h"
#include "common/large.h"

int xstore_cache_open(struct xstore_cache *cache, uint64_t bytes, unsigned slot_words) {
    cache->slots = bytes / (slot_words * 8);
    cache->slot_words = slot_words;
    cache->words = cache->slots > 0 ? dm_large_alloc(cache->slots * slot_words * 8) : NULL;
    return cache->slots > 0 && !cache->words ? DM_ERR_NO_MEMORY : 0;
}

void xstore_cache_close(struct xstore_cache *cache) {
    dm_large_free((void *)cache->words, cache->slots * cache->slot_words * 8);
    cache->words = NULL;
}

void xstore_cache_get(const struct xstore_cache *cache, uint64_t number, uint64_t *words) {
    const _Atomic uint64_t *slot = cache->words + number % cache->slots * cache->slot_words;
    for (unsigned i = 0; i < cache->slot_words; i++) {
        words[i] = atomic_load_explicit(&slot[i], memory_order_relaxed);
    }
}

void xstore_cache_put(struct xstore_cache *cache, uint64_t number, const uint64_t *words) {
    _Atomic uint64_t *slot = cache->words + number % cache->slots * cache->slot_words;
    uint64_t check = atomic_load_explicit(&slot[cache->slot_words - 1], memory_order_relaxed);
    if (check == 0 && words[cache->slot_words - 1] != 0) {
        atomic_fetch_add_explicit(&cache->used, 1, memory_order_relaxed);
    }
    for (unsigned i = 0; i < cache->slot_words; i++) {
        atomic_store_explicit(&slot[i], words[i], memory_order_relaxed);
    }
}

uint64_t xstore_cache_used(const struct xstore_cache *cache) {
    uint64_t used = atomic_load_explicit(&cache->used, memory_order_relaxed);
    return (used < cache->slots ? used : cache->slots) * cache->slot_words * 8;
}
