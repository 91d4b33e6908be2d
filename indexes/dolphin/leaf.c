/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves; see leaf.h.
 */
#include "leaf.h"

#include <string.h>

enum { TAGGED_DATA = DM_LINE - 1 }; /* bytes of a long value in one line */

/* The distance between a leaf's version and the tags of its empty cells. Half the tags away, such a tag matches neither
 * this version nor the one before, whose words a reader may still have. */
enum { FAR_SHORT = 128, FAR_LONG = 8 };

static uint32_t line_up(uint32_t bytes) {
    return (bytes + DM_LINE - 1) / DM_LINE * DM_LINE;
}

static uint32_t cell_begin(const struct dolphin_layout *layout, unsigned i) {
    uint32_t first = layout->keys_bytes;
    uint32_t lines = line_up(first);
    if (layout->is_long) {
        return lines + i * layout->cell_bytes;
    }
    /* A short cell never crosses a line. */
    uint32_t before = (lines - first) / layout->cell_bytes;
    uint32_t each = DM_LINE / layout->cell_bytes;
    return i < before ? first + i * layout->cell_bytes
                      : lines + (i - before) / each * DM_LINE + (i - before) % each * layout->cell_bytes;
}

struct dolphin_layout dolphin_layout_make(uint32_t leaf_bytes, uint32_t value_bytes, bool is_tagged, bool has_lock) {
    uint32_t short_bytes = value_bytes + is_tagged;
    bool is_long = short_bytes > DM_LINE;
    struct dolphin_layout layout = {
        .leaf_bytes = leaf_bytes,
        .value_bytes = value_bytes,
        .cell_bytes = is_long ? (value_bytes + TAGGED_DATA - 1) / TAGGED_DATA * DM_LINE : short_bytes,
        .lock_offset = leaf_bytes - (uint32_t)sizeof(uint64_t),
        .is_long = is_long,
        .is_tagged = is_tagged,
    };
    uint32_t capacity = has_lock ? layout.lock_offset : leaf_bytes;
    for (uint32_t cap = 1; cap <= DOLPHIN_CAP_MAX; cap++) {
        struct dolphin_layout larger = layout;
        larger.cap = cap;
        larger.keys_bytes = dolphin_word_offset(cap);
        larger.used_bytes = cell_begin(&larger, cap - 1) + larger.cell_bytes;
        if (larger.used_bytes > capacity) {
            break;
        }
        layout = larger;
    }
    for (unsigned i = 0; i < layout.cap; i++) {
        layout.cells[i] = cell_begin(&layout, i);
    }
    return layout;
}

bool dolphin_leaf_plausible(const struct dolphin_leaf_head *head) {
    return head->magic == DOLPHIN_LEAF_MAGIC && head->min <= head->max && (head->min ^ head->max) >> 8 == 0;
}

void dolphin_leaf_init(const struct dolphin_layout *layout, void *leaf, uint64_t min, uint64_t max, uint32_t version,
                       uint64_t parent) {
    memset(leaf, 0, layout->used_bytes);
    *dolphin_leaf_head_of(leaf) = (struct dolphin_leaf_head){
        .parent = parent, .min = min, .max = max, .version = version, .magic = DOLPHIN_LEAF_MAGIC};
    uint64_t *words = dolphin_leaf_words(leaf);
    for (unsigned i = 0; i < layout->cap; i++) {
        words[i] = dolphin_entry(0, DOLPHIN_FREE, 0, version);
        char *cell = (char *)leaf + dolphin_cell_offset(layout, i);
        for (uint32_t at = 0; at < layout->cell_bytes && layout->is_long; at += DM_LINE) {
            cell[at] = (char)((version + FAR_LONG) << 4);
        }
        if (layout->is_tagged && !layout->is_long) {
            cell[0] = (char)(version + FAR_SHORT);
        }
    }
}

void dolphin_cell_put(const struct dolphin_layout *layout, void *cell, const void *value, uint32_t version,
                      uint32_t update) {
    char *to = cell;
    const char *from = value;
    if (!layout->is_long) {
        to[0] = (char)version;
        memcpy(to + layout->is_tagged, from, layout->value_bytes);
        return;
    }
    for (uint32_t done = 0; done < layout->value_bytes; done += TAGGED_DATA, to += DM_LINE) {
        uint32_t left = layout->value_bytes - done;
        to[0] = (char)((version & 15) << 4 | (update & 15));
        memcpy(to + 1, from + done, left < TAGGED_DATA ? left : TAGGED_DATA);
    }
}

bool dolphin_cell_get(const struct dolphin_layout *layout, const void *cell, uint32_t version, bool is_checked,
                      void *value) {
    const unsigned char *from = cell;
    char *to = value;
    if (!layout->is_long) {
        if (layout->value_bytes == sizeof(uint64_t)) { /* common, and a call costs more than the copy */
            memcpy(to, from + layout->is_tagged, sizeof(uint64_t));
        } else {
            memcpy(to, from + layout->is_tagged, layout->value_bytes);
        }
        return !is_checked || !layout->is_tagged || from[0] == (version & 0xff);
    }
    bool agree = !is_checked || from[0] >> 4 == (version & 15);
    for (uint32_t done = 0; done < layout->value_bytes; done += TAGGED_DATA) {
        const unsigned char *line = from + done / TAGGED_DATA * DM_LINE;
        uint32_t left = layout->value_bytes - done;
        agree = agree && line[0] == from[0];
        memcpy(to + done, line + 1, left < TAGGED_DATA ? left : TAGGED_DATA);
    }
    return agree;
}

void dolphin_leaf_put(const struct dolphin_layout *layout, void *leaf, unsigned i, unsigned byte, const void *value) {
    uint32_t version = dolphin_leaf_head_in(leaf)->version;
    dolphin_leaf_words(leaf)[i] = dolphin_entry(byte, DOLPHIN_LIVE, 0, version);
    dolphin_cell_put(layout, (char *)leaf + dolphin_cell_offset(layout, i), value, version, 0);
}

unsigned dolphin_leaf_sort(const struct dolphin_layout *layout, const void *leaf, uint16_t *order) {
    const uint64_t *words = dolphin_leaf_words_in(leaf);
    unsigned count = 0;
    for (unsigned i = 0; i < layout->cap; i++) {
        if (!dolphin_entry_is_live(words[i])) {
            continue;
        }
        unsigned at = count++;
        for (; at > 0 && dolphin_entry_byte(words[order[at - 1]]) > dolphin_entry_byte(words[i]); at--) {
            order[at] = order[at - 1];
        }
        order[at] = (uint16_t)i;
    }
    return count;
}

bool dolphin_leaf_consistent(const struct dolphin_layout *layout, const void *leaf) {
    const uint64_t *words = dolphin_leaf_words_in(leaf);
    uint32_t differ = 0;
    for (unsigned i = 0; i < layout->cap; i++) {
        differ |= dolphin_entry_version(words[i]) ^ dolphin_leaf_head_in(leaf)->version;
    }
    return differ == 0;
}

int dolphin_leaf_find(const struct dolphin_layout *layout, const void *leaf, unsigned byte) {
    const uint64_t *words = dolphin_leaf_words_in(leaf);
    for (unsigned i = 0; i < layout->cap; i++) {
        if (dolphin_entry_is_live(words[i]) && dolphin_entry_byte(words[i]) == byte) {
            return (int)i;
        }
    }
    return -1;
}
