/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of remote memory that are wrong for a while, as those of a write that has not landed in full are: a client of
 * its own damages them when another one asks for it, and mends them after some time. An answer that was given before
 * they were mended is one from wrong bytes.
 */
#ifndef DM_TESTS_INDEX_DAMAGE_H
#define DM_TESTS_INDEX_DAMAGE_H

#include "conformance/index_world.h"

enum { DAMAGE_NS = 30000, DAMAGE_STEP_NS = 500, DAMAGE_BYTES = 4096 };

struct damage {
    dm_addr addr; /* null: nothing is asked for */
    uint32_t bytes;
    void (*spoil)(void *arg, unsigned char *bytes);
    void *arg;
    bool is_damaged, is_mended, ended;
};

/* The client that damages, until `ended`. */
static inline void damage_entry(struct dm_ctx *ctx, void *arg) {
    struct damage *damage = arg;
    unsigned char *bytes = dm_local_alloc(ctx, DAMAGE_BYTES), *kept = dm_local_alloc(ctx, DAMAGE_BYTES);
    while (!damage->ended) {
        if (dm_addr_is_null(damage->addr)) {
            dm_sleep(ctx, DAMAGE_STEP_NS);
            continue;
        }
        WORLD_CHECK_EQ(dm_read(ctx, damage->addr, kept, damage->bytes), 0);
        memcpy(bytes, kept, damage->bytes);
        damage->spoil(damage->arg, bytes);
        WORLD_CHECK_EQ(dm_write(ctx, damage->addr, bytes, damage->bytes), 0);
        damage->is_damaged = true;
        dm_sleep(ctx, DAMAGE_NS);
        damage->is_mended = true;
        WORLD_CHECK_EQ(dm_write(ctx, damage->addr, kept, damage->bytes), 0);
        damage->addr = DM_NULL;
    }
}

/* Has bytes damaged; they are when it returns. */
static inline void damage_begin(struct dm_ctx *ctx, struct damage *damage, dm_addr addr, uint32_t bytes) {
    WORLD_CHECK(bytes <= DAMAGE_BYTES);
    damage->is_damaged = damage->is_mended = false;
    damage->bytes = bytes;
    damage->addr = addr;
    while (!damage->is_damaged) {
        dm_sleep(ctx, DAMAGE_STEP_NS);
    }
}

/* The operation after damage_begin has its answer; waits until the bytes are mended. */
static inline void damage_end(struct dm_ctx *ctx, struct damage *damage) {
    WORLD_CHECK(damage->is_mended);
    while (!dm_addr_is_null(damage->addr)) {
        dm_sleep(ctx, DAMAGE_STEP_NS);
    }
}

#endif
