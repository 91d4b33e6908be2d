/* SPDX-License-Identifier: Apache-2.0
 *
 * Insert, update and delete: lock the leaf, read what is needed of it, change entries, send them and the lock word.
 *
 * Under the lock the leaf does not change, so what is read needs no versions. If its sibling is not the one that the
 * parent names, a key that is found is there nevertheless; one that is not may belong to the right. An insert then
 * looks for a larger key, among those that it has read and at the position in the lock word: a key below any other one
 * of the leaf belongs here (section 4.2.3). If it finds none the parents are read again until they have the split. So
 * the position in the lock word is a hint: an insert moves it to its own key if it has read the key there and that is
 * less, and reads nothing for it. Largest keys can also be deleted.
 *
 * With indirect values the block is taken on the leaf's memory node and written before the entry in one batch; the
 * block that an update or delete removes from the leaf is kept once its entry has been written.
 */
#include "chime.h"

/* Of an entry of the neighbourhood: looking for an empty one, and the group's vacancy. */
enum { INSERT_COMPARES = 4 };

/* Releases the leaf's lock without a change; `outcome` unless that fails. */
static int leave(struct chime_client *client, int outcome) {
    int rc = chime_lock_release(client, &client->leaf_lock);
    return rc < 0 ? rc : outcome;
}

/* Releases the lock and descends again: the leaf is dead, or the key may belong to the right. */
static int leave_misled(struct chime_client *client, enum chime_verdict verdict, uint32_t *attempts) {
    client->counts[CHIME_HALF_SPLIT] += verdict == CHIME_RIGHT;
    DM_TRY(leave(client, 0));
    int rc = ix_tree_misled(&client->tree, 0, verdict == CHIME_RIGHT, attempts);
    return rc < 0 ? rc : IX_TREE_AGAIN;
}

/* Finds and locks the leaf that the parents name for key. 0; IX_TREE_AGAIN; a failure. */
static int leaf_lock(struct chime_client *client, uint64_t key, uint32_t *attempts) {
    struct ix_tree *tree = &client->tree;
    DM_TRY(ix_tree_descend(tree, key, 0, attempts));
    dm_addr leaf = tree->child.addr;
    if (!dm_addr_valid(client->ctx, leaf, client->cn->layout.alloc_bytes)) {
        return ix_tree_misled(tree, 0, false, attempts);
    }
    /* One of a compute node's clients at a time tries the remote word. A merge, which takes two locks, does not queue:
     * a client that has its turn waits for the word alone, so that is safe. */
    struct ix_queue *queue = ix_queues_find(client->cn->queues, leaf);
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_LOCK);
    int rc = ix_queue_enter(client->ctx, queue);
    dm_phase(client->ctx, before);
    DM_TRY(rc);
    rc = chime_lock_take(client, chime_leaf_word(client->cn, leaf), true, attempts, &client->leaf_lock);
    client->leaf_lock.queue = rc < 0 ? NULL : queue;
    if (rc < 0) {
        ix_queue_leave(client->ctx, queue);
    }
    return rc;
}

/* What the entry in the locked leaf will hold for `value`. A failure without the lock. [waits] */
static int value_make(struct chime_client *client, uint64_t key, const void *value, const void **stored) {
    int rc = ix_indirect_make(client->indirect, dm_addr_node(client->tree.child.addr), key, value, stored);
    return rc < 0 ? chime_lock_finish(client, &client->leaf_lock, client->leaf_lock.old, rc) : 0;
}

/* The word of entry `at` of the current leaf; 0 with inline values. */
static uint64_t value_word(const struct chime_client *client, unsigned at) {
    return ix_indirect_word(client->indirect, chime_value(&client->cn->layout, client->leaf.image, at));
}

/* ---- insert ------------------------------------------------------------------------------------------------------ */

static bool was_read(const struct chime_client *client, unsigned at) {
    return chime_distance(&client->cn->layout, client->leaf.start, at) < client->leaf.count;
}

static bool any_was_read(const struct chime_client *client) {
    const struct chime_layout *layout = &client->cn->layout;
    unsigned d = 0;
    while (d < client->leaf.count &&
           chime_key(layout, client->leaf.image, chime_at(layout, client->leaf.start, d)) == CHIME_NO_KEY) {
        d++;
    }
    return d < client->leaf.count;
}

static bool larger_was_read(const struct chime_client *client, uint64_t key) {
    const struct chime_layout *layout = &client->cn->layout;
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, client->leaf.count);
    for (unsigned d = 0; d < client->leaf.count; d++) {
        uint64_t here = chime_key(layout, client->leaf.image, chime_at(layout, client->leaf.start, d));
        if (here != CHIME_NO_KEY && here > key) {
            return true;
        }
    }
    return false;
}

/* Whether the locked leaf, of which a split is not in its parent yet, has a key above `key`: 1, 0 if none was found, or
 * a failure without the lock. Reads the key at the lock word's position if it was not read before. */
