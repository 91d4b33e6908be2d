/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding a synonym leaf to a group, and removing one.
 */
#ifndef DM_INDEXES_ROLEX_SPLIT_H
#define DM_INDEXES_ROLEX_SPLIT_H

#include "group.h"

/* Splits the full leaf in client->image, adds the pair and unlocks; `stored` is what its entry stores for the value.
 * Without a free synonym slot it replaces the model instead. 0; ROLEX_AGAIN; a failure. [waits] */
int rolex_leaf_split(struct rolex_client *client, const struct rolex_group *group, const struct rolex_item *item,
                     uint64_t key, const void *stored, uint32_t *attempts);

/* Removes the synonym leaf in client->image, which a delete has emptied: the leaf before it inherits its range, and it
 * goes to the reclaiming queue. Unlocks. DM_NOT_FOUND if this is not possible: then the group is still locked. [waits]
 */
int rolex_synonym_unlink(struct rolex_client *client, const struct rolex_group *group, const struct rolex_item *item);

#endif
