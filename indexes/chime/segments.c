/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans that read parts of leaves (section 4.4). The keys that a leaf can have in a range are numbers that can be
 * counted, whatever the key set: if they are few, only their neighbourhoods can hold them. That is so for the rest of a
 * leaf near whose end the scan begins; and for the last leaf of a scan over dense keys, which need not be read beyond
 * as many numbers as keys are wanted. Elsewhere all of a leaf is read.
 *
 * A part is valid like a get of all its keys at once: everything read is of one write of the whole leaf, the hop bitmap
 * of each key's home matches, and the sibling is the one that the parent names. Otherwise all of the leaf is read
 * again.
 */
#include "chime.h"

enum {
    GAP = 2 /* so few entries are cheaper to read too than another verb */,
    DENSE = 2 /* numbers an entry */,
    PLAN_COMPARES = 2
};

/* Adds the entry that the hotspot buffer names for a key. False if it names none. */
static bool hot_add(struct chime_client *client, uint64_t key, struct chime_part *part) {
    const struct chime_cn *cn = client->cn;
    unsigned at;
    if (cn->params->scan != CHIME_SCAN_HOTSPOTS || !cn->hotspot) {
        return false;
    }
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, 1);
    dm_charge_access(client->ctx, 1, chime_hotspot_bytes(cn->hotspot));
    if (!chime_hotspot_find(cn->hotspot, part->leaf, chime_home(&cn->layout, key), key, &at) || at >= cn->layout.span) {
        return false;
    }
    chime_set_add(&part->entries, at);
    chime_set_add(&part->hot, (unsigned)(key - part->first));
    return true;
}

static void neighbourhood_add(const struct chime_layout *layout, uint64_t key, struct chime_part *part) {
    unsigned home = chime_home(layout, key);
    for (unsigned d = 0; d < layout->hood; d++) {
        chime_set_add(&part->entries, chime_at(layout, home, d));
    }
}

/* Adds the entries between those of the set that one read covers: where they are few, or, as public code has it in
 * scans with hotspots, where all of the read is at most half of a leaf. Returns how many entries the set has then. */
static unsigned gaps_close(const struct chime_layout *layout, bool greedy, struct chime_set *set) {
    unsigned most = greedy ? layout->span / 2 : 0;
    unsigned count = 0;
    unsigned begin = 0, end = 0; /* of the read so far; none if equal */
    for (unsigned i = chime_set_next(set, 0, layout->span); i < layout->span;
         i = chime_set_next(set, i + 1, layout->span)) {
        bool joins = end > begin && (i - end <= GAP || i + 1 - begin <= most);
        for (unsigned between = end; joins && between < i; between++) {
            chime_set_add(set, between);
            count++;
        }
        begin = joins ? begin : i;
        end = i + 1;
        count++;
    }
    return count;
}

void chime_part_plan(struct chime_client *client, uint64_t high, uint64_t window, struct chime_part *part) {
    const struct chime_cn *cn = client->cn;
    const struct chime_layout *layout = &cn->layout;
    part->entries = part->hot = (struct chime_set){{0}};
    part->end = high;
    part->all = true;
    if (cn->params->scan == CHIME_SCAN_LEAVES || cn->params->validation == CHIME_VALIDATE_NONE || !layout->replicate ||
        part->first >= high) {
        return;
    }
    if (part->first < window && high - part->first <= (uint64_t)DENSE * layout->span && window < high) {
        part->end = window;
    }
    if (part->end - part->first > layout->span) {
        part->end = high;
        return;
    }
    for (uint64_t key = part->first; key < part->end; key++) {
        if (!hot_add(client, key, part)) {
            neighbourhood_add(layout, key, part);
        }
    }
    dm_charge(client->ctx, DM_WORK_HASH, (uint32_t)(part->end - part->first));
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE,
              (uint32_t)(part->end - part->first) * layout->hood + PLAN_COMPARES * layout->span);
    unsigned count = gaps_close(layout, cn->params->scan == CHIME_SCAN_HOTSPOTS, &part->entries);
    part->all = 4 * count > 3 * layout->span;
    part->end = part->all ? high : part->end;
}

