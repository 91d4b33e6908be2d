/* SPDX-License-Identifier: Apache-2.0
 *
 * Sherman's nodes; see node.h.
 */
#include "node.h"

struct node_layout node_layout_make(uint32_t node_bytes, uint32_t value_bytes, enum ix_versions versions) {
    uint32_t image_bytes = ix_lines_data_bytes(node_bytes);
    uint32_t body = image_bytes - (uint32_t)sizeof(struct ix_node_head);
    return (struct node_layout){
        .node_bytes = node_bytes,
        .image_bytes = image_bytes,
        .value_bytes = value_bytes,
        .entry_bytes = ENTRY_HEAD + value_bytes,
        .leaf_cap = body / (ENTRY_HEAD + value_bytes),
        .versions = versions,
        .inner = ix_inner_layout_of(&ix_format_lines, node_bytes, false, versions),
    };
}

uint32_t node_bytes_min(uint32_t value_bytes) {
    return node_bytes_for(NODE_CAP_MIN, value_bytes);
}

uint32_t node_bytes_for(uint32_t entries, uint32_t value_bytes) {
    uint32_t leaf = entries * (ENTRY_HEAD + value_bytes);
    uint32_t inner = entries * (uint32_t)(sizeof(uint64_t) + sizeof(dm_addr));
    return ix_lines_wire_bytes((uint32_t)sizeof(struct ix_node_head) + (leaf > inner ? leaf : inner));
}

uint32_t node_value_max(uint32_t node_bytes) {
    uint32_t body = ix_lines_data_bytes(node_bytes) - (uint32_t)sizeof(struct ix_node_head);
    return body / NODE_CAP_MIN > ENTRY_HEAD ? body / NODE_CAP_MIN - ENTRY_HEAD : 0;
}

void leaf_refresh(const struct node_layout *layout, void *image, uint8_t version) {
    uint8_t *bytes = image;
    for (unsigned i = 0; i < layout->leaf_cap; i++) {
        bytes[leaf_entry_offset(layout, i)] = ix_lines_fresh(version);
    }
}

/* ---- leaves ----------------------------------------------------------------------------------------------------- */

int leaf_find(const struct node_layout *layout, const void *image, uint64_t key) {
    const char *entry = (const char *)image + sizeof(struct ix_node_head);
    for (unsigned i = 0; i < layout->leaf_cap; i++, entry += layout->entry_bytes) {
        uint64_t here;
        memcpy(&here, entry + 2, sizeof(here));
        if (here == key && entry[1]) {
            return (int)i;
        }
    }
    return ENTRY_NONE;
}

int leaf_find_unused(const struct node_layout *layout, const void *image) {
    for (unsigned i = 0; i < layout->leaf_cap; i++) {
        if (!leaf_used(layout, image, i)) {
            return (int)i;
        }
    }
    return ENTRY_NONE;
}

void leaf_set(const struct node_layout *layout, void *image, unsigned i, uint64_t key, const void *value) {
    char *entry = (char *)image + leaf_entry_offset(layout, i);
    entry[1] = 1;
    memcpy(entry + 2, &key, sizeof(key));
    memcpy(entry + ENTRY_HEAD, value, layout->value_bytes);
}

void leaf_clear(const struct node_layout *layout, void *image, unsigned i) {
    memset((char *)image + leaf_entry_offset(layout, i) + 1, 0, layout->entry_bytes - 1);
}

unsigned leaf_sort(const struct node_layout *layout, const void *image, uint64_t first, uint16_t *order) {
    unsigned count = 0;
    for (unsigned i = 0; i < layout->leaf_cap; i++) {
        if (!leaf_used(layout, image, i) || leaf_key(layout, image, i) < first) {
            continue;
        }
        uint64_t key = leaf_key(layout, image, i);
        unsigned at = count++;
        while (at > 0 && leaf_key(layout, image, order[at - 1]) > key) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = (uint16_t)i;
    }
    return count;
}

uint64_t leaf_split(const struct node_layout *layout, void *image, void *right, dm_addr right_addr, uint16_t *order,
                    void *scratch) {
    memcpy(scratch, image, layout->image_bytes);
    const struct ix_node_head *old = ix_node_head_in(scratch);
    unsigned count = leaf_sort(layout, scratch, 0, order);
    unsigned keep = count / 2;
    uint64_t middle = leaf_key(layout, scratch, order[keep]);
    leaf_init(layout, right, middle, old->high, old->sibling);
    leaf_init(layout, image, old->low, middle, right_addr);
    for (unsigned i = 0; i < count; i++) {
        void *into = i < keep ? image : right;
        leaf_set(layout, into, i < keep ? i : i - keep, leaf_key(layout, scratch, order[i]),
                 leaf_value(layout, scratch, order[i]));
    }
    return middle;
}
