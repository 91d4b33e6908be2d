/* SPDX-License-Identifier: Apache-2.0
 *
 * YCSB's acknowledged counter. It numbers the keys that a run inserts, and knows up to which number all inserts have
 * been acknowledged: key choosers draw only from these.
 */
#ifndef DM_WORKLOADS_ACKNOWLEDGED_COUNTER_H
#define DM_WORKLOADS_ACKNOWLEDGED_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Several threads take numbers. `newest` is the greatest number up to which every number has been acknowledged. */
enum { WL_ACK_WINDOW = 1 << 20, WL_ACK_SLACK = 1 << 16 };
struct wl_ack {
    _Alignas(64) _Atomic uint64_t next;
    _Alignas(64) _Atomic uint64_t newest;
    _Alignas(64) atomic_flag advancing; /* one thread at a time advances `newest` */
    /* One bit for each number that is acknowledged but still above `newest`. */
    _Alignas(64) _Atomic uint64_t *window; /* WL_ACK_WINDOW / 64 words */
};

/* `start` is the first number that will be taken; all numbers below it count as acknowledged. start > 0. If no number
 * will be taken, `counts` is false and nothing is allocated. 0, or DM_ERR_NO_MEMORY. */
int wl_ack_open(struct wl_ack *ack, uint64_t start, bool counts);

/* Also after a failure of wl_ack_open, and of a zeroed counter. */
void wl_ack_close(struct wl_ack *ack);

/* Takes the next number. Returns 0, or DM_ERR_RETRY_LIMIT when almost WL_ACK_WINDOW numbers wait for the oldest one to
 * be acknowledged. At most WL_ACK_SLACK threads may call it at the same time. */
int wl_ack_next(struct wl_ack *ack, uint64_t *number);

/* Acknowledges a number that was taken: each once, in any order. */
void wl_ack_done(struct wl_ack *ack, uint64_t number);

static inline uint64_t wl_ack_newest(struct wl_ack *ack) {
    return atomic_load_explicit(&ack->newest, memory_order_acquire);
}

#endif
