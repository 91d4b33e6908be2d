/* SPDX-License-Identifier: Apache-2.0
 *
 * Insert, update and delete. Each takes a share of the leaf's lock, changes one entry, and gives the share back; so
 * they run side by side in one leaf, and never beside a structure change.
 *
 * Update and delete: a compare-and-swap of the entry's word from what was read. The words of blocks never repeat
 * (shared/indirect.h), so if it succeeds the entry was still the key's. If it fails another update may have been first,
 * but the key may also have been deleted and the entry have become another key's. The word's generation distinguishes
 * the two: if it is the same the swap is tried again on the word that was found, else the leaf is read again.
 *
 * Insert: published, the pointer is written by a compare-and-swap into a free entry, and the key behind it. Meanwhile
 * the entry has a key that is not the pointer's, and two inserts of one key can both succeed, in two entries. Here:
 *
 *   1. the entry is claimed: its word becomes a claim, which has a hash of the key and the client's number;
 *   2. the leaf is read behind the claim, in the same batch. If the key is there, the claim is withdrawn. If another
 *      entry has a claim for the key, then one of the two withdraws: the one with the higher position withdraws its
 *      claim and begins again, the one with the lower position reads until the other is gone;
 *   3. key and word are written together: 16 bytes of one line.
 *
 * Why two inserts of a key cannot both succeed: a claim stays until its client has decided, and each client decides by
 * a read behind its own claim. So of two clients with claims at the same time, the one that claimed later sees the
 * other's claim or what came of it. No two wait for each other, because only the lower one waits.
 */
#include "indexes/shared/retry.h"
#include "marlin.h"

enum { KEY_BYTES = sizeof(uint64_t), ENTRY_BYTES = 16, CLIENT_BITS = 19, HASH_BITS = 20 };
enum { LEAF_FULL = 1200 /* an outcome beside those of the tree */ };

static const struct ix_leaf_layout *layout_of(const struct marlin_client *client) {
    return &client->cn->btree.leaf;
}

static dm_addr entry_addr(dm_addr leaf, unsigned at) {
    return dm_addr_add(leaf, marlin_entry_offset(at));
}
static dm_addr word_addr(dm_addr leaf, unsigned at) {
    return dm_addr_add(leaf, marlin_word_offset(at));
}

/* ---- reaching the leaf ------------------------------------------------------------------------------------------- */

/* Takes a share of the leaf at *leaf if that covers key. 0 with the share; 1: *leaf is the sibling to continue at;
 * IX_TREE_AGAIN; a failure. */
static int reach_once(struct marlin_client *client, uint64_t key, uint32_t *attempts, dm_addr *leaf) {
    struct ix_tree *tree = &client->btree.tree;
    if (!dm_addr_valid(client->ctx, *leaf, tree->cn->inner.node_bytes)) {
        return ix_tree_misled(tree, 0, false, attempts);
    }
    DM_TRY(marlin_share(client, *leaf, attempts));
    const struct ix_node_head *head = ix_node_head_in(tree->image);
    bool is_leaf = marlin_leaf_take(client);
    if (is_leaf && key >= head->low && key < head->high) {
        return 0;
    }
    client->counts[MARLIN_DEAD_LEAF] += !is_leaf;
    bool right = is_leaf && key >= head->high;
    dm_addr next = head->sibling;
    DM_TRY(marlin_leave(client, &client->leaf, 0));
    if (right) {
        *leaf = next;
    }
    int rc = ix_tree_misled(tree, 0, right, attempts);
    return rc == 0 ? 1 : rc;
}

/* Takes a share of the leaf that covers key, which is then in the tree's wire and image. [waits] */
static int reach(struct marlin_client *client, uint64_t key, uint32_t *attempts, dm_addr *leaf) {
    int rc;
    do {
        DM_TRY(ix_tree_descend(&client->btree.tree, key, 0, attempts));
        *leaf = client->btree.tree.child.addr;
        do {
            rc = reach_once(client, key, attempts, leaf);
        } while (rc == 1);
    } while (rc == IX_TREE_AGAIN);
    return rc;
}

