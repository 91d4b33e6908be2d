/* SPDX-License-Identifier: Apache-2.0
 *
 * The empty tree and bulk load, on memory nodes and on compute nodes.
 */
#ifndef DM_INDEXES_XSTORE_D_LOAD_H
#define DM_INDEXES_XSTORE_D_LOAD_H

#include "mn.h"

/* Handlers of XSTORE_FORMAT, XSTORE_LOAD and XSTORE_BUILD; frees the state of a load that was not completed. */
int xstore_on_format(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);
int xstore_on_load(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);
int xstore_on_build(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp, uint32_t *resp_len);
void xstore_loader_free(struct xstore_loader *loader);

int xstore_format(struct dm_ctx *ctx, const void *params, const struct ix_shape *shape, struct dm_err *err);
int xstore_load(void *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs, struct dm_err *err);

#endif
