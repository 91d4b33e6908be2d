/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters and counters of XStore-D.
 */
#ifndef DM_INDEXES_XSTORE_D_PARAMS_H
#define DM_INDEXES_XSTORE_D_PARAMS_H

#include "indexes/index.h"

enum xstore_caching { XSTORE_CACHE_ALL, XSTORE_CACHE_MODELS, XSTORE_CACHE_TOP };
enum xstore_fetch { XSTORE_FETCH_KEYS, XSTORE_FETCH_LEAF };
enum xstore_values { XSTORE_VALUES_INLINE, XSTORE_VALUES_INDIRECT };
enum xstore_speculate { XSTORE_SPECULATE_OFF, XSTORE_SPECULATE_LEAF, XSTORE_SPECULATE_LINK };

struct xstore_params {
    uint64_t slots, fanout, models, keys_per_model, expand_at, span_max, trainers;
    uint64_t log_rate; /* bytes a second */
    double fill, trainer_share;
    uint64_t cache, fetch, speculate, values; /* of the enums above */
    bool hint, prefill, expand, logging;
    bool incarnation, leaf_check, value_check, augment; /* off: a known-wrong variant */
};

/* X(name, text, rare) */
#define XSTORE_COUNTERS(X)                                                                                             \
    X(LEAF_SPLIT, "leaf_split", 1)                                                                                     \
    X(HINT_HIT, "hint_hit", 0)     /* an update found its key by the position hint */                                  \
    X(HINT_MISS, "hint_miss", 0)   /* an update had to search the tree */                                              \
    X(MODEL_HIT, "model_hit", 0)   /* a sub-model was in the cache */                                                  \
    X(MODEL_MISS, "model_miss", 0) /* a sub-model was read from the memory node */                                     \
    X(TABLE_HIT, "table_hit", 0)   /* the same for a line of a translation table */                                    \
    X(TABLE_MISS, "table_miss", 0)                                                                                     \
    X(INCARNATION, "incarnation_mismatch", 1) /* a look-up read a leaf that was split since training */                \
    X(SPECULATION, "speculation", 1)          /* it found the key there or one right link further */                   \
    X(INVALIDATION, "invalidation", 1)        /* a table entry was marked invalid, as the key was not in its leaf */   \
    X(FALLBACK, "fallback", 1)                /* a read by a call to the memory node */                                \
    X(UNSAFE, "wide_prediction", 0)           /* a call because the prediction was too wide */                         \
    X(RETRAINED, "model_retrained", 1)        /* a reply held a newer sub-model */                                     \
    X(EXPANDED, "expansion", 1)               /* a reply announced a new generation of models */                       \
    X(TORN_LEAF, "torn_leaf", 1)                                                                                       \
    X(TORN_VALUE, "torn_value", 1)                                                                                     \
    X(OLD_MODEL, "old_model", 0) /* a sub-model or table was replaced while a client read it */                        \
    X(SCAN_GAP, "scan_gap", 0)   /* a scan found a leaf that is not in its table */
enum xstore_counter {
#define X(name, text, rare) XSTORE_##name##_COUNT,
    XSTORE_COUNTERS(X)
#undef X
        XSTORE_COUNTER_COUNT,
};

#endif
