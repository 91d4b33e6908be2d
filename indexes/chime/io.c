/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading parts of leaves, and writing entries back.
 *
 * A copy has space for a whole leaf; what is read is stored at its offset in the leaf, so that the functions of
 * indexes/shared/lines.h apply to parts too.
 */
#include "chime.h"

/* Checking the versions of an entry is as much work as comparing so many keys; storing one, as copying so many lines.
 */
enum { OBJECT_COMPARES = 3, OBJECT_LINES = 4 };

enum { GAP_BYTES = 64 }; /* so few unchanged bytes between changed entries are cheaper to send than another verb */

void chime_post_segment(struct chime_client *client, struct chime_copy *copy, dm_addr leaf, unsigned first,
                        unsigned last) {
    const struct chime_layout *layout = &client->cn->layout;
    bool meta = layout->replicate ? first % layout->hood == 0 : first == 0;
    uint32_t from = meta ? chime_meta_offset(layout, layout->replicate ? first / layout->hood : 0)
                         : chime_entry_offset(layout, first);
    uint32_t end = chime_entry_offset(layout, last) + layout->entry_bytes;
    struct ix_span span = ix_lines_span(from, end - from);
    dm_post_read(client->ctx, dm_addr_add(leaf, span.offset), copy->wire + span.offset, span.bytes);
}

static void decode(const struct chime_copy *copy, uint32_t from, uint32_t bytes) {
    uint32_t first = from / IX_LINE_DATA;
    uint32_t lines = (from + bytes - 1) / IX_LINE_DATA - first + 1;
    ix_lines_decode(copy->wire + first * DM_LINE, lines * DM_LINE, copy->image + first * IX_LINE_DATA);
}

static int read_all(struct chime_client *client, struct chime_copy *copy, dm_addr leaf) {
    const struct chime_layout *layout = &client->cn->layout;
    DM_TRY(dm_read(client->ctx, leaf, copy->wire, layout->used_bytes));
    dm_charge(client->ctx, DM_WORK_LINE_COPY, layout->wire_bytes / DM_LINE);
    decode(copy, 0, layout->image_bytes);
    return 0;
}

void chime_decode_segment(const struct chime_client *client, const struct chime_copy *copy, unsigned first,
                          unsigned last) {
    const struct chime_layout *layout = &client->cn->layout;
    uint32_t end = chime_entry_offset(layout, last) + layout->entry_bytes;
    uint32_t from = chime_entry_offset(layout, first);
    from = from > layout->meta_bytes ? from - layout->meta_bytes : 0;
    decode(copy, from, end - from);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, (end - from) / IX_LINE_DATA + 1);
}

int chime_read_part(struct chime_client *client, struct chime_copy *copy, dm_addr leaf, unsigned start,
                    unsigned count) {
    const struct chime_layout *layout = &client->cn->layout;
    copy->start = start;
    copy->count = count;
    if (count >= layout->span) {
        return read_all(client, copy, leaf);
    }
    bool wraps = start + count > layout->span;
    unsigned last = wraps ? layout->span - 1 : start + count - 1;
    chime_post_segment(client, copy, leaf, start, last);
    if (wraps) {
        chime_post_segment(client, copy, leaf, 0, start + count - 1 - layout->span);
    }
    bool apart = !layout->replicate && !wraps && start > 0;
    if (apart) {
        struct ix_span span = ix_lines_span(0, layout->meta_bytes);
        dm_post_read(client->ctx, dm_addr_add(leaf, span.offset), copy->wire + span.offset, span.bytes);
    }
    DM_TRY(dm_commit(client->ctx));
    chime_decode_segment(client, copy, start, last);
    if (wraps) {
        chime_decode_segment(client, copy, 0, start + count - 1 - layout->span);
    }
    if (apart) {
        decode(copy, 0, layout->meta_bytes);
    }
    return 0;
}

int chime_read_entry(struct chime_client *client, dm_addr leaf, unsigned i) {
    const struct chime_layout *layout = &client->cn->layout;
    uint32_t offset = chime_entry_offset(layout, i);
    struct ix_span span = ix_lines_span(offset, layout->entry_bytes);
    DM_TRY(dm_read(client->ctx, dm_addr_add(leaf, span.offset), client->leaf.wire + span.offset, span.bytes));
    decode(&client->leaf, offset, layout->entry_bytes);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, 1 + chime_padding_compares(layout));
    return 0;
}

