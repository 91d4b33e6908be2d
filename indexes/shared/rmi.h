/* SPDX-License-Identifier: Apache-2.0
 *
 * A two-level recursive model index: a linear top model divides the key space among linear sub-models, and each of them
 * predicts a position with a bound on either side (XStore, sections 4 and 5.1). The caller decides what a position is:
 * a rank in a sorted array, or a slot in a chain of leaves.
 *
 * Keys that were never trained are predicted within the bounds too: every step of an evaluation is monotone in the key
 * (a slope is never negative, and rounding is monotone), so the prediction of a key is between those of the trained
 * keys around it. A bound that holds at both ends of an interval of keys therefore holds for every key between. The
 * caller adds such ends to the trained keys (`ix_rmi_widen`); section 5.2.3 of the paper does so at the borders of
 * sub-models.
 */
#ifndef DM_INDEXES_SHARED_RMI_H
#define DM_INDEXES_SHARED_RMI_H

#include <stdint.h>

/* Maps a key to a coordinate, a real number whose integer part is the number of its sub-model. */
struct ix_rmi_top {
    uint64_t base; /* subtracted from keys, so that large keys keep their precision; keys below count as base */
    double slope, intercept;
    uint32_t models; /* at least 1 */
};

/* Positions from predicted - under to predicted + over. The paper's sub-model has two 32-bit parameters, two bounds,
 * and 32 bits for the size of its table, which belongs to the caller here. Bounds have 16 bits here instead of 8. */
struct ix_rmi_model {
    float slope, intercept;
    uint16_t under, over;
};

enum {
    IX_RMI_BOUND_MAX = UINT16_MAX, /* or more: there is no bound */
    IX_RMI_MODEL_BYTES = 14,       /* as the paper counts a sub-model */
};

static inline double ix_rmi_coord(const struct ix_rmi_top *top, uint64_t key) {
    return top->slope * (double)(key > top->base ? key - top->base : 0) + top->intercept;
}

static inline uint32_t ix_rmi_pick(const struct ix_rmi_top *top, double coord) {
    return !(coord > 0) ? 0 : coord >= (double)top->models ? top->models - 1 : (uint32_t)coord;
}

/* The position, 0 to `last`, that sub-model `number` predicts for a key with this coordinate. Monotone in it. */
static inline int64_t ix_rmi_predict(const struct ix_rmi_model *model, uint32_t number, double coord, int64_t last) {
    double position = (double)model->slope * (coord - (double)number) + (double)model->intercept;
    return !(position > 0) ? 0 : position < (double)last ? (int64_t)position : last;
}

/* The least key for which sub-model `number` or a higher one is picked; UINT64_MAX if there is no key below that. */
uint64_t ix_rmi_first_key(const struct ix_rmi_top *top, uint32_t number);

/* ---- fitting ---------------------------------------------------------------------------------------------------- */

/* Sums for a least-squares line; zero-initialise. Points are taken relative to the first one. */
struct ix_rmi_fit {
    double count, x0, y0, x, y, xx, xy;
};
void ix_rmi_fit_add(struct ix_rmi_fit *fit, double x, double y);

/* A sub-model with bounds of 0 from points (coordinate - number, position); constant 0 without points. */
struct ix_rmi_model ix_rmi_fit_model(const struct ix_rmi_fit *fit);

/* A top model from points (key - base, share of all keys that are below, 0 .. 1). */
struct ix_rmi_top ix_rmi_fit_top(const struct ix_rmi_fit *fit, uint64_t base, uint32_t models);

/* Widens the bounds until the predicted range of a key with this coordinate, among positions 0 to `last`, reaches up to
 * `least` and down to `most`. For a trained key, both are its position. */
void ix_rmi_widen(struct ix_rmi_model *model, uint32_t number, double coord, int64_t last, int64_t least, int64_t most);

/* ---- a whole index over an array -------------------------------------------------------------------------------- */

struct ix_rmi {
    struct ix_rmi_top top;
    struct ix_rmi_model *models; /* top.models of them; the caller owns them */
    uint32_t *counts;            /* keys of each, or NULL; the caller owns them */
};

/* Trains on `count` ascending, distinct keys; key i has position i / fill * slots + i % fill: leaves of `slots`
 * positions of which `fill` are used (1, 1: its rank). The top model is trained on every `sample`-th key. Keys that are
 * absent are predicted to the positions of their neighbours. */
void ix_rmi_train(struct ix_rmi *rmi, const uint64_t *keys, uint64_t count, uint32_t slots, uint32_t fill,
                  uint64_t sample);

#endif
