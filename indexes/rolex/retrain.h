/* SPDX-License-Identifier: Apache-2.0
 *
 * Retraining on a memory node.
 */
#ifndef DM_INDEXES_ROLEX_RETRAIN_H
#define DM_INDEXES_ROLEX_RETRAIN_H

#include "env.h"

/* The state of retraining on a memory node. Without workers there is no retraining. */
struct rolex_server {
    const struct rolex_params *params;
    const struct ix_shape *shape;
    unsigned node, workers;
    struct dm_mutex taking;
    uint64_t heads[2];  /* words taken from each queue */
    unsigned unwritten; /* polls that found the next word counted but not written */
    struct rolex_worker *worker;
};

int rolex_serve(void *server, struct dm_fabric *fabric, unsigned node, const void *params, const struct ix_shape *shape,
                struct dm_err *err);
void rolex_unserve(void *server);

/* pause: stops retraining on a memory node and waits until none is in progress; otherwise permits it again.
 * DM_NOT_FOUND: a retraining does not end (a client stopped for good while it held a lock). [waits] */
int rolex_pause(struct rolex_env *env, unsigned node, bool pause);

#endif
