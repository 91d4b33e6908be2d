/* SPDX-License-Identifier: Apache-2.0
 *
 * Retraining on a memory node.
 */
#ifndef DM_INDEXES_ROLEX_RETRAIN_H
#define DM_INDEXES_ROLEX_RETRAIN_H

#include "env.h"

/* What a memory node has for retraining; without workers it does none. */
struct rolex_server {
    const struct rolex_params *params;
    const struct ix_shape *shape;
    unsigned node, workers;
    struct dm_mutex taking;
    uint64_t heads[2];  /* words taken from each queue */
    unsigned unwritten; /* polls that found the next word missing */
    struct rolex_worker *worker;
};

int rolex_serve(void *server, struct dm_fabric *fabric, unsigned node, const void *params, const struct ix_shape *shape,
                struct dm_err *err);
void rolex_unserve(void *server);

/* Makes retraining on a node begin no more, and waits until none is in progress; or lets it begin again. DM_NOT_FOUND:
 * it does not end (a client stopped for good with a lock). [waits] */
int rolex_pause(struct rolex_env *env, unsigned node, bool pause);

#endif
