/* SPDX-License-Identifier: Apache-2.0
 *
 * What every context that works on the index has: parameters, counters, buffers, and the regions of leaves that it has
 * learned of. Clients, workers that retrain, bulk load and verify each have one.
 */
#ifndef DM_INDEXES_ROLEX_ENV_H
#define DM_INDEXES_ROLEX_ENV_H

#include "indexes/index.h"
#include "indexes/shared/indirect.h"
#include "layout.h"

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* How a reader notices that its tables are too old. */
enum {
    ROLEX_DETECT_BOUNDS, /* by the bounds of the leaves; the used-slot counter shows replaced models */
    ROLEX_DETECT_SLOTS,  /* by the used-slot counter alone, as published: wrong */
    ROLEX_DETECT_NONE,   /* not at all: wrong */
};

struct rolex_params {
    uint64_t epsilon, delta, synonyms, model_leaves, region_bytes;
    double fill;
    bool pretrain, adjacent, retrain, reuse, carry, local_locks;
    unsigned detect;
    unsigned values; /* enum ix_values */
    unsigned fetch;  /* enum ix_fetch */
};

/* The layout of leaves, whose entries have values or the words of blocks. */
static inline struct rolex_layout rolex_layout_of(const struct rolex_params *params, const struct ix_shape *shape) {
    return rolex_layout_make((uint32_t)params->delta, ix_key_bytes(shape),
                             ix_values_stored((enum ix_values)params->values, shape->value_bytes));
}

/* Labels of a leaf, and keys that bulk load puts into it. */
static inline uint32_t rolex_per_leaf(const struct rolex_params *params) {
    uint32_t labels = (uint32_t)(params->fill * (double)params->delta);
    return labels < 1 ? 1 : labels;
}

/* Labels by which a window is wider on either side if its model is cached, in single precision. The relative error is
 * 2^-24, so that up to 2^21 labels it is a part of one, which moves no prediction beyond epsilon (plr.h). */
static inline uint32_t rolex_line_slack(uint64_t leaves, uint32_t per_leaf) {
    return (uint32_t)(leaves * per_leaf >> 21);
}

/* Leaves of the widest window that a model can predict. */
static inline uint32_t rolex_window_max(const struct rolex_params *params, uint32_t per_leaf) {
    uint32_t error = (uint32_t)params->epsilon + rolex_line_slack(params->model_leaves, per_leaf);
    return (2 * error + 1) / per_leaf + 2;
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

#define ROLEX_COUNTERS(X)                                                                                              \
    X(SYNONYM, "synonym_leaf", 1)                                                                                      \
    X(UNLINKED, "leaf_unlinked", 1) /* a delete emptied a synonym leaf */                                              \
    X(REUSED, "leaf_reused", 1)     /* one that was unlinked before */                                                 \
    X(TORN, "torn_leaf", 1)                                                                                            \
    X(BLOCK_REUSED, "block_reused", 1) /* a value's block had been reused before it was read */                        \
    X(STALE_TABLE, "stale_table", 1)   /* a reader missed keys that had moved to a synonym not in its tables */        \
    X(STALE_LOCK, "stale_lock", 1)     /* a table entry had changed since the writer read it */                        \
    X(MODEL_MOVED, "model_moved", 1)   /* a write found a model that was being replaced */                             \
    X(MODEL_SPLIT, "model_split", 1)   /* an insert had to replace a model whose synonyms were used up */              \
    X(MODEL_SEEN, "model_seen", 1)     /* a cached model was exchanged for its replacement */                          \
    X(RETRAINED, "retrained_seen", 1)  /* a client found a model trained by a memory node */                           \
    X(CARRIED, "carried_seen", 1)      /* the same, with leaves made during its training */                            \
    X(QUEUED, "retrain_queued", 0)                                                                                     \
    X(QUEUED_FIRST, "retrain_priority", 0)                                                                             \
    X(REGION, "region_made", 0)                                                                                        \
    X(TABLE_READ, "table_read", 0) /* tables that were not in the cache */
enum rolex_counter {
#define X(name, text, rare) ROLEX_##name,
    ROLEX_COUNTERS(X)
#undef X
        ROLEX_COUNTER_COUNT,
};

/* ---- the environment --------------------------------------------------------------------------------------------- */

/* Which file uses which of env->words. Those of one batch must differ. */
enum {
    ROLEX_W_SPACE = 0,   /* space.c: 8 */
    ROLEX_W_REGIONS = 8, /* env.c: ROLEX_REGIONS_MAX */
    ROLEX_W_HEAD = 136,  /* a model's head: 8 */
    ROLEX_W_FORK = 144,  /* descend.c: 64 */
    ROLEX_W_OWN = 208,   /* read.c, write.c, replace.c: 16 */
    ROLEX_WORDS = 224,
};

struct rolex_env {
    struct dm_ctx *ctx;
    const struct rolex_params *params;
    const struct ix_shape *shape;
    struct rolex_layout layout;
    uint32_t per_leaf;                   /* rolex_per_leaf */
    uint64_t regions[ROLEX_REGIONS_MAX]; /* their addresses; 0: not known here */
    uint64_t leaves[ROLEX_REGIONS_MAX];  /* of each region */
    uint8_t current[64];                 /* of each memory node: 1 + the region that leaves are taken from; 0: none */
    uint64_t free_hint;                  /* a bit for each memory node: its reclaiming queue was not empty */
    unsigned awaited;                    /* a region that another client is making, */
    uint64_t claim;                      /* the word of its claim, */
    uint32_t waits;                      /* and how often that word has been found */
    uint64_t *words;                     /* device memory: ROLEX_WORDS */
    uint64_t *counts;                    /* ROLEX_COUNTER_COUNT of them */
};

/* Allocates the buffers and reads the regions. [waits] */
int rolex_env_init(struct rolex_env *env, struct dm_ctx *ctx, const struct rolex_params *params,
                   const struct ix_shape *shape, uint64_t *counts);

/* Reads the head of the model at `model`. DM_NOT_FOUND: the head is not one of a model. [waits] */
int rolex_head_read(struct rolex_env *env, dm_addr model, struct rolex_head *head);

/* In a region's word: a client is making the region. To adopt the claim of a client that has stopped, another
 * writes the next claim. Addresses are even. */
enum { ROLEX_CLAIM_FIRST = 1, ROLEX_CLAIM_STEP = 2 };
static inline bool rolex_is_claim(uint64_t word) {
    return word % 2 == 1;
}

/* Sizes follow from the region's number and grow with it, so that 127 regions of up to 1 GiB are enough for any tree on
 * few memory nodes. With 19 and more they are enough for three times the expected keys. */
uint32_t rolex_region_bytes(const struct rolex_env *env, unsigned region);
static inline uint64_t rolex_region_leaves(const struct rolex_env *env, unsigned region) {
    return env->leaves[region];
}

/* Bytes of a memory node for so many leaves: regions, the last of which every node may have to itself. */
double rolex_region_memory(const struct rolex_params *params, const struct ix_shape *shape, double leaves);

/* Reads the addresses of all regions. [waits] */
int rolex_regions_read(struct rolex_env *env);

/* Address of a leaf of a region that is known here. */
static inline dm_addr rolex_region_leaf(const struct rolex_env *env, unsigned region, uint64_t leaf) {
    return dm_addr_add((dm_addr){env->regions[region]}, DM_LINE + leaf * env->layout.wire_bytes);
}

/* Address of the leaf that a table entry names. DM_NOT_FOUND if there is no such leaf. [waits] once a region */
int rolex_leaf_addr(struct rolex_env *env, uint64_t entry, dm_addr *addr);

#endif
