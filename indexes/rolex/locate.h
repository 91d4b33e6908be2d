/* SPDX-License-Identifier: Apache-2.0
 *
 * From a key to the leaves that must be read, and the reads of these leaves.
 */
#ifndef DM_INDEXES_ROLEX_LOCATE_H
#define DM_INDEXES_ROLEX_LOCATE_H

#include "client.h"

/* Finds the model of key and the table entries of its window, extended by `more` leaves, for client->view. [waits] */
int rolex_locate(struct rolex_client *client, uint64_t key, uint32_t more, uint32_t *attempts);

/* The view's table entries are too old: the next locate reads those of its window again. */
void rolex_tables_refresh(struct rolex_client *client);

/* Exchanges the view's model in the cache for its replacements. If the replacement is not complete, backs off. [waits]
 */
int rolex_model_follow(struct rolex_client *client, uint32_t tries, uint32_t *attempts);

/* Lists leaves first .. last of the leaf table, with or without their synonyms. DM_NOT_FOUND: the tables are not
 * consistent and must be read again. [waits] once a region */
int rolex_leaves_list(struct rolex_client *client, uint32_t first, uint32_t last, bool synonyms);

/* Posts reads of the listed leaves. */
void rolex_post_items(struct rolex_client *client);

/* Locates key and reads the leaves of its window, extended by `more`, with or without synonyms, and the used-slot
 * counter (into env.words[ROLEX_W_OWN]) with one doorbell. DM_NOT_FOUND as rolex_leaves_list. [waits] */
int rolex_fetch(struct rolex_client *client, uint64_t key, uint32_t more, bool synonyms, uint32_t *attempts);

/* Decodes the item into `image`. False if it is torn. */
bool rolex_item_decode(struct rolex_client *client, const struct rolex_item *item, char *image);

/* The lower bound of an encoded leaf. It is in the first line, so it is never torn. */
static inline uint64_t rolex_item_low(const struct rolex_item *item) {
    return rolex_u64(item->wire, (uint32_t)ix_lines_wire_offset(ROLEX_LOW_AT));
}

/* Finds a listed leaf that covers key and decodes it into client->image; NULL: none. *torn: such a leaf was torn. The
 * search begins behind the leaf that it found last, as a scan continues there. */
const struct rolex_item *rolex_cover(struct rolex_client *client, uint64_t key, bool *torn);

#endif
