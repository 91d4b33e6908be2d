/* SPDX-License-Identifier: Apache-2.0
 *
 * Values outside the index; see indirect.h for the layout and the agreement of readers and writers.
 */
#include "indexes/shared/indirect.h"

#include <stdlib.h>
#include <string.h>

#include "indexes/shared/crc32.h"
#include "indexes/shared/fill.h"

enum {
    STAMP_BYTES = 4,
    LINE_DATA = DM_LINE - STAMP_BYTES,
    KEY_BYTES = 8,
    OFFSET_BITS = 40,
    COMPACT_OFFSET_BITS = 34,
    SLOT_OFFSET_BITS = 31,
    NODE_BITS = 6,
    STAMP_MAX = (1 << 18) - 1,
    COMPACT_STAMP_MAX = (1 << 14) - 1,
    SLOT_STAMP_MAX = (1 << 11) - 1,
    COMPACT_UNIT = 8,    /* bytes that words of compact blocks count offsets in */
    BATCH_BYTES = 65536, /* of blocks read by one doorbell, but at least BATCH_MIN blocks */
    BATCH_MIN = 4,
    BATCH_MAX = 128,
    INLINE_MAX = 1024, /* bytes of an inline value */
    POOL_FIRST = 16,   /* blocks of a node that fit before the pool grows */
};

/* Blocks to be reused, in a ring with the oldest first. Each word already has its next stamp. */
struct pool {
    uint64_t *words;
    uint32_t first, count, capacity;
};

struct ix_indirect {
    struct dm_ctx *ctx;
    uint32_t value_bytes;
    uint32_t used_bytes;  /* of a block: those that are read and written */
    uint32_t block_bytes; /* that it is allocated with */
    uint32_t batch;
    uint32_t unit;                   /* of the offsets in words */
    unsigned offset_bits;            /* that they have there */
    uint32_t stamp_max, stamp_first; /* a stamp of stamp_max is followed by stamp_first */
    bool compact;                    /* blocks have a stamp at both ends, and none in between */
    bool validate;                   /* that fetch and found check the stamps */
    bool checksum;                   /* blocks end with one */
    uint64_t *reused;
    uint64_t *found; /* words of the pairs that a scan has found */
    uint32_t *ends;  /* see struct ix_found */
    uint32_t found_max;
    enum ix_fetch fetch;
    struct pool pools[DM_MNS_MAX];
    char *wires; /* device memory: `batch` blocks, and after them the one made last */
    uint64_t made;
    uint64_t *waiting; /* words of blocks in ->wires that bulk load has not written yet */
    uint32_t waiting_count;
};

/* ---- the parameter ----------------------------------------------------------------------------------------------- */

const char *const ix_values_choices[] = {"inline", "indirect", "unchecked", NULL};
const char *const ix_fetch_choices[] = {"batch", "doorbell", "serial", NULL};

int ix_values_check(enum ix_values values, uint32_t value_bytes, struct dm_err *err) {
    bool is_inline = values == IX_VALUES_INLINE;
    uint32_t most = is_inline ? INLINE_MAX : IX_INDIRECT_VALUE_MAX;
    return value_bytes >= 1 && value_bytes <= most
               ? 0
               : dm_fail(err, DM_ERR_INVALID, "values of %u bytes: must be 1 to %u%s", value_bytes, most,
                         is_inline ? ", larger ones with values=indirect" : "");
}

/* ---- words and blocks -------------------------------------------------------------------------------------------- */

static uint32_t used_bytes_of(uint32_t value_bytes) {
    uint32_t data = KEY_BYTES + value_bytes;
    uint32_t lines = (data + LINE_DATA - 1) / LINE_DATA;
    return data + lines * STAMP_BYTES;
}

uint32_t ix_indirect_block_bytes(uint32_t value_bytes) {
    return (used_bytes_of(value_bytes) + DM_LINE - 1) / DM_LINE * DM_LINE;
}

