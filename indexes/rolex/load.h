/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing an index from sorted pairs.
 */
#ifndef DM_INDEXES_ROLEX_LOAD_H
#define DM_INDEXES_ROLEX_LOAD_H

#include "env.h"

enum { ROLEX_VALUE_MAX = 1024 };

/* Trains models on the pairs and writes everything; NULL: an empty index. DM_ERR_INVALID for keys out of order.
 * [waits] */
int rolex_load_pairs(struct dm_ctx *ctx, const struct rolex_params *params, const struct ix_shape *shape,
                     const struct ix_pairs *pairs);

#endif
