/* SPDX-License-Identifier: Apache-2.0
 *
 * From the root, or from an older model, to the model that covers a key now, in remote memory.
 */
#ifndef DM_INDEXES_ROLEX_DESCEND_H
#define DM_INDEXES_ROLEX_DESCEND_H

#include "env.h"

/* DM_NOT_FOUND: there is no root. [waits] */
int rolex_root_read(struct rolex_env *env, dm_addr *addr, struct rolex_root *root);

/* Follows forks and replaced models from a pointer to the model that covers key now. DM_NOT_FOUND: what was read is not
 * consistent (an old pointer). [waits] */
int rolex_resolve(struct rolex_env *env, uint64_t pointer, uint64_t key, dm_addr *model, struct rolex_head *head);

/* From the root. [waits] */
int rolex_descend(struct rolex_env *env, uint64_t key, dm_addr *model, struct rolex_head *head);

#endif
