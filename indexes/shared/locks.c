/* SPDX-License-Identifier: Apache-2.0
 *
 * Hierarchical locks; see locks.h. A slot of the local table is guarded by its own mutex, so its members are only
 * touched by the holder, except `waiting`, which a context raises before it queues.
 */
#include "indexes/shared/locks.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "indexes/shared/retry.h"

struct ix_lock_slot {
    struct dm_mutex mutex;
    _Atomic uint32_t waiting; /* contexts that are about to take the mutex and will take it */
    uint32_t passed;          /* hand-overs in a row */
    uint64_t owner;           /* what the remote word holds while `handed` */
    bool handed;              /* the next holder has the remote lock already */
};

struct ix_locks {
    struct ix_lock_config config;
    unsigned mns;
    dm_addr *bases;
    struct ix_lock_slot *slots; /* mns x count; NULL without local locks */
};

int ix_locks_format(struct dm_ctx *ctx, unsigned node, enum ix_lock_place place, uint32_t count, dm_addr *base) {
    uint32_t bytes = count * (uint32_t)sizeof(uint64_t);
    return place == IX_LOCK_CHIP ? dm_chip_alloc(ctx, node, bytes, base)
                                 : dm_alloc(ctx, node, bytes, DM_LINE, DM_MEM_LOCK, base);
}

struct ix_locks *ix_locks_open(const struct ix_lock_config *config, const dm_addr *bases, unsigned mns) {
    struct ix_locks *locks = calloc(1, sizeof(*locks));
    if (!locks) {
        return NULL;
    }
    locks->config = *config;
    locks->mns = mns;
    locks->bases = calloc(mns, sizeof(*bases));
    locks->slots = config->local ? calloc((size_t)mns * config->count, sizeof(*locks->slots)) : NULL;
    if (!locks->bases || (config->local && !locks->slots)) {
        ix_locks_close(locks);
        return NULL;
    }
    for (unsigned i = 0; i < mns; i++) {
        locks->bases[i] = bases[i];
    }
    return locks;
}

void ix_locks_close(struct ix_locks *locks) {
    if (locks) {
        free(locks->slots);
        free(locks->bases);
        free(locks);
    }
}

static uint32_t word_number(const struct ix_locks *locks, dm_addr node) {
    uint64_t hash = dm_mix64(dm_addr_offset(node)) >> 32;
    return (uint32_t)(hash * locks->config.count >> 32);
}

dm_addr ix_locks_word(const struct ix_locks *locks, dm_addr node) {
    return dm_addr_add(locks->bases[dm_addr_node(node)], sizeof(uint64_t) * (uint64_t)word_number(locks, node));
}

static int word_acquire(struct dm_ctx *ctx, struct ix_lock *lock, uint64_t *old, uint32_t *attempts) {
    for (uint32_t tries = 1;; tries++) {
        DM_TRY(dm_cas(ctx, lock->word, 0, lock->owner, old));
        if (*old == 0) {
            return 0;
        }
        DM_TRY(ix_retry(ctx, DM_RETRY_LOCK, attempts, tries));
    }
}

static int lock_acquire(struct dm_ctx *ctx, struct ix_locks *locks, dm_addr node, uint64_t *old, uint32_t *attempts,
                        struct ix_lock *lock) {
    *lock = (struct ix_lock){
        .word = ix_locks_word(locks, node),
        .owner = (uint64_t)dm_node(ctx) << 32 | dm_ctx_id(ctx),
    };
    if (!locks->slots) {
        return word_acquire(ctx, lock, old, attempts);
    }
    struct ix_lock_slot *slot =
        &locks->slots[(size_t)dm_addr_node(node) * locks->config.count + word_number(locks, node)];
    atomic_fetch_add_explicit(&slot->waiting, 1, memory_order_relaxed);
    int rc = dm_mutex_lock(ctx, &slot->mutex);
    atomic_fetch_sub_explicit(&slot->waiting, 1, memory_order_relaxed);
    if (rc < 0) {
        return rc;
    }
    lock->slot = slot;
    if (slot->handed) {
        slot->handed = false;
        lock->handed = true;
        lock->owner = slot->owner;
        return 0;
    }
    slot->passed = 0;
    rc = word_acquire(ctx, lock, old, attempts);
    if (rc < 0) {
        dm_mutex_unlock(ctx, &slot->mutex);
    }
    return rc;
}

int ix_lock_acquire(struct dm_ctx *ctx, struct ix_locks *locks, dm_addr node, uint64_t *old, uint32_t *attempts,
                    struct ix_lock *lock) {
    enum dm_phase before = dm_phase(ctx, DM_PHASE_LOCK);
    int rc = lock_acquire(ctx, locks, node, old, attempts, lock);
    dm_phase(ctx, before);
    return rc;
}

void ix_lock_post_release(struct dm_ctx *ctx, struct ix_locks *locks, struct ix_lock *lock, const uint64_t *zero) {
    struct ix_lock_slot *slot = lock->slot;
    /* Whoever is counted as waiting takes the mutex and with it the lock; a late comer not yet counted does no harm. */
    lock->pass = slot && locks->config.hand_over && slot->passed < locks->config.hand_over_max &&
                 atomic_load_explicit(&slot->waiting, memory_order_relaxed) > 0;
    if (!lock->pass) {
        dm_post_write(ctx, lock->word, zero, sizeof(*zero));
    }
}

int ix_lock_finish(struct dm_ctx *ctx, struct ix_lock *lock, int rc) {
    struct ix_lock_slot *slot = lock->slot;
    if (rc < 0 && rc != DM_ERR_STOPPED && rc != DM_ERR_PEER) {
        dm_cas(ctx, lock->word, lock->owner, 0, NULL);
    }
    if (slot) {
        if (lock->pass && rc >= 0) {
            slot->handed = true;
            slot->owner = lock->owner;
            slot->passed++;
        }
        dm_mutex_unlock(ctx, &slot->mutex);
    }
    return rc;
}

int ix_lock_release(struct dm_ctx *ctx, struct ix_locks *locks, struct ix_lock *lock, const uint64_t *zero) {
    ix_lock_post_release(ctx, locks, lock, zero);
    return ix_lock_finish(ctx, lock, dm_commit(ctx));
}
