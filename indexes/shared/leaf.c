/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves of fixed size; see leaf.h.
 */
#include "indexes/shared/leaf.h"

#include <assert.h>

#include "indexes/shared/sort.h"

struct ix_leaf_layout ix_leaf_layout_of(uint32_t image_bytes, uint32_t key_bytes, uint32_t value_bytes, bool sorted,
                                        bool versions) {
    assert(!(sorted && versions));
    uint32_t key_offset = sorted ? 0 : 1 + (uint32_t)versions;
    uint32_t entry_bytes = key_offset + key_bytes + value_bytes, head_bytes = ix_node_head_bytes(key_bytes);
    uint32_t cap = image_bytes > head_bytes ? (image_bytes - head_bytes) / entry_bytes : 0;
    cap = cap < IX_LEAF_CAP_MAX ? cap : IX_LEAF_CAP_MAX; /* the last line may have space for some more */
    return (struct ix_leaf_layout){
        .image_bytes = image_bytes,
        .key_bytes = key_bytes,
        .head_bytes = head_bytes,
        .value_bytes = value_bytes,
        .entry_bytes = entry_bytes,
        .key_offset = key_offset,
        .cap = cap,
        .sorted = sorted,
        .versions = versions,
    };
}

struct ix_leaf_layout ix_leaf_layout_pointers(uint32_t image_bytes, uint32_t cap) {
    uint32_t entry_bytes = 2 * (uint32_t)sizeof(uint64_t);
    assert(sizeof(struct ix_node_head) + (uint64_t)cap * entry_bytes <= image_bytes && cap <= IX_LEAF_CAP_MAX);
    return (struct ix_leaf_layout){
        .image_bytes = image_bytes,
        .key_bytes = sizeof(uint64_t),
        .head_bytes = sizeof(struct ix_node_head),
        .value_bytes = sizeof(uint64_t),
        .entry_bytes = entry_bytes,
        .cap = cap,
        .pointers = true,
    };
}

static char *entry_at(const struct ix_leaf_layout *layout, void *image, unsigned i) {
    return (char *)image + ix_leaf_offset(layout, i);
}

static uint8_t *used_flag(const struct ix_leaf_layout *layout, void *image, unsigned i) {
    return (uint8_t *)entry_at(layout, image, i) + layout->versions;
}

/* Of a sorted leaf; never more than there are, whatever remote memory holds. */
static unsigned sorted_count(const struct ix_leaf_layout *layout, const void *image) {
    unsigned count = ix_node_head_in(image)->count;
    return count < layout->cap ? count : layout->cap;
}

bool ix_leaf_is_used(const struct ix_leaf_layout *layout, const void *image, unsigned i) {
    if (layout->pointers) {
        uint64_t word;
        memcpy(&word, ix_leaf_value(layout, image, i), sizeof(word));
        return word != 0;
    }
    return layout->sorted ? i < sorted_count(layout, image)
                          : ((const uint8_t *)image)[ix_leaf_offset(layout, i) + layout->versions] != 0;
}

static void entry_set(const struct ix_leaf_layout *layout, void *image, unsigned i, uint64_t key, const void *value) {
    if (!layout->sorted && !layout->pointers) {
        *used_flag(layout, image, i) = 1;
    }
    memcpy(entry_at(layout, image, i) + layout->key_offset, &key, sizeof(key));
    ix_leaf_update(layout, image, i, value);
}

void ix_leaf_put(const struct ix_leaf_layout *layout, void *image, unsigned i, uint64_t key, const void *value) {
    entry_set(layout, image, i, key, value);
    if (layout->sorted) {
        ix_node_head_of(image)->count = (uint16_t)(i + 1);
    }
}

void ix_leaf_update(const struct ix_leaf_layout *layout, void *image, unsigned i, const void *value) {
    memcpy(entry_at(layout, image, i) + layout->key_offset + layout->key_bytes, value, layout->value_bytes);
}

void ix_leaf_init(const struct ix_leaf_layout *layout, void *image, uint64_t low, uint64_t high, dm_addr sibling) {
    ix_node_init(image, layout->image_bytes, 0, low, high, sibling);
}

void ix_leaf_refresh(const struct ix_leaf_layout *layout, void *image, uint8_t version) {
    for (unsigned i = 0; layout->versions && i < layout->cap; i++) {
        *(uint8_t *)entry_at(layout, image, i) = ix_lines_fresh(version);
    }
}

/* ---- searching --------------------------------------------------------------------------------------------------- */

