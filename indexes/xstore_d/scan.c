/* SPDX-License-Identifier: Apache-2.0
 *
 * Scan (XStore, section 5.2.2): a look-up of the first key's leaf, then complete leaves in the order of the table, many
 * with one doorbell. The leaves show whether the table is current: a leaf's right link must name the next one. Where it
 * does not, a leaf was split since training, and the client asks the memory node for the chain from there on.
 *
 * No pair is missed or returned twice: a key only moves to a new leaf directly to the right of its own. A leaf that was
 * read before its split has all its keys and a link past the new leaf; one that was read after the split has a link to
 * the new leaf. So following the links as they were read visits every key once, whenever the leaves are read.
 */
#include "locate.h"

struct scan {
    struct xstore_client *client;
    uint64_t first;
    uint32_t count, found, value_bytes;
    uint64_t *keys;
    char *values;
    uint32_t attempts;

    uint32_t expected;              /* the next leaf of the chain; 0: the memory node's last leaf is done */
    uint32_t list[XSTORE_WALK_MAX]; /* leaves that should follow, `expected` first */
    unsigned listed;
    bool has_table;      /* the list is from the table of client->where */
    uint32_t table_next; /* the first leaf of that table after the list */
};

/* Leaves that probably hold the missing pairs: most leaves are at least half full. */
static uint32_t leaves_wanted(const struct scan *scan) {
    uint32_t each = scan->client->cn->layout.slots / 2, leaves = (scan->count - scan->found) / each + 2;
    return leaves < XSTORE_WALK_MAX ? leaves : XSTORE_WALK_MAX;
}

/* ---- which leaves ------------------------------------------------------------------------------------------------ */

/* Asks the memory node for the chain from ->expected on, or, if that is 0, from the leaf of `key` on. */
static int list_by_call(struct scan *scan, uint64_t key, bool stale) {
    struct xstore_client *client = scan->client;
    struct xstore_walk_request request = {
        .key = key, .known = xstore_known_of(client, stale), .from = scan->expected, .wanted = leaves_wanted(scan)};
    uint32_t len = DM_CALL_MAX;
    xstore_count(client, XSTORE_FALLBACK_COUNT);
    memcpy(client->request, &request, sizeof(request));
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_CALL);
    unsigned node = client->where.node;
    int rc = dm_call(client->ctx, node, XSTORE_WALK, client->request, sizeof(request), client->reply, &len);
    dm_phase(client->ctx, before);
    DM_TRY(rc);
    struct xstore_reply reply;
    memcpy(&reply, client->reply, sizeof(reply));
    const char *at;
    DM_TRY(xstore_reply_take(client, node, &request.known, len, &at));
    scan->has_table = false;
    scan->listed = reply.items <= XSTORE_WALK_MAX ? reply.items : 0;
    if (scan->listed == 0) {
        return DM_ERR_CORRUPT;
    }
    memcpy(scan->list, at, scan->listed * sizeof(*scan->list));
    scan->expected = scan->list[0];
    return 0;
}

/* Adds leaves of the tables from ->table_next on, until they probably hold enough pairs. */
static int list_by_table(struct scan *scan) {
    struct xstore_client *client = scan->client;
    uint32_t wanted = scan->count - scan->found, pairs = 0;
    while (scan->listed < client->scan_batch && pairs < wanted + client->cn->layout.slots) {
        struct xstore_entry entries[XSTORE_SCAN_BATCH_MAX];
        uint32_t got;
        uint32_t capacity = client->scan_batch - scan->listed;
        int rc = xstore_table(client, scan->table_next, capacity, entries, &got);
        dm_charge(client->ctx, DM_WORK_KEY_COMPARE, rc == 0 ? got : 0);
        for (uint32_t i = 0; rc == 0 && i < got && pairs < wanted + client->cn->layout.slots; i++) {
            scan->table_next++;
            if (scan->listed == 0 || scan->list[scan->listed - 1] != entries[i].leaf) {
                scan->list[scan->listed++] = entries[i].leaf;
                pairs += entries[i].count;
            }
        }
        if (rc == 0 && scan->table_next == client->where.record.leaves) {
            rc = xstore_next_model(client);
            scan->table_next = 0; /* its first leaf may be the last one of the previous table */
        }
        if (rc != 0) {
            scan->has_table = false;
            return rc < 0 ? rc : 0;
        }
    }
    return 0;
}

