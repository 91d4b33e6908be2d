/* SPDX-License-Identifier: Apache-2.0
 *
 * The acknowledged counter. Acknowledging never blocks: whoever finds nobody sliding the limit slides it over all
 * acknowledged numbers; whoever finds somebody leaves its bit to them.
 */
#include "workloads/generators.h"

#include "common/err.h"

void wl_ack_init(struct wl_ack *ack, uint64_t start) {
    atomic_init(&ack->next, start);
    atomic_init(&ack->newest, start - 1);
    atomic_flag_clear(&ack->sliding);
    for (unsigned i = 0; i < WL_ACK_WINDOW / 64; i++) {
        atomic_init(&ack->window[i], 0);
    }
}

int wl_ack_next(struct wl_ack *ack, uint64_t *number) {
    /* The limit first: read the other way round it may have passed the number, and the difference would wrap. Between
     * this test and the increment other threads may take numbers too: the slack is for them. */
    uint64_t newest = wl_ack_newest(ack);
    if (atomic_load(&ack->next) - newest > WL_ACK_WINDOW - WL_ACK_SLACK) {
        return DM_ERR_RETRY_LIMIT;
    }
    *number = atomic_fetch_add_explicit(&ack->next, 1, memory_order_relaxed);
    return 0;
}

static _Atomic uint64_t *slot_word(struct wl_ack *ack, uint64_t number) {
    return &ack->window[number % WL_ACK_WINDOW / 64];
}

static uint64_t slot_bit(uint64_t number) {
    return UINT64_C(1) << (number % 64);
}

/* Clears the bits it passes before the new limit is visible: their slots may be used again at once. */
static void slide(struct wl_ack *ack) {
    uint64_t newest = atomic_load(&ack->newest);
    while ((atomic_load(slot_word(ack, newest + 1)) & slot_bit(newest + 1)) != 0) {
        newest++;
        atomic_fetch_and(slot_word(ack, newest), ~slot_bit(newest));
    }
    atomic_store(&ack->newest, newest);
}

void wl_ack_done(struct wl_ack *ack, uint64_t number) {
    atomic_fetch_or(slot_word(ack, number), slot_bit(number));
    /* Sequentially consistent on both sides: either the one sliding sees our bit when it looks again after letting go,
     * or we find the flag free. So the limit never lags behind. */
    for (;;) {
        uint64_t next = atomic_load(&ack->newest) + 1;
        if ((atomic_load(slot_word(ack, next)) & slot_bit(next)) == 0 || atomic_flag_test_and_set(&ack->sliding)) {
            return;
        }
        slide(ack);
        atomic_flag_clear(&ack->sliding);
    }
}
