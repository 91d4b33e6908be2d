/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivation of random streams from a seed, a name and a number.
 */
#include "common/prng.h"

#include <stddef.h>

/* One-to-one in `word` for a given state and in the state for a given word: no entropy is lost. The added
 * constant keeps a state of 0 from staying 0. */
static uint64_t absorb(uint64_t state, uint64_t word) {
    return dm_mix64((state ^ word) + UINT64_C(0x9e3779b97f4a7c15));
}

struct dm_prng dm_prng_stream(uint64_t seed, const char *name, uint64_t index) {
    uint64_t state = absorb(0, seed);
    uint64_t length = 0;
    for (; name[length] != '\0'; length++) {
        state = absorb(state, (unsigned char)name[length]);
    }
    state = absorb(state, length);
    return (struct dm_prng){.state = absorb(state, index)};
}
