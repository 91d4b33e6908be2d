/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of some cache lines in large pages: what compressed memory is kept in. What is freed is kept for blocks of the
 * same size; all memory is returned at the end.
 */
#ifndef DM_TRANSPORT_SIM_SLAB_H
#define DM_TRANSPORT_SIM_SLAB_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/dm.h"

enum { SIM_SLAB_LINES = 33 }; /* of the largest block: half of a page and a header */

struct sim_slab {
    void *chunks;                   /* the last one, which points to the one before it */
    size_t used;                    /* bytes of the last one */
    void *free[SIM_SLAB_LINES + 1]; /* by number of lines; each block points to the next */
};

/* Cache lines of a block for so many bytes. */
static inline unsigned sim_slab_lines(size_t bytes) {
    return (unsigned)((bytes + DM_LINE - 1) / DM_LINE);
}

/* `lines` cache lines, 1 to SIM_SLAB_LINES, aligned to one, of any content; NULL if the host has no memory. */
void *sim_slab_alloc(struct sim_slab *slab, unsigned lines);
void sim_slab_free(struct sim_slab *slab, void *block, unsigned lines);

/* dm_large_own of all blocks. */
bool sim_slab_own(struct sim_slab *slab);

/* Frees all blocks. */
void sim_slab_close(struct sim_slab *slab);

#endif
