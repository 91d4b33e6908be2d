/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing an index from sorted pairs.
 */
#ifndef DM_INDEXES_ROLEX_LOAD_H
#define DM_INDEXES_ROLEX_LOAD_H

#include "env.h"

/* Keys that will be inserted later and are trained with the pairs: ascending, distinct, none of them a pair's. */
struct rolex_pretraining {
    const uint64_t *keys;
    uint64_t count;
};

/* Trains models on the pairs and the keys to come, and writes everything. NULL, NULL: an empty index. DM_ERR_INVALID
 * for keys out of order. [waits] */
int rolex_load_pairs(struct dm_ctx *ctx, const struct rolex_params *params, const struct ix_shape *shape,
                     const struct ix_pairs *pairs, const struct rolex_pretraining *to_come);

#endif
