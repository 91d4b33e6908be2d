/* SPDX-License-Identifier: Apache-2.0
 *
 * CHIME's leaves; see leaf.h.
 */
#include "leaf.h"

#include "indexes/shared/sort.h"

enum { META_PLAIN = 10, LOCK_BYTES = 8 };

struct chime_layout chime_layout_make(uint32_t span, uint32_t hood, uint32_t key_bytes, uint32_t value_bytes,
                                      bool replicate, bool fences) {
    struct chime_layout layout = {
        .span = span,
        .hood = hood,
        .key_bytes = key_bytes,
        .value_bytes = value_bytes,
        .entry_bytes = CHIME_KEY_OFFSET + key_bytes + value_bytes,
        .meta_bytes = META_PLAIN + (fences ? 2 * key_bytes : 0),
        .groups = replicate ? (span + hood - 1) / hood : 1,
        .hood_inverse = (0x10000 + hood - 1) / hood,
        .replicate = replicate,
        .fences = fences,
    };
    layout.image_bytes = layout.groups * layout.meta_bytes + span * layout.entry_bytes;
    layout.wire_bytes = ix_lines_wire_bytes(layout.image_bytes);
    layout.used_bytes = ix_lines_wire_offset(layout.image_bytes - 1) + 1;
    layout.lock_offset = (layout.used_bytes + LOCK_BYTES - 1) / LOCK_BYTES * LOCK_BYTES;
    layout.alloc_bytes = (layout.lock_offset + LOCK_BYTES + DM_LINE - 1) / DM_LINE * DM_LINE;
    layout.argmax_bits = 1;
    while (1u << layout.argmax_bits < span) {
        layout.argmax_bits++;
    }
    layout.vacancy_bits = 63 - layout.argmax_bits < span ? 63 - layout.argmax_bits : span;
    return layout;
}

static void entry_set(const struct chime_layout *layout, void *image, unsigned i, uint64_t key, const void *value) {
    char *entry = (char *)image + chime_entry_offset(layout, i);
    char *stored = entry + CHIME_KEY_OFFSET + layout->key_bytes;
    memcpy(entry + CHIME_KEY_OFFSET, &key, sizeof(key));
    if (value) {
        memcpy(stored, value, layout->value_bytes);
    } else {
        memset(stored, 0, layout->value_bytes);
    }
}

static void hop_set(const struct chime_layout *layout, void *image, unsigned i, unsigned hop) {
    uint16_t bits = (uint16_t)hop;
    memcpy((char *)image + chime_entry_offset(layout, i) + 1, &bits, sizeof(bits));
}

void chime_leaf_update(const struct chime_layout *layout, void *image, unsigned i, const void *value) {
    memcpy(chime_value(layout, image, i), value, layout->value_bytes);
}

void chime_meta_set(const struct chime_layout *layout, void *image, const struct chime_meta *meta) {
    for (unsigned g = 0; g < layout->groups; g++) {
        char *at = (char *)image + chime_meta_offset(layout, g);
        at[1] = meta->valid;
        memcpy(at + 2, &meta->sibling, sizeof(meta->sibling));
        if (layout->fences) {
            memcpy(at + META_PLAIN, &meta->low, sizeof(meta->low));
            memcpy(at + META_PLAIN + layout->key_bytes, &meta->high, sizeof(meta->high));
        }
    }
}

struct chime_meta chime_meta_get(const struct chime_layout *layout, const void *image, unsigned group) {
    const char *at = (const char *)image + chime_meta_offset(layout, group);
    struct chime_meta meta = {.valid = at[1] == 1, .high = UINT64_MAX};
    memcpy(&meta.sibling, at + 2, sizeof(meta.sibling));
    if (layout->fences) {
        memcpy(&meta.low, at + META_PLAIN, sizeof(meta.low));
        memcpy(&meta.high, at + META_PLAIN + layout->key_bytes, sizeof(meta.high));
    }
    return meta;
}

void chime_leaf_init(const struct chime_layout *layout, void *image, const struct chime_meta *meta) {
    memset(image, 0, layout->image_bytes);
    for (unsigned i = 0; i < layout->span; i++) {
        entry_set(layout, image, i, CHIME_NO_KEY, NULL);
    }
    chime_meta_set(layout, image, meta);
}

int chime_leaf_find(const struct chime_layout *layout, const void *image, uint64_t key) {
    unsigned home = chime_home(layout, key);
    for (unsigned d = 0; d < layout->hood; d++) {
        unsigned at = chime_at(layout, home, d);
        if (chime_key(layout, image, at) == key) {
            return (int)at;
        }
    }
    return CHIME_NONE;
}

unsigned chime_hops_of(const struct chime_layout *layout, const void *image, unsigned home) {
    unsigned hops = 0;
    for (unsigned d = 0; d < layout->hood; d++) {
        uint64_t key = chime_key(layout, image, chime_at(layout, home, d));
        hops |= (unsigned)(key != CHIME_NO_KEY && chime_home(layout, key) == home) << d;
    }
    return hops;
}

