/* SPDX-License-Identifier: Apache-2.0
 *
 * Values apart from the index; see indirect.h for the layout and why readers and writers agree.
 */
#include "indexes/shared/indirect.h"

#include <stdlib.h>
#include <string.h>

enum {
    STAMP_BYTES = 4,
    LINE_DATA = DM_LINE - STAMP_BYTES,
    KEY_BYTES = 8,
    LINE_BITS = 40,
    NODE_BITS = 6,
    STAMP_SHIFT = LINE_BITS + NODE_BITS,
    STAMP_MAX = (1 << 18) - 1,
    BATCH_BYTES = 65536, /* of blocks that are read together, and at least BATCH_MIN of them */
    BATCH_MIN = 4,
    BATCH_MAX = 128,
    POOL_FIRST = 16, /* blocks of a node that are kept before the pool grows */
};

/* Blocks to be used again, the oldest first: a ring. Each word has its next stamp already. */
struct pool {
    uint64_t *words;
    uint32_t first, count, capacity;
};

struct ix_indirect {
    struct dm_ctx *ctx;
    uint32_t value_bytes;
    uint32_t used_bytes;  /* of a block: what is read and written */
    uint32_t block_bytes; /* that it takes */
    uint32_t batch;
    bool validate;
    struct pool pools[IX_INDIRECT_MNS_MAX];
    char *wires; /* device memory: `batch` blocks, and behind them the one made last */
    uint64_t made;
    uint64_t *waiting; /* words of blocks in ->wires that bulk load has yet to write */
    uint32_t waiting_count;
};

/* ---- words and blocks -------------------------------------------------------------------------------------------- */

static uint32_t used_bytes_of(uint32_t value_bytes) {
    uint32_t data = KEY_BYTES + value_bytes;
    uint32_t lines = (data + LINE_DATA - 1) / LINE_DATA;
    return data + lines * STAMP_BYTES;
}

uint32_t ix_indirect_block_bytes(uint32_t value_bytes) {
    return (used_bytes_of(value_bytes) + DM_LINE - 1) / DM_LINE * DM_LINE;
}

/* A client holds at least one block a node between two writes; what deletes free is kept by whoever deleted. */
double ix_indirect_memory(uint32_t value_bytes, uint64_t values, const struct dm_topology *topology) {
    double kept = 2.0 * topology->clients * topology->mns;
    return ((double)values + kept) * ix_indirect_block_bytes(value_bytes);
}

static uint64_t word_of(dm_addr addr, uint32_t stamp) {
    return (uint64_t)stamp << STAMP_SHIFT | (uint64_t)dm_addr_node(addr) << LINE_BITS | dm_addr_offset(addr) / DM_LINE;
}

static dm_addr word_addr(uint64_t word) {
    uint64_t line = word & ((UINT64_C(1) << LINE_BITS) - 1);
    return dm_addr_make((unsigned)(word >> LINE_BITS & (IX_INDIRECT_MNS_MAX - 1)), DM_DRAM, line * DM_LINE);
}

static uint32_t word_stamp(uint64_t word) {
    return (uint32_t)(word >> STAMP_SHIFT);
}

static uint64_t word_next(uint64_t word) {
    uint32_t stamp = word_stamp(word) == STAMP_MAX ? 0 : word_stamp(word) + 1;
    return word_of(word_addr(word), stamp);
}

static bool word_valid(const struct ix_indirect *indirect, uint64_t word) {
    dm_addr addr = word_addr(word);
    return !dm_addr_is_null(addr) && dm_addr_valid(indirect->ctx, addr, indirect->used_bytes);
}

/* Copies `bytes` of the data at `*at` of the block into or out of `local`; *at moves on. */
static void data_copy(char *wire, uint32_t *at, char *local, uint32_t bytes, bool in) {
    while (bytes > 0) {
        uint32_t line = *at / LINE_DATA;
        uint32_t inside = *at % LINE_DATA;
        uint32_t n = LINE_DATA - inside < bytes ? LINE_DATA - inside : bytes;
        char *place = wire + line * DM_LINE + STAMP_BYTES + inside;
        memcpy(in ? place : local, in ? local : place, n);
        local += n;
        bytes -= n;
        *at += n;
    }
}

static void encode(const struct ix_indirect *indirect, uint64_t word, uint64_t key, const void *value, char *wire) {
    uint32_t stamp = word_stamp(word);
    for (uint32_t line = 0; line < indirect->used_bytes; line += DM_LINE) {
        memcpy(wire + line, &stamp, sizeof(stamp));
    }
    uint32_t at = 0;
    data_copy(wire, &at, (char *)&key, KEY_BYTES, true);
    data_copy(wire, &at, (char *)(uintptr_t)value, indirect->value_bytes, true);
    dm_charge(indirect->ctx, DM_WORK_LINE_COPY, indirect->block_bytes / DM_LINE);
}

