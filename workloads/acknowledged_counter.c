/* SPDX-License-Identifier: Apache-2.0
 *
 * The acknowledged counter. Acknowledging never blocks. The thread that finds `advancing` clear advances `newest` over
 * all acknowledged numbers; a thread that finds it set leaves its bit to the thread that set it.
 */
#include "workloads/acknowledged_counter.h"

#include <stdlib.h>

#include "common/err.h"

int wl_ack_open(struct wl_ack *ack, uint64_t start, bool counts) {
    atomic_init(&ack->next, start);
    atomic_init(&ack->newest, start - 1);
    atomic_flag_clear(&ack->advancing);
    ack->window = counts ? calloc(WL_ACK_WINDOW / 64, sizeof ack->window[0]) : NULL;
    return counts && ack->window == NULL ? DM_ERR_NO_MEMORY : 0;
}

void wl_ack_close(struct wl_ack *ack) {
    free(ack->window);
    ack->window = NULL;
}

int wl_ack_next(struct wl_ack *ack, uint64_t *number) {
    /* `newest` must be read before `next`: read later, it could be above the `next` that was read, and the difference
     * would wrap. Other threads may take numbers between this test and the increment; the slack is for them. */
    uint64_t newest = wl_ack_newest(ack);
    if (atomic_load(&ack->next) - newest > WL_ACK_WINDOW - WL_ACK_SLACK) {
        return DM_ERR_RETRY_LIMIT;
    }
    *number = atomic_fetch_add_explicit(&ack->next, 1, memory_order_relaxed);
    return 0;
}

static _Atomic uint64_t *window_word(struct wl_ack *ack, uint64_t number) {
    return &ack->window[number % WL_ACK_WINDOW / 64];
}

static uint64_t window_bit(uint64_t number) {
    return UINT64_C(1) << (number % 64);
}

/* Clears the bits of the numbers it passes before it publishes the new `newest`, because their bits may be used again
 * as soon as it is visible. */
static void advance(struct wl_ack *ack) {
    uint64_t newest = atomic_load(&ack->newest);
    while ((atomic_load(window_word(ack, newest + 1)) & window_bit(newest + 1)) != 0) {
        newest++;
        atomic_fetch_and(window_word(ack, newest), ~window_bit(newest));
    }
    atomic_store(&ack->newest, newest);
}

void wl_ack_done(struct wl_ack *ack, uint64_t number) {
    atomic_fetch_or(window_word(ack, number), window_bit(number));
    /* All of these are sequentially consistent. Either the thread that is advancing sees our bit when it tests again
     * after it has cleared the flag, or we find the flag clear. So `newest` never lags behind. */
    for (;;) {
        uint64_t next = atomic_load(&ack->newest) + 1;
        if ((atomic_load(window_word(ack, next)) & window_bit(next)) == 0 ||
            atomic_flag_test_and_set(&ack->advancing)) {
            return;
        }
        advance(ack);
        atomic_flag_clear(&ack->advancing);
    }
}
