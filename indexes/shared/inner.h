/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner nodes of a B-link tree in remote memory: the image (lines.h has the wire form) and searching in it. Shared by
 * the trees, whose leaves differ. All functions are pure; what comes from remote memory is checked by ix_node_plausible
 * before anything in it is believed.
 *
 *     image   | head, 32 B | key[0 .. cap) u64 | child[0 .. cap) dm_addr |   keys ascending, key[0] == head.low,
 *                                                                            child[i] covers [key[i], key[i + 1])
 *
 * Keys of more than 8 bytes: their numbers are where keys of 8 bytes are, and the padding of keys and fences is behind
 * the children. A node is always transferred whole, so where in it the bytes are makes no difference.
 *
 * With `beyond` a node has one more child slot, and child[count] is the first child of the right sibling (null in the
 * last node of a level): then a node has the successor of each of its children.
 */
#ifndef DM_INDEXES_SHARED_INNER_H
#define DM_INDEXES_SHARED_INNER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "indexes/shared/node_format.h"
#include "transport/dm.h"

enum {
    IX_NODE_MAGIC = 0x53484d4e, /* distinguishes a node from other bytes */
    IX_NODE_LEVELS = 32,        /* enough for 2^31 leaves with two children a node */
};

#define IX_NODE_INFINITY UINT64_MAX /* upper fence of the last node of a level */

struct ix_node_head {
    uint32_t magic;
    uint8_t level; /* 0: leaf */
    uint8_t unused;
    uint16_t count;     /* of an inner node's children */
    uint64_t low, high; /* keys of this node: [low, high) */
    dm_addr sibling;    /* next node of the level; null in the last */
};
static_assert(sizeof(struct ix_node_head) == 32, "the head is laid out as remote memory has it");

struct ix_inner_layout {
    const struct ix_node_format *format;
    uint32_t node_bytes;  /* on the wire, a multiple of 64 */
    uint32_t image_bytes; /* as the format has it */
    uint32_t cap;         /* children */
    uint32_t key_bytes;
    bool beyond;
    enum ix_versions versions; /* that readers compare */
};

/* As many children as node_bytes hold. */
struct ix_inner_layout ix_inner_layout_of(const struct ix_node_format *format, uint32_t node_bytes, uint32_t key_bytes,
                                          bool beyond, enum ix_versions versions);

/* What was read of a node. */
static inline enum ix_node_state ix_inner_check(const struct ix_inner_layout *layout, const void *wire) {
    return layout->format->check(wire, layout->node_bytes, layout->versions);
}

/* Image bytes that `cap` children need. */
uint32_t ix_inner_bytes(uint32_t cap, uint32_t key_bytes, bool beyond);

/* Bytes of the head of a node: with both fences. */
static inline uint32_t ix_node_head_bytes(uint32_t key_bytes) {
    return (uint32_t)sizeof(struct ix_node_head) + 2 * (key_bytes - (uint32_t)sizeof(uint64_t));
}

static inline struct ix_node_head *ix_node_head_of(void *image) {
    return image;
}
static inline const struct ix_node_head *ix_node_head_in(const void *image) {
    return image;
}
static inline uint64_t *ix_inner_keys(void *image) {
    return (uint64_t *)((char *)image + sizeof(struct ix_node_head));
}
static inline const uint64_t *ix_inner_keys_in(const void *image) {
    return (const uint64_t *)((const char *)image + sizeof(struct ix_node_head));
}
static inline dm_addr *ix_inner_children(const struct ix_inner_layout *layout, void *image) {
    return (dm_addr *)(ix_inner_keys(image) + layout->cap);
}
static inline const dm_addr *ix_inner_children_in(const struct ix_inner_layout *layout, const void *image) {
    return (const dm_addr *)(ix_inner_keys_in(image) + layout->cap);
}

/* True if the image can be a node of this level at all. */
bool ix_node_plausible(const struct ix_inner_layout *layout, const void *image, unsigned level);

/* Starts an empty node in an image of `image_bytes`. */
void ix_node_init(void *image, uint32_t image_bytes, unsigned level, uint64_t low, uint64_t high, dm_addr sibling);

/* The position of the child that covers key; key >= head.low and count >= 1. */
unsigned ix_inner_find(const void *image, uint64_t key);

/* The successor of child i, also where it belongs to the sibling; null if there is none or it is not known. */
dm_addr ix_inner_next(const struct ix_inner_layout *layout, const void *image, unsigned i);

/* Adds a child that begins at key; the node is not full. The first child of an empty node must be the leftmost. */
void ix_inner_add(const struct ix_inner_layout *layout, void *image, uint64_t key, dm_addr child);

/* Removes child i >= 1. */
void ix_inner_remove(const struct ix_inner_layout *layout, void *image, unsigned i);

/* Moves the upper half of a node into an empty image `right` whose address will be right_addr; returns where it begins.
 */
uint64_t ix_inner_split(const struct ix_inner_layout *layout, void *image, void *right, dm_addr right_addr);

#endif
