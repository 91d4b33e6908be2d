/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans (paper, 4.3: level by level, one read an item). The part of the tree that a scan looks at is a list of slots in
 * order of their keys. Nodes at the front of the list are read and replaced by their slots until the front has leaves
 * only; then those are read, and what they hold is returned.
 *
 * The slots in order come from nodes that this scan has read, as a cached copy may lack what was inserted since. With
 * the first doorbell the scan reads the nodes that the cache leads to, and the leaves that cached copies of them name.
 * So a scan whose path is cached and unchanged takes one round trip, as the authors' does from its cache alone.
 *
 * A scan begins at the deepest node of which there is a copy on the first key's path, and continues at the node above
 * when that is exhausted.
 */
#include <stdlib.h>

#include "smart.h"

enum {
    ITEMS_MAX = 2048,
    NODES_AT_ONCE = 32,
    PREDICTED_MAX = 320,
    DENSITY_ONE = 16, /* the unit of leaves below a node */
    NO_LENGTH = -1,
};

struct item {
    uint64_t word;
    uint64_t low; /* the path of the slot, `depth` bytes of it */
    dm_addr slot; /* null: a node that the cache names */
    unsigned depth;
};

/* What was read along with the first doorbell. */
struct predicted {
    uint64_t word;
    uint32_t offset;
    unsigned slots; /* of a node: how many were read */
};

struct smart_scan {
    struct item *items, *next; /* in order; `next` for making a new list */
    unsigned count;
    bool is_cut; /* the list ends before the part of the tree does */
    struct predicted *predicted;
    unsigned predicted_count;
    uint32_t predicted_bytes;
    struct smart_node *copies; /* of the cache, one a level */
    char *ahead, *buffer;      /* device memory: what was predicted; one batch */
    unsigned density;          /* leaves below a node, in DENSITY_ONE, of the scans before */

    uint64_t first, stop; /* the keys of this part: those from `first` on and below `stop` */
    unsigned cursor;      /* where in ->predicted to look next */
    uint32_t wanted;
    struct ix_found found;
    uint32_t attempts;
};

/* ---- prediction from the cache ----------------------------------------------------------------------------------- */

static struct predicted *predict(struct smart_client *client, uint64_t word, uint32_t bytes, unsigned slots) {
    struct smart_scan *scan = client->scan;
    bytes = (bytes + 7) / 8 * 8;
    if (scan->predicted_count == PREDICTED_MAX || scan->predicted_bytes + bytes > SMART_SCAN_BYTES) {
        return NULL;
    }
    struct predicted *predicted = &scan->predicted[scan->predicted_count++];
    *predicted = (struct predicted){word, scan->predicted_bytes, slots};
    scan->predicted_bytes += bytes;
    return predicted;
}

/* Posts the reads of the copy of that path, and of what its slots from key `from` on lead to. Adds the leaves to
 * *leaves. False: what follows is not known. */
