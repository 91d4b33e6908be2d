/* SPDX-License-Identifier: Apache-2.0
 *
 * Shell's method with Ciura's gaps: leaves have some tens of entries, in no order or nearly in order.
 */
#include "indexes/shared/sort.h"

#include "common/compiler.h"

enum {
    LOOK_COMPARES = 2,
    SORT_COMPARES = 8, /* of one key, with copying its pair, in a leaf of some tens */
};

void ix_sort(uint64_t *keys, uint16_t *positions, unsigned count) {
    static const unsigned gaps[] = {701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < DM_ARRAY_LEN(gaps); g++) {
        unsigned gap = gaps[g];
        for (unsigned i = gap; i < count; i++) {
            uint64_t key = keys[i];
            uint16_t position = positions[i];
            unsigned at = i;
            for (; at >= gap && keys[at - gap] > key; at -= gap) {
                keys[at] = keys[at - gap];
                positions[at] = positions[at - gap];
            }
            keys[at] = key;
            positions[at] = position;
        }
    }
}

void ix_sort_charge(struct dm_ctx *ctx, unsigned looked, unsigned sorted) {
    dm_charge(ctx, DM_WORK_KEY_COMPARE, LOOK_COMPARES * looked + SORT_COMPARES * sorted);
}
