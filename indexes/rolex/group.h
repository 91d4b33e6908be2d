/* SPDX-License-Identifier: Apache-2.0
 *
 * A group is a trained leaf and its synonyms. The lock of the group is a bit of the trained leaf's table entry.
 */
#ifndef DM_INDEXES_ROLEX_GROUP_H
#define DM_INDEXES_ROLEX_GROUP_H

#include "client.h"

/* An outcome: the tables were out of date, and the operation must start again. */
enum { ROLEX_AGAIN = 1000 };

/* Has the next look-up read the tables again. ROLEX_AGAIN, or the retry limit. */
int rolex_group_again(struct rolex_client *client, uint32_t *attempts);

/* A locked group. */
struct rolex_group {
    dm_addr word;
    uint64_t entry; /* before it was locked */
    uint32_t leaf;
    struct ix_queue *queue; /* of this compute node; NULL: none */
};

/* Locks the group of `leaf` and reads, with the same doorbell, all its leaves, or only those already listed if not
 * `all`. 0; ROLEX_AGAIN; a failure: then nothing is held. Of the clients of a compute node one at a time tries the
 * remote lock; the others wait without a verb. [waits] */
int rolex_group_lock(struct rolex_client *client, uint64_t key, uint32_t leaf, bool all, uint32_t *attempts,
                     struct rolex_group *group);

/* Adds the unlock to the batch, which stores `next` in the entry, and sends the batch. If that fails, the entry is left
 * as the batch left it. [waits] */
int rolex_group_unlock(struct rolex_client *client, const struct rolex_group *group, uint64_t next);

/* Unlocks without a change. Returns `outcome`, or the failure to unlock. [waits] */
int rolex_group_release(struct rolex_client *client, const struct rolex_group *group, int outcome);

/* After a failure `rc` before any change: unlocks if a verb can still be sent. [waits] */
int rolex_group_fail(struct rolex_client *client, const struct rolex_group *group, int rc);

/* No leaf that was read under the lock covers the key: the tables lack a synonym. Unlocks and drops the tables.
 * ROLEX_AGAIN, or a failure. [waits] */
int rolex_group_stale(struct rolex_client *client, const struct rolex_group *group, uint32_t *attempts);

/* Posts the write of a leaf from the client's buffer `number`, 0 to 2. */
void rolex_leaf_post(struct rolex_client *client, unsigned number, dm_addr addr, const char *image, uint8_t version);

/* The version of the next write of a leaf that was read. */
uint8_t rolex_next_version(const struct rolex_item *item);

/* Writes the leaf in client->image and unlocks, with one doorbell. [waits] */
int rolex_leaf_write(struct rolex_client *client, const struct rolex_group *group, const struct rolex_item *item);

#endif
