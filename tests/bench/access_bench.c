/* SPDX-License-Identifier: Apache-2.0
 *
 * What one dependent access to a local structure costs, in ns, by the bytes of the structure and by the work between
 * two accesses: 0, 200 and 500 ns. Where the processor's caches are this program's own, the columns are alike; where
 * others share a level, as on a virtual machine, lines that are seldom accessed are evicted. `dmbench validate --cpu`
 * measures with 200 ns.
 *
 *     build/release/bench/access_bench [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/compiler.h"
#include "harness/lab/validate.h"

int main(int argc, char **argv) {
    static const unsigned between[] = {0, 200, 500};
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    printf("%12s %10s %10s %10s\n", "bytes", "0 ns", "200 ns", "500 ns");
    for (unsigned round = 0; round < rounds; round++) {
        for (uint64_t bytes = UINT64_C(256) << 10; bytes <= UINT64_C(64) << 20; bytes *= 2) {
            printf("%12llu", (unsigned long long)bytes);
            for (size_t i = 0; i < DM_ARRAY_LEN(between); i++) {
                struct dm_err err = {.text = ""};
                double ns = 0;
                if (hx_access_ns(bytes, between[i], &ns, &err) < 0) {
                    fprintf(stderr, "access_bench: %s\n", err.text);
                    return 1;
                }
                printf(" %10.1f", ns);
            }
            printf("\n");
        }
    }
    return 0;
}
