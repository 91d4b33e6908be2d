/* SPDX-License-Identifier: Apache-2.0
 *
 * Accesses of a node's own processor to its memory: atomic for each word, as in the contract.
 */
#include <stdlib.h>

#include "transport/realtime/atomic_copy.h"
#include "transport/realtime/realtime.h"

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
