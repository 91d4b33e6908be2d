/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the leaves of a timed training.
 */
#include "harness/lab/train_leaves.h"

#include <stdlib.h>
#include <string.h>

#include "common/err.h"

/* More than the last-level caches of the servers of today. */
enum { EVICT_BYTES = 128 << 20 };

int hx_leaves_open(struct hx_leaves *leaves, uint64_t capacity, uint32_t slots, uint32_t fill) {
    uint64_t words = capacity * (1 + 2 * (uint64_t)slots);
    *leaves = (struct hx_leaves){.slots = slots, .fill = fill, .capacity = capacity};
    leaves->words = malloc((words + 1) * sizeof(*leaves->words));
    leaves->table = malloc((capacity + 1) * sizeof(*leaves->table));
    if (!leaves->words || !leaves->table) {
        hx_leaves_close(leaves);
        return DM_ERR_NO_MEMORY;
    }
    /* So that the kernel provides the pages now. */
    memset(leaves->words, 1, (words + 1) * sizeof(*leaves->words));
    memset(leaves->table, 1, (capacity + 1) * sizeof(*leaves->table));
    return 0;
}

void hx_leaves_close(struct hx_leaves *leaves) {
    free(leaves->words);
    free(leaves->table);
    *leaves = (struct hx_leaves){.words = NULL};
}

int hx_leaves_rewind(struct hx_leaves *leaves) {
    volatile unsigned char *other = malloc(EVICT_BYTES);
    if (!other) {
        return DM_ERR_NO_MEMORY;
    }
    for (uint64_t at = 0; at < EVICT_BYTES; at += 64) {
        other[at] = (unsigned char)at;
    }
    free((void *)(uintptr_t)other);
    leaves->read = 0;
    leaves->read_in_leaf = 0;
    return 0;
}
