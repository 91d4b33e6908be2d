/* SPDX-License-Identifier: Apache-2.0
 *
 * CHIME's locks: a word after each leaf and inner node, taken by a masked compare-and-swap, which returns a leaf's
 * vacancy bitmap and the position of its largest key with the lock.
 */
#include "chime.h"
#include "indexes/shared/retry.h"

/* Each lock of a client has a word of device memory to be released from. */
static uint64_t *release_word(struct chime_client *client, const struct chime_lock *lock) {
    unsigned slot = lock == &client->leaf_lock ? 1 : lock == &client->right_lock ? 2 : 3;
    return client->tree.own + slot;
}

static int lock_take(struct chime_client *client, dm_addr word, bool leaf, uint32_t *attempts,
                     struct chime_lock *lock) {
    bool separate = leaf && client->cn->params->vacancy == CHIME_VACANCY_READ;
    uint64_t owner = ((uint64_t)dm_node(client->ctx) << 32 | dm_ctx_id(client->ctx)) << 1 | 1;
    struct dm_mask mask = {
        .compare = 0, .compare_mask = 1, .swap = separate ? 1 : owner, .swap_mask = separate ? 1 : UINT64_MAX};
    uint64_t *old = client->tree.own;
    for (uint32_t tries = 1;; tries++) {
        int rc = dm_masked_cas(client->ctx, word, mask, old);
        if (rc < 0 && !leaf && !dm_is_final(rc)) {
            /* It may have taken the lock. A leaf's word would have lost what it held beside the lock. */
            client->tree.may_hold |= dm_cas(client->ctx, word, owner, 0, NULL) < 0;
        }
        DM_TRY(rc);
        if (!(*old & 1)) {
            break;
        }
        DM_TRY(client->cn->params->back_off ? ix_retry(client->ctx, DM_RETRY_LOCK, attempts, tries)
                                            : dm_retry(client->ctx, DM_RETRY_LOCK, attempts));
    }
    *lock = (struct chime_lock){.word = word, .held = separate ? *old | 1 : owner, .old = *old, .is_own = !separate};
    /* A read of its own for the vacancy bitmap: what it costs not to have it from the compare-and-swap. */
    int rc = separate ? dm_read(client->ctx, word, old, sizeof(*old)) : 0;
    if (rc < 0) {
        chime_lock_release(client, lock); /* the first failure is the one to report */
    }
    return rc;
}

int chime_lock_take(struct chime_client *client, dm_addr word, bool leaf, uint32_t *attempts, struct chime_lock *lock) {
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_LOCK);
    int rc = lock_take(client, word, leaf, attempts, lock);
    dm_phase(client->ctx, before);
    return rc;
}

void chime_lock_post(struct chime_client *client, struct chime_lock *lock, uint64_t next) {
    uint64_t *word = release_word(client, lock);
    *word = next;
    lock->is_posted = true;
    dm_post_write(client->ctx, lock->word, word, sizeof(*word));
}

int chime_lock_leave(struct chime_client *client, struct chime_lock *lock, int rc) {
    ix_queue_leave(client->ctx, lock->queue);
    lock->queue = NULL;
    return rc;
}

int chime_lock_finish(struct chime_client *client, struct chime_lock *lock, uint64_t next, int rc) {
    /* A release in error may have happened; then the lock may be another client's, whose word is the same if words have
     * no owner. */
    bool may_release = lock->is_own || !lock->is_posted;
    if (rc < 0 && !dm_is_final(rc) && may_release) {
        dm_cas(client->ctx, lock->word, lock->held, next, NULL);
    }
    return chime_lock_leave(client, lock, rc);
}

int chime_lock_release(struct chime_client *client, struct chime_lock *lock) {
    chime_lock_post(client, lock, lock->old);
    return chime_lock_finish(client, lock, lock->old, dm_commit(client->ctx));
}

/* ---- how the tree locks an inner node -----------------------------------------------------------------------------
 */

static dm_addr inner_word(const struct ix_tree_cn *tree, dm_addr addr) {
    return dm_addr_add(addr, tree->inner.node_bytes);
}

static int inner_lock(struct ix_tree *tree, dm_addr addr, uint32_t *attempts) {
    struct chime_client *client = tree->client;
    return chime_lock_take(client, inner_word(tree->cn, addr), false, attempts, &client->inner_lock);
}

static int inner_unlock(struct ix_tree *tree) {
    struct chime_client *client = tree->client;
    return chime_lock_release(client, &client->inner_lock);
}

const struct ix_tree_policy chime_inner_locking = {
    .lock = inner_lock,
    .commit_unlock = inner_unlock,
    .unlock = inner_unlock,
    .lock_word = inner_word,
    .is_locked = ix_tree_word_taken,
};