/* Reads the leaf again, of which the client has a share. A failure, or IX_TREE_AGAIN, without the share. [waits] */
static int read_again(struct marlin_client *client, dm_addr leaf) {
    struct ix_tree *tree = &client->btree.tree;
    int rc = dm_read(client->ctx, leaf, tree->wire, tree->cn->inner.node_bytes);
    rc = rc == 0 && !marlin_leaf_take(client) ? IX_TREE_AGAIN : rc;
    return rc == 0 ? 0 : marlin_leave(client, &client->leaf, rc);
}

static int find(struct marlin_client *client, uint64_t key) {
    int at = ix_leaf_find(layout_of(client), client->btree.tree.image, key);
    ix_leaf_find_charge(layout_of(client), client->ctx, at);
    return at;
}

/* ---- update and delete ------------------------------------------------------------------------------------------- */

/* Swaps the word of entry `at`, which is the key's, for one with this content; *before is the content that is in the
 * leaf no more, which is the new one if an update has been overtaken: until the first write after this client's read of
 * the leaf the entry was the key's, so just before that write is a moment at which the update may take effect. 0;
 * DM_NOT_FOUND: the entry is not the key's any more; a failure. The share stays. [waits] */
static int word_swap(struct marlin_client *client, dm_addr leaf, unsigned at, uint64_t content, uint32_t *attempts,
                     uint64_t *before) {
    uint64_t *old = &client->wires->old[1];
    uint64_t expected = marlin_word_at(client->btree.tree.wire, at);
    bool blind = client->cn->params->pointer == MARLIN_POINTER_BLIND;
    bool overtaken = client->cn->params->pointer == MARLIN_POINTER_OVERTAKEN && content != 0;
    for (uint32_t tries = 1;; tries++) {
        dm_post_cas(client->ctx, word_addr(leaf, at), expected, marlin_word_tag(expected) | content, old);
        DM_TRY(dm_commit(client->ctx));
        if (*old == expected) {
            *before = marlin_word_content(expected);
            return 0;
        }
        client->counts[MARLIN_POINTER_CONFLICT]++;
        if (overtaken) {
            *before = content;
            return 0;
        }
        DM_TRY(ix_retry(client->ctx, DM_RETRY_CAS, attempts, tries));
        if (!blind && (marlin_word_tag(*old) != marlin_word_tag(expected) || !marlin_word_is_block(*old))) {
            return DM_NOT_FOUND;
        }
        expected = *old;
    }
}

/* Swaps the word of the key's entry, wherever it is in the leaf `at` was found in. DM_NOT_FOUND, IX_TREE_AGAIN and
 * failures without the share. [waits] */
static int key_swap(struct marlin_client *client, dm_addr leaf, int at, uint64_t key, uint64_t content,
                    uint32_t *attempts, uint64_t *before) {
    for (;;) {
        int rc = word_swap(client, leaf, (unsigned)at, content, attempts, before);
        if (rc == 0) {
            return 0;
        }
        if (rc < 0) {
            return marlin_leave_waited(client, &client->leaf, rc);
        }
        rc = read_again(client, leaf);
        if (rc != 0) {
            return rc;
        }
        at = find(client, key);
        if (at == IX_LEAF_NONE) {
            return marlin_leave(client, &client->leaf, DM_NOT_FOUND);
        }
    }
}

/* Makes the block of a value, and writes it, unless its write can go with the swap of the word. A failure without the
 * share. [waits] */
static int block_write(struct marlin_client *client, dm_addr leaf, uint64_t key, const void *value, bool combine,
                       const void **stored) {
    int rc = ix_indirect_make(client->btree.indirect, dm_addr_node(leaf), key, value, stored);
    if (rc == 0) {
        ix_indirect_post(client->btree.indirect);
        rc = combine ? 0 : dm_commit(client->ctx);
    }
    return rc < 0 ? marlin_leave_waited(client, &client->leaf, rc) : 0;
}

