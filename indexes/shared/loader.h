/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk load of a tree whose leaves have one size: feeds sorted pairs to leaves one after another, gives each its
 * sibling, writes them, and builds the tree over them. Leaves go round the memory nodes. The empty leaf that format
 * made becomes the first one. What a leaf is, the index says by two functions.
 */
#ifndef DM_INDEXES_SHARED_LOADER_H
#define DM_INDEXES_SHARED_LOADER_H

#include "indexes/shared/indirect.h"
#include "indexes/shared/tree.h"

struct ix_loader;

struct ix_loader_leaf {
    uint32_t wire_bytes;  /* of a leaf in local memory */
    uint32_t used_bytes;  /* of those that are written */
    uint32_t word_offset; /* of a lock word behind them; 0: none */
    uint32_t alloc_bytes; /* that a leaf takes in remote memory */
    uint32_t image_bytes;
    uint64_t leaves; /* the pairs are spread evenly over so many; 0: every leaf takes as many as it can */

    enum ix_values values;
    uint32_t value_bytes, padding; /* padding: of a key beyond its number */
    const void *owner;             /* the index's own, for the two functions */

    /* Starts an empty leaf in loader->image, which will be on memory node `node`, and puts pairs into it until it is
     * full or loader->done is `end`. [waits] */
    int (*fill)(struct ix_loader *loader, unsigned node, uint64_t end);

    /* Completes the leaf with its key range and sibling and lays it out in `wire`; returns its lock word. */
    uint64_t (*finish)(struct ix_loader *loader, uint64_t low, uint64_t high, dm_addr sibling, char *wire);
};

struct ix_loader {
    const struct ix_loader_leaf *leaf;
    char *image;
    uint64_t done; /* pairs that leaves have taken: `fill` counts them */

    /* Private. */
    struct ix_tree_cn *cn;
    struct dm_ctx *ctx;
    const struct ix_pairs *pairs;
    struct ix_tree_writer writer;
    uint64_t *keys; /* from pair `first` on */
    uint64_t first, count;
    char *value;
    struct ix_indirect *indirect; /* NULL: values are inline */
    struct ix_tree_level leaves;
};

/* Loads all pairs. [waits] */
int ix_loader_run(struct ix_tree_cn *cn, struct dm_ctx *ctx, const struct ix_pairs *pairs,
                  const struct ix_loader_leaf *leaf, struct dm_err *err);

/* ---- for `fill` -------------------------------------------------------------------------------------------------- */

/* The key of pair `done`; false at the end. */
bool ix_loader_key(struct ix_loader *loader, uint64_t *key);

/* Its value as an entry keeps it: inline, or the word of a block on memory node `node`. Valid until the next call.
 * [waits] */
int ix_loader_value(struct ix_loader *loader, unsigned node, uint64_t key, const void **stored);

#endif
