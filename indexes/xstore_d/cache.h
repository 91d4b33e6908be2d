/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's copies of sub-models and lines of translation tables.
 */
#ifndef DM_INDEXES_XSTORE_D_CACHE_H
#define DM_INDEXES_XSTORE_D_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Slots of a fixed number of words, found by number modulo their count, filled and read without a lock: whoever reads
 * one checks it, and that says too whether it is the one that was looked for. */
struct xstore_cache {
    _Atomic uint64_t *words;
    uint64_t slots;
    unsigned slot_words;
    _Atomic uint64_t used; /* slots that were ever filled */
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