bool chime_entry_consistent(struct chime_client *client, const struct chime_copy *copy, unsigned i) {
    const struct chime_layout *layout = &client->cn->layout;
    return ix_lines_object_consistent(copy->wire, chime_entry_offset(layout, i), layout->entry_bytes,
                                      IX_VERSIONS_LINES);
}

static uint8_t node_version(const char *wire, uint32_t offset) {
    return (uint8_t)wire[ix_lines_wire_offset(offset)] >> 4;
}

/* True if the object is not half-written and of node version `version`. */
static bool object_belongs(const char *wire, uint32_t offset, uint32_t bytes, uint8_t version) {
    return ix_lines_object_consistent(wire, offset, bytes, IX_VERSIONS_LINES) && node_version(wire, offset) == version;
}

static bool has_entry(const struct chime_layout *layout, const struct chime_copy *copy, unsigned i) {
    return chime_distance(layout, copy->start, i) < copy->count;
}

bool chime_set_consistent(struct chime_client *client, const struct chime_copy *copy, const struct chime_set *entries,
                          unsigned group) {
    const struct chime_layout *layout = &client->cn->layout;
    uint32_t meta = chime_meta_offset(layout, group);
    uint8_t version = node_version(copy->wire, meta);
    bool consistent = ix_lines_object_consistent(copy->wire, meta, layout->meta_bytes, IX_VERSIONS_LINES);
    unsigned checked = 0;
    for (unsigned i = chime_set_next(entries, 0, layout->span); consistent && i < layout->span;
         i = chime_set_next(entries, i + 1, layout->span)) {
        consistent = object_belongs(copy->wire, chime_entry_offset(layout, i), layout->entry_bytes, version);
        checked++;
    }
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, OBJECT_COMPARES * checked);
    client->counts[CHIME_TORN_NODE] += !consistent;
    return consistent;
}

bool chime_copy_consistent(struct chime_client *client, const struct chime_copy *copy) {
    const struct chime_layout *layout = &client->cn->layout;
    unsigned group = layout->replicate ? chime_meta_near(layout, copy->start) : 0;
    uint32_t meta = chime_meta_offset(layout, group);
    uint8_t version = node_version(copy->wire, meta);
    if (!ix_lines_object_consistent(copy->wire, meta, layout->meta_bytes, IX_VERSIONS_LINES)) {
        client->counts[CHIME_TORN_NODE]++;
        return false;
    }
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, OBJECT_COMPARES * copy->count);
    for (unsigned d = 0; d < copy->count; d++) {
        unsigned i = chime_at(layout, copy->start, d);
        if (!object_belongs(copy->wire, chime_entry_offset(layout, i), layout->entry_bytes, version)) {
            bool entry = node_version(copy->wire, chime_entry_offset(layout, i)) == version;
            client->counts[entry ? CHIME_TORN_ENTRY : CHIME_TORN_NODE]++;
            return false;
        }
    }
    return true;
}

bool chime_hops_agree(struct chime_client *client, const struct chime_copy *copy, unsigned home) {
    const struct chime_layout *layout = &client->cn->layout;
    if (!client->cn->params->bitmap_check) {
        return true;
    }
    dm_charge(client->ctx, DM_WORK_HASH, layout->hood);
    if (chime_hops_of(layout, copy->image, home) == chime_hop(layout, copy->image, home)) {
        return true;
    }
    client->counts[CHIME_HOP_SEEN]++;
    return false;
}

bool chime_copy_hops_agree(struct chime_client *client, const struct chime_copy *copy) {
    const struct chime_layout *layout = &client->cn->layout;
    if (!client->cn->params->bitmap_check) {
        return true;
    }
    dm_charge(client->ctx, DM_WORK_HASH, layout->span);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, 2 * layout->span);
    bool agree = chime_leaf_hops_agree(layout, copy->image);
    client->counts[CHIME_HOP_SEEN] += !agree;
    return agree;
}

struct chime_meta chime_copy_meta(const struct chime_client *client, const struct chime_copy *copy) {
    const struct chime_layout *layout = &client->cn->layout;
    return chime_meta_get(layout, copy->image, layout->replicate ? chime_meta_near(layout, copy->start) : 0);
}

