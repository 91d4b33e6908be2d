/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on ROLEX's leaves; the layout is in leaf.h.
 */
#include "leaf.h"

struct rolex_layout rolex_layout_make(uint32_t delta, uint32_t key_bytes, uint32_t value_bytes) {
    struct rolex_layout layout = {.delta = delta, .key_bytes = key_bytes, .value_bytes = value_bytes};
    layout.image_bytes = ROLEX_KEYS_AT + delta * (key_bytes + value_bytes) + 2 * rolex_padding(&layout);
    layout.wire_bytes = ix_lines_wire_bytes(layout.image_bytes);
    return layout;
}

static void put_u64(char *image, uint32_t at, uint64_t word) {
    memcpy(image + at, &word, sizeof(word));
}

static void count_set(char *image, uint32_t count) {
    uint16_t stored = (uint16_t)count;
    memcpy(image + ROLEX_COUNT_AT, &stored, sizeof(stored));
}

static char *value_at(const struct rolex_layout *layout, char *image, uint32_t i) {
    return image + ROLEX_KEYS_AT + 8 * layout->delta + (size_t)i * layout->value_bytes;
}

uint32_t rolex_count(const struct rolex_layout *layout, const char *image) {
    uint16_t stored;
    memcpy(&stored, image + ROLEX_COUNT_AT, sizeof(stored));
    return stored <= layout->delta ? stored : layout->delta;
}

void rolex_bounds_set(char *image, uint64_t low, uint64_t high) {
    put_u64(image, ROLEX_LOW_AT, low);
    put_u64(image, ROLEX_HIGH_AT, high);
}

void rolex_leaf_init(const struct rolex_layout *layout, char *image, uint64_t low, uint64_t high) {
    memset(image, 0, ix_lines_data_bytes(layout->wire_bytes));
    rolex_bounds_set(image, low, high);
}

void rolex_value_set(const struct rolex_layout *layout, char *image, uint32_t i, const void *value) {
    memcpy(value_at(layout, image, i), value, layout->value_bytes);
}

bool rolex_find(const struct rolex_layout *layout, const char *image, uint64_t key, uint32_t *at) {
    uint32_t low = 0;
    uint32_t high = rolex_count(layout, image);
    uint32_t count = high;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (rolex_key(image, middle) < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *at = low;
    return low < count && rolex_key(image, low) == key;
}

/* Moves pairs from index `from` to index `to`. */
static void pairs_move(const struct rolex_layout *layout, char *image, uint32_t from, uint32_t to, uint32_t pairs) {
    memmove(image + ROLEX_KEYS_AT + 8 * to, image + ROLEX_KEYS_AT + 8 * from, 8 * (size_t)pairs);
    memmove(value_at(layout, image, to), value_at(layout, image, from), (size_t)pairs * layout->value_bytes);
}

void rolex_pair_insert(const struct rolex_layout *layout, char *image, uint32_t i, uint64_t key, const void *value) {
    uint32_t count = rolex_count(layout, image);
    pairs_move(layout, image, i, i + 1, count - i);
    put_u64(image, ROLEX_KEYS_AT + 8 * i, key);
    rolex_value_set(layout, image, i, value);
    count_set(image, count + 1);
}

void rolex_pair_remove(const struct rolex_layout *layout, char *image, uint32_t i) {
    uint32_t count = rolex_count(layout, image);
    pairs_move(layout, image, i + 1, i, count - i - 1);
    count_set(image, count - 1);
}

void rolex_leaf_halve(const struct rolex_layout *layout, char *left, char *right, uint64_t key) {
    uint32_t count = rolex_count(layout, left);
    bool above = count > 0 && key > rolex_key(left, count - 1);
    uint32_t stay = above ? count : count / 2;
    uint64_t boundary = above ? key : rolex_key(left, stay);
    rolex_leaf_init(layout, right, boundary, rolex_high(left));
    memcpy(right + ROLEX_KEYS_AT, left + ROLEX_KEYS_AT + 8 * stay, 8 * (size_t)(count - stay));
    memcpy(value_at(layout, right, 0), value_at(layout, left, stay), (size_t)(count - stay) * layout->value_bytes);
    count_set(right, count - stay);
    count_set(left, stay);
    rolex_bounds_set(left, rolex_low(left), boundary);
}
