/* SPDX-License-Identifier: Apache-2.0
 *
 * Retraining on a memory node.
 */
#ifndef DM_INDEXES_ROLEX_RETRAIN_H
#define DM_INDEXES_ROLEX_RETRAIN_H

#include "env.h"

int rolex_serve(struct dm_fabric *fabric, unsigned node, const void *params, const struct ix_shape *shape,
                void **server, struct dm_err *err);
void rolex_unserve(void *server);

/* Makes retraining on a node begin no more, and waits until none is in progress; or lets it begin again. DM_NOT_FOUND:
 * it does not end (a client stopped for good with a lock). [waits] */
int rolex_pause(struct rolex_env *env, unsigned node, bool pause);

#endif
