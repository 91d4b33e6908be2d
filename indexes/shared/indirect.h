/* SPDX-License-Identifier: Apache-2.0
 *
 * Values apart from the index: the index keeps a word where the value would be, the word names a block, and the block
 * holds the value. Blocks are never changed in place: a write makes a new one, and the index swaps the word.
 *
 *     word    | stamp 18 | memory node 6 | offset in lines 40 |            0: no block
 *     block   | stamp 4, data 60 | stamp 4, data 60 | ...                  a line each; data: the key, then the value
 *
 * How blocks are used again while others may still read them. Whoever takes a word out of the index keeps its block for
 * a block of its own on the same node, with the next stamp. So a pair of address and stamp names one write of one
 * block, until the stamp has gone round: 2^18 writes of that block by one client, each an operation, during one read of
 * it by another. A reader that found a word in the index accepts its block only if every line carries the word's stamp:
 * then every line is of that one write (a line is read and written whole), and what that write wrote was the key's
 * value when the word was found. Any other stamp means that the block has been used again since: the reader goes back
 * to the index. Blocks are never given back to the allocator, so no other bytes can come to lie where a stamp is looked
 * for.
 *
 * How a block is seen before its word. It is taken on the memory node of the word that will name it, and its write
 * goes in front of the word's in the same batch, or is waited for: posted order then has it in place first.
 *
 * Nothing here knows the index. One object a client.
 */
#ifndef DM_INDEXES_SHARED_INDIRECT_H
#define DM_INDEXES_SHARED_INDIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/dm.h"

enum {
    IX_INDIRECT_VALUE_MAX = 16384, /* bytes of a value */
    IX_INDIRECT_MNS_MAX = 64,
    IX_INDIRECT_GONE = 1, /* outcome of a read: the block has been used again; ask the index again */
};

/* Bytes of remote memory a value of this size takes. */
uint32_t ix_indirect_block_bytes(uint32_t value_bytes);

/* Of all memory nodes together, for this many values and what clients keep. */
double ix_indirect_memory(uint32_t value_bytes, uint64_t values, const struct dm_topology *topology);

struct ix_indirect; /* one client's */

/* With `validate` off, the known-wrong way,
 * reads take whatever the block holds. Allocates local memory: not in the measured phase. 0 or DM_ERR_NO_MEMORY. */
int ix_indirect_open(struct dm_ctx *ctx, uint32_t value_bytes, bool validate, struct ix_indirect **out);
void ix_indirect_close(struct ix_indirect *indirect); /* accepts NULL; kept blocks are lost */

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Takes a block on memory node `node` and lays key and value out for it; *word names it. The batch must be empty. 0 or
 * DM_ERR_NO_MEMORY, or a failure of the allocation. [waits] */
int ix_indirect_make(struct ix_indirect *indirect, unsigned node, uint64_t key, const void *value, uint64_t *word);

/* Adds the write of the block made last to the current batch: to be called before the verb that publishes its word. */
void ix_indirect_post(struct ix_indirect *indirect);

/* The block is no longer, or was never, in the index: keeps it for another value. Not for a block whose word may or may
 * not have been published, which is lost. */
void ix_indirect_drop(struct ix_indirect *indirect, uint64_t word);

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Reads the value that `word`, found in the index with `key`, names. 0, IX_INDIRECT_GONE, or a failure. [waits] */
int ix_indirect_read(struct ix_indirect *indirect, uint64_t key, uint64_t word, void *value);

/* What a scan has found: `count` keys with their words, and room for their values. */
struct ix_indirect_pairs {
    uint32_t count;
    uint64_t *keys;
    const uint64_t *words;
    char *values;
};

/* Reads all values, up to 128 of them (64 KiB) with one doorbell. Where a block is gone, `again(arg, key, value)` asks
 * the index: 0, DM_NOT_FOUND, or a failure. Pairs of keys that are gone meanwhile are taken out; count says how many
 * are left. 0 or a failure. [waits] */
int ix_indirect_collect(struct ix_indirect *indirect, struct ix_indirect_pairs *pairs,
                        int (*again)(void *arg, uint64_t key, void *value), void *arg);

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

/* Like make, but the block is also written: with others by one doorbell, the last ones by flush. [waits] */
int ix_indirect_load(struct ix_indirect *indirect, unsigned node, uint64_t key, const void *value, uint64_t *word);
int ix_indirect_flush(struct ix_indirect *indirect);

#endif
