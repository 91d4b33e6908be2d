/* SPDX-License-Identifier: Apache-2.0
 *
 * Values outside the index: the index stores a word instead of the value, the word names a block, and the block holds
 * the value. Blocks are never changed in place: a write makes a new one, and the index swaps the word.
 *
 *     word    | stamp 18 | memory node 6 | offset in lines 40 |            0: no block
 *     block   | stamp 4, data 60 | stamp 4, data 60 | ...                  a line each; data: the key, then the value
 *
 * Compact blocks are for an index that wants ten bits of the word, the upper ones, for itself:
 *
 *     word    | 0 10 | stamp 14 | memory node 6 | offset in 8 bytes 34 |   a stamp is never 0; up to 128 GiB a node
 *     block   | stamp 4, key 8, value, stamp 4 |                           values of up to 48 bytes: at any 8 bytes
 *     block   | stamp 4, data 60 | stamp 4, data 60 | ...                  longer ones, as above
 *
 * A compact block has 64 bytes at most, so it lies in one line or in two, and then each of the two has a stamp.
 *
 * Slot words are for a hash table that wants the upper 16 bits for itself; their blocks are the first kind's:
 *
 *     word    | 0 16 | stamp 11 | memory node 6 | offset in lines 31 |     a stamp is never 0; up to 128 GiB a node
 *
 * With checksums a block that is not compact is read and written in whole lines, and its last 4 bytes have a CRC-32 of
 * those before. Stamps make it unnecessary; published programs spend time on it.
 *
 * How blocks are reused while other clients may still read them. The client that takes a word out of the index keeps
 * its block, and reuses it for a value on the same node, with the next stamp. So a pair of address and stamp names one
 * write of one block until the stamp repeats, after 2^18 (2^14, 2^11) writes of that block by one client, each in an
 * operation of its own, during one read of it by another. A reader that found a word in the index accepts its block
 * only if every line has the word's stamp. Then every line is of that one write, because lines are read and written
 * atomically, and the value of that write was the key's value when the word was found. Any other stamp means that the
 * block has been reused since, and the reader goes back to the index. Blocks are never returned to the allocator, so no
 * other data can be where a stamp is expected.
 *
 * How a block is visible before its word. It is allocated on the memory node of the word that will name it. Its write
 * precedes the word's in the same batch, so that posted order applies, or is waited for.
 *
 * This part does not depend on which index uses it. Each client has one object; NULL stands for inline values, and
 * every function accepts it.
 */
#ifndef DM_INDEXES_SHARED_INDIRECT_H
#define DM_INDEXES_SHARED_INDIRECT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "indexes/index.h"
#include "transport/dm.h"

enum {
    IX_INDIRECT_VALUE_MAX = 16384, /* of a value */
    IX_INDIRECT_REUSED = 1100,     /* outcome of a read: the block has been reused; read the index again */
    IX_INDIRECT_CHECKSUM_BYTES = 4,
};

/* ---- the parameter `values` of an index that has both ------------------------------------------------------------ */

enum ix_values {
    IX_VALUES_INLINE,
    IX_VALUES_INDIRECT,
    IX_VALUES_UNCHECKED, /* wrong: whatever the block holds is taken */
    /* Indirect with compact blocks, and the same unchecked; not among the choices, for an index that has no others. */
    IX_VALUES_COMPACT,
    IX_VALUES_COMPACT_UNCHECKED,
    /* The same with slot words. */
    IX_VALUES_SLOT,
    IX_VALUES_SLOT_UNCHECKED,
};
extern const char *const ix_values_choices[];
#define IX_VALUES_HELP                                                                                                 \
    "Where values are: in the leaf, in blocks that the leaf points to, or the same and (wrong) readers do not check "  \
    "whether the block is still the one."

/* ---- the parameter `fetch`: how a scan reads the values of the pairs that it has found --------------------------- */