static bool copy_predict(struct smart_client *client, uint64_t path, unsigned length, uint64_t from, uint32_t *leaves) {
    struct smart_scan *scan = client->scan;
    struct smart_node *copy = &scan->copies[length];
    dm_addr addr;
    if (!smart_cache_copy(client->cn->cache, client->ctx, path, length, copy, &addr)) {
        return false;
    }
    unsigned type = smart_header_type(copy->header);
    unsigned capacity = smart_capacity(&client->cn->layout, type);
    struct predicted *node = predict(client, smart_slot_node(0, type, addr), smart_node_read_bytes(capacity), capacity);
    if (!node) {
        return false;
    }
    if (client->cn->params->check_scan) {
        dm_post_read(client->ctx, addr, scan->ahead + node->offset, smart_node_read_bytes(capacity));
    } else {
        /* Known to be wrong: the copy instead of the node. */
        copy->header = smart_header(path, length, 0, type);
        memcpy(scan->ahead + node->offset, copy, smart_node_read_bytes(capacity));
    }
    uint64_t by_byte[SMART_SLOTS] = {0};
    for (unsigned i = 0; i < capacity; i++) {
        if (smart_slot_has_child(copy->slots[i])) {
            by_byte[smart_slot_byte(copy->slots[i])] = copy->slots[i];
        }
    }
    smart_slots_charge(client, 2 * capacity + SMART_SLOTS);
    for (unsigned byte = 0; byte < SMART_SLOTS && *leaves < scan->wanted; byte++) {
        uint64_t word = by_byte[byte];
        uint64_t low = smart_path_with(smart_low(path, length), length, byte);
        if (word == 0 || smart_high(low, length + 1) < from) {
            continue;
        }
        if (smart_slot_is_leaf(word)) {
            struct predicted *leaf = predict(client, word, client->cn->layout.leaf_bytes, 0);
            if (!leaf) {
                return false;
            }
            dm_post_read(client->ctx, smart_slot_addr(word), scan->ahead + leaf->offset, client->cn->layout.leaf_bytes);
            ++*leaves;
        } else if (length + 1 == SMART_KEY_BYTES || !copy_predict(client, low, length + 1, from, leaves)) {
            return false;
        }
    }
    return true;
}

static const struct predicted *predicted_find(struct smart_scan *scan, uint64_t word) {
    for (unsigned n = 0; n < scan->predicted_count; n++) {
        unsigned i = (scan->cursor + n) % scan->predicted_count;
        const struct predicted *predicted = &scan->predicted[i];
        bool is_same =
            smart_slot_is_leaf(word)
                ? smart_slot_same_child(predicted->word, word)
                : predicted->slots > 0 && dm_addr_equal(smart_slot_addr(predicted->word), smart_slot_addr(word));
        if (is_same) {
            scan->cursor = i + 1;
            return predicted;
        }
    }
    return NULL;
}

/* Reads what the cache knows from `first` on, beginning with the copy of that length. [waits] */
static int predict_from(struct smart_client *client, uint64_t first, int length) {
    struct smart_scan *scan = client->scan;
    uint32_t leaves = 0;
    uint64_t from = first;
    scan->predicted_count = 0;
    scan->predicted_bytes = 0;
    for (; length >= 0 && leaves < scan->wanted; length--) {
        struct smart_cache_hit hit;
        if (!smart_cache_path(client->cn->cache, client->ctx, from, (unsigned)length, &hit)) {
            break;
        }
        length = (int)hit.length;
        if (!copy_predict(client, from, hit.length, from, &leaves)) {
            break;
        }
        uint64_t end = smart_high(from, hit.length);
        if (end == UINT64_MAX) {
            break;
        }
        from = end + 1;
    }
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, scan->predicted_count);
    return dm_commit(client->ctx);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* Begins the list at the deepest node on the path of `first` with at most `longest` bytes of path. *length is that of
 * its path; NO_LENGTH: the root's slot. [waits] */
static int list_begin(struct smart_client *client, uint64_t first, int longest, int *length) {
    struct smart_scan *scan = client->scan;
    struct smart_cache_hit hit;
    scan->first = first;
    scan->count = 1;
    scan->is_cut = false;
    if (longest >= 0 && smart_cache_path(client->cn->cache, client->ctx, first, (unsigned)longest, &hit)) {
        *length = (int)hit.length;
        scan->items[0] = (struct item){hit.word, smart_low(first, hit.length), DM_NULL, hit.length};
        uint64_t last = smart_high(first, hit.length);
        scan->stop = last == UINT64_MAX ? last : last + 1;
        return predicted_find(scan, hit.word) ? 0 : predict_from(client, first, *length);
    }
    *length = NO_LENGTH;
    struct smart_at at = {0};
    DM_TRY(smart_start(client, first, NO_LENGTH, &at));
    scan->items[0] = (struct item){at.word, 0, at.slot, 0};
    scan->stop = UINT64_MAX;
    return 0;
}

