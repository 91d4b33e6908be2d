/* SPDX-License-Identifier: Apache-2.0
 *
 * A metadata server of Clover: the table of keys, the space of versions, and what takes back replaced ones. With more
 * than one server, keys are spread over them by their hash.
 */
#ifndef DM_INDEXES_CLOVER_SERVER_H
#define DM_INDEXES_CLOVER_SERVER_H

#include "clover.h"

enum { CLOVER_STRIPES = 64, CLOVER_WALKS = 256, CLOVER_PARTS_MAX = 256 };
#define CLOVER_PART_BUCKETS (UINT64_C(1) << 22)
#define CLOVER_BUCKETS_MAX  (CLOVER_PART_BUCKETS * CLOVER_PARTS_MAX)

/* In the server's DRAM: parts of the heads of buckets, 8 bytes each, and entries in chains. A stripe's mutex protects
 * the chains of its buckets. */
struct clover_table {
    unsigned node;
    uint64_t buckets;
    uint64_t parts[CLOVER_PARTS_MAX]; /* offsets */
    struct dm_mutex stripes[CLOVER_STRIPES];
};

/* Space for versions, for entries and for shortcuts. */
struct clover_supply {
    struct dm_mutex mutex;
    uint64_t *free; /* a ring of pointers with the use to come, in the order in which their versions were collected */
    uint64_t free_first, free_count, free_capacity;
    uint64_t entries; /* offset of unused entries */
    uint32_t entries_left;
    uint64_t shortcuts; /* address bits of unused shortcuts */
    uint32_t shortcuts_left;
};

struct clover_server {
    struct dm_fabric *fabric;
    const struct clover_params *params;
    const struct ix_shape *shape;
    struct clover_geometry geometry;
    unsigned node;
    struct clover_table table;
    struct clover_supply supply;
    struct dm_mutex walks_mutex;
    struct dm_cond walks_filled;
    uint64_t walks[CLOVER_WALKS]; /* keys whose chains are to be read */
    uint32_t walks_first, walks_count;
    _Atomic uint64_t events[CLOVER_EVENT_COUNT];
};

static inline void clover_event_add(struct clover_server *server, enum clover_event event, uint64_t add) {
    atomic_fetch_add_explicit(&server->events[event], add, memory_order_relaxed);
}

/* ---- table.c ----------------------------------------------------------------------------------------------------- */

int clover_table_make(struct dm_ctx *ctx, struct clover_table *table, uint64_t buckets);

static inline struct dm_mutex *clover_table_stripe(struct clover_table *table, uint64_t hash) {
    return &table->stripes[hash % table->buckets % CLOVER_STRIPES];
}

/* Finds a key's entry and charges the search. Returns its offset, with a copy in *entry; 0: the key is not there. The
 * stripe's mutex is held, as for the next two. */
uint64_t clover_table_find(struct dm_ctx *ctx, const struct clover_table *table, uint64_t key,
                           struct clover_entry *entry);

/* Writes an entry at an unused offset and adds it to its bucket. */
void clover_table_add(struct dm_ctx *ctx, const struct clover_table *table, uint64_t offset,
                      struct clover_entry *entry);

void clover_table_set_pointer(struct dm_ctx *ctx, const struct clover_table *table, uint64_t offset, uint64_t pointer);

/* Copies up to `max` entries from *range on, and moves it behind them. Only while no key is added. */
uint32_t clover_table_list(struct dm_ctx *ctx, const struct clover_table *table, struct clover_range *range,
                           struct clover_entry *entries, uint32_t max);

/* ---- supply.c ---------------------------------------------------------------------------------------------------- */

/* Takes space for an entry and its shortcut. 0 or DM_ERR_NO_MEMORY or a failure. [waits] */
int clover_supply_entry(struct dm_ctx *ctx, struct clover_server *server, uint64_t *offset, uint64_t *shortcut);

/* Takes up to `count` spaces for versions. *granted may be 0: there is no memory. [waits] */
int clover_supply_grant(struct dm_ctx *ctx, struct clover_server *server, uint32_t count, uint64_t *pointers,
                        uint32_t *granted);

/* Takes back the space of a version that was replaced. [waits] */
int clover_supply_return(struct dm_ctx *ctx, struct clover_server *server, uint64_t pointer);

/* ---- collect.c --------------------------------------------------------------------------------------------------- */

int clover_collect(struct dm_ctx *ctx, void *server, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);

/* A background context: reads chains whose replaced versions were not reported in their order. */
void clover_walker(struct dm_ctx *ctx, void *server);

/* ---- reply.c ----------------------------------------------------------------------------------------------------- */

/* Begins a reply with the events that no client has received yet. */
void clover_reply_make(struct clover_server *server, struct clover_reply *reply);

#endif
