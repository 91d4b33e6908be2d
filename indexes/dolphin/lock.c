/* SPDX-License-Identifier: Apache-2.0
 *
 * Spear, the ternary-state lock (paper, III-C): a word that is 0 when free, positive while inserts, deletes and updates
 * hold shares, and negative while a client changes the structure. Only fetch-and-add touches it.
 *
 *     word = (writers) - 2^32 * (structure changes: one holder, and others that have not noticed it yet)
 *
 * A writer adds 1. If it finds a negative word it subtracts 1 again and retries, else it has its share. A client that
 * needs the exclusive lock subtracts 2^32. If it finds a negative word it adds 2^32 again and waits. Else new writers
 * wait for it from now on, and it waits until the lower half, the number of writers, is 0. A client that has to wait
 * only reads the word until it is no longer negative.
 *
 * Inner nodes have a word of the same kind, without shares. With locks on chip several leaves may share a word. No
 * client waits for a leaf's lock while it holds one, and all wait in one order, leaf before inner node and lower before
 * upper, so there is no deadlock. Every retry of Dolphin backs off (ix_retry), because the client that is waited for, a
 * lock's holder, the writer of a value, one that has not linked a split yet, may be delayed far longer than its work
 * takes.
 */
#include "dolphin.h"

enum { SHARE = 1, JITTER_NS = 1000 };
#define LOWER_HALF UINT64_C(0xffffffff)

dm_addr dolphin_leaf_lock(const struct dolphin_cn *cn, dm_addr leaf) {
    return cn->locks ? ix_locks_word(cn->locks, leaf) : dm_addr_add(leaf, cn->layout.lock_offset);
}

void dolphin_hold_add(struct dolphin_client *client, dm_addr word, uint64_t undo) {
    assert(client->hold_count < DOLPHIN_HOLDS);
    client->holds[client->hold_count++] = (struct dolphin_hold){word, undo};
}

void dolphin_hold_post_last(struct dolphin_client *client) {
    const struct dolphin_hold *hold = &client->holds[--client->hold_count];
    dm_post_faa(client->ctx, hold->word, hold->undo, NULL);
}

void dolphin_hold_post_all(struct dolphin_client *client) {
    while (client->hold_count > 0) {
        dolphin_hold_post_last(client);
    }
}

int dolphin_release(struct dolphin_client *client, int rc) {
    if (client->hold_count == 0) {
        return rc;
    }
    if (dm_is_final(rc)) {
        /* No verb can be sent any more: what is held stays held. */
        client->hold_count = 0;
        atomic_store_explicit(&client->cn->interrupted, true, memory_order_relaxed);
        return rc;
    }
    dolphin_hold_post_all(client);
    int left = dm_commit(client->ctx);
    if (left < 0) {
        atomic_store_explicit(&client->cn->interrupted, true, memory_order_relaxed);
    }
    return rc < 0 || left >= 0 ? rc : left;
}

static bool is_taken(uint64_t word) {
    return word >> 63;
}

/* Counts a conflict, and backs off. */
static int conflict(struct dolphin_client *client, uint32_t *attempts) {
    client->counts[DOLPHIN_LOCK_CONFLICT]++;
    return ix_retry(client->ctx, DM_RETRY_LOCK, attempts, 0);
}

/* Waits, while this client holds nothing of the word, until no client holds it exclusively. The word is only read: a
 * client that adds and subtracts disturbs the holder, which waits for the lower half to be 0, and others that wait. */
static int word_wait(struct dolphin_client *client, dm_addr word, uint32_t *attempts) {
    enum dm_phase before = dm_phase(client->ctx, DM_PHASE_LOCK);
    int rc = 0;
    while (rc == 0) {
        rc = conflict(client, attempts);
        rc = rc < 0 ? rc : dm_sleep(client->ctx, dm_prng_below(dm_random(client->ctx), JITTER_NS));
        rc = rc < 0 ? rc : dm_read(client->ctx, word, &client->olds[0], sizeof(uint64_t));
        if (rc == 0 && !is_taken(client->olds[0])) {
            break;
        }
    }
    dm_phase(client->ctx, before);
    return rc;
}

