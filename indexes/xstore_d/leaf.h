/* SPDX-License-Identifier: Apache-2.0
 *
 * A leaf as the memory node's CPU works on it, under the mutex of its stripe.
 */
#ifndef DM_INDEXES_XSTORE_D_LEAF_H
#define DM_INDEXES_XSTORE_D_LEAF_H

#include "mn.h"

struct xstore_leaf {
    uint32_t ref;
    uint64_t low, high; /* it covers [low, high), or if high is UINT64_MAX all keys from low on */
    uint64_t words[XSTORE_HEAD_WORDS + XSTORE_SLOTS_MAX]; /* check, header, keys */
};

static inline struct xstore_head xstore_leaf_head(const struct xstore_leaf *leaf) {
    return xstore_head_of(leaf->words[1]);
}
static inline uint64_t *xstore_leaf_keys(struct xstore_leaf *leaf) {
    return leaf->words + XSTORE_HEAD_WORDS;
}

/* Reads header, keys and fences. False: there is no leaf at this ref. */
bool xstore_leaf_load(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, struct xstore_leaf *leaf);

/* Stores keys, header and check; `head` is the new header. */
void xstore_leaf_store(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_leaf *leaf,
                       struct xstore_head head);
void xstore_fences_store(struct xstore_server *server, struct dm_ctx *ctx, const struct xstore_leaf *leaf);

/* The slot of the key, or -1. */
int xstore_leaf_find(const struct xstore_leaf *leaf, uint64_t key);

/* What a slot stores is read and written word by word; `value` has value_bytes bytes. */
void xstore_value_load(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned slot, void *value);
void xstore_value_store(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned slot, uint64_t key,
                        const void *value);
void xstore_value_clear(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned slot);

/* ---- blocks of indirect values; without them nothing happens ------------------------------------------------------
 */

/* Takes a free block for a pair: *word is its ref. 0 or a failure. [waits] */
int xstore_block_take(struct xstore_server *server, struct dm_ctx *ctx, uint64_t *word);

/* Returns what a slot stores for the value: the value itself, or `word`, the ref of a block, which now holds key and
 * value. Only if the key is not in the tree, with its leaf locked: readers of a key that was deleted may still read the
 * block that it had, and must not find there the value of an insert that fails, or of one before those do that read the
 * leaf. So with `check` the block has no valid check until the leaf has the key, and reveal writes this one. */
const void *xstore_block_fill(struct xstore_server *server, struct dm_ctx *ctx, const uint64_t *word, uint64_t key,
                              const void *value, uint64_t *check);
void xstore_block_reveal(struct xstore_server *server, struct dm_ctx *ctx, uint64_t word, uint64_t check);

/* Frees a block whose key is not, or no longer, in a leaf. [waits] */
void xstore_block_free(struct xstore_server *server, struct dm_ctx *ctx, uint64_t word);

/* Writes the value of a locked leaf's slot: into the slot, or into its block. */
void xstore_value_update(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned slot, uint64_t key,
                         const void *value);

/* Reads the value of a slot, from there or from its block; `value` has user_bytes bytes. */
void xstore_value_fetch(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref, unsigned slot, void *value);

/* Finds the leaf that covers key, locks its stripe and loads it. 0 with the stripe locked, or a failure. [waits] */
int xstore_leaf_lock(struct xstore_server *server, struct dm_ctx *ctx, uint64_t key, struct xstore_leaf *leaf);
void xstore_leaf_unlock(struct xstore_server *server, struct dm_ctx *ctx, uint32_t ref);

/* Splits the locked, full leaf and adds the pair; `right` is the memory of a leaf. The caller links it. */
void xstore_leaf_split(struct xstore_server *server, struct dm_ctx *ctx, struct xstore_leaf *leaf, uint32_t right,
                       uint64_t key, const void *value);

#endif
