/* SPDX-License-Identifier: Apache-2.0
 *
 * Sherman's nodes: the image (indexes/shared/lines.h has the wire form) and searching in it. Leaves and inner nodes
 * have the same size and head. All functions are pure; what comes from remote memory is checked by node_plausible
 * before anything in it is believed.
 *
 *     image   | head, 32 B | body ...
 *     inner   | head | key[0 .. cap) u64 | child[0 .. cap) dm_addr |      keys ascending, key[0] == head.low,
 *                                                                         child[i] covers [key[i], key[i + 1])
 *     leaf    | head | entry[0 .. cap) |                                  unsorted, gaps allowed
 *     entry   | version 1 | used 1 | key 8 | value value_bytes |          written back alone
 */
#ifndef DM_INDEXES_SHERMAN_NODE_H
#define DM_INDEXES_SHERMAN_NODE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "indexes/shared/lines.h"
#include "transport/dm.h"

enum {
    NODE_MAGIC = 0x53484d4e, /* tells a node from other bytes */
    NODE_LEVELS = 16,        /* more than any tree that fits */
    NODE_CAP_MIN = 4,        /* entries a node must hold to be split sensibly */
    ENTRY_HEAD = 10,         /* version, used, key */
    ENTRY_NONE = -1,
};

#define NODE_INFINITY UINT64_MAX /* upper fence of the last node of a level */

struct node_head {
    uint32_t magic;
    uint8_t level; /* 0: leaf */
    uint8_t unused;
    uint16_t count;     /* of an inner node's children; leaves have a flag an entry instead */
    uint64_t low, high; /* keys of this node: [low, high) */
    dm_addr sibling;    /* next node of the level; null behind the last */
};
static_assert(sizeof(struct node_head) == 32, "the head is laid out as remote memory has it");

struct node_layout {
    uint32_t node_bytes;  /* on the wire, a multiple of 64 */
    uint32_t image_bytes; /* 63 / 64 of it */
    uint32_t value_bytes;
    uint32_t entry_bytes;
    uint32_t leaf_cap, inner_cap;
    enum ix_versions versions;
};

struct node_layout node_layout_make(uint32_t node_bytes, uint32_t value_bytes, enum ix_versions versions);

/* The least node_bytes that hold NODE_CAP_MIN entries, and the largest value that a node size allows (0: none). */
uint32_t node_bytes_min(uint32_t value_bytes);
uint32_t node_value_max(uint32_t node_bytes);

static inline struct node_head *node_head_of(void *image) {
    return image;
}
static inline const struct node_head *node_head_in(const void *image) {
    return image;
}

/* True if the image can be a node of this level at all. */
bool node_plausible(const struct node_layout *layout, const void *image, unsigned level);

/* Starts an empty node. */
void node_init(const struct node_layout *layout, void *image, unsigned level, uint64_t low, uint64_t high,
               dm_addr sibling);

/* Lays the image out with a new node version, entries included. */
void node_encode(const struct node_layout *layout, void *image, uint8_t version, void *wire);

/* ---- inner nodes ------------------------------------------------------------------------------------------------ */

static inline uint64_t *inner_keys(void *image) {
    return (uint64_t *)((char *)image + sizeof(struct node_head));
}
static inline const uint64_t *inner_keys_in(const void *image) {
    return (const uint64_t *)((const char *)image + sizeof(struct node_head));
}
static inline dm_addr *inner_children(const struct node_layout *layout, void *image) {
    return (dm_addr *)(inner_keys(image) + layout->inner_cap);
}
static inline const dm_addr *inner_children_in(const struct node_layout *layout, const void *image) {
    return (const dm_addr *)(inner_keys_in(image) + layout->inner_cap);
}

/* The position of the child that covers key; key >= head.low and count >= 1. */
unsigned inner_find(const void *image, uint64_t key);

/* Adds a child that begins at key; the node has room. */
void inner_add(const struct node_layout *layout, void *image, uint64_t key, dm_addr child);

/* Moves the upper half of a node into an empty image `right` whose address will be right_addr; returns where it begins.
 */
uint64_t inner_split(const struct node_layout *layout, void *image, void *right, dm_addr right_addr);

/* ---- leaves ----------------------------------------------------------------------------------------------------- */

static inline uint32_t leaf_entry_offset(const struct node_layout *layout, unsigned i) {
    return (uint32_t)sizeof(struct node_head) + i * layout->entry_bytes;
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