static int larger_is_here(struct chime_client *client, uint64_t key) {
    const struct chime_layout *layout = &client->cn->layout;
    if (client->cn->params->validation == CHIME_VALIDATE_FENCES) {
        return 0; /* the fence has said that the key is above all of them */
    }
    if (larger_was_read(client, key)) {
        return 1;
    }
    unsigned largest = chime_word_largest(layout, client->leaf_lock.old);
    if (was_read(client, largest)) {
        return 0;
    }
    int rc = chime_read_entry(client, client->tree.child.addr, largest);
    if (rc < 0) {
        return chime_lock_finish(client, &client->leaf_lock, client->leaf_lock.old, rc);
    }
    client->counts[CHIME_LARGEST_READ]++;
    uint64_t there = chime_key(layout, client->leaf.image, largest);
    return there != CHIME_NO_KEY && there > key;
}

/* The position of the largest key that the lock word has to hold once `key` is at entry `at`; `largest` is the position
 * that it held before, after hops. Only entries that were read are compared. */
static unsigned largest_after(const struct chime_client *client, uint64_t key, unsigned at, unsigned largest) {
    uint64_t there = chime_key(&client->cn->layout, client->leaf.image, largest);
    return was_read(client, largest) && (there == CHIME_NO_KEY || there < key) ? at : largest;
}

/* The key does not fit into the leaf, all of which was read. */
static int split_put(struct chime_client *client, dm_addr leaf, uint64_t key, const void *stored) {
    ix_indirect_post(client->indirect); /* alone: the half that names it may be on another memory node */
    int rc = dm_commit(client->ctx);
    if (rc < 0) {
        return chime_lock_finish(client, &client->leaf_lock, client->leaf_lock.old, rc);
    }
    rc = chime_split_insert(client, leaf, key, stored);
    if (rc == IX_TREE_AGAIN || rc == DM_ERR_NO_MEMORY) {
        ix_indirect_drop(client->indirect, ix_indirect_word(client->indirect, stored));
    }
    return rc;
}

/* Inserts the key into the leaf, of which the hop range was read. */
static int leaf_put(struct chime_client *client, uint64_t key, const void *value) {
    const struct chime_layout *layout = &client->cn->layout;
    struct chime_copy *copy = &client->leaf;
    dm_addr leaf = client->tree.child.addr;
    uint64_t word = client->leaf_lock.old;
    unsigned home = chime_home(layout, key);
    struct chime_set changed = {{0}};
    unsigned largest = chime_word_largest(layout, word);
    unsigned filled;
    const void *stored;
    DM_TRY(value_make(client, key, value, &stored));
    unsigned reach =
        copy->count >= layout->span ? layout->span : copy->count - chime_distance(layout, copy->start, home);
    dm_charge(client->ctx, DM_WORK_HASH, layout->hood);
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, INSERT_COMPARES * layout->hood);
    int at = chime_leaf_insert(layout, copy->image, key, stored, reach, &changed, &largest, &filled);
    if (at == CHIME_NONE && copy->count < layout->span) {
        /* The rest of the leaf is needed to split it. */
        int rc = chime_read_part(client, copy, leaf, 0, layout->span);
        if (rc < 0) {
            return chime_lock_finish(client, &client->leaf_lock, word, rc);
        }
        at = chime_leaf_insert(layout, copy->image, key, stored, layout->span, &changed, &largest, &filled);
    }
    if (at == CHIME_NONE) {
        return split_put(client, leaf, key, stored);
    }
    client->counts[CHIME_HOP] += filled != (unsigned)at;
    word = chime_word_refresh(layout, word, copy->image, filled);
    word = chime_word_set_largest(layout, word, largest_after(client, key, (unsigned)at, largest));
    DM_TRY(chime_write_back(client, leaf, &changed, word, true));
    if (client->cn->hotspot) { /* what looked for the key did not bring the bucket */
        dm_charge_access(client->ctx, 1, chime_hotspot_bytes(client->cn->hotspot));
    }
    chime_remember(client, leaf, key, (unsigned)at);
    return 0;
}

static int insert_once(struct chime_client *client, uint64_t key, const void *value, uint32_t *attempts) {
    const struct chime_layout *layout = &client->cn->layout;
    struct chime_lock *lock = &client->leaf_lock;
    int rc = leaf_lock(client, key, attempts);
    if (rc != 0) {
        return rc;
    }
    unsigned start = 0;
    unsigned count = layout->span;
    if (client->cn->params->vacancy != CHIME_VACANCY_NONE) {
        chime_reach(layout, lock->old, chime_home(layout, key), &start, &count);
    }
    rc = chime_read_part(client, &client->leaf, client->tree.child.addr, start, count);
    if (rc < 0) {
        return chime_lock_finish(client, lock, lock->old, rc);
    }
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, layout->hood);
    if (chime_leaf_find(layout, client->leaf.image, key) != CHIME_NONE) {
        return leave(client, DM_EXISTS);
    }
    struct chime_meta meta = chime_copy_meta(client, &client->leaf);
    enum chime_verdict verdict = chime_judge(client, &meta, key, client->tree.child.next);
    if (verdict == CHIME_DEAD) {
        return leave_misled(client, verdict, attempts);
    }
    if (verdict == CHIME_RIGHT) {
        rc = larger_is_here(client, key);
        if (rc <= 0) {
            return rc < 0 ? rc : leave_misled(client, verdict, attempts);
        }
    }
    return leaf_put(client, key, value);
}

