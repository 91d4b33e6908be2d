/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters and counters of XStore-D.
 */
#ifndef DM_INDEXES_XSTORE_D_PARAMS_H
#define DM_INDEXES_XSTORE_D_PARAMS_H

#include "indexes/index.h"

enum xstore_caching { XSTORE_CACHE_ALL, XSTORE_CACHE_MODELS, XSTORE_CACHE_TOP };
enum xstore_fetch { XSTORE_FETCH_KEYS, XSTORE_FETCH_LEAF };

struct xstore_params {
    uint64_t slots, fanout, models, keys_per_model, expand_at, span_max, trainers;
    double fill;
    uint64_t cache, fetch; /* enums above */
    bool hint, speculate, prefill, expand, logging;
    bool incarnation, leaf_check, value_check, augment; /* off is wrong */
};

/* X(name, text, rare) */
#define XSTORE_COUNTERS(X)                                                                                             \
    X(LEAF_SPLIT, "leaf_split", 1)                                                                                     \
    X(HINT_HIT, "hint_hit", 0)     /* an update found its key by the position hint */                                  \
    X(HINT_MISS, "hint_miss", 0)   /* it did not, and the tree was searched */                                         \
    X(MODEL_HIT, "model_hit", 0)   /* sub-models found in the cache */                                                 \
    X(MODEL_MISS, "model_miss", 0) /* read from the memory node */                                                     \
    X(TABLE_HIT, "table_hit", 0)   /* lines of translation tables, likewise */                                         \
    X(TABLE_MISS, "table_miss", 0)                                                                                     \
    X(INCARNATION, "incarnation_mismatch", 1) /* a look-up met a leaf that had split */                                \
    X(SPECULATION, "speculation", 1)          /* and found the key there or over one right link */                     \
    X(FALLBACK, "fallback", 1)                /* a read that went to the memory node's CPU */                          \
    X(UNSAFE, "wide_prediction", 0)           /* ... since the model says too little */                                \
    X(RETRAINED, "model_retrained", 1)        /* a client learned of a newer sub-model */                              \
    X(EXPANDED, "expansion", 1)               /* ... of a new generation of models */                                  \
    X(TORN_LEAF, "torn_leaf", 1)                                                                                       \
    X(TORN_VALUE, "torn_value", 1)                                                                                     \
    X(OLD_MODEL, "old_model", 0) /* a sub-model or table was replaced under a reader without it in the cache */        \
    X(SCAN_GAP, "scan_gap", 0)   /* a scan met a leaf that its table does not have */
enum xstore_counter {
#define X(name, text, rare) XSTORE_##name##_COUNT,
    XSTORE_COUNTERS(X)
#undef X
        XSTORE_COUNTER_COUNT,
};

#endif
