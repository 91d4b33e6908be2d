/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a memory node's server. The layout of remote memory is in layout.h.
 */
#ifndef DM_INDEXES_XSTORE_D_MN_H
#define DM_INDEXES_XSTORE_D_MN_H

#include <stdatomic.h>

#include "indexes/shared/served.h"
#include "layout.h"
#include "params.h"

enum { XSTORE_STRIPES = 256 };

/* Sub-models that wait for training: each is at most once in the ring, and no two contexts train the same one. */
enum { XSTORE_QUEUED = 1, XSTORE_BUSY = 2, XSTORE_AGAIN = 4 };
struct xstore_queue {
    uint32_t *ring, capacity, first, count;
    uint8_t *states;
};

/* Copies of the leaves of a sub-model in training, each with space for all keys of a leaf. */
struct xstore_space {
    char *leaves;
    size_t leaf_bytes;
    uint32_t count, capacity;
};

/* The state of a background context that trains, or of a load. The server owns it, because it outlives contexts. */
struct xstore_server;
struct xstore_trainer {
    struct xstore_server *server;
    struct xstore_space queued, fresh; /* for a sub-model of the queue; for one of a new generation */
    struct xstore_queue queue;         /* of the new generation */
};

enum { XSTORE_TRAINERS_MAX = 8 };

struct xstore_loader;

struct xstore_server {
    const struct xstore_params *params;
    const struct ix_shape *shape;
    struct xstore_layout layout;
    struct dm_fabric *fabric;
    unsigned node;
    struct dm_mutex stripes[XSTORE_STRIPES]; /* locks of the tree's nodes, by hash; a context holds one at a time */

    _Atomic uint64_t keys; /* in the tree; expansion depends on it */

    struct dm_mutex models_lock; /* protects the members below except the log; never held during a wait */
    struct dm_cond work;         /* signals work to do, or a trainer that has finished */
    struct xstore_set set;
    struct xstore_queue queue;
    unsigned busy; /* trainers that are training a sub-model of the set */
    bool wants_expansion, is_expanding, is_committing, is_full;

    struct xstore_trainer trainers[XSTORE_TRAINERS_MAX], load_trainer;

    struct ix_blocks blocks; /* of values that are not in leaves */

    struct dm_mutex log_lock;
    struct dm_cond log_work;
    dm_addr log;
    uint64_t log_head, log_tail; /* bytes appended; bytes drained */
    uint64_t log_busy_until;     /* the device has written all batches by then (ns) */

    struct xstore_loader *loader;
};

static inline struct dm_mutex *xstore_stripe(struct xstore_server *server, uint32_t ref) {
    return &server->stripes[dm_mix64(ref) % XSTORE_STRIPES];
}

#endif
