/* SPDX-License-Identifier: Apache-2.0
 *
 * One partition of the skip list, in a server's own DRAM. Used by contexts of that server, under the partition's mutex.
 */
#ifndef DM_INDEXES_HSTORE_LIST_H
#define DM_INDEXES_HSTORE_LIST_H

#include <stdbool.h>

#include "wire.h"

enum { HSTORE_LEVELS = 20 };

/* Nodes visited by searches: those that are in the server's last-level cache in the long run, and those read from
 * memory. */
struct hstore_steps {
    uint32_t near, far;
    uint16_t near_at[HSTORE_LEVELS]; /* near, by level */
};

struct hstore_list {
    unsigned node;
    uint64_t cached;                 /* nodes that fit in the partition's share of the cache */
    uint64_t head;                   /* offset of the node before all others */
    unsigned top;                    /* levels in use */
    uint64_t count;                  /* of keys */
    uint64_t arena, arena_end;       /* offsets: memory for new nodes */
    uint64_t next_arena, last_arena; /* the chain of arenas that come then: each begins with the offset of the next and
                                      * its own end; 0: none */
    uint64_t chained;                /* bytes of the chain that are sure to be of use */
    uint64_t freed[HSTORE_LEVELS];   /* removed nodes, by height, linked by their first word */
    uint64_t fingers[HSTORE_LEVELS]; /* the last node of each level, for appending in order */
};

/* Charges them: near ones by what searches of all partitions access between two steps to the same node. */
void hstore_steps_charge(struct dm_ctx *ctx, const struct hstore_list *list, struct hstore_steps steps);

/* Makes an empty partition; `partitions` of them share the cache. [waits] */
int hstore_list_make(struct dm_ctx *ctx, struct hstore_list *list, unsigned partitions);

/* Reserves memory for `count` further nodes. 0 or as dm_alloc. [waits] */
int hstore_list_reserve(struct dm_ctx *ctx, struct hstore_list *list, uint32_t count);

/* The item of a key and the write that made it; item 0: absent. Adds to *steps. */
struct hstore_pair hstore_list_find(struct dm_ctx *ctx, const struct hstore_list *list, uint64_t key,
                                    struct hstore_steps *steps);

/* Inserts a key or changes its item; item 0 removes it. Memory must have been reserved. */
void hstore_list_set(struct dm_ctx *ctx, struct hstore_list *list, struct hstore_pair pair, struct hstore_steps *steps);

/* Appends a key above all others. Memory must have been reserved. */
void hstore_list_append(struct dm_ctx *ctx, struct hstore_list *list, struct hstore_pair pair);

/* Copies pairs from `first` on, in order, and returns their number. */
uint32_t hstore_list_copy(struct dm_ctx *ctx, const struct hstore_list *list, uint64_t first, struct hstore_pair *pairs,
                          uint32_t capacity, struct hstore_steps *steps);

#endif