/* The first position of a sorted leaf whose key is not below `key`. */
static unsigned lower_bound(const struct ix_leaf_layout *layout, const void *image, uint64_t key) {
    unsigned low = 0;
    unsigned high = sorted_count(layout, image);
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (ix_leaf_key(layout, image, middle) < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int ix_leaf_find(const struct ix_leaf_layout *layout, const void *image, uint64_t key) {
    if (layout->sorted) {
        unsigned at = lower_bound(layout, image, key);
        bool found = at < sorted_count(layout, image) && ix_leaf_key(layout, image, at) == key;
        return found ? (int)at : IX_LEAF_NONE;
    }
    const char *entry = (const char *)image + ix_leaf_offset(layout, 0);
    for (unsigned i = 0; i < layout->cap; i++, entry += layout->entry_bytes) {
        uint64_t here;
        memcpy(&here, entry + layout->key_offset, sizeof(here));
        if (here == key && (layout->pointers ? ix_leaf_is_used(layout, image, i) : entry[layout->versions] != 0)) {
            return (int)i;
        }
    }
    return IX_LEAF_NONE;
}

void ix_leaf_find_charge(const struct ix_leaf_layout *layout, struct dm_ctx *ctx, int at) {
    if (layout->sorted) {
        dm_charge(ctx, DM_WORK_NODE_PROBE, 1);
    } else {
        dm_charge(ctx, DM_WORK_KEY_COMPARE, at == IX_LEAF_NONE ? layout->cap : (unsigned)at + 1);
    }
    if (at != IX_LEAF_NONE && layout->key_bytes > sizeof(uint64_t)) {
        dm_charge(ctx, DM_WORK_KEY_COMPARE, (layout->key_bytes - 1) / (uint32_t)sizeof(uint64_t));
    }
}

unsigned ix_leaf_sort(const struct ix_leaf_layout *layout, const void *image, uint64_t first, uint16_t *order) {
    unsigned count = 0;
    if (layout->sorted) {
        for (unsigned i = lower_bound(layout, image, first); i < sorted_count(layout, image); i++) {
            order[count++] = (uint16_t)i;
        }
        return count;
    }
    uint64_t keys[IX_LEAF_CAP_MAX];
    for (unsigned i = 0; i < layout->cap; i++) {
        keys[count] = ix_leaf_key(layout, image, i);
        order[count] = (uint16_t)i;
        count += ix_leaf_is_used(layout, image, i) && keys[count] >= first;
    }
    ix_sort(keys, order, count);
    return count;
}

/* ---- changing ---------------------------------------------------------------------------------------------------- */

static int sorted_insert(const struct ix_leaf_layout *layout, void *image, uint64_t key, const void *value) {
    unsigned count = sorted_count(layout, image);
    if (count == layout->cap) {
        return IX_LEAF_NONE;
    }
    unsigned at = lower_bound(layout, image, key);
    memmove(entry_at(layout, image, at + 1), entry_at(layout, image, at), (size_t)(count - at) * layout->entry_bytes);
    entry_set(layout, image, at, key, value);
    ix_node_head_of(image)->count = (uint16_t)(count + 1);
    return (int)at;
}

int ix_leaf_insert(const struct ix_leaf_layout *layout, void *image, uint64_t key, const void *value) {
    if (layout->sorted) {
        return sorted_insert(layout, image, key, value);
    }
    for (unsigned i = 0; i < layout->cap; i++) {
        if (!ix_leaf_is_used(layout, image, i)) {
            entry_set(layout, image, i, key, value);
            return (int)i;
        }
    }
    return IX_LEAF_NONE;
}

void ix_leaf_remove(const struct ix_leaf_layout *layout, void *image, unsigned i) {
    if (layout->pointers) {
        memset(entry_at(layout, image, i), 0, layout->entry_bytes);
        return;
    }
    if (!layout->sorted) {
        memset(used_flag(layout, image, i), 0, layout->entry_bytes - layout->versions);
        return;
    }
    unsigned count = sorted_count(layout, image);
    memmove(entry_at(layout, image, i), entry_at(layout, image, i + 1), (size_t)(count - i - 1) * layout->entry_bytes);
    memset(entry_at(layout, image, count - 1), 0, layout->entry_bytes);
    ix_node_head_of(image)->count = (uint16_t)(count - 1);
}

uint64_t ix_leaf_split(const struct ix_leaf_layout *layout, void *image, void *right, dm_addr right_addr,
                       uint16_t *order, void *scratch) {
    memcpy(scratch, image, layout->image_bytes);
    const struct ix_node_head *old = ix_node_head_in(scratch);
    unsigned count = ix_leaf_sort(layout, scratch, 0, order);
    unsigned keep = count / 2;
    uint64_t middle = ix_leaf_key(layout, scratch, order[keep]);
    ix_leaf_init(layout, right, middle, old->high, old->sibling);
    ix_leaf_init(layout, image, old->low, middle, right_addr);
    for (unsigned i = 0; i < count; i++) {
        ix_leaf_put(layout, i < keep ? image : right, i < keep ? i : i - keep, ix_leaf_key(layout, scratch, order[i]),
                    ix_leaf_value(layout, scratch, order[i]));
    }
    return middle;
}
