/* SPDX-License-Identifier: Apache-2.0
 *
 * The first line of each chunk points to the chunk before it.
 */
#include "transport/sim/slab.h"

#include <assert.h>

#include "common/large.h"

#define CHUNK_BYTES ((size_t)16 << 20)

void *sim_slab_alloc(struct sim_slab *slab, unsigned lines) {
    assert(lines > 0 && lines <= SIM_SLAB_LINES);
    void **block = slab->free[lines];
    if (block) {
        slab->free[lines] = *block;
        return block;
    }
    size_t bytes = (size_t)lines * DM_LINE;
    if (!slab->chunks || slab->used + bytes > CHUNK_BYTES) {
        void **chunk = dm_large_alloc(CHUNK_BYTES);
        if (!chunk) {
            return NULL;
        }
        *chunk = slab->chunks;
        slab->chunks = chunk;
        slab->used = DM_LINE;
    }
    slab->used += bytes;
    return (char *)slab->chunks + slab->used - bytes;
}

void sim_slab_free(struct sim_slab *slab, void *block, unsigned lines) {
    if (block) {
        *(void **)block = slab->free[lines];
        slab->free[lines] = block;
    }
}

bool sim_slab_own(struct sim_slab *slab) {
    for (void *chunk = slab->chunks; chunk; chunk = *(void **)chunk) {
        if (!dm_large_own(chunk, CHUNK_BYTES)) {
            return false;
        }
    }
    return true;
}

void sim_slab_close(struct sim_slab *slab) {
    while (slab->chunks) {
        void *before = *(void **)slab->chunks;
        dm_large_free(slab->chunks, CHUNK_BYTES);
        slab->chunks = before;
    }
    *slab = (struct sim_slab){0};
}
