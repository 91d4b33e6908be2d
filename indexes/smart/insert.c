/* SPDX-License-Identifier: Apache-2.0
 *
 * Insert (paper, 4.1 and 4.3): without locks. A leaf is written, and a compare-and-swap of one slot links it:
 *
 *  - a slot without a child, or whose leaf was deleted, gets the leaf;
 *  - a node without a slot for the key gets one: the first that is free, in order. Behind the slots that count for the
 *    node's type, the key is only inserted when a larger type covers its slot (type_raise);
 *  - a slot whose leaf has another key gets a new node with both leaves (leaf split), two for a common prefix of seven
 *    bytes;
 *  - a slot whose node has a prefix that is not the key's gets a new node with that node and the leaf (prefix split).
 *
 * Reverse pointers and the header of the node that is deeper now follow, not waited for.
 */
#include "smart.h"

struct insert {
    struct smart_client *client;
    struct smart_fresh fresh;
    struct smart_at at;
};

/* The slot has another content than expected: continues there. Returns SMART_AGAIN or a failure. */
static int conflict(struct insert *insert) {
    struct smart_client *client = insert->client;
    client->counts[SMART_SLOT_CONFLICT]++;
    insert->at.word = client->olds[0];
    insert->at.cached = false;
    int rc = dm_retry(client->ctx, DM_RETRY_CAS, &insert->at.attempts);
    return rc < 0 ? rc : SMART_AGAIN;
}

/* Puts the leaf into the slot, which has no child or a deleted one. [waits] */
static int slot_take(struct insert *insert) {
    struct smart_at *at = &insert->at;
    int rc = smart_fresh_link(insert->client, &insert->fresh, at->slot, at->word, smart_slot_byte(at->word));
    insert->client->counts[SMART_SLOT_REUSE] += rc == 0 && at->word != 0;
    return rc == SMART_AGAIN ? conflict(insert) : rc;
}

/* ---- a further slot of a node ------------------------------------------------------------------------------------ */

/* Gives the node a type that covers slot `index`, and its own slot too. 0; SMART_AGAIN: the node is out of the tree; or
 * a failure. [waits] */
static int type_raise(struct insert *insert, unsigned index) {
    struct smart_client *client = insert->client;
    struct smart_at *at = &insert->at;
    unsigned want = smart_type_for(&client->cn->layout, index + 1);
    unsigned type = smart_header_type(client->node->header);
    dm_addr header = dm_addr_add(smart_slot_addr(at->word), sizeof(uint64_t));
    bool is_waited = client->cn->params->wait_type;
    client->counts[SMART_TYPE_CHANGE]++;
    if (smart_slot_type(at->word) < want) {
        dm_post_cas(client->ctx, at->slot, at->word, smart_slot_with_type(at->word, want), NULL);
    }
    for (;;) {
        struct dm_mask mask = {(uint64_t)type << 8, SMART_TYPE_MASK, (uint64_t)want << 8, SMART_TYPE_MASK};
        dm_post_masked_cas(client->ctx, header, mask, is_waited ? client->olds : NULL);
        if (!is_waited) {
            return dm_commit_async(client->ctx);
        }
        DM_TRY(dm_commit(client->ctx));
        unsigned old = smart_header_type(client->olds[0]);
        if (old == type || (old >= want && smart_capacity(&client->cn->layout, old) > 0)) {
            return 0;
        }
        if (old == SMART_DEAD) {
            DM_TRY(dm_retry(client->ctx, DM_RETRY_STALE, &at->attempts));
            return SMART_AGAIN;
        }
        /* A node that is being taken out, whose type comes back or is DEAD next; or one that another insert changed. */
        bool is_dying = smart_type_is_dying(old);
        type = is_dying ? old - SMART_DYING : old;
        DM_TRY(ix_retry(client->ctx, is_dying ? DM_RETRY_LOCK : DM_RETRY_CAS, &at->attempts, 0));
    }
}

/* The node is out of the tree, and the leaf is in its slot `index`. If the slot is frozen, another insert had given the
 * node a type that covers it: the key was inserted, and what came after is no concern of this operation. Else it never
 * counted. 0, SMART_AGAIN, or a failure. [waits] */
static int dead_look(struct insert *insert, dm_addr node, unsigned index) {
    struct smart_client *client = insert->client;
    DM_TRY(dm_read(client->ctx, smart_slot_at(node, index), client->olds, sizeof(uint64_t)));
    return smart_slot_is_frozen(client->olds[0]) ? 0 : SMART_AGAIN;
}

