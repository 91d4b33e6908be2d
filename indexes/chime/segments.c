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

void chime_part_plan(struct chime_client *client, uint64_t high, uint64_t window, struct chime_part *part) {
    const struct chime_cn *cn = client->cn;
    const struct chime_layout *layout = &cn->layout;
    part->entries = (struct chime_set){{0}};
    part->end = high;
    part->all = true;
    if (cn->params->scan != CHIME_SCAN_SEGMENTS || cn->params->validation == CHIME_VALIDATE_NONE ||
        !layout->replicate || part->first >= high) {
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
        unsigned home = chime_home(layout, key);
        for (unsigned d = 0; d < layout->hood; d++) {
            chime_set_add(&part->entries, chime_at(layout, home, d));
        }
    }
    dm_charge(client->ctx, DM_WORK_HASH, (uint32_t)(part->end - part->first));
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE,
              (uint32_t)(part->end - part->first) * layout->hood + PLAN_COMPARES * layout->span);
    unsigned count = 0;
    unsigned gap = 0;
    bool begun = false;
    for (unsigned i = 0; i < layout->span; i++) {
        bool has = chime_set_has(&part->entries, i);
        for (unsigned back = 1; has && begun && back <= gap && gap <= GAP; back++) {
            chime_set_add(&part->entries, i - back);
            count++;
        }
        gap = has ? 0 : gap + 1;
        begun |= has;
        count += has;
    }
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
    if (group == layout->groups || !chime_set_consistent(client, copy, &part->entries, group)) {
        return false;
    }
    for (uint64_t key = part->first; key < part->end; key++) {
        if (!chime_hops_agree(client, copy, chime_home(layout, key))) {
            return false;
        }
    }
    struct chime_meta meta = chime_meta_get(layout, copy->image, group);
    return meta.valid && dm_addr_equal(meta.sibling, part->next);
}
