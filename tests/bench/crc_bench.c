/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures a CRC-32 of the 60 bytes of a block of 64, bit by bit as the published program of a RACE hash table computes
 * it for each block that it reads or writes (plots/end_to_end/race.json names it), and the hash of a key, in which
 * indexes/shared/crc32.h states it; in ns on one core.
 *
 *     build/release/bench/crc_bench
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/prng.h"
#include "indexes/shared/crc32.h"

enum { BYTES = 60, ROUNDS = 1000, CALLS = 1000 };

static double nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static uint64_t crcs(uint64_t last) {
    unsigned char block[BYTES] = {0};
    for (int i = 0; i < CALLS; i++) {
        memcpy(block, &last, sizeof(last));
        last = ix_crc32_bitwise(block, BYTES);
    }
    return last;
}

static uint64_t hashes(uint64_t last) {
    for (int i = 0; i < CALLS; i++) {
        last = dm_mix64(last + (unsigned)i);
    }
    return last;
}

/* ns of a call, the least of all rounds: of an undisturbed core. */
static double least_ns(uint64_t (*run)(uint64_t last), uint64_t *last) {
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = nanoseconds();
        *last = run(*last);
        double each = (nanoseconds() - begin) / CALLS;
        best = each < best ? each : best;
    }
    return best;
}

int main(void) {
    uint64_t last = 1;
    double crc = least_ns(crcs, &last);
    double hash = least_ns(hashes, &last);
    printf("CRC-32 of %d bytes, bit by bit: %.0f ns; hash of a key: %.2f ns; a byte of the CRC takes as long as %.2f "
           "hashes (%08llx)\n",
           BYTES, crc, hash, crc / BYTES / hash, (unsigned long long)last);
    return 0;
}
