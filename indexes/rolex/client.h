/* SPDX-License-Identifier: Apache-2.0
 *
 * A compute node's part of the index and a client's, and the operations on them.
 *
 * An operation first locates the key (locate.c): it finds the model that covers it, in the compute node's cache or in
 * remote memory, predicts a window of the model's leaf table, and has the table entries. A get (read.c) reads the
 * window's leaves and their synonyms with one doorbell. A write (write.c) locks one leaf and its synonyms (group.c),
 * reads them again, and sends what changed and the unlock with one doorbell; a full leaf gets a synonym (split.c). A
 * model that runs out of synonyms is replaced (replace.c), by the memory node that trains a new one (retrain.c) or by
 * the client that needs a synonym.
 */
#ifndef DM_INDEXES_ROLEX_CLIENT_H
#define DM_INDEXES_ROLEX_CLIENT_H

#include <stdatomic.h>

#include "cache.h"
#include "indexes/shared/lock_queue.h"
#include "replace.h"
#include "space.h"

struct rolex_cn {
    const struct rolex_params *params;
    const struct ix_shape *shape;
    struct rolex_cache *cache;
    struct rolex_cache *filling; /* the next one, while the client that holds `opening` fills it */
    struct ix_queues *queues;    /* for the locks of groups; NULL: clients do not queue */
    struct dm_mutex opening;     /* held while the cache is filled */
    _Atomic unsigned clients;    /* attached */
    struct dm_mutex replacing;   /* held by the client of the node that replaces a model */
    struct rolex_work *work;
};

/* A leaf that a batch reads. */
struct rolex_item {
    dm_addr addr;
    uint32_t leaf; /* index of its group in the leaf table */
    uint32_t slot; /* of the synonym leaf table; 0: it is the trained leaf */
    uint64_t entry;
    char *wire;
};

enum { ROLEX_HEADS = 64 };
struct rolex_client {
    struct rolex_env env; /* first */
    struct rolex_cn *cn;
    bool is_attached;
    bool is_stale; /* rolex_tables_refresh */
    struct rolex_view view;
    struct rolex_item *items;
    uint32_t item_count, item_max, cover_from;
    char *wires, *image, *right, *other; /* wires: item_max leaves as read, then leaves to write */
    uint64_t *fetched;                   /* all tables of a model */
    struct ix_indirect *indirect;        /* NULL: values are inline */
    uint64_t counts[ROLEX_COUNTER_COUNT];
    uint32_t tries;                           /* how often this operation has found a model being replaced */
    struct rolex_leaf_ref spares[DM_MNS_MAX]; /* a leaf of each memory node that was taken but not used; address null:
                                               * none */
    dm_addr models[ROLEX_HEADS];
    struct rolex_head heads[ROLEX_HEADS];
};

/* Locates key, reads its window with synonyms and decodes the leaf that covers it into client->image. With a detect
 * other than bounds, the leaf that has the key, and DM_NOT_FOUND if there is none. [waits] */
int rolex_read_leaf(struct rolex_client *client, uint64_t key, uint32_t *attempts, const struct rolex_item **item);

int rolex_get(void *client, uint64_t key, void *value);
int rolex_insert(void *client, uint64_t key, const void *value);
int rolex_update(void *client, uint64_t key, const void *value);
int rolex_remove(void *client, uint64_t key);
int rolex_scan(void *client, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found);
int rolex_verify(void *cn, struct dm_ctx *ctx, struct ix_report *report, struct dm_err *err);

#endif
