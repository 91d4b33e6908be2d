/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves and nodes as bytes; see layout.h.
 */
#include "layout.h"

#include "common/prng.h"

static uint32_t round_up(uint32_t bytes, uint32_t align) {
    return (bytes + align - 1) / align * align;
}

struct smart_layout smart_layout_make(uint32_t key_bytes, uint32_t stored_bytes, uint32_t align, bool powers) {
    static const uint16_t art[] = {0, 4, 16, 48, 256};
    static const uint16_t all[] = {0, 4, 8, 16, 32, 64, 128, 256};
    uint32_t padding = key_bytes - SMART_KEY_BYTES, leaf_bytes = SMART_LEAF_VALUE + stored_bytes + padding;
    struct smart_layout layout = {
        .stored_bytes = stored_bytes,
        .padding = padding,
        .leaf_bytes = leaf_bytes,
        .leaf_alloc = round_up(leaf_bytes, align),
        .node_alloc = round_up(SMART_NODE_BYTES, align),
        .align = align,
        .types = powers ? 7 : 4,
    };
    for (unsigned type = 1; type <= layout.types; type++) {
        layout.capacity[type] = powers ? all[type] : art[type];
    }
    return layout;
}

unsigned smart_type_for(const struct smart_layout *layout, unsigned slots) {
    unsigned type = 1;
    while (type < layout->types && layout->capacity[type] < slots) {
        type++;
    }
    return type;
}

/* 48 bits over all of key and stored value, eight bytes at a time. */
static uint64_t checksum(const struct smart_layout *layout, const char *leaf) {
    uint64_t sum = UINT64_C(0x9e3779b97f4a7c15);
    uint32_t bytes = SMART_KEY_BYTES + layout->stored_bytes + layout->padding;
    for (uint32_t at = 0; at < bytes; at += 8) {
        uint64_t piece = 0;
        memcpy(&piece, leaf + SMART_LEAF_KEY + at, bytes - at < 8 ? bytes - at : 8);
        sum = dm_mix64(sum ^ piece) + at;
    }
    return sum & UINT64_C(0xffffffffffff);
}

void smart_leaf_fill(const struct smart_layout *layout, char *leaf, bool locked, unsigned stamp, uint64_t key,
                     const void *stored) {
    memcpy(leaf + SMART_LEAF_KEY, &key, sizeof(key));
    memcpy(leaf + SMART_LEAF_VALUE, stored, layout->stored_bytes);
    memset(leaf + SMART_LEAF_VALUE + layout->stored_bytes, 0, layout->padding);
    uint64_t word = smart_leaf_word(SMART_LIVE, locked, stamp);
    memcpy(leaf + SMART_LEAF_WORD, &word, 4);
    uint64_t sum = checksum(layout, leaf);
    memcpy(leaf + SMART_LEAF_CHECK, &sum, 6);
}

bool smart_leaf_consistent(const struct smart_layout *layout, const char *leaf) {
    uint64_t sum = 0;
    memcpy(&sum, leaf + SMART_LEAF_CHECK, 6);
    return sum == checksum(layout, leaf);
}

int smart_slots_find(const uint64_t *slots, unsigned count, unsigned byte) {
    for (unsigned i = 0; i < count; i++) {
        if (smart_slot_byte(slots[i]) == byte && smart_slot_has_byte(slots[i], byte)) {
            return (int)i;
        }
    }
    return -1;
}
