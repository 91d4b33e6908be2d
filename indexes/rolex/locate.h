/* SPDX-License-Identifier: Apache-2.0
 *
 * From a key to the leaves that must be read, and the reads of these leaves.
 */
#ifndef DM_INDEXES_ROLEX_LOCATE_H
#define DM_INDEXES_ROLEX_LOCATE_H

#include "client.h"

/* Finds the model of key and its table entries, of the window and `more` leaves behind it, into client->view. [waits]
 */
int rolex_locate(struct rolex_client *client, uint64_t key, uint32_t more, uint32_t *attempts);

/* The view's tables are too old: the next locate reads them again. */
void rolex_stale(struct rolex_client *client);

/* The view's model has been replaced: the cache gets what by. If it is still at it, waits a little. [waits] */
int rolex_moved(struct rolex_client *client, uint32_t tries, uint32_t *attempts);

/* Lists the leaves of the window, or of one group, with or without synonyms. DM_NOT_FOUND: the tables make no sense
 * together, read them again. [waits] once a region */
int rolex_list(struct rolex_client *client, uint32_t first, uint32_t last, bool synonyms);

/* Posts reads of the listed leaves; of the used-slot counter, into env.words[ROLEX_W_OWN]. */
void rolex_post_items(struct rolex_client *client);
void rolex_post_counter(struct rolex_client *client);

/* True if the item's bytes are of one write: then they are in `image`. */
bool rolex_item_whole(struct rolex_client *client, const struct rolex_item *item, char *image);

/* The lower bound in a leaf on the wire: in its first line, so never torn. */
static inline uint64_t rolex_item_low(const struct rolex_item *item) {
    return rolex_u64(item->wire, (uint32_t)ix_lines_place(ROLEX_LOW_AT));
}

/* The listed item whose leaf covers key, decoded into client->image; NULL: none. *torn: some were not whole. */
const struct rolex_item *rolex_cover(struct rolex_client *client, uint64_t key, bool *torn);

#endif