/* Finds the last predicted leaf that has a key not above `key`: leaves before it have only smaller keys. */
static int start_find(struct scan *scan, uint64_t key) {
    struct xstore_client *client = scan->client;
    const struct xstore_where *where = &client->where;
    scan->has_table = true;
    scan->table_next = where->first;
    if (client->cn->params->fetch == XSTORE_FETCH_LEAF) {
        return 0;
    }
    for (uint32_t i = 0; i < where->count; i++) {
        dm_addr addr = xstore_addr(where->node, where->entries[i].leaf);
        dm_post_read(client->ctx, addr, xstore_leaf_words(client, i), client->cn->layout.keys_bytes);
    }
    DM_TRY(dm_commit(client->ctx));
    dm_charge(client->ctx, DM_WORK_LINE_COPY, where->count * (client->cn->layout.keys_bytes / DM_LINE + 1));
    for (uint32_t i = 0; i < where->count; i++) {
        const uint64_t *words = xstore_leaf_words(client, i);
        bool is_consistent = xstore_fetched_consistent(client, i, where->entries[i].leaf);
        dm_charge(client->ctx, DM_WORK_KEY_COMPARE, xstore_head_of(words[1]).count);
        for (unsigned k = 0; is_consistent && k < xstore_head_of(words[1]).count; k++) {
            scan->table_next = words[XSTORE_HEAD_WORDS + k] <= key ? where->first + i : scan->table_next;
        }
    }
    return 0;
}

/* Finds the leaf in which the memory node's part of the scan begins. */
static int scan_begin(struct scan *scan, unsigned node, uint64_t key) {
    scan->listed = 0;
    scan->expected = 0;
    scan->has_table = false;
    int rc = xstore_locate(scan->client, node, key, &scan->attempts);
    if (rc == XSTORE_BY_CALL) {
        return list_by_call(scan, key, false);
    }
    DM_TRY(rc);
    DM_TRY(start_find(scan, key));
    DM_TRY(list_by_table(scan));
    if (scan->listed == 0) {
        return list_by_call(scan, key, false);
    }
    scan->expected = scan->list[0];
    return 0;
}

