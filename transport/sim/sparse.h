/* SPDX-License-Identifier: Apache-2.0
 *
 * A page of which most words are zero, kept as the others: what radix trees of spread keys consist of. A range is read
 * and written where it is, without the rest of the page.
 */
#ifndef DM_TRANSPORT_SIM_SPARSE_H
#define DM_TRANSPORT_SIM_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/sim/slab.h"

enum {
    SIM_PAGE = 4096,
    SIM_PAGE_WORDS = SIM_PAGE / 8,
    SIM_PAGE_GROUPS = SIM_PAGE_WORDS / 64,
    SIM_SPARSE_MOST = 252 /* words, less than half of a page; and less than 256, so that numbers of them fit bytes */
};

struct sim_sparse {
    uint64_t kept[SIM_PAGE_GROUPS];  /* bit i of group g: word 64 g + i is in `words` */
    uint8_t before[SIM_PAGE_GROUPS]; /* words that are kept of the groups before g */
    uint64_t words[];
};

/* Cache lines of a sparse page that keeps so many words. */
static inline unsigned sim_sparse_lines(unsigned words) {
    return sim_slab_lines(sizeof(struct sim_sparse) + words * sizeof(uint64_t));
}

/* How many of the page's words are kept. */
unsigned sim_sparse_count(const struct sim_sparse *sparse);

/* NULL if the page has more than SIM_SPARSE_MOST words that are not zero, or the host has no memory. */
struct sim_sparse *sim_sparse_new(struct sim_slab *slab, const void *page);

/* Copies `len` bytes from offset `at` of the page; at + len is at most SIM_PAGE. */
void sim_sparse_read(const struct sim_sparse *sparse, unsigned at, void *out, unsigned len);

/* Writes `len` bytes, at least one, at offset `at`. *sparse may move; NULL is a page that is all zero. False, and
 * nothing is changed, if the page has too many words then or the host has no memory. */
bool sim_sparse_write(struct sim_slab *slab, struct sim_sparse **sparse, unsigned at, const void *data, unsigned len);

#endif