enum ix_fetch {
    IX_FETCH_BATCH,    /* up to 128 of them, of whatever leaves, with one doorbell */
    IX_FETCH_DOORBELL, /* those of one leaf with one doorbell, leaf by leaf */
    IX_FETCH_SERIAL,   /* one by one: a round trip each */
};
extern const char *const ix_fetch_choices[];
#define IX_FETCH_HELP                                                                                                  \
    "How scans read indirect values: many with one doorbell, those of one leaf with one doorbell, or one by one, a "   \
    "round trip each."

/* Refuses values of a size that cannot be stored. */
int ix_values_check(enum ix_values values, uint32_t value_bytes, struct dm_err *err);

/* Bytes that an entry stores for a value: the value, or a word. */
static inline uint32_t ix_values_stored(enum ix_values values, uint32_t value_bytes) {
    return values == IX_VALUES_INLINE ? value_bytes : (uint32_t)sizeof(uint64_t);
}

/* Bytes of remote memory for the block of a value of this size and the padding of its key, to which a checksum adds
 * IX_INDIRECT_CHECKSUM_BYTES. */
uint32_t ix_indirect_block_bytes(uint32_t value_bytes);
uint32_t ix_indirect_compact_bytes(uint32_t value_bytes);
#define IX_INDIRECT_COMPACT_MEMORY (UINT64_C(8) << 34) /* bytes of a memory node that words reach */
#define IX_INDIRECT_SLOT_MEMORY    (UINT64_C(64) << 31)
#define IX_INDIRECT_SLOT_MASK      ((UINT64_C(1) << 48) - 1) /* the bits of a slot word */

/* Bytes of all memory nodes together for the blocks of `count` values of `value_bytes`, padding of their keys included,
 * and for those that clients keep; 0 with inline values. */
double ix_indirect_memory(enum ix_values values, uint32_t value_bytes, uint64_t count, const struct ix_shape *shape);

/* ---- the object of a client -------------------------------------------------------------------------------------- */

struct ix_indirect;

struct ix_indirect_config {
    enum ix_values values; /* of an unchecked kind, fetch and found take whatever the block holds */
    uint32_t value_bytes;
    uint32_t padding; /* of a key beyond its number; behind the value in a block that is not compact */
    bool checksum;    /* computed bit by bit for each block that is made, and by ix_indirect_intact */
    enum ix_fetch fetch;
    uint32_t found_max; /* pairs of a scan whose values may be missing at a time; 0: no scans */
    uint64_t *reused;   /* counts reused blocks that fetch and found have read; NULL: neither will be called */
};

/* Allocates local memory, so not in the measured phase. *out is NULL with inline values. 0 or DM_ERR_NO_MEMORY. */
int ix_indirect_open(struct dm_ctx *ctx, const struct ix_indirect_config *config, struct ix_indirect **out);
void ix_indirect_close(struct ix_indirect *indirect); /* the blocks that it keeps are lost */

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Prepares what an entry must store for the value. *stored is the value itself, or the word of a block on memory node
 * `node`, which is filled with key and value in local memory and stays valid until the next call. The batch must be
 * empty. 0 or DM_ERR_NO_MEMORY, or a failure of the allocation. [waits] */
int ix_indirect_make(struct ix_indirect *indirect, unsigned node, uint64_t key, const void *value, const void **stored);

/* Adds the write of the block made last to the current batch. To be called before the verb that publishes its word. */
void ix_indirect_post(struct ix_indirect *indirect);

/* The word in what an entry stores; 0 with inline values. */
static inline uint64_t ix_indirect_word(const struct ix_indirect *indirect, const void *stored) {
    uint64_t word = 0;
    if (indirect) {
        memcpy(&word, stored, sizeof(word));
    }
    return word;
}

/* Keeps a block, which is not or no longer in the index, for another value. Not for a block whose word may have been
 * published; such a block is lost. */
void ix_indirect_drop(struct ix_indirect *indirect, uint64_t word);

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Reads the value named by `word`, which the index has for `key`. 0, IX_INDIRECT_REUSED, which is counted as a retry,
 * or a failure. With inline values 0 at once. [waits] */
