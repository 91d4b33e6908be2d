/* SPDX-License-Identifier: Apache-2.0
 *
 * Training of learned models on a key set, without an index around them: what `dmbench train` measures.
 */
#ifndef DM_HARNESS_LAB_TRAIN_H
#define DM_HARNESS_LAB_TRAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "harness/points/training.h"

/* Distances between predicted and true position, over all keys. p50 and p99 are at most UINT16_MAX. */
struct hx_train_error {
    double mean;
    uint64_t p50, p99, max;
};

struct hx_train_row {
    bool is_rmi;
    uint64_t setting; /* the PLR's epsilon; the RMI's sub-models */
    uint64_t models;  /* segments, or sub-models */
    uint64_t
        bytes; /* of the models: 24 per segment; 14 per sub-model, as XStore's paper counts, and 24 for the top model */
    uint64_t table_bytes; /* over leaves: 8 per leaf, each PLR segment beginning with a leaf of its own */
    double bound_mean;    /* of a key: positions that a look-up has to consider beside the predicted one */
    /* Times a key on this host: the least processor time of some rounds. Of training; with leaves of more than one slot
     * also of training that stores the pairs in leaves (PLR), and of one that reads the keys from leaves, which are in
     * no cache of the processor, and writes a table of them; otherwise 0. */
    double ns_per_key, stored_ns_per_key, retrain_ns_per_key;
    struct hx_train_error error;
};

enum { HX_TRAIN_ROWS_MAX = 32 };

/* One training of each kind with the settings; with `sweeps` epsilon from 4 to 256, and an eighth to 16 times the
 * sub-models. `rows` has HX_TRAIN_ROWS_MAX entries. DM_ERR_NO_MEMORY, DM_ERR_INVALID. */
int hx_train_measure(const struct hx_training *training, bool sweeps, const uint64_t *keys, uint64_t count,
                     struct hx_train_row *rows, uint32_t *row_count, struct dm_err *err);

#endif