static bool is_compact(enum ix_values values) {
    return values == IX_VALUES_COMPACT || values == IX_VALUES_COMPACT_UNCHECKED;
}

uint32_t ix_indirect_compact_bytes(uint32_t value_bytes) {
    uint32_t bytes = (2 * STAMP_BYTES + KEY_BYTES + value_bytes + COMPACT_UNIT - 1) / COMPACT_UNIT * COMPACT_UNIT;
    return bytes <= DM_LINE ? bytes : ix_indirect_block_bytes(value_bytes);
}

static bool is_slot(enum ix_values values) {
    return values == IX_VALUES_SLOT || values == IX_VALUES_SLOT_UNCHECKED;
}

static uint32_t block_bytes_of(enum ix_values values, uint32_t value_bytes) {
    return is_compact(values) ? ix_indirect_compact_bytes(value_bytes) : ix_indirect_block_bytes(value_bytes);
}

/* A client holds at least one block of a node between two writes. Blocks that deletes free are kept by the client that
 * deleted. */
double ix_indirect_memory(enum ix_values values, uint32_t value_bytes, uint64_t count, const struct ix_shape *shape) {
    double kept = 2.0 * shape->topology->clients * shape->topology->mns;
    return values == IX_VALUES_INLINE
               ? 0
               : ((double)count + kept) * ix_piece_bytes(shape, block_bytes_of(values, value_bytes));
}

static uint64_t word_of(const struct ix_indirect *indirect, dm_addr addr, uint32_t stamp) {
    return ((uint64_t)stamp << NODE_BITS | dm_addr_node(addr)) << indirect->offset_bits |
           dm_addr_offset(addr) / indirect->unit;
}

static dm_addr word_addr(const struct ix_indirect *indirect, uint64_t word) {
    uint64_t offset = word & ((UINT64_C(1) << indirect->offset_bits) - 1);
    unsigned node = (unsigned)(word >> indirect->offset_bits & (DM_MNS_MAX - 1));
    return dm_addr_make(node, DM_DRAM, offset * indirect->unit);
}

static uint32_t word_stamp(const struct ix_indirect *indirect, uint64_t word) {
    return (uint32_t)(word >> (indirect->offset_bits + NODE_BITS));
}

static uint64_t word_next(const struct ix_indirect *indirect, uint64_t word) {
    uint32_t before = word_stamp(indirect, word);
    uint32_t stamp = before >= indirect->stamp_max ? indirect->stamp_first : before + 1;
    return word_of(indirect, word_addr(indirect, word), stamp);
}

static bool word_valid(const struct ix_indirect *indirect, uint64_t word) {
    dm_addr addr = word_addr(indirect, word);
    return !dm_addr_is_null(addr) && dm_addr_valid(indirect->ctx, addr, indirect->used_bytes);
}

/* Lines to copy or to check. */
static uint32_t block_lines(const struct ix_indirect *indirect) {
    return (indirect->block_bytes + DM_LINE - 1) / DM_LINE;
}

/* Copies `bytes` of the data at `*at` of the block into or out of `local`, and advances *at. */
static void data_copy(char *wire, uint32_t *at, char *local, uint32_t bytes, bool in) {
    while (bytes > 0) {
        uint32_t line = *at / LINE_DATA;
        uint32_t inside = *at % LINE_DATA;
        uint32_t n = LINE_DATA - inside < bytes ? LINE_DATA - inside : bytes;
        char *piece = wire + line * DM_LINE + STAMP_BYTES + inside;
        memcpy(in ? piece : local, in ? local : piece, n);
        local += n;
        bytes -= n;
        *at += n;
    }
}

static void encode_compact(const struct ix_indirect *indirect, uint32_t stamp, uint64_t key, const void *value,
                           char *wire) {
    memcpy(wire, &stamp, STAMP_BYTES);
    memcpy(wire + STAMP_BYTES, &key, KEY_BYTES);
    memcpy(wire + STAMP_BYTES + KEY_BYTES, value, indirect->value_bytes);
    memcpy(wire + indirect->used_bytes - STAMP_BYTES, &stamp, STAMP_BYTES);
}