static int update_once(struct marlin_client *client, uint64_t key, const void *value, uint32_t *attempts) {
    dm_addr leaf;
    DM_TRY(reach(client, key, attempts, &leaf));
    int at = find(client, key);
    if (at == IX_LEAF_NONE) {
        return marlin_leave(client, &client->leaf, DM_NOT_FOUND);
    }
    struct ix_indirect *indirect = client->btree.indirect;
    const void *stored;
    DM_TRY(block_write(client, leaf, key, value, client->cn->params->combine, &stored));
    uint64_t word = ix_indirect_word(indirect, stored);
    uint64_t before;
    int rc = key_swap(client, leaf, at, key, word, attempts, &before);
    if (rc != 0) {
        if (rc > 0) {
            ix_indirect_drop(indirect, word);
        }
        return rc;
    }
    rc = marlin_leave(client, &client->leaf, 0);
    ix_indirect_drop(indirect, before);
    return rc;
}

int marlin_update(void *handle, uint64_t key, const void *value) {
    struct marlin_client *client = handle;
    uint32_t attempts = 0;
    int rc;
    do {
        rc = update_once(client, key, value, &attempts);
    } while (rc == IX_TREE_AGAIN);
    return rc;
}

static int remove_once(struct marlin_client *client, uint64_t key, uint32_t *attempts, unsigned *left) {
    dm_addr leaf;
    DM_TRY(reach(client, key, attempts, &leaf));
    int at = find(client, key);
    if (at == IX_LEAF_NONE) {
        return marlin_leave(client, &client->leaf, DM_NOT_FOUND);
    }
    uint64_t before = 0;
    int rc = key_swap(client, leaf, at, key, 0, attempts, &before);
    if (rc != 0) {
        return rc;
    }
    *left = 0;
    for (unsigned i = 0; i < layout_of(client)->cap; i++) {
        *left += ix_leaf_is_used(layout_of(client), client->btree.tree.image, i) && i != (unsigned)at;
    }
    rc = marlin_leave(client, &client->leaf, 0);
    ix_indirect_drop(client->btree.indirect, before);
    return rc;
}

int marlin_remove(void *handle, uint64_t key) {
    struct marlin_client *client = handle;
    uint32_t attempts = 0;
    unsigned left = 0;
    int rc;
    do {
        rc = remove_once(client, key, &attempts, &left);
    } while (rc == IX_TREE_AGAIN);
    if (rc == 0 && client->cn->params->merge && marlin_is_low(client, left)) {
        /* The key is deleted, whether the leaf can be merged or not. */
        (void)marlin_merge(client, key);
    }
    return rc;
}

/* ---- insert ------------------------------------------------------------------------------------------------------ */

struct insert {
    struct marlin_client *client;
    uint64_t key;
    const void *stored; /* the word of the key's block; NULL: there is none yet */
    bool written;       /* the block is in remote memory */
    uint32_t attempts;
    dm_addr leaf;
    int at;         /* the entry that is claimed, IX_LEAF_NONE: none */
    uint64_t claim; /* the word with the claim */
};

/* What a leaf has of a key: the position of its entry, of a claim for it other than this client's, of a free entry. */
struct seen {
    int key, claim, slot;
};

static uint64_t claim_hash(uint64_t key) {
    return dm_mix64(key) >> (64 - HASH_BITS);
}

static uint64_t claim_of(const struct marlin_client *client, uint64_t key) {
    uint64_t number = dm_ctx_id(client->ctx) & ((UINT64_C(1) << CLIENT_BITS) - 1);
    return claim_hash(key) << (CLIENT_BITS + 1) | number << 1 | 1;
}

static bool claim_is_for(uint64_t word, uint64_t key) {
    return marlin_word_is_claim(word) && marlin_word_content(word) >> (CLIENT_BITS + 1) == claim_hash(key);
}

static struct seen leaf_look(const struct insert *insert) {
    struct marlin_client *client = insert->client;
    const char *wire = client->btree.tree.wire;
    struct seen seen = {find(client, insert->key), IX_LEAF_NONE, IX_LEAF_NONE};
    for (unsigned i = 0; i < layout_of(client)->cap; i++) {
        uint64_t word = marlin_word_at(wire, i);
        if (marlin_word_is_free(word) && seen.slot == IX_LEAF_NONE) {
            seen.slot = (int)i;
        }
        if (claim_is_for(word, insert->key) && (int)i != insert->at && seen.claim == IX_LEAF_NONE) {
            seen.claim = (int)i;
        }
    }
    return seen;
}

