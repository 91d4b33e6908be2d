/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of nodes in real time, and the accesses of their own processors: atomic per word, as the contract says.
 */
#include <stdlib.h>

#include "transport/realtime/realtime.h"
#include "transport/realtime/words.h"

void rt_bytes_load(const unsigned char *at, unsigned char *out, uint32_t len) {
    rt_load_any(at, out, len);
}

void rt_bytes_store(unsigned char *at, const unsigned char *data, uint32_t len) {
    rt_store_any(at, data, len);
}

uint64_t rt_word_cas(unsigned char *at, uint64_t expect, uint64_t desired) {
    atomic_compare_exchange_strong((_Atomic uint64_t *)at, &expect, desired);
    return expect;
}