int dolphin_lock_share(struct dolphin_client *client, dm_addr leaf, uint32_t *attempts) {
    dm_addr word = dolphin_leaf_lock(client->cn, leaf);
    for (;;) {
        dm_post_faa(client->ctx, word, SHARE, &client->olds[0]);
        dm_post_read(client->ctx, leaf, client->leaf, client->cn->layout.keys_bytes);
        DM_TRY(dm_commit(client->ctx));
        dolphin_hold_add(client, word, (uint64_t)0 - SHARE);
        if (!is_taken(client->olds[0])) {
            return 0;
        }
        DM_TRY(dolphin_release(client, 0));
        DM_TRY(word_wait(client, word, attempts));
    }
}

/* Waits, with the exclusive lock held, until no writer has a share of the word, and reads the leaf after that. */
static int writers_wait(struct dolphin_client *client, dm_addr word, dm_addr leaf, uint32_t *attempts) {
    do {
        DM_TRY(conflict(client, attempts));
        dm_post_faa(client->ctx, word, 0, &client->olds[0]);
        dm_post_read(client->ctx, leaf, client->leaf, client->cn->layout.used_bytes);
        DM_TRY(dm_commit(client->ctx));
    } while ((client->olds[0] & LOWER_HALF) != 0);
    return 0;
}

int dolphin_lock_upgrade(struct dolphin_client *client, dm_addr leaf, uint32_t *attempts) {
    assert(client->hold_count == 1);
    dm_addr word = client->holds[0].word;
    dm_post_faa(client->ctx, word, DOLPHIN_EXCLUSIVE - SHARE, &client->olds[0]);
    dm_post_read(client->ctx, leaf, client->leaf, client->cn->layout.used_bytes);
    DM_TRY(dm_commit(client->ctx));
    client->holds[0].undo = DOLPHIN_EXCLUSIVE_UNDO;
    if (is_taken(client->olds[0])) {
        DM_TRY(dolphin_release(client, 0));
        DM_TRY(word_wait(client, word, attempts));
        return DOLPHIN_AGAIN;
    }
    return (client->olds[0] & LOWER_HALF) == SHARE ? 0 : writers_wait(client, word, leaf, attempts);
}

int dolphin_lock_try(struct dolphin_client *client, dm_addr leaf, char *to, uint32_t bytes) {
    dm_addr word = dolphin_leaf_lock(client->cn, leaf);
    for (unsigned i = 0; i < client->hold_count; i++) {
        if (dm_addr_equal(client->holds[i].word, word)) {
            /* Two leaves share a lock word on chip, and this client holds it. */
            return dm_read(client->ctx, leaf, to, bytes);
        }
    }
    dm_post_faa(client->ctx, word, DOLPHIN_EXCLUSIVE, &client->olds[0]);
    dm_post_read(client->ctx, leaf, to, bytes);
    DM_TRY(dm_commit(client->ctx));
    dolphin_hold_add(client, word, DOLPHIN_EXCLUSIVE_UNDO);
    if (client->olds[0] != 0) {
        client->counts[DOLPHIN_LOCK_CONFLICT]++;
        dolphin_hold_post_last(client);
        DM_TRY(dm_commit(client->ctx));
        return DOLPHIN_AGAIN;
    }
    return 0;
}

int dolphin_node_lock(struct dolphin_client *client, uint64_t word, struct dolphin_node *node, uint32_t *attempts) {
    enum dolphin_type type = dolphin_word_type(word);
    dm_addr addr = dolphin_word_addr(word);
    if (!dolphin_word_is_inner(word) || !dm_addr_valid(client->ctx, addr, dolphin_node_bytes(type))) {
        return DOLPHIN_AGAIN;
    }
    for (;;) {
        dm_post_faa(client->ctx, addr, DOLPHIN_EXCLUSIVE, &client->olds[0]);
        dm_post_read(client->ctx, addr, node, dolphin_node_bytes(type));
        DM_TRY(dm_commit(client->ctx));
        dolphin_hold_add(client, addr, DOLPHIN_EXCLUSIVE_UNDO);
        bool is_gone = !dolphin_node_plausible(&node->head, word) || node->head.dead;
        client->counts[DOLPHIN_DEAD_NODE] += is_gone;
        if (client->olds[0] == 0 && !is_gone) {
            return 0;
        }
        dolphin_hold_post_last(client);
        DM_TRY(dm_commit(client->ctx));
        if (is_gone) {
            return DOLPHIN_AGAIN;
        }
        DM_TRY(word_wait(client, addr, attempts));
    }
}
