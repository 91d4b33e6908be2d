/* SPDX-License-Identifier: Apache-2.0
 *
 * Get (XStore, section 5.2.1): read the keys of the predicted leaves, find the key, read its value. A key that is not
 * in them is absent if all incarnations agree: then each leaf covers the same keys as at training, and the key's leaf
 * is among those that were read (train.c). Otherwise it may still be in the leaf that was split, or have moved one
 * right link away (speculative execution). If it has moved, the table entry is marked invalid, and the next look-up
 * that is predicted there calls the memory node, whose reply includes newer models, if any; so does a look-up that does
 * not find the key one right link away.
 */
#include "locate.h"

/* The position of a key that was found. */
struct found {
    unsigned fetched; /* number of the leaf in client->leaves */
    unsigned slot;
    uint32_t ref;
};

static uint32_t fetch_bytes(const struct xstore_client *client) {
    bool whole = client->cn->params->fetch == XSTORE_FETCH_LEAF;
    return whole ? client->cn->layout.read_bytes : client->cn->layout.keys_bytes;
}

/* Reads leaves into client->leaves, all in one round trip. Refs outside of the memory are refused. */
static int leaves_read(struct xstore_client *client, const uint32_t *refs, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        dm_addr addr = xstore_addr(client->where.node, refs[i]);
        if (refs[i] == 0 || !dm_addr_valid(client->ctx, addr, client->cn->layout.leaf_bytes)) {
            return DM_ERR_CORRUPT;
        }
        dm_post_read(client->ctx, addr, xstore_leaf_words(client, i), fetch_bytes(client));
    }
    dm_charge(client->ctx, DM_WORK_LINE_COPY, count * (fetch_bytes(client) / DM_LINE + 1));
    return dm_commit(client->ctx);
}

static bool leaf_search(struct xstore_client *client, unsigned i, uint32_t ref, uint64_t key, struct found *found) {
    const uint64_t *words = xstore_leaf_words(client, i);
    unsigned count = xstore_head_of(words[1]).count;
    for (unsigned slot = 0; slot < count; slot++) {
        if (words[XSTORE_HEAD_WORDS + slot] == key) {
            dm_charge(client->ctx, DM_WORK_KEY_COMPARE, slot + 1);
            *found = (struct found){i, slot, ref};
            return true;
        }
    }
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, count);
    return false;
}

/* Searches the leaves that were read. 0; DM_NOT_FOUND; XSTORE_TORN; or XSTORE_STALE, with the right links of leaves
 * that were split in `links`. */
static int fetched_search(struct xstore_client *client, uint64_t key, struct found *found, uint32_t *links,
                          unsigned *link_count) {
    const struct xstore_where *where = &client->where;
    int rc = DM_NOT_FOUND;
    *link_count = 0;
    for (unsigned i = 0; i < where->count; i++) {
        const struct xstore_entry *entry = &where->entries[i];
        if (!xstore_fetched_consistent(client, i, entry->leaf)) {
            xstore_count(client, XSTORE_TORN_LEAF_COUNT);
            rc = XSTORE_TORN;
            continue;
        }
        struct xstore_head head = xstore_head_of(xstore_leaf_words(client, i)[1]);
        bool is_stale = client->cn->params->incarnation && head.incarnation != entry->incarnation;
        if (is_stale) {
            xstore_count(client, XSTORE_INCARNATION_COUNT);
            rc = rc == XSTORE_TORN ? rc : XSTORE_STALE;
        }
        bool may_be_here = !is_stale || client->cn->params->speculate != XSTORE_SPECULATE_OFF;
        if (may_be_here && leaf_search(client, i, entry->leaf, key, found)) {
            client->counts[XSTORE_SPECULATION_COUNT] += is_stale;
            return 0;
        }
        if (is_stale && head.next != 0) {
            links[(*link_count)++] = head.next;
        }
    }
    return rc;
}

/* Marks the entries of the leaves that were split since training, as the key is not in them: look-ups that are
 * predicted there are calls until a reply has a newer table (figure 7: entry.valid = 0, fallback). */
static void entries_invalidate(struct xstore_client *client) {
    const struct xstore_where *where = &client->where;
    for (unsigned i = 0; i < where->count; i++) {
        struct xstore_head head = xstore_head_of(xstore_leaf_words(client, i)[1]);
        if (head.incarnation != where->entries[i].incarnation) {
            xstore_entry_invalidate(client, where->first + i);
        }
    }
}

