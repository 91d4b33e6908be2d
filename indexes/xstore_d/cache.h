/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's copies of sub-models and lines of translation tables.
 */
#ifndef DM_INDEXES_XSTORE_D_CACHE_H
#define DM_INDEXES_XSTORE_D_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* An array of slots with a fixed number of words. The slot of an object is its number modulo the number of slots. Slots
 * are filled and read without a lock: the reader verifies the check word, which also shows whether the slot holds the
 * object that it wants. */
struct xstore_cache {
    _Atomic uint64_t *words;
    uint64_t slots;
    unsigned slot_words;
    _Atomic uint64_t used; /* slots that have been filled at least once */
};

int xstore_cache_open(struct xstore_cache *cache, uint64_t bytes, unsigned slot_words);
void xstore_cache_close(struct xstore_cache *cache);
void xstore_cache_get(const struct xstore_cache *cache, uint64_t number, uint64_t *words);
void xstore_cache_put(struct xstore_cache *cache, uint64_t number, const uint64_t *words);
static inline bool xstore_cache_exists(const struct xstore_cache *cache) {
    return cache->slots > 0;
}
uint64_t xstore_cache_used(const struct xstore_cache *cache);

#endif
