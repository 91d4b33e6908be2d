/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges of keys and bulk load by calls; see ranges.h.
 */
#include "indexes/shared/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "indexes/shared/check_words.h"

static dm_addr ranges_addr(uint64_t offset) {
    return dm_addr_make(0, DM_DRAM, offset);
}

static int ranges_write(struct dm_ctx *ctx, uint64_t offset, const struct ix_ranges *ranges) {
    uint64_t *words = dm_local_alloc(ctx, IX_RANGES_WORDS * 8);
    if (!words) {
        return DM_ERR_NO_MEMORY;
    }
    memcpy(words, ranges->borders, sizeof(ranges->borders));
    words[DM_MNS_MAX] = ix_check_word(0, words, DM_MNS_MAX);
    return dm_write(ctx, ranges_addr(offset), words, IX_RANGES_WORDS * 8);
}

static void ranges_make(const struct ix_pairs *pairs, unsigned nodes, struct ix_ranges *ranges) {
    for (unsigned i = 0; i < DM_MNS_MAX; i++) {
        ranges->borders[i] = i < nodes ? UINT64_MAX / nodes * i : UINT64_MAX;
        if (i > 0 && i < nodes && pairs && pairs->count >= nodes) {
            pairs->keys(pairs, pairs->count / nodes * i, 1, &ranges->borders[i]);
        }
    }
}

int ix_ranges_format(struct dm_ctx *ctx, const struct ix_ranges_use *use, unsigned nodes) {
    struct ix_ranges ranges;
    uint64_t nothing = 0;
    ranges_make(NULL, nodes, &ranges);
    int rc = ranges_write(ctx, use->offset, &ranges);
    for (unsigned node = 0; node < nodes && rc >= 0; node++) {
        rc = dm_call(ctx, node, use->format, &nothing, sizeof(nothing), NULL, NULL);
    }
    return rc < 0 ? rc : 0;
}

int ix_ranges_read(struct dm_ctx *ctx, uint64_t offset, uint64_t *words, struct ix_ranges *ranges) {
    DM_TRY(dm_read(ctx, ranges_addr(offset), words, IX_RANGES_WORDS * 8));
    memcpy(ranges->borders, words, sizeof(ranges->borders));
    return words[DM_MNS_MAX] == ix_check_word(0, words, DM_MNS_MAX) ? 0 : DM_ERR_CORRUPT;
}

/* ---- bulk load --------------------------------------------------------------------------------------------------- */

/* The number of pairs with a key below `key`, which is at least `low`. */
static uint64_t rank_of(const struct ix_pairs *pairs, uint64_t key, uint64_t low) {
    uint64_t high = pairs->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, found;
        pairs->keys(pairs, middle, 1, &found);
        if (found < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A request begins with this; the keys and then the values of its pairs follow. */
struct request_head {
    uint32_t count, pad;
};

struct sender {
    struct dm_ctx *ctx;
    const struct ix_ranges_use *use;
    uint32_t value_bytes, capacity;
    char *request;
    uint64_t *keys;
};

/* Sends pairs [first, last) to a memory node. */
static int pairs_send(const struct sender *sender, const struct ix_pairs *pairs, unsigned node, uint64_t first,
                      uint64_t last) {
    while (first < last) {
        uint64_t wanted = last - first < sender->capacity ? last - first : sender->capacity;
        uint32_t count = (uint32_t)pairs->keys(pairs, first, wanted, sender->keys);
        struct request_head head = {.count = count};
        char *keys = sender->request + sizeof(head), *values = keys + 8 * (size_t)count;
        if (count == 0) {
            return DM_ERR_INVALID;
        }
        memcpy(sender->request, &head, sizeof(head));
        memcpy(keys, sender->keys, 8 * (size_t)count);
        for (uint32_t i = 0; i < count; i++) {
            pairs->value(pairs, sender->keys[i], values + (size_t)i * sender->value_bytes);
        }
        uint32_t bytes = (uint32_t)(values - sender->request) + count * sender->value_bytes;
        DM_TRY(dm_call(sender->ctx, node, sender->use->load, sender->request, bytes, NULL, NULL));
        first += count;
    }
    return dm_call(sender->ctx, node, sender->use->build, sender->request, 8, NULL, NULL);
}

int ix_ranges_load(struct dm_ctx *ctx, const struct ix_ranges_use *use, const struct ix_shape *shape,
                   const struct ix_pairs *pairs) {
    unsigned nodes = shape->topology->mns;
    uint32_t capacity = (DM_CALL_MAX - (uint32_t)sizeof(struct request_head)) / (8 + shape->value_bytes);
    struct sender sender = {.ctx = ctx, .use = use, .value_bytes = shape->value_bytes, .capacity = capacity};
    struct ix_ranges ranges;
    sender.request = malloc(DM_CALL_MAX);
    sender.keys = malloc(capacity * sizeof(*sender.keys));
    int rc = sender.request && sender.keys ? 0 : DM_ERR_NO_MEMORY;
    ranges_make(pairs, nodes, &ranges);
    rc = rc < 0 ? rc : ranges_write(ctx, use->offset, &ranges);
    uint64_t first = 0;
    for (unsigned node = 0; node < nodes && rc >= 0; node++) {
        uint64_t last = node + 1 < nodes ? rank_of(pairs, ranges.borders[node + 1], first) : pairs->count;
        rc = pairs_send(&sender, pairs, node, first, last);
        first = last;
    }
    free(sender.request);
    free(sender.keys);
    return rc < 0 ? rc : 0;
}

bool ix_ranges_received(const void *request, uint32_t request_bytes, uint32_t value_bytes,
                        struct ix_ranges_pairs *pairs) {
    struct request_head head;
    if (request_bytes < sizeof(head)) {
        return false;
    }
    memcpy(&head, request, sizeof(head));
    pairs->count = head.count;
    pairs->value_bytes = value_bytes;
    pairs->keys = (const char *)request + sizeof(head);
    pairs->values = pairs->keys + 8 * (size_t)head.count;
    return (request_bytes - sizeof(head)) / (8 + value_bytes) >= head.count;
}
