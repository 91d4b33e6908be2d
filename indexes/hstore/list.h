/* SPDX-License-Identifier: Apache-2.0
 *
 * One partition of the skip list, in a server's own DRAM. Used by contexts of that server, under the partition's mutex.
 */
#ifndef DM_INDEXES_HSTORE_LIST_H
#define DM_INDEXES_HSTORE_LIST_H

#include <stdbool.h>

#include "wire.h"

enum { HS_LEVELS = 20 };

/* Nodes that were looked at: those that a server's last-level cache holds in the long run, and those that come from
 * memory. */
struct hs_steps {
    uint32_t near, far;
};

/* Charges them. */
void hs_steps_charge(struct dm_ctx *ctx, struct hs_steps steps);

struct hs_list {
    unsigned node;
    uint64_t cached;             /* nodes that the partition's share of the cache holds */
    uint64_t head;               /* an offset: the node before all */
    unsigned top;                /* levels in use */
    uint64_t count;              /* keys */
    uint64_t arena, arena_end;   /* offsets: memory for new nodes */
    uint64_t freed[HS_LEVELS];   /* nodes that were removed, by height, linked by their first word */
    uint64_t fingers[HS_LEVELS]; /* the last node of each level, for loading in order */
};

/* An empty partition, of so many. [waits] */
int hs_list_make(struct dm_ctx *ctx, struct hs_list *list, unsigned partitions);

/* Makes sure that `count` nodes can be added. Returns 0 or as dm_alloc. [waits] */
int hs_list_reserve(struct dm_ctx *ctx, struct hs_list *list, uint32_t count);

/* The item of a key and who wrote it; item 0: absent. *steps grows. */
struct hs_pair hs_list_find(struct dm_ctx *ctx, const struct hs_list *list, uint64_t key, struct hs_steps *steps);

/* Adds a key or gives it another item; item 0 removes it. Room must have been reserved. */
void hs_list_set(struct dm_ctx *ctx, struct hs_list *list, struct hs_pair pair, struct hs_steps *steps);

/* Adds a key above all others. Room must have been reserved. */
void hs_list_append(struct dm_ctx *ctx, struct hs_list *list, struct hs_pair pair);

/* Pairs from `first` on, in order. Returns how many. */
uint32_t hs_list_copy(struct dm_ctx *ctx, const struct hs_list *list, uint64_t first, struct hs_pair *pairs,
                      uint32_t capacity, struct hs_steps *steps);

#endif
