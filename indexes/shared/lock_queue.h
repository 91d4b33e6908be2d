/* SPDX-License-Identifier: Apache-2.0
 *
 * Local lock queues: the clients of one compute node that want the same remote lock wait for each other here, in order
 * and without a verb, so that only the first of them tries the remote word. A queue can also hand the remote lock over:
 * the holder leaves it taken, and the next in the queue has it without a compare-and-swap (Sherman, section 4.3).
 *
 * Locks share queues by hash. A client that waits in one queue must hold none.
 */
#ifndef DM_INDEXES_SHARED_LOCK_QUEUE_H
#define DM_INDEXES_SHARED_LOCK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/dm.h"

struct ix_queues; /* of one compute node */
struct ix_queue;

enum { IX_QUEUES = 4096 /* enough that two locks of a compute node rarely share one */ };

struct ix_queues *ix_queues_open(size_t count); /* NULL when out of memory */
void ix_queues_close(struct ix_queues *queues); /* accepts NULL */

/* The queue of a number below `count`; the queue that an address hashes to. NULL if queues is NULL: no local queueing.
 */
struct ix_queue *ix_queues_at(struct ix_queues *queues, size_t number);
struct ix_queue *ix_queues_find(struct ix_queues *queues, dm_addr addr);

/* Waits for its turn, and ends it. Both do nothing without a queue. [waits] 0, or DM_ERR_STOPPED outside of the queue.
 */
int ix_queue_enter(struct dm_ctx *ctx, struct ix_queue *queue);
void ix_queue_leave(struct dm_ctx *ctx, struct ix_queue *queue);

/* Hand-over, between enter and leave. `inherit`: whether the client before left the remote lock taken, and the owner
 * that its word names. `can_hand_over`: whether a client waits and fewer than `max` hand-overs in a row were done.
 * `hand_over`: the next client will inherit the lock. */
bool ix_queue_inherit(struct ix_queue *queue, uint64_t *owner);
bool ix_queue_can_hand_over(const struct ix_queue *queue, uint32_t max);
void ix_queue_hand_over(struct ix_queue *queue, uint64_t owner);

#endif
