/* SPDX-License-Identifier: Apache-2.0
 *
 * A meter of index code: the time in which it runs, and what it charges for the same. The time stops whenever a context
 * leaves index code for the network or for a wait, and continues when it returns. Without a meter each of these
 * hooks asks one condition and does nothing.
 */
#include <stdlib.h>
#include <time.h>

#include "transport/core/core.h"

/* A longer part is one in which the operating system took the processor away: it is left out. */
enum { INTERRUPTED_NS = 200000 };

struct dm_meter {
    struct dm_work_costs costs;
};

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int dm_meter_open(const char *profile, struct dm_meter **meter, struct dm_err *err) {
    struct dm_profile numbers;
    *meter = NULL;
    DM_TRY(dm_profile_load(profile, &numbers, err));
    *meter = calloc(1, sizeof(**meter));
    if (!*meter) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    dm_work_costs_init(&(*meter)->costs, &numbers);
    return 0;
}

void dm_meter_close(struct dm_meter *meter) {
    free(meter);
}

void dm_fabric_meter(struct dm_fabric *fabric, const struct dm_meter *meter) {
    fabric->meter = meter;
}

void dm_meter_stop(struct dm_ctx *ctx) {
    if (ctx->is_metered) {
        uint64_t ns = clock_ns() - ctx->code_since_ns;
        if (ns < INTERRUPTED_NS) {
            ctx->account->code_ns += ns;
            ctx->account->code_parts++;
        }
    }
}

void dm_meter_go(struct dm_ctx *ctx) {
    if (ctx->is_metered) {
        ctx->code_since_ns = clock_ns();
    }
}

void dm_code_begin(struct dm_ctx *ctx) {
    ctx->is_metered = ctx->fabric->meter != NULL;
    dm_meter_go(ctx);
}

void dm_code_end(struct dm_ctx *ctx) {
    dm_meter_stop(ctx);
    ctx->is_metered = false;
}

static void count(struct dm_ctx *ctx, uint64_t ps) {
    ctx->account->charges++;
    ctx->account->charged_ps += ps;
}

void dm_meter_charge(struct dm_ctx *ctx, enum dm_work work, uint32_t units) {
    if (ctx->is_metered) {
        count(ctx, dm_work_ps(&ctx->fabric->meter->costs, work, units));
    }
}

void dm_meter_charge_access(struct dm_ctx *ctx, uint32_t accesses, uint64_t bytes) {
    if (ctx->is_metered) {
        count(ctx, dm_work_access_ps(&ctx->fabric->meter->costs, accesses, bytes));
    }
}
