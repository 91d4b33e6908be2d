/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a memory node's server. The layout of remote memory is in layout.h.
 */
#ifndef DM_INDEXES_XSTORE_D_MN_H
#define DM_INDEXES_XSTORE_D_MN_H

#include <stdatomic.h>

#include "layout.h"
#include "params.h"

enum { XSTORE_STRIPES = 256 };

/* Sub-models to be trained: each at most once in the ring, and never trained by two at a time. */
enum { XSTORE_QUEUED = 1, XSTORE_BUSY = 2, XSTORE_AGAIN = 4 };
struct xstore_queue {
    uint32_t *ring, room, first, count;
    uint8_t *states;
};

/* Leaves of a sub-model in training, each with room for as many keys as leaves have. */
struct xstore_space {
    char *leaves;
    size_t leaf_bytes;
    uint32_t count, room;
};

/* What a background context that trains, or a load, works with. Its memory is the server's, which outlives contexts. */
struct xstore_server;
struct xstore_trainer {
    struct xstore_server *server;
    struct xstore_space queued, fresh; /* for a sub-model of the queue; of a new generation */
    struct xstore_queue queue;         /* of the generation in the making */
};

enum { XSTORE_TRAINERS_MAX = 8 };

struct xstore_loader;

struct xstore_server {
    const struct xstore_params *params;
    const struct ix_shape *shape;
    struct xstore_layout layout;
    struct dm_fabric *fabric;
    unsigned node;
    struct dm_mutex stripes[XSTORE_STRIPES]; /* of nodes of the tree; a context holds one at a time */

    _Atomic uint64_t keys; /* in the tree: what expansion goes by */

    struct dm_mutex models_lock; /* of all below but the log; never held during a wait */
    struct dm_cond work;         /* something to do, or a trainer is done */
    struct xstore_set set;
    struct xstore_queue queue;
    unsigned busy; /* trainers that work on a sub-model of the set */
    bool wants_expansion, is_expanding, is_full;

    struct xstore_trainer trainers[XSTORE_TRAINERS_MAX], load_trainer;

    struct dm_mutex log_lock;
    struct dm_cond log_work;
    dm_addr log;
    uint64_t log_head, log_tail; /* bytes appended and drained */

    struct xstore_loader *loader;
};

static inline struct dm_mutex *xstore_stripe(struct xstore_server *server, uint32_t place) {
    return &server->stripes[dm_mix64(place) % XSTORE_STRIPES];
}

#endif
