/* SPDX-License-Identifier: Apache-2.0
 *
 * Piecewise linear regression with a bound on the error: as few linear models as possible such that each predicts the
 * position of all its keys within epsilon (Xie et al., "Maximum error-bounded piecewise linear representation for
 * online stream approximation", VLDB Journal 2014; ROLEX paper, section 3.2, equation 1). Keys stream in ascending
 * order; whenever no line fits the next one, a segment is complete. That greedy choice gives the least number of
 * segments. O(1) amortised time a key. An open segment keeps the vertices of two convex hulls and nothing else.
 *
 * Method: a key x at position y requires that the line passes between (x, y - epsilon) and (x, y + epsilon). The
 * builder keeps the least and the greatest slope of a line that does so for all keys so far, each with the two points
 * that this line touches. A new key fits if its upper point is not below the line of least slope and its lower point
 * not above the line of greatest slope. If it narrows the range of slopes, the line in question turns: it then touches
 * the new point, and on the other side the next vertex of a convex hull. All comparisons are exact: products of 64-bit
 * differences in 128 bits.
 *
 * Evaluation: position = nearest integer to intercept + slope * (double)(key - first key), never below 0. Every key is
 * within epsilon: the slope is between the two extremes, and the intercept is the middle of what all vertices allow
 * with exactly this slope as a double. So the exact value of the line is in [y - epsilon, y + epsilon], or outside of
 * it by no more than the error of double arithmetic, about y / 2^51. The ends of that interval are integers, so an
 * error below one half does not move the nearest integer out of it. Positions therefore count from the segment's first
 * one, and a segment ends at IX_PLR_SPAN_MAX of them.
 *
 * Slopes are never negative (positions do not descend, so a flat line fits wherever a falling one does), and each step
 * of the evaluation rounds monotonically. So predictions do not descend either, including those of keys that were never
 * added.
 */
#ifndef DM_INDEXES_SHARED_PLR_H
#define DM_INDEXES_SHARED_PLR_H

#include <stdint.h>

#include "common/err.h"

enum { IX_PLR_EPSILON_MAX = 1 << 20 };
#define IX_PLR_SPAN_MAX (UINT64_C(1) << 44)

struct ix_plr_model {
    uint64_t key; /* the first one; keys below it are predicted at position 0 */
    double slope, intercept;
};

struct ix_plr_segment {
    struct ix_plr_model model; /* predicts positions relative to first_position */
    uint64_t first_position, last_position, last_key;
    uint64_t count; /* keys added */
};

struct ix_plr; /* a builder */

/* The caller closes. DM_ERR_INVALID for an epsilon above IX_PLR_EPSILON_MAX, DM_ERR_NO_MEMORY. */
int ix_plr_open(uint32_t epsilon, struct ix_plr **plr);
void ix_plr_close(struct ix_plr *plr); /* accepts NULL */

/* Adds a key. Within a segment keys ascend strictly and positions do not descend. Returns 0 if the key fits; 1 if not:
 * then *closed is the segment of the keys before it, and the key begins the next segment. DM_ERR_INVALID for a key out
 * of order, DM_ERR_NO_MEMORY; then nothing has changed. */
int ix_plr_add(struct ix_plr *plr, uint64_t key, uint64_t position, struct ix_plr_segment *closed);

/* Ends the open segment: 1 and *closed, or 0 if there is none. The next key may have any value. */
int ix_plr_finish(struct ix_plr *plr, struct ix_plr_segment *closed);

/* The position of `key`, counted from the segment's first; 0 for keys below the model's. */
static inline uint64_t ix_plr_predict(const struct ix_plr_model *model, uint64_t key) {
    if (key <= model->key && model->intercept <= 0) {
        return 0;
    }
    double d = key > model->key ? (double)(key - model->key) : 0;
    double position = model->intercept + model->slope * d;
    /* A key far above the last one may give any value up to infinity. */
    return position <= 0 ? 0 : position >= 0x1p62 ? UINT64_C(1) << 62 : (uint64_t)(position + 0.5);
}

#endif
