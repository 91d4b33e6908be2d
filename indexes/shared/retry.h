/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a loop on remote state that waits for another client: the retry is counted, and after many refusals in a
 * row the next attempt is delayed.
 */
#ifndef DM_INDEXES_SHARED_RETRY_H
#define DM_INDEXES_SHARED_RETRY_H

#include <stdint.h>

#include "transport/dm.h"

/* dm_retry and ix_back_off in one call. `tries` are the refusals in a row; 0 stands for the retries of the whole
 * operation, *attempts. 0, or a failure of either. [waits] */
int ix_retry(struct dm_ctx *ctx, enum dm_retry cause, uint32_t *attempts, uint32_t tries);

/* The back-off alone, where the retry has been counted before it is known whether to wait. Does not wait for the first
 * 255 refusals; then 2 us, doubled after every 64 further refusals up to 256 us. [waits] */
int ix_back_off(struct dm_ctx *ctx, uint32_t tries);

#endif
