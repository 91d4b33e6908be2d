/* SPDX-License-Identifier: Apache-2.0
 *
 * Sherman's leaves: the image (indexes/shared/lines.h has the wire form) and searching in it. Leaves and inner nodes
 * (indexes/shared/inner.h) have the same size and head. All functions are pure; what comes from remote memory is
 * checked by ix_node_plausible before anything in it is believed.
 *
 *     leaf    | head, 32 B | entry[0 .. cap) |                 unsorted, gaps allowed
 *     entry   | version 1 | used 1 | key 8 | value |           written back alone
 */
#ifndef DM_INDEXES_SHERMAN_NODE_H
#define DM_INDEXES_SHERMAN_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "indexes/shared/inner.h"
#include "transport/dm.h"

enum {
    NODE_CAP_MIN = 4, /* entries a node must hold to be split sensibly */
    ENTRY_HEAD = 10,  /* version, used, key */
    ENTRY_NONE = -1,
};

struct node_layout {
    uint32_t node_bytes;  /* on the wire, a multiple of 64 */
    uint32_t image_bytes; /* 63 / 64 of it */
    uint32_t value_bytes;
    uint32_t entry_bytes;
    uint32_t leaf_cap;
    enum ix_versions versions;
    struct ix_inner_layout inner; /* of inner nodes: the same size and head */
};

struct node_layout node_layout_make(uint32_t node_bytes, uint32_t value_bytes, enum ix_versions versions);

/* The least node_bytes that hold NODE_CAP_MIN entries, and the largest value that a node size allows (0: none). */
uint32_t node_bytes_min(uint32_t value_bytes);
uint32_t node_bytes_for(uint32_t entries, uint32_t value_bytes); /* the same for so many entries */
uint32_t node_value_max(uint32_t node_bytes);

/* Starts an empty leaf. */
static inline void leaf_init(const struct node_layout *layout, void *image, uint64_t low, uint64_t high,
                             dm_addr sibling) {
    ix_node_init(image, layout->image_bytes, 0, low, high, sibling);
}

/* Gives all entries a new node version, for a whole write. */
void leaf_refresh(const struct node_layout *layout, void *image, uint8_t version);

/* ---- leaves ----------------------------------------------------------------------------------------------------- */

static inline uint32_t leaf_entry_offset(const struct node_layout *layout, unsigned i) {
    return (uint32_t)sizeof(struct ix_node_head) + i * layout->entry_bytes;
}
static inline bool leaf_used(const struct node_layout *layout, const void *image, unsigned i) {
    return ((const uint8_t *)image)[leaf_entry_offset(layout, i) + 1] != 0;
}
static inline uint64_t leaf_key(const struct node_layout *layout, const void *image, unsigned i) {
    uint64_t key;
    memcpy(&key, (const char *)image + leaf_entry_offset(layout, i) + 2, sizeof(key));
    return key;
}
static inline const void *leaf_value(const struct node_layout *layout, const void *image, unsigned i) {
    return (const char *)image + leaf_entry_offset(layout, i) + ENTRY_HEAD;
}

/* The position of the entry with this key, of an unused entry, or ENTRY_NONE. */
int leaf_find(const struct node_layout *layout, const void *image, uint64_t key);
int leaf_find_unused(const struct node_layout *layout, const void *image);

/* Sets entry i of the image; leaf_clear makes it unused. */
void leaf_set(const struct node_layout *layout, void *image, unsigned i, uint64_t key, const void *value);
void leaf_clear(const struct node_layout *layout, void *image, unsigned i);

/* Puts the positions of used entries with keys >= first into order, ascending by key; returns how many. `order` has
 * room for leaf_cap. */
unsigned leaf_sort(const struct node_layout *layout, const void *image, uint64_t first, uint16_t *order);

/* Splits a full leaf: moves the upper half into the image `right` whose address will be right_addr and packs the rest
 * in `image`; returns where the right one begins. `order` and `scratch` (image_bytes) are working room. */
uint64_t leaf_split(const struct node_layout *layout, void *image, void *right, dm_addr right_addr, uint16_t *order,
                    void *scratch);

#endif
