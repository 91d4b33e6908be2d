/* SPDX-License-Identifier: Apache-2.0
 *
 * The ternary lock: a word that is 0 when free, positive while writes hold shares, and negative while a client changes
 * the structure.
 *
 *     word = (shares) - 2^32 * (structure changes: the holder, and others that have not noticed it yet)
 *
 * A write adds 1. If it finds a negative word it subtracts 1 again, reads the word until it is no longer negative, and
 * begins again. A structure change subtracts 2^32, and its own share. If it finds a negative word it adds 2^32 again.
 * Otherwise new writes wait for it from now on, and it waits until the word is exactly -2^32: no share is left.
 *
 * The share is taken before the leaf is read, in the batch's order. Published it is the other way round, and then a
 * structure change can be between the two. A structure change reads the leaf again when the last share is gone;
 * published it uses what it read before.
 *
 * The word is in the node, or on chip, where nodes share words by hash. An inner node's word in the node is taken by a
 * compare-and-swap, because the write of the node includes it; on chip it is taken as a leaf's is.
 *
 * A client that changes the structure waits for no lock while it holds one: a split releases the leaf before it locks
 * the parent, and a merge, which needs three, gives up if one is in use.
 */
#include "indexes/shared/lock_tables.h"
#include "indexes/shared/retry.h"
#include "marlin.h"

enum {
    LOCKS_OFFSET = 512, /* in the reserved page of memory node 0: addresses of the lock tables of all memory nodes */
    JITTER_NS = 1000,
};

static const uint64_t share = 1;
static const uint64_t alone = UINT64_C(1) << 32;

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static uint32_t lock_count(const struct marlin_params *params, const struct dm_topology *topology) {
    return params->lock_count > 0 ? (uint32_t)params->lock_count : topology->chip_bytes / (uint32_t)sizeof(uint64_t);
}

uint64_t marlin_locks_bytes(const struct marlin_params *params, const struct dm_topology *topology) {
    return params->locks == MARLIN_LOCKS_CHIP ? sizeof(uint64_t) * (uint64_t)lock_count(params, topology) : 0;
}

int marlin_locks_check(const struct marlin_params *params, const struct dm_topology *topology, struct dm_err *err) {
    return params->locks == MARLIN_LOCKS_CHIP
               ? ix_lock_tables_check(IX_LOCK_CHIP, lock_count(params, topology), topology, "locks=node", err)
               : 0;
}

int marlin_locks_format(struct dm_ctx *ctx, const struct marlin_params *params, const struct dm_topology *topology,
                        struct dm_err *err) {
    return params->locks == MARLIN_LOCKS_CHIP
               ? ix_lock_tables_format(ctx, IX_LOCK_CHIP, lock_count(params, topology), LOCKS_OFFSET, err)
               : 0;
}

