/* SPDX-License-Identifier: Apache-2.0
 *
 * Retries with back-off; see retry.h.
 */
#include "indexes/shared/retry.h"

/* As published, a refused compare-and-swap is sent again at once. But a holder may be delayed far longer than a lock is
 * meant to be held (its core is taken away, or its node has stopped), and attempts at full speed only delay it more. */
enum { TRIES_AT_ONCE = 256, TRIES_A_STEP = 64, BACK_OFF_NS = 2000, BACK_OFF_STEPS = 7 };

int ix_back_off(struct dm_ctx *ctx, uint32_t tries) {
    if (tries < TRIES_AT_ONCE) {
        return 0;
    }
    uint32_t step = (tries - TRIES_AT_ONCE) / TRIES_A_STEP;
    return dm_sleep(ctx, (uint64_t)BACK_OFF_NS << (step < BACK_OFF_STEPS ? step : BACK_OFF_STEPS));
}

int ix_retry(struct dm_ctx *ctx, enum dm_retry cause, uint32_t *attempts, uint32_t tries) {
    DM_TRY(dm_retry(ctx, cause, attempts));
    return ix_back_off(ctx, tries > 0 ? tries : *attempts);
}