/* The hop bitmaps of all homes. A key outside of its neighbourhood is in none. */
static void hops_collect(const struct chime_layout *layout, const void *image, uint16_t *hops) {
    memset(hops, 0, layout->span * sizeof(*hops));
    for (unsigned i = 0; i < layout->span; i++) {
        uint64_t key = chime_key(layout, image, i);
        unsigned home = chime_home(layout, key);
        unsigned distance = chime_distance(layout, home, i);
        if (key != CHIME_NO_KEY && distance < layout->hood) {
            hops[home] = (uint16_t)(hops[home] | 1u << distance);
        }
    }
}

bool chime_leaf_hops_agree(const struct chime_layout *layout, const void *image) {
    uint16_t hops[CHIME_SPAN_MAX];
    unsigned differ = 0;
    hops_collect(layout, image, hops);
    for (unsigned i = 0; i < layout->span; i++) {
        differ |= hops[i] ^ chime_hop(layout, image, i);
    }
    return differ == 0;
}

/* Makes all hop bitmaps agree with the keys. */
static void hops_rebuild(const struct chime_layout *layout, void *image) {
    uint16_t hops[CHIME_SPAN_MAX];
    hops_collect(layout, image, hops);
    for (unsigned i = 0; i < layout->span; i++) {
        hop_set(layout, image, i, hops[i]);
    }
}

/* Changes in home's bitmap the bit of the key at entry `at`. */
static void hop_flip(const struct chime_layout *layout, void *image, unsigned home, unsigned at,
                     struct chime_set *changed) {
    hop_set(layout, image, home, chime_hop(layout, image, home) ^ 1u << chime_distance(layout, home, at));
    chime_set_add(changed, home);
}

/* The entry whose key hops to the empty one: the farthest that may; CHIME_NONE if none may. The farthest, because then
 * a key never follows one of the same home into an entry, which is what the readers' check relies on. */
static int hop_source(const struct chime_layout *layout, const void *image, unsigned empty) {
    for (unsigned d = layout->hood - 1; d >= 1; d--) {
        unsigned at = chime_at(layout, empty, layout->span - d);
        uint64_t key = chime_key(layout, image, at);
        if (chime_distance(layout, chime_home(layout, key), empty) < layout->hood) {
            return (int)at;
        }
    }
    return CHIME_NONE;
}

int chime_leaf_insert(const struct chime_layout *layout, void *image, uint64_t key, const void *value, unsigned reach,
                      struct chime_set *changed, unsigned *largest, unsigned *filled) {
    unsigned home = chime_home(layout, key);
    unsigned away = 0;
    while (away < reach && chime_key(layout, image, chime_at(layout, home, away)) != CHIME_NO_KEY) {
        away++;
    }
    *filled = away < reach ? chime_at(layout, home, away) : layout->span;
    if (away == reach) {
        return CHIME_NONE;
    }
    /* The path first, so that nothing changes if it does not lead near enough. A key that hops leaves an entry that is
     * before all that follow, so the later steps do not depend on the moves. */
    uint16_t path[CHIME_SPAN_MAX];
    unsigned steps = 0;
    unsigned empty = *filled;
    path[steps++] = (uint16_t)empty;
    while (chime_distance(layout, home, empty) >= layout->hood) {
        int from = hop_source(layout, image, empty);
        if (from == CHIME_NONE) {
            return CHIME_NONE;
        }
        empty = (unsigned)from;
        path[steps++] = (uint16_t)empty;
    }
    for (unsigned i = 0; i + 1 < steps; i++) {
        unsigned to = path[i];
        unsigned from = path[i + 1];
        uint64_t moved = chime_key(layout, image, from);
        unsigned owner = chime_home(layout, moved);
        entry_set(layout, image, to, moved, chime_value(layout, image, from));
        hop_flip(layout, image, owner, to, changed);
        hop_flip(layout, image, owner, from, changed);
        chime_set_add(changed, to);
        *largest = *largest == from ? to : *largest;
    }
    entry_set(layout, image, empty, key, value);
    hop_flip(layout, image, home, empty, changed);
    chime_set_add(changed, empty);
    return (int)empty;
}

void chime_leaf_remove(const struct chime_layout *layout, void *image, unsigned i, struct chime_set *changed) {
    unsigned home = chime_home(layout, chime_key(layout, image, i));
    entry_set(layout, image, i, CHIME_NO_KEY, NULL);
    hop_flip(layout, image, home, i, changed);
    chime_set_add(changed, i);
}

/* Sorts `count` positions by key. */
static void positions_sort(const struct chime_layout *layout, const void *image, uint16_t *order, unsigned count) {
    uint64_t keys[CHIME_SPAN_MAX];
    for (unsigned i = 0; i < count; i++) {
        keys[i] = chime_key(layout, image, order[i]);
    }
    ix_sort(keys, order, count);
}

