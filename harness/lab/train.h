/* SPDX-License-Identifier: Apache-2.0
 *
 * Training of learned models on a key set, apart from any index: what `dmbench train` measures and how it is shown.
 */
#ifndef DM_HARNESS_LAB_TRAIN_H
#define DM_HARNESS_LAB_TRAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* Distances between predicted and true position, over all keys. p50 and p99 say UINT16_MAX for anything above. */
struct hx_train_error {
    double mean;
    uint64_t p50, p99, max;
};

struct hx_train_row {
    bool is_rmi;
    uint64_t setting; /* the PLR's epsilon; the RMI's sub-models */
    uint64_t models;  /* segments, or sub-models */
    uint64_t bytes;   /* of the models: 24 a segment; 14 a sub-model, as XStore's paper counts it, and 24 of the top */
    uint64_t table_bytes; /* RMI over leaves: 8 a leaf */
    double bound_mean;    /* of a key: positions that a look-up has to consider beside the predicted one */
    double ns_per_key;    /* of training, on this host */
    struct hx_train_error error;
};

/* Trains an optimal PLR, positions being ranks. DM_ERR_NO_MEMORY, DM_ERR_INVALID. */
int hx_train_plr(const uint64_t *keys, uint64_t count, uint32_t epsilon, struct hx_train_row *row, struct dm_err *err);

/* Trains a two-level RMI, positions as in ix_rmi_train. DM_ERR_NO_MEMORY. */
int hx_train_rmi(const uint64_t *keys, uint64_t count, uint32_t models, uint32_t slots, uint32_t fill,
                 struct hx_train_row *row, struct dm_err *err);

#endif
