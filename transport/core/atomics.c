/* SPDX-License-Identifier: Apache-2.0
 *
 * What an atomic verb does to its word. Every transport that executes atomics itself, the emulation of masked atomics,
 * and the traces use this one function.
 */
#include "transport/core/core.h"

uint64_t dm_atomic_apply(const struct dm_verb *verb, uint64_t found, bool *swapped) {
    const struct dm_mask *op = &verb->op;
    *swapped = true;
    switch (verb->kind) {
    case DM_VERB_FAA:
        return found + op->swap;
    case DM_VERB_MASKED_FAA: {
        /* Add below every field's top bit, then the top bits without carry: no carry leaves a field. */
        uint64_t tops = op->compare_mask;
        return ((found & ~tops) + (op->swap & ~tops)) ^ ((found ^ op->swap) & tops);
    }
    default:
        if ((found & op->compare_mask) != (op->compare & op->compare_mask)) {
            *swapped = false;
            return found;
        }
        return (found & ~op->swap_mask) | (op->swap & op->swap_mask);
    }
}