/* Continues at the slot of the node, which another insert has taken for the same byte. */
static int slot_follow(struct insert *insert, dm_addr node, unsigned index, unsigned depth) {
    struct smart_at *at = &insert->at;
    at->node = node;
    at->index = index;
    at->slot = smart_slot_at(node, index);
    at->depth = depth;
    return conflict(insert);
}

/* Gives the key a slot in the node that is in client->node. [waits] */
static int node_add(struct insert *insert) {
    struct smart_client *client = insert->client;
    const struct smart_layout *layout = &client->cn->layout;
    const struct smart_node *node = client->node;
    dm_addr addr = smart_slot_addr(insert->at.word);
    unsigned capacity = smart_capacity(layout, smart_header_type(node->header));
    unsigned branch = smart_header_branch(node->header);
    unsigned byte = smart_byte(insert->fresh.key, branch);
    for (unsigned i = 0; i < SMART_SLOTS; i++) {
        if (i < capacity && node->slots[i] != 0) {
            continue;
        }
        int rc = smart_fresh_link(client, &insert->fresh, smart_slot_at(addr, i), 0, byte);
        if (rc < 0) {
            return rc;
        }
        uint64_t old = client->olds[0];
        if (rc == 0 && i < capacity) {
            return 0;
        }
        if (rc == 0) {
            rc = type_raise(insert, i);
            rc = rc == SMART_AGAIN ? dead_look(insert, addr, i) : rc;
            /* After a failure the leaf may or may not be in the tree: its memory is lost. */
            insert->fresh.word = rc < 0 ? 0 : insert->fresh.word;
            return rc;
        }
        if (smart_slot_is_frozen(old)) {
            return slot_follow(insert, addr, i, branch + 1);
        }
        if (smart_slot_has_byte(old, byte)) {
            if (i < capacity) {
                return slot_follow(insert, addr, i, branch + 1);
            }
            /* It counts only under a larger type, so not yet: helps, and reads the node again. */
            client->counts[SMART_SLOT_CONFLICT]++;
            DM_TRY(dm_retry(client->ctx, DM_RETRY_CAS, &insert->at.attempts));
            rc = type_raise(insert, i);
            rc = rc < 0 ? rc : smart_refresh(client, insert->fresh.key, &insert->at);
            return rc < 0 ? rc : SMART_AGAIN;
        }
        client->counts[SMART_SLOT_CONFLICT]++;
        DM_TRY(dm_retry(client->ctx, DM_RETRY_CAS, &insert->at.attempts));
    }
    DM_TRY(smart_refresh(client, insert->fresh.key, &insert->at));
    return SMART_AGAIN;
}

/* ---- a node above ------------------------------------------------------------------------------------------------ */

/* Takes memory for `count` nodes, which are then the last of client->spares. [waits] */
static int nodes_take(struct smart_client *client, unsigned count) {
    while (client->spare_count < count) {
        dm_addr addr;
        DM_TRY(dm_alloc(client->ctx, DM_ANY_NODE, client->cn->layout.node_alloc, client->cn->layout.align, DM_MEM_INNER,
                        &addr));
        client->spares[client->spare_count++] = addr;
    }
    return 0;
}

/* Links new nodes above what the slot leads to and the leaf: their common prefix has `length` bytes from the slot's
 * depth on, and then what is there has `byte`. 0, SMART_AGAIN or a failure. [waits] */
