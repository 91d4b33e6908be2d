/* SPDX-License-Identifier: Apache-2.0
 *
 * Training of sub-models on a memory node.
 */
#ifndef DM_INDEXES_XSTORE_D_TRAIN_H
#define DM_INDEXES_XSTORE_D_TRAIN_H

#include "mn.h"

/* The leaf that covered [low, high) was split: queues the sub-models of this range for training, and requests an
 * expansion if sub-models have too many keys on average. */
void xstore_train_later(struct xstore_server *server, struct dm_ctx *ctx, uint64_t low, uint64_t high);

/* A client reports that this sub-model is out of date: queues it. */
void xstore_train_stale(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_known *known);

/* Trains a new generation of `models` sub-models and makes it current. DM_ERR_NO_MEMORY keeps the old one. [waits] */
int xstore_train_all(struct xstore_trainer *trainer, struct dm_ctx *ctx, uint32_t models);

/* A background context: trains queued sub-models, and expands. */
void xstore_trainer_main(struct dm_ctx *ctx, void *trainer);

void xstore_trainer_init(struct xstore_trainer *trainer, struct xstore_server *server);
void xstore_trainer_fini(struct xstore_trainer *trainer);
void xstore_queue_free(struct xstore_queue *queue);

#endif