static void item_add(struct smart_scan *scan, unsigned *count, struct item item) {
    if (*count < ITEMS_MAX) {
        scan->next[(*count)++] = item;
    } else if (item.low < scan->stop) {
        scan->is_cut = true;
        scan->stop = item.low;
    }
}

/* Adds the slots of a node in order of their bytes, without those before the scan. */
static void slots_add(struct smart_client *client, const struct smart_node *node, unsigned capacity, dm_addr addr,
                      uint64_t path, unsigned *count) {
    struct smart_scan *scan = client->scan;
    unsigned branch = smart_header_branch(node->header);
    uint16_t by_byte[SMART_SLOTS] = {0};
    for (unsigned i = 0; i < capacity; i++) {
        if (!smart_slot_is_vacant(node->slots[i]) && smart_slot_kind_of(node->slots[i]) != SMART_KIND_CLOSED) {
            by_byte[smart_slot_byte(node->slots[i])] = (uint16_t)(i + 1);
        }
    }
    smart_slots_charge(client, 2 * capacity + SMART_SLOTS);
    for (unsigned byte = 0; byte < SMART_SLOTS; byte++) {
        uint64_t low = smart_path_with(path, branch, byte);
        if (by_byte[byte] != 0 && smart_high(low, branch + 1) >= scan->first) {
            unsigned i = by_byte[byte] - 1u;
            item_add(scan, count, (struct item){node->slots[i], low, smart_slot_at(addr, i), branch + 1});
        }
    }
}

enum expanded { REPLACED, TOO_SHORT, NOT_A_NODE };

/* Replaces a node by its slots. TOO_SHORT: it has a larger type than its slot stated, which item->word has now;
 * NOT_A_NODE: it is not what the slot states, or is being taken out. */
static enum expanded node_expand(struct smart_client *client, struct item *item, const struct smart_node *node,
                                 unsigned slots, unsigned *count) {
    unsigned type = smart_header_type(node->header);
    unsigned capacity = smart_capacity(&client->cn->layout, type);
    if (!smart_header_plausible(node->header) || capacity == 0 || smart_header_depth(node->header) > item->depth) {
        return NOT_A_NODE;
    }
    dm_addr addr = smart_slot_addr(item->word);
    uint64_t path = smart_header_path(node->header, item->low);
    if (!dm_addr_is_null(item->slot) && capacity <= slots && client->cn->params->check_scan) {
        smart_keep(client, item->low, addr, node);
    }
    if (capacity > slots) {
        client->counts[SMART_TYPE_SECOND]++;
        item->word = smart_slot_with_type(item->word, type);
        return TOO_SHORT;
    }
    slots_add(client, node, capacity, addr, path, count);
    return REPLACED;
}

/* Reads the slot of an item again, which led to something that is not there any more. SMART_AGAIN: the item has no
 * slot. [waits] */
static int item_refresh(struct smart_client *client, struct item *item, enum dm_retry cause) {
    struct smart_scan *scan = client->scan;
    client->counts[SMART_SCAN_AGAIN]++;
    scan->predicted_count = 0; /* what was read with the first doorbell is old */
    DM_TRY(ix_retry(client->ctx, cause, &scan->attempts, 0));
    if (dm_addr_is_null(item->slot)) {
        return SMART_AGAIN;
    }
    DM_TRY(dm_read(client->ctx, item->slot, client->olds, sizeof(uint64_t)));
    item->word = client->olds[0];
    return 0;
}

/* Reads the chosen nodes and makes the new list. *bad is the item that could not be replaced; ITEMS_MAX: all could.
 * [waits] */
