/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner nodes; see inner.h.
 */
#include "indexes/shared/inner.h"

#include <string.h>

static uint32_t child_bytes(uint32_t key_bytes) {
    return key_bytes + (uint32_t)sizeof(dm_addr);
}

uint32_t ix_inner_bytes(uint32_t cap, uint32_t key_bytes, bool beyond) {
    return ix_node_head_bytes(key_bytes) + cap * child_bytes(key_bytes) + (beyond ? (uint32_t)sizeof(dm_addr) : 0);
}

struct ix_inner_layout ix_inner_layout_of(const struct ix_node_format *format, uint32_t node_bytes, uint32_t key_bytes,
                                          bool beyond, enum ix_versions versions) {
    uint32_t image_bytes = format->image_bytes(node_bytes);
    return (struct ix_inner_layout){
        .format = format,
        .node_bytes = node_bytes,
        .image_bytes = image_bytes,
        .cap = (image_bytes - ix_inner_bytes(0, key_bytes, beyond)) / child_bytes(key_bytes),
        .key_bytes = key_bytes,
        .beyond = beyond,
        .versions = versions,
    };
}

bool ix_node_plausible(const struct ix_inner_layout *layout, const void *image, unsigned level) {
    const struct ix_node_head *head = image;
    if (head->magic != IX_NODE_MAGIC || head->level != level || head->low >= head->high) {
        return false;
    }
    if (dm_addr_is_null(head->sibling) != (head->high == IX_NODE_INFINITY)) {
        return false;
    }
    return level == 0 || (head->count >= 1 && head->count <= layout->cap && ix_inner_keys_in(image)[0] == head->low);
}

void ix_node_init(void *image, uint32_t image_bytes, unsigned level, uint64_t low, uint64_t high, dm_addr sibling) {
    memset(image, 0, image_bytes);
    *ix_node_head_of(image) = (struct ix_node_head){
        .magic = IX_NODE_MAGIC,
        .level = (uint8_t)level,
        .low = low,
        .high = high,
        .sibling = sibling,
    };
}

unsigned ix_inner_find(const void *image, uint64_t key) {
    const uint64_t *keys = ix_inner_keys_in(image);
    unsigned base = 0;
    unsigned left = ix_node_head_in(image)->count;
    while (left > 1) {
        unsigned half = left / 2;
        base = keys[base + half] <= key ? base + half : base;
        left -= half;
    }
    return base;
}

dm_addr ix_inner_next(const struct ix_inner_layout *layout, const void *image, unsigned i) {
    bool known = layout->beyond || i + 1u < ix_node_head_in(image)->count;
    return known ? ix_inner_children_in(layout, image)[i + 1] : DM_NULL;
}

void ix_inner_add(const struct ix_inner_layout *layout, void *image, uint64_t key, dm_addr child) {
    struct ix_node_head *head = ix_node_head_of(image);
    uint64_t *keys = ix_inner_keys(image);
    dm_addr *children = ix_inner_children(layout, image);
    unsigned at = head->count == 0 ? 0 : ix_inner_find(image, key) + 1;
    unsigned after = head->count - at;
    memmove(keys + at + 1, keys + at, after * sizeof(*keys));
    memmove(children + at + 1, children + at, (after + layout->beyond) * sizeof(*children));
    keys[at] = key;
    children[at] = child;
    head->count++;
}

void ix_inner_remove(const struct ix_inner_layout *layout, void *image, unsigned i) {
    struct ix_node_head *head = ix_node_head_of(image);
    uint64_t *keys = ix_inner_keys(image);
    dm_addr *children = ix_inner_children(layout, image);
    unsigned after = head->count - i - 1u;
    memmove(keys + i, keys + i + 1, after * sizeof(*keys));
    memmove(children + i, children + i + 1, (after + layout->beyond) * sizeof(*children));
    head->count--;
}

uint64_t ix_inner_split(const struct ix_inner_layout *layout, void *image, void *right, dm_addr right_addr) {
    struct ix_node_head *head = ix_node_head_of(image);
    uint64_t *keys = ix_inner_keys(image);
    unsigned keep = head->count / 2u;
    unsigned moved = head->count - keep;
    uint64_t middle = keys[keep];
    ix_node_init(right, layout->image_bytes, head->level, middle, head->high, head->sibling);
    memcpy(ix_inner_keys(right), keys + keep, moved * sizeof(*keys));
    /* With `beyond`, child[count] is moved along; for the left half it is the right half's first child, and is in its
     * slot already. */
    memcpy(ix_inner_children(layout, right), ix_inner_children(layout, image) + keep,
           (moved + layout->beyond) * sizeof(dm_addr));
    ix_node_head_of(right)->count = (uint16_t)moved;
    head->count = (uint16_t)keep;
    head->high = middle;
    head->sibling = right_addr;
    return middle;
}
