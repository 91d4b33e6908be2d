/* SPDX-License-Identifier: Apache-2.0
 *
 * Training of sub-models on a memory node.
 */
#ifndef DM_INDEXES_XSTORE_D_TRAIN_H
#define DM_INDEXES_XSTORE_D_TRAIN_H

#include "mn.h"

/* The leaf that covered [low, high) has split: the sub-models of that range are to be trained, and if they have too
 * many keys by now, all of them anew. */
void xstore_train_later(struct xstore_server *server, struct dm_ctx *ctx, uint64_t low, uint64_t high);

/* A client says that this sub-model is out of date. */
void xstore_train_stale(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_known *known);

/* Trains a whole generation of `models` sub-models and makes it the one in use. DM_ERR_NO_MEMORY leaves the old one.
 * [waits] */
int xstore_train_all(struct xstore_trainer *trainer, struct dm_ctx *ctx, uint32_t models);

/* A background context: trains what is queued, and expands. */
void xstore_trainer_main(struct dm_ctx *ctx, void *trainer);

void xstore_trainer_init(struct xstore_trainer *trainer, struct xstore_server *server);
void xstore_trainer_fini(struct xstore_trainer *trainer);
void xstore_queue_free(struct xstore_queue *queue);

#endif