int marlin_locks_open(struct marlin_cn *cn, struct dm_ctx *ctx) {
    struct ix_lock_config config = {.count = lock_count(cn->params, cn->btree.shape->topology)};
    return cn->params->locks == MARLIN_LOCKS_CHIP ? ix_lock_tables_open(ctx, &config, LOCKS_OFFSET, &cn->locks) : 0;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static dm_addr word_of(const struct marlin_cn *cn, dm_addr node) {
    return cn->locks ? ix_locks_word(cn->locks, node) : dm_addr_add(node, IX_NODE_WORD_OFFSET);
}

/* A word on chip is found by hash. */
static dm_addr word_find(struct marlin_client *client, dm_addr node) {
    if (client->cn->locks) {
        dm_charge(client->ctx, DM_WORK_HASH, 1);
    }
    return word_of(client->cn, node);
}

static bool is_negative(uint64_t word) {
    return word >> 63;
}

static void node_read_post(struct marlin_client *client, dm_addr node, char *to) {
    if (to) {
        dm_post_read(client->ctx, node, to, client->cn->btree.tree.inner.node_bytes);
    }
}

/* A batch that changes a lock word has failed: whether it did is not known. */
static int failed(struct marlin_client *client, int rc) {
    atomic_store_explicit(&client->cn->btree.tree.interrupted, true, memory_order_relaxed);
    client->btree.tree.may_hold = true;
    return rc;
}

static int lock_commit(struct marlin_client *client) {
    int rc = dm_commit(client->ctx);
    return rc < 0 ? failed(client, rc) : 0;
}

/* ---- release ----------------------------------------------------------------------------------------------------- */

void marlin_release_post(struct marlin_client *client, struct marlin_hold *hold) {
    if (hold->undo != 0) {
        dm_post_faa(client->ctx, hold->word, hold->undo, NULL);
        hold->undo = 0;
    }
}

static int leave(struct marlin_client *client, struct marlin_hold *hold, int rc, bool waits) {
    if (dm_is_final(rc)) {
        hold->undo = 0;
        return failed(client, rc);
    }
    marlin_release_post(client, hold);
    int left = waits ? dm_commit(client->ctx) : dm_commit_async(client->ctx);
    if (left < 0) {
        failed(client, left);
    }
    return rc < 0 || left >= 0 ? rc : left;
}

int marlin_leave(struct marlin_client *client, struct marlin_hold *hold, int rc) {
    return leave(client, hold, rc, client->cn->params->release == MARLIN_RELEASE_WAITED);
}

int marlin_leave_waited(struct marlin_client *client, struct marlin_hold *hold, int rc) {
    return leave(client, hold, rc, true);
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

/* Waits, while this client holds nothing of the word, until no client changes the structure. The word is only read: to
 * add and to subtract would disturb the one that waits for it to be exactly -2^32. */
static int word_wait(struct marlin_client *client, dm_addr word, uint32_t *attempts) {
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_LOCK);
    uint64_t *old = &client->wires->old[0];
    int rc;
    do {
        rc = ix_retry(client->ctx, DM_RETRY_LOCK, attempts, 0);
        rc = rc < 0 ? rc : dm_sleep(client->ctx, dm_prng_below(dm_random(client->ctx), JITTER_NS));
        rc = rc < 0 ? rc : dm_read(client->ctx, word, old, sizeof(*old));
    } while (rc == 0 && is_negative(*old));
    dm_phase(client->ctx, before);
    return rc;
}

int marlin_share(struct marlin_client *client, dm_addr leaf, uint32_t *attempts) {
    dm_addr word = word_find(client, leaf);
    uint64_t *old = &client->wires->old[0];
    bool before = client->cn->params->share == MARLIN_SHARE_BEFORE;
    for (;;) {
        if (!before) {
            node_read_post(client, leaf, client->btree.tree.wire);
        }
        dm_post_faa(client->ctx, word, share, old);
        if (before) {
            node_read_post(client, leaf, client->btree.tree.wire);
        }
        DM_TRY(lock_commit(client));
        client->leaf = (struct marlin_hold){word, (uint64_t)0 - share};
        if (!is_negative(*old)) {
            return 0;
        }
        client->counts[MARLIN_UNDONE_ADD]++;
        DM_TRY(marlin_leave(client, &client->leaf, 0));
        DM_TRY(word_wait(client, word, attempts));
    }
}

/* ---- the lock alone ---------------------------------------------------------------------------------------------- */

/* Subtracts 2^32 and `own`, what this client holds of the word, and reads the node into `to` (NULL: not). The hold is
 * set. *others is what other clients had of the word before. */
static int alone_add(struct marlin_client *client, dm_addr node, uint64_t own, struct marlin_hold *hold, char *to,
                     uint64_t *others) {
    dm_addr word = word_find(client, node);
    uint64_t *old = &client->wires->old[0];
    dm_post_faa(client->ctx, word, (uint64_t)0 - alone - own, old);
    node_read_post(client, node, to);
    DM_TRY(lock_commit(client));
    *hold = (struct marlin_hold){word, alone};
    *others = *old - own;
    return 0;
}

/* Waits until no share of the word is left; the node is read behind each look at the word. */
static int shares_wait(struct marlin_client *client, dm_addr node, const struct marlin_hold *hold, char *to,
                       uint32_t *attempts) {
    uint64_t *old = &client->wires->old[0];
    client->counts[MARLIN_WRITERS_AWAITED]++;
    if (client->cn->params->split == MARLIN_SPLIT_EARLY) {
        to = NULL;
    }
    do {
        DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, attempts, 0));
        dm_post_faa(client->ctx, hold->word, 0, old);
        node_read_post(client, node, to);
        DM_TRY(lock_commit(client));
    } while (*old != (uint64_t)0 - alone);
    return 0;
}

