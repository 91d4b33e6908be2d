/* SPDX-License-Identifier: Apache-2.0
 *
 * From a key to the leaves that can hold it, by models that are cached or read.
 */
#ifndef DM_INDEXES_XSTORE_D_LOCATE_H
#define DM_INDEXES_XSTORE_D_LOCATE_H

#include "client.h"

/* Finds the leaves that can hold a key. 0 with client->where; XSTORE_BY_CALL if the prediction is too wide or
 * unbounded; a failure. [waits] */
int xstore_locate(struct xstore_client *client, unsigned node, uint64_t key, uint32_t *attempts);

/* The same from the cache alone, for position hints. False if a part is not cached. */
bool xstore_locate_cached(struct xstore_client *client, unsigned node, uint64_t key);

/* Entries of the table of client->where's record, from leaf `first` on, at most `count`; *got of them. 0; XSTORE_STALE
 * if the table is not that of the record any more; a failure. [waits] */
int xstore_table(struct xstore_client *client, uint32_t first, uint32_t count, struct xstore_entry *entries,
                 uint32_t *got);

/* Advances client->where to the next sub-model. 0; DM_NOT_FOUND if there is none; XSTORE_STALE; a failure. [waits] */
int xstore_next_model(struct xstore_client *client);

/* Fills the caches, as much as they can hold. [waits] */
int xstore_prefill(struct xstore_client *client);

unsigned xstore_node_of(const struct xstore_client *client, uint64_t key);

/* Adopts what a reply holds of a newer generation, a record and lines of its table; *after is the address of what
 * follows in the reply. 0; DM_ERR_CORRUPT if it is too short; a failure. [waits] */
int xstore_reply_take(struct xstore_client *client, unsigned node, const struct xstore_known *known, uint32_t reply_len,
                      const char **after);
struct xstore_known xstore_known_of(const struct xstore_client *client, bool stale);

/* Marks the entry of leaf number `leaf` of the table in client->where as invalid in the cache. */
void xstore_entry_invalidate(struct xstore_client *client, uint32_t leaf);

#endif
