/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking leaves from regions and from the reclaiming queue, and giving them back.
 */
#ifndef DM_INDEXES_ROLEX_SPACE_H
#define DM_INDEXES_ROLEX_SPACE_H

#include "env.h"

/* A leaf to write to, with the version of its last write. */
struct rolex_leaf_ref {
    uint64_t entry; /* region and number */
    dm_addr addr;
    uint8_t version;
};

/* Takes a leaf of a memory node; unless `slots` is null, the used-slot counter of a model there is raised with the same
 * doorbell, and *slot is its previous value. DM_ERR_NO_MEMORY, perhaps with the counter raised. [waits] */
int rolex_leaf_take(struct rolex_env *env, unsigned node, dm_addr slots, uint64_t *slot, struct rolex_leaf_ref *leaf);

/* Adds to the batch that a leaf goes to the reclaiming queue; after the commit, finish writes the entry. */
void rolex_leaf_post_free(struct rolex_env *env, unsigned node);
int rolex_leaf_finish_free(struct rolex_env *env, const struct rolex_leaf_ref *leaf);

/* Consecutive leaves for bulk load: up to `wanted` of node, *got of them from `leaf` on. [waits] */
int rolex_leaves_take(struct rolex_env *env, unsigned node, uint32_t wanted, struct rolex_leaf_ref *leaf,
                      uint32_t *got);

#endif