/* Makes the list begin with the next leaf of the chain. */
static int list_ensure(struct scan *scan) {
    if (scan->listed == 0 && scan->has_table) {
        DM_TRY(list_by_table(scan));
        if (scan->listed > 1 && scan->list[0] != scan->expected && scan->list[1] == scan->expected) {
            scan->listed--; /* a leaf in the tables of two sub-models, already done */
            memmove(scan->list, scan->list + 1, scan->listed * sizeof(*scan->list));
        }
    }
    if (scan->listed > 0 && scan->list[0] == scan->expected) {
        return 0;
    }
    bool is_gap = scan->listed > 0;
    scan->client->counts[XSTORE_SCAN_GAP_COUNT] += is_gap;
    if (is_gap) {
        DM_TRY(dm_retry(scan->client->ctx, DM_RETRY_MOVED, &scan->attempts));
    }
    return list_by_call(scan, scan->first, is_gap);
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

static bool value_take(const struct scan *scan, const uint64_t *leaf, unsigned slot, void *value) {
    const struct xstore_layout *layout = &scan->client->cn->layout;
    const uint64_t *words = leaf + xstore_slot_offset(layout, slot) / 8;
    uint64_t key = leaf[XSTORE_HEAD_WORDS + slot];
    if (layout->block_bytes > 0) {
        memcpy(value, words + 1, sizeof(*words)); /* the block's ref; blocks_read exchanges it for the value */
    } else {
        xstore_value_copy(layout, words + 1, value);
    }
    return !scan->client->cn->params->value_check ||
           words[0] == xstore_value_check(key, words + 1, layout->value_words);
}

/* Each key of a leaf is compared with the first one and with its neighbour in the order; each value is copied and
 * checked, its key hashed for that. */
static void leaf_charge(const struct scan *scan, unsigned keys, unsigned values) {
    const struct xstore_layout *layout = &scan->client->cn->layout;
    dm_charge(scan->client->ctx, DM_WORK_KEY_COMPARE, 2 * keys);
    dm_charge(scan->client->ctx, DM_WORK_LINE_COPY, values * (layout->slot_bytes / DM_LINE + 1));
    if (scan->client->cn->params->value_check) {
        dm_charge(scan->client->ctx, DM_WORK_HASH, values * ix_check_hashes(layout->value_words));
    }
}

/* Reads the values of pairs from .. to - 1 of the scan, whose refs are in `refs`, a group with each doorbell. 0;
 * XSTORE_TORN: one is not the value of its key. */
static int blocks_read(struct scan *scan, const uint64_t *refs, uint32_t from, uint32_t to) {
    struct xstore_client *client = scan->client;
    const struct xstore_layout *layout = &client->cn->layout;
    uint32_t most = DM_CALL_MAX / layout->block_bytes;
    for (uint32_t at = from, end = from; at < to; at = end) {
        end = to - at < most ? to : at + most;
        for (uint32_t i = at; i < end; i++) {
            dm_addr addr = xstore_addr(client->where.node, refs[i - from]);
            if (refs[i - from] > UINT32_MAX || !dm_addr_valid(client->ctx, addr, layout->block_bytes)) {
                return XSTORE_TORN;
            }
            dm_post_read(client->ctx, addr, client->reply + (size_t)(i - at) * layout->block_bytes,
                         layout->block_bytes);
        }
        DM_TRY(dm_commit(client->ctx));
        for (uint32_t i = at; i < end; i++) {
            uint64_t words[1 + XSTORE_VALUE_MAX / 8];
            memcpy(words, client->reply + (size_t)(i - at) * layout->block_bytes, layout->block_bytes);
            if (client->cn->params->value_check && !xstore_block_consistent(layout, scan->keys[i], words)) {
                return XSTORE_TORN;
            }
            xstore_value_copy(layout, words + 1, scan->values + (size_t)i * scan->value_bytes);
        }
    }
    return 0;
}

/* Takes the leaf's pairs from the first key of the scan on. XSTORE_TORN if the leaf, or a value, is torn: then nothing
 * is taken. */
static int leaf_take(struct scan *scan, unsigned fetched, uint32_t ref) {
    const uint64_t *leaf = xstore_leaf_words(scan->client, fetched), *keys = leaf + XSTORE_HEAD_WORDS;
    if (!xstore_fetched_consistent(scan->client, fetched, ref)) {
        return XSTORE_TORN;
    }
    struct xstore_head head = xstore_head_of(leaf[1]);
    unsigned order[XSTORE_SLOTS_MAX], count = 0;
    for (unsigned i = 0; i < head.count; i++) {
        unsigned at = count;
        if (keys[i] < scan->first) {
            continue;
        }
        for (; at > 0 && keys[order[at - 1]] > keys[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
        count++;
    }
    uint32_t found = scan->found;
    bool is_indirect = scan->client->cn->layout.block_bytes > 0;
    uint64_t refs[XSTORE_SLOTS_MAX];
    for (unsigned i = 0; i < count && found < scan->count; i++, found++) {
        void *value = is_indirect ? (char *)&refs[i] : scan->values + (size_t)found * scan->value_bytes;
        if (!value_take(scan, leaf, order[i], value)) {
            return XSTORE_TORN;
        }
        scan->keys[found] = keys[order[i]];
    }
    if (is_indirect) {
        int rc = blocks_read(scan, refs, scan->found, found);
        if (rc != 0) {
            return rc;
        }
    }
    leaf_charge(scan, head.count, found - scan->found);
    scan->found = found;
    scan->expected = head.next;
    return 0;
}

static void list_shift(struct scan *scan, unsigned through) {
    scan->listed -= through;
    memmove(scan->list, scan->list + through, scan->listed * sizeof(*scan->list));
}

/* Reads the leaves of the list, up to a batch, and takes the pairs of those that follow one another. */
static int batch_take(struct scan *scan) {
    struct xstore_client *client = scan->client;
    unsigned count = scan->listed < client->scan_batch ? scan->listed : client->scan_batch, through = 0;
    for (unsigned i = 0; i < count; i++) {
        dm_addr addr = xstore_addr(client->where.node, scan->list[i]);
        if (!dm_addr_valid(client->ctx, addr, client->cn->layout.leaf_bytes)) {
            return DM_ERR_CORRUPT;
        }
        dm_post_read(client->ctx, addr, xstore_leaf_words(client, i), client->cn->layout.read_bytes);
    }
    DM_TRY(dm_commit(client->ctx));
    dm_charge(client->ctx, DM_WORK_LINE_COPY, count * (client->cn->layout.read_bytes / DM_LINE + 1));
    while (through < count && scan->list[through] == scan->expected && scan->found < scan->count) {
        int rc = leaf_take(scan, through, scan->list[through]);
        DM_TRY(rc);
        if (rc == XSTORE_TORN) {
            xstore_count(client, XSTORE_TORN_LEAF_COUNT);
            DM_TRY(dm_retry(client->ctx, DM_RETRY_TORN, &scan->attempts));
            break;
        }
        through++;
    }
    list_shift(scan, through);
    return 0;
}

static int node_scan(struct scan *scan, unsigned node, uint64_t key) {
    DM_TRY(scan_begin(scan, node, key));
    while (scan->expected != 0 && scan->found < scan->count) {
        DM_TRY(list_ensure(scan));
        DM_TRY(batch_take(scan));
    }
    return 0;
}

int xstore_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct xstore_client *client = handle;
    unsigned nodes = client->cn->shape->topology->mns;
    struct scan scan = {.client = client,
                        .first = first,
                        .count = count,
                        .value_bytes = client->cn->layout.user_bytes,
                        .keys = keys,
                        .values = values};
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_INDEX);
    int rc = 0;
    for (unsigned node = xstore_node_of(client, first); node < nodes && scan.found < count && rc >= 0; node++) {
        uint64_t key = client->ranges.borders[node] > first ? client->ranges.borders[node] : first;
        rc = node_scan(&scan, node, key);
    }
    dm_phase(client->ctx, before);
    *found = rc < 0 ? 0 : scan.found;
    return rc < 0 ? rc : 0;
}
