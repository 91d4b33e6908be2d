/* SPDX-License-Identifier: Apache-2.0
 *
 * Remote memory of ROLEX: models, forks, the root, regions of leaves, and the reserved page of a memory node. The bytes
 * of leaves and table entries are in leaf.h.
 */
#ifndef DM_INDEXES_ROLEX_LAYOUT_H
#define DM_INDEXES_ROLEX_LAYOUT_H

#include <assert.h>

#include "indexes/shared/plr.h"
#include "leaf.h"
#include "transport/dm.h"

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* A model: this head, the synonym leaf table (the used-slot counter and `synonyms` entries), the leaf table. All of it,
 * and the model's leaves, are on one memory node. */
struct rolex_head {
    uint64_t low, high;       /* the keys that it covers, high excluded */
    struct ix_plr_model line; /* predicts labels: leaf i has those from i * per_leaf on */
    uint32_t leaves;
    uint16_t synonyms;
    uint16_t flags;
    uint64_t forward; /* a pointer (see below) to its replacement; 0: none yet */
    uint64_t parent;  /* address of the word that points here */
};
static_assert(sizeof(struct rolex_head) == DM_LINE, "a head is one line");

enum { ROLEX_BY_TRAINING = 1, ROLEX_WITH_CARRIED = 2 };

/* In the used-slot counter of a model that has been replaced. */
#define ROLEX_RETIRED (UINT64_C(1) << 63)

/* Slots in use according to the counter, which clients that found no free slot have raised too. */
static inline uint32_t rolex_used(uint64_t counter, uint32_t synonyms) {
    uint64_t used = counter & ~ROLEX_RETIRED;
    return used < synonyms ? (uint32_t)used : synonyms;
}

static inline dm_addr rolex_slots(dm_addr model) {
    return dm_addr_add(model, DM_LINE);
}
static inline dm_addr rolex_table(dm_addr model, const struct rolex_head *head) {
    return dm_addr_add(model, DM_LINE + 8 * (1 + (uint64_t)head->synonyms));
}
static inline uint32_t rolex_model_bytes(uint32_t leaves, uint32_t synonyms) {
    return DM_LINE + 8 * (1 + synonyms + leaves);
}

/* The leaves lo .. hi of the leaf table, one of which holds a key: README.md has the proof. */
struct rolex_window {
    uint32_t lo, hi;
};
struct rolex_window rolex_predict(const struct rolex_head *head, uint64_t key, uint32_t epsilon, uint32_t per_leaf);

/* ---- the levels above models ------------------------------------------------------------------------------------- */

/* A pointer is the address of a model, or with this bit that of a fork: the count of its branches, an unused word, and
 * then the branches. */
#define ROLEX_FORK UINT64_C(1)
struct rolex_branch {
    uint64_t low, pointer;
};

/* The root: levels of linear models over the lowest keys of the models that bulk load made (section 3.3, upper models),
 * the highest level first, and then a branch a model. */
enum { ROLEX_UPPER_LEVELS = 6, ROLEX_UPPER_EPSILON = 4, ROLEX_UPPER_TOP = 8 };
struct rolex_root {
    uint32_t levels, unused;
    uint32_t counts[ROLEX_UPPER_LEVELS]; /* of each level, the highest first */
    uint64_t branches;
    uint64_t padding[3];
};
static_assert(sizeof(struct rolex_root) == DM_LINE, "a root's head is one line");
struct rolex_upper {
    struct ix_plr_model line;
    uint32_t first, count; /* what it covers of the level below */
};
dm_addr rolex_root_branches(const struct rolex_root *root, dm_addr addr);

/* Entries lo .. hi of a level. */
struct rolex_run {
    uint32_t lo, hi;
};

/* The entries of the level below among which is the last one whose key is not above `key`. */
struct rolex_run rolex_upper_predict(const struct rolex_upper *upper, uint64_t key);

/* ---- the reserved page and regions ------------------------------------------------------------------------------- */

enum {
    /* On memory node 0 alone: */
    ROLEX_AT_ROOT = 64,
    ROLEX_AT_REGIONS = 128, /* a word for each region: its address */
    /* On every memory node: */
    ROLEX_AT_FREE = 1152,   /* the reclaiming queue: words taken from it; words put into it */
    ROLEX_AT_QUEUES = 1168, /* the circular queues of models to retrain: words put into each, the urgent one first */
    ROLEX_AT_PAUSE = 1184,  /* not 0: no retraining may begin */
    ROLEX_AT_BUSY = 1192,   /* retrainings in progress */
    ROLEX_AT_FREE_SLOTS = 1280,
    ROLEX_FREE_SLOTS = 256,
    ROLEX_AT_QUEUE_SLOTS = ROLEX_AT_FREE_SLOTS + 8 * ROLEX_FREE_SLOTS,
    ROLEX_QUEUE_SLOTS = 32, /* each */
};
static_assert(ROLEX_AT_QUEUE_SLOTS + 2 * 8 * ROLEX_QUEUE_SLOTS <= DM_RESERVED_BYTES, "all fits the reserved page");

static inline dm_addr rolex_reserved(unsigned node, uint32_t at) {
    return dm_addr_make(node, DM_DRAM, at);
}

/* A region: the number of leaves taken so far, the number of leaves that it has, and from the next line on the leaves.
 */
struct rolex_region {
    uint64_t taken, total;
};

#endif
