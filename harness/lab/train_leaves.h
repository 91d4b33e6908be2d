/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves for timing what training costs beside fitting lines: storing keys in leaves, reading them back, writing the
 * table of leaves. A leaf has a count, `slots` keys and `slots` values of 8 bytes, as XStore's and ROLEX's leaves have
 * (sections 5.1 and 3.3 of their papers). The memory is there before anything is timed, as a memory node's is.
 */
#ifndef DM_HARNESS_LAB_TRAIN_LEAVES_H
#define DM_HARNESS_LAB_TRAIN_LEAVES_H

#include <stdbool.h>
#include <stdint.h>

struct hx_leaves {
    uint64_t *words; /* of all leaves */
    uint64_t *table; /* of each leaf: its number */
    uint32_t slots, fill;
    uint64_t count, capacity; /* leaves */
    uint64_t read;            /* those that hx_leaves_next has passed */
    uint32_t read_in_leaf;
};

/* Memory for `capacity` leaves. DM_ERR_NO_MEMORY. */
int hx_leaves_open(struct hx_leaves *leaves, uint64_t capacity, uint32_t slots, uint32_t fill);
void hx_leaves_close(struct hx_leaves *leaves);

/* Begins the next leaf, and its entry in the table. */
static inline void hx_leaves_begin(struct hx_leaves *leaves) {
    leaves->table[leaves->count] = leaves->count;
    leaves->words[leaves->count * (1 + 2 * (uint64_t)leaves->slots)] = 0;
    leaves->count++;
}

/* Appends a pair to the last leaf, which has `fill` of them at most; then the next leaf begins. */
static inline void hx_leaves_add(struct hx_leaves *leaves, uint64_t key) {
    uint64_t stride = 1 + 2 * (uint64_t)leaves->slots;
    if (leaves->count == 0 || leaves->words[(leaves->count - 1) * stride] == leaves->fill) {
        hx_leaves_begin(leaves);
    }
    uint64_t *leaf = leaves->words + (leaves->count - 1) * stride;
    uint64_t at = leaf[0]++;
    leaf[1 + at] = key;
    leaf[1 + leaves->slots + at] = key;
}

/* Evicts the leaves from the processor's caches, and reads them from the first one on. DM_ERR_NO_MEMORY. */
int hx_leaves_rewind(struct hx_leaves *leaves);

/* The next key, found by the table; false after the last one. */
static inline bool hx_leaves_next(struct hx_leaves *leaves, uint64_t *key) {
    while (leaves->read < leaves->count) {
        const uint64_t *leaf = leaves->words + leaves->table[leaves->read] * (1 + 2 * (uint64_t)leaves->slots);
        if (leaves->read_in_leaf < leaf[0]) {
            *key = leaf[1 + leaves->read_in_leaf++];
            return true;
        }
        leaves->read++;
        leaves->read_in_leaf = 0;
    }
    return false;
}

#endif