int chime_insert(void *handle, uint64_t key, const void *value) {
    struct chime_client *client = handle;
    uint32_t attempts = 0;
    int rc;
    dm_charge(client->ctx, DM_WORK_HASH, 1);
    do {
        rc = insert_once(client, key, value, &attempts);
    } while (rc == IX_TREE_AGAIN);
    return rc;
}

/* ---- update and delete ------------------------------------------------------------------------------------------- */

/* Locks the leaf of a key that is there, with its entry loaded at *at, and the neighbourhood unless `speculate` found
 * it. DM_NOT_FOUND, IX_TREE_AGAIN and failures without the lock. */
static int present_lock_once(struct chime_client *client, uint64_t key, bool speculate, uint32_t *attempts,
                             unsigned *at) {
    const struct chime_layout *layout = &client->cn->layout;
    struct chime_lock *lock = &client->leaf_lock;
    int rc = leaf_lock(client, key, attempts);
    if (rc != 0) {
        return rc;
    }
    dm_addr leaf = client->tree.child.addr;
    rc = speculate ? chime_speculate(client, leaf, key, at) : DM_NOT_FOUND;
    if (rc == 0) {
        return 0;
    }
    rc = rc < 0 ? rc : chime_read_part(client, &client->leaf, leaf, chime_home(layout, key), layout->hood);
    if (rc < 0) {
        return chime_lock_finish(client, lock, lock->old, rc);
    }
    dm_charge(client->ctx, DM_WORK_KEY_COMPARE, layout->hood);
    int found = chime_leaf_find(layout, client->leaf.image, key);
    if (found != CHIME_NONE) {
        dm_charge(client->ctx, DM_WORK_KEY_COMPARE, chime_padding_compares(layout));
        *at = (unsigned)found;
        return 0;
    }
    struct chime_meta meta = chime_copy_meta(client, &client->leaf);
    enum chime_verdict verdict = chime_judge(client, &meta, key, client->tree.child.next);
    return verdict == CHIME_COVERS ? leave(client, DM_NOT_FOUND) : leave_misled(client, verdict, attempts);
}

/* The same until it is decided: 0 with the lock, DM_NOT_FOUND or a failure without. */
static int present_lock(struct chime_client *client, uint64_t key, bool speculate, unsigned *at) {
    uint32_t attempts = 0;
    int rc;
    dm_charge(client->ctx, DM_WORK_HASH, 1);
    do {
        rc = present_lock_once(client, key, speculate, &attempts, at);
    } while (rc == IX_TREE_AGAIN);
    return rc;
}

int chime_update(void *handle, uint64_t key, const void *value) {
    struct chime_client *client = handle;
    const struct chime_layout *layout = &client->cn->layout;
    unsigned at = 0;
    int rc = present_lock(client, key, true, &at);
    if (rc != 0) {
        return rc;
    }
    const void *stored;
    DM_TRY(value_make(client, key, value, &stored));
    uint64_t before = value_word(client, at);
    struct chime_set changed = {{0}};
    chime_set_add(&changed, at);
    chime_leaf_update(layout, client->leaf.image, at, stored);
    dm_addr leaf = client->tree.child.addr;
    DM_TRY(chime_write_back(client, leaf, &changed, client->leaf_lock.old, true));
    ix_indirect_drop(client->indirect, before);
    chime_remember(client, leaf, key, at);
    return 0;
}

int chime_remove(void *handle, uint64_t key) {
    struct chime_client *client = handle;
    const struct chime_layout *layout = &client->cn->layout;
    unsigned at = 0;
    int rc = present_lock(client, key, false, &at);
    if (rc != 0) {
        return rc;
    }
    struct chime_set changed = {{0}};
    uint64_t word = chime_word_without(layout, client->leaf_lock.old, at);
    uint64_t before = value_word(client, at);
    chime_leaf_remove(layout, client->leaf.image, at, &changed);
    DM_TRY(chime_write_back(client, client->tree.child.addr, &changed, word, false));
    ix_indirect_drop(client->indirect, before);
    /* The key is deleted, whether the leaf can be merged or not. The groups of a large leaf are large, so that none of
     * them is full says little there: a merge is tried if the part that was read has no key any more. */
    if (client->cn->params->merge && chime_word_low(layout, word) && !any_was_read(client)) {
        (void)chime_merge(client, key);
    }
    return 0;
}
