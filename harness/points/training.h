/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of one training of learned models (`dmbench train`), as a point of a figure or a sweep has them.
 */
#ifndef DM_HARNESS_POINTS_TRAINING_H
#define DM_HARNESS_POINTS_TRAINING_H

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"
#include "common/opt.h"

struct hx_training {
    const char *key_set;
    uint64_t keys, seed, epsilon, models, slots, fill;
};

/* Rows of an option table for them, with `training` the member of `values` that holds them. */
#define HX_TRAINING_ROWS(values, training)                                                                             \
    DM_OPT_ROW_AS("key_set", values, training.key_set, DM_OPT_STRING, .initial = "uniform",                            \
                  .help = "dense, uniform, normal, lognormal, linear_noise, sosd:FILE or raw:FILE"),                   \
        DM_OPT_ROW_AS("keys", values, training.keys, DM_OPT_COUNT, .initial = "1M", .min = 0, .max = 1e10,             \
                      .help = "keys of the set; 0 with a file: all that it has"),                                      \
        DM_OPT_ROW_AS("seed", values, training.seed, DM_OPT_COUNT, .initial = "1", .max = 9007199254740991.0,          \
                      .help = "of the key set"),                                                                       \
        DM_OPT_ROW_AS("epsilon", values, training.epsilon, DM_OPT_COUNT, .initial = "16", .min = 0, .max = 1 << 20,    \
                      .unit = "positions", .symbol = "epsilon", .help = "bound on the error of a PLR"),                \
        DM_OPT_ROW_AS("models", values, training.models, DM_OPT_COUNT, .initial = "0", .min = 0, .max = 1e9,           \
                      .unit = "sub-models", .symbol = "M", .help = "sub-models of the RMI; 0: one for 200 keys"),      \
        DM_OPT_ROW_AS("slots", values, training.slots, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 1024,            \
                      .unit = "positions", .help = "positions of a leaf; 1: no leaves, positions are ranks"),          \
        DM_OPT_ROW_AS("fill", values, training.fill, DM_OPT_COUNT, .initial = "1", .min = 1, .max = 1024,              \
                      .unit = "keys", .help = "keys of a leaf, which have its first positions")

/* Reads the members of a spec, {"source": "train", "keys": "5M", ...}, over settings that have at least their defaults.
 * DM_ERR_INVALID naming `where`, DM_ERR_NO_MEMORY. */
int hx_training_from_json(const json_t *spec, const char *where, struct hx_training *training, struct dm_err *err);

/* All settings as a new object with "source": "train"; NULL when out of memory. */
json_t *hx_training_to_json(const struct hx_training *training);

/* The full configuration of a spec as a new object, and its hash. DM_ERR_INVALID naming `where`, DM_ERR_NO_MEMORY. */
int hx_training_resolve(const json_t *spec, const char *where, json_t **config, char hash[17], struct dm_err *err);

#endif
