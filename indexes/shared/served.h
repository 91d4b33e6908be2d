/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of indexes whose data the processors of memory nodes or index servers change: methods, blocks, counters.
 */
#ifndef DM_INDEXES_SHARED_SERVED_H
#define DM_INDEXES_SHARED_SERVED_H

#include "indexes/index.h"

/* ---- methods ----------------------------------------------------------------------------------------------------- */

struct ix_method {
    unsigned method;
    dm_handler handler; /* NULL: none on this node */
};

/* Registers the handlers of a node; each gets `server` as its argument. 0 or a failure of dm_register. */
int ix_methods_register(struct dm_fabric *fabric, unsigned node, const struct ix_method *methods, size_t count,
                        void *server);

/* Refuses memory nodes without cores, and more memory than links of `link_bits`, in units of DM_LINE, can address.
 * 0 or DM_ERR_INVALID. */
int ix_served_check(const struct ix_shape *shape, unsigned link_bits, struct dm_err *err);

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

enum { IX_BLOCKS_BYTES = 8192 };

/* Blocks of one size in the DRAM of a node, taken and freed by its handlers. A freed block becomes a block of another
 * pair and never other memory, so a reader with an old ref finds a block. A ref is an offset in units of DM_LINE. */
struct ix_blocks {
    unsigned node;
    uint32_t lines, at_once; /* the lines of a block; blocks of one allocation */
    struct dm_mutex lock;    /* protects the rest; never held during a wait */
    uint32_t *free;
    uint64_t count, capacity;
};

/* Blocks are allocated `at_once`, or as few as IX_BLOCKS_BYTES have: what an allocation does not fill is lost at the
 * end of each chunk (dm_alloc). */
void ix_blocks_init(struct ix_blocks *blocks, unsigned node, uint32_t block_bytes, uint32_t at_once);
void ix_blocks_fini(struct ix_blocks *blocks);

/* DRAM that `count` blocks take, with what is lost of chunks of 256 KiB or more. */
double ix_blocks_memory(double count, uint32_t block_bytes);

/* Takes a free block; allocates `at_once` of them if there is none. 0 or a failure. [waits] */
int ix_blocks_take(struct ix_blocks *blocks, struct dm_ctx *ctx, uint32_t *ref);

/* Without local memory to remember it, the block is lost. [waits] */
void ix_blocks_free(struct ix_blocks *blocks, struct dm_ctx *ctx, uint32_t ref);

/* ---- counters ---------------------------------------------------------------------------------------------------- */

/* Adds 1 to a word of the own node's DRAM; several contexts may do so at once. */
void ix_word_increment(struct dm_ctx *ctx, dm_addr addr);

#endif
