/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's cache of tree nodes: immutable copies of one size, found by remote address. All memory is taken at
 * open and never exceeds the budget: copies, their heads, the hash table and the readers' epochs. When full, the
 * lowest level is evicted first (second chance within a level), and a node never evicts one of a higher level, so the
 * top of the tree stays; or, if the index asks for it, one that was not used for long, of whatever level.
 *
 * Readers take no lock. Between enter and leave a reader may use any copy that find returned; a copy that was replaced
 * or evicted meanwhile stays readable until then. Enter and leave must enclose no wait. Writers (insert, drop) hold a
 * short spin lock.
 *
 * A budget too small for one copy makes no cache: open gives NULL, and every function here accepts NULL.
 */
#ifndef DM_INDEXES_SHARED_NODE_CACHE_H
#define DM_INDEXES_SHARED_NODE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/dm.h"

enum { IX_CACHE_LEVELS = 16 /* the higher ones of a higher tree count as the last of these */ };

struct ix_cache_config {
    uint64_t bytes;      /* the budget */
    uint32_t copy_bytes; /* of one copy */
    unsigned threads;    /* of this compute node: readers are 0 .. threads - 1 */
    bool lru;            /* evict by age and use alone (second chance over all copies) */
    bool one_thread;     /* all clients are coroutines of one thread of the host, as in virtual time */
};

struct ix_cache;

/* 0, or DM_ERR_NO_MEMORY. The caller closes. */
int ix_cache_open(const struct ix_cache_config *config, struct ix_cache **cache);
void ix_cache_close(struct ix_cache *cache);

/* Begins and ends a read by one of the node's threads. */
void ix_cache_enter(struct ix_cache *cache, unsigned thread);
void ix_cache_leave(struct ix_cache *cache, unsigned thread);

/* The copy of the node at addr, 8-byte aligned, or NULL; only between enter and leave. *stamp names this very copy
 * (never 0), for drop. */
const void *ix_cache_find(struct ix_cache *cache, dm_addr addr, uint32_t *stamp);

/* Charges one find of a copy of that level and the accesses to its lines, by what is accessed between two finds of the
 * same copy: copies of the levels above are few, and stay in the processor's cache. What the caller does with the copy
 * is its own. */
void ix_cache_charge(const struct ix_cache *cache, struct dm_ctx *ctx, unsigned level);

/* Instead: charges one search of a skip list of all copies of that level, with the branching of 4 and the nodes of a
 * line that published caches have, and the accesses to the lines of the copy that it finds. `nodes` are those of the
 * list; 0: as many as there are copies. */
void ix_cache_charge_list(const struct ix_cache *cache, struct dm_ctx *ctx, unsigned level, uint64_t nodes);

/* Keeps a copy of `node` in place of an older one of the same address. Not between enter and leave. Returns true if
 * another node was evicted. */
bool ix_cache_insert(struct ix_cache *cache, dm_addr addr, unsigned level, const void *node);

/* Forgets the copy of addr if it is still the one that `stamp` names. */
void ix_cache_drop(struct ix_cache *cache, dm_addr addr, uint32_t stamp);

/* Bytes in use: everything fixed, and the copies that are there. */
uint64_t ix_cache_used(const struct ix_cache *cache);

/* Calls `visit` for every copy. Not while others insert or drop. */
void ix_cache_each(const struct ix_cache *cache, void (*visit)(void *arg, const void *node), void *arg);

/* Copies that fit the budget. */
uint32_t ix_cache_capacity(const struct ix_cache *cache);

#endif