/* Ends the attempt: withdraws the claim if there is one, and gives the share back. */
static int insert_leave(struct insert *insert, int rc) {
    struct marlin_client *client = insert->client;
    if (insert->at != IX_LEAF_NONE && !dm_is_final(rc)) {
        dm_post_cas(client->ctx, word_addr(insert->leaf, (unsigned)insert->at), insert->claim,
                    marlin_word_tag(insert->claim), NULL);
    }
    insert->at = IX_LEAF_NONE;
    return marlin_leave(client, &client->leaf, rc);
}

/* Adds the write of the block to the batch, unless it has been written. */
static void block_post(struct insert *insert) {
    if (!insert->written) {
        ix_indirect_post(insert->client->btree.indirect);
    }
}

/* Claims the free entry, and reads the leaf behind that. The leaf is in the tree's wire and image. A failure, or
 * IX_TREE_AGAIN, without claim and share. [waits] */
static int slot_claim(struct insert *insert, int slot) {
    struct marlin_client *client = insert->client;
    struct ix_tree *tree = &client->btree.tree;
    uint64_t *old = &client->wires->old[1];
    uint64_t seen = marlin_word_at(tree->wire, (unsigned)slot);
    block_post(insert);
    insert->claim = marlin_word_next_tag(seen) | claim_of(client, insert->key);
    dm_post_cas(client->ctx, word_addr(insert->leaf, (unsigned)slot), seen, insert->claim, old);
    dm_post_read(client->ctx, insert->leaf, tree->wire, tree->cn->inner.node_bytes);
    int rc = dm_commit(client->ctx);
    if (rc < 0) {
        insert->at = slot; /* perhaps */
        return insert_leave(insert, rc);
    }
    insert->written = true;
    if (*old == seen) {
        insert->at = slot;
    } else {
        client->counts[MARLIN_SLOT_CONFLICT]++;
        rc = ix_retry(client->ctx, DM_RETRY_CAS, &insert->attempts, 0);
    }
    rc = rc == 0 && !marlin_leaf_take(client) ? IX_TREE_AGAIN : rc;
    return rc == 0 ? 0 : insert_leave(insert, rc);
}

/* Writes key and word into the claimed entry, and gives the share back. */
static int entry_publish(struct insert *insert) {
    struct marlin_client *client = insert->client;
    uint64_t *entry = client->wires->entry;
    entry[0] = insert->key;
    entry[1] = marlin_word_tag(insert->claim) | ix_indirect_word(client->btree.indirect, insert->stored);
    dm_post_write(client->ctx, entry_addr(insert->leaf, (unsigned)insert->at), entry, ENTRY_BYTES);
    return marlin_leave_waited(client, &client->leaf, 0);
}

/* insert=published, which is known to be wrong: the pointer first, then the key. */
static int published_insert(struct insert *insert, int slot) {
    struct marlin_client *client = insert->client;
    uint64_t *old = &client->wires->old[1];
    uint64_t seen = marlin_word_at(client->btree.tree.wire, (unsigned)slot);
    uint64_t word = marlin_word_tag(seen) | ix_indirect_word(client->btree.indirect, insert->stored);
    block_post(insert);
    dm_post_cas(client->ctx, word_addr(insert->leaf, (unsigned)slot), seen, word, old);
    int rc = dm_commit(client->ctx);
    if (rc < 0) {
        return marlin_leave(client, &client->leaf, rc);
    }
    insert->written = true;
    if (*old != seen) {
        client->counts[MARLIN_SLOT_CONFLICT]++;
        rc = ix_retry(client->ctx, DM_RETRY_CAS, &insert->attempts, 0);
        return marlin_leave(client, &client->leaf, rc < 0 ? rc : IX_TREE_AGAIN);
    }
    client->wires->entry[0] = insert->key;
    dm_post_write(client->ctx, entry_addr(insert->leaf, (unsigned)slot), client->wires->entry, KEY_BYTES);
    return marlin_leave_waited(client, &client->leaf, 0);
}

/* With a claim, and the leaf as it was behind it: decides whether this insert may continue. 0: it may; 1: the leaf is
 * to be read again; DM_EXISTS, IX_TREE_AGAIN or a failure: claim and share are gone. */
