/* SPDX-License-Identifier: Apache-2.0
 *
 * Hierarchical locks; see locks.h.
 */
#include "indexes/shared/locks.h"

#include <stdlib.h>

#include "indexes/shared/retry.h"

struct ix_locks {
    struct ix_lock_config config;
    unsigned mns;
    dm_addr *bases;
    struct ix_queues *queues; /* mns x count; NULL without local locks */
};

int ix_locks_format(struct dm_ctx *ctx, unsigned node, enum ix_lock_memory memory, uint32_t count, dm_addr *base) {
    uint32_t bytes = count * (uint32_t)sizeof(uint64_t);
    return memory == IX_LOCK_CHIP ? dm_chip_alloc(ctx, node, bytes, base)
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
    size_t queues = config->behind > 0 ? IX_QUEUES : (size_t)mns * config->count;
    locks->queues = config->local ? ix_queues_open(queues) : NULL;
    if (!locks->bases || (config->local && !locks->queues)) {
        ix_locks_close(locks);
        return NULL;
    }
    for (unsigned i = 0; i < mns && config->behind == 0; i++) {
        locks->bases[i] = bases[i];
    }
    return locks;
}

void ix_locks_close(struct ix_locks *locks) {
    if (locks) {
        ix_queues_close(locks->queues);
        free(locks->bases);
        free(locks);
    }
}

static uint32_t word_number(const struct ix_locks *locks, dm_addr node) {
    uint64_t hash = dm_mix64(dm_addr_offset(node)) >> 32;
    return (uint32_t)(hash * locks->config.count >> 32);
}

dm_addr ix_locks_word(const struct ix_locks *locks, dm_addr node) {
    if (locks->config.behind > 0) {
        return dm_addr_add(node, locks->config.behind);
    }
    return dm_addr_add(locks->bases[dm_addr_node(node)], sizeof(uint64_t) * (uint64_t)word_number(locks, node));
}

static struct ix_queue *queue_of(const struct ix_locks *locks, dm_addr node) {
    return locks->config.behind > 0 ? ix_queues_find(locks->queues, node)
                                    : ix_queues_at(locks->queues, (size_t)dm_addr_node(node) * locks->config.count +
                                                                      word_number(locks, node));
}

/* After a failure it is unknown whether a verb took effect, and so who has the lock. */
static void free_if_own(struct dm_ctx *ctx, const struct ix_lock *lock, int rc) {
    if (rc < 0 && !dm_is_final(rc)) {
        dm_cas(ctx, lock->word, lock->owner, 0, NULL);
    }
}

static int word_acquire(struct dm_ctx *ctx, const struct ix_locks *locks, struct ix_lock *lock, uint64_t *old,
                        uint32_t *attempts) {
    for (uint32_t tries = 1;; tries++) {
        int rc = dm_cas(ctx, lock->word, 0, lock->owner, old);
        free_if_own(ctx, lock, rc);
        DM_TRY(rc);
        if (*old == 0) {
            return 0;
        }
        DM_TRY(locks->config.at_once ? dm_retry(ctx, DM_RETRY_LOCK, attempts)
                                     : ix_retry(ctx, DM_RETRY_LOCK, attempts, tries));
    }
}

static int lock_acquire(struct dm_ctx *ctx, struct ix_locks *locks, dm_addr node, uint64_t *old, uint32_t *attempts,
                        struct ix_lock *lock) {
    *lock = (struct ix_lock){
        .word = ix_locks_word(locks, node),
        .owner = (uint64_t)dm_node(ctx) << 32 | dm_ctx_id(ctx),
    };
    struct ix_queue *queue = queue_of(locks, node);
    dm_charge(ctx, DM_WORK_HASH, 2);
    DM_TRY(ix_queue_enter(ctx, queue));
    lock->queue = queue;
    if (queue && ix_queue_inherit(queue, &lock->owner)) {
        lock->handed = true;
        return 0;
    }
    int rc = word_acquire(ctx, locks, lock, old, attempts);
    if (rc < 0) {
        ix_queue_leave(ctx, queue);
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
    lock->pass = lock->queue && locks->config.hand_over && locks->config.behind == 0 &&
                 ix_queue_can_hand_over(lock->queue, locks->config.hand_over_max);
    if (!lock->pass) {
        dm_post_write(ctx, lock->word, zero, sizeof(*zero));
    }
}

int ix_lock_finish(struct dm_ctx *ctx, struct ix_lock *lock, int rc) {
    free_if_own(ctx, lock, rc);
    if (lock->pass && rc >= 0) {
        ix_queue_hand_over(lock->queue, lock->owner);
    }
    ix_queue_leave(ctx, lock->queue);
    return rc;
}

int ix_lock_release(struct dm_ctx *ctx, struct ix_locks *locks, struct ix_lock *lock, const uint64_t *zero) {
    ix_lock_post_release(ctx, locks, lock, zero);
    return ix_lock_finish(ctx, lock, dm_commit(ctx));
}