static void encode_lines(const struct ix_indirect *indirect, uint32_t stamp, uint64_t key, const void *value,
                         char *wire) {
    for (uint32_t line = 0; line < indirect->used_bytes; line += DM_LINE) {
        memcpy(wire + line, &stamp, sizeof(stamp));
    }
    uint32_t at = 0;
    data_copy(wire, &at, (char *)&key, KEY_BYTES, true);
    data_copy(wire, &at, (char *)(uintptr_t)value, indirect->value_bytes, true);
}

/* Computes the checksum of a block. */
static uint32_t checksum_of(const struct ix_indirect *indirect, const char *wire) {
    uint32_t bytes = indirect->used_bytes - IX_INDIRECT_CHECKSUM_BYTES;
    dm_charge(indirect->ctx, DM_WORK_HASH, IX_CRC32_HASHES(bytes));
    return ix_crc32_bitwise(wire, bytes);
}

bool ix_indirect_intact(const struct ix_indirect *indirect, const void *wire) {
    uint32_t stored;
    if (!indirect->checksum) {
        return true;
    }
    memcpy(&stored, (const char *)wire + indirect->used_bytes - IX_INDIRECT_CHECKSUM_BYTES, sizeof(stored));
    return stored == checksum_of(indirect, wire);
}

static void encode(const struct ix_indirect *indirect, uint64_t word, uint64_t key, const void *value, char *wire) {
    (indirect->compact ? encode_compact : encode_lines)(indirect, word_stamp(indirect, word), key, value, wire);
    dm_charge(indirect->ctx, DM_WORK_LINE_COPY, block_lines(indirect));
    if (indirect->checksum) {
        uint32_t sum = checksum_of(indirect, wire);
        memcpy(wire + indirect->used_bytes - IX_INDIRECT_CHECKSUM_BYTES, &sum, sizeof(sum));
    }
}

static bool compact_is_right(const struct ix_indirect *indirect, uint32_t stamp, uint64_t key, const char *wire) {
    const char *behind = wire + indirect->used_bytes - STAMP_BYTES;
    return memcmp(wire, &stamp, STAMP_BYTES) == 0 && memcmp(behind, &stamp, STAMP_BYTES) == 0 &&
           memcmp(wire + STAMP_BYTES, &key, KEY_BYTES) == 0;
}

/* True if the block is the one that the word names, and holds the key. */
static bool is_right(const struct ix_indirect *indirect, uint64_t word, uint64_t key, char *wire) {
    if (indirect->compact) {
        return compact_is_right(indirect, word_stamp(indirect, word), key, wire);
    }
    uint32_t at = 0;
    uint64_t owner;
    data_copy(wire, &at, (char *)&owner, KEY_BYTES, false);
    bool right = owner == key;
    for (uint32_t line = 0; line < indirect->used_bytes; line += DM_LINE) {
        uint32_t stamp;
        memcpy(&stamp, wire + line, sizeof(stamp));
        right = right && stamp == word_stamp(indirect, word);
    }
    return right;
}