/* The value in the block, if it is that of the word and the key. */
static int decode(const struct ix_indirect *indirect, uint64_t word, uint64_t key, char *wire, void *value) {
    dm_charge(indirect->ctx, DM_WORK_LINE_COPY, indirect->block_bytes / DM_LINE);
    uint32_t at = 0;
    uint64_t owner;
    data_copy(wire, &at, (char *)&owner, KEY_BYTES, false);
    bool is_right = owner == key;
    for (uint32_t line = 0; line < indirect->used_bytes; line += DM_LINE) {
        uint32_t stamp;
        memcpy(&stamp, wire + line, sizeof(stamp));
        is_right = is_right && stamp == word_stamp(word);
    }
    if (!is_right && indirect->validate) {
        return IX_INDIRECT_GONE;
    }
    data_copy(wire, &at, value, indirect->value_bytes, false);
    return 0;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

int ix_indirect_open(struct dm_ctx *ctx, uint32_t value_bytes, bool validate, struct ix_indirect **out) {
    struct ix_indirect *indirect = calloc(1, sizeof(*indirect));
    *out = NULL;
    if (!indirect) {
        return DM_ERR_NO_MEMORY;
    }
    *indirect = (struct ix_indirect){
        .ctx = ctx,
        .value_bytes = value_bytes,
        .used_bytes = used_bytes_of(value_bytes),
        .block_bytes = ix_indirect_block_bytes(value_bytes),
        .validate = validate,
    };
    uint32_t fits = BATCH_BYTES / indirect->block_bytes;
    indirect->batch = fits < BATCH_MIN ? BATCH_MIN : fits > BATCH_MAX ? BATCH_MAX : fits;
    indirect->wires = dm_local_alloc(ctx, (indirect->batch + 1) * indirect->block_bytes);
    indirect->waiting = calloc(indirect->batch, sizeof(*indirect->waiting));
    bool is_whole = indirect->wires && indirect->waiting;
    for (unsigned node = 0; node < dm_topology(ctx)->mns && node < IX_INDIRECT_MNS_MAX; node++) {
        struct pool *pool = &indirect->pools[node];
        pool->words = calloc(POOL_FIRST, sizeof(*pool->words));
        pool->capacity = POOL_FIRST;
        is_whole = is_whole && pool->words;
    }
    if (!is_whole) {
        ix_indirect_close(indirect);
        return DM_ERR_NO_MEMORY;
    }
    *out = indirect;
    return 0;
}

void ix_indirect_close(struct ix_indirect *indirect) {
    if (indirect) {
        for (unsigned node = 0; node < IX_INDIRECT_MNS_MAX; node++) {
            free(indirect->pools[node].words);
        }
        free(indirect->waiting);
        free(indirect);
    }
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

/* A client that deletes more than it writes keeps more and more blocks. The ring doubles, like the allocator's own
 * lists of freed memory; when that fails false is returned and nothing has changed. */
static bool pool_grow(struct pool *pool) {
    uint64_t *words = calloc(2 * (size_t)pool->capacity, sizeof(*words));
    if (!words) {
        return false;
    }
    for (uint32_t i = 0; i < pool->count; i++) {
        words[i] = pool->words[(pool->first + i) % pool->capacity];
    }
    free(pool->words);
    *pool = (struct pool){.words = words, .count = pool->count, .capacity = 2 * pool->capacity};
    return true;
}

void ix_indirect_drop(struct ix_indirect *indirect, uint64_t word) {
    if (!word_valid(indirect, word)) {
        return; /* a word from remote memory that names nothing */
    }
    struct pool *pool = &indirect->pools[dm_addr_node(word_addr(word))];
    if (pool->count == pool->capacity && !pool_grow(pool)) {
        return;
    }
    pool->words[(pool->first + pool->count++) % pool->capacity] = word_next(word);
}

static int block_take(struct ix_indirect *indirect, unsigned node, uint64_t *word) {
    struct pool *pool = &indirect->pools[node];
    if (pool->count > 0) {
        *word = pool->words[pool->first];
        pool->first = (pool->first + 1) % pool->capacity;
        pool->count--;
        return 0;
    }
    dm_addr addr;
    DM_TRY(dm_alloc(indirect->ctx, node, indirect->block_bytes, DM_LINE, DM_MEM_VALUE, &addr));
    *word = word_of(addr, 1);
    return 0;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

int ix_indirect_make(struct ix_indirect *indirect, unsigned node, uint64_t key, const void *value, uint64_t *word) {
    DM_TRY(block_take(indirect, node, word));
    indirect->made = *word;
    encode(indirect, *word, key, value, indirect->wires + indirect->batch * indirect->block_bytes);
    return 0;
}

void ix_indirect_post(struct ix_indirect *indirect) {
    dm_post_write(indirect->ctx, word_addr(indirect->made), indirect->wires + indirect->batch * indirect->block_bytes,
                  indirect->used_bytes);
}

int ix_indirect_flush(struct ix_indirect *indirect) {
    for (uint32_t i = 0; i < indirect->waiting_count; i++) {
        dm_post_write(indirect->ctx, word_addr(indirect->waiting[i]), indirect->wires + i * indirect->block_bytes,
                      indirect->used_bytes);
    }
    indirect->waiting_count = 0;
    return dm_commit(indirect->ctx);
}

int ix_indirect_load(struct ix_indirect *indirect, unsigned node, uint64_t key, const void *value, uint64_t *word) {
    DM_TRY(block_take(indirect, node, word));
    encode(indirect, *word, key, value, indirect->wires + indirect->waiting_count * indirect->block_bytes);
    indirect->waiting[indirect->waiting_count++] = *word;
    return indirect->waiting_count == indirect->batch ? ix_indirect_flush(indirect) : 0;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int read_posted(struct ix_indirect *indirect) {
    enum dm_phase before = dm_phase(indirect->ctx, DM_PHASE_VALUE);
    int rc = dm_commit(indirect->ctx);
    dm_phase(indirect->ctx, before);
    return rc;
}

int ix_indirect_read(struct ix_indirect *indirect, uint64_t key, uint64_t word, void *value) {
    if (!word_valid(indirect, word)) {
        return IX_INDIRECT_GONE;
    }
    dm_post_read(indirect->ctx, word_addr(word), indirect->wires, indirect->used_bytes);
    DM_TRY(read_posted(indirect));
    return decode(indirect, word, key, indirect->wires, value);
}

/* Reads blocks [first, first + n) with one doorbell; has[i] says which of them hold the pair's value. [waits] */
static int part_read(struct ix_indirect *indirect, const struct ix_indirect_pairs *pairs, uint32_t first, uint32_t n,
                     bool *has) {
    for (uint32_t i = 0; i < n; i++) {
        has[i] = word_valid(indirect, pairs->words[first + i]);
        if (has[i]) {
            dm_post_read(indirect->ctx, word_addr(pairs->words[first + i]), indirect->wires + i * indirect->block_bytes,
                         indirect->used_bytes);
        }
    }
    DM_TRY(read_posted(indirect));
    for (uint32_t i = 0; i < n; i++) {
        uint64_t word = pairs->words[first + i];
        char *value = pairs->values + (size_t)(first + i) * indirect->value_bytes;
        has[i] = has[i] && decode(indirect, word, pairs->keys[first + i], indirect->wires + i * indirect->block_bytes,
                                  value) == 0;
    }
    return 0;
}

/* Moves pair `from` to place `to`. */
static void pair_move(const struct ix_indirect *indirect, struct ix_indirect_pairs *pairs, uint32_t to, uint32_t from) {
    if (to != from) {
        pairs->keys[to] = pairs->keys[from];
        memcpy(pairs->values + (size_t)to * indirect->value_bytes, pairs->values + (size_t)from * indirect->value_bytes,
               indirect->value_bytes);
    }
}

int ix_indirect_collect(struct ix_indirect *indirect, struct ix_indirect_pairs *pairs,
                        int (*again)(void *arg, uint64_t key, void *value), void *arg) {
    uint32_t kept = 0;
    for (uint32_t first = 0; first < pairs->count; first += indirect->batch) {
        bool has[BATCH_MAX];
        uint32_t n = pairs->count - first < indirect->batch ? pairs->count - first : indirect->batch;
        DM_TRY(part_read(indirect, pairs, first, n, has));
        for (uint32_t i = 0; i < n; i++) {
            int rc = 0;
            if (!has[i]) {
                rc = again(arg, pairs->keys[first + i], pairs->values + (size_t)(first + i) * indirect->value_bytes);
                DM_TRY(rc);
            }
            if (rc == 0) {
                pair_move(indirect, pairs, kept++, first + i);
            }
        }
    }
    pairs->count = kept;
    return 0;
}
