/* SPDX-License-Identifier: Apache-2.0
 *
 * Check words: how an object that a memory node's CPU changes is read without a lock. A store of the CPU is atomic for
 * 8 bytes only, so versions of lines would not do. An object has a check instead: a sum, over its words, of a hash of
 * the word, its number and the object's identity (its address, the key of a value).
 *
 * A reader accepts an object whose words agree with its check. In whatever order lines and words are sampled and
 * stored, an accepted object is in the state that its check word described when the check word was sampled. So a write
 * takes effect when its check word is stored. There is no version that could wrap. A mixture of two states is accepted
 * with a probability of 2^-63. A check is odd, so zeroed memory is never accepted.
 */
#ifndef DM_INDEXES_SHARED_CHECK_WORDS_H
#define DM_INDEXES_SHARED_CHECK_WORDS_H

#include <stdint.h>
#include <string.h>

#include "transport/dm.h"

/* Both halves of a product with an odd constant: every bit of the word changes about half of the result. A scan hashes
 * some 400 words, so that one multiplication a word is what a check can cost. */
static inline uint64_t ix_check_fold(uint64_t word) {
    unsigned __int128 product = (unsigned __int128)word * UINT64_C(0xd6e8feb86659fd93);
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

static inline uint64_t ix_check_mix(uint64_t seed, uint64_t number, uint64_t word) {
    return ix_check_fold(word ^ (seed + number * UINT64_C(0x9e3779b97f4a7c15)));
}

/* The sum over `count` words, the first of which has this number. */
static inline uint64_t ix_check_sum(uint64_t seed, uint64_t number, const uint64_t *words, unsigned count) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += ix_check_mix(seed, number + i, words[i]);
    }
    return sum;
}

static inline uint64_t ix_check_word(uint64_t seed, const uint64_t *words, unsigned count) {
    return ix_check_sum(seed, 0, words, count) | 1;
}

/* Hashes to charge for a check of so many words. They do not wait for one another, so that four take as long as one
 * hash whose result is needed; what the seed takes is another one. */
static inline uint32_t ix_check_hashes(uint32_t words) {
    return 1 + (words + 3) / 4;
}

/* Puts a value behind its check, for which it charges: 1 + (bytes + 7) / 8 words, the last one filled with zeros. */
static inline void ix_check_value(struct dm_ctx *ctx, uint64_t seed, const void *value, uint32_t bytes,
                                  uint64_t *words) {
    uint32_t count = (bytes + 7) / 8;
    words[count] = 0;
    memcpy(words + 1, value, bytes);
    words[0] = ix_check_word(seed, words + 1, count);
    dm_charge(ctx, DM_WORK_HASH, ix_check_hashes(count));
}

#endif
