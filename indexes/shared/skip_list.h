/* SPDX-License-Identifier: Apache-2.0
 *
 * What a search of a skip list costs a processor, for charges. One node in IX_LIST_BRANCHING is one level higher, and a
 * node takes a line.
 */
#ifndef DM_INDEXES_SHARED_SKIP_LIST_H
#define DM_INDEXES_SHARED_SKIP_LIST_H

#include <stdint.h>

#include "transport/dm.h"

/* On each level a search moves on by IX_LIST_BRANCHING - 1 nodes on average and then meets one that is too large, which
 * in one case of IX_LIST_BRANCHING is the one of the level above: 15 nodes in four levels. */
enum { IX_LIST_BRANCHING = 4, IX_LIST_QUARTERS = IX_LIST_BRANCHING * IX_LIST_BRANCHING - 1 };

/* Bytes that searches access between two meetings of the same node of a level: it is met once in as many searches as
 * the level has nodes, and each of them passes the levels below, and `beside` other bytes. tests/bench/skip_list_bench
 * measures searches beside this. */
static inline uint64_t ix_list_reuse_bytes(uint64_t nodes, unsigned level, uint64_t beside) {
    return nodes * (DM_LINE + (uint64_t)level * DM_LINE * IX_LIST_QUARTERS / IX_LIST_BRANCHING + beside);
}

#endif