/* Searches the leaves one right link further. 0; XSTORE_TORN; XSTORE_STALE: the key is not there either. */
static int speculate(struct xstore_client *client, uint64_t key, const uint32_t *links, unsigned count,
                     struct found *found) {
    if (client->cn->params->speculate != XSTORE_SPECULATE_LINK || count == 0) {
        return XSTORE_STALE;
    }
    int rc = leaves_read(client, links, count);
    if (rc < 0) {
        return rc;
    }
    rc = XSTORE_STALE;
    for (unsigned i = 0; i < count; i++) {
        if (!xstore_fetched_consistent(client, i, links[i])) {
            xstore_count(client, XSTORE_TORN_LEAF_COUNT);
            rc = XSTORE_TORN;
        } else if (leaf_search(client, i, links[i], key, found)) {
            xstore_count(client, XSTORE_SPECULATION_COUNT);
            return 0;
        }
    }
    return rc;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Reads an indirect value; outcomes as value_read. */
static int block_read(struct xstore_client *client, uint64_t key, uint64_t ref, void *value) {
    const struct xstore_layout *layout = &client->cn->layout;
    dm_addr addr = xstore_addr(client->where.node, ref);
    bool is_checked = client->cn->params->value_check;
    if (ref == 0 || ref > UINT32_MAX || !dm_addr_valid(client->ctx, addr, layout->block_bytes)) {
        return is_checked ? DM_ERR_CORRUPT : XSTORE_TORN;
    }
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_VALUE);
    int rc = dm_read(client->ctx, addr, client->words, layout->block_bytes);
    dm_phase(client->ctx, before);
    DM_TRY(rc);
    dm_charge(client->ctx, DM_WORK_HASH, is_checked ? ix_check_hashes(layout->user_words) : 0);
    if (is_checked && !xstore_block_consistent(layout, key, client->words)) {
        xstore_count(client, XSTORE_TORN_VALUE_COUNT);
        return XSTORE_TORN;
    }
    xstore_value_copy(layout, client->words + 1, value);
    return 0;
}

/* 0, or XSTORE_TORN: the value belongs to another key, or is being written. */
static int value_read(struct xstore_client *client, uint64_t key, const struct found *found, void *value) {
    const struct xstore_layout *layout = &client->cn->layout;
    uint32_t offset = xstore_slot_offset(layout, found->slot);
    const uint64_t *words = client->words;
    if (client->cn->params->fetch == XSTORE_FETCH_LEAF) {
        words = xstore_leaf_words(client, found->fetched) + offset / 8;
    } else {
        dm_addr addr = dm_addr_add(xstore_addr(client->where.node, found->ref), offset);
        enum dm_phase before = dm_phase(client->ctx, DM_PHASE_VALUE);
        int rc = dm_read(client->ctx, addr, client->words, layout->slot_bytes);
        dm_phase(client->ctx, before);
        DM_TRY(rc);
    }
    dm_charge(client->ctx, DM_WORK_HASH, client->cn->params->value_check ? ix_check_hashes(layout->value_words) : 0);
    if (client->cn->params->value_check && words[0] != xstore_value_check(key, words + 1, layout->value_words)) {
        xstore_count(client, XSTORE_TORN_VALUE_COUNT);
        return XSTORE_TORN;
    }
    if (layout->block_bytes > 0) {
        return block_read(client, key, words[1], value);
    }
    xstore_value_copy(layout, words + 1, value);
    return 0;
}

/* ---- the fallback ------------------------------------------------------------------------------------------------ */

static int get_by_call(struct xstore_client *client, uint64_t key, bool stale, void *value) {
    struct xstore_get_request request = {.key = key, .known = xstore_known_of(client, stale)};
    uint32_t len = DM_CALL_MAX;
    xstore_count(client, XSTORE_FALLBACK_COUNT);
    memcpy(client->request, &request, sizeof(request));
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_CALL);
    int rc =
        dm_call(client->ctx, client->where.node, XSTORE_GET, client->request, sizeof(request), client->reply, &len);
    dm_phase(client->ctx, before);
    DM_TRY(rc);
    uint32_t value_bytes = client->cn->layout.user_words * 8;
    if (rc == 0 && len >= value_bytes) {
        memcpy(value, client->reply + len - value_bytes, client->cn->layout.user_bytes);
    }
    const char *after;
    (void)xstore_reply_take(client, client->where.node, &request.known, len, &after);
    return rc;
}

/* ---- get --------------------------------------------------------------------------------------------------------- */

/* One attempt: 0 with the value; DM_NOT_FOUND; XSTORE_TORN; a failure. */
static int get_once(struct xstore_client *client, unsigned node, uint64_t key, void *value, uint32_t *attempts) {
    struct found found = {0};
    uint32_t refs[XSTORE_SPAN_MAX], links[XSTORE_SPAN_MAX];
    unsigned link_count;
    int rc = xstore_locate(client, node, key, attempts);
    if (rc == XSTORE_BY_CALL) {
        return get_by_call(client, key, false, value);
    }
    DM_TRY(rc);
    for (unsigned i = 0; i < client->where.count; i++) {
        if (!client->where.entries[i].valid) {
            return get_by_call(client, key, true, value);
        }
        refs[i] = client->where.entries[i].leaf;
    }
    DM_TRY(leaves_read(client, refs, client->where.count));
    rc = fetched_search(client, key, &found, links, &link_count);
    if (rc == XSTORE_STALE) {
        entries_invalidate(client);
        rc = speculate(client, key, links, link_count, &found);
    }
    if (rc == XSTORE_STALE) {
        return get_by_call(client, key, true, value);
    }
    return rc == 0 ? value_read(client, key, &found, value) : rc;
}

int xstore_get(void *handle, uint64_t key, void *value) {
    struct xstore_client *client = handle;
    unsigned node = xstore_node_of(client, key);
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_INDEX);
    int rc;
    for (uint32_t attempts = 0;;) {
        rc = get_once(client, node, key, value, &attempts);
        if (rc != XSTORE_TORN) {
            break;
        }
        rc = dm_retry(client->ctx, DM_RETRY_TORN, &attempts);
        if (rc < 0) {
            break;
        }
    }
    dm_phase(client->ctx, before);
    return rc;
}