static int nodes_replace(struct smart_client *client, const unsigned *chosen, unsigned chosen_count, unsigned *bad) {
    struct smart_scan *scan = client->scan;
    const struct smart_node *nodes[NODES_AT_ONCE];
    unsigned slots[NODES_AT_ONCE];
    uint32_t offset = 0;
    for (unsigned n = 0; n < chosen_count; n++) {
        uint64_t word = scan->items[chosen[n]].word;
        const struct predicted *predicted = predicted_find(scan, word);
        slots[n] = smart_capacity(&client->cn->layout, smart_slot_type(word));
        if (predicted && predicted->slots >= slots[n]) {
            slots[n] = predicted->slots;
            nodes[n] = (const struct smart_node *)(const void *)(scan->ahead + predicted->offset);
            continue;
        }
        nodes[n] = (const struct smart_node *)(const void *)(scan->buffer + offset);
        dm_post_read(client->ctx, smart_slot_addr(word), scan->buffer + offset, smart_node_read_bytes(slots[n]));
        offset += smart_node_read_bytes(slots[n]);
    }
    DM_TRY(dm_commit(client->ctx));
    unsigned count = 0;
    unsigned n = 0;
    *bad = ITEMS_MAX;
    for (unsigned i = 0; i < scan->count; i++) {
        if (n == chosen_count || i != chosen[n]) {
            item_add(scan, &count, scan->items[i]);
            continue;
        }
        unsigned before = count;
        enum expanded expanded = node_expand(client, &scan->items[i], nodes[n], slots[n], &count);
        if (expanded != REPLACED) {
            *bad = expanded == NOT_A_NODE && *bad == ITEMS_MAX ? before : *bad;
            item_add(scan, &count, scan->items[i]);
        } else {
            int below = (int)((count - before) * DENSITY_ONE);
            scan->density = (unsigned)((int)scan->density + (below - (int)scan->density) / 4);
        }
        n++;
    }
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, count);
    struct item *items = scan->items;
    scan->items = scan->next;
    scan->next = items;
    scan->count = count;
    return 0;
}

/* Cuts the list before an item that has to be looked for again. */
static void list_cut(struct smart_scan *scan, unsigned i) {
    scan->is_cut = true;
    scan->stop = scan->items[i].low;
    scan->count = i;
}

/* Replaces nodes until the list begins with leaves: as many as are wanted, or all. SMART_AGAIN: the list cannot be
 * used. [waits] */