int ix_indirect_fetch(struct ix_indirect *indirect, uint64_t key, uint64_t word, uint32_t *attempts, void *value);

/* For verify: whether `word` names a block of the key. 0, IX_INDIRECT_REUSED, or a failure. [waits] */
int ix_indirect_check(struct ix_indirect *indirect, uint64_t key, uint64_t word);

/* A hash table finds words that may be of other keys, so it reads blocks into memory of its own and asks for the key;
 * not for compact blocks. post adds the read of the whole block or of its first line to the batch, and returns false,
 * without a read, if the word names no block. has_key and value are then asked about what was read: has_key returns
 * false if the line is of another write than the word's, and else sets *key; value returns 0, or IX_INDIRECT_REUSED if
 * any line is of another write. */
bool ix_indirect_post_read(struct ix_indirect *indirect, uint64_t word, bool whole, void *wire);
bool ix_indirect_has_key(struct ix_indirect *indirect, uint64_t word, const void *wire, uint64_t *key);
int ix_indirect_value(struct ix_indirect *indirect, uint64_t word, uint64_t key, void *wire, void *value);

/* Whether the checksum of a block is right of which post_read has read all bytes; true without checksums. */
bool ix_indirect_intact(const struct ix_indirect *indirect, const void *wire);

/* The pairs that a scan has found. Inline values are copied at once. For indirect values the words are collected, and
 * complete reads the values. */
struct ix_found {
    struct ix_indirect *indirect;
    uint32_t value_bytes, wanted, count;
    uint32_t complete; /* pairs with values; the others have only words */
    uint64_t *keys;
    char *values;
    uint64_t *words; /* NULL: values are inline */
    uint32_t words_max;
    uint32_t *ends; /* where each leaf's missing values end, counted from `complete`; NULL unless IX_FETCH_DOORBELL */
    uint32_t end_count;
};

/* Taking a pair out of a sorted leaf or a reply is as much work as comparing so many keys. */
enum { IX_PAIR_COMPARES = 3 };

/* The caller provides memory for `wanted` pairs. */
struct ix_found ix_found_begin(struct ix_indirect *indirect, uint32_t value_bytes, uint32_t wanted, uint64_t *keys,
                               void *values);

/* Adds a pair; `stored` is what its entry stores for the value. */
static inline void ix_found_add(struct ix_found *found, uint64_t key, const void *stored) {
    if (found->words) {
        memcpy(&found->words[found->count - found->complete], stored, sizeof(*found->words));
    } else {
        memcpy(found->values + (size_t)found->count * found->value_bytes, stored, found->value_bytes);
    }
    found->keys[found->count++] = key;
}

/* The pairs of a leaf have been added. */
static inline void ix_found_leaf_end(struct ix_found *found) {
    uint32_t end = found->count - found->complete;
    if (found->ends && end > (found->end_count > 0 ? found->ends[found->end_count - 1] : 0)) {
        found->ends[found->end_count++] = end;
    }
}

static inline bool ix_found_all(const struct ix_found *found) {
    return found->count == found->wanted;
}

/* True if `more` pairs do not fit before the values of those found are read. */
static inline bool ix_found_full(const struct ix_found *found, uint32_t more) {
    return found->words && found->count - found->complete + more > found->words_max;
}

/* Reads the missing values as `fetch` says, at most 128 of them (64 KiB) with one doorbell. For a reused block
 * `get(client, key, value)` reads the index; keys that it does not find are dropped. 0 or a failure. [waits] */
int ix_found_complete(struct ix_found *found, int (*get)(void *client, uint64_t key, void *value), void *client);

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

/* Like make, but also writes the block: several with one doorbell, the last ones in flush. [waits] */
int ix_indirect_load(struct ix_indirect *indirect, unsigned node, uint64_t key, const void *value, const void **stored);
int ix_indirect_flush(struct ix_indirect *indirect);

#endif
