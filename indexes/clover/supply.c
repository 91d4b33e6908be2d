/* SPDX-License-Identifier: Apache-2.0
 *
 * A metadata server's space: spaces of replaced versions first, in the order in which they were taken back, then new
 * memory of the pool.
 */
#include <stdlib.h>

#include "server.h"

enum { ENTRIES = 64, SHORTCUTS = 64, PIECE_BYTES = 8192 };
static_assert((int)CLOVER_HEAD_BYTES + (int)CLOVER_VALUE_MAX <= (int)PIECE_BYTES, "a piece has a space");

int clover_supply_entry(struct dm_ctx *ctx, struct clover_server *server, uint64_t *offset, uint64_t *shortcut) {
    struct clover_supply *supply = &server->supply;
    dm_addr addr;
    int rc = 0;
    DM_TRY(dm_mutex_lock(ctx, &supply->mutex));
    if (supply->entries_left == 0) {
        rc = dm_alloc(ctx, server->node, ENTRIES * sizeof(struct clover_entry), DM_LINE, DM_MEM_INNER, &addr);
        if (rc == 0) {
            supply->entries = dm_addr_offset(addr);
            supply->entries_left = ENTRIES;
        }
    }
    if (rc == 0 && supply->shortcuts_left == 0) {
        rc = dm_alloc(ctx, DM_ANY_NODE, SHORTCUTS * sizeof(uint64_t), DM_LINE, DM_MEM_META, &addr);
        if (rc == 0) {
            supply->shortcuts = addr.bits;
            supply->shortcuts_left = SHORTCUTS;
        }
    }
    if (rc == 0) {
        *offset = supply->entries;
        supply->entries += sizeof(struct clover_entry);
        supply->entries_left--;
        *shortcut = supply->shortcuts;
        supply->shortcuts += sizeof(uint64_t);
        supply->shortcuts_left--;
    }
    dm_mutex_unlock(ctx, &supply->mutex);
    return rc;
}

/* In pieces that leave little of a chunk unused; or as many as there is memory for. */
static int new_take(struct dm_ctx *ctx, const struct clover_server *server, uint32_t count, uint64_t *pointers,
                    uint32_t *granted) {
    uint32_t bytes = server->geometry.space_bytes, piece = PIECE_BYTES / bytes;
    while (count > 0) {
        dm_addr addr;
        piece = piece > count ? count : piece;
        int rc = dm_alloc(ctx, DM_ANY_NODE, piece * bytes, DM_LINE, DM_MEM_VALUE, &addr);
        if (rc == DM_ERR_NO_MEMORY && piece > 1) {
            piece = 1;
            continue;
        }
        if (rc != 0) {
            return rc == DM_ERR_NO_MEMORY ? 0 : rc;
        }
        for (uint32_t i = 0; i < piece; i++) {
            *pointers++ = clover_pointer_make(dm_addr_add(addr, (uint64_t)i * bytes), 1);
        }
        *granted += piece;
        count -= piece;
    }
    return 0;
}

int clover_supply_grant(struct dm_ctx *ctx, struct clover_server *server, uint32_t count, uint64_t *pointers,
                        uint32_t *granted) {
    struct clover_supply *supply = &server->supply;
    *granted = 0;
    DM_TRY(dm_mutex_lock(ctx, &supply->mutex));
    while (*granted < count && supply->free_count > 0) {
        pointers[(*granted)++] = supply->free[supply->free_first];
        supply->free_first = (supply->free_first + 1) % supply->free_capacity;
        supply->free_count--;
    }
    dm_mutex_unlock(ctx, &supply->mutex);
    dm_charge(ctx, DM_WORK_CACHE_PROBE, 1);
    dm_charge(ctx, DM_WORK_LINE_COPY, 1 + *granted * (uint32_t)sizeof(*pointers) / DM_LINE);
    clover_event_add(server, CLOVER_EVENT_REUSED, *granted);
    return new_take(ctx, server, count - *granted, pointers + *granted, granted);
}

/* A ring of twice the size. */
static int ring_grow(struct clover_supply *supply) {
    uint64_t capacity = supply->free_capacity ? 2 * supply->free_capacity : 1024;
    uint64_t *grown = malloc(capacity * sizeof(*grown));
    if (!grown) {
        return DM_ERR_NO_MEMORY;
    }
    for (uint64_t i = 0; i < supply->free_count; i++) {
        grown[i] = supply->free[(supply->free_first + i) % supply->free_capacity];
    }
    free(supply->free);
    supply->free = grown;
    supply->free_capacity = capacity;
    supply->free_first = 0;
    return 0;
}

int clover_supply_return(struct dm_ctx *ctx, struct clover_server *server, uint64_t pointer) {
    struct clover_supply *supply = &server->supply;
    clover_event_add(server, CLOVER_EVENT_COLLECTED, 1);
    dm_charge(ctx, DM_WORK_CACHE_PROBE, 1);
    if (clover_use_of(pointer) >= server->params->uses) {
        clover_event_add(server, CLOVER_EVENT_RETIRED, 1);
        return 0;
    }
    DM_TRY(dm_mutex_lock(ctx, &supply->mutex));
    int rc = supply->free_count == supply->free_capacity ? ring_grow(supply) : 0;
    if (rc == 0) {
        uint64_t at = (supply->free_first + supply->free_count++) % supply->free_capacity;
        supply->free[at] = clover_pointer_make(clover_addr_of(pointer), clover_use_of(pointer) + 1);
    }
    dm_mutex_unlock(ctx, &supply->mutex);
    return rc;
}
