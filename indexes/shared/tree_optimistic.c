/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimistic lock coupling on nodes in ix_format_word: nodes are read without a lock, and a writer takes the lock by a
 * compare-and-swap of the version that it read, which fails if the node has changed since. See tree.h.
 */
#include "indexes/shared/tree.h"

dm_addr ix_optimistic_lock_word(const struct ix_tree_cn *cn, dm_addr addr) {
    (void)cn;
    return dm_addr_add(addr, IX_NODE_WORD_OFFSET);
}

bool ix_optimistic_is_locked(uint64_t word) {
    return (word & IX_NODE_WORD_LOCKED) != 0;
}

static int word_take(struct ix_tree *tree, dm_addr addr, uint32_t *attempts) {
    uint64_t seen = ix_node_word(tree->wire);
    tree->held_word = ix_optimistic_lock_word(tree->cn, addr);
    tree->held = seen | IX_NODE_WORD_LOCKED;
    int rc = dm_cas(tree->ctx, tree->held_word, seen, tree->held, tree->old);
    if (rc < 0) {
        /* The word does not name its holder, so it cannot be freed: it may be another client's. */
        tree->may_hold = true;
        return rc;
    }
    if (*tree->old != seen) {
        DM_TRY(dm_retry(tree->ctx, DM_RETRY_LOCK, attempts));
        return IX_TREE_AGAIN;
    }
    ix_node_set_word(tree->wire, tree->held); /* what a write of the whole node leaves there */
    return 0;
}

int ix_optimistic_upgrade(struct ix_tree *tree, dm_addr addr, uint32_t *attempts) {
    enum dm_phase before = dm_phase(tree->ctx, DM_PHASE_LOCK);
    int rc = word_take(tree, addr, attempts);
    dm_phase(tree->ctx, before);
    return rc;
}

/* After a failure it is unknown what landed: the word goes to the next version by a compare-and-swap, which changes
 * nothing if the release has been done. */
static int finish(struct ix_tree *tree, int rc) {
    if (rc < 0 && !dm_is_final(rc)) {
        dm_cas(tree->ctx, tree->held_word, tree->held, tree->held + 1, NULL);
    }
    return rc;
}

int ix_optimistic_unlock(struct ix_tree *tree) {
    return finish(tree, dm_faa(tree->ctx, tree->held_word, 1, tree->old));
}

int ix_optimistic_commit_unlock(struct ix_tree *tree) {
    if (!tree->cn->combine) {
        DM_TRY(finish(tree, dm_commit(tree->ctx)));
        return ix_optimistic_unlock(tree);
    }
    /* The word is in the node, so the writes take effect before the addition. */
    dm_post_faa(tree->ctx, tree->held_word, 1, tree->old);
    return finish(tree, dm_commit(tree->ctx));
}

const struct ix_tree_policy ix_tree_optimistic = {
    .upgrade = ix_optimistic_upgrade,
    .commit_unlock = ix_optimistic_commit_unlock,
    .unlock = ix_optimistic_unlock,
    .lock_word = ix_optimistic_lock_word,
    .is_locked = ix_optimistic_is_locked,
};

bool ix_tree_word_taken(uint64_t word) {
    return word != 0;
}
