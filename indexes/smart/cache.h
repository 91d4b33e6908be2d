/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's cache of inner nodes: copies of as many slots as the node's type counts, found by the path from the
 * root (paper, 4.2: an index of copies by path, of which a search wants the deepest). Copies leave in the order in
 * which they came. Like everything cached they are hints.
 *
 * The authors keep the copies in a radix tree of their own. Here they are in a hash table by length and bytes of the
 * path, with one probe for each length of which there are copies, the longest first. `accounting` says how copies count
 * against the budget: as in the authors' code (9 bytes and 8 a slot, and 17 for the record in the radix tree), or every
 * byte that they take here.
 *
 * Readers take no lock: a copy has a version that is odd while a writer changes it, and a reader that sees a version
 * change takes the copy for absent. Writers hold a short spin lock. Memory is taken at open.
 */
#ifndef DM_INDEXES_SMART_CACHE_H
#define DM_INDEXES_SMART_CACHE_H

#include "layout.h"

enum smart_accounting { SMART_COUNT_PUBLISHED, SMART_COUNT_ALL };

struct smart_cache_config {
    uint64_t bytes;
    uint64_t expected_keys;
    enum smart_accounting accounting;
    const struct smart_layout *layout; /* outlives the cache */
};

struct smart_cache; /* every function accepts NULL: no cache */

/* *out is NULL if no copy fits. 0 or DM_ERR_NO_MEMORY. */
int smart_cache_open(const struct smart_cache_config *config, struct smart_cache **out);
void smart_cache_close(struct smart_cache *cache);

struct smart_cache_hit {
    uint64_t word;   /* of the slot */
    dm_addr node;    /* that has the slot */
    unsigned length; /* bytes in front of the slot's byte */
    unsigned index;  /* of the slot in the node */
};

/* The deepest copy on the key's path, of at most `longest` bytes, that has a slot for the key. Charges the search. */
bool smart_cache_search(struct smart_cache *cache, struct dm_ctx *ctx, uint64_t key, unsigned longest,
                        struct smart_cache_hit *hit);

/* The deepest copy on the key's path, of at most `longest` bytes: hit->word leads to its node, hit->length is that of
 * its path. Charges. */
bool smart_cache_path(struct smart_cache *cache, struct dm_ctx *ctx, uint64_t key, unsigned longest,
                      struct smart_cache_hit *hit);

/* Copies the node with this path, of exactly `length` bytes, to `node`; the type is in its header. Charges. */
bool smart_cache_copy(struct smart_cache *cache, struct dm_ctx *ctx, uint64_t key, unsigned length,
                      struct smart_node *node, dm_addr *addr);

/* The number of children in the copy of that path; 0 also if there is no copy. */
unsigned smart_cache_children(struct smart_cache *cache, struct dm_ctx *ctx, uint64_t key, unsigned length);

/* Keeps a copy of the node instead of another one with its path. Returns the number of copies that had to leave.
 * Charges. */
unsigned smart_cache_put(struct smart_cache *cache, struct dm_ctx *ctx, uint64_t path, unsigned length, dm_addr addr,
                         unsigned type, const uint64_t *slots);

/* Forgets the copy with this path if it is of the node at addr. */
void smart_cache_drop(struct smart_cache *cache, uint64_t key, unsigned length, dm_addr addr);

/* Changes a slot in the copy with this path, if it is of the node at addr and holds `old`. */
void smart_cache_patch(struct smart_cache *cache, uint64_t key, unsigned length, dm_addr addr, unsigned index,
                       uint64_t old, uint64_t now);

/* Bytes in use, by the accounting. */
uint64_t smart_cache_used(const struct smart_cache *cache);

#endif