static int list_expand(struct smart_client *client) {
    struct smart_scan *scan = client->scan;
    for (;;) {
        unsigned chosen[NODES_AT_ONCE];
        unsigned chosen_count = 0;
        uint64_t expected = 0;
        uint64_t wanted = (uint64_t)(scan->wanted - scan->found.count) * DENSITY_ONE;
        uint32_t bytes = 0;
        bool is_odd = false; /* the first item cannot be a node */
        for (unsigned i = 0; i < scan->count && expected < wanted && chosen_count < NODES_AT_ONCE; i++) {
            uint64_t word = scan->items[i].word;
            if (smart_slot_is_frozen(word)) {
                list_cut(scan, i);
                break;
            }
            if (!smart_slot_is_node(word)) {
                expected += smart_slot_is_leaf(word) ? DENSITY_ONE : 0;
                continue;
            }
            unsigned capacity = smart_capacity(&client->cn->layout, smart_slot_type(word));
            bytes += smart_node_read_bytes(capacity);
            is_odd = capacity == 0 || !dm_addr_valid(client->ctx, smart_slot_addr(word), SMART_NODE_BYTES);
            if (is_odd || bytes > SMART_SCAN_BYTES) {
                is_odd = is_odd && i == 0;
                break;
            }
            expected += scan->density;
            chosen[chosen_count++] = i;
        }
        if (is_odd) {
            int rc = item_refresh(client, &scan->items[0], DM_RETRY_STALE);
            if (rc != 0) {
                return rc;
            }
            continue;
        }
        if (chosen_count == 0) {
            return 0;
        }
        unsigned bad;
        DM_TRY(nodes_replace(client, chosen, chosen_count, &bad));
        if (bad < scan->count) {
            int rc = item_refresh(client, &scan->items[bad], DM_RETRY_STALE);
            if (rc != 0) {
                return rc;
            }
        }
    }
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

/* Adds the pair of a leaf. SMART_AGAIN: the slot has to be read again; DM_NOT_FOUND: the leaf. `settled`: the slot has
 * been read since and leads to the leaf, so what it holds counts though another client has claimed it (lease.c). */
static int leaf_add(struct smart_client *client, const struct item *item, const char *leaf, bool settled) {
    struct smart_scan *scan = client->scan;
    uint64_t word = smart_leaf_word_of(leaf);
    uint64_t key = smart_leaf_key(leaf);
    smart_leaf_charge(client);
    enum smart_state state = smart_word_state(word);
    if (smart_word_stamp(word) != smart_slot_stamp(item->word) || (state == SMART_REPLACED && !settled)) {
        return SMART_AGAIN;
    }
    if (client->cn->params->check_sum && !smart_leaf_consistent(&client->cn->layout, leaf)) {
        client->counts[SMART_TORN_LEAF]++;
        return DM_NOT_FOUND;
    }
    if (state != SMART_DELETED && key >= scan->first && key < scan->stop) {
        ix_found_add(&scan->found, key, leaf + SMART_LEAF_VALUE);
    }
    return 0;
}

/* Reads the slot of the first item again, which led to that leaf. [waits] */
static int slot_look(struct smart_client *client, const char *leaf) {
    struct smart_scan *scan = client->scan;
    uint64_t seen = scan->items[0].word;
    int rc = item_refresh(client, &scan->items[0], DM_RETRY_STALE);
    if (rc != 0 || !smart_has_leases(client) || scan->items[0].word != seen ||
        leaf_add(client, &scan->items[0], leaf, true) != 0) {
        return rc;
    }
    memmove(scan->items, scan->items + 1, --scan->count * sizeof(*scan->items));
    return 0;
}

/* Reads the leaves at the front of the list and adds their pairs. [waits] */
static int leaves_take(struct smart_client *client) {
    struct smart_scan *scan = client->scan;
    uint32_t leaf_bytes = client->cn->layout.leaf_bytes;
    const char *leaves[SMART_SCAN_BATCH_MAX];
    unsigned count = 0;
    uint32_t most = scan->wanted - scan->found.count;
    most = most < client->cn->scan_batch ? most : client->cn->scan_batch;
    for (; count < scan->count && count < most && !smart_slot_is_node(scan->items[count].word) &&
           !smart_slot_is_frozen(scan->items[count].word);
         count++) {
        uint64_t word = scan->items[count].word;
        leaves[count] = NULL;
        if (!smart_slot_has_child(word) || !dm_addr_valid(client->ctx, smart_slot_addr(word), leaf_bytes)) {
            continue;
        }
        const struct predicted *predicted = predicted_find(scan, word);
        leaves[count] = predicted ? scan->ahead + predicted->offset : scan->buffer + count * leaf_bytes;
        if (!predicted) {
            dm_post_read(client->ctx, smart_slot_addr(word), scan->buffer + count * leaf_bytes, leaf_bytes);
        }
    }
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, count);
    DM_TRY(dm_commit(client->ctx));
    if (ix_found_full(&scan->found, count)) {
        DM_TRY(ix_found_complete(&scan->found, smart_get, client));
    }
    unsigned done = 0;
    int rc = 0;
    while (done < count && rc == 0) {
        rc = leaves[done] ? leaf_add(client, &scan->items[done], leaves[done], false) : 0;
        done += rc == 0;
    }
    const char *leaf = done < count ? leaves[done] : NULL;
    memmove(scan->items, scan->items + done, (scan->count - done) * sizeof(*scan->items));
    scan->count -= done;
    if (rc == 0) {
        return 0;
    }
    if (rc == SMART_AGAIN) {
        return slot_look(client, leaf);
    }
    scan->predicted_count = 0;
    return ix_retry(client->ctx, DM_RETRY_TORN, &scan->attempts, 0);
}

