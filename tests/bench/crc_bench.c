/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures a CRC-32 of the 60 bytes of a block of 64, computed bit by bit as the published program of a RACE hash table
 * does for each block that it reads or writes (plots/end_to_end/race.json names it), in ns on one core.
 *
 *     build/release/bench/crc_bench
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BYTES = 60, ROUNDS = 1000, CALLS = 1000 };

static double nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static uint32_t crc(const unsigned char *bytes) {
    uint32_t rest = UINT32_MAX;
    for (int i = 0; i < BYTES; i++) {
        rest ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            rest = rest >> 1 ^ (UINT32_C(0xedb88320) & (0 - (rest & 1)));
        }
    }
    return ~rest;
}

int main(void) {
    unsigned char block[BYTES] = {0};
    uint32_t last = 1;
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = nanoseconds();
        for (int i = 0; i < CALLS; i++) {
            memcpy(block, &last, sizeof(last));
            last = crc(block);
        }
        double each = (nanoseconds() - begin) / CALLS;
        best = each < best ? each : best;
    }
    printf("CRC-32 of %d bytes, bit by bit: %.0f ns (%08x)\n", BYTES, best, last);
    return 0;
}
