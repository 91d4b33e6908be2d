/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded random streams. A stream is derived from a seed and a path of names or numbers, so that adding a draw in
 * one place never shifts the draws of another. The generator is SplitMix64: one 64-bit word of state, and the same
 * sequence on every machine.
 */
#ifndef DM_COMMON_PRNG_H
#define DM_COMMON_PRNG_H

#include <stdint.h>

struct dm_prng {
    uint64_t state;
};

/* SplitMix64's finaliser: a bijective mix of 64 bits. */
static inline uint64_t dm_mix64(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The next 64 random bits (state += golden gamma, then mix). */
static inline uint64_t dm_prng_u64(struct dm_prng *prng) {
    prng->state += UINT64_C(0x9e3779b97f4a7c15);
    return dm_mix64(prng->state);
}

/* A double in [0, 1) with 53 random bits. */
static inline double dm_prng_double(struct dm_prng *prng) {
    return (double)(dm_prng_u64(prng) >> 11) * 0x1.0p-53;
}

/* A number in [0, bound); bound > 0. Multiply-shift: bias below bound / 2^64. */
static inline uint64_t dm_prng_below(struct dm_prng *prng, uint64_t bound) {
    return (uint64_t)(((unsigned __int128)dm_prng_u64(prng) * bound) >> 64);
}

/* A stream of its own for (seed, name, index); the same arguments give the same stream on every machine. */
struct dm_prng dm_prng_stream(uint64_t seed, const char *name, uint64_t index);

#endif