/* ---- the scan ---------------------------------------------------------------------------------------------------- */

/* Takes the pairs of one part of the tree. SMART_AGAIN: its node is not in the tree any more. [waits] */
static int part_scan(struct smart_client *client) {
    struct smart_scan *scan = client->scan;
    while (scan->count > 0 && !ix_found_all(&scan->found)) {
        int rc = list_expand(client);
        rc = rc == 0 ? leaves_take(client) : rc;
        if (rc != 0) {
            return rc;
        }
        if (ix_found_all(&scan->found)) {
            /* Of indirect values some may be gone with their keys, and the scan continues. */
            DM_TRY(ix_found_complete(&scan->found, smart_get, client));
        }
    }
    return 0;
}

int smart_scan(void *handle, uint64_t first, uint32_t count, uint64_t *keys, void *values, uint32_t *found) {
    struct smart_client *client = handle;
    struct smart_scan *scan = client->scan;
    int longest = SMART_DEEPEST;
    scan->wanted = count;
    scan->attempts = 0;
    scan->predicted_count = 0;
    scan->found = ix_found_begin(client->indirect, client->cn->shape->value_bytes, count, keys, values);
    while (!ix_found_all(&scan->found)) {
        int length;
        DM_TRY(list_begin(client, first, longest, &length));
        int rc = part_scan(client);
        if (rc < 0) {
            return rc;
        }
        if (rc == SMART_AGAIN) {
            /* The copy was of a node that is out of the tree. */
            scan->predicted_count = 0;
            smart_cache_drop(client->cn->cache, first, (unsigned)length, smart_slot_addr(scan->items[0].word));
            continue;
        }
        if (ix_found_all(&scan->found) || scan->stop == UINT64_MAX) {
            break;
        }
        longest = scan->is_cut ? SMART_DEEPEST : length - 1;
        if (scan->stop > first) {
            first = scan->stop;
        } else {
            /* The first slot is frozen. */
            client->counts[SMART_FROZEN_SLOT]++;
            scan->predicted_count = 0;
            DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, &scan->attempts, 0));
        }
    }
    DM_TRY(ix_found_complete(&scan->found, smart_get, client));
    *found = scan->found.count;
    dm_charge(client->ctx, DM_WORK_CACHE_PROBE, (uint32_t)client->cn->params->scan_probes * *found);
    return 0;
}

int smart_scan_open(struct smart_client *client) {
    struct smart_scan *scan = calloc(1, sizeof(*scan));
    if (!scan) {
        return DM_ERR_NO_MEMORY;
    }
    client->scan = scan;
    scan->density = DENSITY_ONE;
    /* Lists are not set to zero: most of them is not used in most runs, and is not in memory then. */
    scan->items = malloc(ITEMS_MAX * sizeof(*scan->items));
    scan->next = malloc(ITEMS_MAX * sizeof(*scan->next));
    scan->predicted = malloc(PREDICTED_MAX * sizeof(*scan->predicted));
    scan->copies = calloc(SMART_KEY_BYTES, sizeof(*scan->copies));
    scan->ahead = dm_local_alloc(client->ctx, SMART_SCAN_BYTES);
    scan->buffer = dm_local_alloc(client->ctx, SMART_SCAN_BYTES);
    return scan->items && scan->next && scan->predicted && scan->copies && scan->ahead && scan->buffer
               ? 0
               : DM_ERR_NO_MEMORY;
}

void smart_scan_close(struct smart_client *client) {
    if (client->scan) {
        free(client->scan->items);
        free(client->scan->next);
        free(client->scan->predicted);
        free(client->scan->copies);
        free(client->scan);
        client->scan = NULL;
    }
}