static int claim_decide(struct insert *insert) {
    struct marlin_client *client = insert->client;
    struct seen seen = leaf_look(insert);
    if (seen.key != IX_LEAF_NONE) {
        return insert_leave(insert, DM_EXISTS);
    }
    if (seen.claim == IX_LEAF_NONE) {
        return 0;
    }
    int rc = ix_retry(client->ctx, DM_RETRY_CAS, &insert->attempts, 0);
    if (rc < 0) {
        return insert_leave(insert, rc);
    }
    if (seen.claim < insert->at) {
        client->counts[MARLIN_CLAIM_WITHDRAWN]++;
        return insert_leave(insert, IX_TREE_AGAIN);
    }
    client->counts[MARLIN_CLAIM_AWAITED]++;
    rc = dm_read(client->ctx, insert->leaf, client->btree.tree.wire, client->cn->btree.tree.inner.node_bytes);
    rc = rc == 0 && !marlin_leaf_take(client) ? IX_TREE_AGAIN : rc;
    return rc == 0 ? 1 : insert_leave(insert, rc);
}

/* Claims an entry that looks free in the tree's wire until one is claimed. 0 with the claim, and with share. DM_EXISTS,
 * IX_TREE_AGAIN and failures without; LEAF_FULL with the share. */
static int slot_find(struct insert *insert) {
    struct marlin_client *client = insert->client;
    while (insert->at == IX_LEAF_NONE) {
        struct seen seen = leaf_look(insert);
        if (seen.key != IX_LEAF_NONE) {
            return insert_leave(insert, DM_EXISTS);
        }
        int rc;
        if (seen.claim != IX_LEAF_NONE) {
            /* Another client inserts the key: wait for what becomes of that. */
            client->counts[MARLIN_CLAIM_AWAITED]++;
            rc = ix_retry(client->ctx, DM_RETRY_CAS, &insert->attempts, 0);
            rc = rc < 0 ? insert_leave(insert, rc) : read_again(client, insert->leaf);
        } else if (seen.slot == IX_LEAF_NONE) {
            return LEAF_FULL;
        } else {
            rc = slot_claim(insert, seen.slot);
        }
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

/* The leaf is full, and the client has a share of it. */
static int full_insert(struct insert *insert) {
    struct marlin_client *client = insert->client;
    if (!insert->written) {
        block_post(insert);
        int rc = dm_commit(client->ctx);
        if (rc < 0) {
            return marlin_leave(client, &client->leaf, rc);
        }
        insert->written = true;
    }
    return marlin_split(client, insert->leaf, insert->key, insert->stored, &insert->attempts);
}

static int insert_once(struct insert *insert, const void *value) {
    struct marlin_client *client = insert->client;
    DM_TRY(reach(client, insert->key, &insert->attempts, &insert->leaf));
    insert->at = IX_LEAF_NONE;
    if (leaf_look(insert).key != IX_LEAF_NONE) {
        return marlin_leave(client, &client->leaf, DM_EXISTS);
    }
    if (!insert->stored) {
        int rc =
            ix_indirect_make(client->btree.indirect, dm_addr_node(insert->leaf), insert->key, value, &insert->stored);
        if (rc < 0) {
            insert->stored = NULL;
            return marlin_leave_waited(client, &client->leaf, rc);
        }
    }
    if (client->cn->params->insert == MARLIN_INSERT_PUBLISHED) {
        int slot = leaf_look(insert).slot;
        return slot == IX_LEAF_NONE ? full_insert(insert) : published_insert(insert, slot);
    }
    int rc = slot_find(insert);
    if (rc == LEAF_FULL) {
        return full_insert(insert);
    }
    if (rc != 0) {
        return rc;
    }
    do {
        rc = claim_decide(insert);
    } while (rc == 1);
    return rc == 0 ? entry_publish(insert) : rc;
}

int marlin_insert(void *handle, uint64_t key, const void *value) {
    struct marlin_client *client = handle;
    struct insert insert = {.client = client, .key = key, .at = IX_LEAF_NONE};
    int rc;
    do {
        rc = insert_once(&insert, value);
    } while (rc == IX_TREE_AGAIN);
    if (insert.stored && (rc == DM_EXISTS || rc == DM_ERR_NO_MEMORY)) {
        ix_indirect_drop(client->btree.indirect, ix_indirect_word(client->btree.indirect, insert.stored));
    }
    return rc;
}
