/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32 (the polynomial of Ethernet and zlib) as some published programs compute it: bit by bit, without a table.
 */
#ifndef DM_INDEXES_SHARED_CRC32_H
#define DM_INDEXES_SHARED_CRC32_H

#include <stdint.h>

/* Each bit depends on the one before, as the steps of a hash do, so that processors differ alike in both. A byte takes
 * 8.7 to 9 ns by tests/bench/crc_bench.c, where dmbench validate --cpu finds 3.5 ns for the hash of a key. */
#define IX_CRC32_HASHES(bytes) ((bytes)*5 / 2)

static inline uint32_t ix_crc32_bitwise(const void *data, uint32_t bytes) {
    const unsigned char *at = data;
    uint32_t rest = UINT32_MAX;
    for (uint32_t i = 0; i < bytes; i++) {
        rest ^= at[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            rest = rest >> 1 ^ (UINT32_C(0xedb88320) & (0 - (rest & 1)));
        }
    }
    return ~rest;
}

#endif
