/* SPDX-License-Identifier: Apache-2.0
 *
 * Local lock queues; see lock_queue.h. The members of a queue are only touched by the client whose turn it is, except
 * `waiting`, which a client raises before it waits.
 */
#include "indexes/shared/lock_queue.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Entering and leaving: seven atomic operations, on a line that the processor has. */
enum { TURN_PROBES = 3 };

struct ix_queue {
    struct dm_mutex mutex;
    _Atomic uint32_t waiting; /* clients that are about to take the mutex and will take it */
    uint32_t passed;          /* hand-overs in a row */
    uint64_t owner;           /* what the remote word holds while `handed` */
    bool handed;              /* the next client has the remote lock already */
    uint32_t among;           /* queues of the compute node: an access to one is charged as if all were in use */
};

struct ix_queues {
    size_t count;
    struct ix_queue queue[];
};

struct ix_queues *ix_queues_open(size_t count) {
    struct ix_queues *queues = calloc(1, sizeof(*queues) + count * sizeof(queues->queue[0]));
    if (queues) {
        queues->count = count;
        for (size_t i = 0; i < count; i++) {
            queues->queue[i].among = (uint32_t)count;
        }
    }
    return queues;
}

void ix_queues_close(struct ix_queues *queues) {
    free(queues);
}

struct ix_queue *ix_queues_at(struct ix_queues *queues, size_t number) {
    assert(!queues || number < queues->count);
    return queues ? &queues->queue[number] : NULL;
}

struct ix_queue *ix_queues_find(struct ix_queues *queues, dm_addr addr) {
    return queues ? &queues->queue[dm_mix64(addr.bits) % queues->count] : NULL;
}

int ix_queue_enter(struct dm_ctx *ctx, struct ix_queue *queue) {
    if (!queue) {
        return 0;
    }
    dm_charge(ctx, DM_WORK_CACHE_PROBE, TURN_PROBES);
    dm_charge_access(ctx, 1, queue->among * sizeof(*queue));
    atomic_fetch_add_explicit(&queue->waiting, 1, memory_order_relaxed);
    int rc = dm_mutex_lock(ctx, &queue->mutex);
    atomic_fetch_sub_explicit(&queue->waiting, 1, memory_order_relaxed);
    return rc;
}

void ix_queue_leave(struct dm_ctx *ctx, struct ix_queue *queue) {
    if (queue) {
        dm_mutex_unlock(ctx, &queue->mutex);
    }
}

bool ix_queue_inherit(struct ix_queue *queue, uint64_t *owner) {
    if (!queue->handed) {
        queue->passed = 0;
        return false;
    }
    queue->handed = false;
    *owner = queue->owner;
    return true;
}

bool ix_queue_can_hand_over(const struct ix_queue *queue, uint32_t max) {
    /* A client counted as waiting takes its turn and with it the lock; one that is not counted yet does no harm. */
    return queue->passed < max && atomic_load_explicit(&queue->waiting, memory_order_relaxed) > 0;
}

void ix_queue_hand_over(struct ix_queue *queue, uint64_t owner) {
    queue->handed = true;
    queue->owner = owner;
    queue->passed++;
}