void chime_encode(struct chime_client *client, struct chime_copy *copy, uint8_t version) {
    const struct chime_layout *layout = &client->cn->layout;
    char fresh = (char)ix_lines_fresh(version);
    for (unsigned i = 0; i < layout->span; i++) {
        copy->image[chime_entry_offset(layout, i)] = fresh;
    }
    for (unsigned g = 0; g < layout->groups; g++) {
        copy->image[chime_meta_offset(layout, g)] = fresh;
    }
    ix_lines_encode(copy->image, layout->wire_bytes, version, copy->wire);
    dm_charge(client->ctx, DM_WORK_LINE_COPY, layout->wire_bytes / DM_LINE);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, layout->span);
}

static bool has_entries(const struct chime_layout *layout, const struct chime_copy *copy, unsigned first,
                        unsigned last) {
    for (unsigned i = first; i <= last; i++) {
        if (!has_entry(layout, copy, i)) {
            return false;
        }
    }
    return true;
}

/* ---- writing back ----------------------------------------------------------------------------------------------- */

/* Posts the changed entries, neighbours together: entries between two of them are sent too if they were read and are
 * few. */
static void post_changes(struct chime_client *client, dm_addr leaf, const struct chime_set *changed) {
    const struct chime_layout *layout = &client->cn->layout;
    struct chime_copy *copy = &client->leaf;
    uint32_t begin = 0;
    uint32_t end = 0; /* of the run so far, in the image; none if equal */
    unsigned written = 0, before = 0;
    for (unsigned i = chime_set_next(changed, 0, layout->span); i < layout->span;
         i = chime_set_next(changed, i + 1, layout->span)) {
        uint32_t offset = chime_entry_offset(layout, i);
        ix_lines_put_object(copy->wire, offset, copy->image + offset, layout->entry_bytes);
        if (end > begin && (offset - end > GAP_BYTES || !has_entries(layout, copy, before + 1, i))) {
            struct ix_span span = ix_lines_span(begin, end - begin);
            dm_post_write(client->ctx, dm_addr_add(leaf, span.offset), copy->wire + span.offset, span.bytes);
            begin = end = 0;
        }
        begin = end > begin ? begin : offset;
        end = offset + layout->entry_bytes;
        before = i;
        written++;
    }
    dm_charge(client->ctx, DM_WORK_LINE_COPY, OBJECT_LINES * written);
    struct ix_span span = ix_lines_span(begin, end - begin);
    dm_post_write(client->ctx, dm_addr_add(leaf, span.offset), copy->wire + span.offset, span.bytes);
}

static void post_block(struct chime_client *client, bool block) {
    if (block) {
        ix_indirect_post(client->indirect);
    }
}

/* After a commit in error some of the changed entries may be there and others not, and a hop in between holds up its
 * readers for ever. If the leaf is still locked all entries are written once more before the lock is released; if they
 * fail again it stays locked. A lock word that does not name its owner is left as it is. Returns rc. */
static int write_again(struct chime_client *client, dm_addr leaf, const struct chime_set *changed, uint64_t next,
                       bool block, int rc) {
    struct chime_lock *lock = &client->leaf_lock;
    uint64_t *found = client->tree.own;
    if (lock->is_own) {
        int again = dm_cas(client->ctx, lock->word, lock->held, lock->held, found);
        if (again == 0 && *found == lock->held) {
            post_block(client, block);
            post_changes(client, leaf, changed);
            again = dm_commit(client->ctx);
        }
        if (again < 0) {
            return chime_lock_leave(client, lock, rc);
        }
    }
    return chime_lock_finish(client, lock, next, rc);
}

int chime_write_back(struct chime_client *client, dm_addr leaf, const struct chime_set *changed, uint64_t next,
                     bool block) {
    struct chime_lock *lock = &client->leaf_lock;
    post_block(client, block);
    if (client->cn->params->unlock == CHIME_UNLOCK_BEFORE) {
        chime_lock_post(client, lock, next);
        DM_TRY(chime_lock_finish(client, lock, next, dm_commit(client->ctx)));
        post_changes(client, leaf, changed);
        return dm_commit(client->ctx);
    }
    /* A second verb after the write, never the tail of one write: the lines of a write land in any order. */
    post_changes(client, leaf, changed);
    chime_lock_post(client, lock, next);
    int rc = dm_commit(client->ctx);
    if (rc < 0 && !dm_is_final(rc)) {
        return write_again(client, leaf, changed, next, block, rc);
    }
    return chime_lock_finish(client, lock, next, rc);
}
