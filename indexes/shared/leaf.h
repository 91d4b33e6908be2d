/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves of fixed size: an array of entries behind the head that inner nodes have too (inner.h). All functions are pure
 * and work on images; what comes from remote memory is checked by ix_node_plausible before anything in it is believed.
 *
 *     leaf              | head, 32 B | entry[0 .. cap) |
 *     unsorted entry    | version 1, if entries have versions | used 1 | key 8 | value |      gaps are allowed
 *     sorted entry      | key 8 | value |                    ascending in [0, head.count)
 *     pointer entry     | key 8 | word 8 |                   unsorted, used if the word is not 0
 *
 * Keys of more than 8 bytes have their padding behind the number, and the head has that of the fences behind it.
 *
 * Entries with versions of their own are objects of lines.h: written back alone, and checked alone. A sorted leaf moves
 * entries when one is added, so its entries have none and it is written back whole.
 */
#ifndef DM_INDEXES_SHARED_LEAF_H
#define DM_INDEXES_SHARED_LEAF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "indexes/shared/inner.h"

enum { IX_LEAF_NONE = -1, IX_LEAF_CAP_MAX = 1024 };

struct ix_leaf_layout {
    uint32_t image_bytes, key_bytes, value_bytes;
    uint32_t head_bytes; /* where entry 0 begins */
    uint32_t entry_bytes;
    uint32_t key_offset; /* in an entry */
    uint32_t cap;        /* entries */
    bool sorted;
    bool versions; /* of entries; only if not sorted */
    bool pointers; /* only if not sorted, and without versions */
};

/* As many entries as an image of `image_bytes` holds. */
struct ix_leaf_layout ix_leaf_layout_of(uint32_t image_bytes, uint32_t key_bytes, uint32_t value_bytes, bool sorted,
                                        bool versions);

/* `cap` pointer entries in an image of `image_bytes`. */
struct ix_leaf_layout ix_leaf_layout_pointers(uint32_t image_bytes, uint32_t cap);

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static inline uint32_t ix_leaf_offset(const struct ix_leaf_layout *layout, unsigned i) {
    return layout->head_bytes + i * layout->entry_bytes;
}
static inline uint64_t ix_leaf_key(const struct ix_leaf_layout *layout, const void *image, unsigned i) {
    uint64_t key;
    memcpy(&key, (const char *)image + ix_leaf_offset(layout, i) + layout->key_offset, sizeof(key));
    return key;
}
static inline const void *ix_leaf_value(const struct ix_leaf_layout *layout, const void *image, unsigned i) {
    return (const char *)image + ix_leaf_offset(layout, i) + layout->key_offset + layout->key_bytes;
}
bool ix_leaf_is_used(const struct ix_leaf_layout *layout, const void *image, unsigned i);

/* ---- searching --------------------------------------------------------------------------------------------------- */

/* The position of the key, or IX_LEAF_NONE. */
int ix_leaf_find(const struct ix_leaf_layout *layout, const void *image, uint64_t key);

/* Charges a search that gave `at`: a binary search in a sorted leaf, else a look at one entry after the other; and the
 * padding of the key that was found, 8 bytes a comparison. */
void ix_leaf_find_charge(const struct ix_leaf_layout *layout, struct dm_ctx *ctx, int at);

/* Puts the positions of entries with keys >= first into `order`, which has space for cap, ascending by key; returns how
 * many. */
unsigned ix_leaf_sort(const struct ix_leaf_layout *layout, const void *image, uint64_t first, uint16_t *order);

/* ---- changing ---------------------------------------------------------------------------------------------------- */

/* Starts an empty leaf. */
void ix_leaf_init(const struct ix_leaf_layout *layout, void *image, uint64_t low, uint64_t high, dm_addr sibling);

/* Sets entry i, which is not used; of a sorted leaf it follows the last one, with a larger key. */
void ix_leaf_put(const struct ix_leaf_layout *layout, void *image, unsigned i, uint64_t key, const void *value);

/* Adds a key that is not there; its position, or IX_LEAF_NONE if the leaf is full. */
int ix_leaf_insert(const struct ix_leaf_layout *layout, void *image, uint64_t key, const void *value);

void ix_leaf_update(const struct ix_leaf_layout *layout, void *image, unsigned i, const void *value);

/* Takes entry i out. In a sorted leaf the positions behind it move. */
void ix_leaf_remove(const struct ix_leaf_layout *layout, void *image, unsigned i);

/* Splits a full leaf: moves the upper half into the image `right`, whose address will be right_addr, and packs the rest
 * in `image`; returns where the right one begins. `order` (cap) and `scratch` (image_bytes) are working space. */
uint64_t ix_leaf_split(const struct ix_leaf_layout *layout, void *image, void *right, dm_addr right_addr,
                       uint16_t *order, void *scratch);

/* Gives all entries this node version, for a write of the whole leaf; nothing if entries have no versions. */
void ix_leaf_refresh(const struct ix_leaf_layout *layout, void *image, uint8_t version);

#endif
