/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions in the memory pool; see wire.h.
 */
#include <string.h>

#include "indexes/shared/check_words.h"
#include "wire.h"

uint32_t clover_space_bytes(uint32_t value_bytes) {
    uint32_t bytes = CLOVER_SPACE_MIN;
    while (bytes < CLOVER_HEAD_BYTES + value_bytes) {
        bytes *= 2;
    }
    return bytes;
}

/* Words that the check covers, behind the check itself: the key, then the value. */
static uint32_t words_of(uint32_t value_bytes) {
    return 1 + (value_bytes + 7) / 8;
}

static uint64_t check_of(const struct clover_version *version, uint64_t pointer, uint32_t value_bytes) {
    uint32_t bytes = clover_is_tombstone(pointer) ? 0 : value_bytes;
    return ix_check_word(dm_mix64(pointer), &version->key, words_of(bytes));
}

void clover_version_make(void *space, uint64_t pointer, uint64_t key, const void *value, uint32_t value_bytes) {
    struct clover_version *version = space;
    version->header = clover_header_make(0, pointer);
    version->key = key;
    if (!clover_is_tombstone(pointer)) {
        memcpy(version + 1, value, value_bytes);
    }
    version->check = check_of(version, pointer, value_bytes);
}

bool clover_version_intact(const void *space, uint64_t pointer, uint64_t key, uint32_t value_bytes) {
    const struct clover_version *version = space;
    return clover_header_use(version->header) == clover_use_of(pointer) && version->key == key &&
           version->check == check_of(version, pointer, value_bytes);
}

void clover_version_charge(struct dm_ctx *ctx, uint32_t value_bytes) {
    dm_charge(ctx, DM_WORK_HASH, ix_check_hashes(words_of(value_bytes)));
    dm_charge(ctx, DM_WORK_LINE_COPY, (CLOVER_HEAD_BYTES + value_bytes + DM_LINE - 1) / DM_LINE);
    dm_charge(ctx, DM_WORK_KEY_COMPARE, 2);
}