int marlin_alone(struct marlin_client *client, dm_addr leaf, uint32_t *attempts) {
    char *wire = client->btree.tree.wire;
    uint64_t others;
    DM_TRY(alone_add(client, leaf, share, &client->leaf, wire, &others));
    if (is_negative(others)) {
        dm_addr word = client->leaf.word;
        client->counts[MARLIN_SPLIT_GIVEN_UP]++;
        DM_TRY(marlin_leave(client, &client->leaf, 0));
        DM_TRY(word_wait(client, word, attempts));
        return IX_TREE_AGAIN;
    }
    if (others > 0) {
        int rc = shares_wait(client, leaf, &client->leaf, wire, attempts);
        return rc < 0 ? marlin_leave_waited(client, &client->leaf, rc) : 0;
    }
    return 0;
}

int marlin_alone_try(struct marlin_client *client, dm_addr leaf, struct marlin_hold *hold, char *to) {
    uint64_t others;
    DM_TRY(alone_add(client, leaf, 0, hold, to, &others));
    return others == 0 ? 0 : marlin_leave(client, hold, IX_TREE_AGAIN);
}

/* ---- how the tree locks an inner node ---------------------------------------------------------------------------- */

static int inner_cas(struct marlin_client *client, dm_addr word, uint32_t *attempts) {
    uint64_t *old = &client->wires->old[0];
    for (uint32_t tries = 1;; tries++) {
        dm_post_cas(client->ctx, word, 0, (uint64_t)0 - alone, old);
        DM_TRY(lock_commit(client));
        if (*old == 0) {
            client->inner = (struct marlin_hold){word, alone};
            return 0;
        }
        DM_TRY(ix_retry(client->ctx, DM_RETRY_LOCK, attempts, tries));
    }
}

static int inner_alone(struct marlin_client *client, dm_addr node, uint32_t *attempts) {
    for (;;) {
        uint64_t others;
        DM_TRY(alone_add(client, node, 0, &client->inner, NULL, &others));
        if (!is_negative(others)) {
            int rc = others > 0 ? shares_wait(client, node, &client->inner, NULL, attempts) : 0;
            return rc < 0 ? marlin_leave_waited(client, &client->inner, rc) : 0;
        }
        dm_addr word = client->inner.word;
        DM_TRY(marlin_leave(client, &client->inner, 0));
        DM_TRY(word_wait(client, word, attempts));
    }
}

int marlin_inner_try(struct marlin_client *client, dm_addr node) {
    if (client->cn->locks) {
        return marlin_alone_try(client, node, &client->inner, NULL);
    }
    uint64_t *old = &client->wires->old[0];
    dm_addr word = word_of(client->cn, node);
    dm_post_cas(client->ctx, word, 0, (uint64_t)0 - alone, old);
    DM_TRY(lock_commit(client));
    client->inner = (struct marlin_hold){word, *old == 0 ? alone : 0};
    return *old == 0 ? 0 : IX_TREE_AGAIN;
}

static int lock(struct ix_tree *tree, dm_addr addr, uint32_t *attempts) {
    struct marlin_client *client = tree->client;
    enum dm_phase before = dm_phase(tree->ctx, DM_PHASE_LOCK);
    int rc = client->cn->locks ? inner_alone(client, addr, attempts)
                               : inner_cas(client, word_of(client->cn, addr), attempts);
    dm_phase(tree->ctx, before);
    return rc;
}

/* Sends what is posted and the release behind it. */
static int commit_unlock(struct ix_tree *tree) {
    struct marlin_client *client = tree->client;
    return marlin_leave_waited(client, &client->inner, 0);
}

static dm_addr lock_word(const struct ix_tree_cn *tree, dm_addr addr) {
    return word_of(tree->owner, addr);
}

const struct ix_tree_policy marlin_locking = {
    .lock = lock,
    .commit_unlock = commit_unlock,
    .unlock = commit_unlock,
    .lock_word = lock_word,
    .is_locked = ix_tree_word_taken,
};