static int nodes_link(struct insert *insert, unsigned length, unsigned byte) {
    struct smart_client *client = insert->client;
    struct smart_at *at = &insert->at;
    uint64_t key = insert->fresh.key;
    unsigned count = length / (SMART_PREFIX_MAX + 1) + 1;
    uint64_t above = at->word;
    dm_addr from = at->slot;
    unsigned depth = at->depth;
    DM_TRY(nodes_take(client, count));
    DM_TRY(smart_fresh_take(client, &insert->fresh));
    dm_addr *nodes = &client->spares[client->spare_count - count];
    for (unsigned n = 0; n < count; n++) {
        struct smart_node *node = &client->made[n];
        bool is_last = n + 1 == count;
        unsigned own = is_last ? length : SMART_PREFIX_MAX;
        memset(node, 0, smart_node_read_bytes(client->cn->layout.capacity[1]));
        node->reverse = from.bits;
        node->header = smart_header(key, depth, own, 1);
        unsigned branch = smart_byte(key, depth + own);
        if (is_last) {
            node->slots[0] = smart_slot_with_byte(above, byte);
            node->slots[1] = smart_slot_with_byte(insert->fresh.word, branch);
        } else {
            node->slots[0] = smart_slot_node(branch, 1, nodes[n + 1]);
        }
        from = smart_slot_at(nodes[n], 0);
        depth += own + 1;
        length -= own + !is_last;
        dm_post_write(client->ctx, nodes[n], node, smart_node_read_bytes(client->cn->layout.capacity[1]));
        dm_charge(client->ctx, DM_WORK_LINE_COPY, 1);
    }
    smart_fresh_post(client, &insert->fresh, smart_slot_at(nodes[count - 1], 1));
    DM_TRY(dm_commit(client->ctx));
    insert->fresh.written = true;
    uint64_t now = smart_slot_node(smart_slot_byte(above), 1, nodes[0]);
    DM_TRY(dm_cas(client->ctx, at->slot, above, now, client->olds));
    if (client->olds[0] != above) {
        return conflict(insert);
    }
    client->spare_count -= count;
    for (unsigned n = 0; n < count; n++) {
        smart_keep(client, key, nodes[n], &client->made[n]);
    }
    client->counts[SMART_PATH_CHAIN] += count > 1;
    dm_post_cas(client->ctx, smart_slot_addr(above), at->slot.bits, from.bits, NULL);
    return 0;
}

/* The slot's leaf, which is in client->leaf, has another key. [waits] */
static int leaf_split(struct insert *insert) {
    uint64_t other = smart_leaf_key(insert->client->leaf);
    unsigned fork = smart_difference(other, insert->fresh.key);
    int rc = nodes_link(insert, fork - insert->at.depth, smart_byte(other, fork));
    if (rc != 0) {
        return rc;
    }
    insert->client->counts[SMART_LEAF_SPLIT]++;
    return dm_commit_async(insert->client->ctx);
}

/* The slot's node, which is in client->node, has another prefix. [waits] */
static int prefix_split(struct insert *insert) {
    struct smart_client *client = insert->client;
    uint64_t key = insert->fresh.key;
    uint64_t header = client->node->header;
    uint64_t below = insert->at.word;
    unsigned i = smart_header_mismatch(header, key);
    unsigned fork = smart_header_depth(header) + i;
    int rc = nodes_link(insert, fork - insert->at.depth, smart_header_byte(header, i));
    if (rc != 0) {
        return rc;
    }
    client->counts[SMART_PREFIX_SPLIT]++;
    if (insert->at.cached && insert->at.depth > 0) {
        smart_cache_drop(client->cn->cache, key, insert->at.depth - 1, insert->at.node);
    }
    uint64_t path = smart_header_path(header, key);
    uint64_t deeper = smart_header(path, fork + 1, smart_header_branch(header) - fork - 1, 0);
    dm_post_masked_cas(client->ctx, dm_addr_add(smart_slot_addr(below), sizeof(uint64_t)),
                       (struct dm_mask){header, ~SMART_TYPE_MASK, deeper, ~SMART_TYPE_MASK}, NULL);
    return dm_commit_async(client->ctx);
}

int smart_insert(void *handle, uint64_t key, const void *value) {
    struct smart_client *client = handle;
    struct insert insert = {.client = client, .fresh = {.key = key, .value = value}};
    DM_TRY(smart_start(client, key, SMART_DEEPEST, &insert.at));
    int rc;
    do {
        enum smart_found found;
        rc = smart_descend(client, key, &insert.at, &found);
        if (rc != 0) {
            break;
        }
        if (found == SMART_FOUND_VACANT) {
            rc = slot_take(&insert);
        } else if (found == SMART_FOUND_NONE) {
            rc = node_add(&insert);
        } else if (found == SMART_FOUND_PREFIX) {
            rc = prefix_split(&insert);
        } else {
            rc = smart_leaf_key(client->leaf) == key ? DM_EXISTS : leaf_split(&insert);
        }
        if (rc == 0) {
            return 0;
        }
    } while (rc == SMART_AGAIN);
    if (rc > 0 || rc == DM_ERR_RETRY_LIMIT || rc == DM_ERR_NO_MEMORY) {
        smart_fresh_drop(client, &insert.fresh);
    }
    return rc;
}
