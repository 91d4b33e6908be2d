/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of histories, as bytes and as numbers. The first word of a value is its number, mixed by a bijection, so that
 * a word made of parts of two values is almost surely neither. The other words are derived from number and key.
 */
#include "check/history.h"

#include <stdlib.h>
#include <string.h>

#include "common/prng.h"

/* Numbers are far below this limit; garbage, once unmixed, is not. */
#define VALUE_LIMIT (UINT64_C(1) << 40)

/* The inverses modulo 2^64 of the multipliers of dm_mix64. */
#define INVERSE_FIRST  UINT64_C(0x96de1b173f119089)
#define INVERSE_SECOND UINT64_C(0x319642b2d24d8ec3)

static uint64_t unmix(uint64_t x) {
    x ^= x >> 31 ^ x >> 62;
    x *= INVERSE_SECOND;
    x ^= x >> 27 ^ x >> 54;
    x *= INVERSE_FIRST;
    return x ^ x >> 30 ^ x >> 60;
}

/* Word i > 0 of a value. */
static uint64_t further_word(uint64_t key, uint64_t value, uint32_t i) {
    return dm_mix64(value ^ dm_mix64(key + i));
}

void ck_value_write(uint64_t key, uint64_t value, void *bytes, uint32_t count) {
    for (uint32_t at = 0; at < count; at += 8) {
        uint64_t word = at == 0 ? dm_mix64(value) : further_word(key, value, at / 8);
        memcpy((char *)bytes + at, &word, count - at < 8 ? count - at : 8);
    }
}

uint64_t ck_value_read(uint64_t key, const void *bytes, uint32_t count) {
    uint64_t first;
    memcpy(&first, bytes, sizeof(first));
    uint64_t value = unmix(first);
    if (value >= VALUE_LIMIT) {
        return CK_VALUE_STRANGE;
    }
    for (uint32_t at = 8; at < count; at += 8) {
        uint64_t word = further_word(key, value, at / 8);
        if (memcmp((const char *)bytes + at, &word, count - at < 8 ? count - at : 8) != 0) {
            return CK_VALUE_STRANGE;
        }
    }
    return value;
}

void ck_history_fini(struct ck_history *history) {
    free(history->initial);
    free(history->ops);
    free(history->pool);
    *history = (struct ck_history){.seed = 0};
}