/* Copies the value out of the block, if it is that of the word and the key; without validation in any case. */
static int decode(const struct ix_indirect *indirect, uint64_t word, uint64_t key, char *wire, void *value) {
    dm_charge(indirect->ctx, DM_WORK_LINE_COPY, block_lines(indirect));
    if (indirect->validate && !is_right(indirect, word, key, wire)) {
        return IX_INDIRECT_REUSED;
    }
    if (indirect->compact) {
        memcpy(value, wire + STAMP_BYTES + KEY_BYTES, indirect->value_bytes);
        return 0;
    }
    uint32_t at = KEY_BYTES;
    data_copy(wire, &at, value, indirect->value_bytes, false);
    return 0;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

int ix_indirect_open(struct dm_ctx *ctx, const struct ix_indirect_config *config, struct ix_indirect **out) {
    *out = NULL;
    if (config->values == IX_VALUES_INLINE) {
        return 0;
    }
    struct ix_indirect *indirect = calloc(1, sizeof(*indirect));
    if (!indirect) {
        return DM_ERR_NO_MEMORY;
    }
    uint32_t data_bytes = config->value_bytes + config->padding + (config->checksum ? IX_INDIRECT_CHECKSUM_BYTES : 0);
    uint32_t block_bytes = block_bytes_of(config->values, data_bytes);
    bool compact = is_compact(config->values) && block_bytes < ix_indirect_block_bytes(data_bytes);
    *indirect = (struct ix_indirect){
        .ctx = ctx,
        .value_bytes = config->value_bytes,
        .used_bytes = compact || config->checksum ? block_bytes : used_bytes_of(data_bytes),
        .block_bytes = block_bytes,
        .unit = is_compact(config->values) ? COMPACT_UNIT : DM_LINE,
        .offset_bits = is_compact(config->values) ? COMPACT_OFFSET_BITS
                       : is_slot(config->values)  ? SLOT_OFFSET_BITS
                                                  : OFFSET_BITS,
        .stamp_max = is_compact(config->values) ? COMPACT_STAMP_MAX
                     : is_slot(config->values)  ? SLOT_STAMP_MAX
                                                : STAMP_MAX,
        .stamp_first = is_compact(config->values) || is_slot(config->values) ? 1 : 0,
        .compact = compact,
        .validate = config->values == IX_VALUES_INDIRECT || config->values == IX_VALUES_COMPACT ||
                    config->values == IX_VALUES_SLOT,
        .checksum = config->checksum,
        .reused = config->reused,
        .found = calloc(config->found_max + 1, sizeof(*indirect->found)),
        .ends = calloc(config->found_max + 1, sizeof(*indirect->ends)),
        .found_max = config->found_max,
        .fetch = config->fetch,
    };
    uint32_t fits = BATCH_BYTES / indirect->block_bytes;
    indirect->batch = fits < BATCH_MIN ? BATCH_MIN : fits > BATCH_MAX ? BATCH_MAX : fits;
    indirect->wires = dm_local_alloc(ctx, (indirect->batch + 1) * indirect->block_bytes);
    indirect->waiting = calloc(indirect->batch, sizeof(*indirect->waiting));
    bool has_all = indirect->wires && indirect->waiting && indirect->found && indirect->ends;
    for (unsigned node = 0; node < dm_topology(ctx)->mns && node < DM_MNS_MAX; node++) {
        struct pool *pool = &indirect->pools[node];
        pool->words = calloc(POOL_FIRST, sizeof(*pool->words));
        pool->capacity = POOL_FIRST;
        has_all = has_all && pool->words;
    }
    if (!has_all) {
        ix_indirect_close(indirect);
        return DM_ERR_NO_MEMORY;
    }
    *out = indirect;
    return 0;
}

void ix_indirect_close(struct ix_indirect *indirect) {
    if (indirect) {
        for (unsigned node = 0; node < DM_MNS_MAX; node++) {
            free(indirect->pools[node].words);
        }
        free(indirect->waiting);
        free(indirect->found);
        free(indirect->ends);
        free(indirect);
    }
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

/* A client that deletes more than it writes keeps more and more blocks, so the ring doubles, as the allocator's lists
 * of freed memory do. False: out of memory, nothing changed. */
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
    if (!indirect || !word_valid(indirect, word)) {
        return; /* inline, or an invalid word from remote memory */
    }
    struct pool *pool = &indirect->pools[dm_addr_node(word_addr(indirect, word))];
    if (pool->count == pool->capacity && !pool_grow(pool)) {
        return;
    }
    pool->words[(pool->first + pool->count++) % pool->capacity] = word_next(indirect, word);
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
    uint32_t align = indirect->compact ? COMPACT_UNIT : DM_LINE;
    DM_TRY(dm_alloc(indirect->ctx, node, indirect->block_bytes, align, DM_MEM_VALUE, &addr));
    *word = word_of(indirect, addr, 1);
    return 0;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

int ix_indirect_make(struct ix_indirect *indirect, unsigned node, uint64_t key, const void *value,
                     const void **stored) {
    if (!indirect) {
        *stored = value;
        return 0;
    }
    *stored = &indirect->made;
    DM_TRY(block_take(indirect, node, &indirect->made));
    encode(indirect, indirect->made, key, value, indirect->wires + indirect->batch * indirect->block_bytes);
    return 0;
}

void ix_indirect_post(struct ix_indirect *indirect) {
    if (indirect) {
        dm_post_write(indirect->ctx, word_addr(indirect, indirect->made),
                      indirect->wires + indirect->batch * indirect->block_bytes, indirect->used_bytes);
    }
}

int ix_indirect_flush(struct ix_indirect *indirect) {
    if (!indirect) {
        return 0;
    }
    for (uint32_t i = 0; i < indirect->waiting_count; i++) {
        dm_post_write(indirect->ctx, word_addr(indirect, indirect->waiting[i]),
                      indirect->wires + i * indirect->block_bytes, indirect->used_bytes);
    }
    indirect->waiting_count = 0;
    return dm_commit(indirect->ctx);
}

int ix_indirect_load(struct ix_indirect *indirect, unsigned node, uint64_t key, const void *value,
                     const void **stored) {
    if (!indirect) {
        *stored = value;
        return 0;
    }
    uint64_t *word = &indirect->waiting[indirect->waiting_count];
    *stored = word;
    DM_TRY(block_take(indirect, node, word));
    encode(indirect, *word, key, value, indirect->wires + indirect->waiting_count * indirect->block_bytes);
    indirect->waiting_count++;
    return indirect->waiting_count == indirect->batch ? ix_indirect_flush(indirect) : 0;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int read_posted(struct ix_indirect *indirect) {
    enum dm_phase before = dm_phase(indirect->ctx, DM_PHASE_VALUE);
    int rc = dm_commit(indirect->ctx);
    dm_phase(indirect->ctx, before);
    return rc;
}

/* Reads the block of a word into ->wires. 0, IX_INDIRECT_REUSED if the word names none, or a failure. [waits] */
static int block_read(struct ix_indirect *indirect, uint64_t word) {
    if (!word_valid(indirect, word)) {
        return IX_INDIRECT_REUSED;
    }
    dm_post_read(indirect->ctx, word_addr(indirect, word), indirect->wires, indirect->used_bytes);
    return read_posted(indirect);
}

int ix_indirect_fetch(struct ix_indirect *indirect, uint64_t key, uint64_t word, uint32_t *attempts, void *value) {
    if (!indirect) {
        return 0;
    }
    int rc = block_read(indirect, word);
    rc = rc == 0 ? decode(indirect, word, key, indirect->wires, value) : rc;
    if (rc == IX_INDIRECT_REUSED) {
        (*indirect->reused)++;
        DM_TRY(dm_retry(indirect->ctx, DM_RETRY_TORN, attempts));
    }
    return rc;
}

int ix_indirect_check(struct ix_indirect *indirect, uint64_t key, uint64_t word) {
    int rc = indirect ? block_read(indirect, word) : 0;
    return rc == 0 && indirect && !is_right(indirect, word, key, indirect->wires) ? IX_INDIRECT_REUSED : rc;
}

bool ix_indirect_post_read(struct ix_indirect *indirect, uint64_t word, bool whole, void *wire) {
    bool valid = word_valid(indirect, word);
    if (valid) {
        uint32_t bytes = whole || indirect->used_bytes < DM_LINE ? indirect->used_bytes : DM_LINE;
        dm_post_read(indirect->ctx, word_addr(indirect, word), wire, bytes);
    }
    return valid;
}

bool ix_indirect_has_key(struct ix_indirect *indirect, uint64_t word, const void *wire, uint64_t *key) {
    uint32_t stamp;
    memcpy(&stamp, wire, sizeof(stamp));
    memcpy(key, (const char *)wire + STAMP_BYTES, sizeof(*key));
    dm_charge(indirect->ctx, DM_WORK_KEY_COMPARE, 1);
    return stamp == word_stamp(indirect, word) || !indirect->validate;
}

int ix_indirect_value(struct ix_indirect *indirect, uint64_t word, uint64_t key, void *wire, void *value) {
    return decode(indirect, word, key, wire, value);
}

/* ---- scans ------------------------------------------------------------------------------------------------------- */

struct ix_found ix_found_begin(struct ix_indirect *indirect, uint32_t value_bytes, uint32_t wanted, uint64_t *keys,
                               void *values) {
    return (struct ix_found){
        .indirect = indirect,
        .value_bytes = value_bytes,
        .wanted = wanted,
        .keys = keys,
        .values = values,
        .words = indirect ? indirect->found : NULL,
        .words_max = indirect ? indirect->found_max : 0,
        .ends = indirect && indirect->fetch == IX_FETCH_DOORBELL ? indirect->ends : NULL,
    };
}

/* Reads the values of pairs [first, first + n) with one doorbell; has[i] is false where the block was reused. [waits]
 */
static int part_read(const struct ix_found *found, uint32_t first, uint32_t n, bool *has) {
    struct ix_indirect *indirect = found->indirect;
    const uint64_t *words = found->words + (first - found->complete);
    for (uint32_t i = 0; i < n; i++) {
        has[i] = word_valid(indirect, words[i]);
        if (has[i]) {
            dm_post_read(indirect->ctx, word_addr(indirect, words[i]), indirect->wires + i * indirect->block_bytes,
                         indirect->used_bytes);
        }
    }
    DM_TRY(read_posted(indirect));
    for (uint32_t i = 0; i < n; i++) {
        char *wire = indirect->wires + i * indirect->block_bytes;
        char *value = found->values + (size_t)(first + i) * found->value_bytes;
        has[i] = has[i] && decode(indirect, words[i], found->keys[first + i], wire, value) == 0;
    }
    return 0;
}

/* How many of the pairs from `first` on to read with one doorbell; *leaf is the leaf that `first` is of, or one before.
 */
static uint32_t part_size(const struct ix_found *found, uint32_t first, uint32_t *leaf) {
    uint32_t end = found->count;
    while (*leaf < found->end_count && found->complete + found->ends[*leaf] <= first) {
        ++*leaf;
    }
    if (*leaf < found->end_count) {
        end = found->complete + found->ends[*leaf];
    }
    uint32_t most = found->indirect->fetch == IX_FETCH_SERIAL ? 1 : found->indirect->batch;
    return end - first < most ? end - first : most;
}

/* Moves pair `from` to index `to`. */
static void pair_move(const struct ix_found *found, uint32_t to, uint32_t from) {
    if (to != from) {
        found->keys[to] = found->keys[from];
        memcpy(found->values + (size_t)to * found->value_bytes, found->values + (size_t)from * found->value_bytes,
               found->value_bytes);
    }
}

int ix_found_complete(struct ix_found *found, int (*get)(void *client, uint64_t key, void *value), void *client) {
    if (!found->indirect) {
        return 0;
    }
    uint32_t kept = found->complete;
    uint32_t leaf = 0;
    uint32_t n;
    for (uint32_t first = found->complete; first < found->count; first += n) {
        bool has[BATCH_MAX];
        n = part_size(found, first, &leaf);
        DM_TRY(part_read(found, first, n, has));
        for (uint32_t i = 0; i < n; i++) {
            int rc = 0;
            if (!has[i]) {
                (*found->indirect->reused)++;
                rc = get(client, found->keys[first + i], found->values + (size_t)(first + i) * found->value_bytes);
                DM_TRY(rc);
            }
            if (rc == 0) {
                pair_move(found, kept++, first + i);
            }
        }
    }
    found->complete = found->count = kept;
    found->end_count = 0;
    return 0;
}