/* The next run of entries from `at` on: [*first, *last]; false if there is none. */
static bool run_next(const struct chime_layout *layout, const struct chime_set *set, unsigned at, unsigned *first,
                     unsigned *last) {
    while (at < layout->span && !chime_set_has(set, at)) {
        at++;
    }
    *first = at;
    while (at < layout->span && chime_set_has(set, at)) {
        at++;
    }
    *last = at - 1;
    return *first < layout->span;
}

void chime_part_post(struct chime_client *client, struct chime_copy *copy, const struct chime_part *part) {
    const struct chime_layout *layout = &client->cn->layout;
    unsigned first;
    unsigned last;
    if (part->all) {
        dm_post_read(client->ctx, part->leaf, copy->wire, layout->used_bytes);
        return;
    }
    for (unsigned at = 0; run_next(layout, &part->entries, at, &first, &last); at = last + 1) {
        chime_post_segment(client, copy, part->leaf, first, last);
    }
}

static bool is_hot(const struct chime_part *part, uint64_t key) {
    return chime_set_has(&part->hot, (unsigned)(key - part->first));
}

/* True if a key is in one of the entries that were read, and that is not half-written. */
static bool key_read(struct chime_client *client, const struct chime_copy *copy, const struct chime_set *entries,
                     uint64_t key) {
    const struct chime_layout *layout = &client->cn->layout;
    unsigned home = chime_home(layout, key);
    for (unsigned d = 0; d < layout->hood; d++) {
        unsigned at = chime_at(layout, home, d);
        if (chime_set_has(entries, at) && chime_key(layout, copy->image, at) == key) {
            return chime_entry_consistent(client, copy, at);
        }
    }
    return false;
}

/* True if all keys of the part that the hotspot buffer named were found; *all_hot: it named every number. A key that is
 * found is there, as in a get. */
static bool hot_keys_read(struct chime_client *client, const struct chime_copy *copy, const struct chime_part *part,
                          bool *all_hot) {
    *all_hot = true;
    for (uint64_t key = part->first; key < part->end; key++) {
        bool hot = is_hot(part, key);
        *all_hot &= hot;
        if (hot && !key_read(client, copy, &part->entries, key)) {
            client->counts[CHIME_HOTSPOT_WRONG]++;
            return false;
        }
        client->counts[CHIME_HOTSPOT_HIT] += hot;
    }
    return true;
}

/* True if no entry that was read with a key of the part is half-written. */
static bool keys_whole(struct chime_client *client, const struct chime_copy *copy, const struct chime_part *part) {
    const struct chime_layout *layout = &client->cn->layout;
    for (unsigned i = chime_set_next(&part->entries, 0, layout->span); i < layout->span;
         i = chime_set_next(&part->entries, i + 1, layout->span)) {
        uint64_t key = chime_key(layout, copy->image, i);
        if (key >= part->first && key < part->end && !chime_entry_consistent(client, copy, i)) {
            return false;
        }
    }
    return true;
}

bool chime_part_use(struct chime_client *client, struct chime_copy *copy, const struct chime_part *part) {
    const struct chime_layout *layout = &client->cn->layout;
    unsigned group = layout->groups;
    unsigned first;
    unsigned last;
    for (unsigned at = 0; run_next(layout, &part->entries, at, &first, &last); at = last + 1) {
        unsigned next = (first + layout->hood - 1) / layout->hood;
        chime_decode_segment(client, copy, first, last);
        group = next < layout->groups && next * layout->hood <= last ? next : group;
    }
    bool all_hot;
    if (!hot_keys_read(client, copy, part, &all_hot)) {
        return false;
    }
    if (all_hot) { /* every number below the end is there, so what follows is the next leaf of the parent, too */
        return keys_whole(client, copy, part);
    }
    if (group == layout->groups || !chime_set_consistent(client, copy, &part->entries, group)) {
        return false;
    }
    for (uint64_t key = part->first; key < part->end; key++) {
        if (!is_hot(part, key) && !chime_hops_agree(client, copy, chime_home(layout, key))) {
            return false;
        }
    }
    struct chime_meta meta = chime_meta_get(layout, copy->image, group);
    return meta.valid && dm_addr_equal(meta.sibling, part->next);
}