unsigned chime_leaf_sort(const struct chime_layout *layout, const void *image, uint64_t first, uint16_t *order) {
    unsigned count = 0;
    for (unsigned i = 0; i < layout->span; i++) {
        uint64_t key = chime_key(layout, image, i);
        if (key != CHIME_NO_KEY && key >= first) {
            order[count++] = (uint16_t)i;
        }
    }
    positions_sort(layout, image, order, count);
    return count;
}

unsigned chime_leaf_sort_some(const struct chime_layout *layout, const void *image, const struct chime_set *some,
                              uint64_t first, uint64_t end, uint16_t *order) {
    unsigned count = 0;
    for (unsigned i = chime_set_next(some, 0, layout->span); i < layout->span;
         i = chime_set_next(some, i + 1, layout->span)) {
        uint64_t key = chime_key(layout, image, i);
        if (key != CHIME_NO_KEY && key >= first && key < end) {
            order[count++] = (uint16_t)i;
        }
    }
    positions_sort(layout, image, order, count);
    return count;
}

/* True if a key with this home could be inserted if entry `empty`, and no other one, were empty. */
static bool hops_lead_home(const struct chime_layout *layout, const void *image, unsigned home, unsigned empty) {
    int at = (int)empty;
    while (at != CHIME_NONE && chime_distance(layout, home, (unsigned)at) >= layout->hood) {
        at = hop_source(layout, image, (unsigned)at);
    }
    return at != CHIME_NONE;
}

uint64_t chime_leaf_split_key(const struct chime_layout *layout, const void *image, uint64_t key) {
    uint64_t critical[CHIME_SPAN_MAX + 1] = {key};
    unsigned home = chime_home(layout, key);
    unsigned count = 1;
    for (unsigned d = 0; d < layout->span; d++) {
        unsigned at = chime_at(layout, home, d);
        uint64_t here = chime_key(layout, image, at);
        if (here == CHIME_NO_KEY) {
            break;
        }
        if (hops_lead_home(layout, image, home, at)) {
            critical[count++] = here;
        }
    }
    uint16_t unused[CHIME_SPAN_MAX + 1];
    ix_sort(critical, unused, count);
    return critical[count / 2];
}

void chime_leaf_split(const struct chime_layout *layout, void *image, void *right, uint64_t pivot) {
    memcpy(right, image, layout->image_bytes);
    for (unsigned i = 0; i < layout->span; i++) {
        uint64_t key = chime_key(layout, image, i);
        if (key != CHIME_NO_KEY) {
            entry_set(layout, key < pivot ? right : image, i, CHIME_NO_KEY, NULL);
        }
    }
    hops_rebuild(layout, image);
    hops_rebuild(layout, right);
}

/* ---- the lock word ---------------------------------------------------------------------------------------------- */

uint64_t chime_word_refresh(const struct chime_layout *layout, uint64_t word, const void *image, unsigned i) {
    unsigned group = chime_group_of(layout, i);
    unsigned end = chime_group_begin(layout, group + 1);
    bool full = true;
    for (unsigned e = chime_group_begin(layout, group); e < end; e++) {
        full &= chime_key(layout, image, e) != CHIME_NO_KEY;
    }
    uint64_t bit = UINT64_C(1) << (1 + layout->argmax_bits + group);
    return full ? word | bit : word & ~bit;
}

uint64_t chime_word_of(const struct chime_layout *layout, const void *image) {
    uint64_t word = 0;
    unsigned largest = 0;
    uint64_t most = 0;
    for (unsigned i = 0; i < layout->span; i++) {
        uint64_t key = chime_key(layout, image, i);
        if (key != CHIME_NO_KEY && key >= most) {
            most = key;
            largest = i;
        }
        if (i == chime_group_begin(layout, chime_group_of(layout, i))) {
            word = chime_word_refresh(layout, word, image, i);
        }
    }
    return chime_word_set_largest(layout, word, largest);
}

void chime_reach(const struct chime_layout *layout, uint64_t word, unsigned home, unsigned *start, unsigned *count) {
    unsigned group = chime_group_of(layout, home);
    unsigned before = home - chime_group_begin(layout, group);
    unsigned ahead = 0;
    bool found = false;
    while (ahead < layout->span && !found) {
        unsigned at = chime_at(layout, home, ahead);
        unsigned here = chime_group_of(layout, at);
        /* A group that begins before home may have its vacancy before home, where it is useless. */
        found = at == chime_group_begin(layout, here) && !chime_word_full(layout, word, here);
        ahead += chime_group_begin(layout, here + 1) - at;
    }
    ahead = ahead < layout->hood ? layout->hood : ahead;
    /* The end is inside a group: include all of it. */
    unsigned last = chime_at(layout, home, (ahead - 1) % layout->span);
    ahead += chime_group_begin(layout, chime_group_of(layout, last) + 1) - 1 - last;
    *start = home - before;
    *count = before + ahead;
    if (!found || *count >= layout->span) {
        *start = 0;
        *count = layout->span;
    }
}
